//! The life of requests and of remote tasks, by the reports that follow.

use super::super::testing::{http_run, remote_run};
use super::*;

fn up(secs: u64) -> Span {
    Span::from_secs(secs)
}

/// The reports that there are at an uptime, as text.
fn reports(table: &mut ServiceTable, secs: u64) -> String {
    let words = table.take_reports(up(secs), 10).into_iter().map(|(_, report)| match report {
        ProgramReport::Launched => "launched".to_owned(),
        ProgramReport::TaskStarted(task) => format!("task {task}"),
        ProgramReport::Progress(progress) => progress.to_string(),
        ProgramReport::Lost => "lost".to_owned(),
        ProgramReport::NotLaunched(why) => format!("not launched: {why}"),
        ProgramReport::Ended(ExitOutcome { reason, success, .. }) => {
            format!("ended {success}: {}", reason.map(|reason| reason.to_string()).unwrap_or_default())
        }
        other => format!("{other:?}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn launched(kill_at: Option<u64>) -> (ServiceTable, Arc<Run>, CancelToken) {
    let (mut table, run) = (ServiceTable::default(), Arc::new(http_run(false, State::Starting)));
    table.launch(&run, up(10), kill_at.map(up), up(0));
    table.launch(&run, up(10), kill_at.map(up), up(0));
    let mut requests = table.take_requests();
    assert_eq!(requests.len(), 1, "a launch is idempotent");
    assert_eq!(reports(&mut table, 0), "launched");
    (table, run, requests.remove(0).token)
}

/// A request of the run has a final response whose body has a length.
fn succeed(table: &mut ServiceTable, run: &Run, token: &CancelToken, output: u64) {
    if table.receive(run.id, token, Judgement::Final(ExitOutcome::SUCCESS), up(1)) {
        table.output_written(run.id, output);
    }
}

#[test]
fn end_is_reported_after_the_output_is_stored() {
    let (mut table, run, token) = launched(None);
    succeed(&mut table, &run, &token, 7);
    assert_eq!((reports(&mut table, 1).as_str(), table.next()), ("", None));
    assert_eq!(table.take_unstored(9), [(run.id, 7)]);
    table.signal(run.id, Signal::TERM, up(1));
    table.output_stored(run.id, OutputSummary { bytes: 7, tail: vec!["a line".to_owned()], stderr: None });
    assert_eq!(table.next(), Some(Span::ZERO));
    assert_eq!(reports(&mut table, 1), "ended true: ");
    // The report may be lost: it is repeated until it is committed.
    table.adopt(&run, up(1));
    assert_eq!(reports(&mut table, 1), "ended true: ");
    assert!(table.settle(run.id) && !table.settle(run.id));
    table.adopt(&Arc::new(http_run(false, State::Running)), up(1));
    assert_eq!(reports(&mut table, 1), format!("ended false: no response: {INTERRUPTED}"));
}

#[test]
fn response_without_a_body_needs_no_output() {
    let (mut table, run, token) = launched(None);
    succeed(&mut table, &run, &token, 0);
    assert_eq!(reports(&mut table, 1), "ended true: ");
}

#[test]
fn signal_ends_the_request_and_its_late_result_is_ignored() {
    let (mut table, run, token) = launched(Some(30));
    table.signal(run.id, Signal::TERM, up(1));
    assert!(token.is_cancelled());
    assert_eq!(reports(&mut table, 1), "ended false: signal SIGTERM");
    succeed(&mut table, &run, &token, 7);
    assert_eq!((reports(&mut table, 99).as_str(), table.next()), ("", None));
    assert!(table.take_unstored(9).is_empty());
    table.settle(run.id);
    table.signal(run.id, Signal::KILL, up(1));
    assert_eq!(reports(&mut table, 1), "lost");
}

#[test]
fn lease_ends_the_request_unless_extended() {
    for (extension, end) in [(None, 20), (Some((40, 10)), 40), (Some((15, 10)), 20), (Some((99, 20)), 20)] {
        let (mut table, run, token) = launched(Some(20));
        if let Some((until, at)) = extension {
            table.extend(&[(run.id, up(until))], up(at));
        }
        assert_eq!(table.next(), Some(up(end)), "{extension:?}");
        assert_eq!(reports(&mut table, end - 1), "", "{extension:?}");
        assert!(!token.is_cancelled());
        assert_eq!(reports(&mut table, end), "ended false: lock lost", "{extension:?}");
        assert!(token.is_cancelled());
    }
    let (mut table, run) = (ServiceTable::default(), Arc::new(http_run(false, State::Starting)));
    table.launch(&run, up(9), Some(up(5)), up(5));
    table.launch(&run, up(4), None, up(5));
    assert_eq!(reports(&mut table, 5), format!("not launched: {LATE}, not launched: {LATE}"));
}

#[test]
fn adopted_request_is_sent_again_only_if_the_job_allows_it() {
    let interrupted = format!("ended false: no response: {INTERRUPTED}");
    for (is_repeatable, state, expected, count) in [
        (false, State::Starting, "lost", 0),
        (false, State::Running, interrupted.as_str(), 0),
        (false, State::Stopping, "ended false: signal SIGTERM", 0),
        (true, State::Starting, "launched", 1),
        (true, State::Running, "launched", 1),
        (true, State::Stopping, "ended false: signal SIGTERM", 0),
    ] {
        let (mut table, run) = (ServiceTable::default(), Arc::new(http_run(is_repeatable, state)));
        table.adopt(&run, up(1));
        assert_eq!(reports(&mut table, 1), expected, "{is_repeatable} {state}");
        assert_eq!(table.take_requests().len(), count);
        if count == 1 {
            table.adopt(&run, up(1));
            assert_eq!((reports(&mut table, 1).as_str(), table.take_requests().len()), ("launched", 0));
        }
    }
}

/// The requests to send, as text, with the token of the last one.
fn requests(table: &mut ServiceTable) -> (String, CancelToken) {
    let tasks = table.take_requests();
    let words: Vec<String> = tasks.iter().map(|task| format!("{:?}", task.kind).to_lowercase()).collect();
    (words.join(", "), tasks.last().map(|task| task.token.clone()).unwrap_or_default())
}

/// A table with a task that was started and stored, before its first poll.
fn with_task(is_repeatable: bool) -> (ServiceTable, Arc<Run>) {
    let mut table = ServiceTable::default();
    let run = Arc::new(remote_run(is_repeatable, State::Starting, None));
    table.launch(&run, up(10), None, up(0));
    let (sent, token) = requests(&mut table);
    assert_eq!((sent.as_str(), reports(&mut table, 0).as_str()), ("start", "launched"));
    assert!(!table.receive(run.id, &token, Judgement::TaskStarted("7".to_owned()), up(1)));
    assert_eq!(
        (reports(&mut table, 1).as_str(), table.next()),
        ("task 7", None),
        "it is not polled before it is stored"
    );
    let run = Arc::new(remote_run(is_repeatable, State::Running, Some("7")));
    table.committed(&run, up(1));
    assert_eq!(table.next(), Some(up(11)));
    (table, run)
}

/// The requests that are due at an uptime.
fn due(table: &mut ServiceTable, secs: u64) -> (String, CancelToken) {
    assert_eq!(reports(table, secs), "");
    requests(table)
}

#[test]
fn task_is_polled_until_it_is_over() {
    let (mut table, run) = with_task(false);
    assert_eq!(due(&mut table, 10).0, "");
    let (sent, token) = due(&mut table, 11);
    assert_eq!((sent.as_str(), table.next()), ("poll", None));
    assert!(!table.receive(run.id, &token, Judgement::Pending, up(12)));
    assert!(!table.receive(run.id, &token, Judgement::Pending, up(99)), "an old result is ignored");
    let (sent, token) = due(&mut table, 22);
    assert_eq!(sent, "poll");
    succeed(&mut table, &run, &token, 0);
    assert_eq!(reports(&mut table, 22), "ended true: ");
}

#[test]
fn service_that_does_not_answer_is_polled_less_often_and_for_ever() {
    let (mut table, run) = with_task(false);
    let mut now = 11;
    for wait in [20, 40, 60, 60, 60, 60, 60, 60] {
        let (sent, token) = due(&mut table, now);
        assert_eq!(sent, "poll", "{now}");
        table.receive(run.id, &token, Judgement::Unanswered, up(now));
        now += wait;
        assert_eq!(table.next(), Some(up(now)));
    }
}

#[test]
fn task_that_the_service_refuses_ends_after_a_few_polls() {
    let (mut table, run) = with_task(false);
    for number in 1..=REFUSALS_MAX {
        let now = 1 + 10 * u64::from(number);
        let (_, token) = due(&mut table, now);
        let refused = Judgement::Refused(broken(Reason::Status(404)));
        assert_eq!(table.receive(run.id, &token, refused, up(now)), number == REFUSALS_MAX);
    }
    table.output_written(run.id, 0);
    assert_eq!(reports(&mut table, 99), "ended false: status 404");
}

#[test]
fn stop_cancels_the_task_and_waits_for_its_end() {
    let (mut table, run) = with_task(false);
    let (_, poll) = due(&mut table, 11);
    table.signal(run.id, Signal::TERM, up(12));
    assert!(poll.is_cancelled());
    let (sent, token) = requests(&mut table);
    assert_eq!(sent, "cancel");
    table.signal(run.id, Signal::TERM, up(12));
    // The cancellation is tried again until the service accepts it.
    table.receive(run.id, &token, Judgement::Cancelled { is_accepted: false }, up(13));
    let (sent, token) = due(&mut table, 14);
    assert_eq!(sent, "cancel");
    table.receive(run.id, &token, Judgement::Cancelled { is_accepted: true }, up(14));
    let (sent, token) = due(&mut table, 15);
    assert_eq!(sent, "poll");
    assert!(table.receive(run.id, &token, Judgement::Refused(broken(Reason::Status(404))), up(15)));
    table.output_written(run.id, 0);
    assert_eq!(reports(&mut table, 15), "ended false: signal SIGTERM");
}

#[test]
fn kill_ends_the_run_at_once_and_cancels_the_task() {
    let (mut table, run) = with_task(false);
    table.signal(run.id, Signal::KILL, up(5));
    assert_eq!(requests(&mut table).0, "cancel");
    assert_eq!(reports(&mut table, 5), "ended false: signal SIGKILL");
}

/// A task cannot be cancelled before the service has named it.
#[test]
fn stop_during_the_start_cancels_the_task_when_it_is_stored() {
    let mut table = ServiceTable::default();
    let run = Arc::new(remote_run(false, State::Starting, None));
    table.launch(&run, up(10), None, up(0));
    let (_, token) = requests(&mut table);
    table.signal(run.id, Signal::TERM, up(1));
    assert!(!token.is_cancelled());
    table.receive(run.id, &token, Judgement::TaskStarted("7".to_owned()), up(1));
    assert_eq!(requests(&mut table).0, "");
    table.committed(&Arc::new(remote_run(false, State::Stopping, Some("7"))), up(2));
    assert_eq!(requests(&mut table).0, "cancel");
}

#[test]
fn task_without_a_lease_is_polled_again_when_the_lease_is_extended() {
    let (mut table, run) = with_task(false);
    table.extend(&[(run.id, up(5))], up(2));
    assert_eq!(due(&mut table, 5).0, "");
    assert_eq!(table.next(), None);
    table.extend(&[(run.id, up(30))], up(20));
    assert_eq!(due(&mut table, 20).0, "poll");
}

#[test]
fn adopted_run_follows_its_task() {
    let task = Some("7");
    for (is_repeatable, state, task, reported, sent) in [
        (false, State::Running, task, "launched", "poll"),
        (false, State::Starting, task, "launched", "poll"),
        (false, State::Stopping, task, "launched", "cancel"),
        (false, State::Starting, None, "lost", ""),
        (false, State::Stopping, None, "ended false: signal SIGTERM", ""),
        (true, State::Running, None, "launched", "start"),
        (true, State::Stopping, None, "ended false: signal SIGTERM", ""),
    ] {
        let (mut table, run) = (ServiceTable::default(), Arc::new(remote_run(is_repeatable, state, task)));
        table.adopt(&run, up(1));
        assert_eq!((requests(&mut table).0.as_str(), reports(&mut table, 1).as_str()), (sent, reported), "{state}");
    }
    // A run that another node has taken over is left alone.
    let (mut table, run) = with_task(false);
    assert!(table.settle(run.id));
    assert_eq!((reports(&mut table, 99).as_str(), requests(&mut table).0.as_str(), table.next()), ("", "", None));
}
