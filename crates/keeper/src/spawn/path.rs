//! Finds the file of a program as `execvp` would, with the `PATH` of the program and not the keeper's, and the reason
//! why a file cannot be executed.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::Access;
use rustix::io::Errno;

use super::{ExecFailure, OsError, SpawnError};

/// The `PATH` of programs whose environment has none.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";
/// Bytes of a script's first line that are read.
const FIRST_LINE_MAX: u64 = 256;

/// The file of a program. A name with a slash is a file already, relative to the program's directory.
pub(super) fn find(program: &str, path: Option<&str>) -> Result<String, SpawnError> {
    if program.is_empty() {
        return Err(SpawnError::EmptyName);
    }
    if program.contains('/') {
        return Ok(program.to_owned());
    }
    let path = path.unwrap_or(PATH_DEFAULT);
    let mut not_executable = None;
    for folder in path.split(':') {
        // An empty entry means the program's directory.
        let file = if folder.is_empty() { format!("./{program}") } else { format!("{folder}/{program}") };
        if !Path::new(&file).is_file() {
            continue;
        }
        if rustix::fs::access(file.as_str(), Access::EXEC_OK).is_ok() {
            return Ok(file);
        }
        not_executable.get_or_insert(file);
    }
    Err(match not_executable {
        Some(file) => SpawnError::NotExecutable(file),
        None => SpawnError::NotFound { program: program.to_owned(), path: path.to_owned() },
    })
}

/// Why a file could not be executed.
pub(super) fn exec_error(file: &str, errno: i32) -> SpawnError {
    let reason = match Errno::from_raw_os_error(errno) {
        Errno::NOENT | Errno::NOTDIR => match interpreter(file) {
            Some(interpreter) => ExecFailure::MissingInterpreter(interpreter),
            None if Path::new(file).exists() => ExecFailure::MissingLoader,
            None => ExecFailure::Missing,
        },
        Errno::ACCESS if Path::new(file).is_dir() => ExecFailure::Directory,
        Errno::ACCESS => match interpreter(file).filter(|_| rustix::fs::access(file, Access::EXEC_OK).is_ok()) {
            Some(interpreter) => ExecFailure::DeniedInterpreter(interpreter),
            None => ExecFailure::Denied,
        },
        Errno::NOEXEC => ExecFailure::Format,
        Errno::TOOBIG => ExecFailure::TooLong,
        Errno::AGAIN | Errno::NOMEM => ExecFailure::NoRoom(OsError::from_number(errno)),
        _ => ExecFailure::Other(OsError::from_number(errno)),
    };
    SpawnError::Exec { file: file.to_owned(), reason }
}

/// The interpreter that a script names in its first line.
fn interpreter(file: &str) -> Option<String> {
    let mut start = Vec::new();
    std::fs::File::open(file).ok()?.take(FIRST_LINE_MAX).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let name = line.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty())?;
    Some(Path::new(std::ffi::OsStr::from_bytes(name)).display().to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::scratch_dir::ScratchDir;

    fn file(scratch: &ScratchDir, name: &str, text: &str, mode: u32) -> String {
        let path = scratch.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    }

    #[test]
    fn first_executable_file_in_path_is_taken() {
        let (first, second) = (ScratchDir::new(), ScratchDir::new());
        file(&first, "plain", "", 0o644);
        let wanted = file(&second, "plain", "", 0o755);
        let path = format!("{}:{}", first.path().display(), second.path().display());
        assert_eq!(find("plain", Some(&path)).unwrap(), wanted);
        assert_eq!(find("./plain", Some(&path)).unwrap(), "./plain");
        let only_first = first.path().display().to_string();
        assert!(matches!(find("plain", Some(&only_first)), Err(SpawnError::NotExecutable(_))));
        assert!(matches!(find("absent", Some(&path)), Err(SpawnError::NotFound { .. })));
        assert!(find("sh", None).is_ok_and(|file| file.ends_with("/sh")));
        assert!(matches!(find("", None), Err(SpawnError::EmptyName)));
    }

    #[test]
    fn file_that_cannot_be_executed_has_a_reason() {
        let scratch = ScratchDir::new();
        let script = file(&scratch, "script", "#! /no/such/interpreter -x\n", 0o755);
        let reason = |file: &str, errno: Errno| match exec_error(file, errno.raw_os_error()) {
            SpawnError::Exec { reason, .. } => reason,
            other => panic!("{other:?}"),
        };
        let missing = reason(&script, Errno::NOENT);
        assert!(matches!(missing, ExecFailure::MissingInterpreter(path) if path == "/no/such/interpreter"));
        assert!(matches!(reason("/no/such/file", Errno::NOENT), ExecFailure::Missing));
        let folder = scratch.path().display().to_string();
        assert!(matches!(reason(&folder, Errno::ACCESS), ExecFailure::Directory));
        assert_eq!(reason(&script, Errno::IO).to_string(), "i/o error");
    }
}
