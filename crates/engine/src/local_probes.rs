//! The checks of waiting runs that this node carries out. The record of a run may be written or read again while a check
//! goes on, and must not cause a second one.

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{ProbeState, Record, RecordKey, RunOwner};

/// Attempts that were handed over, by their runs.
#[derive(Debug, Default)]
pub(crate) struct LocalProbes {
    begun: BTreeMap<RunId, Vec<u32>>,
}

impl LocalProbes {
    /// Whether an attempt has to be handed over now. It counts as handed over from then on.
    pub(crate) fn begin(&mut self, run: RunId, attempt: u32) -> bool {
        let begun = self.begun.entry(run).or_default();
        let is_new = !begun.contains(&attempt);
        if is_new {
            begun.push(attempt);
        }
        is_new
    }

    /// Follows a change of a run.
    pub(crate) fn record_change(&mut self, change: &RecordChange, me: RunOwner) {
        match change {
            RecordChange::Put(Record::Run(run)) => {
                let Some(begun) = self.begun.get_mut(&run.id) else { return };
                let is_mine = |probe: &ProbeState| probe.asked.is_some_and(|lease| lease.owner == me);
                begun.retain(|attempt| run.probes.iter().any(|probe| probe.attempt == *attempt && is_mine(probe)));
                if begun.is_empty() {
                    self.begun.remove(&run.id);
                }
            }
            RecordChange::Delete(RecordKey::Run(run)) => drop(self.begun.remove(run)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cronhold_core::record::{ProbeLease, ResolvedProbe, Run};
    use cronhold_core::{JobId, JobUid, NodeId, RunNumber};
    use cronhold_schedule::Instant;

    use super::*;

    const ME: RunOwner = RunOwner { node: NodeId::from_bits(1), incarnation: 1 };

    #[test]
    fn attempt_is_handed_over_once_and_forgotten_with_its_lease() {
        let id = RunId::from_key(Instant::EPOCH, "r");
        let job = JobId::parse("j").expect("an id");
        let mut run = Run::blank(id, RunNumber(1), job, JobUid::from_bits(1), Instant::EPOCH);
        let asked = Some(ProbeLease { owner: ME, until: Instant::from_secs(9) });
        run.probes = [1, 2]
            .map(|attempt| ProbeState { attempt, asked, ..ProbeState::new(ResolvedProbe::File("/a".to_owned())) })
            .to_vec();
        let mut probes = LocalProbes::default();
        assert_eq!([probes.begin(id, 1), probes.begin(id, 2), probes.begin(id, 1)], [true, true, false]);
        let put = |run: &Run| RecordChange::Put(Record::Run(Arc::new(run.clone())));
        probes.record_change(&put(&run), ME);
        assert!(!probes.begin(id, 1));
        run.probes[0].asked = None;
        probes.record_change(&put(&run), ME);
        assert_eq!([probes.begin(id, 1), probes.begin(id, 2)], [true, false]);
        run.probes.clear();
        probes.record_change(&put(&run), ME);
        assert!(probes.begun.is_empty());
    }
}
