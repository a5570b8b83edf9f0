//! Conditions of a real daemon: pools, and checks of files, responses and commands.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::daemon::{Sandbox, transcript};
use super::processes::eventually;
use super::service::{ServiceReply, TestService};

/// Jobs whose runs are released together, and the places of their pool.
const JOBS: usize = 30;
const PLACES: usize = 3;

/// What a verb prints as JSON.
fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let output = sandbox.verb(args).args(["-o", "json"]).output().expect("the binary starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn run(sandbox: &Sandbox, args: &[&str]) {
    let text = transcript(&mut sandbox.verb(&[&["run"], args].concat()));
    assert!(text.ends_with("exit 0\n"), "{text}");
}

/// What a run waits for.
fn waiting_for(sandbox: &Sandbox, job: &str) -> String {
    sandbox.stored().run(job, 1).blockers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

#[test]
fn pool_is_never_exceeded_by_runs_that_are_released_together() {
    let sandbox = Sandbox::new("pool");
    let log = sandbox.path("log");
    for number in 0..JOBS {
        let text = format!(
            "program: |\n  echo begin >> {log}\n  sleep 0.05\n  echo end >> {log}\nschedule: '@reboot'\noverlap: allow\nconditions:\n- after: gate\n- max_running: {{count: {PLACES}, pool: db}}\n",
            log = log.display()
        );
        sandbox.put_job(&format!("load/{number}"), &text);
    }
    sandbox.put_job("gate", "program: {noop: true}\n");
    let _daemon = sandbox.up();
    let is_waiting = |sandbox: &Sandbox| sandbox.stored().runs.iter().filter(|run| !run.blockers.is_empty()).count();
    eventually("all runs wait for the gate", || is_waiting(&sandbox) == JOBS);
    let pools = json(&sandbox, &["pools"]);
    assert_eq!((&pools[0]["name"], &pools[0]["size"], &pools[0]["active"]), (&"db".into(), &PLACES.into(), &0.into()));
    run(&sandbox, &["gate"]);
    let is_over = || sandbox.stored().runs.iter().filter(|run| run.state.name() == "success").count() == JOBS + 1;
    eventually("all runs have ended", is_over);
    let (mut active, mut most) = (0_usize, 0);
    for line in fs::read_to_string(&log).expect("the programs have run").lines() {
        active = if line == "begin" { active + 1 } else { active - 1 };
        most = most.max(active);
    }
    assert_eq!((active, most), (0, PLACES));
    let pools = json(&sandbox, &["pools"]);
    assert_eq!(
        (&pools[0]["active"], &pools[0]["waiting"], &pools[0]["runs"]),
        (&0.into(), &0.into(), &Value::Array(vec![]))
    );
    assert_eq!(pools[0]["jobs"].as_array().map(Vec::len), Some(JOBS));
}

#[test]
fn run_waits_for_a_file_and_a_command() {
    let sandbox = Sandbox::new("probes");
    let (file, flag) = (sandbox.path("ready"), sandbox.path("flag"));
    sandbox.put_job("file", &format!("program: 'true'\nconditions: [{{file: {}, poll: 1s}}]\n", file.display()));
    sandbox.put_job(
        "command",
        &format!(
            "program: 'true'\nconditions: [{{command: 'test -e {} || {{ echo not yet; exit 4; }}', poll: 1s}}]\n",
            flag.display()
        ),
    );
    let mut daemon = sandbox.up();
    run(&sandbox, &["file"]);
    run(&sandbox, &["command"]);
    eventually("the file was looked for", || waiting_for(&sandbox, "file").contains("does not exist"));
    eventually("the command was run", || waiting_for(&sandbox, "command").contains("exit code 4: not yet"));
    let shown = json(&sandbox, &["show", "file#1"]);
    assert!(shown["waiting_for"][0].as_str().is_some_and(|text| text.contains("does not exist")), "{shown}");
    fs::write(&file, "").expect("a file");
    fs::write(&flag, "").expect("a file");
    daemon.wait_until_run("file#1", "success");
    daemon.wait_until_run("command#1", "success");
}

/// A service that fails, hangs, closes and truncates holds up the runs that ask it, and says why; the run starts when it
/// gives the expected response.
#[test]
fn run_waits_for_an_expected_response() {
    let sandbox = Sandbox::new("http-checks");
    let is_up = Arc::new(AtomicBool::new(false));
    let known = Arc::clone(&is_up);
    let service = TestService::start(move |request| match (known.load(Ordering::SeqCst), request.path.as_str()) {
        (true, "/missing") => ServiceReply::status(404),
        (true, _) => ServiceReply::ok(b"state: ready".to_vec()),
        (false, "/hangs") => ServiceReply::Hang,
        (false, "/closes") => ServiceReply::Close,
        (false, "/truncates") => ServiceReply::Truncate,
        (false, "/loads") => ServiceReply::ok(b"state: loading".to_vec()),
        (false, _) => ServiceReply::status(503),
    });
    fs::write(sandbox.path("token"), "s3cret\n").expect("a file");
    let token = sandbox.path("token").display().to_string();
    let cases = [
        ("busy", format!("headers: {{Authorization: {{file: '{token}', prefix: 'Bearer '}}}}"), "status 503"),
        ("hangs", "timeout: 1s".to_owned(), "did not respond within 1s"),
        ("closes", String::new(), "127.0.0.1"),
        ("truncates", String::new(), "127.0.0.1"),
        ("loads", "body_matches: 'state: ready'".to_owned(), "the body does not match `state: ready`"),
        ("missing", "method: HEAD, expect: 404".to_owned(), "status 503"),
        ("unreadable", "body_file: /no/such/file".to_owned(), "cannot read the body from /no/such/file"),
    ];
    for (name, settings, _) in &cases {
        let url = service.url(&format!("/{name}"));
        let job = format!("program: 'true'\nconditions: [{{http: {{url: '{url}', {settings}}}, poll: 1s}}]\n");
        sandbox.put_job(name, &job);
    }
    let mut daemon = sandbox.up();
    for (name, ..) in &cases {
        run(&sandbox, &[name]);
    }
    for (name, _, message) in &cases {
        eventually(&format!("{name} was asked"), || waiting_for(&sandbox, name).contains(message));
    }
    is_up.store(true, Ordering::SeqCst);
    for (name, ..) in cases.iter().filter(|(name, ..)| *name != "unreadable") {
        daemon.wait_until_run(&format!("{name}#1"), "success");
    }
    let request = &service.requests("/busy")[0];
    assert_eq!((request.method.as_str(), request.header("authorization")), ("GET", "Bearer s3cret"));
    assert_eq!(sandbox.stored().run("unreadable", 1).state.name(), "waiting");
}

/// Twenty checks of one second each would take twenty seconds one after the other. Each waits here until all have begun.
#[test]
fn checks_of_twenty_runs_are_carried_out_in_parallel() {
    let sandbox = Sandbox::new("parallel");
    let log = sandbox.path("begun");
    let command = format!("echo x >> {0}; while [ $(wc -l < {0}) -lt 20 ]; do sleep 0.1; done", log.display());
    for number in 0..20 {
        let text = format!("program: 'true'\nschedule: '@reboot'\nconditions: [{{command: '{command}'}}]\n");
        sandbox.put_job(&format!("job{number}"), &text);
    }
    let _daemon = sandbox.up();
    let successes = || sandbox.stored().runs.iter().filter(|run| run.state.name() == "success").count();
    eventually("all runs have started", || successes() == 20);
    assert_eq!(fs::read_to_string(&log).expect("there").lines().count(), 20, "each check was made once");
}

#[test]
fn check_that_was_under_way_when_the_daemon_was_killed_is_repeated() {
    let sandbox = Sandbox::new("killed-check");
    let (begun, go) = (sandbox.path("begun"), sandbox.path("go"));
    let command = format!("echo x >> {}; while [ ! -e {} ]; do sleep 0.1; done", begun.display(), go.display());
    sandbox.put_job("job", &format!("program: 'true'\nconditions: [{{command: '{command}', poll: 1s}}]\n"));
    let daemon = sandbox.up();
    run(&sandbox, &["job"]);
    let begun_count = || fs::read_to_string(&begun).map_or(0, |text| text.lines().count());
    eventually("the check has begun", || begun_count() == 1);
    daemon.kill();
    let mut daemon = sandbox.up();
    eventually("the check has begun again", || begun_count() == 2);
    fs::File::create(&go).and_then(|mut file| file.write_all(b"")).expect("a file");
    daemon.wait_until_run("job#1", "success");
    assert_eq!(sandbox.stored().runs.len(), 1, "checks are not runs");
}

#[test]
fn condition_that_does_not_hold_in_time_skips_the_run_if_it_says_so() {
    let sandbox = Sandbox::new("on-timeout");
    let condition = "{file: /no/such/file, poll: 1s, timeout: 1s";
    sandbox.put_job("skips", &format!("program: 'true'\nconditions: [{condition}, on_timeout: skip}}]\n"));
    sandbox.put_job("fails", &format!("program: 'true'\nconditions: [{condition}}}]\n"));
    let mut daemon = sandbox.up();
    run(&sandbox, &["skips"]);
    run(&sandbox, &["fails"]);
    daemon.wait_until_run("skips#1", "skipped");
    daemon.wait_until_run("fails#1", "error");
}
