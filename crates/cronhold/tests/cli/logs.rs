//! `logs`: prints the output byte for byte, and nothing else.

use super::sandbox::{RunningCommand, Sandbox, transcript_of};

#[test]
fn logs() {
    let jobs = [
        ("talk", "program: echo one; echo two >&2; echo three\n"),
        ("mute", "program: {noop: true}\n"),
        ("late", "program: [echo, late]\n"),
        ("apart", "program: echo one; echo two >&2; echo three\nstderr: separate\n"),
    ];
    let sandbox = Sandbox::up("logs", &jobs);
    sandbox.run("talk");
    sandbox.run("mute");
    sandbox.run("apart");
    sandbox.done(&["run", "late", "--at", "2099-01-01"]);
    sandbox.done(&["run", "late", "--at", "2099-01-02"]);
    sandbox.done(&["skip", "late#2"]);
    let text = sandbox.transcript(&[
        &["logs", "talk"],
        &["logs", "talk#1", "--tail", "2"],
        &["logs", "-f", "talk"],
        &["logs", "apart", "--stderr"],
        &["logs", "apart", "--stdout", "--tail", "1"],
        &["logs", "talk", "--stderr"],
        &["logs", "apart", "--stderr", "--stdout"],
        &["logs", "mute"],
        &["logs", "late#1"],
        &["logs", "late#2"],
        &["logs", "tlak"],
        &["logs", "tlak#1"],
        &["logs", "talk#9"],
        &["logs", "talk#x"],
        &["logs", "talk", "--tail", "all"],
        &["logs"],
    ]);
    insta::assert_snapshot!(text);
}

/// Bytes that are not text, in both streams, and more of them than fit into one chunk.
#[test]
fn logs_print_output_byte_for_byte() {
    let sandbox = Sandbox::up("bytes", &[]);
    let mut expected: Vec<u8> = (0..=255).collect();
    expected.extend_from_slice(b"err\x00\xff\r\n");
    expected.extend((0..100_000).flat_map(|number: u32| format!("{number}\n").into_bytes()));
    std::fs::write(sandbox.path("all"), (0..=255).collect::<Vec<u8>>()).expect("written");
    let all = sandbox.path("all").canonicalize().expect("there");
    let script = format!("cat '{}'; printf 'err\\000\\377\\r\\n' >&2; seq 0 99999", all.display());
    sandbox.done(&["add", "--shell", "binary", "triggered", &script]);
    let waited = sandbox.run_command(&["run", "binary", "--wait"]);
    assert_eq!(waited.status.code(), Some(0), "{}", String::from_utf8_lossy(&waited.stderr));
    for args in [["logs", "binary"].as_slice(), &["logs", "-f", "binary"], &["logs", "binary#1", "--tail", "1000000"]] {
        let output = sandbox.run_command(args);
        assert!(output.stdout == expected, "{args:?}: {} bytes, not {}", output.stdout.len(), expected.len());
        assert!(output.stderr.is_empty() && output.status.success(), "{args:?}");
    }
    assert!(waited.stdout == expected, "run --wait: {} bytes", waited.stdout.len());
    assert_eq!(sandbox.json(&["runs", "binary"])[0]["output_bytes"], expected.len());
}

#[test]
fn follow_prints_output_until_the_run_ends() {
    let sandbox = Sandbox::up("follow", &[]);
    let go = sandbox.path("go").display().to_string();
    let script = format!("echo one; until [ -e '{go}' ]; do sleep 0.02; done; echo two; exit 3");
    sandbox.done(&["add", "--shell", "slow", "triggered", &script]);
    // Nothing has run yet, so `logs -f` waits for the first run.
    let mut first = RunningCommand::start(sandbox.command(&["logs", "-f", "slow"]));
    sandbox.done(&["run", "slow"]);
    assert_eq!(first.line(), "one\n");
    let mut second = RunningCommand::start(sandbox.command(&["logs", "-f", "slow#1"]));
    assert_eq!(second.line(), "one\n");
    let mut left = RunningCommand::start(sandbox.command(&["logs", "-f", "slow#1"]));
    assert_eq!(left.line(), "one\n");
    left.close_pipe();
    assert_eq!(left.end().status.code(), Some(0), "it exits when its reader closes the pipe");
    std::fs::write(sandbox.path("go"), "").expect("written");
    for going in [first, second] {
        let output = going.end();
        assert_eq!(String::from_utf8(output.stdout).expect("UTF-8"), "two\n");
        assert_eq!(output.status.code(), Some(0));
    }
    let wait = ["run", "slow", "--wait"];
    assert_eq!(
        transcript_of(&wait, &sandbox.run_command(&wait)),
        "$ cronhold run slow --wait\none\ntwo\nerr| slow#2 failure: exit code 3, took SPAN\nexit 1\n"
    );
}
