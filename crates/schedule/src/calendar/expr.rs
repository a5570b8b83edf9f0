//! A calendar as written: an expression over weekdays and named calendars. It can be compared,
//! printed and stored with a job before any calendar file is there; `Calendars::compile` resolves it.

use std::fmt;
use std::ops::Range;

use super::days::SetOperator;
use super::parse;
use super::weekdays::weekdays_text;
use crate::text::TextError;

/// A calendar as written, such as `Mon-Fri` or `us-business - freeze`.
///
/// - `all`, `none`, weekdays (`Mon`, `Mon-Fri`, `Mon,Wed-Fri`, `Fri-Mon`), names of calendars;
/// - `+` or `or`: days of either; `-` between blanks: days of the first without the second;
/// - `&` or `and`: days of both, binds tighter; `!` or `not`: all other days, binds tightest;
/// - parentheses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarExpr {
    pub(super) root: ExprNode,
}

/// Part of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ExprNode {
    All,
    None,
    /// Invariant: neither empty nor all seven days.
    Weekdays(u8),
    Name(CalendarName),
    Not(Box<ExprNode>),
    Join {
        operator: SetOperator,
        left: Box<ExprNode>,
        right: Box<ExprNode>,
    },
}

/// The name of a calendar, and where it stands in the text that was parsed.
#[derive(Debug, Clone)]
pub(super) struct CalendarName {
    pub(super) name: String,
    pub(super) at: Range<usize>,
}

impl CalendarExpr {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        parse::expression(text).map(|root| Self { root })
    }

    /// The names of the calendars that it refers to, in the order of the text; one may come twice.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.collect_names(&mut names);
        names
    }
}

impl ExprNode {
    fn collect_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::All | Self::None | Self::Weekdays(_) => {}
            Self::Name(name) => names.push(&name.name),
            Self::Not(inner) => inner.collect_names(names),
            Self::Join { left, right, .. } => {
                left.collect_names(names);
                right.collect_names(names);
            }
        }
    }

    /// How tightly it holds together when printed; an operand that is looser needs parentheses.
    fn tightness(&self) -> u8 {
        match self {
            Self::Join { operator: SetOperator::Or | SetOperator::Minus, .. } => 0,
            Self::Join { operator: SetOperator::And, .. } => 1,
            _ => 2,
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, at_least: u8) -> fmt::Result {
        if self.tightness() < at_least {
            f.write_str("(")?;
            self.print(f, 0)?;
            return f.write_str(")");
        }
        match self {
            Self::All => f.write_str("all"),
            Self::None => f.write_str("none"),
            Self::Weekdays(mask) => f.write_str(&weekdays_text(*mask)),
            Self::Name(name) => f.write_str(&name.name),
            Self::Not(inner) => {
                f.write_str("!")?;
                inner.print(f, 2)
            }
            Self::Join { operator, left, right } => {
                // Operators group to the left, so only a right operand of the same kind needs parentheses.
                let tightness = self.tightness();
                left.print(f, tightness)?;
                f.write_str(match operator {
                    SetOperator::Or => " + ",
                    SetOperator::Minus => " - ",
                    SetOperator::And => " & ",
                })?;
                right.print(f, tightness + 1)
            }
        }
    }
}

impl fmt::Display for CalendarExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.print(f, 0)
    }
}

/// Where a name stands says nothing about the calendar: the canonical text has it elsewhere.
impl PartialEq for CalendarName {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for CalendarName {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prints_canonical_text() {
        for (text, canonical) in [
            ("ALL", "all"),
            (" none ", "none"),
            ("Mon-Sun", "all"),
            ("monday", "Mon"),
            ("mon,tue,wed", "Mon-Wed"),
            ("Fri , Sat-Mon", "Fri-Mon"),
            ("us-business - freeze", "us-business - freeze"),
            ("a or b | c + d", "a + b + c + d"),
            ("a+b", "a + b"),
            ("a - b - c", "a - b - c"),
            ("a - (b - c)", "a - (b - c)"),
            ("a + (b)", "a + b"),
            ("a + b & c", "a + b & c"),
            ("(a + b) & c", "(a + b) & c"),
            ("a & (b & c)", "a & (b & c)"),
            ("not a and !b", "!a & !b"),
            ("!(a + b)", "!(a + b)"),
            ("NOT NOT a", "!!a"),
            ("(a)-(b)", "a - b"),
            ("fin/us.2026_x", "fin/us.2026_x"),
            ("mon-close", "mon-close"),
            ("Mon-Fri - us/holidays + saturday & extra", "Mon-Fri - us/holidays + Sat & extra"),
        ] {
            let expr = CalendarExpr::parse(text).expect(text);
            assert_eq!(expr.to_string(), canonical, "{text}");
            assert_eq!(CalendarExpr::parse(canonical), Ok(expr), "{canonical}");
        }
    }

    #[test]
    fn names_in_order() {
        let expr = CalendarExpr::parse("b - (a & !c) + Mon + b").expect("it is right");
        assert_eq!(expr.names(), ["b", "a", "c", "b"]);
    }

    fn any_node() -> impl Strategy<Value = ExprNode> {
        let name = prop::sample::select(vec!["a", "us-business", "x/y.z", "mon-close"]);
        let leaf = prop_oneof![
            Just(ExprNode::All),
            Just(ExprNode::None),
            (1_u8..0x7f).prop_map(ExprNode::Weekdays),
            name.prop_map(|name| ExprNode::Name(CalendarName { name: name.to_owned(), at: 0..0 })),
        ];
        leaf.prop_recursive(8, 32, 2, |inner| {
            let operator = prop::sample::select(vec![SetOperator::Or, SetOperator::Minus, SetOperator::And]);
            prop_oneof![
                inner.clone().prop_map(|node| ExprNode::Not(Box::new(node))),
                (operator, inner.clone(), inner).prop_map(|(operator, left, right)| ExprNode::Join {
                    operator,
                    left: Box::new(left),
                    right: Box::new(right)
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_expression_reads_back(root in any_node()) {
            let expr = CalendarExpr { root };
            match CalendarExpr::parse(&expr.to_string()) {
                Ok(read) => prop_assert_eq!(read, expr),
                // The one shape that the parser refuses although it could be printed.
                Err(error) => prop_assert!(error.message.contains("takes"), "{}: {}", expr, error),
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a-cMonFri +&|!(),./_-]{0,60}|\\PC{0,40}") {
            match CalendarExpr::parse(&text) {
                Ok(expr) => prop_assert_eq!(CalendarExpr::parse(&expr.to_string()), Ok(expr)),
                Err(error) => prop_assert!(text.get(error.at).is_some(), "the place is in the text"),
            }
        }
    }
}
