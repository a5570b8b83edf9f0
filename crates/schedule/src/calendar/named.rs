//! Calendars by name, and the resolution of expressions to days.

use std::collections::BTreeMap;

use super::days::SetOperator;
use super::expr::{CalendarName, ExprNode};
use super::weekdays::weekday;
use super::{Calendar, CalendarExpr};
use crate::civil::WEEKDAYS;
use crate::text::{TextError, did_you_mean, shortened};

/// Maximum number of names listed in a message.
const NAMES_SHOWN: usize = 12;

/// The calendars that expressions can refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CalendarSet {
    by_name: BTreeMap<String, Calendar>,
}

impl CalendarSet {
    /// No calendars; weekdays, `all` and `none` still compile.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a calendar, or replaces the one with that name. `check_name` defines valid names.
    pub fn insert(&mut self, name: impl Into<String>, calendar: Calendar) {
        self.by_name.insert(name.into(), calendar);
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The calendar of that name.
    pub fn get(&self, name: &str) -> Option<&Calendar> {
        self.by_name.get(name)
    }

    /// Resolves an expression to days. An error refers to the byte range of the text the expression was parsed from.
    pub fn compile(&self, expr: &CalendarExpr) -> Result<Calendar, TextError> {
        self.evaluate(&expr.root)
    }

    /// Recursion is bounded: the parser limits depth and operands.
    fn evaluate(&self, node: &ExprNode) -> Result<Calendar, TextError> {
        Ok(match node {
            ExprNode::All => Calendar::all(),
            ExprNode::None => Calendar::none(),
            ExprNode::Weekdays(mask) => Calendar::weekdays(*mask),
            ExprNode::Name(name) => self.get(&name.name).cloned().ok_or_else(|| self.unknown(name))?,
            ExprNode::Not(inner) => Calendar::all().combined(SetOperator::Minus, &self.evaluate(inner)?),
            ExprNode::Join { operator, left, right } => {
                self.evaluate(left)?.combined(*operator, &self.evaluate(right)?)
            }
        })
    }

    fn unknown(&self, name: &CalendarName) -> TextError {
        let error = TextError::new(name.at.clone(), format!("there is no calendar `{}`", shortened(&name.name)));
        if let Some(meant) = did_you_mean(&name.name, self.names()) {
            return error.hint(format!("did you mean `{meant}`? {}", self.known()));
        }
        match meant_weekdays(&name.name) {
            Some(meant) => error.hint(format!("did you mean `{meant}`? {}", self.known())),
            None => error.hint(self.known()),
        }
    }

    fn known(&self) -> String {
        if self.by_name.is_empty() {
            return "no calendar files are known; `all`, `none` and weekdays such as `Mon-Fri` need none".to_owned();
        }
        let shown: Vec<String> = self.names().take(NAMES_SHOWN).map(shortened).collect();
        let more = self.by_name.len() - shown.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("known calendars: {}{more}", shown.join(", "))
    }
}

/// Suggests `Mon-Fri` for `Mon-Fry`: a weekday or a range of weekdays with a typo in one word.
fn meant_weekdays(name: &str) -> Option<String> {
    let word = |word: &str| {
        if weekday(word).is_some() {
            return Some(word.to_owned());
        }
        let short = WEEKDAYS.map(|name| &name[..3]);
        // Short words resemble too many others, so a single word is only corrected if it is long.
        let meant = did_you_mean(word, WEEKDAYS).or_else(|| did_you_mean(word, short).filter(|_| name.contains('-')));
        meant.map(str::to_owned)
    };
    match name.split_once('-') {
        Some((first, last)) if weekday(first).is_some() || weekday(last).is_some() => {
            Some(format!("{}-{}", word(first)?, word(last)?))
        }
        Some(_) => None,
        None => word(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::civil::Day;

    fn calendars() -> CalendarSet {
        let mut calendars = CalendarSet::new();
        let file = |text: &str| Calendar::from_dates(text).expect(text);
        calendars.insert("holidays", file("STOP 2027-01-01\n2026-01-01\n2026-05-01"));
        calendars.insert("freeze", file("2026-05-04\n2026-05-05"));
        calendars.insert("us-business", Calendar::weekdays(0b011_1110));
        calendars
    }

    /// Days from 2026-04-27 (a Monday) to 2026-05-10 as a string of marks.
    fn marks(calendar: &Calendar) -> String {
        let first = Day::from_ymd(2026, 4, 27);
        (0..14).map(|n| if calendar.contains(first.plus(n)) { 'x' } else { '.' }).collect()
    }

    #[test]
    fn expressions_combine_calendars() {
        for (text, days, known_until) in [
            ("all", "xxxxxxxxxxxxxx", None),
            ("none", "..............", None),
            ("Mon-Fri", "xxxxx..xxxxx..", None),
            ("Fri-Mon", "x...xxxx...xxx", None),
            ("us-business - freeze", "xxxxx....xxx..", Some("2026-05-05")),
            ("us-business - freeze - holidays", "xxxx.....xxx..", Some("2026-05-05")),
            ("us-business - holidays", "xxxx...xxxxx..", Some("2026-12-31")),
            ("freeze + holidays", "....x..xx.....", Some("2026-05-05")),
            ("!holidays & Fri", "...........x..", Some("2026-12-31")),
            ("not (Sat,Sun)", "xxxxx..xxxxx..", None),
            ("Sat + us-business & holidays", "....xx......x.", Some("2026-12-31")),
            ("us-business - (freeze - Mon)", "xxxxx..x.xxx..", Some("2026-05-05")),
        ] {
            let expr = CalendarExpr::parse(text).expect(text);
            let calendar = calendars().compile(&expr).expect(text);
            assert_eq!(marks(&calendar), days, "{text}");
            assert_eq!(calendar.known_until().map(|day| day.to_string()).as_deref(), known_until, "{text}");
        }
    }

    #[test]
    fn unknown_names_are_reported_with_suggestions() {
        for (text, at, message) in [
            (
                "Mon + holiday",
                6..13,
                "there is no calendar `holiday` (did you mean `holidays`? known calendars: freeze,",
            ),
            ("zzz", 0..3, "there is no calendar `zzz` (known calendars: freeze, holidays, us-business)"),
            ("Mon-Fry", 0..7, "did you mean `Mon-Fri`?"),
            ("Wendesday", 0..9, "did you mean `Wednesday`?"),
        ] {
            let expr = CalendarExpr::parse(text).expect(text);
            let error = calendars().compile(&expr).expect_err(text);
            assert_eq!(error.at, at, "{text}");
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
        let expr = CalendarExpr::parse("x").expect("a name");
        let error = CalendarSet::new().compile(&expr).expect_err("nothing is known").to_string();
        assert!(error.contains("no calendar files are known"), "{error}");
    }

    #[test]
    fn long_list_of_names_is_truncated() {
        let mut calendars = CalendarSet::new();
        for number in 0..30 {
            calendars.insert(format!("cal-{number:02}"), Calendar::all());
        }
        let error = calendars.compile(&CalendarExpr::parse("zzzzzz").expect("a name")).expect_err("unknown");
        assert!(error.to_string().ends_with("cal-11 and 18 more)"), "{error}");
    }
}
