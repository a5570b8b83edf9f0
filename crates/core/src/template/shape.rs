//! Static checks of a template. The engine counts instructions, not bytes, so a short text could build a huge one by
//! repeated doubling. These rules remove every way to feed a grown value back into an operation that grows it: no
//! assignments, no macros, loops only over existing values, and a bounded number of joins in each expression. So no
//! value is larger than `JOINS_MAX + 1` times the largest bound value or filter result.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cronhold_schedule::TextError;
use cronhold_schedule::text::did_you_mean;

use super::environment::{FILTERS, FUNCTIONS, TESTS};

/// The most operators in one expression that join values: `~`, `+` and `,`.
pub(super) const JOINS_MAX: usize = 32;

/// Statements that a template may use.
const STATEMENTS: [&str; 8] = ["if", "elif", "else", "endif", "for", "endfor", "raw", "endraw"];

/// Keywords that may precede a parenthesis without being a function.
const KEYWORDS: [&str; 7] = ["and", "elif", "else", "if", "in", "not", "or"];

/// What the scan of a template found.
#[derive(Debug, Default)]
pub(super) struct TemplateShape {
    /// Names used as values rather than called, with the offset of the first use. Keywords are among them, because the
    /// engine accepts them as names too.
    pub(super) plain: BTreeMap<String, usize>,
    /// Names whose absence the template handles: `x | default(…)`, `x is defined`.
    pub(super) optional: BTreeSet<String>,
}

/// Checks a text in which the engine has found no syntax errors.
pub(super) fn check(text: &str) -> Result<TemplateShape, TextError> {
    let mut shape = TemplateShape::default();
    let mut at = 0;
    while let Some(found) = next_opening(text, at) {
        let (kind, start) = found;
        if kind == TagOpening::Comment {
            at = text[start..].find("#}").map_or(text.len(), |end| start + end + 2);
            continue;
        }
        let closing = if kind == TagOpening::Statement { "%}" } else { "}}" };
        let (tokens, end) = tokens(text, start, Some(closing));
        at = end;
        if kind == TagOpening::Statement {
            check_statement(text, &tokens)?;
            if tokens.first().is_some_and(|token| &text[token.clone()] == "raw") {
                at = end_of_raw(text, end);
            }
        }
        check_tokens(text, &tokens, &mut shape)?;
    }
    Ok(shape)
}

/// Checks a text that is one expression, without braces around it.
pub(super) fn check_expression(text: &str) -> Result<TemplateShape, TextError> {
    let mut shape = TemplateShape::default();
    let (tokens, _) = tokens(text, 0, None);
    check_tokens(text, &tokens, &mut shape)?;
    Ok(shape)
}

/// Whether a text has anything that the engine would interpret.
pub(super) fn has_expressions(text: &str) -> bool {
    next_opening(text, 0).is_some()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TagOpening {
    Expression,
    Statement,
    Comment,
}

/// The next `{{`, `{%` or `{#`, and the offset after it.
fn next_opening(text: &str, from: usize) -> Option<(TagOpening, usize)> {
    let bytes = text.as_bytes();
    (from..bytes.len().saturating_sub(1)).find_map(|at| match &bytes[at..at + 2] {
        b"{{" => Some((TagOpening::Expression, at + 2)),
        b"{%" => Some((TagOpening::Statement, at + 2)),
        b"{#" => Some((TagOpening::Comment, at + 2)),
        _ => None,
    })
}

/// Tokens of one expression or statement (names, numbers, texts, single characters), and the offset after its end.
/// Without a closing delimiter it extends to the end of the text.
fn tokens(text: &str, start: usize, closing: Option<&str>) -> (Vec<Range<usize>>, usize) {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    // A `-` or `+` right after the opening controls the whitespace before it.
    let is_sign = closing.is_some() && matches!(bytes.get(start), Some(b'-' | b'+'));
    let mut at = start + usize::from(is_sign);
    while at < bytes.len() {
        if let Some(closing) = closing.filter(|closing| bytes[at..].starts_with(closing.as_bytes())) {
            return (tokens, at + closing.len());
        }
        let end = match bytes[at] {
            b'\'' | b'"' => end_of_text(bytes, at),
            first if is_word(first) => at + bytes[at..].iter().take_while(|byte| is_word(**byte)).count(),
            _ => at + 1,
        };
        if !bytes[at].is_ascii_whitespace() {
            tokens.push(at..end);
        }
        at = end;
    }
    (tokens, at)
}

/// Bounds the size of the value that one expression or statement can build, and collects its names.
fn check_tokens(text: &str, tokens: &[Range<usize>], shape: &mut TemplateShape) -> Result<(), TextError> {
    let mut joins = 0;
    for (index, token) in tokens.iter().enumerate() {
        match &text[token.clone()] {
            "~" | "+" | "," => joins += 1,
            "*" => return Err(no_repeat(token.clone())),
            "{" | "}" => return Err(no_maps(text, token.clone())),
            _ => note_word(text, tokens, index, shape)?,
        }
        if joins > JOINS_MAX {
            let message = format!("more than {JOINS_MAX} of `~`, `+` and `,` in one expression");
            return Err(TextError::new(token.clone(), message).hint("divide it into several expressions"));
        }
    }
    Ok(())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The offset after a quoted text.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != bytes[start] {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// The offset of the statement that ends a raw part. It must be exactly that statement, as for the engine: a statement
/// that only begins like it could hide expressions after it.
fn end_of_raw(text: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(found) = text[at..].find("{%") {
        let inside = &text[at + found + 2..];
        let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside).trim_ascii_start();
        if let Some(rest) = inside.strip_prefix("endraw").map(str::trim_ascii_start)
            && rest.strip_prefix(['-', '+']).unwrap_or(rest).starts_with("%}")
        {
            return at + found;
        }
        at += found + 2;
    }
    text.len()
}

/// The content of a text that is nothing but one raw part, without whitespace control; `None` for other texts.
pub(super) fn raw_alone(text: &str) -> Option<&str> {
    let (begin, end) = ("{% raw %}", "{% endraw %}");
    let inside = text.strip_prefix(begin)?.strip_suffix(end)?;
    (end_of_raw(text, begin.len()) == begin.len() + inside.len()).then_some(inside)
}

fn check_statement(text: &str, tokens: &[Range<usize>]) -> Result<(), TextError> {
    let Some(first) = tokens.first() else {
        return Ok(());
    };
    let word = &text[first.clone()];
    if !STATEMENTS.contains(&word) {
        let error = TextError::new(first.clone(), format!("`{word}` cannot be used in a template"));
        return Err(match did_you_mean(word, STATEMENTS) {
            Some(meant) => error.hint(format!("did you mean `{meant}`?")),
            None => error.hint("expressions, `if` and `for` can be used"),
        });
    }
    if word == "for" {
        check_loop(text, tokens)?;
    }
    Ok(())
}

/// A loop may only iterate over an existing value. A value that is built in its head could grow with each nested loop.
fn check_loop(text: &str, tokens: &[Range<usize>]) -> Result<(), TextError> {
    for (index, token) in tokens.iter().enumerate() {
        let grouping = || index == 0 || !text[tokens[index - 1].clone()].bytes().all(is_word);
        let after_in = || index > 0 && &text[tokens[index - 1].clone()] == "in";
        let refused = match &text[token.clone()] {
            "~" | "[" | "recursive" => true,
            "+" => index > 0 && index + 1 < tokens.len(),
            "(" => grouping() || after_in(),
            _ => false,
        };
        if refused {
            let message = format!("`{}` cannot be used in the head of a loop", &text[token.clone()]);
            return Err(
                TextError::new(token.clone(), message).hint("loop over a value, such as `regions | split(',')`")
            );
        }
    }
    Ok(())
}

/// Classifies a word as filter, test, function, attribute or name. Filters, tests and functions must exist.
fn note_word(text: &str, tokens: &[Range<usize>], index: usize, shape: &mut TemplateShape) -> Result<(), TextError> {
    let word =
        |index: Option<usize>| index.and_then(|index| tokens.get(index)).map_or("", |token| &text[token.clone()]);
    let name = word(Some(index));
    let first = name.as_bytes().first().copied().unwrap_or(b'0');
    if !is_word(first) || first.is_ascii_digit() {
        return Ok(());
    }
    let before = |by: usize| word(index.checked_sub(by));
    let after = |by: usize| word(Some(index + by));
    let known = |what: &str, names: &[&'static str]| known(name, tokens[index].clone(), what, names);
    match before(1) {
        "." => return Ok(()),
        "|" => return known("filter", &FILTERS),
        "is" if name == "not" => return Ok(()),
        "is" => return known("test", &TESTS),
        "not" if before(2) == "is" => return known("test", &TESTS),
        _ if after(1) == "(" && !KEYWORDS.contains(&name) => return known("function", &FUNCTIONS),
        _ => {}
    }
    shape.plain.entry(name.to_owned()).or_insert(tokens[index].start);
    let given_default = after(1) == "|" && matches!(after(2), "default" | "d");
    let asked_of = if after(2) == "not" { after(3) } else { after(2) };
    if given_default || after(1) == "is" && matches!(asked_of, "defined" | "undefined") {
        shape.optional.insert(name.to_owned());
    }
    Ok(())
}

fn known(name: &str, at: Range<usize>, what: &str, names: &[&'static str]) -> Result<(), TextError> {
    if names.contains(&name) {
        return Ok(());
    }
    let error = TextError::new(at, format!("there is no {what} `{name}`"));
    Err(match did_you_mean(name, names.iter().copied()) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint(format!("there are {}", names.join(", "))),
    })
}

fn no_repeat(at: Range<usize>) -> TextError {
    TextError::new(at, "`*` cannot be used in a template").hint("compute it in the program")
}

fn no_maps(text: &str, at: Range<usize>) -> TextError {
    let message = format!("`{}` cannot be used inside an expression", &text[at.clone()]);
    TextError::new(at, message).hint("templates have no maps")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_names_are_found() {
        for (text, plain, optional) in [
            ("a {{ b }} c", "b", ""),
            ("{{ weekday(x) | upper }}", "x", ""),
            ("{{ x.y['z'] }}", "x", ""),
            ("{{ x | default('y') ~ z | d }}", "x z", "x z"),
            ("{% if x is defined and y is not defined %}{{ z }}{% endif %}", "x y z", "x y"),
            ("{# {{ no }} #}{{ yes }}", "yes", ""),
            ("{% raw %}{%- endraw'{% endraw %}{{ '' ~ yes }}", "yes", ""),
            ("{% raw %}{{ no }}{% set x %}{%- endraw %}{{ yes }}", "yes", ""),
            ("{{ '}} {{ no }}' ~ \"\\\"x\" ~ yes }}", "yes", ""),
            ("{{ grün }}", "grün", ""),
            ("{{", "", ""),
            ("{% raw %}{%", "", ""),
        ] {
            let shape = check(text).expect(text);
            let language = ["and", "if", "is", "endif", "raw", "endraw"];
            let names: Vec<String> =
                shape.plain.into_keys().filter(|name| !language.contains(&name.as_str())).collect();
            assert_eq!(names.join(" "), plain, "{text}");
            assert_eq!(shape.optional, optional.split_whitespace().map(str::to_owned).collect(), "{text}");
        }
    }

    #[test]
    fn constructs_that_could_grow_values_are_rejected() {
        for (text, at, message) in [
            ("{{ a * 3 }}", "*", "`*` cannot be used"),
            ("{{ {'a': 1} }}", "{", "`{` cannot be used"),
            ("{% set a = b %}", "set", "`set` cannot be used"),
            ("{%- macro m() %}{% endmacro %}", "macro", "`macro` cannot be used"),
            ("{% include 'x' %}", "include", "`include` cannot be used"),
            ("{% for a in [a, a] %}{% endfor %}", "[", "head of a loop"),
            ("{% for a in a ~ a %}{% endfor %}", "~", "head of a loop"),
            ("{% for a in (a, a) %}{% endfor %}", "(", "head of a loop"),
            ("{% for a in range((a, a)) %}{% endfor %}", "(", "head of a loop"),
            ("{{ weekdya(a) }}", "weekdya", "no function `weekdya`"),
            ("{{ a | uper }}", "uper", "no filter `uper`"),
            ("{{ a is not definde }}", "definde", "no test `definde`"),
            ("{% for a in b recursive %}{% endfor %}", "recursive", "head of a loop"),
        ] {
            let error = check(text).expect_err(text);
            assert!(error.message.contains(message), "{text}: {}", error.message);
            assert_eq!(&text[error.at], at, "{text}");
        }
        assert!(check(&format!("{{{{ a{} }}}}", " ~ a".repeat(JOINS_MAX))).is_ok());
        assert!(check(&format!("{{{{ a{} }}}}", " ~ a".repeat(JOINS_MAX + 1))).is_err());
        assert!(check("{%- for a in b | split(',') -%}{{ a }}{%- endfor -%}").is_ok());
    }
}
