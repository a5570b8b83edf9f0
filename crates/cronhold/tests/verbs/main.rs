//! Verbs of the real binary that need no daemon: standard output, standard error and exit code. There is one snapshot
//! per case.

mod check;
mod explain;
mod lint;
mod next;
mod pipes;
mod plugin;
mod up;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A temporary directory that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("verbs-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn put(self, file: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
        self
    }

    /// The transcript of several commands that are run in this directory.
    fn transcript(&self, commands: &[&[&str]]) -> String {
        commands.iter().map(|args| cronhold_in(&self.0, args)).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the binary in the repository. Returns the command line, both outputs and the exit code.
fn cronhold(args: &[&str]) -> String {
    cronhold_in(&repository(), args)
}

fn cronhold_in(dir: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cronhold"))
        .args(args)
        .current_dir(dir)
        // The snapshots must not depend on the environment of the test.
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let mut shown = format!("$ cronhold {}\n", args.iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(" "));
    shown += &text(output.stdout);
    for line in text(output.stderr).lines() {
        shown += &format!("err| {line}\n");
    }
    shown + &format!("exit {}\n", output.status.code().expect("no signal"))
}

/// The transcript of several commands.
fn transcript(commands: &[&[&str]]) -> String {
    commands.iter().map(|args| cronhold(args)).collect::<Vec<_>>().join("\n")
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn quoted(arg: &str) -> String {
    let plain = arg.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:+".contains(c)) && !arg.is_empty();
    if plain { arg.to_owned() } else { format!("'{}'", shortened(arg)) }
}

fn shortened(arg: &str) -> String {
    if arg.len() <= 200 { arg.to_owned() } else { format!("{}… ({} bytes)", &arg[..20], arg.len()) }
}

#[test]
fn help_and_usage() {
    let text = transcript(&[
        &["--help"],
        &["next", "--help"],
        &["explain", "--help"],
        &["lint", "--help"],
        &["check", "--help"],
        &["up", "--help"],
        &["store", "--help"],
        &["store", "backup", "--help"],
        &["bench", "--help"],
        &["nxt"],
        &["next"],
    ]);
    insta::assert_snapshot!(text);
}
