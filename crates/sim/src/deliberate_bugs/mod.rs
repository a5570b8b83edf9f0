//! Mistakes on purpose, each a wrapper around a store or around whoever has programs: whoever checks the engine has to
//! notice them. One more is no mistake, only bad luck that never ends, and must go unnoticed. The product has no switch
//! for any of them.

mod answers;
mod outside;
mod store;

use std::sync::{Arc, Mutex};

use cronhold_core::NodeId;
use cronhold_engine::ProgramRunner;
use cronhold_store::Store;

use crate::chance::SimRandom;
use crate::context::SimContext;
use crate::executor::TaskOwner;
use outside::WrongOutside;
use store::{EagerReplyStore, WrongStore};

/// What is wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliberateBug {
    /// Nothing.
    #[default]
    Sound,
    /// Claims are not compared: whoever writes last wins.
    Blind,
    /// Effects come before the commit: it is answered as done when it is sent, and done later.
    Hasty,
    /// Nothing that an earlier life left is taken up: runs, backlogs and passed deadlines are not shown.
    Forgetful,
    /// The watchdog sees nothing, neither deadlines that have passed nor runs that a node has.
    Asleep,
    /// Programs do not end when their lease is over.
    Immortal,
    /// A lock can be taken while somebody holds it.
    Grabby,
    /// A lock is freed as soon as its run's program is there.
    FreesEarly,
    /// All locks have the same fence for ever.
    OneFence,
    /// Runs are given up though their nodes are heard of: nobody sees beats.
    Deaf,
    /// Reports of programs are written whatever became of the run meanwhile.
    Late,
    /// A node believes another time than the store's.
    WrongTime,
    /// Pauses are not seen.
    Restless,
    /// That a node drains is not seen.
    Undrained,
    /// The labels that a job asks for are not seen.
    Anywhere,
    /// All occurrences are caught up, whatever the job says.
    Eager,
    /// All runs may overlap, whatever the job says.
    Crowded,
    /// Numbers of runs are given twice.
    Miscounting,
    /// What is skipped is not written.
    Careless,
    /// A node that comes back starts the programs that it finds once more.
    Restarting,
    /// Programs start long after their commits.
    Tardy,
    /// Every node believes that all others drain, so that all try everything at once and nobody is given a run.
    Lonely,
    /// Nobody hears a hint. Watching and polling make up for it.
    Hintless,
}

impl DeliberateBug {
    /// All that are wrong.
    pub const WRONG: [Self; 21] = [
        Self::Blind,
        Self::Hasty,
        Self::Forgetful,
        Self::Asleep,
        Self::Immortal,
        Self::Grabby,
        Self::FreesEarly,
        Self::OneFence,
        Self::Deaf,
        Self::Late,
        Self::WrongTime,
        Self::Restless,
        Self::Undrained,
        Self::Anywhere,
        Self::Eager,
        Self::Crowded,
        Self::Miscounting,
        Self::Careless,
        Self::Restarting,
        Self::Tardy,
        Self::Lonely,
    ];

    /// All that are no mistake.
    pub const UNLUCKY: [Self; 1] = [Self::Hintless];

    /// Wraps the store itself, where units take effect.
    pub(crate) fn before_the_store(self, store: Arc<dyn Store>, node: NodeId) -> Arc<dyn Store> {
        match self {
            Self::Sound | Self::Hasty | Self::Immortal | Self::Restarting | Self::Tardy => store,
            how => Arc::new(WrongStore { store, how, node, seen: Mutex::default() }),
        }
    }

    /// Wraps the line to the store, where units are sent.
    pub(crate) fn before_the_line(
        self,
        line: Arc<dyn Store>,
        context: &SimContext,
        whose: TaskOwner,
        chance: &SimRandom,
    ) -> Arc<dyn Store> {
        match self {
            Self::Hasty => {
                Arc::new(EagerReplyStore { store: line, context: context.clone(), whose, chance: chance.fork() })
            }
            _ => line,
        }
    }

    /// Wraps whoever has programs.
    pub(crate) fn before_the_programs(
        self,
        outside: Arc<dyn ProgramRunner>,
        context: &SimContext,
        whose: TaskOwner,
    ) -> Arc<dyn ProgramRunner> {
        match self {
            Self::Immortal | Self::Restarting | Self::Tardy => {
                Arc::new(WrongOutside { outside, how: self, context: context.clone(), whose })
            }
            _ => outside,
        }
    }
}
