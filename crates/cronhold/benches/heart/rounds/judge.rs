//! The checks at the end of a round, which must hold after any kill at any moment.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::record::{ProgramExit, Run};
use cronhold_store::Store;

use super::scene::Scene;
use super::writer::Script;
use super::{Blow, PROGRAMS, TICK};

/// The outcomes of the programs of one or several rounds.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Number of kills.
    pub(super) blows: u64,
    /// Rounds in which all programs had started before the first kill.
    pub(super) all_running: u64,
    /// Programs that ran to their end with the right exit code and output.
    pub(super) ended: u64,
    /// Programs among them that ended while no daemon ran.
    pub(super) ended_alone: u64,
    /// Runs that were starting when the daemon was killed. Their programs were not started.
    pub(super) unknown: u64,
    /// Runs whose keeper was killed. None of their processes is left.
    pub(super) lost: u64,
    pub(super) violations: Vec<String>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.blows += other.blows;
        self.all_running += other.all_running;
        self.ended += other.ended;
        self.ended_alone += other.ended_alone;
        self.unknown += other.unknown;
        self.lost += other.lost;
        self.violations.extend(other.violations);
    }
}

/// Checks all runs of a round, after all of them have ended.
pub(super) async fn judge(scene: &Scene<'_>, seed: u64, blow: Blow, runs: &[Arc<Run>], tally: &mut Tally) {
    tally.ended_alone = scene.ended_alone();
    if scene.has_programs() {
        tally.violations.push("all runs have ended, and a program is still running".to_owned());
    }
    let text = fs::read_to_string(scene.dir.join("starts")).unwrap_or_default();
    let mut starts: BTreeMap<&str, usize> = BTreeMap::new();
    text.lines().for_each(|run| *starts.entry(run).or_default() += 1);
    let mut by_job: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    runs.iter().for_each(|run| by_job.entry(run.job.as_str()).or_default().push(run));
    by_job.remove(TICK);
    let Some(store) = scene.store() else { return tally.violations.push("there is no store".to_owned()) };
    for number in 0..PROGRAMS {
        let job = format!("many/{number}");
        let [run] = by_job.get(job.as_str()).map_or(&[][..], Vec::as_slice) else {
            tally.violations.push(format!("{job}: not one run: {:?}", by_job.get(job.as_str())));
            continue;
        };
        let id = run.id.to_string();
        let begun = starts.remove(id.as_str()).unwrap_or(0);
        let output = match store.read(run.id, 0, usize::MAX).await {
            Ok(chunk) => chunk.bytes,
            Err(fault) => return tally.violations.push(format!("{job}: {fault}")),
        };
        if let Err(why) = judge_run(run, &Script::new(seed, number), begun, &output, blow, tally) {
            let (state, reason, exit) = (run.state, &run.reason, &run.exit);
            let what = format!("{job} {id}: {why}; {begun} starts, {state:?} {reason:?} {exit:?} {:?}", run.log);
            tally.violations.push(what);
        }
    }
    if !starts.is_empty() {
        tally.violations.push(format!("programs without a run were started: {starts:?}"));
    }
}

fn judge_run(
    run: &Run,
    script: &Script,
    begun: usize,
    output: &[u8],
    blow: Blow,
    tally: &mut Tally,
) -> Result<(), String> {
    let entered = |state| run.log.iter().filter(|transition| transition.state == state).count();
    if entered(State::Starting) != 1 || entered(State::Running) > 1 {
        return Err("it was not started once".to_owned());
    }
    if run.log.iter().filter(|transition| transition.state.is_finished()).count() != 1 {
        return Err("it did not end once".to_owned());
    }
    let reason = run.reason.as_ref().map(ToString::to_string);
    let expected = script.output();
    match (run.state, reason.as_deref()) {
        (State::Error, Some("start unknown")) if begun == 0 => tally.unknown += 1,
        (State::Error, Some("keeper lost")) if begun <= 1 && blow == Blow::Keeper => {
            if !expected.as_bytes().starts_with(output) {
                return Err("its output is not the beginning of what it writes".to_owned());
            }
            tally.lost += 1;
        }
        (State::Success | State::Failure, _) => {
            if begun != 1 || run.exit != Some(ProgramExit::Code(i32::from(script.code))) {
                return Err(format!("it should have ended with {}", script.code));
            }
            if (run.state == State::Success) != (script.code == 0) {
                return Err("its state does not follow from its code".to_owned());
            }
            let counted = run.written.as_ref().map(|written| written.bytes);
            if output != expected.as_bytes() || counted != Some(expected.len() as u64) {
                return Err(format!("{} bytes of {}, counted {counted:?}", output.len(), expected.len()));
            }
            tally.ended += 1;
        }
        _ => return Err("it must not end like this".to_owned()),
    }
    Ok(())
}
