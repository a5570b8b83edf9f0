//! Alarms of a real daemon: runs that are late, occurrences that were missed, filters by outcome, the actions of all jobs,
//! and the pipeline in the examples.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Cursor, Record, RecordVersion, TransitionKind};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::{Store, Unit};
use cronhold_store_sqlite::{Options, SqliteStore};
use serde_json::Value;

use super::daemon::{Daemon, Sandbox, transcript};
use super::processes::eventually;
use super::receiver::{Reaction, WebhookReceiver};

/// The bodies of all webhooks so far.
fn bodies(receiver: &WebhookReceiver) -> Vec<Value> {
    receiver.requests().iter().map(|request| serde_json::from_str(&request.body).expect("JSON")).collect()
}

/// The number and the event of each webhook so far.
fn events(receiver: &WebhookReceiver) -> Vec<String> {
    let text = |body: Value| format!("{} {}", body["number"], body["event"].as_str().unwrap_or_default());
    bodies(receiver).into_iter().map(text).collect()
}

fn hook(receiver: &WebhookReceiver) -> String {
    format!("webhook: 'http://127.0.0.1:{}/'", receiver.port)
}

/// Runs a job and waits until the run has ended.
fn run(sandbox: &Sandbox, args: &[&str]) {
    let printed = transcript(&mut sandbox.verb(&[&["run"], args, &["--wait"]].concat()));
    assert!(printed.contains("exit"), "{printed}");
}

#[test]
fn late_run_is_reported_once_although_the_daemon_is_killed() {
    let sandbox = Sandbox::new("late");
    let receiver = WebhookReceiver::start(|_, _| Reaction::Accept);
    let go = sandbox.path("go");
    let job = |late: &str, program: &str| {
        format!("late: {late}\nprogram: {program}\non: {{late: [{{{}}}]}}\n", hook(&receiver))
    };
    sandbox.put_job("slow", &job("2s", &format!("until [ -e {} ]; do sleep 0.1; done", go.display())));
    sandbox.put_job("quick", &job("1h", "'true'"));
    let mut daemon = sandbox.up();
    run(&sandbox, &["quick"]);
    assert!(transcript(&mut sandbox.verb(&["run", "slow"])).ends_with("exit 0\n"));
    daemon.wait_until_run("slow#1", "running");
    // The time passes while no daemon runs, or right after the start of the next one.
    daemon.kill();
    let daemon = sandbox.up();
    eventually("the late run is reported", || events(&receiver) == ["1 late"]);
    eventually("that is recorded", || sandbox.actions().iter().all(|action| !action.is_pending()));
    daemon.kill();
    let mut daemon = sandbox.up();
    fs::write(&go, "").expect("a file");
    daemon.wait_until_run("slow#1", "success");
    daemon.stop();
    let stored = sandbox.stored();
    let slow = stored.run("slow", 1);
    let notes: Vec<_> = slow.log.iter().filter(|entry| entry.kind == TransitionKind::Late).collect();
    assert_eq!((notes.len(), slow.late_at, slow.actions), (1, None, 1));
    assert!(notes[0].at >= slow.nominal.plus(Span::from_secs(2)));
    assert_eq!((stored.run("quick", 1).actions, stored.run("quick", 1).late_at), (0, None));
    assert_eq!(events(&receiver), ["1 late"], "it is reported once");
    assert_eq!(bodies(&receiver)[0]["state"], "running");
}

/// Sets a schedule back, as if its daemon had stopped an hour ago.
fn stop_an_hour_ago(sandbox: &Sandbox) {
    let zones = Arc::new(ZoneRegistry::bundled());
    let options = Options { clock: Arc::new(|| Instant::EPOCH), zones, size_max: None };
    let executor = tokio::runtime::Builder::new_current_thread().build().expect("an executor");
    let cursor = sandbox.stored().cursors.remove(0);
    let key = Record::Cursor(Arc::clone(&cursor)).key();
    let store = SqliteStore::open(sandbox.path("home/cronhold.db"), options).expect("a store");
    executor.block_on(async {
        let found = store.load(std::slice::from_ref(&key)).await.expect("the store works").remove(0).expect("a cursor");
        let next = cursor.next.expect("it has a next one").minus(Span::from_secs(3_600));
        let (since, last) = (next.minus(Span::from_secs(60)), None);
        let earlier = Cursor { since, last, next: Some(next), wake: Some(next), ..(*cursor).clone() };
        let unit = Unit {
            version: RecordVersion::new(900, 1),
            compare: vec![(key, Some(found.version))],
            changes: vec![RecordChange::Put(Record::Cursor(Arc::new(earlier)))],
            take: Vec::new(),
            free: Vec::new(),
        };
        assert!(store.commit(vec![unit]).await.iter().all(Result::is_ok));
    });
}

#[test]
fn downtime_is_one_missed_event_with_its_count() {
    let sandbox = Sandbox::new("missed");
    let receiver = WebhookReceiver::start(|_, _| Reaction::Accept);
    let seen = sandbox.path("seen");
    let command = format!(r#"command: echo "$CRONHOLD_MISSED_COUNT $CRONHOLD_REASON" >{}"#, seen.display());
    sandbox.put_job(
        "often",
        &format!(
            "program: 'true'\nschedule: {{every: 5m}}\ncatch_up: none\non:\n  missed:\n  - {}\n  - {command}\n",
            hook(&receiver)
        ),
    );
    let daemon = sandbox.up();
    eventually("the job is loaded", || sandbox.stored().cursors.iter().any(|cursor| cursor.next.is_some()));
    daemon.stop();
    stop_an_hour_ago(&sandbox);
    let daemon = sandbox.up();
    eventually("the missed occurrences are reported", || events(&receiver).len() == 1);
    eventually("the command has run", || fs::read_to_string(&seen).is_ok_and(|text| text.ends_with('\n')));
    let body = bodies(&receiver).remove(0);
    let span = sandbox.stored().spans.remove(0);
    assert_eq!((&body["event"], &body["state"]), (&"missed".into(), &"skipped".into()));
    assert_eq!(body["missed"]["count"], span.range.count);
    assert!((11..=13).contains(&span.range.count), "{}", span.range.count);
    assert_eq!(body["missed"]["to"], span.range.to.to_string());
    assert_eq!(fs::read_to_string(&seen).expect("there"), format!("{} missed\n", span.range.count));
    let name = format!("often#{}", span.number);
    eventually("the actions of the span are shown", || {
        transcript(&mut sandbox.verb(&["show", &name])).matches("on missed: ").count() == 2
    });
    daemon.stop();
}

#[test]
fn filters_select_the_second_failure_and_the_recovery() {
    let sandbox = Sandbox::new("filters");
    let receiver = WebhookReceiver::start(|_, _| Reaction::Accept);
    let (broken, hook) = (sandbox.path("broken"), hook(&receiver));
    sandbox.put_job(
        "job",
        &format!(
            "params: {{region: {{choices: [eu, us]}}}}\nlabels: [prod]\nprogram: '[ ! -e {} ]'\non:\n  failure:\n  - {{{hook}, when: {{in_a_row: 2}}}}\n  - {{{hook}, when: {{labels: [test]}}}}\n  success:\n  - {{{hook}, when: {{outcome: recovered, args: {{region: [eu]}}, labels: [prod]}}}}\n",
            broken.display()
        ),
    );
    let mut daemon = sandbox.up();
    let mut number = 0;
    // Each pair of args has outcomes of its own.
    for (is_broken, region) in [(0, "eu"), (1, "eu"), (1, "us"), (1, "eu"), (1, "eu"), (0, "us"), (0, "eu"), (0, "eu")]
    {
        match is_broken {
            0 => drop(fs::remove_file(&broken)),
            _ => fs::write(&broken, "").expect("a file"),
        }
        number += 1;
        assert!(transcript(&mut sandbox.verb(&["run", "job", &format!("region={region}")])).ends_with("exit 0\n"));
        daemon.wait_until_run(&format!("job#{number}"), if is_broken == 0 { "success" } else { "failure" });
        if number == 4 {
            // The outcomes outlive the daemon.
            daemon.kill();
            daemon = sandbox.up();
        }
    }
    eventually("both events are reported", || receiver.requests().len() >= 2);
    eventually("that is recorded", || sandbox.actions().iter().all(|action| !action.is_pending()));
    let mut found = events(&receiver);
    found.sort();
    assert_eq!(found, ["4 failure", "7 success"]);
    daemon.stop();
}

#[test]
fn defaults_of_the_daemon_apply_to_jobs_of_all_sources() {
    let sandbox = Sandbox::new("defaults");
    let receiver = WebhookReceiver::start(|_, _| Reaction::Accept);
    fs::write(sandbox.path("all.yaml"), format!("on:\n  failure:\n  - {}\n", hook(&receiver))).expect("a file");
    sandbox.put_job("file", "program: exit 3\n");
    sandbox.put_job("declines", "program: exit 3\non: {failure: []}\n");
    let mut command = sandbox.command(&["--jobs", "jobs"]);
    let mut daemon = Daemon::start(command.env("CRONHOLD_DEFAULTS", sandbox.path("all.yaml")));
    daemon.wait_for("ready");
    let mut add = sandbox.verb(&["add"]);
    assert!(transcript(add.args(["stored", "@never", "--", "false"])).ends_with("exit 0\n"));
    for job in ["file", "declines", "stored"] {
        assert!(transcript(&mut sandbox.verb(&["run", job])).ends_with("exit 0\n"));
        daemon.wait_until_run(&format!("{job}#1"), "failure");
    }
    eventually("both failures are reported", || receiver.requests().len() >= 2);
    eventually("that is recorded", || sandbox.actions().iter().all(|action| !action.is_pending()));
    let mut jobs: Vec<String> =
        bodies(&receiver).iter().map(|body| body["job"].as_str().expect("a job").to_owned()).collect();
    jobs.sort();
    assert_eq!(jobs, ["file", "stored"]);
    daemon.stop();
    let printed = transcript(&mut sandbox.command(&["--defaults", "absent.yaml"]));
    assert!(printed.contains("--defaults: cannot read absent.yaml"), "{printed}");
    fs::write(sandbox.path("wrong.yaml"), "on: {failed: []}\n").expect("a file");
    let printed = transcript(&mut sandbox.command(&["--defaults", "wrong.yaml"]));
    assert!(printed.contains("wrong.yaml:1:6") && printed.contains("`failed` is not"), "{printed}");
}

/// The pipeline of the examples, in a directory of its own, and with the calendars of the examples.
#[test]
fn pipeline_of_the_examples_works_fails_and_recovers() {
    let sandbox = Sandbox::new("pipeline");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/jobs");
    let folder = sandbox.path("pipeline");
    for name in ["fetch", "load", "report", "keep-last"] {
        let text = fs::read_to_string(examples.join(format!("pipeline/{name}.yaml"))).expect("an example");
        let text = text.replace("/var/tmp/cronhold-pipeline", folder.to_str().expect("UTF-8"));
        // Runs of the schedules would come in between.
        let text = text.replace("every: 1m", "every: 1m, enabled: false");
        sandbox.put_job(&format!("pipeline/{name}"), &text);
    }
    fs::create_dir_all(sandbox.path("jobs/calendars")).expect("a folder");
    let calendar = "calendars/bank-holidays.ics";
    fs::copy(examples.join(calendar), sandbox.path("jobs").join(calendar)).expect("copied");
    let mut daemon = sandbox.up();
    let fetch = |daemon: &mut Daemon, number: u32, region: &str, state: &str| {
        let args = ["run", "pipeline/fetch", &format!("region={region}")];
        assert!(transcript(&mut sandbox.verb(&args)).ends_with("exit 0\n"));
        daemon.wait_until_run(&format!("pipeline/fetch#{number}"), state);
    };
    fetch(&mut daemon, 1, "eu", "success");
    fetch(&mut daemon, 2, "us", "success");
    for number in [1, 2] {
        daemon.wait_until_run(&format!("pipeline/report#{number}"), "success");
    }
    let report = fs::read_to_string(folder.join("report-eu.txt")).expect("a report");
    assert!(report.contains("sum        107.60"), "{report}");
    assert!(!folder.join("alarms.log").exists());
    fs::write(folder.join("broken"), "").expect("a file");
    for number in [3, 4, 5] {
        fetch(&mut daemon, number, "eu", "failure");
        daemon.wait_until_run(&format!("pipeline/keep-last#{}", number - 2), "success");
    }
    fs::remove_file(folder.join("broken")).expect("there");
    fetch(&mut daemon, 6, "eu", "success");
    daemon.wait_until_run("pipeline/report#3", "success");
    eventually("the commands have run", || sandbox.actions().iter().all(|action| !action.is_pending()));
    let alarms = fs::read_to_string(folder.join("alarms.log")).expect("alarms");
    let expected = "pipeline/fetch#4 failed twice for eu, exit code 3\npipeline/fetch#6 works again for eu\n";
    assert_eq!(alarms, expected);
    daemon.stop();
}
