//! Programs that are processes, from the job file to the stored output.

use std::fs;

use cronhold_core::State;
use cronhold_core::record::ProgramExit;
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_programs::output::TRUNCATED;

use super::daemon::{Daemon, Sandbox};
use super::processes::eventually;

const AT_START: &str = "schedule: '@reboot'\n";

/// Sets `file` to the program's output file.
const OUTPUT_FILE: &str = "file=$OUTPUTS/$(echo $CRONHOLD_RUN_ID | tr -d -)";

/// The environment of a program that knows where outputs are.
fn outputs(sandbox: &Sandbox) -> String {
    format!("{{OUTPUTS: {}}}", sandbox.path("home/keeper/outputs").display())
}

/// Starts a daemon with these jobs, which run at its start.
fn started(sandbox: &Sandbox, jobs: &[(&str, &str)]) -> Daemon {
    for (id, yaml) in jobs {
        sandbox.put_job(id, &format!("{yaml}\n{AT_START}"));
    }
    let mut command = sandbox.command(&["--jobs", "jobs"]);
    command.env("PATH", "/usr/bin:/bin").env("VAULT", "s3cret").env("CRONHOLD_TOKEN", "of the daemon");
    let mut daemon = Daemon::start(&mut command);
    daemon.wait_for("ready");
    daemon
}

#[test]
fn shell_and_exec_programs_report_output_and_exit_codes() {
    let sandbox = Sandbox::new("shell");
    let here = sandbox.path("").canonicalize().expect("there");
    let environment = format!(
        "program: 'env | sort | grep -e CRONHOLD -e GREETING -e TOKEN; pwd; umask'\nparams: {{region: {{default: eu}}}}\n\
         env: {{GREETING: 'hello {{{{ region }}}}', TOKEN: {{env: VAULT}}}}\ncwd: {}\numask: '027'",
        here.display()
    );
    let mut daemon = started(
        &sandbox,
        &[
            ("environment", &environment),
            ("words", "program: [printf, '%s|', a b, '$HOME', '*']"),
            ("order", "program: 'echo one; echo two >&2; echo three; exit 3'\nsuccess_codes: [3]"),
            ("refuses", "program: 'echo last words; exit 7'"),
            ("shot", "program: 'kill -SEGV $$'"),
            ("unheard", "program: 'no-such-program-at-all'"),
            ("missing", "program: [no-such-program-at-all]"),
            ("secret", "program: 'true'\nenv: {KEY: {file: /no/such/file}}"),
        ],
    );
    for (run, state) in [
        ("environment#1", "success"),
        ("words#1", "success"),
        ("order#1", "success"),
        ("refuses#1", "failure"),
        ("shot#1", "failure"),
        ("unheard#1", "failure"),
        ("missing#1", "error"),
        ("secret#1", "error"),
    ] {
        daemon.wait_until_run(run, state);
    }
    let stored = sandbox.stored();
    let reason = |job: &str| stored.run(job, 1).reason.clone();
    assert_eq!(stored.run("unheard", 1).exit, Some(ProgramExit::Code(127)));
    assert!(matches!(reason("missing"), Some(Reason::NotLaunched(_))), "{:?}", reason("missing"));
    let is_named = |why: &str| why.contains("KEY") && why.contains("/no/such/file");
    assert!(matches!(reason("secret"), Some(Reason::NotLaunched(why)) if is_named(&why)), "{:?}", reason("secret"));
    let output = |job: &str| String::from_utf8(sandbox.output(stored.run(job, 1))).expect("text");
    let run = stored.run("environment", 1);
    let expected = [
        "CRONHOLD_ARG_REGION=eu",
        "CRONHOLD_ATTEMPT=1",
        &format!("CRONHOLD_DATA={}", here.join("home").display()),
        "CRONHOLD_JOB=environment",
        &format!("CRONHOLD_NOMINAL_TIME={}", run.nominal),
        &format!("CRONHOLD_RUN_ID={}", run.id),
        "GREETING=hello eu",
        "TOKEN=******",
        &here.display().to_string(),
        "0027",
    ];
    assert_eq!(output("environment").lines().collect::<Vec<_>>(), expected);
    assert_eq!(output("words"), "a b|$HOME|*|");
    assert_eq!(output("order"), "one\ntwo\nthree\n");
    let run = stored.run("refuses", 1);
    let written = run.written.clone().expect("it wrote something");
    assert_eq!((written.bytes, &written.tail[..]), (11, &["last words".to_owned()][..]));
    assert_eq!(run.exit, Some(ProgramExit::Code(7)));
    assert_eq!(stored.run("shot", 1).exit, Some(ProgramExit::Signal(Signal::parse("SEGV").expect("a signal"))));
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// Programs get no variables of the daemon but a few. They cannot read the others from the keeper, nor from the daemon
/// unless they are root.
#[test]
fn programs_cannot_read_the_environment_of_daemon_and_keeper() {
    const NOBODY: u32 = 65534;
    let is_root = rustix::process::geteuid().is_root();
    for uid in [None, Some(NOBODY).filter(|_| is_root)] {
        let sandbox = Sandbox::new(&format!("hidden-{}", uid.unwrap_or(0)));
        let pid = sandbox.path("pid");
        let read_daemon = format!("until [ -s {0} ]; do sleep 0.02; done; cat /proc/$(cat {0})/environ", pid.display());
        sandbox.put_job("own", &format!("program: env\n{AT_START}"));
        sandbox.put_job("keeper", &format!("program: cat /proc/$PPID/environ || echo denied\n{AT_START}"));
        sandbox.put_job("daemon", &format!("program: '{read_daemon} || echo denied'\n{AT_START}"));
        let mut command = sandbox.command(&["--jobs", "jobs", "--pass-env", "PASSED_*"]);
        command.env("PATH", "/usr/bin:/bin").env("PASSED_ON", "passed").env("PLAIN_KEY", "s3cret");
        command.env("CRONHOLD_SECRET_X", "s3cret").env("CRONHOLD_TOKEN", "s3cret-0123456789abcdef");
        if let Some(uid) = uid {
            std::os::unix::fs::chown(sandbox.path(""), Some(uid), Some(uid)).expect("root may do that");
            std::os::unix::process::CommandExt::uid(&mut command, uid);
        }
        let mut daemon = Daemon::start(&mut command);
        fs::write(&pid, daemon.pid().as_raw_nonzero().to_string()).expect("written");
        for job in ["own", "keeper", "daemon"] {
            daemon.wait_until_run(&format!("{job}#1"), "success");
        }
        let stored = sandbox.stored();
        let output = |job: &str| String::from_utf8(sandbox.output(stored.run(job, 1))).expect("text");
        for job in ["own", "keeper"] {
            assert!(!output(job).contains("s3cret"), "{job}: {}", output(job));
        }
        assert!(output("own").contains("PASSED_ON=passed\n"), "{}", output("own"));
        if uid.is_some() || !is_root {
            assert!(output("keeper").contains("denied"), "{}", output("keeper"));
            let daemons = output("daemon");
            assert!(daemons.contains("denied") && !daemons.contains("s3cret"), "{daemons}");
        }
        assert_eq!(daemon.stop().0.code(), Some(0));
    }
}

/// A program finds its daemon by its environment.
#[test]
fn program_can_use_commands() {
    let sandbox = Sandbox::new("inner");
    let list = format!("program: '{} list -o json'", env!("CARGO_BIN_EXE_cronhold"));
    let mut daemon = started(&sandbox, &[("inner", &list)]);
    daemon.wait_until_run("inner#1", "success");
    let output = sandbox.output(sandbox.stored().run("inner", 1));
    assert!(String::from_utf8_lossy(&output).contains("inner"), "{output:?}");
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// The output of a running program is stored while the program writes it.
#[test]
fn output_is_readable_while_program_runs() {
    let sandbox = Sandbox::new("live");
    let go = sandbox.path("go");
    let program = format!("echo begins; until [ -e {} ]; do sleep 0.02; done; printf end", go.display());
    let mut daemon = started(&sandbox, &[("talk", &format!("program: '{program}'"))]);
    daemon.wait_until_run("talk#1", "running");
    let run = sandbox.stored().run("talk", 1).clone();
    eventually("the first line is stored", || sandbox.output(&run) == b"begins\n");
    fs::write(go, "").expect("written");
    daemon.wait_until_run("talk#1", "success");
    assert_eq!(sandbox.output(&run), b"begins\nend");
    daemon.kill();
}

/// A program prints its secrets in pieces, before and after a restart of the daemon.
#[test]
fn secrets_that_a_program_prints_are_hidden() {
    let sandbox = Sandbox::new("secrets");
    let [go, key] = ["go", "key"].map(|name| sandbox.path(name));
    fs::write(&key, "-- begin of key --\nbm90IGEga2V5\n").expect("written");
    let program = format!(
        "printf 'token s3c'; until [ -e {} ]; do sleep 0.02; done; echo ret; echo \"$KEY\" | tail -1; \
         echo \"last $TOKEN\"",
        go.display()
    );
    let yaml = format!("program: |\n  {program}\nenv: {{TOKEN: {{env: VAULT}}, KEY: {{file: {}}}}}", key.display());
    let mut daemon = started(&sandbox, &[("talk", &yaml)]);
    daemon.wait_until_run("talk#1", "running");
    let run = sandbox.stored().run("talk", 1).clone();
    // The rest may be the beginning of the secret.
    eventually("the beginning is stored", || sandbox.output(&run) == b"token ");
    daemon.kill();
    fs::write(go, "").expect("written");
    let mut daemon = started(&sandbox, &[]);
    daemon.wait_until_run("talk#1", "success");
    let output = String::from_utf8(sandbox.output(&run)).expect("text");
    assert_eq!(output, "token ******\n************\nlast ******\n");
    let written = sandbox.stored().run("talk", 1).written.clone().expect("it wrote something");
    assert_eq!(written.tail.last().map(String::as_str), Some("last ******"));
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// `> /dev/stderr` opens the stream again. The output is complete and in order, also after a restart of the daemon.
#[test]
fn output_through_reopened_streams_is_stored_completely() {
    let sandbox = Sandbox::new("reopened");
    let step = |name: &str| format!("until [ -e {} ]; do sleep 0.02; done", sandbox.path(name).display());
    let program = format!(
        "echo one > /dev/stderr; echo two; {}; echo three > /dev/stdout; {}; echo four | tee /dev/stderr; exit 3",
        step("a"),
        step("b")
    );
    let short = "program: 'echo a > /dev/stderr; echo b; echo c > /dev/stdout'";
    let mut daemon = started(&sandbox, &[("long", &format!("program: '{program}'")), ("short", short)]);
    daemon.wait_until_run("long#1", "running");
    let run = sandbox.stored().run("long", 1).clone();
    let go = |name: &str| fs::write(sandbox.path(name), "").expect("written");
    let has = |text: &str| {
        let output = || String::from_utf8(sandbox.output(&run)).expect("text");
        eventually(text, || output() == text);
    };
    has("one\ntwo\n");
    daemon.kill();
    go("a");
    let mut daemon = sandbox.up();
    has("one\ntwo\nthree\n");
    go("b");
    daemon.wait_until_run("long#1", "failure");
    has("one\ntwo\nthree\nfour\nfour\n");
    eventually("the short one has ended", || sandbox.stored().run("short", 1).state == State::Success);
    assert_eq!(sandbox.output(sandbox.stored().run("short", 1)), b"a\nb\nc\n");
    let written = sandbox.stored().run("long", 1).written.clone().expect("it wrote something");
    assert_eq!(written.bytes, sandbox.output(&run).len() as u64);
    assert_eq!(written.tail, ["one", "two", "three", "four", "four"]);
    daemon.kill();
}

/// A program that truncates its output file itself. The stored output stays, later output is stored byte for byte, and
/// a notice marks the truncation. The same holds after a restart of the daemon.
#[test]
fn truncated_output_file_loses_no_stored_output() {
    let sandbox = Sandbox::new("emptied");
    let step = |name: &str| format!("until [ -e {} ]; do sleep 0.02; done", sandbox.path(name).display());
    let program = format!(
        "echo one; {}; {OUTPUT_FILE}; echo two > \"$file\"; {}; echo three; {}; echo four > \"$file\"; echo five; exit 3",
        step("a"),
        step("b"),
        step("c")
    );
    let mut daemon = started(&sandbox, &[("empty", &format!("env: {}\nprogram: '{program}'", outputs(&sandbox)))]);
    daemon.wait_until_run("empty#1", "running");
    let run = sandbox.stored().run("empty", 1).clone();
    let go = |name: &str| fs::write(sandbox.path(name), "").expect("written");
    let has = |text: &str| {
        let output = || String::from_utf8(sandbox.output(&run)).expect("text").replace(TRUNCATED, "|");
        eventually(text, || output() == text);
    };
    has("one\n");
    go("a");
    has("one\n|two\n");
    daemon.kill();
    go("b");
    let mut daemon = sandbox.up();
    has("one\n|two\nthree\n");
    go("c");
    daemon.wait_until_run("empty#1", "failure");
    has("one\n|two\nthree\n|four\nfive\n");
    let written = sandbox.stored().run("empty", 1).written.clone().expect("it wrote something");
    assert_eq!(written.bytes, sandbox.output(&run).len() as u64);
    assert_eq!(written.tail, ["four", "five"]);
    daemon.kill();
}

/// The stored output holds the notice of a truncation several times, and only one of them is ours.
#[test]
fn program_that_prints_the_truncation_notice_is_stored_once_after_a_restart() {
    let sandbox = Sandbox::new("notice");
    let notice = sandbox.path("notice");
    fs::write(&notice, TRUNCATED).expect("written");
    let step = |name: &str| format!("until [ -e {} ]; do sleep 0.02; done", sandbox.path(name).display());
    let program = format!(
        "cat {0}; {1}; {OUTPUT_FILE}; echo two > \"$file\"; cat {0}; {2}; echo three",
        notice.display(),
        step("a"),
        step("b")
    );
    let mut daemon = started(&sandbox, &[("notice", &format!("env: {}\nprogram: '{program}'", outputs(&sandbox)))]);
    daemon.wait_until_run("notice#1", "running");
    let run = sandbox.stored().run("notice", 1).clone();
    let go = |name: &str| fs::write(sandbox.path(name), "").expect("written");
    let output = || String::from_utf8(sandbox.output(&run)).expect("text").replace(TRUNCATED, "|");
    eventually("the first notice is stored", || output() == "|");
    go("a");
    eventually("the truncation is stored", || output() == "||two\n|");
    daemon.kill();
    go("b");
    let mut daemon = sandbox.up();
    daemon.wait_until_run("notice#1", "success");
    assert_eq!(output(), "||two\n|three\n");
    daemon.kill();
}

/// If the output is too long, the store keeps its beginning, a mark, and its end.
#[test]
fn long_output_keeps_beginning_and_end() {
    let sandbox = Sandbox::new("much");
    let mut daemon = started(&sandbox, &[("much", "program: 'seq 1 4000000'")]);
    daemon.wait_until_run("much#1", "success");
    let stored = sandbox.stored();
    let run = stored.run("much", 1);
    let whole: String = (1..=4_000_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(run.written.as_ref().map(|written| written.bytes), Some(whole.len() as u64));
    let output = String::from_utf8(sandbox.output(run)).expect("text");
    let (head, rest) = output.split_once("\n[… ").expect("a mark");
    let (count, tail) = rest.split_once(" bytes left out …]\n").expect("a mark");
    let count: usize = count.replace(',', "").parse().expect("a number");
    assert!(whole.starts_with(head) && head.len() >= 1 << 20, "{} bytes", head.len());
    assert!(whole.ends_with(tail) && tail.len() >= 9 << 20, "{} bytes", tail.len());
    assert_eq!(head.len() + count + tail.len(), whole.len());
    daemon.kill();
}

/// A program that ignores SIGTERM after its timeout is killed, with all of its child processes.
#[test]
fn timeout_kills_program_and_its_children() {
    let sandbox = Sandbox::new("timeout");
    let (deaf, child) = (sandbox.path("deaf"), sandbox.path("child"));
    let program = format!(
        "trap \"\" TERM; echo $$ > {}; setsid sh -c \"echo \\$\\$ > {}; sleep 50\" & while true; do sleep 0.1; done",
        deaf.display(),
        child.display()
    );
    let rest = "timeout: 1s\nstop: {grace: 300ms}";
    let mut daemon = started(
        &sandbox,
        &[
            ("deaf", &format!("program: '{program}'\n{rest}")),
            ("polite", &format!("program: 'trap \"exit 0\" TERM; while true; do sleep 0.05; done'\n{rest}")),
        ],
    );
    daemon.wait_until_run("deaf#1", "failure");
    daemon.wait_until_run("polite#1", "success");
    let stored = sandbox.stored();
    for job in ["deaf", "polite"] {
        assert_eq!(stored.run(job, 1).reason, Some(Reason::Timeout), "{job}");
    }
    assert_eq!(stored.run("deaf", 1).exit, Some(ProgramExit::Signal(Signal::KILL)));
    assert_eq!(stored.run("polite", 1).state, State::Success);
    for file in [deaf, child] {
        sandbox.wait_for_death(&file);
    }
    daemon.kill();
}
