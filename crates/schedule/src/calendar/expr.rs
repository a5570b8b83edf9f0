//! A calendar as written: an expression over weekdays and named calendars. It can be compared, printed and stored with
//! a job before any calendar file is loaded; `CalendarSet::compile` resolves it.

use std::fmt;
use std::ops::Range;

use super::days::SetOperator;
use super::parse;
use super::weekdays::weekdays_text;
use crate::text::TextError;

/// A calendar as written, such as `Mon-Fri` or `us-business - freeze`.
///
/// - `all`, `none`, weekdays (`Mon`, `Mon-Fri`, `Mon,Wed-Fri`, `Fri-Mon`), names of calendars;
/// - `+` or `or`: union; `-` with a blank on both sides: difference;
/// - `&` or `and`: intersection, binds tighter; `!` or `not`: complement, binds tightest;
/// - parentheses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarExpr {
    pub(super) root: ExprNode,
}

/// A node of the expression tree.
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

/// The name of a calendar, and its byte range in the text that was parsed.
#[derive(Debug, Clone)]
pub(super) struct CalendarName {
    pub(super) name: String,
    pub(super) at: Range<usize>,
}

impl CalendarExpr {
    /// Parses an expression.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        parse::expression(text).map(|root| Self { root })
    }

    /// The names of the calendars it refers to, in text order, possibly with repeats.
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

    /// Binding strength for printing. An operand that binds less tightly needs parentheses.
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
                // Operators associate to the left, so only a right operand of the same strength needs parentheses.
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

/// The position of a name is ignored: two expressions are equal if they mean the same calendar.
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
                // The one expression that can be printed but that the parser rejects.
                Err(error) => prop_assert!(error.message.contains("without"), "{}: {}", expr, error),
            }
        }

        #[test]
        fn arbitrary_text_never_panics(text in "[a-cMonFri +&|!(),./_-]{0,60}|\\PC{0,40}") {
            match CalendarExpr::parse(&text) {
                Ok(expr) => prop_assert_eq!(CalendarExpr::parse(&expr.to_string()), Ok(expr)),
                Err(error) => prop_assert!(text.get(error.at).is_some(), "the place is in the text"),
            }
        }
    }
}
