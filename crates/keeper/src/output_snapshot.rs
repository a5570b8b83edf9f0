//! Looks at the output of a running program from outside of the keeper, so that what is read of it and which parts of that
//! are standard error fit together.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::stderr_index::stderr_parts;

/// An output at a moment.
#[derive(Debug)]
pub struct OutputSnapshot {
    /// The file. It may grow, and lose its middle.
    pub file: File,
    /// Its length at that moment.
    pub length: u64,
    /// The parts that are standard error; `None` if its streams are not told apart.
    pub stderr: Option<Vec<(u64, u64)>>,
}

/// Looks at an output; `None` if something is being appended to it right now. Does not wait, because the program could
/// hold the lock for ever.
pub fn snapshot_output(output: &Path) -> io::Result<Option<OutputSnapshot>> {
    let file = File::open(output)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let found = file.metadata().and_then(|found| Ok((found.len(), stderr_parts(output)?)));
    // The descriptor stays open, so the lock has to be released. That cannot fail.
    let _ = rustix::fs::flock(&file, FlockOperation::Unlock);
    let (length, stderr) = found?;
    Ok(Some(OutputSnapshot { file, length, stderr }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output_pipe::LockedOutput;
    use crate::protocol::RunKey;
    use crate::scratch_dir::ScratchDir;

    #[test]
    fn output_is_not_looked_at_while_it_is_appended_to() {
        let scratch = ScratchDir::new();
        let run = RunKey(1);
        let path = scratch.path().join(run.to_string());
        std::fs::write(&path, "text").unwrap();
        let locked = LockedOutput::open(scratch.open(), run).unwrap();
        assert!(snapshot_output(&path).unwrap().is_none());
        drop(locked);
        let seen = snapshot_output(&path).unwrap().unwrap();
        assert_eq!((seen.length, seen.stderr), (4, None));
        // It does not keep the keeper from appending.
        LockedOutput::open(scratch.open(), run).unwrap().write(b"more").unwrap();
        assert_eq!(seen.file.metadata().unwrap().len(), 8);
    }
}
