//! What differs from one run of a test to the next, taken out of what the binary says: times, spans, ids, ports. Times of
//! years before this program was written, and long after that, are what a test has typed, and stay.

/// States that can stand before `now`, in the place of how long ago something was.
const STATES: [&str; 4] = ["success", "failure", "error", "skipped"];

/// The text with a word for whatever differs, and with no more than two spaces between columns, whose widths differ too.
pub(crate) fn redacted(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let line = ages(&words(line));
        // What is said about trouble has no columns, but points at places.
        if line.starts_with("err| ") { line } else { narrowed(&line) }
    });
    lines.collect()
}

/// Times, ids, ports and spans, wherever a word begins.
fn words(line: &str) -> String {
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

/// A point in time of this century that no test has typed.
fn time(text: &str) -> Option<(usize, &'static str)> {
    let shapes = ["dddd-dd-dd?dd:dd:dd", "dddd-dd-dd?dd:dd"];
    let Some(shape) = shapes.into_iter().find(|shape| has_shape(text, shape)) else { return clock(text) };
    let mut length = shape.len();
    length += fraction(&text[length..]);
    length += offset(&text[length..]);
    // What a test has typed has no other name.
    Some((length, if ("2025".."2090").contains(&&text[..4]) { "TIME" } else { "" }))
}

/// A time of day with an offset, which stands where the day is the one beside it.
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

/// Ids of runs and nodes, tokens and codes: long numbers to the base of sixteen.
fn id(text: &str) -> Option<(usize, &'static str)> {
    let length = text.len() - text.trim_start_matches(|sign: char| sign.is_ascii_hexdigit()).len();
    match length {
        16 => Some((length, "SCHEDULE")),
        32 => Some((length, "ID")),
        64 => Some((length, "TOKEN")),
        _ => None,
    }
}

/// How long something took, or how far away it is. Spans in milliseconds and those with a fraction are always measured;
/// others only where words say so, since schedules have spans too.
fn span(text: &str, before: &str) -> Option<(usize, &'static str)> {
    let end = text.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '.').unwrap_or(text.len());
    let word = text[..end].trim_end_matches('.');
    let end = word.len();
    let is_span = word.starts_with(is_digit) && word.ends_with(['s', 'm', 'h', 'd']);
    let is_measured = word.ends_with("ms") || word.contains('.');
    let rest = &text[end..];
    let is_told = rest.starts_with(" ago") || rest.starts_with(" so far") || before.ends_with("in ");
    (is_span && (is_measured || is_told || before.ends_with("took ") || before.ends_with("after ")))
        .then_some((end, "SPAN"))
}

/// Numbers of ports and processes.
fn number(text: &str, before: &str) -> Option<(usize, &'static str)> {
    let digits = text.len() - text.trim_start_matches(is_digit).len();
    let name = [("127.0.0.1:", "PORT"), ("pid ", "PID")].into_iter().find(|(lead, _)| before.ends_with(lead))?.1;
    (digits == 5 || name == "PID" && digits > 0).then_some((digits, name))
}

/// How long ago something was, which is `now` for the first second.
fn ages(line: &str) -> String {
    let mut line = line.replace("SPAN ago", "AGO").replace("(now)", "(AGO)").replace(", now:", ", AGO:");
    line = line.replace(", now\n", ", AGO\n").replace("  now  ", "  AGO  ");
    // Whether an id needs quotes in YAML depends on how it begins.
    line = line.replace("\"ID\"", "ID").replace("\"SCHEDULE\"", "SCHEDULE");
    for state in STATES {
        line = line.replace(&format!("{state} now"), &format!("{state} AGO"));
    }
    line
}

/// Columns side by side, however wide they are.
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

/// Whether a text begins so; `d` stands for a digit and `?` for any sign.
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
    ] {
        assert_eq!(redacted(text), expected);
    }
}
