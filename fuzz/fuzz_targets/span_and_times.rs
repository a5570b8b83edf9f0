//! The small parsers: spans, times of day, dates, bounds, instants and policies. What they parse, they print and parse
//! again.

#![no_main]

use cronhold_fuzz::check_mistake;
use cronhold_schedule::{Day, FoldPolicy, GapPolicy, Instant, Span, TextError, TimeBound, TimeOfDay};
use libfuzzer_sys::fuzz_target;

fn check<T: PartialEq + std::fmt::Debug>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, TextError>,
    print: impl Fn(&T) -> String,
) {
    match parse(text) {
        Ok(value) => {
            let printed = print(&value);
            assert_eq!(parse(&printed).as_ref(), Ok(&value), "{text:?} prints as {printed:?}");
        }
        Err(error) => check_mistake(text, &error),
    }
}

fuzz_target!(|text: &str| {
    check(text, Span::parse, ToString::to_string);
    check(text, TimeOfDay::parse, ToString::to_string);
    check(text, Day::parse, ToString::to_string);
    check(text, TimeBound::parse, ToString::to_string);
    check(text, Instant::parse, ToString::to_string);
    check(text, GapPolicy::parse, |gap| gap.name().to_owned());
    check(text, FoldPolicy::parse, |fold| fold.name().to_owned());
});
