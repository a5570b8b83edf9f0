//! Reads the messages of a plug-in from the bytes that it writes, in pieces of any length. The reader is small and can
//! be stored between two pieces, so another process can continue to read.

use serde::{Deserialize, Serialize};

use super::{PluginKind, PluginMessage, PluginProgress, PluginResult};

/// Bytes of the longest line.
pub const LINE_MAX: usize = 256 * 1024;
/// Problems that are reported one by one. Beyond that they are only counted.
const REPORTED_MAX: u64 = 20;
/// Characters of a line that are quoted.
const QUOTED_MAX: usize = 200;

/// What has been read so far. The beginning of a line whose end is missing belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageReader {
    kind: PluginKind,
    /// Whether a line that does not begin with `{` is text: the streams of the plug-in cannot be told apart any more.
    #[serde(default)]
    is_mixed: bool,
    /// Lines that have ended.
    lines: u64,
    /// The beginning of the next line.
    line: Vec<u8>,
    /// Bytes of the next line if it is too long to be kept.
    oversized: u64,
    /// Whether the beginning of the next line is lost.
    is_torn: bool,
    problems: u64,
    first_problem: Option<String>,
    progress: Option<PluginProgress>,
    result: Option<PluginResult>,
}

/// What a line means.
#[derive(Debug, Clone, PartialEq)]
pub enum ReaderEvent {
    /// A message.
    Message {
        /// The number of the line, from 1.
        line: u64,
        message: PluginMessage,
    },
    /// A line is not a message, or must not be where it is.
    Problem {
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong with it, after "line 3: ".
        message: String,
        /// The beginning of the line, on one line.
        quote: String,
    },
    /// Text of a stream that cannot be told apart. It ends with the end of a line.
    Text(Vec<u8>),
}

impl MessageReader {
    /// A reader that has read nothing.
    pub const fn new(kind: PluginKind) -> Self {
        Self {
            kind,
            is_mixed: false,
            lines: 0,
            line: Vec::new(),
            oversized: 0,
            is_torn: false,
            problems: 0,
            first_problem: None,
            progress: None,
            result: None,
        }
    }

    /// What the plug-in is used for.
    pub const fn kind(&self) -> PluginKind {
        self.kind
    }

    /// The latest progress.
    pub const fn progress(&self) -> Option<&PluginProgress> {
        self.progress.as_ref()
    }

    /// The first result.
    pub const fn result(&self) -> Option<&PluginResult> {
        self.result.as_ref()
    }

    /// The first problem, with its line.
    pub fn first_problem(&self) -> Option<&str> {
        self.first_problem.as_deref()
    }

    /// How many lines were not messages.
    pub const fn problems(&self) -> u64 {
        self.problems
    }

    /// From now on the bytes contain both streams, and their lines cannot be told apart by stream.
    pub fn mix_streams(&mut self) {
        self.is_mixed = true;
    }

    /// Reads more bytes.
    pub fn read(&mut self, bytes: &[u8], call: &mut dyn FnMut(ReaderEvent)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.extend(&rest[..end]);
            self.end_line(call);
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    /// This many bytes cannot be read. Reading continues with the line after them.
    pub fn skip(&mut self, bytes: u64) {
        self.note(format!("{bytes} bytes of messages were left out, because they came too fast"));
        self.line.clear();
        (self.oversized, self.is_torn) = (0, true);
    }

    /// The plug-in has emptied the file that has its messages.
    pub fn restart(&mut self) {
        self.note("the file with its messages was emptied or overwritten".to_owned());
        self.line.clear();
        (self.oversized, self.is_torn) = (0, false);
    }

    /// The plug-in has ended. A last line without an end counts.
    pub fn finish(&mut self, call: &mut dyn FnMut(ReaderEvent)) {
        if self.oversized > 0 || !self.line.is_empty() {
            self.end_line(call);
        }
        self.is_torn = false;
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.is_torn {
            return;
        }
        if self.oversized > 0 {
            self.oversized += bytes.len() as u64;
            return;
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > LINE_MAX {
            self.oversized = self.line.len() as u64;
            // The beginning is quoted.
            self.line.truncate(QUOTED_MAX + 1);
        }
    }

    fn end_line(&mut self, call: &mut dyn FnMut(ReaderEvent)) {
        self.lines += 1;
        let line = std::mem::take(&mut self.line);
        let oversized = std::mem::take(&mut self.oversized);
        if std::mem::take(&mut self.is_torn) {
            return;
        }
        if oversized > 0 {
            let message = format!("it has {oversized} bytes; at most {LINE_MAX} are allowed");
            return self.report(message, &line, call);
        }
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if self.is_mixed && !line.starts_with(b"{") {
            return call(ReaderEvent::Text([line, b"\n".as_slice()].concat()));
        }
        match PluginMessage::parse(self.kind, line) {
            Ok(PluginMessage::Result(_)) if self.result.is_some() => {
                self.report("it is a second result; only the first one counts".to_owned(), line, call);
            }
            Ok(message) => {
                match &message {
                    PluginMessage::Output(_) => {}
                    PluginMessage::Progress(progress) => self.progress = Some(progress.clone()),
                    PluginMessage::Result(result) => self.result = Some(result.clone()),
                }
                call(ReaderEvent::Message { line: self.lines, message });
            }
            Err(message) => self.report(message, line, call),
        }
    }

    fn report(&mut self, message: String, line: &[u8], call: &mut dyn FnMut(ReaderEvent)) {
        self.note(format!("line {}: {message}", self.lines));
        if self.problems <= REPORTED_MAX {
            call(ReaderEvent::Problem { line: self.lines, message, quote: quote(line) });
        }
    }

    fn note(&mut self, problem: String) {
        self.problems += 1;
        self.first_problem.get_or_insert(problem);
    }
}

/// The beginning of a line, without control characters.
fn quote(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(QUOTED_MAX * 4)]);
    let clean = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    let quoted: String = text.chars().take(QUOTED_MAX).map(clean).collect();
    if quoted.len() < line.len() { format!("{quoted}…") } else { quoted }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(event: ReaderEvent) -> String {
        match event {
            ReaderEvent::Message { line, message } => format!("{line} {message:?}"),
            ReaderEvent::Problem { line, message, .. } => format!("{line} {message}"),
            ReaderEvent::Text(text) => format!("{:?}", String::from_utf8_lossy(&text)),
        }
    }

    fn read(reader: &mut MessageReader, bytes: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        reader.read(bytes, &mut |event| events.push(show(event)));
        events
    }

    const TEXT: &str = "{\"type\":\"output\",\"text\":\"a\"}\r\n\nnoise\n{\"type\":\"progress\",\"percent\":5}\n\
        {\"type\":\"result\",\"outcome\":\"success\"}\n{\"type\":\"result\",\"outcome\":\"failure\"}\n{\"type\":";

    #[test]
    fn lines_are_read_the_same_in_any_pieces() {
        let mut whole = MessageReader::new(PluginKind::Program);
        let expected = read(&mut whole, TEXT.as_bytes());
        assert_eq!(expected.len(), 5, "{expected:?}");
        assert_eq!(expected[1], "3 it is not JSON: expected ident at column 2");
        assert_eq!(expected[4], "6 it is a second result; only the first one counts");
        for length in 1..40 {
            let mut pieces = MessageReader::new(PluginKind::Program);
            let mut found = Vec::new();
            for piece in TEXT.as_bytes().chunks(length) {
                found.extend(read(&mut pieces, piece));
                // The reader is stored and read again.
                let stored = serde_json::to_string(&pieces).expect("JSON");
                assert_eq!(serde_json::from_str::<MessageReader>(&stored).expect("JSON"), pieces);
            }
            assert_eq!((&found, &pieces), (&expected, &whole), "{length}");
        }
        assert_eq!(whole.result().map(|result| result.outcome.name()), Some("success"));
        assert_eq!(whole.progress().map(ToString::to_string), Some("5 %".to_owned()));
        assert_eq!(whole.first_problem(), Some("line 3: it is not JSON: expected ident at column 2"));
        let mut last = Vec::new();
        whole.finish(&mut |event| last.push(show(event)));
        assert_eq!(last, ["7 it is not JSON: EOF while parsing a value at column 8"]);
    }

    #[test]
    fn oversized_line_is_dropped_with_its_length() {
        let mut reader = MessageReader::new(PluginKind::Program);
        assert_eq!(read(&mut reader, &vec![b'x'; LINE_MAX]), [""; 0]);
        assert_eq!(read(&mut reader, &vec![b'x'; 5_000]), [""; 0]);
        assert!(reader.line.len() <= LINE_MAX);
        let events = read(&mut reader, b"\n{\"type\":\"output\",\"text\":\"b\"}\n");
        assert_eq!(events[0], format!("1 it has {} bytes; at most {LINE_MAX} are allowed", LINE_MAX + 5_000));
        assert_eq!(events[1], "2 Output(\"b\\n\")");
    }

    #[test]
    fn lost_bytes_are_a_problem_and_reading_continues_with_the_next_line() {
        let mut reader = MessageReader::new(PluginKind::Program);
        read(&mut reader, b"{\"type\":\"out");
        reader.skip(7);
        assert_eq!(read(&mut reader, b"put\"}\n{\"type\":\"output\",\"text\":\"c\"}\n"), ["2 Output(\"c\\n\")"]);
        assert_eq!(reader.first_problem(), Some("7 bytes of messages were left out, because they came too fast"));
    }

    #[test]
    fn problems_beyond_a_number_are_only_counted() {
        let mut reader = MessageReader::new(PluginKind::Program);
        assert_eq!(read(&mut reader, "noise\n".repeat(50).as_bytes()).len() as u64, REPORTED_MAX);
        assert_eq!(reader.problems(), 50);
    }

    #[test]
    fn lines_of_mixed_streams_are_text_unless_they_are_messages() {
        let mut reader = MessageReader::new(PluginKind::Program);
        reader.mix_streams();
        let events = read(&mut reader, b"Traceback\n{\"type\":\"output\",\"text\":\"a\"}\n{x\n");
        assert_eq!(events[0], "\"Traceback\\n\"");
        assert_eq!(events[1], "2 Output(\"a\\n\")");
        assert!(events[2].starts_with("3 it is not JSON"), "{events:?}");
    }
}
