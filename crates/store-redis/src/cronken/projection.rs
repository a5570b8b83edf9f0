//! Projects records to Cronken's format: what the scripts need to write the metadata, the heartbeat and the results of
//! a run. That format is fixed, while the format of our own records may change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_core::record::{NodeRecord, ProgramExit, Record, ResolvedProgram, Run, RunOwner};
use cronhold_core::run::Reason;
use cronhold_core::{NodeId, State};
use cronhold_store::lock_mutex;

use crate::url::{OutputKeyType, UrlSettings};

/// The parts of scripts that write the projection. They come before the script that uses them.
pub(crate) const PROJECTION_SCRIPTS: [&str; 2] = [
    concat!(include_str!("scripts/texts.lua"), "\n", include_str!("scripts/lines.lua")),
    include_str!("scripts/projection.lua"),
];

/// Node names that are cached. Further nodes are shown by their ids.
const NODE_NAMES_MAX: usize = 10_000;

/// Projects records. Keeps the names of nodes, because Cronken's clients identify hosts by name.
#[derive(Debug)]
pub(crate) struct Projector {
    /// Lines of output in a result.
    lines: u64,
    /// Names of nodes, as JSON.
    node_names: Mutex<BTreeMap<NodeId, String>>,
    /// Writes that were skipped because a key has the wrong type.
    skipped_writes: AtomicU64,
}

impl Projector {
    pub(crate) fn new(lines: u64) -> Self {
        Self { lines, node_names: Mutex::default(), skipped_writes: AtomicU64::new(0) }
    }

    /// What the script needs to show a record that is written.
    pub(crate) fn project(&self, record: &Record) -> Projection {
        match record {
            Record::Run(run) => self.project_run(run),
            Record::JobState(state) => Projection::pause(state.pauses.is_paused()),
            Record::Pause(pauses) => Projection::pause(pauses.is_paused()),
            _ => Projection::default(),
        }
    }

    /// Caches the name of a node.
    pub(crate) fn learn_node_name(&self, node: &NodeRecord) {
        let mut names = lock_mutex(&self.node_names);
        if names.len() < NODE_NAMES_MAX || names.contains_key(&node.id) {
            names.insert(node.id, json(&node.name));
        }
    }

    /// Counts writes to keys of Cronken that a script has skipped.
    pub(crate) fn count_skipped(&self, writes: u64) {
        self.skipped_writes.fetch_add(writes, Ordering::Relaxed);
    }

    pub(crate) fn warning(&self) -> Option<String> {
        let skipped = self.skipped_writes.load(Ordering::Relaxed);
        (skipped > 0).then(|| {
            format!("{skipped} writes to keys that Cronken's clients read were skipped: the keys have the wrong type")
        })
    }

    /// The name of the node that owns a run, as JSON.
    fn host(&self, run: &Run) -> String {
        let Some(RunOwner { node, .. }) = run.owner else { return json("") };
        let names = lock_mutex(&self.node_names);
        names.get(&node).cloned().unwrap_or_else(|| json(&node.to_string()))
    }

    fn project_run(&self, run: &Run) -> Projection {
        let started = run.log.iter().find(|entry| entry.state.has_program()).map(|entry| entry.at);
        let kind = match run.state {
            State::Starting | State::Running | State::Stopping => b'r',
            State::Success if started.is_some() => b's',
            State::Failure | State::Error if started.is_some() => b'f',
            _ => return Projection::default(),
        };
        let started = started.unwrap_or(run.nominal);
        let (name, start, host) = (json(run.job.as_str()), seconds(started.micros()), self.host(run));
        let mut text = format!("{{\"job_name\":{name},\"start_time\":\"{start}\",\"host\":{host}");
        if kind == b'r' {
            text.push_str(",\"status\":\"running\",\"retcode\":null,\"output\":null,\"duration\":null}");
            return Projection { kind, output: b'-', text, rest: None };
        }
        // A later mark is not the end.
        let ended = run.finished().map_or(started, |ended| ended.max(started));
        let rest = format!(",\"duration\":{}}}", seconds(ended.micros() - started.micros()));
        let _ = write!(text, ",\"status\":\"{}\",\"retcode\":{},\"output\":", status(run), return_code(run));
        match last_output(run, usize::try_from(self.lines).unwrap_or(usize::MAX)) {
            (output, Some(lines)) => {
                text.push_str(&json(&lines));
                text.push_str(&rest);
                Projection { kind, output, text, rest: None }
            }
            (output, None) => Projection { kind, output, text, rest: Some(rest) },
        }
    }
}

/// The settings that the scripts need, in the format of `read_settings` in `projection.lua`.
pub(super) fn script_settings(settings: &UrlSettings) -> String {
    let form = match settings.output {
        OutputKeyType::Zset => "zset",
        OutputKeyType::List => "list",
    };
    let UrlSettings { job_results, all_results, lines, output_ttl, stale, .. } = settings;
    let (ttl, stale) = (output_ttl.as_secs(), stale.as_micros());
    format!("{form} {job_results} {all_results} {lines} {ttl} {stale}")
}

/// What a script needs to show a record in Cronken's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Projection {
    /// For a run: `r` running, `s` success, `f` failure, `-` not shown. For the state of a job and the global pause:
    /// `1` paused, `0` not paused.
    pub(crate) kind: u8,
    /// The source of the output of a finished run: `-` none, `w` in `text`, `t` the script reads it.
    pub(crate) output: u8,
    /// The metadata of a run that is shown; if the script reads the output, what precedes the output.
    pub(crate) text: String,
    /// The metadata after the output that the script reads.
    pub(crate) rest: Option<String>,
}

impl Default for Projection {
    /// A record that is not shown.
    fn default() -> Self {
        Self { kind: b'-', output: b'-', text: String::new(), rest: None }
    }
}

impl Projection {
    /// A job, or everything, is paused or not.
    fn pause(is_paused: bool) -> Self {
        Self { kind: if is_paused { b'1' } else { b'0' }, ..Self::default() }
    }

    /// The projection as one text, which `restore.lua` parses.
    pub(crate) fn to_text(&self) -> Vec<u8> {
        let mut text = vec![self.kind, self.output];
        text.extend_from_slice(self.text.as_bytes());
        // This byte does not occur in JSON.
        text.push(0);
        text.extend_from_slice(self.rest.as_deref().unwrap_or_default().as_bytes());
        text
    }
}

/// The status of a finished run.
fn status(run: &Run) -> &'static str {
    let is_lost = matches!(run.reason, Some(Reason::StartUnknown | Reason::NodeLost | Reason::KeeperLost));
    match run.state {
        State::Success => "success",
        State::Error if is_lost => "frozen",
        _ => "fail",
    }
}

/// The exit code of a run, or the negative number of the signal that ended it, as Python has it.
fn return_code(run: &Run) -> String {
    match run.exit {
        Some(ProgramExit::Code(code)) => code.to_string(),
        Some(ProgramExit::Signal(signal)) => format!("-{}", signal.number()),
        None => "null".to_owned(),
    }
}

/// The source of the output, and its last lines if the record has them.
fn last_output(run: &Run, lines: usize) -> (u8, Option<String>) {
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
        None if matches!(run.work, Some(ResolvedProgram::Noop(_))) => (b'-', Some(String::new())),
        None => (b't', None),
    }
}

/// Seconds with six decimals.
fn seconds(micros: i64) -> String {
    let micros = micros.max(0);
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn json(text: &str) -> String {
    serde_json::to_string(text).expect("JSON can hold every text")
}

#[cfg(test)]
mod tests {
    use cronhold_core::record::{Actor, OutputSummary, Transition};
    use cronhold_core::{JobId, JobUid, RunId, RunNumber};
    use cronhold_schedule::{Instant, Span};

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
        run.owner = Some(RunOwner { node: NodeId::from_bits(7), incarnation: 1 });
        run
    }

    fn text(run: &Run) -> String {
        let projector = Projector::new(2);
        projector.learn_node_name(&NodeRecord::new(NodeId::from_bits(7), "lyra", 1, Instant::EPOCH));
        String::from_utf8(projector.project_run(run).to_text()).expect("text").replace('\0', "|")
    }

    #[test]
    fn each_run_state_is_projected() {
        use State::{Error, Failure, Running, Skipped, Starting, Success, Waiting};
        let head = r#"{"job_name":"a \"b\"","start_time":"1.500000","host":"lyra","status":"#;
        let runs = format!(r#"r-{head}"running","retcode":null,"output":null,"duration":null}}|"#);
        let end =
            |status: &str, took: &str| format!(r#"t{head}"{status}","retcode":null,"output":|,"duration":{took}}}"#);
        let none = "--|".to_owned();
        for (states, expected) in [
            (&[Waiting][..], none.clone()),
            (&[Waiting, Skipped], none.clone()),
            (&[Waiting, Error], none.clone()),
            (&[Waiting, Skipped, Success], none.clone()),
            (&[Waiting, Starting, Success, Skipped], none),
            (&[Waiting, Starting], runs.clone()),
            (&[Waiting, Starting, Running], runs),
            (&[Waiting, Starting, Success], format!("s{}", end("success", "0.500000"))),
            (&[Waiting, Running, Failure], format!("f{}", end("fail", "0.500000"))),
            (&[Waiting, Starting, Running, Error], format!("f{}", end("fail", "1.000000"))),
            (&[Waiting, Starting, Failure, Success], format!("s{}", end("success", "0.500000"))),
        ] {
            assert_eq!(text(&run(states)), expected, "{states:?}");
        }
    }

    #[test]
    fn output_comes_from_the_record_if_it_has_enough_lines() {
        let mut run = run(&[State::Starting, State::Success]);
        let mut end = |written: Option<(u64, &[&str])>| {
            run.written = written.map(|(bytes, tail)| OutputSummary {
                bytes,
                tail: tail.iter().map(ToString::to_string).collect(),
                stderr: None,
            });
            let text = text(&run);
            let output = text.split_once(r#","output":"#).expect("it has an output").1;
            format!("{}{}", &text[1..2], output.split_once(r#","duration":"#).expect("it has a duration").0)
        };
        assert_eq!(end(None), "t|");
        assert_eq!(end(Some((0, &[]))), r#"-"""#);
        assert_eq!(end(Some((4, &["a", "b"]))), r#"w"a\nb\n""#);
        assert_eq!(end(Some((99, &["a", "b", "c"]))), r#"w"b\nc\n""#);
        assert_eq!(end(Some((1, &["a"]))), r#"w"a\n""#, "without a newline at the end");
        assert_eq!(end(Some((99, &["a"]))), "t|", "the output has more lines than the record");
        run.written = None;
        run.work = Some(ResolvedProgram::Noop(Span::ZERO));
        assert!(text(&run).starts_with("s-"), "it never has output");
    }
}
