//! Runs in Cronken's form: what the script of a commit needs to know of a run to write its metadata, its heartbeat and
//! its results. Apart from the records, which are ours alone and may change their form; this one may not.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use cronhold_core::record::{Exit, Node, Owner, Run, Work};
use cronhold_core::run::Reason;
use cronhold_core::{NodeId, State};
use cronhold_schedule::Instant;

use crate::url::{OutputForm, Settings};

/// Parts of scripts that show runs; they stand before whatever uses them.
pub(crate) const PARTS: [&str; 2] = [
    concat!(include_str!("scripts/texts.lua"), "\n", include_str!("scripts/lines.lua")),
    include_str!("scripts/projection.lua"),
];

/// So many names of nodes are remembered. Nodes beyond that are shown by their ids.
const NAMES_MAX: usize = 10_000;

/// Names of nodes that this handle has heard of: Cronken's clients know hosts by name.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<BTreeMap<NodeId, String>>);

impl Names {
    /// Remembers what a node is called.
    pub(crate) fn learn(&self, node: &Node) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.get(&node.id) != Some(&node.name) && (names.len() < NAMES_MAX || names.contains_key(&node.id)) {
            names.insert(node.id, node.name.clone());
        }
    }

    fn of(&self, node: NodeId) -> String {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(&node).cloned().unwrap_or_else(|| node.to_string())
    }
}

/// What scripts have to know of the settings, as `read_settings` of the scripts takes it apart.
pub(crate) fn settings(settings: &Settings) -> String {
    let form = match settings.output {
        OutputForm::Zset => "zset",
        OutputForm::List => "list",
    };
    let Settings { job_results, all_results, lines, output_ttl, stale, .. } = settings;
    let (ttl, stale) = (output_ttl.as_secs(), stale.as_micros());
    format!("{form} {job_results} {all_results} {lines} {ttl} {stale}")
}

/// What a script has to know of a record that is written, to show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// How it is shown. A run: `r` runs, `s` and `f` success and fail, `-` not at all. The state of a job, and the pause of
    /// everything: `1` is paused, `0` is not.
    pub(crate) kind: u8,
    /// Where the output of a run that has ended comes from: `-` there is none, `w` it is here, `t` the script looks for
    /// it.
    pub(crate) output: u8,
    /// Of a run that runs: its job's name and its host as JSON. Of one that has ended: its metadata up to its status, for
    /// when the script finds none, with the time of our own log; and then the rest but for the duration.
    pub(crate) texts: Option<[String; 2]>,
}

impl Default for Shown {
    /// Not shown at all.
    fn default() -> Self {
        Self { kind: b'-', output: b'-', texts: None }
    }
}

impl Shown {
    /// A job, or everything, is paused or not.
    pub(crate) fn pause(is_paused: bool) -> Self {
        Self { kind: if is_paused { b'1' } else { b'0' }, ..Self::default() }
    }

    /// The same as one text, as `merge.lua` takes it apart.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = vec![self.kind, self.output];
        let [first, second] = self.texts.as_ref().map_or([""; 2], |texts| texts.each_ref().map(String::as_str));
        text.extend_from_slice(first.as_bytes());
        // No JSON text has this byte.
        text.push(0);
        text.extend_from_slice(second.as_bytes());
        text
    }
}

/// What the script has to know of a run that is written.
pub(crate) fn shown(run: &Run, lines: u64, names: &Names) -> Shown {
    let began = began(run);
    let kind = match run.state {
        State::Starting | State::Running | State::Stopping => b'r',
        State::Success if began.is_some() => b's',
        State::Failure | State::Error if began.is_some() => b'f',
        _ => return Shown::default(),
    };
    let host = run.owner.map_or_else(String::new, |Owner { node, .. }| names.of(node));
    let (name, host) = (json(run.job.as_str()), json(&host));
    if kind == b'r' {
        return Shown { kind, output: b'-', texts: Some([name, host]) };
    }
    let start = seconds(began.unwrap_or(run.nominal));
    let (output, rest) = end(run, lines);
    let head = format!("{{\"job_name\":{name},\"start_time\":\"{start}\",\"host\":{host}");
    Shown { kind, output, texts: Some([head, rest]) }
}

/// When its program was first to be there. A run that was never so far is not shown.
fn began(run: &Run) -> Option<Instant> {
    run.log.iter().find(|entry| entry.state.has_program()).map(|entry| entry.at)
}

fn end(run: &Run, lines: u64) -> (u8, String) {
    let is_lost = matches!(run.reason, Some(Reason::StartUnknown | Reason::NodeLost | Reason::KeeperLost));
    let status = match run.state {
        State::Success => "success",
        State::Error if is_lost => "frozen",
        _ => "fail",
    };
    let retcode = match run.exit {
        Some(Exit::Code(code)) => code.to_string(),
        // As Python has it.
        Some(Exit::Signal(signal)) => format!("-{}", signal.number()),
        None => "null".to_owned(),
    };
    let (said, output) = output(run, usize::try_from(lines).unwrap_or(usize::MAX));
    let output = output.map(|text| format!(",\"output\":{}", json(&text))).unwrap_or_default();
    (said, format!(",\"status\":\"{status}\",\"retcode\":{retcode}{output}"))
}

/// Where its output comes from, and the last lines when they are known here.
fn output(run: &Run, lines: usize) -> (u8, Option<String>) {
    match &run.written {
        Some(written) if written.bytes == 0 => (b'-', Some(String::new())),
        Some(written) => {
            let tail = &written.tail;
            let known: u64 = tail.iter().map(|line| line.len() as u64 + 1).sum();
            if tail.len() < lines && known < written.bytes {
                return (b't', None);
            }
            let last = &tail[tail.len().saturating_sub(lines)..];
            (b'w', Some(last.iter().map(|line| format!("{line}\n")).collect()))
        }
        None if matches!(run.work, Some(Work::Noop(_))) => (b'-', Some(String::new())),
        None => (b't', None),
    }
}

/// Seconds with six digits behind the point.
fn seconds(at: Instant) -> String {
    let micros = at.micros().max(0);
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use cronhold_core::record::{Actor, Transition, Written};
    use cronhold_core::{JobId, JobUid, RunId, RunNumber};
    use cronhold_schedule::Span;

    use super::*;

    fn run(states: &[State]) -> Run {
        let id = RunId::from_random(Instant::EPOCH, [0; 10]);
        let job = JobId::parse("a \"b\"").expect("a name");
        let mut run = Run::blank(id, RunNumber(1), job, JobUid::from_bits(1), Instant::EPOCH);
        for (at, state) in (1_000_000..).step_by(500_000).zip(states) {
            let at = Instant::from_micros(at);
            run.log.push(Transition::entered(at, *state, Actor::Schedule));
            run.state = *state;
        }
        run.owner = Some(Owner { node: NodeId::from_bits(7), incarnation: 1 });
        run
    }

    fn text(run: &Run) -> String {
        let names = Names::default();
        names.learn(&Node::new(NodeId::from_bits(7), "lyra", 1, Instant::EPOCH));
        String::from_utf8(shown(run, 2, &names).text()).expect("text").replace('\0', "|")
    }

    #[test]
    fn each_state_is_shown() {
        use State::{Error, Failure, Running, Skipped, Starting, Success, Waiting};
        let runs = r#"r-"a \"b\""|"lyra""#.to_owned();
        let head = r#"t{"job_name":"a \"b\"","start_time":"1.500000","host":"lyra"|,"status":"#;
        let none = "--|".to_owned();
        for (states, expected) in [
            (&[Waiting][..], none.clone()),
            (&[Waiting, Skipped], none.clone()),
            (&[Waiting, Error], none.clone()),
            (&[Waiting, Skipped, Success], none.clone()),
            (&[Waiting, Starting, Success, Skipped], none),
            (&[Waiting, Starting], runs.clone()),
            (&[Waiting, Starting, Running], runs),
            (&[Waiting, Starting, Success], format!(r#"s{head}"success","retcode":null"#)),
            (&[Waiting, Running, Failure], format!(r#"f{head}"fail","retcode":null"#)),
            (&[Waiting, Starting, Error], format!(r#"f{head}"fail","retcode":null"#)),
        ] {
            assert_eq!(text(&run(states)), expected, "{states:?}");
        }
    }

    #[test]
    fn an_output_is_taken_from_where_it_is_known() {
        let mut run = run(&[State::Starting, State::Success]);
        let mut end = |written: Option<(u64, &[&str])>| {
            run.written =
                written.map(|(bytes, tail)| Written { bytes, tail: tail.iter().map(ToString::to_string).collect() });
            let text = text(&run);
            let rest = text.rsplit_once('|').expect("two texts").1.replace(r#","status":"success","retcode":null"#, "");
            format!("{}{rest}", &text[1..2])
        };
        assert_eq!(end(None), "t");
        assert_eq!(end(Some((0, &[]))), r#"-,"output":"""#);
        assert_eq!(end(Some((4, &["a", "b"]))), r#"w,"output":"a\nb\n""#);
        assert_eq!(end(Some((99, &["a", "b", "c"]))), r#"w,"output":"b\nc\n""#);
        assert_eq!(end(Some((1, &["a"]))), r#"w,"output":"a\n""#, "without a newline at the end");
        assert_eq!(end(Some((99, &["a"]))), "t", "there is more than it remembers");
        run.written = None;
        run.work = Some(Work::Noop(Span::ZERO));
        assert!(text(&run).starts_with("s-"), "it never writes");
    }
}
