//! Lines of an iCalendar file: unfolding, and the split into name, parameters and value. A line keeps the file offsets
//! of its pieces so that errors can point into the file.

use std::borrow::Cow;
use std::ops::Range;

use crate::text::{TextError, shortened};

/// A line with its continuation lines joined.
#[derive(Debug)]
pub(super) struct IcsLine<'a> {
    text: Cow<'a, str>,
    /// For each piece, its offset in `text` and its offset in the file. The first piece begins at 0.
    pieces: Vec<(usize, usize)>,
}

/// A line split into its parts. Ranges are relative to the line's text.
#[derive(Debug)]
pub(super) struct IcsProperty<'a> {
    line: &'a IcsLine<'a>,
    name: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    value_at: usize,
}

/// The unfolded lines of a file, without empty ones.
pub(super) fn lines(text: &str) -> impl Iterator<Item = IcsLine<'_>> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut at = text.len() - body.len();
    let mut physical = body.split_inclusive('\n').map(move |line| {
        let begin = at;
        at += line.len();
        let line = line.strip_suffix('\n').unwrap_or(line);
        (begin, line.strip_suffix('\r').unwrap_or(line))
    });
    let mut ahead = physical.next();
    let unfolded = std::iter::from_fn(move || {
        let (begin, first) = ahead.take()?;
        let mut line = IcsLine { text: Cow::Borrowed(first), pieces: vec![(0, begin)] };
        for (begin, next) in physical.by_ref() {
            if !next.starts_with([' ', '\t']) {
                ahead = Some((begin, next));
                break;
            }
            line.pieces.push((line.text.len(), begin + 1));
            line.text.to_mut().push_str(&next[1..]);
        }
        Some(line)
    });
    unfolded.filter(|line| !line.text.trim().is_empty())
}

impl<'a> IcsLine<'a> {
    /// Byte range of the line in the file.
    pub(super) fn at(&self) -> Range<usize> {
        self.place(0..self.text.len())
    }

    /// Splits the line into name, parameters and value.
    pub(super) fn property(&'a self) -> Result<IcsProperty<'a>, TextError> {
        let text: &str = &self.text;
        let name_len = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(text.len());
        let mut property = IcsProperty { line: self, name: &text[..name_len], parameters: Vec::new(), value_at: 0 };
        let mut at = name_len;
        loop {
            match text[at..].chars().next() {
                Some(':') if name_len > 0 => {
                    property.value_at = at + 1;
                    return Ok(property);
                }
                Some(';') if name_len > 0 => {
                    let end = at + 1 + parameter_len(&text[at + 1..]);
                    let parameter = &text[at + 1..end];
                    let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                    property.parameters.push((name, value.trim_matches('"')));
                    at = end;
                }
                _ => {
                    let message = format!("`{}` is not a line of an iCalendar file", shortened(text));
                    return Err(
                        TextError::new(self.at(), message).hint("a line is NAME:value or NAME;PARAMETER=x:value")
                    );
                }
            }
        }
    }

    /// Maps a range of the joined text to a range of the file.
    fn place(&self, range: Range<usize>) -> Range<usize> {
        let start = self.offset(range.start);
        // The end belongs to the piece of the last byte, not to the piece after it.
        let end = if range.end > range.start { self.offset(range.end - 1) + 1 } else { start };
        start..end
    }

    fn offset(&self, at: usize) -> usize {
        let piece = self.pieces.partition_point(|(begin, _)| *begin <= at) - 1;
        let (begin, in_file) = self.pieces[piece];
        in_file + at - begin
    }
}

impl<'a> IcsProperty<'a> {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Its name in upper case, if it is in `names`.
    pub(super) fn known(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.is(name))
    }

    pub(super) fn value(&self) -> &'a str {
        self.line.text[self.value_at..].trim_end()
    }

    /// The value of a parameter, without quotes.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// Byte range of the whole line in the file.
    pub(super) fn at(&self) -> Range<usize> {
        self.line.at()
    }

    /// Maps a range of the value to a range of the file.
    pub(super) fn place(&self, part: Range<usize>) -> Range<usize> {
        self.line.place(self.value_at + part.start..self.value_at + part.end)
    }

    /// Moves an error in the value to its position in the file.
    pub(super) fn placed(&self, mut mistake: TextError) -> TextError {
        mistake.at = self.place(mistake.at);
        mistake
    }
}

/// Length of a parameter: up to the next `;` or `:` outside quotes.
fn parameter_len(text: &str) -> usize {
    let mut quoted = false;
    let end = text.bytes().position(|byte| {
        quoted ^= byte == b'"';
        !quoted && matches!(byte, b';' | b':')
    });
    end.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfolds_and_splits_lines() {
        let file = "\u{feff}DTSTART;VALUE=DATE;X=\"a:b;c\":2026\r\n 0101\r\n\r\nSUMMARY:é\n\t!\nEND";
        let lines: Vec<IcsLine<'_>> = lines(file).collect();
        assert_eq!(lines.len(), 3);

        let start = lines[0].property().expect("a property");
        assert!(start.is("dtstart"));
        assert_eq!(start.value(), "20260101");
        assert_eq!((start.parameter("value"), start.parameter("x")), (Some("DATE"), Some("a:b;c")));
        assert_eq!(&file[start.place(0..8)], "2026\r\n 0101");
        assert_eq!(&file[start.place(4..8)], "0101");
        assert_eq!(&file[start.place(0..4)], "2026");

        assert_eq!(lines[1].property().expect("a property").value(), "é!");
        let mistake = lines[2].property().expect_err("no colon");
        assert_eq!(&file[mistake.at], "END");
    }

    #[test]
    fn malformed_lines_are_rejected() {
        for text in ["x", ":", ";a:b", "A;b", "A;b=\"c:d", "A B:c", "é:x"] {
            let line = lines(text).next().expect("one line");
            assert_eq!(line.property().expect_err(text).at, 0..text.len(), "{text}");
        }
    }
}
