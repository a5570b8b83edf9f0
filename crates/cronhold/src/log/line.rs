//! Lines of the log: what is worth one, how much it weighs, and how it reads.

use std::fmt::Write;
use std::sync::Arc;

use cronhold_cli::counted;
use cronhold_core::State;
use cronhold_core::command::Stamp;
use cronhold_core::decision::{Change, Done};
use cronhold_core::record::{Key, Record, Run};
use cronhold_engine::News;
use cronhold_schedule::{Instant, Span};

/// A run that begins so long after its time says so.
const LATE: Span = Span::from_secs(1);

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Every change of every run and job.
    Detail,
    /// What runs, how it ended, and what the daemon does.
    Usual,
    /// What somebody should look at.
    Trouble,
}

/// One line. Those of runs become text where they are written, because most of them never are.
#[derive(Debug, Clone)]
pub struct Line {
    weight: Weight,
    at: Instant,
    about: About,
}

#[derive(Debug, Clone)]
enum About {
    Text(String),
    /// A run, and which of its transitions.
    Run(Arc<Run>, usize),
}

impl Line {
    /// A line with any text.
    pub fn new(weight: Weight, at: Instant, text: impl Into<String>) -> Self {
        Self { weight, at, about: About::Text(text.into()) }
    }

    pub(super) fn weight(&self) -> Weight {
        self.weight
    }

    pub(super) fn write(&self, to: &mut String) {
        let second = Instant::from_secs(self.at.secs()).to_string();
        let millis = self.at.millis().rem_euclid(1_000);
        let _ = write!(to, "{}.{millis:03}Z ", second.trim_end_matches('Z'));
        match &self.about {
            // Nothing that comes from outside can begin a line of its own.
            About::Text(text) => text.lines().for_each(|line| {
                let _ = writeln!(to, " {line}");
            }),
            About::Run(run, index) => write_run(run, *index, to),
        }
    }
}

fn write_run(run: &Run, index: usize, to: &mut String) {
    let _ = write!(to, " {}#{}", run.job, run.number.0);
    let Some(transition) = run.log.get(index) else { return };
    let _ = write!(to, " {}", transition.state);
    if let Some(stretch) = run.span.as_ref().filter(|_| transition.state == State::Skipped) {
        let _ = write!(to, " {}", counted(usize::try_from(stretch.count).unwrap_or(usize::MAX), "occurrence"));
    }
    if !transition.message.is_empty() {
        let _ = write!(to, ": {}", transition.message.replace(['\n', '\r'], " "));
    }
    let mut notes = Vec::new();
    let started = run.entered(State::Starting).filter(|_| transition.state.is_finished());
    let took = started.map_or(Span::ZERO, |started| in_millis(transition.at.since(started)));
    if !took.is_zero() {
        notes.push(format!("took {took}"));
    }
    let late = run.log.first().map_or(Span::ZERO, |first| first.at.since(run.nominal));
    if run.schedule.is_some() && run.span.is_none() && late >= LATE {
        notes.push(format!("{} after its time", in_millis(late)));
    }
    if run.attempt > 1 {
        notes.push(format!("attempt {}", run.attempt));
    }
    if !notes.is_empty() {
        let _ = write!(to, " ({})", notes.join(", "));
    }
    to.push('\n');
}

fn in_millis(span: Span) -> Span {
    Span::from_millis(span.millis())
}

/// The lines of a commit that weigh enough.
pub(super) fn of_commit<'a>(stamp: &'a Stamp, done: &'a Done, least: Weight) -> impl Iterator<Item = Line> + 'a {
    done.changes.iter().flat_map(move |change| match change {
        Change::Put(Record::Run(run)) => of_run(run, stamp.at, least),
        Change::Put(Record::Job(job)) => {
            let text = format!("job {} is put ({}), revision {}", job.id, stamp.actor, job.revision);
            vec![Line::new(Weight::Detail, stamp.at, text)]
        }
        Change::Delete(Key::Job(job)) => {
            vec![Line::new(Weight::Detail, stamp.at, format!("job {job} is removed ({})", stamp.actor))]
        }
        _ => Vec::new(),
    })
}

/// A line for each state that a run entered just now.
fn of_run(run: &Arc<Run>, at: Instant, least: Weight) -> Vec<Line> {
    let first = run.log.iter().rposition(|transition| transition.at != at).map_or(0, |before| before + 1);
    let entered = run.log.iter().enumerate().skip(first);
    let lines = entered.map(|(index, transition)| {
        let weight = match transition.state {
            State::Failure | State::Error => Weight::Trouble,
            State::Running | State::Success | State::Skipped => Weight::Usual,
            State::Scheduled | State::Waiting | State::Starting | State::Stopping => Weight::Detail,
        };
        Line { weight, at, about: About::Run(Arc::clone(run), index) }
    });
    lines.filter(|line| line.weight >= least).collect()
}

/// What news other than commits are worth.
pub(super) fn of_news(news: &News<'_>) -> Option<(Weight, String)> {
    Some(match news {
        News::Committed { .. } | News::Known(_) | News::StoreAway(_) | News::StoreBack => return None,
        News::Ready { planned, unfinished, took } => {
            let (planned, unfinished) = (counted(*planned, "thing"), counted(*unfinished, "unfinished run"));
            let text = format!("took up what is stored in {}: {planned} planned, {unfinished}", in_millis(*took));
            (Weight::Usual, text)
        }
        News::ClockStep { forward, by } => {
            let way = if *forward { "forward" } else { "back" };
            let text = format!("the clock was set {way} by {}; nothing starts for some seconds", in_millis(*by));
            (Weight::Trouble, text)
        }
        News::Skew { is_off: true, is_ahead, by } => {
            let way = if *is_ahead { "ahead of" } else { "behind" };
            let text = format!(
                "the clock of this machine is {} {way} the store's time; jobs start by the store's time",
                in_millis(*by)
            );
            (Weight::Trouble, text)
        }
        News::Skew { is_off: false, .. } => {
            (Weight::Trouble, "the clock of this machine agrees with the store's time again".to_owned())
        }
        News::Repaired { key, late } => {
            (Weight::Trouble, format!("the watchdog found {key}, {} late, and sees to it", in_millis(*late)))
        }
        News::OlderZones { ours, theirs, is_alone } => {
            let what = if *is_alone { "they are computed again" } else { "they are left to nodes that have it" };
            let text = format!("schedules were computed with zone data {theirs}, and {ours} is older: {what}");
            (Weight::Trouble, text)
        }
        News::NodeCame(name) => (Weight::Usual, format!("node {name} is there")),
        News::NodeGone(name) => (Weight::Trouble, format!("node {name} was not heard of for some seconds")),
        News::Draining(true) => (Weight::Trouble, "this node drains: it starts nothing any more".to_owned()),
        News::Draining(false) => (Weight::Trouble, "this node starts things again".to_owned()),
        News::Replaced => {
            (Weight::Trouble, "another daemon has started with the identity of this node, which stops".to_owned())
        }
        News::RecordUnreadable { key: Some(key), reason } => (Weight::Trouble, format!("cannot read {key}: {reason}")),
        News::RecordUnreadable { key: None, reason } => (Weight::Trouble, format!("cannot read a record: {reason}")),
        News::CommandDropped { command, reason } => (Weight::Detail, format!("dropped: {command:?}: {reason}")),
    })
}

#[cfg(test)]
mod tests {
    use cronhold_core::record::{Actor, Owner, ScheduleId, Transition};
    use cronhold_core::run::Reason;
    use cronhold_core::{JobId, JobUid, NodeId, RunId, RunNumber};

    use super::*;

    fn at(millis: i64) -> Instant {
        Instant::from_millis(1_767_225_600_000 + millis)
    }

    fn run(log: &[(State, i64, &str)]) -> Arc<Run> {
        let transition = |(state, millis, message): &(State, i64, &str)| {
            Transition::entered(at(*millis), *state, Actor::Schedule).with_message(*message)
        };
        let (id, job) = (RunId::from_random(at(0), [7; 10]), JobId::parse("backup").expect("an id"));
        Arc::new(Run {
            schedule: Some(ScheduleId::parse("nightly").expect("an id")),
            state: log.last().expect("a state").0,
            log: log.iter().map(transition).collect(),
            ..Run::blank(id, RunNumber(42), job, JobUid::from_bits(1), at(0))
        })
    }

    /// All lines that a commit of this run is worth, as they are written.
    fn lines(log: &[(State, i64, &str)], least: Weight) -> String {
        let now = at(log.last().expect("a state").1);
        let owner = Owner { node: NodeId::from_bits(1), incarnation: 1 };
        let stamp = Stamp { at: now, actor: Actor::Schedule, owner };
        let done = Done { changes: vec![Change::Put(Record::Run(run(log)))], ..Done::default() };
        let mut text = String::new();
        of_commit(&stamp, &done, least).for_each(|line| line.write(&mut text));
        text
    }

    #[test]
    fn runs_in_words() {
        use State::{Error, Failure, Running, Skipped, Starting, Success, Waiting};
        let code = Reason::ExitCode(3).to_string();
        for (log, least, expected) in [
            (&[(Starting, 3, ""), (Running, 4, "")][..], Weight::Usual, ":00.004Z  backup#42 running\n"),
            (&[(Starting, 3, ""), (Success, 5_010, "")], Weight::Usual, ":05.010Z  backup#42 success (took 5s7ms)\n"),
            (
                &[(Starting, 3, ""), (Failure, 9, &code)],
                Weight::Trouble,
                ":00.009Z  backup#42 failure: exit code 3 (took 6ms)\n",
            ),
            (&[(Starting, 3, ""), (Success, 9, "")], Weight::Trouble, ""),
            (&[(Waiting, 3, "")], Weight::Usual, ""),
            (
                &[(Waiting, 3, ""), (Starting, 3, "")],
                Weight::Detail,
                ":00.003Z  backup#42 waiting\n:00.003Z  backup#42 starting\n",
            ),
            (&[(Skipped, 2, "overlap")], Weight::Usual, ":00.002Z  backup#42 skipped: overlap\n"),
            (
                &[(Waiting, 12_000, ""), (Skipped, 12_000, "lock")],
                Weight::Usual,
                ":12.000Z  backup#42 skipped: lock (12s after its time)\n",
            ),
            (&[(Error, 1, "not bound: a\nb")], Weight::Usual, ":00.001Z  backup#42 error: not bound: a b\n"),
        ] {
            let shown = lines(log, least).replace("2026-01-01T00:00", "");
            assert_eq!(shown, expected, "{log:?}");
        }
    }

    #[test]
    fn other_news_in_words() {
        for (news, expected) in [
            (
                News::Ready { planned: 1, unfinished: 2, took: Span::from_micros(12_345) },
                "took up what is stored in 12ms: 1 thing planned, 2 unfinished runs",
            ),
            (
                News::ClockStep { forward: false, by: Span::from_secs(61) },
                "the clock was set back by 1m1s; nothing starts for some seconds",
            ),
            (
                News::Skew { is_off: true, is_ahead: false, by: Span::from_millis(1_250) },
                "the clock of this machine is 1s250ms behind the store's time; jobs start by the store's time",
            ),
        ] {
            assert_eq!(of_news(&news).expect("a line").1, expected);
        }
    }
}
