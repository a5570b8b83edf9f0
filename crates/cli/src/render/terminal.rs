//! The writer through which all text reaches the user. Much of that text was written by others: descriptions, reasons,
//! file names, output of programs. The writer shows every character that could control a terminal or deceive its reader
//! in an escaped form, so that no command has to remember to.
//!
//! `writeln!` prints exactly one line: a line end inside of a value is shown as `\n` and cannot begin a line of its own.
//! Texts of several lines are written with [`super::lines`], and documents and output of programs as bytes.

use std::fmt;
use std::io::{self, Write};

use cronhold_schedule::text::{is_deceptive, visible};

/// Longest escape sequence of a colour that is recognised.
const SGR_MAX: usize = 64;

/// Escapes text on its way to a terminal. Line ends and tabs pass.
pub(crate) struct TerminalWriter<'w> {
    inner: &'w mut dyn Write,
    /// Whether escape sequences of colours pass.
    colours: bool,
    /// Bytes whose meaning depends on those that follow.
    pending: Vec<u8>,
    /// Whether a colour is set that nothing has reset.
    is_coloured: bool,
}

/// How the beginning of a text is shown.
enum EscapedPart {
    /// This many bytes pass unchanged.
    Plain(usize),
    /// This many bytes are shown as a text.
    As(usize, String),
    /// What follows decides.
    Unknown,
}

impl<'w> TerminalWriter<'w> {
    pub(crate) fn new(inner: &'w mut dyn Write, colours: bool) -> Self {
        Self { inner, colours, pending: Vec::new(), is_coloured: false }
    }

    /// Shows what is left, and resets the colour.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.show_pending(true)?;
        if self.is_coloured {
            self.inner.write_all(b"\x1b[0m")?;
        }
        self.inner.flush()
    }

    fn show_pending(&mut self, is_end: bool) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let mut shown = Vec::with_capacity(pending.len());
        let mut rest = &pending[..];
        while !rest.is_empty() {
            match self.next(rest, is_end) {
                EscapedPart::Plain(len) => {
                    shown.extend_from_slice(&rest[..len]);
                    rest = &rest[len..];
                }
                EscapedPart::As(len, text) => {
                    shown.extend_from_slice(text.as_bytes());
                    rest = &rest[len..];
                }
                EscapedPart::Unknown => break,
            }
        }
        self.pending = rest.to_vec();
        self.inner.write_all(&shown)
    }

    fn next(&mut self, bytes: &[u8], is_end: bool) -> EscapedPart {
        let plain = bytes.iter().take_while(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')).count();
        if plain > 0 {
            return EscapedPart::Plain(plain);
        }
        match bytes[0] {
            b'\r' if bytes.starts_with(b"\r\n") => EscapedPart::Plain(2),
            b'\r' if bytes.len() == 1 && !is_end => EscapedPart::Unknown,
            0x1b => self.sequence(bytes, is_end),
            _ => character(bytes, is_end),
        }
    }

    /// An escape sequence. Only colours pass.
    fn sequence(&mut self, bytes: &[u8], is_end: bool) -> EscapedPart {
        let escaped = || EscapedPart::As(1, visible("\u{1b}").into_owned());
        if !self.colours {
            return escaped();
        }
        let params = bytes.strip_prefix(b"\x1b[").unwrap_or_default();
        let len = params.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')).count();
        let is_open = bytes.len() == 1 || bytes == b"\x1b[" || (len > 0 && len == params.len() && len < SGR_MAX);
        if is_open && !is_end {
            return EscapedPart::Unknown;
        }
        match std::str::from_utf8(&params[..len]) {
            Ok(list) if params.get(len) == Some(&b'm') && hides_nothing(list) => {
                self.is_coloured = !matches!(list, "" | "0");
                EscapedPart::Plain(2 + len + 1)
            }
            _ => escaped(),
        }
    }
}

/// The first character, which is not plain ASCII.
fn character(bytes: &[u8], is_end: bool) -> EscapedPart {
    let first = &bytes[..bytes.len().min(4)];
    let (valid, invalid) = match std::str::from_utf8(first) {
        Ok(text) => (text, None),
        Err(error) => {
            let valid = std::str::from_utf8(&first[..error.valid_up_to()]).unwrap_or_default();
            (valid, Some(error.error_len()))
        }
    };
    match (valid.chars().next(), invalid) {
        (Some(sign), _) if sign.is_control() || is_deceptive(sign) => {
            EscapedPart::As(sign.len_utf8(), visible(sign.encode_utf8(&mut [0; 4])).into_owned())
        }
        (Some(sign), _) => EscapedPart::Plain(sign.len_utf8()),
        (None, Some(None)) if !is_end => EscapedPart::Unknown,
        (None, _) => EscapedPart::As(1, format!("\\x{:02x}", bytes[0])),
    }
}

/// Whether a colour leaves the text readable: the parameter 8 hides it. Colours have parameters of their own.
fn hides_nothing(params: &str) -> bool {
    let mut params = params.split([';', ':']);
    while let Some(param) = params.next() {
        match param.trim_start_matches('0') {
            "8" => return false,
            "38" | "48" | "58" => match params.next() {
                Some("5") => drop(params.next()),
                Some("2") => drop(params.nth(2)),
                _ => {}
            },
            _ => {}
        }
    }
    true
}

impl Write for TerminalWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        self.show_pending(false)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }

    /// One line: line ends before its own end belong to values.
    fn write_fmt(&mut self, line: fmt::Arguments<'_>) -> io::Result<()> {
        let line = line.to_string();
        let (line, end) = line.strip_suffix('\n').map_or((line.as_str(), ""), |line| (line, "\n"));
        self.write_all(line.replace('\n', "\\n").as_bytes())?;
        self.write_all(end.as_bytes())
    }
}

impl fmt::Debug for TerminalWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalWriter").field("colours", &self.colours).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]], colours: bool) -> String {
        let mut bytes = Vec::new();
        let mut writer = TerminalWriter::new(&mut bytes, colours);
        pieces.iter().for_each(|piece| writer.write_all(piece).expect("written"));
        writer.finish().expect("written");
        String::from_utf8(bytes).expect("only text")
    }

    #[test]
    fn only_text_and_colours_pass() {
        for (text, expected) in [
            ("größe ✓\ta\nb\r\nc", "größe ✓\ta\nb\r\nc"),
            ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
            ("\x1b[1;38;5;8mred", "\x1b[1;38;5;8mred\x1b[0m"),
            ("\x1b[8mhidden\x1b[m", "\\u{1b}[8mhidden\x1b[m"),
            ("\x1b[0;08mhidden", "\\u{1b}[0;08mhidden"),
            ("\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            ("\x1b[2J\x1b[H\x1bc\x1b", "\\u{1b}[2J\\u{1b}[H\\u{1b}c\\u{1b}"),
            ("50%\r100%\r", "50%\\r100%\\r"),
            ("\u{9b}31m\u{202e}\u{200b}\0", "\\u{9b}31m\\u{202e}\\u{200b}\\0"),
        ] {
            assert_eq!(shown(&[text.as_bytes()], true), expected);
        }
        assert_eq!(shown(&[b"\x1b[31mred"], false), "\\u{1b}[31mred");
        assert_eq!(shown(&[b"a\xff\xc3b\xe2\x82"], true), "a\\xff\\xc3b\\xe2\\x82");
    }

    #[test]
    fn value_with_a_line_end_stays_on_its_line() {
        let mut bytes = Vec::new();
        let mut writer = TerminalWriter::new(&mut bytes, false);
        let value = "maintenance\n  last      backup#1 success";
        writeln!(writer, "paused: {value}").expect("written");
        writeln!(writer).expect("written");
        writer.finish().expect("written");
        assert_eq!(String::from_utf8(bytes).expect("text"), "paused: maintenance\\n  last      backup#1 success\n\n");
    }

    /// Escape sequences, characters and line ends may be split between two pieces.
    #[test]
    fn pieces_do_not_matter() {
        let text = "a\x1b[1;31mb\x1b[m\x1b[2J\x1b]0;x\u{7}é✓\u{9b}\u{202e}\r\n\r\x1b[38;5;8mc\x1b";
        for cut in 0..=text.len() {
            let (one, other) = text.as_bytes().split_at(cut);
            assert_eq!(shown(&[one, other], true), shown(&[text.as_bytes()], true), "{cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(shown(&bytes, true), shown(&[text.as_bytes()], true));
    }

    #[test]
    fn no_character_controls_a_terminal() {
        let all: String = ('\0'..=char::MAX).collect();
        let text = shown(&[all.as_bytes()], false);
        let is_hidden = |sign: char| sign.is_control() && !matches!(sign, '\n' | '\t') || is_deceptive(sign);
        assert_eq!(text.find(is_hidden), None);
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(shown(&[&bytes], false).find(is_hidden), None);
    }
}
