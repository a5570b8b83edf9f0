//! Which file a program is: what `execvp` would find, with the `PATH` of the program and not our own, and words for why
//! a file cannot be executed. A person reads these words in the record of a run.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::Access;
use rustix::io::Errno;

/// Where programs are looked for when their environment has no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";
/// How much of a script's first line is read.
const FIRST_LINE_MAX: u64 = 256;

/// The file that a program's name stands for. A name with a slash is a file already, relative to where it starts.
pub(crate) fn find(program: &str, path: Option<&str>) -> Result<String, String> {
    if program.is_empty() {
        return Err("the name of the program is empty".to_owned());
    }
    if program.contains('/') {
        return Ok(program.to_owned());
    }
    let path = path.unwrap_or(PATH_DEFAULT);
    let mut barred = None;
    for folder in path.split(':') {
        // An empty entry means where the program starts.
        let file = if folder.is_empty() { format!("./{program}") } else { format!("{folder}/{program}") };
        if !Path::new(&file).is_file() {
            continue;
        }
        if rustix::fs::access(file.as_str(), Access::EXEC_OK).is_ok() {
            return Ok(file);
        }
        barred.get_or_insert(file);
    }
    Err(match barred {
        Some(file) => format!("cannot execute {file}: it may not be executed (its permissions do not allow it)"),
        None => format!("cannot find the program `{program}` in PATH ({path})"),
    })
}

/// Why a file could not be executed.
pub(crate) fn why_not(file: &str, errno: i32) -> String {
    let reason = match Errno::from_raw_os_error(errno) {
        Errno::NOENT | Errno::NOTDIR => match interpreter(file) {
            Some(interpreter) => format!("its interpreter {interpreter} does not exist"),
            None if Path::new(file).exists() => "the loader or a library that it needs does not exist".to_owned(),
            None => "it does not exist".to_owned(),
        },
        Errno::ACCESS if Path::new(file).is_dir() => "it is a directory".to_owned(),
        Errno::ACCESS => match interpreter(file).filter(|_| rustix::fs::access(file, Access::EXEC_OK).is_ok()) {
            Some(interpreter) => format!("its interpreter {interpreter} may not be executed"),
            None => "it may not be executed (permission denied)".to_owned(),
        },
        Errno::NOEXEC => "it is neither a program of this machine nor a script that begins with #!".to_owned(),
        Errno::TOOBIG => "its arguments and environment are too long".to_owned(),
        Errno::AGAIN | Errno::NOMEM => format!("the machine has no room for another process ({})", words(errno)),
        _ => words(errno),
    };
    format!("cannot execute {file}: {reason}")
}

/// What the machine calls an error.
pub(crate) fn words(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
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
    use crate::scratch::Scratch;

    fn file(scratch: &Scratch, name: &str, text: &str, mode: u32) -> String {
        let path = scratch.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    }

    #[test]
    fn the_first_in_path_that_may_be_executed_is_taken() {
        let (first, second) = (Scratch::new(), Scratch::new());
        file(&first, "plain", "", 0o644);
        let wanted = file(&second, "plain", "", 0o755);
        let path = format!("{}:{}", first.path().display(), second.path().display());
        assert_eq!(find("plain", Some(&path)), Ok(wanted));
        assert_eq!(find("./plain", Some(&path)), Ok("./plain".to_owned()));
        let only_first = first.path().display().to_string();
        assert!(find("plain", Some(&only_first)).is_err_and(|why| why.contains("may not be executed")));
        assert!(find("absent", Some(&path)).is_err_and(|why| why.contains("cannot find the program `absent`")));
        assert!(find("sh", None).is_ok_and(|file| file.ends_with("/sh")));
        assert!(find("", None).is_err());
    }

    #[test]
    fn reasons_are_words() {
        let scratch = Scratch::new();
        let script = file(&scratch, "script", "#! /no/such/interpreter -x\n", 0o755);
        let noent = Errno::NOENT.raw_os_error();
        assert!(why_not(&script, noent).ends_with("its interpreter /no/such/interpreter does not exist"));
        assert!(why_not("/no/such/file", noent).ends_with("/no/such/file: it does not exist"));
        let folder = scratch.path().display().to_string();
        assert!(why_not(&folder, Errno::ACCESS.raw_os_error()).ends_with("it is a directory"));
        assert!(why_not(&script, Errno::IO.raw_os_error()).ends_with("input/output error"));
    }
}
