//! The grammar of calendar expressions: tokens first, then operators by recursive descent. Separate from the expression
//! type because most of it is error reporting.

use std::ops::Range;

use super::days::SetOperator;
use super::expr::{CalendarName, ExprNode};
use super::weekdays::{WEEK, weekday, weekday_range, weekdays_text};
use crate::civil::WEEKDAYS;
use crate::text::{TextError, did_you_mean, shortened};

/// Maximum length of an expression in bytes, both as written and as printed.
const LEN_MAX: usize = 4 * 1024;
/// Maximum nesting of parentheses and complements.
const DEPTH_MAX: usize = 32;
/// Maximum number of weekdays and names in one expression.
const OPERANDS_MAX: usize = 256;

const OPERATORS_HINT: &str = "join calendars with `+`, `-` or `&` between blanks, weekdays with commas";

/// Parses an expression.
pub(super) fn expression(text: &str) -> Result<ExprNode, TextError> {
    let too_long = || TextError::new(0..text.len(), format!("a calendar has at most {LEN_MAX} characters"));
    if text.len() > LEN_MAX {
        return Err(too_long());
    }
    let mut parser = CalendarParser { tokens: tokens(text)?, next: 0, end: text.len(), depth: 0, operands: 0 };
    let root = parser.sum()?;
    if let Some((token, at)) = parser.peek() {
        return Err(match token {
            CalendarToken::Close => TextError::new(at, "unmatched closing parenthesis"),
            CalendarToken::Comma => TextError::new(at, "only weekdays are listed with commas").hint(OPERATORS_HINT),
            _ => TextError::new(at, "expected an operator before this").hint(OPERATORS_HINT),
        });
    }
    // Printing adds blanks around operators, and the printed text must be parseable as well.
    let printed = super::CalendarExpr { root };
    if printed.to_string().len() > LEN_MAX {
        return Err(too_long());
    }
    Ok(printed.root)
}

/// Whether an expression can refer to a calendar by this name.
pub fn check_name(name: &str) -> Result<(), TextError> {
    let wrong = |message: String| {
        Err(TextError::new(0..name.len(), message)
            .hint("a name is made of letters, digits, `_`, `.`, `-` and `/`, such as us/business-days"))
    };
    if let Some((at, c)) = name.char_indices().find(|(_, c)| !is_word(*c)) {
        return Err(TextError::new(
            at..at + c.len_utf8(),
            format!("`{}` is not allowed in a calendar's name", printable(c)),
        ));
    }
    if name.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
        return wrong(format!(
            "`{}` is not a calendar's name: a part of it is empty or begins with a dot",
            shortened(name)
        ));
    }
    if name.starts_with('-') || name.ends_with('-') {
        return wrong(format!("`{}` is not a calendar's name: it begins or ends with a dash", shortened(name)));
    }
    if weekday_range(name).is_some() || is_reserved(name) {
        return wrong(format!("`{}` is a reserved word and cannot be a calendar's name", shortened(name)));
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CalendarToken<'a> {
    Operand(&'a str),
    Operator(SetOperator),
    Not,
    Open,
    Close,
    Comma,
}

struct CalendarParser<'a> {
    tokens: Vec<(CalendarToken<'a>, Range<usize>)>,
    next: usize,
    /// Length of the text, the position of errors about a missing operand at the end.
    end: usize,
    depth: usize,
    operands: usize,
}

impl<'a> CalendarParser<'a> {
    fn peek(&self) -> Option<(CalendarToken<'a>, Range<usize>)> {
        self.tokens.get(self.next).cloned()
    }

    /// Operands joined by `+` and `-`, left-associative.
    fn sum(&mut self) -> Result<ExprNode, TextError> {
        let mut left = self.product()?;
        while let Some((CalendarToken::Operator(operator @ (SetOperator::Or | SetOperator::Minus)), at)) = self.peek() {
            self.next += 1;
            let right = self.product()?;
            if operator == SetOperator::Minus {
                check_minus(&left, &right, at)?;
            }
            left = ExprNode::Join { operator, left: Box::new(left), right: Box::new(right) };
        }
        Ok(left)
    }

    /// Operands joined by `&`, left-associative.
    fn product(&mut self) -> Result<ExprNode, TextError> {
        let mut left = self.operand()?;
        while let Some((CalendarToken::Operator(operator @ SetOperator::And), _)) = self.peek() {
            self.next += 1;
            let right = self.operand()?;
            left = ExprNode::Join { operator, left: Box::new(left), right: Box::new(right) };
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<ExprNode, TextError> {
        let Some((token, at)) = self.peek() else {
            return Err(expected_operand(self.end..self.end));
        };
        self.next += 1;
        match token {
            CalendarToken::Operand(word) => self.word(word, at),
            CalendarToken::Not => {
                self.deeper(&at)?;
                let inner = self.operand()?;
                self.depth -= 1;
                Ok(ExprNode::Not(Box::new(inner)))
            }
            CalendarToken::Open => {
                self.deeper(&at)?;
                let inner = self.sum()?;
                match self.peek() {
                    Some((CalendarToken::Close, _)) => self.next += 1,
                    Some((_, other)) => {
                        return Err(
                            TextError::new(other, "expected an operator or `)` before this").hint(OPERATORS_HINT)
                        );
                    }
                    None => return Err(TextError::new(at, "this parenthesis is never closed")),
                }
                self.depth -= 1;
                Ok(inner)
            }
            CalendarToken::Operator(_) | CalendarToken::Close | CalendarToken::Comma => Err(expected_operand(at)),
        }
    }

    fn deeper(&mut self, at: &Range<usize>) -> Result<(), TextError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("parentheses and complements go at most {DEPTH_MAX} deep");
            return Err(TextError::new(at.clone(), message));
        }
        Ok(())
    }

    /// A word that is not an operator: `all`, `none`, weekdays including a list after them, or a name.
    fn word(&mut self, word: &str, at: Range<usize>) -> Result<ExprNode, TextError> {
        self.operands += 1;
        if self.operands > OPERANDS_MAX {
            return Err(TextError::new(at, format!("a calendar has at most {OPERANDS_MAX} operands")));
        }
        if word.eq_ignore_ascii_case("all") {
            return Ok(ExprNode::All);
        }
        if word.eq_ignore_ascii_case("none") {
            return Ok(ExprNode::None);
        }
        let Some(mut mask) = weekday_range(word) else {
            check_name(word).map_err(|error| error.shifted(at.start))?;
            return Ok(ExprNode::Name(CalendarName { name: word.to_owned(), at }));
        };
        while let Some((CalendarToken::Comma, comma)) = self.peek() {
            self.next += 1;
            let Some((CalendarToken::Operand(listed), listed_at)) = self.peek() else {
                return Err(TextError::new(comma, "expected a weekday after the comma"));
            };
            self.next += 1;
            mask |= weekday_range(listed).ok_or_else(|| not_a_weekday(listed, listed_at))?;
        }
        Ok(if mask == WEEK { ExprNode::All } else { ExprNode::Weekdays(mask) })
    }
}

fn tokens(text: &str) -> Result<Vec<(CalendarToken<'_>, Range<usize>)>, TextError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let mut len = c.len_utf8();
        let token = match c {
            _ if c.is_whitespace() => {
                at += len;
                continue;
            }
            '+' | '|' => CalendarToken::Operator(SetOperator::Or),
            '&' => CalendarToken::Operator(SetOperator::And),
            '!' => CalendarToken::Not,
            '(' => CalendarToken::Open,
            ')' => CalendarToken::Close,
            ',' => CalendarToken::Comma,
            _ if is_word(c) => {
                let word = text[at..].split(|c| !is_word(c)).next().expect("a split yields at least one part");
                len = word.len();
                word_token(word, at)?
            }
            _ => {
                let message = format!("`{}` is not allowed in a calendar expression", printable(c));
                return Err(TextError::new(at..at + len, message).hint(OPERATORS_HINT));
            }
        };
        tokens.push((token, at..at + len));
        at += len;
    }
    Ok(tokens)
}

fn word_token(word: &str, at: usize) -> Result<CalendarToken<'_>, TextError> {
    let glued = |dash: usize| {
        Err(TextError::new(dash..dash + 1, "a minus needs a blank on both sides")
            .hint("names may hold dashes; write `us-business - freeze`"))
    };
    Ok(match word {
        "-" => CalendarToken::Operator(SetOperator::Minus),
        _ if word.eq_ignore_ascii_case("or") => CalendarToken::Operator(SetOperator::Or),
        _ if word.eq_ignore_ascii_case("and") => CalendarToken::Operator(SetOperator::And),
        _ if word.eq_ignore_ascii_case("not") => CalendarToken::Not,
        _ if word.starts_with('-') => return glued(at),
        _ if word.ends_with('-') => return glued(at + word.len() - 1),
        _ => CalendarToken::Operand(word),
    })
}

/// Rejects `Mon - Fri`, Monday without Friday: the range `Mon-Fri` is almost certainly intended.
fn check_minus(left: &ExprNode, right: &ExprNode, at: Range<usize>) -> Result<(), TextError> {
    match (left, right) {
        (ExprNode::Weekdays(a), ExprNode::Weekdays(b)) if a.count_ones() == 1 && b.count_ones() == 1 => {
            let (a, b) = (weekdays_text(*a), weekdays_text(*b));
            Err(TextError::new(at, format!("`{a} - {b}` means {a} without {b}"))
                .hint(format!("a range of weekdays has no blanks: `{a}-{b}`")))
        }
        _ => Ok(()),
    }
}

fn expected_operand(at: Range<usize>) -> TextError {
    TextError::new(at, "expected a calendar here").hint("such as `Mon-Fri`, `all`, `us-business - freeze`")
}

fn not_a_weekday(word: &str, at: Range<usize>) -> TextError {
    let error = TextError::new(at, format!("`{}` is not a weekday", shortened(word)));
    let meant = did_you_mean(word, WEEKDAYS).or_else(|| did_you_mean(word, WEEKDAYS.map(|name| &name[..3])));
    match meant.filter(|_| weekday(word).is_none()) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint("only weekdays are listed with commas; join calendars with `+`"),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-')
}

fn is_reserved(word: &str) -> bool {
    ["all", "none", "and", "or", "not"].iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}

fn printable(c: char) -> String {
    if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::CalendarExpr;
    use super::*;

    #[test]
    fn reports_errors_with_positions() {
        for (text, at, message) in [
            ("", 0..0, "expected a calendar here"),
            ("  ", 2..2, "expected a calendar here"),
            ("Mon +", 5..5, "expected a calendar here"),
            ("+ Mon", 0..1, "expected a calendar here"),
            ("a - - b", 4..5, "expected a calendar here"),
            ("()", 1..2, "expected a calendar here"),
            ("Mon Fri", 4..7, "expected an operator before this"),
            ("(a b)", 3..4, "expected an operator or `)`"),
            ("(a + b", 0..1, "never closed"),
            ("a + b)", 5..6, "unmatched closing parenthesis"),
            ("a,b", 1..2, "only weekdays are listed"),
            ("Mon,", 3..4, "expected a weekday after the comma"),
            ("Mon,Fryday", 4..10, "`Fryday` is not a weekday (did you mean `Friday`?)"),
            ("Mon,holidays", 4..12, "join calendars with `+`"),
            ("a -b", 2..3, "a minus needs a blank on both sides"),
            ("a- b", 1..2, "a minus needs a blank on both sides"),
            ("Mon - Fri", 4..5, "`Mon - Fri` means Mon without Fri (a range of weekdays has no blanks: `Mon-Fri`)"),
            ("a – b", 2..5, "`–` is not allowed"),
            ("a\u{0}", 1..2, "`\\u{0}` is not allowed"),
            ("../secret", 0..9, "begins with a dot"),
            ("a + x//y", 4..8, "is empty"),
            ("/x", 0..2, "is empty"),
        ] {
            let error = CalendarExpr::parse(text).expect_err(text);
            assert!(error.to_string().contains(message), "{text}: {error}");
            assert_eq!(error.at, at, "{text}");
        }
    }

    #[test]
    fn reserved_and_malformed_names_are_rejected() {
        for name in ["", "Mon", "mon-fri", "ALL", "or", "a b", "a,b", "-a", "a-", "ü", "a/.b"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        for name in ["a", "us-business", "us/business.2026", "mon-close", "1"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn depth_operands_and_length_are_limited() {
        let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        assert!(CalendarExpr::parse(&nested(32)).is_ok());
        assert_eq!(CalendarExpr::parse(&nested(33)).expect_err("too deep").at, 32..33);
        assert!(CalendarExpr::parse(&nested(2_000)).is_err());
        assert!(CalendarExpr::parse(&format!("{}a", "!".repeat(33))).is_err());
        assert!(CalendarExpr::parse(&vec!["a"; 256].join("+")).is_ok());
        assert!(CalendarExpr::parse(&vec!["a"; 257].join("+")).is_err());
        assert!(CalendarExpr::parse(&"a".repeat(4_096)).is_ok());
        assert!(CalendarExpr::parse(&"a".repeat(4_097)).is_err());
        // Short enough as written, too long as printed.
        assert!(CalendarExpr::parse(&format!("b+{}", "a".repeat(4_094))).is_err());
    }
}
