//! Replaces values that vary between test runs in the output of the binary: times, spans, ids, ports. Times before 2025
//! and from 2090 on come from the tests themselves, and stay.

/// States that can precede `now`, which then means an age.
const STATES: [&str; 4] = ["success", "failure", "error", "skipped"];

/// The text with a placeholder for each varying value. Column widths vary too, so at most two spaces stay between
/// columns.
pub(crate) fn redacted(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let line = ages(&values(line));
        // Error messages have no columns, and their spaces point at a position.
        if line.starts_with("err| ") { line } else { narrowed(&line) }
    });
    lines.collect()
}

/// Replaces times, ids, ports and spans.
fn values(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(sign) = rest.chars().next() {
        let begins = !out.ends_with(|sign: char| sign.is_ascii_alphanumeric() || sign == '.');
        let found = if begins { time(rest).or_else(|| id(rest)).or_else(|| span(rest, &out)) } else { None };
        let (length, name) = found.or_else(|| number(rest, &out)).unwrap_or((sign.len_utf8(), ""));
        out.push_str(if name.is_empty() { &rest[..length] } else { name });
        rest = &rest[length..];
    }
    out
}

/// A time that does not come from a test.
fn time(text: &str) -> Option<(usize, &'static str)> {
    let shapes = ["dddd-dd-dd?dd:dd:dd", "dddd-dd-dd?dd:dd"];
    let Some(shape) = shapes.into_iter().find(|shape| has_shape(text, shape)) else { return clock(text) };
    let mut length = shape.len();
    length += fraction(&text[length..]);
    length += offset(&text[length..]);
    // A time that comes from a test has no placeholder.
    Some((length, if ("2025".."2090").contains(&&text[..4]) { "TIME" } else { "" }))
}

/// A time of day with an offset, which is shown without its date next to a full time.
fn clock(text: &str) -> Option<(usize, &'static str)> {
    let shapes = ["dd:dd:ddZ", "dd:dd:dd UTC", "dd:dd UTC"];
    shapes.into_iter().find(|shape| has_shape(text, shape)).map(|shape| (shape.len(), "CLOCK"))
}

fn fraction(text: &str) -> usize {
    text.strip_prefix('.').map_or(0, |digits| 1 + digits.len() - digits.trim_start_matches(is_digit).len())
}

fn offset(text: &str) -> usize {
    ["Z", "+00:00", " UTC"].iter().find(|offset| text.starts_with(**offset)).map_or(0, |offset| offset.len())
}

/// Ids of runs and nodes, tokens and codes: long hexadecimal numbers.
fn id(text: &str) -> Option<(usize, &'static str)> {
    let length = text.len() - text.trim_start_matches(|sign: char| sign.is_ascii_hexdigit()).len();
    match length {
        16 => Some((length, "SCHEDULE")),
        32 => Some((length, "ID")),
        64 => Some((length, "TOKEN")),
        _ => None,
    }
}

/// A measured duration. Spans in milliseconds and spans with a fraction are always measured. Other spans are measured
/// only if the text around them says so, because schedules have spans too.
fn span(text: &str, before: &str) -> Option<(usize, &'static str)> {
    let end = text.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '.').unwrap_or(text.len());
    let word = text[..end].trim_end_matches('.');
    let end = word.len();
    let is_span = word.starts_with(is_digit) && word.ends_with(['s', 'm', 'h', 'd']);
    let is_measured = word.ends_with("ms") || word.contains('.');
    let rest = &text[end..];
    let is_age = rest.starts_with(" ago") || rest.starts_with(" so far") || before.ends_with("in ");
    (is_span && (is_measured || is_age || before.ends_with("took ") || before.ends_with("after ")))
        .then_some((end, "SPAN"))
}

/// Port numbers and pids.
fn number(text: &str, before: &str) -> Option<(usize, &'static str)> {
    let digits = text.len() - text.trim_start_matches(is_digit).len();
    let name = [("127.0.0.1:", "PORT"), ("pid ", "PID")].into_iter().find(|(lead, _)| before.ends_with(lead))?.1;
    (digits == 5 || name == "PID" && digits > 0).then_some((digits, name))
}

/// Replaces ages. In the first second an age is shown as `now`.
fn ages(line: &str) -> String {
    let mut line = line.replace("SPAN ago", "AGO").replace("(now)", "(AGO)").replace(", now:", ", AGO:");
    line = line.replace(", now\n", ", AGO\n").replace("  now  ", "  AGO  ");
    // In the hours when the date differs from that in UTC, the time in UTC has a date too.
    line = line.replace("Europe/Berlin (TIME)", "Europe/Berlin (CLOCK)");
    // Whether an id needs quotes in YAML depends on its first character.
    line = line.replace("\"ID\"", "ID").replace("\"SCHEDULE\"", "SCHEDULE");
    for state in STATES {
        line = line.replace(&format!("{state} now"), &format!("{state} AGO"));
    }
    line
}

/// Reduces the space between columns to two spaces.
fn narrowed(line: &str) -> String {
    let body = line.trim_start_matches(' ');
    let mut out = line[..line.len() - body.len()].to_owned();
    for sign in body.chars() {
        if sign != ' ' || !out.ends_with("  ") {
            out.push(sign);
        }
    }
    out
}

/// Whether a text starts with this shape; `d` matches a digit and `?` any character.
fn has_shape(text: &str, shape: &str) -> bool {
    let fits = |(wanted, sign): (u8, u8)| match wanted {
        b'd' => sign.is_ascii_digit(),
        b'?' => true,
        other => sign == other,
    };
    text.len() >= shape.len() && text.is_char_boundary(shape.len()) && shape.bytes().zip(text.bytes()).all(fits)
}

fn is_digit(sign: char) -> bool {
    sign.is_ascii_digit()
}

#[test]
fn varying_values_are_redacted_and_others_stay() {
    for (text, expected) in [
        ("at 2026-11-16T06:53:36.954559Z.", "at TIME."),
        ("2026-11-16 06:53:37 UTC; 2020-01-01 00:00:00Z", "TIME; 2020-01-01 00:00:00Z"),
        ("a  2026-11-16 06:53:36Z  06:53:36Z  2ms     exit", "a  TIME  CLOCK  SPAN  exit"),
        ("  id   01a1e321f93a7453887ab709aaa1bbac", "  id  ID"),
        ("every 15m, took 1.2s, (in 45d20h.), (3s ago)", "every 15m, took SPAN, (in SPAN.), (AGO)"),
        ("success now  it runs now", "success AGO  it runs now"),
        ("http://127.0.0.1:39153/ (pid 77)", "http://127.0.0.1:PORT/ (pid PID)"),
        ("0s so far; 3s", "SPAN so far; 3s"),
        ("2026-11-16 08:24 Europe/Berlin (07:24 UTC)", "TIME Europe/Berlin (CLOCK)"),
        ("2026-11-17 00:24 Europe/Berlin (2026-11-16 23:24 UTC)", "TIME Europe/Berlin (CLOCK)"),
    ] {
        assert_eq!(redacted(text), expected);
    }
}
