//! Which parts of an output are standard error, for programs whose streams are told apart. A file beside the output has
//! the number of the pipe that carries standard error, and two offsets for each part, in the order of the output. A
//! process that appends standard error to an output also records the part, while it holds the lock on the output.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::protocol::RunKey;

/// Parts that are recorded. What follows the last of them is not told apart.
pub const STDERR_PARTS_MAX: usize = 1_000;
/// The name of the file: the run, and this.
const SUFFIX: &str = ".stderr";
/// Bytes of the number of the pipe, at the beginning of the file.
const PIPE_BYTES: u64 = 8;
/// Bytes of a part: its first offset and the offset after it.
const PART_BYTES: u64 = 16;

/// The name of the file of a run.
pub(crate) fn name(run: RunKey) -> String {
    format!("{run}{SUFFIX}")
}

/// The run that a file name belongs to.
pub(crate) fn run_of(name: &str) -> Option<RunKey> {
    RunKey::parse(name.strip_suffix(SUFFIX)?)
}

/// Records that a part of the output of a run is standard error. A part that continues the last one extends it.
pub(crate) fn record(folder: impl AsFd, run: RunKey, from: u64, until: u64) -> io::Result<()> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::openat(folder, name(run), flags, Mode::empty())?);
    // A part that was written incompletely is written again.
    let count = count_parts(&file)?;
    if let Some(last) = count.checked_sub(1)
        && read_part(&file, last)?.1 == from
    {
        return file.write_all_at(&until.to_le_bytes(), place_of(last) + PART_BYTES / 2);
    }
    if count >= STDERR_PARTS_MAX as u64 {
        return Ok(());
    }
    let mut part = from.to_le_bytes().to_vec();
    part.extend(until.to_le_bytes());
    file.write_all_at(&part, place_of(count))
}

/// The number of the pipe that carries the standard error of a run; `None` if its streams are not told apart.
pub(crate) fn pipe_of(folder: impl AsFd, run: RunKey) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::openat(folder, name(run), flags, Mode::empty()).ok()?);
    let mut pipe = [0; PIPE_BYTES as usize];
    file.read_exact_at(&mut pipe, 0).ok()?;
    Some(u64::from_le_bytes(pipe))
}

/// The parts of the output at `output` that are standard error, in their order; `None` if its streams are not told apart.
pub fn stderr_parts(output: &Path) -> io::Result<Option<Vec<(u64, u64)>>> {
    let mut path = output.as_os_str().to_owned();
    path.push(SUFFIX);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let count = count_parts(&file)?.min(STDERR_PARTS_MAX as u64);
    (0..count).map(|index| read_part(&file, index)).collect::<io::Result<Vec<_>>>().map(Some)
}

/// The number of parts that were written completely.
fn count_parts(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len().saturating_sub(PIPE_BYTES) / PART_BYTES)
}

/// The offset of a part in the file.
const fn place_of(index: u64) -> u64 {
    PIPE_BYTES + index * PART_BYTES
}

fn read_part(file: &File, index: u64) -> io::Result<(u64, u64)> {
    let mut part = [0; PART_BYTES as usize];
    file.read_exact_at(&mut part, place_of(index))?;
    let (from, until) = part.split_at(part.len() / 2);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("half of a part"));
    Ok((number(from), number(until)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_dir::ScratchDir;

    const RUN: RunKey = RunKey(1);

    #[test]
    fn parts_are_recorded_in_order_and_joined() {
        let scratch = ScratchDir::new();
        let output = scratch.path().join(RUN.to_string());
        assert_eq!(stderr_parts(&output).unwrap(), None);
        assert_eq!(pipe_of(scratch.open(), RUN), None);
        std::fs::write(scratch.path().join(name(RUN)), 70_u64.to_le_bytes()).unwrap();
        assert_eq!((stderr_parts(&output).unwrap(), pipe_of(scratch.open(), RUN)), (Some(vec![]), Some(70)));
        for (from, until) in [(3, 5), (5, 9), (20, 21)] {
            record(scratch.open(), RUN, from, until).unwrap();
        }
        assert_eq!(stderr_parts(&output).unwrap(), Some(vec![(3, 9), (20, 21)]));
        assert_eq!(pipe_of(scratch.open(), RUN), Some(70));
        assert_eq!((run_of(&name(RUN)), run_of("spare-1"), run_of(&RUN.to_string())), (Some(RUN), None, None));
    }

    #[test]
    fn number_of_parts_is_bounded() {
        let scratch = ScratchDir::new();
        std::fs::write(scratch.path().join(name(RUN)), 70_u64.to_le_bytes()).unwrap();
        for part in 0..STDERR_PARTS_MAX as u64 + 2 {
            record(scratch.open(), RUN, part * 2, part * 2 + 1).unwrap();
        }
        let parts = stderr_parts(&scratch.path().join(RUN.to_string())).unwrap().unwrap();
        assert_eq!((parts.len(), parts.last()), (STDERR_PARTS_MAX, Some(&(1_998, 1_999))));
    }
}
