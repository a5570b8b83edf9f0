//! Every verb of the real binary: what it prints, where, and with which exit code. One snapshot file per verb's case.

mod check;
mod explain;
mod lint;
mod next;

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs the binary and tells all that a shell would show.
fn cronhold(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cronhold"))
        .args(args)
        .current_dir(repository())
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
        &["nxt"],
        &["next"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cronhold"))
        .args(["next", "* * * * * * *", "-n", "10000", "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
