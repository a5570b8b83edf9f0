//! Output that cannot be written: the reader closes the pipe, or the disk is full.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use super::repository;

/// The exit code and the standard error of a command with this standard output.
fn run_with_stdout(stdout: Stdio, args: &[&str]) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cronhold"))
        .args(args)
        .current_dir(repository())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // Closes the reading end of the pipe.
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    (output.status.code().expect("no signal"), String::from_utf8(output.stderr).expect("UTF-8"))
}

#[test]
fn closed_pipe_does_not_change_the_exit_code() {
    let next = ["next", "* * * * * * *", "-n", "10000", "-o", "json"];
    assert_eq!(run_with_stdout(Stdio::piped(), &next), (0, String::new()));
    let check = ["check", "crates/cronhold/tests/verbs/bad"];
    assert_eq!(run_with_stdout(Stdio::piped(), &check), (1, String::new()));
    let lint = ["lint", "0 0 13 * Fri", "--strict"];
    assert_eq!(run_with_stdout(Stdio::piped(), &lint), (1, String::new()));
}

#[test]
fn unwritable_output_is_an_error() {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("a device that is always full");
    let (code, error) = run_with_stdout(full.into(), &["next", "@daily"]);
    assert_eq!(code, 1);
    assert!(error.starts_with("error: cannot write the output: "), "{error}");
}

#[test]
fn keeper_with_unwritable_stderr_fails_without_panic() {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("a device that is always full");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
    command.args(["keeper", "--data", "/no/such/place"]).stdout(Stdio::null()).stderr(full);
    assert_eq!(command.status().expect("the binary starts").code(), Some(1));
}
