//! A job's definition as the text of a job file. What reads it back is the reader of job files; this writes only what
//! that needs: maps, lists and scalars, in block style.

use serde_json::{Map, Value};

/// Words that stand for something other than themselves.
const WORDS: [&str; 11] = ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// A map as YAML.
pub(crate) fn write(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => write_map(map, 0, &mut text),
        Value::Array(items) if !items.is_empty() => write_list(items, 0, &mut text),
        other => {
            text.push_str(&scalar(other, 0));
            text.push('\n');
        }
    }
    text
}

fn write_map(map: &Map<String, Value>, depth: usize, text: &mut String) {
    for (index, (key, value)) in map.iter().enumerate() {
        if index > 0 {
            indent(depth, text);
        }
        text.push_str(&flat(key));
        text.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                text.push('\n');
                indent(depth + 1, text);
                write_map(inner, depth + 1, text);
            }
            Value::Array(items) if !items.is_empty() => {
                text.push('\n');
                indent(depth + 1, text);
                write_list(items, depth + 1, text);
            }
            other => {
                text.push(' ');
                text.push_str(&scalar(other, depth + 1));
                text.push('\n');
            }
        }
    }
}

fn write_list(items: &[Value], depth: usize, text: &mut String) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            indent(depth, text);
        }
        text.push_str("- ");
        match item {
            Value::Object(inner) if !inner.is_empty() => write_map(inner, depth + 1, text),
            Value::Array(inner) if !inner.is_empty() => write_list(inner, depth + 1, text),
            other => {
                text.push_str(&scalar(other, depth + 1));
                text.push('\n');
            }
        }
    }
}

fn indent(depth: usize, text: &mut String) {
    text.extend(std::iter::repeat_n("  ", depth));
}

fn scalar(value: &Value, depth: usize) -> String {
    match value {
        Value::String(text) if is_block(text) => block(text, depth),
        Value::String(text) => flat(text),
        other => other.to_string(),
    }
}

/// A text on one line: as it is where that is plain, else in the quotes of JSON, which YAML reads too.
fn flat(text: &str) -> String {
    let first = text.chars().next().unwrap_or(' ');
    let is_plain = (first.is_alphabetic() || matches!(first, '_' | '/' | '.'))
        && text.chars().all(|sign| sign.is_alphanumeric() || " _-./=+@()$%".contains(sign))
        && !text.ends_with(' ')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        && text.parse::<f64>().is_err();
    if is_plain && text.is_ascii() { text.to_owned() } else { Value::from(text).to_string() }
}

/// Whether a text is easier to read as lines of its own, and comes back the same from them.
fn is_block(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && !text.ends_with("\n\n")
        && text.chars().all(|sign| {
            sign == '\n' || (!sign.is_control() && sign != '\u{feff}' && !sign.is_whitespace()) || sign == ' '
        })
}

fn block(text: &str, depth: usize) -> String {
    let mut lines = String::from(if text.ends_with('\n') { "|" } else { "|-" });
    for line in text.trim_end_matches('\n').split('\n') {
        lines.push('\n');
        if !line.is_empty() {
            indent(depth, &mut lines);
        }
        lines.push_str(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use cronhold_jobfile::{Options, read_job, write_job};

    use super::*;

    /// Whatever a job says comes back the same.
    #[test]
    fn reads_back() {
        for text in [
            "program: 'echo hi'",
            "{schedule: '0 3 * * *', program: [echo, 'a b', '-n', '*', '1', 'true', 'null', '', ' x ']}",
            "{program: [echo, 'a: b', 'a #b', '0x1f', '.5', '.inf', '1e3', '2026-01-01', '=', '<<', 'a,b', '[', '{{ 1 }}']}",
            "program: \"set -e\\nfor i in 1 2; do\\n  echo $i\\n\\ndone\\n\"\ndescription: \"two\\n\\nparagraphs\"",
            "program: \" first\\n second\"",
            "program: \"a\\tb\\nc\\n\\n\"",
            "program: \"größe ✓ \\u0085 \\u2028\"",
            "{program: 'x', env: {A: '1.5', B: {file: /etc/x}, C: ''}, labels: [a, 'no', '2']}",
            "{program: 'x', params: {p: {default: '', choices: ['', b]}, q: {}}}",
            "{program: {noop: 1s}, schedule: [{every: 15m, name: a, args: {}}, {cron: 'H 3 * * Mon', enabled: false}]}",
            "{program: 'x', conditions: [{max_running: 1}, {any: [{file: /x}, {not: {file: /y}}]}]}",
        ] {
            let read = read_job("job", text, &Options::default());
            let job = read.job.unwrap_or_else(|| panic!("{text}: {:?}", read.mistakes));
            let yaml = write(&write_job(&job));
            let again = read_job("job", &yaml, &Options::default());
            assert_eq!(again.job.as_ref(), Some(&job), "{yaml}\n{:?}", again.mistakes);
        }
    }

    #[test]
    fn reads_well() {
        let text = "{schedule: '0 3 * * *', program: \"cd /srv\\n./backup --all\\n\", labels: [nightly]}";
        let job = read_job("job", text, &Options::default()).job.expect("good");
        let expected =
            "labels:\n  - nightly\nprogram: |\n  cd /srv\n  ./backup --all\nschedule:\n  - cron: \"0 3 * * *\"\n";
        assert_eq!(write(&write_job(&job)), expected);
    }
}
