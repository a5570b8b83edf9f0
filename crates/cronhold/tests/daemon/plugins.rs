//! Plug-ins of a real daemon: programs and conditions that write messages, also across a restart of the daemon.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cronhold_core::State;
use cronhold_core::run::Reason;
use serde_json::Value;

use super::daemon::{Daemon, Sandbox, transcript};
use super::processes::eventually;

const AT_START: &str = "schedule: '@reboot'\n";

/// Writes a shell script that reads its message and then runs `body`.
fn put_plugin(sandbox: &Sandbox, name: &str, body: &str) -> String {
    let path = sandbox.path(name);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o755).open(&path).expect("a file");
    write!(file, "#!/bin/sh\nread -r message\n{body}\n").expect("written");
    path.display().to_string()
}

/// A job whose program is that script, and which starts with the daemon.
fn put_plugin_job(sandbox: &Sandbox, job: &str, body: &str, keys: &str) {
    let command = put_plugin(sandbox, &format!("{job}.sh"), body);
    sandbox.put_job(job, &format!("program: {{plugin: {{command: {command}}}}}\n{AT_START}{keys}"));
}

/// An executable of the repository's examples.
fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins");
    folder.canonicalize().expect("there").join(name).display().to_string()
}

fn text_of(sandbox: &Sandbox, job: &str) -> String {
    String::from_utf8(sandbox.output(sandbox.stored().run(job, 1))).expect("text")
}

/// What a verb prints as JSON.
fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let output = sandbox.verb(args).args(["-o", "json"]).output().expect("the binary starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A command that waits until a file is there.
fn until(sandbox: &Sandbox, name: &str) -> String {
    format!("until [ -e {} ]; do sleep 0.02; done", sandbox.path(name).display())
}

fn go(sandbox: &Sandbox, name: &str) {
    fs::write(sandbox.path(name), "").expect("written");
}

const DONE: &str = r#"echo '{"type":"result","outcome":"success","message":"3 rows"}'"#;

/// The notice for a line of 300,000 times the letter x, of which 200 are quoted.
const OVERSIZED: &str = "[plug-in: line 1: it has 300000 bytes; at most 262144 are allowed: \
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxx…]\n";

/// A script, and what its run must come to.
type MessageCase = (&'static str, String, State, Option<Reason>, &'static str);

/// Runs the scripts as plug-ins, and compares the state, the reason and the output of their runs.
fn assert_runs(name: &str, cases: &[MessageCase]) {
    let sandbox = Sandbox::new(name);
    for (job, body, ..) in cases {
        put_plugin_job(&sandbox, job, body, "");
    }
    let mut daemon = sandbox.up();
    for (job, _, state, ..) in cases {
        daemon.wait_until_run(&format!("{job}#1"), state.name());
    }
    let stored = sandbox.stored();
    for (job, _, state, reason, output) in cases {
        let run = stored.run(job, 1);
        assert_eq!((run.state, &run.reason), (*state, reason), "{job}");
        assert_eq!(text_of(&sandbox, job), *output, "{job}");
    }
    assert_eq!(daemon.stop().0.code(), Some(0));
}

fn said(text: &str) -> Option<Reason> {
    Some(Reason::Said(text.to_owned()))
}

fn broken(text: &str) -> Option<Reason> {
    Some(Reason::Plugin(text.to_owned()))
}

/// A command that reports a result.
fn result(outcome: &str, message: &str) -> String {
    format!(r#"echo '{{"type":"result","outcome":"{outcome}","message":"{message}"}}'"#)
}

#[test]
fn messages_of_a_plugin_decide_its_run() {
    let contradiction = broken("reported `success`, then ended with exit code 5");
    let output = r#"printf '%s\n' '{"type":"output","text":"one\ntwo"}'"#;
    let no_newline = format!("printf '%s' '{}'", &DONE[6..DONE.len() - 1]);
    assert_runs(
        "plugin-results",
        &[
            ("success", DONE.to_owned(), State::Success, said("3 rows"), ""),
            ("failure", format!("{}; exit 4", result("failure", "no rows")), State::Failure, said("no rows"), ""),
            ("error", result("error", "no network"), State::Error, broken("no network"), ""),
            ("contradiction", format!("{DONE}; exit 5"), State::Error, contradiction, ""),
            ("quiet", "true".to_owned(), State::Success, None, ""),
            ("exit", "exit 3".to_owned(), State::Failure, Some(Reason::ExitCode(3)), ""),
            ("output", format!("{output}; {no_newline}"), State::Success, said("3 rows"), "one\ntwo\n"),
        ],
    );
}

#[test]
fn lines_that_are_not_messages_are_named_in_the_output() {
    let problem = "line 1: it is not JSON: expected ident at column 2";
    let second = r#"echo '{"type":"result","outcome":"failure"}'"#;
    let long = "head -c 300000 /dev/zero | tr '\\0' x; echo";
    assert_runs(
        "plugin-mistakes",
        &[
            (
                "noise",
                "echo noise".to_owned(),
                State::Error,
                broken(&format!("ended without a result; {problem}")),
                "[plug-in: line 1: it is not JSON: expected ident at column 2: noise]\n",
            ),
            (
                "harmless",
                format!("echo; echo noise; {DONE}"),
                State::Success,
                said("3 rows"),
                "[plug-in: line 2: it is not JSON: expected ident at column 2: noise]\n",
            ),
            (
                "unknown",
                format!(r#"echo '{{"type":"ouput"}}'; {DONE}"#),
                State::Success,
                said("3 rows"),
                "[plug-in: line 1: `ouput` is not a type of a message: `output`, `progress` or `result`: \
                 {\"type\":\"ouput\"}]\n",
            ),
            (
                "second",
                format!("{DONE}; {second}"),
                State::Success,
                said("3 rows"),
                "[plug-in: line 2: it is a second result; only the first one counts: \
                 {\"type\":\"result\",\"outcome\":\"failure\"}]\n",
            ),
            ("oversized", format!("{long}; {DONE}"), State::Success, said("3 rows"), OVERSIZED),
        ],
    );
}

#[test]
fn plugin_gets_one_message_with_run_and_settings() {
    let sandbox = Sandbox::new("plugin-start");
    let file = sandbox.path("message");
    let body = format!("printf '%s' \"$message\" > {}; cat >> {}; {DONE}", file.display(), file.display());
    let command = put_plugin(&sandbox, "plugin.sh", &body);
    let job = format!(
        "program: {{plugin: {{command: {command}, settings: {{day: '{{{{ day }}}}', size: 3}}}}}}\n\
         params: {{day: {{default: 'a \"quoted\" day'}}}}\n{AT_START}"
    );
    sandbox.put_job("etl/load", &job);
    let mut daemon = sandbox.up();
    daemon.wait_until_run("etl/load#1", "success");
    let run = sandbox.stored().run("etl/load", 1).clone();
    let message: Value = serde_json::from_str(&fs::read_to_string(file).expect("there")).expect("one message");
    assert_eq!(
        message,
        serde_json::json!({
            "type": "start",
            "protocol": 1,
            "run": {
                "id": run.id.to_string(), "job": "etl/load", "number": 1, "attempt": 1,
                "nominal_time": run.nominal.to_string(), "args": {"day": "a \"quoted\" day"},
            },
            "settings": {"day": "a \"quoted\" day", "size": "3"},
        })
    );
    daemon.kill();
}

/// The messages before, between and after two daemons, and a line of which each daemon reads a part.
#[test]
fn daemon_killed_amid_messages_loses_none_of_them() {
    let sandbox = Sandbox::new("plugin-restart");
    let body = format!(
        r#"echo '{{"type":"output","text":"one"}}'; printf '{{"type":"output",'
{}
printf '"text":"two"}}\n'; echo '{{"type":"output","text":"three"}}'; echo '{{"type":"progress","percent":70}}'
touch {}
{}
echo '{{"type":"output","text":"four"}}'; {DONE}"#,
        until(&sandbox, "a"),
        sandbox.path("away").display(),
        until(&sandbox, "b")
    );
    put_plugin_job(&sandbox, "talk", &body, "");
    let mut daemon = sandbox.up();
    daemon.wait_until_run("talk#1", "running");
    eventually("the first line is stored", || text_of(&sandbox, "talk") == "one\n");
    daemon.kill();
    go(&sandbox, "a");
    eventually("it wrote more while the daemon was away", || sandbox.path("away").exists());
    let daemon = sandbox.up();
    eventually("it is stored", || text_of(&sandbox, "talk") == "one\ntwo\nthree\n");
    let progress = || json(&sandbox, &["show", "talk#1"])["progress"]["percent"].clone();
    eventually("the progress is stored", || progress() == 70);
    daemon.kill();
    go(&sandbox, "b");
    let spool = sandbox.path("home/plugins");
    let mut daemon = sandbox.up();
    daemon.wait_until_run("talk#1", "success");
    assert_eq!(text_of(&sandbox, "talk"), "one\ntwo\nthree\nfour\n");
    assert_eq!(sandbox.stored().run("talk", 1).reason, Some(Reason::Said("3 rows".to_owned())));
    let is_empty = || fs::read_dir(&spool).is_ok_and(|mut found| found.next().is_none());
    // The next run lets the daemon look for files that it does not need.
    sandbox.put_job("other", &format!("program: sleep 600\n{AT_START}"));
    daemon.kill();
    let _daemon = sandbox.up();
    eventually("the files of the run are removed", is_empty);
}

#[test]
fn stopped_plugin_may_report_what_it_has_done() {
    let sandbox = Sandbox::new("plugin-stop");
    let wait = "echo '{\"type\":\"output\",\"text\":\"begins\"}'; while :; do sleep 0.05; done";
    let report = |outcome: &str, code: u32| {
        format!(
            "trap 'echo \"{{\\\"type\\\":\\\"result\\\",\\\"outcome\\\":\\\"{outcome}\\\"}}\"; exit {code}' TERM\n{wait}"
        )
    };
    put_plugin_job(&sandbox, "polite", &report("failure", 0), "");
    put_plugin_job(&sandbox, "done", &report("success", 0), "");
    put_plugin_job(&sandbox, "silent", wait, "");
    let mut daemon = sandbox.up();
    for (job, state) in [("polite", State::Failure), ("done", State::Success), ("silent", State::Failure)] {
        eventually("it has set its trap", || text_of_running(&sandbox, job) == "begins\n");
        let text = transcript(&mut sandbox.verb(&["stop", &format!("{job}#1")]));
        assert!(text.ends_with("exit 0\n"), "{text}");
        daemon.wait_until_run(&format!("{job}#1"), state.name());
        assert_eq!(sandbox.stored().run(job, 1).reason, Some(Reason::Stopped), "{job}");
    }
    daemon.kill();
}

/// The output of a run that may not have begun.
fn text_of_running(sandbox: &Sandbox, job: &str) -> String {
    let stored = sandbox.stored();
    let run = stored.runs.iter().find(|run| run.job.as_str() == job);
    run.map(|run| String::from_utf8(sandbox.output(run)).expect("text")).unwrap_or_default()
}

/// A secret that JSON has to escape, and one in two messages.
#[test]
fn secrets_are_hidden_in_outputs_and_results_of_plugins() {
    let sandbox = Sandbox::new("plugin-secrets");
    let key = sandbox.path("key");
    fs::write(&key, "say \"friend\" and enter").expect("written");
    let body = r#"printf '{"type":"output","text":"key say \\"friend\\" and enter"}\n'
printf '{"type":"progress","text":"with say \\"friend\\" and enter"}\n'
printf '{"type":"result","outcome":"failure","message":"bad key say \\"friend\\" and enter"}\n'"#;
    put_plugin_job(&sandbox, "talk", body, &format!("env: {{KEY: {{file: {}}}}}\n", key.display()));
    let mut daemon = sandbox.up();
    daemon.wait_until_run("talk#1", "failure");
    let hidden = "*".repeat(22);
    assert_eq!(text_of(&sandbox, "talk"), format!("key {hidden}\n"));
    let run = sandbox.stored().run("talk", 1).clone();
    assert_eq!(run.reason, Some(Reason::Said(format!("bad key {hidden}"))));
    let shown = json(&sandbox, &["show", "talk#1"]).to_string();
    assert!(!shown.contains("friend"), "{shown}");
    daemon.kill();
}

/// More messages than the keeper keeps. The result counts, and the output has a beginning and an end.
#[test]
fn flood_of_messages_keeps_beginning_end_and_result() {
    let sandbox = Sandbox::new("plugin-flood");
    let body = format!(
        r#"echo '{{"type":"output","text":"first"}}'
yes '{{"type":"output","text":"a line that is repeated very often, so that there is too much of it"}}' | head -n 400000
echo '{{"type":"output","text":"last"}}'; {DONE}"#
    );
    put_plugin_job(&sandbox, "flood", &body, "");
    let mut daemon = sandbox.up();
    daemon.wait_until_run("flood#1", "success");
    let output = text_of(&sandbox, "flood");
    assert!(output.starts_with("first\na line") && output.ends_with("it\nlast\n"), "{} bytes", output.len());
    // As of any program: what was stored while it ran, up to 10 MiB, and the last 9 MiB.
    assert!(output.contains(" bytes left out …]\n") && output.len() < 20 << 20, "{} bytes", output.len());
    assert_eq!(sandbox.stored().run("flood", 1).reason, Some(Reason::Said("3 rows".to_owned())));
    daemon.kill();
}

#[test]
fn standard_error_of_a_plugin_is_output_that_can_be_told_apart() {
    let sandbox = Sandbox::new("plugin-stderr");
    let body = format!(r#"echo '{{"type":"output","text":"one"}}'; sleep 0.2; echo warning >&2; sleep 0.2; {DONE}"#);
    put_plugin_job(&sandbox, "talk", &body, "stderr: separate\n");
    let mut daemon = sandbox.up();
    daemon.wait_until_run("talk#1", "success");
    let shown = |flag: &str| {
        let output = sandbox.verb(&["logs", "talk#1", flag]).output().expect("the binary starts");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!((shown("--stderr"), shown("--stdout")), ("warning\n".to_owned(), "one\n".to_owned()));
    daemon.kill();
}

/// What the run of a job waits for, if there is one.
fn waiting_for(sandbox: &Sandbox, job: &str) -> String {
    let stored = sandbox.stored();
    let run = stored.runs.iter().find(|run| run.job.as_str() == job);
    let blockers = run.iter().flat_map(|run| &run.blockers).map(ToString::to_string);
    blockers.collect::<Vec<_>>().join(" and ")
}

#[test]
fn run_waits_for_the_answer_of_a_plugin() {
    let sandbox = Sandbox::new("plugin-condition");
    let flag = sandbox.path("flag");
    let body = format!(
        r#"[ -e {} ] && echo '{{"type":"result","outcome":"holds"}}' ||
echo '{{"type":"result","outcome":"does_not_hold","message":"3 GB free"}}'"#,
        flag.display()
    );
    let cases = [
        ("waits", put_plugin(&sandbox, "waits.sh", &body), "3 GB free"),
        ("broken", put_plugin(&sandbox, "broken.sh", "echo noise"), "plug-in: ended without a result; line 1"),
        ("fails", put_plugin(&sandbox, "fails.sh", "echo no disk >&2; exit 3"), "exit code 3: no disk"),
        (
            "error",
            put_plugin(&sandbox, "error.sh", r#"echo '{"type":"result","outcome":"error","message":"no disk"}'"#),
            "plug-in: no disk",
        ),
        ("missing", sandbox.path("missing.sh").display().to_string(), "not launched"),
    ];
    for (job, command, _) in &cases {
        let condition = format!("conditions: [{{plugin: {{command: {command}}}, poll: 1s}}]\n");
        sandbox.put_job(job, &format!("program: 'true'\n{AT_START}{condition}"));
    }
    let mut daemon = sandbox.up();
    for (job, _, message) in &cases {
        eventually(job, || waiting_for(&sandbox, job).contains(message));
    }
    let shown = json(&sandbox, &["show", "waits#1"]);
    let text = shown["waiting_for"][0].as_str().expect("a text");
    assert!(text.starts_with("the plug-in `") && text.contains("3 GB free"), "{text}");
    fs::write(&flag, "").expect("written");
    daemon.wait_until_run("waits#1", "success");
    daemon.kill();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "Python is found as in the shell that runs the tests")]
fn example_plugins_work() {
    let sandbox = Sandbox::new("plugin-examples");
    let (source, target) = (sandbox.path("source"), sandbox.path("target"));
    fs::create_dir_all(&source).expect("a folder");
    for name in ["a.csv", "b \"c\".csv"] {
        fs::write(source.join(name), name).expect("written");
    }
    let plugin =
        |name: &str, settings: &str| format!("{{plugin: {{command: {}, settings: {settings}}}}}", example(name));
    let copy = plugin("copy.sh", &format!("{{source: {}, target: {}}}", source.display(), target.display()));
    let space = plugin("free-space.sh", &format!("{{path: {}, mebibytes: 1}}", source.display()));
    let sum = plugin("checksum.py", &format!("{{directory: {}}}", target.display()));
    let fresh = plugin("fresh.py", &format!("{{path: '{}/a.csv', seconds: 1e9}}", target.display()));
    let none = plugin("fresh.py", "{path: /no/such/file, seconds: 5}");
    let full = plugin("free-space.sh", &format!("{{path: {}, mebibytes: 999999999999}}", source.display()));
    sandbox.put_job("copy", &format!("program: {copy}\n{AT_START}conditions: [{space}]\n"));
    sandbox.put_job("sum", &format!("program: {sum}\n{AT_START}conditions: [{{after: copy}}, {fresh}]\n"));
    sandbox.put_job("stale", &format!("program: 'true'\n{AT_START}conditions: [{none}]\n"));
    sandbox.put_job("full", &format!("program: 'true'\n{AT_START}conditions: [{full}]\n"));
    let mut command = sandbox.command(&["--jobs", "jobs"]);
    for name in ["PATH", "HOME"] {
        command.env(name, std::env::var_os(name).unwrap_or_default());
    }
    let mut daemon = Daemon::start(&mut command);
    daemon.wait_until_run("copy#1", "success");
    daemon.wait_until_run("sum#1", "success");
    let stored = sandbox.stored();
    let said = |job: &str| stored.run(job, 1).reason.clone();
    assert_eq!((said("copy"), said("sum")), (Some(Reason::Said("2 files".to_owned())), said("copy")));
    assert_eq!(text_of(&sandbox, "copy"), "copied a.csv\ncopied b \"c\".csv\n");
    assert_eq!(fs::read_to_string(target.join("b \"c\".csv")).expect("copied"), "b \"c\".csv");
    let sums = text_of(&sandbox, "sum");
    assert!(sums.lines().count() == 2 && sums.ends_with("  b \"c\".csv\n"), "{sums}");
    eventually("it is stale", || waiting_for(&sandbox, "stale").contains("/no/such/file does not exist"));
    eventually("it is full", || waiting_for(&sandbox, "full").contains("MiB are free, 999999999999 are needed"));
    assert_eq!(daemon.stop().0.code(), Some(0));
}
