//! The text that the messages of one plug-in carry, and how far its messages were read. The text is a file of its own
//! beside that with the messages. The state is written after the text, and the store gets text only after both, so what
//! is stored never exceeds what a later daemon knows.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cronhold_core::RunId;
use cronhold_core::plugin::{MessageReader, PluginKind, PluginMessage, ReaderEvent};
use cronhold_keeper::{OutputLimits, STDERR_PARTS_MAX};
use rustix::fs::{FallocateFlags, fallocate};
use serde::{Deserialize, Serialize};

use super::file::{FilePiece, MessageFile, PieceStream};
use crate::output::gap_notice;

/// Bytes of messages that are read at once from a running plug-in, so that others have their turn.
const TURN_MAX: u64 = 4 << 20;
/// Suffixes of the files of a run: its state, and its state until that is complete.
const STATE: &str = "json";
const PARTIAL: &str = "new";
/// Permissions of the files.
const MODE: u32 = 0o600;
/// Holes begin and end at multiples of this.
const BLOCK: u64 = 4096;

/// The spool of a run.
#[derive(Debug)]
pub(super) struct PluginSpool {
    output: PathBuf,
    text: File,
    state: SpoolState,
}

/// How far the messages of a run were read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SpoolState {
    reader: MessageReader,
    /// Bytes of the file with messages that were read.
    read: u64,
    /// Bytes of text.
    length: u64,
    /// Whether all messages were read.
    is_finished: bool,
    /// How much of the file with messages the keeper keeps.
    head: u64,
    tail: u64,
    /// Parts of the text that are standard error; `None` if the job does not tell the streams apart.
    stderr: Option<Vec<(u64, u64)>>,
}

impl SpoolState {
    /// Nothing was read yet.
    pub(super) fn new(kind: PluginKind, limits: OutputLimits, tells_stderr: bool) -> Self {
        let OutputLimits { head, tail } = limits;
        let stderr = tells_stderr.then(Vec::new);
        Self { reader: MessageReader::new(kind), read: 0, length: 0, is_finished: false, head, tail, stderr }
    }

    fn limits(&self) -> OutputLimits {
        OutputLimits { head: self.head, tail: self.tail }
    }
}

impl PluginSpool {
    /// Creates the spool of a run.
    pub(super) fn create(folder: &Path, run: RunId, state: SpoolState) -> io::Result<Self> {
        let output = folder.join(run.to_string());
        let text = private().create(true).truncate(true).open(&output)?;
        let spool = Self { output, text, state };
        spool.save()?;
        Ok(spool)
    }

    /// Opens the spools in a folder. Files that belong to none are removed.
    pub(super) fn open_all(folder: &Path) -> Vec<(RunId, Self)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let run = path.file_stem().and_then(|name| RunId::parse(name.to_str()?).ok());
            match (run, path.extension().and_then(|suffix| suffix.to_str())) {
                (Some(run), Some(STATE)) => match Self::open(path.with_extension("")) {
                    Ok(spool) => found.push((run, spool)),
                    Err(_) => drop(fs::remove_file(path)),
                },
                (Some(_), None) if path.with_extension(STATE).exists() => {}
                _ => drop(fs::remove_file(path)),
            }
        }
        found
    }

    fn open(output: PathBuf) -> io::Result<Self> {
        let state: SpoolState = serde_json::from_slice(&fs::read(output.with_extension(STATE))?)?;
        let text = private().open(&output)?;
        // What was written without its state is written again.
        text.set_len(state.length)?;
        Ok(Self { output, text, state })
    }

    /// The file with the text.
    pub(super) fn output(&self) -> &Path {
        &self.output
    }

    /// Parts of the text that are standard error; `None` if the job does not tell the streams apart.
    pub(super) fn stderr(&self) -> Option<&[(u64, u64)]> {
        self.state.stderr.as_deref()
    }

    /// What was read of the messages so far.
    pub(super) fn messages(&self) -> &MessageReader {
        &self.state.reader
    }

    /// Reads what a running plug-in has written meanwhile.
    pub(super) fn read(&mut self, messages: &Path) -> io::Result<()> {
        let Some(file) = MessageFile::growing(messages, self.state.read, self.state.limits())? else { return Ok(()) };
        let until = self.state.read + TURN_MAX;
        self.restart_if_emptied(&file)?;
        while self.state.read < until && self.read_piece(&file)? {}
        Ok(())
    }

    /// Reads all that a plug-in has written, and returns the length of its text. Does nothing the second time.
    pub(super) fn finish(&mut self, messages: &Path, total: Option<u64>) -> io::Result<u64> {
        if !self.state.is_finished {
            let file = MessageFile::ended(messages, total, self.state.limits())?;
            self.restart_if_emptied(&file)?;
            while self.read_piece(&file)? {}
            let mut text = Vec::new();
            self.state.reader.finish(&mut |event| append(&mut text, event));
            self.state.is_finished = true;
            self.add(&text, 0)?;
        }
        Ok(self.state.length)
    }

    /// Removes the files.
    pub(super) fn remove(&self) {
        // A file that cannot be removed now is removed by the next daemon.
        let _ = fs::remove_file(self.output.with_extension(STATE));
        let _ = fs::remove_file(&self.output);
    }

    /// A program of the daemon's user can empty the file. Then reading begins again.
    fn restart_if_emptied(&mut self, file: &MessageFile) -> io::Result<()> {
        if file.length() >= self.state.read {
            return Ok(());
        }
        self.state.reader.restart();
        self.state.read = 0;
        self.add(b"\n[plug-in: the file with its messages was emptied or overwritten]\n", 0)
    }

    /// Reads the next piece of a file. Returns whether there may be more.
    fn read_piece(&mut self, file: &MessageFile) -> io::Result<bool> {
        let from = self.state.read;
        match file.next(from)? {
            FilePiece::End => Ok(false),
            FilePiece::Gap(bytes) => {
                self.state.reader.skip(bytes);
                self.add(gap_notice(bytes).as_bytes(), bytes).map(|()| true)
            }
            FilePiece::Bytes(bytes) => {
                let length = bytes.len() as u64;
                let mut text = Vec::new();
                for (range, stream) in file.streams(from..from + length) {
                    let [begin, end] =
                        [range.start, range.end].map(|at| usize::try_from(at - from).unwrap_or(usize::MAX));
                    self.read_stream(&bytes[begin..end], stream, &mut text);
                }
                self.add(&text, length).map(|()| true)
            }
        }
    }

    fn read_stream(&mut self, bytes: &[u8], stream: PieceStream, text: &mut Vec<u8>) {
        match stream {
            PieceStream::Stderr => {
                let from = self.state.length + text.len() as u64;
                text.extend_from_slice(bytes);
                self.record_stderr(from, from + bytes.len() as u64);
            }
            PieceStream::Mixed => {
                self.state.reader.mix_streams();
                self.state.reader.read(bytes, &mut |event| append(text, event));
            }
            PieceStream::Messages => self.state.reader.read(bytes, &mut |event| append(text, event)),
        }
    }

    fn record_stderr(&mut self, from: u64, until: u64) {
        let Some(parts) = &mut self.state.stderr else { return };
        let count = parts.len();
        match parts.last_mut() {
            Some(last) if last.1 == from => last.1 = until,
            _ if count < STDERR_PARTS_MAX => parts.push((from, until)),
            _ => {}
        }
    }

    /// Appends text, and records that `read` more bytes of messages were read.
    fn add(&mut self, text: &[u8], read: u64) -> io::Result<()> {
        self.text.write_all_at(text, self.state.length)?;
        self.state.length += text.len() as u64;
        self.state.read += read;
        self.punch();
        self.save()
    }

    /// Frees the middle of a long text, which is not stored.
    fn punch(&self) {
        let OutputLimits { head, tail } = OutputLimits::DEFAULT;
        let from = head.div_ceil(BLOCK) * BLOCK;
        let until = self.state.length.saturating_sub(tail) / BLOCK * BLOCK;
        if from < until {
            // A file system without holes keeps the middle until the run is over.
            let _ = fallocate(&self.text, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, until - from);
        }
    }

    fn save(&self) -> io::Result<()> {
        let partial = self.output.with_extension(PARTIAL);
        let file = private().create(true).truncate(true).open(&partial)?;
        file.write_all_at(&serde_json::to_vec(&self.state)?, 0)?;
        fs::rename(partial, self.output.with_extension(STATE))
    }
}

fn private() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).mode(MODE);
    options
}

/// Appends the text of a line to the output.
fn append(text: &mut Vec<u8>, event: ReaderEvent) {
    match event {
        ReaderEvent::Message { message: PluginMessage::Output(output), .. } => text.extend(output.into_bytes()),
        ReaderEvent::Message { message: PluginMessage::Progress(_) | PluginMessage::Result(_), .. } => {}
        ReaderEvent::Problem { line, message, quote } => {
            text.extend(format!("[plug-in: line {line}: {message}: {quote}]\n").into_bytes());
        }
        ReaderEvent::Text(bytes) => text.extend(bytes),
    }
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Instant;

    use super::*;

    /// A folder with a spool and the file with its messages.
    struct ScratchSpool(PathBuf);

    const LIMITS: OutputLimits = OutputLimits { head: 100, tail: 200 };

    impl ScratchSpool {
        fn new(name: &str) -> (Self, PluginSpool) {
            let folder = std::env::temp_dir().join(format!("cronhold-spool-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).expect("a folder");
            let state = SpoolState::new(PluginKind::Program, LIMITS, false);
            let spool = PluginSpool::create(&folder, run(), state).expect("written");
            let scratch = Self(folder);
            // The keeper tells the streams apart, and nothing is standard error.
            fs::write(scratch.stderr_index(), [0; 8]).expect("written");
            (scratch, spool)
        }

        /// The file with the messages, which is elsewhere in a daemon.
        fn messages(&self) -> PathBuf {
            self.0.with_extension("messages")
        }

        fn stderr_index(&self) -> PathBuf {
            self.0.with_extension("messages.stderr")
        }

        /// As after a restart of the daemon.
        fn reopened(&self) -> PluginSpool {
            let mut found = PluginSpool::open_all(&self.0);
            assert_eq!((found.len(), found[0].0), (1, run()));
            found.remove(0).1
        }
    }

    impl Drop for ScratchSpool {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
            let _ = fs::remove_file(self.messages());
            let _ = fs::remove_file(self.stderr_index());
        }
    }

    fn run() -> RunId {
        RunId::from_key(Instant::EPOCH, "r")
    }

    fn output(text: &str) -> String {
        format!("{{\"type\":\"output\",\"text\":\"{text}\"}}\n")
    }

    fn text(spool: &PluginSpool) -> String {
        fs::read_to_string(spool.output()).expect("there")
    }

    #[test]
    fn daemons_that_die_after_any_piece_write_the_same_text() {
        let (scratch, mut spool) = ScratchSpool::new("pieces");
        let all = format!("{}noise\n{}{{\"type\":\"result\",\"outcome\":\"success\"}}", output("one"), output("two"));
        let mut written = String::new();
        for letter in all.chars() {
            written.push(letter);
            fs::write(scratch.messages(), &written).expect("written");
            spool.read(&scratch.messages()).expect("read");
            // Text whose state was not written is written again.
            fs::write(spool.output(), format!("{}torn", text(&spool))).expect("written");
            spool = scratch.reopened();
        }
        let length = spool.finish(&scratch.messages(), None).expect("read");
        let expected = "one\n[plug-in: line 2: it is not JSON: expected ident at column 2: noise]\ntwo\n";
        assert_eq!((text(&spool).as_str(), length), (expected, expected.len() as u64));
        assert_eq!(spool.messages().result().map(|result| result.outcome.name()), Some("success"));
        let mut spool = scratch.reopened();
        assert_eq!(spool.finish(&scratch.messages(), None).expect("read"), length, "it is finished once");
        spool.remove();
        assert_eq!(fs::read_dir(&scratch.0).expect("there").count(), 0);
    }

    #[test]
    fn messages_that_were_punched_out_leave_a_notice() {
        let (scratch, mut spool) = ScratchSpool::new("gap");
        let lines: Vec<String> = (0..100).map(|number| output(&number.to_string())).collect();
        fs::write(scratch.messages(), lines.concat()).expect("written");
        spool.finish(&scratch.messages(), None).expect("read");
        let (begin, rest) =
            text(&spool).split_once("\n[… ").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("a notice");
        assert!(begin.starts_with("0\n1\n2\n"), "{begin}");
        assert!(rest.contains(" bytes left out …]\n") && rest.ends_with("98\n99\n"), "{rest}");
        assert!(spool.messages().first_problem().is_some_and(|problem| problem.contains("left out")));
    }

    #[test]
    fn file_that_was_emptied_is_read_from_its_beginning() {
        let (scratch, mut spool) = ScratchSpool::new("emptied");
        for messages in [output("one") + "{\"type\":", output("two")] {
            fs::write(scratch.messages(), messages).expect("written");
            spool.read(&scratch.messages()).expect("read");
        }
        let expected = "one\n\n[plug-in: the file with its messages was emptied or overwritten]\ntwo\n";
        assert_eq!(text(&spool), expected);
    }
}
