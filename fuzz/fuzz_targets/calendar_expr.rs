//! Arbitrary text as a calendar expression.

#![no_main]

use cronhold_fuzz::{calendars, check_mistake};
use cronhold_schedule::{CalendarExpr, Day};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let expr = match CalendarExpr::parse(text) {
        Ok(expr) => expr,
        Err(error) => return check_mistake(text, &error),
    };
    let canonical = expr.to_string();
    assert_eq!(CalendarExpr::parse(&canonical).as_ref(), Ok(&expr), "{text:?} prints as {canonical:?}");
    match calendars().compile(&expr) {
        Ok(calendar) => {
            let from = Day::from_ymd(2026, 4, 27);
            if let Some(next) = calendar.next(from) {
                assert!(next >= from && calendar.contains(next));
                assert!((from.0..next.0).all(|day| !calendar.contains(Day(day))));
                assert!(calendar.shift(next, 1).is_none_or(|later| later > next && calendar.contains(later)));
            }
        }
        Err(error) => check_mistake(text, &error),
    }
});
