//! A run on one line, as all commands about runs print it; and one run in detail.

use std::io::{self, Write};

use cronhold_api::{ActionSummary, ProgressSummary, RunDetail, RunSummary, RunTriggerSummary, ServiceResponse};
use cronhold_core::plugin::PluginProgress;
use cronhold_core::run::{Reason, State};
use cronhold_schedule::Instant;

use super::{CellColour, LocalTimeFormat, TimeDisplayFlags, counted, rounded, took as span_words, visible};

/// Triggers of a run that are printed; JSON has all of them.
const TRIGGERS_SHOWN: usize = 10;

/// The name of a run, such as `backup#42`.
pub(crate) fn name(run: &RunSummary) -> String {
    format!("{}#{}", run.job, run.number)
}

/// The start time of its program, or `None` if it has not started.
pub(crate) fn started(run: &RunSummary) -> Option<Instant> {
    run.times.running.or(run.times.starting)
}

/// The duration of its program so far, or `None` if it has not started.
pub(crate) fn took(run: &RunSummary, now: Instant) -> Option<String> {
    let started = started(run)?;
    Some(match run.times.finished {
        Some(finished) => span_words(finished.since(started)),
        None => format!("{} so far", rounded(now.since(started))),
    })
}

/// The reason of the state, and notes such as the attempt.
pub(crate) fn why(run: &RunSummary, clock: &LocalTimeFormat) -> String {
    let parts: Vec<String> = reason(run, clock).into_iter().chain(notes(run, clock)).collect();
    visible(&parts.join(", ")).into_owned()
}

/// The reason of the state with the exit code or signal; or when the run is due, or what it waits for.
fn reason(run: &RunSummary, clock: &LocalTimeFormat) -> Option<String> {
    match &run.reason {
        // After a decision of an operator, the exit code of the program is not relevant.
        Some(reason) if matches!(Reason::parse(reason), Ok(Reason::ByOperator(_))) => Some(reason.clone()),
        Some(reason) => Some(with_exit(reason, run)),
        None if run.state == State::Scheduled && starts_at(run) > clock.now => {
            Some(format!("due in {}", rounded(starts_at(run).since(clock.now))))
        }
        None if !run.waiting_for.is_empty() => Some(format!("waits for {}", blockers(run))),
        None => exit(run),
    }
}

/// What a waiting run waits for, after "for".
fn blockers(run: &RunSummary) -> String {
    run.waiting_for.join(" and ")
}

/// When a scheduled run starts. Daemons of earlier versions report only its nominal time.
fn starts_at(run: &RunSummary) -> Instant {
    run.due.unwrap_or(run.nominal_time)
}

/// Notes that apply in any state.
fn notes(run: &RunSummary, clock: &LocalTimeFormat) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Some(count), Some(to)) = (run.count, run.to) {
        let count = counted(usize::try_from(count).unwrap_or(usize::MAX), "occurrence");
        notes.push(format!("{count} until {}", clock.at(to)));
    }
    if run.attempt > 1 {
        notes.push(format!("attempt {}", run.attempt));
    }
    if run.rerun_of.is_some() {
        notes.push("rerun".to_owned());
    }
    notes
}

/// The args of a run as `NAME=VALUE` words.
pub(crate) fn args(run: &RunSummary) -> String {
    let args: Vec<String> = run.args.iter().map(|(name, value)| format!("{name}={value}")).collect();
    visible(&args.join(" ")).into_owned()
}

/// A run on one line: name, state, reason and notes.
pub(crate) fn line(run: &RunSummary, clock: &LocalTimeFormat, colours: bool) -> String {
    let state = CellColour::of(run.state).paint(run.state.name(), colours);
    let reason = match reason(run, clock) {
        Some(_) if run.reason.is_none() && !run.waiting_for.is_empty() => format!(" for {}", blockers(run)),
        Some(reason) => format!(": {reason}"),
        None => String::new(),
    };
    let mut notes = notes(run, clock);
    notes.extend(took(run, clock.now).filter(|_| run.state.is_finished()).map(|took| format!("took {took}")));
    let notes: String = notes.iter().map(|note| format!(", {note}")).collect();
    format!("{} {state}{}{notes}", visible(&name(run)), visible(&reason))
}

/// Prints a run after an operation: one line, or JSON or YAML.
pub(crate) fn answer(
    run: &RunSummary,
    shown: &TimeDisplayFlags,
    clock: &LocalTimeFormat,
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    match shown.encoding() {
        Some(encoding) => encoding.write(run, out),
        None => writeln!(out, "{}", line(run, clock, colours)),
    }
}

/// Prints a run in detail.
pub(crate) fn detail(
    detail: &RunDetail,
    clock: &LocalTimeFormat,
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let run = &detail.run;
    writeln!(out, "{}", line(run, clock, colours))?;
    let mut field = |name: &str, value: Option<String>| match value.filter(|value| !value.is_empty()) {
        Some(value) => writeln!(out, "  {name:<9} {}", visible(&value)),
        None => Ok(()),
    };
    field("id", Some(run.id.clone()))?;
    field("nominal", Some(clock.both(run.nominal_time)))?;
    field("schedule", detail.schedule.clone())?;
    field("args", Some(args(run)))?;
    field("command", detail.command.clone())?;
    field("lock", detail.lock.clone())?;
    field("node", run.node.clone())?;
    field("retry of", run.retry_of.clone())?;
    field("retry", run.retried_by.clone())?;
    field("rerun of", run.rerun_of.clone())?;
    field("triggers", triggers(&detail.triggers))?;
    field("task", detail.task.clone())?;
    field("response", detail.response.as_ref().map(response))?;
    field("progress", detail.progress.as_ref().map(|found| progress(found, clock)))?;
    field("output", (run.output_bytes > 0).then(|| format!("{} bytes", run.output_bytes)))?;
    for line in &run.tail {
        writeln!(out, "    {}", visible(line))?;
    }
    writeln!(out, "  steps")?;
    for step in &detail.log {
        // That it was an operator stands before it already.
        let message = match Reason::parse(&step.message) {
            Ok(Reason::ByOperator(why)) => why,
            _ => step.message.clone(),
        };
        let message = if message.is_empty() { String::new() } else { format!(": {}", visible(&message)) };
        let state = CellColour::of(step.state).paint(step.state.name(), colours);
        writeln!(out, "    {} {state} by {}{message}", precise(step.at, clock), visible(&step.actor))?;
    }
    if !detail.actions.is_empty() {
        writeln!(out, "  actions")?;
    }
    for action in &detail.actions {
        writeln!(out, "    {}", visible(&action_line(action, clock)))?;
    }
    Ok(())
}

/// The ids of the triggers that a run stands for; `None` if there are none.
fn triggers(triggers: &[RunTriggerSummary]) -> Option<String> {
    let ids: Vec<&str> = triggers.iter().take(TRIGGERS_SHOWN).map(|trigger| trigger.id.as_str()).collect();
    let more = triggers.len().checked_sub(TRIGGERS_SHOWN).filter(|more| *more > 0);
    let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
    (!ids.is_empty()).then(|| format!("{} ({}{more})", triggers.len(), ids.join(", ")))
}

/// How far a program is, and when that was stored.
fn progress(progress: &ProgressSummary, clock: &LocalTimeFormat) -> String {
    let reported = PluginProgress { percent: progress.percent, text: progress.text.clone() };
    format!("{reported} ({})", clock.relative(progress.at))
}

/// The response of a service on one line: its status, the type of its body, and redirects.
fn response(response: &ServiceResponse) -> String {
    let kind = response.headers.iter().find(|header| header.name == "content-type");
    let kind = kind.map(|header| format!(", {}", header.value)).unwrap_or_default();
    let redirects = match response.redirects {
        0 => String::new(),
        count => format!(", after {}", counted(usize::try_from(count).unwrap_or(usize::MAX), "redirect")),
    };
    format!("status {}{kind}{redirects}", response.status)
}

/// An action on one line: what caused it, what it does, and how far it has come.
fn action_line(action: &ActionSummary, clock: &LocalTimeFormat) -> String {
    let target = if action.target.is_empty() { String::new() } else { format!(" {}", action.target) };
    let attempts = counted(usize::try_from(action.attempts).unwrap_or(usize::MAX), "attempt");
    let status = match (action.ended, action.due) {
        (Some(at), _) => format!("{} {}", action.status, clock.relative(at)),
        (None, Some(due)) if due > clock.now => format!("{}, next in {}", action.status, rounded(due.since(clock.now))),
        _ => action.status.clone(),
    };
    let error = action.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    format!("on {}: {}{target}, {status}, {attempts}{error}", action.event, action.kind)
}

/// A time with milliseconds, for lines whose order matters.
pub(crate) fn precise(at: Instant, clock: &LocalTimeFormat) -> String {
    let second = clock.at(at);
    // Date and time have a fixed width; the offset follows them.
    let (time, offset) = second.split_at_checked("2026-03-29 01:30:00".len()).unwrap_or((&second, ""));
    format!("{time}.{:03}{offset}", at.millis().rem_euclid(1_000))
}

/// Prints that the run continues after Ctrl-C, and how to stop or follow it.
pub(crate) fn left_running(name: &str) {
    let name = visible(name);
    eprintln!("\n{name} continues; `cronhold stop {name}` stops it, `cronhold logs -f {name}` follows it");
}

/// The reason, with the exit code or signal unless the reason contains it.
fn with_exit(reason: &str, run: &RunSummary) -> String {
    let names_exit = matches!(Reason::parse(reason), Ok(Reason::ExitCode(_) | Reason::Signal(_)));
    match exit(run) {
        Some(exit) if !names_exit && run.exit_code != Some(0) => format!("{reason} ({exit})"),
        _ => reason.to_owned(),
    }
}

/// The exit code or signal, or `None` if the program succeeded with exit code 0.
fn exit(run: &RunSummary) -> Option<String> {
    let code = run.exit_code.filter(|code| *code != 0 || run.state != State::Success);
    run.signal.clone().or_else(|| code.map(|code| format!("exit code {code}")))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use cronhold_api::{ResponseHeader, RunStep, RunTimes};
    use cronhold_schedule::Zone;

    use super::*;

    /// A time, in milliseconds after 2026-11-16T02:00:00Z.
    pub(crate) fn at(millis: i64) -> Instant {
        Instant::from_millis(1_794_794_400_000 + millis)
    }

    /// A clock in UTC that shows this time.
    pub(crate) fn clock(millis: i64) -> LocalTimeFormat {
        LocalTimeFormat { zone: Zone::utc(), now: at(millis) }
    }

    /// `backup#42`, due at `at(0)`, started 4 ms later.
    pub(crate) fn run(state: State) -> RunSummary {
        let finished = Some(at(65_500)).filter(|_| state.is_finished());
        RunSummary {
            id: "019a0000000070008000000000000042".to_owned(),
            number: 42,
            job: "backup".to_owned(),
            args: BTreeMap::new(),
            state,
            reason: None,
            nominal_time: at(0),
            attempt: 1,
            retry_of: None,
            retried_by: None,
            due: None,
            waiting_for: Vec::new(),
            rerun_of: None,
            node: None,
            exit_code: None,
            signal: None,
            times: RunTimes { starting: Some(at(2)), running: Some(at(4)), finished, ..RunTimes::default() },
            output_bytes: 0,
            tail: Vec::new(),
            from: None,
            to: None,
            count: None,
        }
    }

    /// A run that never started.
    pub(crate) fn skipped(reason: &str) -> RunSummary {
        let times = RunTimes { finished: Some(at(3)), ..RunTimes::default() };
        RunSummary { reason: Some(reason.to_owned()), times, ..run(State::Skipped) }
    }

    #[test]
    fn run_is_shown_in_one_line() {
        let failed = |reason: &str| RunSummary { reason: Some(reason.to_owned()), ..run(State::Failure) };
        let scheduled = RunSummary { nominal_time: at(3_600_000), times: RunTimes::default(), ..run(State::Scheduled) };
        let runs = [
            RunSummary { exit_code: Some(0), ..run(State::Success) },
            RunSummary { exit_code: Some(3), attempt: 2, ..failed("exit code 3") },
            RunSummary { signal: Some("SIGTERM".to_owned()), ..failed("stopped") },
            RunSummary { signal: Some("SIGSEGV".to_owned()), ..failed("signal SIGSEGV") },
            RunSummary { exit_code: Some(0), ..failed("timeout") },
            RunSummary { rerun_of: Some("x".to_owned()), ..run(State::Running) },
            skipped("by operator: line one\nline two \u{1b}[31m"),
            RunSummary { from: Some(at(-600_000)), to: Some(at(0)), count: Some(11), ..skipped("missed") },
            scheduled,
        ];
        let lines: Vec<String> = runs.iter().map(|run| line(run, &clock(30_000), false)).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    fn action(kind: &str, target: &str, status: &str, ended: Option<i64>, due: Option<i64>) -> ActionSummary {
        ActionSummary {
            id: "x".to_owned(),
            event: "failure".to_owned(),
            kind: kind.to_owned(),
            target: target.to_owned(),
            status: status.to_owned(),
            attempts: 1,
            error: None,
            created: at(65_500),
            due: due.map(at),
            ended: ended.map(at),
            created_run: None,
            trigger: None,
        }
    }

    #[test]
    fn run_is_shown_with_its_steps_and_actions() {
        let step = |millis, state, actor: &str, message: &str| RunStep {
            at: at(millis),
            state,
            actor: actor.to_owned(),
            message: message.to_owned(),
        };
        let run = RunSummary {
            reason: Some("exit code 3".to_owned()),
            exit_code: Some(3),
            args: BTreeMap::from([("region".to_owned(), "us".to_owned()), ("day".to_owned(), "mon".to_owned())]),
            output_bytes: 1_234,
            tail: vec!["reading".to_owned(), "no space \u{7}left".to_owned()],
            ..run(State::Failure)
        };
        let detailed = RunDetail {
            run,
            schedule: Some("nightly".to_owned()),
            command: Some("backup --all".to_owned()),
            lock: None,
            log: vec![step(1, State::Waiting, "schedule", ""), step(65_500, State::Failure, "program", "exit code 3")],
            actions: vec![
                action("webhook", "https://hooks.example.org", "done", Some(66_000), None),
                ActionSummary {
                    attempts: 3,
                    error: Some("status 503".to_owned()),
                    ..action("email", "ops@example.org", "pending", None, Some(95_000))
                },
                action("command", "", "failed", Some(69_000), None),
            ],
            triggers: ["repo@1", "repo@2"]
                .map(|id| RunTriggerSummary {
                    id: id.to_owned(),
                    at: at(1_000),
                    by: "operator anna".to_owned(),
                    channel: None,
                    message: None,
                })
                .into(),
            task: Some("{\"id\": 7}".to_owned()),
            stderr: None,
            progress: Some(ProgressSummary { at: at(60_000), percent: Some(40), text: "reading".to_owned() }),
            response: Some(ServiceResponse {
                status: 503,
                headers: vec![ResponseHeader { name: "content-type".to_owned(), value: "text/plain".to_owned() }],
                redirects: 1,
            }),
        };
        let mut shown = Vec::new();
        detail(&detailed, &clock(70_000), false, &mut shown).expect("written");
        insta::assert_snapshot!(String::from_utf8(shown).expect("text"));
    }
}
