//! Arbitrary texts as named cron fields.

#![no_main]

use cronhold_fuzz::{check_mistake, check_schedule, compile};
use cronhold_schedule::cron::FieldsExpr;
use cronhold_schedule::{Instant, ScheduleSpec, Timing, Zone};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u32, Vec<(u8, &str)>)| {
    let (at, texts) = input;
    let fields: Vec<(&str, &str)> = texts
        .iter()
        .map(|(field, text)| (FieldsExpr::NAMES.get(usize::from(field % 9)).copied().unwrap_or(text), *text))
        .collect();
    let expr = match FieldsExpr::parse(&fields) {
        Ok(expr) => expr,
        Err((index, error)) => {
            if let Some((name, text)) = fields.get(index) {
                check_mistake(if FieldsExpr::NAMES.contains(name) { text } else { name }, &error);
            }
            return;
        }
    };
    let entries = expr.entries();
    let canonical: Vec<(&str, &str)> = entries.iter().map(|(name, text)| (*name, text.as_str())).collect();
    assert_eq!(FieldsExpr::parse(&canonical).as_ref(), Ok(&expr), "{fields:?} prints as {canonical:?}");
    let schedule = compile(&ScheduleSpec::new(Timing::Fields(expr)), &Zone::utc()).expect("needs nothing from outside");
    check_schedule(&schedule, Instant::from_secs(i64::from(at)));
});
