//! Sends the transactions of a commit, several at a time. They form a chain: each sets a znode of this process from the
//! version that the one before it leaves, so that none takes effect unless all before it did. Without that, a transaction
//! could take another process's write for that of an earlier transaction, because data versions only count.

use std::collections::VecDeque;
use std::sync::Arc;

use cronhold_store::Fault;
use cronhold_store_remote::faults::as_unsent;

use super::plan::CommitPart;
use crate::ensemble::{Ensemble, random};
use crate::wire::{WriteFailure, WriteRefusal, WriteRefusalReason, ZnodeWrite, ZooKeeperSession};

/// Transactions that are in flight together.
const IN_FLIGHT_MAX: usize = 4;

/// Sends transactions.
#[derive(Debug, Default)]
pub(super) struct CommitSender(Option<CommitChain>);

/// The znode that orders transactions. It is deleted with the session.
#[derive(Debug)]
struct CommitChain {
    session: Arc<ZooKeeperSession>,
    path: String,
    version: i32,
}

/// What became of the parts of a commit.
#[derive(Debug)]
pub(super) struct SentParts {
    /// How many of them took effect, from the first one on.
    pub(super) done: usize,
    /// Why no other part can be sent; `None` if the rest can be planned again.
    pub(super) fault: Option<Fault>,
    /// Why the first part that did not take effect would fail again.
    pub(super) blocked: Option<BlockedWrite>,
}

/// An operation that fails whatever the records are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BlockedWrite {
    /// The folder of the znode does not exist.
    NoFolder { path: String },
    /// A znode cannot be deleted, because it has children.
    HasChildren { path: String },
    /// A znode that is set whatever it has does not exist.
    NoZnode { path: String },
}

impl BlockedWrite {
    /// Why a part was refused, if not because other processes have changed something.
    fn of(part: &CommitPart, refusal: WriteRefusal, operations_before: usize) -> Option<Self> {
        let write = part.writes.get(refusal.index.checked_sub(operations_before)?)?;
        match (write, refusal.reason) {
            (ZnodeWrite::Create { path, .. }, WriteRefusalReason::Missing) => {
                Some(Self::NoFolder { path: path.clone() })
            }
            (ZnodeWrite::Delete { path, .. }, WriteRefusalReason::NotEmpty) => {
                Some(Self::HasChildren { path: path.clone() })
            }
            (ZnodeWrite::Set { path, version: None, .. }, WriteRefusalReason::Missing) => {
                Some(Self::NoZnode { path: path.clone() })
            }
            _ => None,
        }
    }

    pub(super) fn path(&self) -> &str {
        match self {
            Self::NoFolder { path } | Self::HasChildren { path } | Self::NoZnode { path } => path,
        }
    }

    /// The fault of a unit that needs the operation.
    pub(super) fn to_fault(&self, servers: &str) -> Fault {
        Fault::Permanent(match self {
            Self::NoFolder { path } => format!("{servers}: the znode {path} cannot be created in its folder"),
            Self::NoZnode { path } => format!("{servers}: the znode {path} does not exist any more"),
            Self::HasChildren { path } => {
                format!("{servers}: the znode {path} cannot be deleted, because it has children; delete them")
            }
        })
    }
}

impl SentParts {
    /// Some parts took effect, and the rest can be planned again.
    fn done(done: usize) -> Self {
        Self { done, fault: None, blocked: None }
    }

    fn failed(fault: Fault) -> Self {
        Self { done: 0, fault: Some(fault), blocked: None }
    }
}

impl CommitSender {
    /// Sends parts. A part without operations is done.
    pub(super) async fn send(
        &mut self,
        ensemble: &Ensemble,
        session: &Arc<ZooKeeperSession>,
        parts: &[CommitPart],
    ) -> SentParts {
        let sent = match parts {
            [part] if part.writes.is_empty() => Ok(SentParts::done(1)),
            [part] => Ok(send_one(session, part).await),
            parts => self.send_chained(ensemble, session, parts).await,
        };
        let sent = sent.unwrap_or_else(SentParts::failed);
        if sent.fault.is_some() {
            // The version of the chain is not known any more.
            self.0 = None;
        }
        sent
    }

    async fn send_chained(
        &mut self,
        ensemble: &Ensemble,
        session: &Arc<ZooKeeperSession>,
        parts: &[CommitPart],
    ) -> Result<SentParts, Fault> {
        if self.0.as_ref().is_none_or(|chain| !Arc::ptr_eq(&chain.session, session)) {
            self.0 = Some(CommitChain::create(ensemble, session).await?);
        }
        let chain = self.0.as_mut().expect("it was created above");
        let first = chain.version;
        let (mut sent, mut done, mut fault, mut blocked) = (0, 0, None, None);
        let mut has_failed = false;
        let mut in_flight = VecDeque::new();
        loop {
            while !has_failed && in_flight.len() < IN_FLIGHT_MAX && sent < parts.len() {
                let version = first.wrapping_add(i32::try_from(sent).unwrap_or(i32::MAX));
                let mut writes =
                    vec![ZnodeWrite::Set { path: chain.path.clone(), data: Vec::new(), version: Some(version) }];
                writes.extend_from_slice(&parts[sent].writes);
                match session.submit(&writes).await {
                    Ok(reply) => in_flight.push_back(reply),
                    Err(unsent) => {
                        has_failed = true;
                        fault = Some(graver(fault, unsent));
                        break;
                    }
                }
                sent += 1;
            }
            let Some(reply) = in_flight.pop_front() else { break };
            let position = sent - in_flight.len();
            match reply.await {
                // All parts before it took effect as well, also if their replies were lost.
                Ok(_) => done = position,
                Err(WriteFailure::Refused(refusal)) => {
                    has_failed = true;
                    blocked = blocked.or_else(|| BlockedWrite::of(&parts[position - 1], refusal, 1));
                }
                Err(WriteFailure::Fault(failure)) => {
                    has_failed = true;
                    fault = Some(graver(fault, failure));
                }
            }
        }
        chain.version = first.wrapping_add(i32::try_from(done).unwrap_or(i32::MAX));
        // A reply that was lost does not matter if a later part took effect.
        Ok(SentParts { done, fault: fault.filter(|_| done < parts.len()), blocked })
    }
}

impl CommitChain {
    async fn create(ensemble: &Ensemble, session: &Arc<ZooKeeperSession>) -> Result<Self, Fault> {
        let path = ensemble.paths().chain(random()?);
        let create = [ZnodeWrite::Create { path: path.clone(), data: Vec::new(), is_ephemeral: true }];
        let mut created = session.write(&create).await;
        if matches!(&created, Err(WriteFailure::Refused(refusal)) if refusal.reason == WriteRefusalReason::Missing) {
            ensemble.create_folders(session).await?;
            created = session.write(&create).await;
        }
        match created {
            Ok(_) => Ok(Self { session: Arc::clone(session), path, version: 0 }),
            Err(WriteFailure::Fault(fault)) => Err(as_unsent(fault)),
            Err(WriteFailure::Refused(_)) => Err(Fault::Permanent(format!("the znode {path} cannot be created"))),
        }
    }
}

async fn send_one(session: &ZooKeeperSession, part: &CommitPart) -> SentParts {
    match session.write(&part.writes).await {
        Ok(_) => SentParts::done(1),
        Err(WriteFailure::Refused(refusal)) => {
            SentParts { blocked: BlockedWrite::of(part, refusal, 0), ..SentParts::done(0) }
        }
        Err(WriteFailure::Fault(fault)) => SentParts::failed(fault),
    }
}

/// The fault of parts that failed in different ways. If one of them may have taken effect, no other fault hides that.
fn graver(before: Option<Fault>, fault: Fault) -> Fault {
    match before {
        Some(before @ Fault::OutcomeUnknown(_)) => before,
        _ => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_outcome_of_a_part_is_not_hidden_by_a_refusal_of_a_later_one() {
        let (unknown, full) = (Fault::OutcomeUnknown("a".to_owned()), Fault::ReadOnly("b".to_owned()));
        assert_eq!(graver(None, full.clone()), full);
        assert_eq!(graver(Some(unknown.clone()), full.clone()), unknown);
        assert_eq!(graver(Some(full), unknown.clone()), unknown);
    }
}
