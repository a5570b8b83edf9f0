//! Arbitrary text as a date file.

#![no_main]

use cronhold_fuzz::check_mistake;
use cronhold_schedule::calendar::{Calendar, FIRST_DAY, LAST_DAY};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let calendar = match Calendar::from_dates(text) {
        Ok(calendar) => calendar,
        Err(errors) => {
            assert!(!errors.is_empty());
            return errors.iter().for_each(|error| check_mistake(text, error));
        }
    };
    let (first, last) = (calendar.next(FIRST_DAY), calendar.prev(LAST_DAY));
    assert_eq!(first.is_some(), last.is_some());
    assert!(first <= last);
    if let Some(first) = first {
        assert!(calendar.contains(first));
        assert_eq!(calendar.shift(first, -1), None);
    }
});
