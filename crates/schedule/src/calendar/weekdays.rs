//! Weekdays as names and as a mask: bit 0 is Sunday, as in `Day::weekday`.

use std::fmt::Write;

use crate::civil::WEEKDAYS;

/// Bit mask with all seven weekdays.
pub(super) const WEEK: u8 = 0x7f;

/// The number of a weekday from its short or long name, case-insensitive; 0 is Sunday.
pub(super) fn weekday(word: &str) -> Option<u32> {
    (0..7).zip(WEEKDAYS).find(|(_, name)| is_name(word, name)).map(|(number, _)| number)
}

/// The mask of `Mon`, `Mon-Fri` or `Fri-Mon`, which wraps around the weekend.
pub(super) fn weekday_range(word: &str) -> Option<u8> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let (first, last) = (weekday(first)?, weekday(last)?);
    let mut mask = 0;
    for step in 0..=(last + 7 - first) % 7 {
        mask |= 1 << ((first + step) % 7);
    }
    Some(mask)
}

/// The canonical text of a mask that is neither empty nor full: `Mon-Fri`, `Sat,Sun`, `Fri-Mon`.
pub(super) fn weekdays_text(mask: u8) -> String {
    let has = |day: u32| mask >> (day % 7) & 1 == 1;
    let mut text = String::new();
    // A range begins where the previous day is missing. The week starts on Monday.
    for first in (1..8).filter(|day| has(*day) && !has(day + 6)) {
        let len = (1..7).take_while(|step| has(first + step)).count() as u32 + 1;
        match len {
            1 => list(&mut text, first),
            2 => {
                list(&mut text, first);
                list(&mut text, first + 1);
            }
            _ => {
                list(&mut text, first);
                // Writing to a string cannot fail.
                let _ = write!(text, "-{}", short(first + len - 1));
            }
        }
    }
    text
}

fn list(text: &mut String, day: u32) {
    if !text.is_empty() {
        text.push(',');
    }
    text.push_str(short(day));
}

fn short(day: u32) -> &'static str {
    &WEEKDAYS[(day % 7) as usize][..3]
}

fn is_name(word: &str, name: &str) -> bool {
    word.eq_ignore_ascii_case(name) || word.eq_ignore_ascii_case(&name[..3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_words_and_ranges() {
        for (text, mask) in [
            ("Sun", Some(0b000_0001)),
            ("MONDAY", Some(0b000_0010)),
            ("mon-fri", Some(0b011_1110)),
            ("Fri-Mon", Some(0b110_0011)),
            ("Mon-Mon", Some(0b000_0010)),
            ("sunday-Sat", Some(WEEK)),
            ("Mo", None),
            ("Mond", None),
            ("Mon-", None),
            ("Mon-Tue-Wed", None),
            ("", None),
        ] {
            assert_eq!(weekday_range(text), mask, "{text}");
        }
    }

    #[test]
    fn every_mask_prints_and_reads_back() {
        for mask in 1..WEEK {
            let text = weekdays_text(mask);
            let read = text.split(',').fold(0, |sum, part| sum | weekday_range(part).expect(part));
            assert_eq!(read, mask, "{text}");
        }
        assert_eq!(weekdays_text(0b011_1110), "Mon-Fri");
        assert_eq!(weekdays_text(0b100_0001), "Sat,Sun");
        assert_eq!(weekdays_text(0b110_0011), "Fri-Mon");
        assert_eq!(weekdays_text(0b010_1010), "Mon,Wed,Fri");
    }
}
