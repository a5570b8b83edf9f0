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

/// What the script has to know of a run that is written. Parts end with a zero byte, which no JSON text and no name
/// holds: how it is shown (`r` runs, `s` and `f` success and fail, `-` not at all) and its job, when it began by our own
/// log, its job's name and its host as JSON; for one that has ended, where its output comes from (`-` there is none,
/// `w` it is here, `t` the script looks for it) and then the rest of the metadata but for the duration.
pub(crate) fn argument(run: &Run, lines: u64, names: &Names) -> Vec<u8> {
    let began = began(run);
    let kind = match run.state {
        State::Starting | State::Running | State::Stopping => 'r',
        State::Success if began.is_some() => 's',
        State::Failure | State::Error if began.is_some() => 'f',
        _ => '-',
    };
    let mut text = format!("{kind}{}\0", run.job);
    if kind == '-' {
        text.push_str("\0\0\0");
        return text.into_bytes();
    }
    let host = run.owner.map_or_else(String::new, |Owner { node, .. }| names.of(node));
    let start = seconds(began.unwrap_or(run.nominal));
    text.push_str(&format!("{start}\0{}\0{}\0", json(run.job.as_str()), json(&host)));
    if kind != 'r' {
        text.push_str(&end(run, lines));
    }
    text.into_bytes()
}

/// When its program was first to be there. A run that was never so far is not shown.
fn began(run: &Run) -> Option<Instant> {
    run.log.iter().find(|entry| entry.state.has_program()).map(|entry| entry.at)
}

fn end(run: &Run, lines: u64) -> String {
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
    format!("{said},\"status\":\"{status}\",\"retcode\":{retcode}{output}")
}

/// Where its output comes from, and the last lines when they are known here.
fn output(run: &Run, lines: usize) -> (char, Option<String>) {
    match &run.written {
        Some(written) if written.bytes == 0 => ('-', Some(String::new())),
        Some(written) => {
            let tail = &written.tail;
            let known: u64 = tail.iter().map(|line| line.len() as u64 + 1).sum();
            if tail.len() < lines && known < written.bytes {
                return ('t', None);
            }
            let last = &tail[tail.len().saturating_sub(lines)..];
            ('w', Some(last.iter().map(|line| format!("{line}\n")).collect()))
        }
        None if matches!(run.work, Some(Work::Noop(_))) => ('-', Some(String::new())),
        None => ('t', None),
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
            run.log.push(Transition { at, state: *state, actor: Actor::Schedule, message: String::new() });
            run.state = *state;
        }
        run.owner = Some(Owner { node: NodeId::from_bits(7), incarnation: 1 });
        run
    }

    fn shown(run: &Run) -> String {
        let names = Names::default();
        names.learn(&Node::new(NodeId::from_bits(7), "lyra", 1, Instant::EPOCH));
        String::from_utf8(argument(run, 2, &names)).expect("text").replace('\0', "|")
    }

    #[test]
    fn each_state_has_its_argument() {
        use State::{Error, Failure, Running, Skipped, Starting, Success, Waiting};
        let begun = r#"a "b"|1.500000|"a \"b\""|"lyra"|"#;
        let none = r#"-a "b"||||"#.to_owned();
        for (states, expected) in [
            (&[Waiting][..], none.clone()),
            (&[Waiting, Skipped], none.clone()),
            (&[Waiting, Error], none.clone()),
            (&[Waiting, Skipped, Success], none.clone()),
            (&[Waiting, Starting, Success, Skipped], none),
            (&[Waiting, Starting], format!("r{begun}")),
            (&[Waiting, Starting, Running], format!("r{begun}")),
            (&[Waiting, Starting, Success], format!(r#"s{begun}t,"status":"success","retcode":null"#)),
            (&[Waiting, Running, Failure], format!(r#"f{begun}t,"status":"fail","retcode":null"#)),
            (&[Waiting, Starting, Error], format!(r#"f{begun}t,"status":"fail","retcode":null"#)),
        ] {
            assert_eq!(shown(&run(states)), expected, "{states:?}");
        }
    }

    #[test]
    fn an_output_is_taken_from_where_it_is_known() {
        let mut run = run(&[State::Starting, State::Success]);
        let mut end = |written: Option<(u64, &[&str])>| {
            run.written =
                written.map(|(bytes, tail)| Written { bytes, tail: tail.iter().map(ToString::to_string).collect() });
            shown(&run).rsplit_once('|').expect("parts").1.replace(r#","status":"success","retcode":null"#, "")
        };
        assert_eq!(end(None), "t");
        assert_eq!(end(Some((0, &[]))), r#"-,"output":"""#);
        assert_eq!(end(Some((4, &["a", "b"]))), r#"w,"output":"a\nb\n""#);
        assert_eq!(end(Some((99, &["a", "b", "c"]))), r#"w,"output":"b\nc\n""#);
        assert_eq!(end(Some((1, &["a"]))), r#"w,"output":"a\n""#, "without a newline at the end");
        assert_eq!(end(Some((99, &["a"]))), "t", "there is more than it remembers");
        run.written = None;
        run.work = Some(Work::Noop(Span::ZERO));
        assert!(shown(&run).contains(r#"-,"status""#), "it never writes");
    }
}
