//! Reads the text of one file, up to the size limit and only from regular files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::mistake::Mistake;
use crate::yaml::FILE_BYTES_MAX;

/// A file that cannot be read as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableFile {
    pub mistake: Mistake,
    /// The text that the mistake points into: the file with a mark for each invalid byte; empty if nothing could be read.
    pub text: String,
}

/// The text of a file. `file` is the name that mistakes use.
pub fn read_text(file: &str, path: &Path) -> Result<String, Box<UnreadableFile>> {
    let nothing =
        |message: String| Box::new(UnreadableFile { mistake: Mistake::new(file, 0..0, message), text: String::new() });
    let unreadable = |error: io::Error| nothing(format!("it cannot be read: {error}"));
    // Opening a pipe would block until there is a writer.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(nothing("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    let most = FILE_BYTES_MAX as u64 + 1;
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(nothing(format!("the file is too large: at most {FILE_BYTES_MAX} bytes are read")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes()[at];
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let end = at + char::REPLACEMENT_CHARACTER.len_utf8();
        let message = format!("the byte {byte:#04x} is not valid UTF-8");
        let mistake = Mistake::new(file, at..end, message).hint("save the file as UTF-8");
        Box::new(UnreadableFile { mistake, text })
    })
}
