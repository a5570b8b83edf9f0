//! Creates a run for a request with an idempotency key. The unit that creates the run also takes the mark of the key, for
//! the run. So a second request with the key finds the run, on every node and after every restart, until the mark
//! expires.

use super::run;
use crate::command::Command;
use crate::decision::{DecidedUnit, LockTake, Rejection};
use crate::ids::RunId;
use crate::policy::retention::KEY_KEPT;
use crate::record::LockName;
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, key: &LockName, command: &Command) -> Result<DecidedUnit, Halt> {
    let id = created_run(command);
    if let Some(mark) = view.lock(key).filter(|mark| Some(mark.holder) != id) {
        let first = view.run(mark.holder);
        view.require_loaded()?;
        // Without the run there is no reply, and a second run must not be created.
        return first.map(|first| run::existing(&first)).ok_or_else(|| Rejection::KeyUsed(mark.holder).into());
    }
    let mut done = super::dispatch(view, command)?;
    if let Some(holder) = id.filter(|_| !done.changes.is_empty()) {
        done.take.push(LockTake { lock: key.clone(), holder, ttl: Some(KEY_KEPT) });
    }
    Ok(done)
}

/// The id of the run that a command creates.
fn created_run(command: &Command) -> Option<RunId> {
    match command {
        Command::Run { id, .. } | Command::RunAdHoc { id, .. } | Command::Rerun { id, .. } => Some(*id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::decide::testing::{START, play};
    use crate::ids::JobId;
    use crate::record::Actor;

    fn keyed(key: &str, run: &str) -> Command {
        let id = RunId::from_key(START, run);
        let command =
            Command::Run { job: JobId::parse("j").expect("an id"), args: BTreeMap::new(), id, at: None, stop: None };
        Command::Keyed { key: LockName::of_request(key).expect("a short digest"), command: Box::new(command) }
    }

    #[test]
    fn one_key_creates_one_run_on_all_nodes() {
        let mut bench = play(
            "00:00 there 1 2
            00:00 put j overlap allow; kept 0
                job r1",
        );
        let anna = || Actor::Operator("anna".to_owned());
        assert_eq!(bench.line(anna(), &keyed("k", "first")), "#1 00:00 starting, → #1");
        assert_eq!(bench.line(anna(), &keyed("k", "first")), "→ #1", "the same command again");
        bench.happens("node 2.1");
        assert_eq!(bench.line(anna(), &keyed("k", "second")), "→ #1");
        assert_eq!(bench.line(anna(), &keyed("l", "third")), "#2 00:00 starting, → #2");
        // The run is no longer kept, and the key still counts.
        bench.happens("node 1.1");
        bench.happens("ended #1 yes");
        bench.happens("prune j #1");
        assert!(bench.line(anna(), &keyed("k", "fourth")).starts_with("! the run "));
    }
}
