//! Decisions: one file for each command. A decision is a pure function of its [`DecisionView`]. If a record that it has read
//! changes before the commit, the commit fails and the command is decided again.
//!
//! What several decisions share:
//!
//! - [`run_lifecycle`] creates, starts, queues, skips and stops runs; [`finish_run`] ends them.
//! - [`admission`] says whether a run may start beside others, [`conditions`] whether its conditions hold, and
//!   [`placement`] on which node it may start.
//! - [`probes`] asks the outside for conditions.
//! - [`pools`] counts the active runs of several jobs together.
//! - [`batch`] turns pending triggers into runs.
//! - [`timetable`] answers which occurrences a schedule has; [`occurrence`] creates the runs of one occurrence;
//!   [`skips`] records occurrences that do not run.
//! - [`bind`] resolves what a run takes from its job, [`bind_request`] the requests in it.
//! - [`draft`] collects what a decision writes, and [`actions`] adds what the transitions in it cause.

mod actions;
mod admission;
mod batch;
mod bind;
mod bind_action;
mod bind_request;
mod bind_task;
mod catch_up;
mod conditions;
mod deliver;
pub mod dependents;
mod draft;
mod drain;
mod end_unreadable;
mod event;
mod expire;
mod finish_run;
mod fire;
mod keyed;
mod late;
mod mark;
mod move_history;
mod node_lock;
mod occurrence;
mod pause;
mod placement;
mod pools;
mod probes;
mod prune;
mod put_job;
mod reap;
mod remove_job;
mod rename;
mod repair_job;
mod repair_pool;
mod replan;
mod report;
mod rerun;
mod resume;
mod retire;
mod run;
mod run_ad_hoc;
mod run_lifecycle;
mod signal;
mod skip;
mod skips;
mod start;
mod stop;
mod trigger;
mod wake;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod timetable;

use crate::command::Command;
use crate::decision::{DecidedUnit, Decision};
use crate::view::{DecisionView, Halt};

pub(crate) use bind::bindings as run_bindings;
pub use bind_action::transition_message;
pub use move_history::MOVED_MAX;
pub use placement::NODES_MAX;
pub use rename::RENAMED_PENDING_MAX;
pub use run_lifecycle::{KILL_WAIT, LAUNCH_WITHIN, LOCK_POLL, WAIT_POLL};

/// Decides about a command. The result of a pass that lacked records is discarded: whatever it was, it is
/// [`Decision::Need`] with all the records that the pass lacked.
pub fn decide(view: &DecisionView<'_>, command: &Command) -> Decision {
    let decided = dispatch(view, command);
    if !view.is_complete() {
        return Decision::Need(view.missing());
    }
    match decided {
        Ok(done) => Decision::Done(done),
        Err(Halt::Reject(rejection)) => Decision::Reject(rejection),
        Err(Halt::MissingRecords) => unreachable!("a view that lacks records is not complete"),
    }
}

fn dispatch(view: &DecisionView<'_>, command: &Command) -> Result<DecidedUnit, Halt> {
    match command {
        Command::PutJob { id, job, source, uid, provided } => put_job::decide(view, id, job, source, *uid, *provided),
        Command::RemoveJob { id, source, provided } => remove_job::decide(view, id, source, *provided),
        Command::RenameJob { from, to, scheduled, next_number } => {
            rename::decide(view, (from, to), scheduled, *next_number)
        }
        Command::MoveHistory { to, keys } => move_history::decide(view, to, keys),
        Command::Replan { job } => replan::decide(view, job),
        Command::RepairJob { job } => repair_job::decide(view, job),
        Command::RepairPool { pool } => repair_pool::decide(view, pool),
        Command::Pause { job, why, until } => pause::decide(view, job.as_ref(), why, *until),
        Command::EndPause { job } => resume::end_expired(view, job.as_ref()),
        Command::Resume { job } => resume::decide(view, job.as_ref()),
        Command::Fire { job, schedule, nominal, at_start } => fire::decide(view, job, schedule, *nominal, *at_start),
        Command::CatchUp { job, schedule } => catch_up::decide(view, job, schedule),
        Command::Trigger { job, args, trigger, message, id } => {
            let (inherited, message) = (&Default::default(), message.as_deref());
            trigger::receive(view, &trigger::NewTrigger { job, args, inherited, id: trigger, message, run: *id })
        }
        Command::Batch { job } => batch::decide(view, job),
        Command::RemoveTriggers { job, trigger } => trigger::remove(view, job, trigger.as_ref()),
        Command::Run { job, args, id, at, stop } => run::decide(view, job, args, *id, (*at, *stop)),
        Command::RunAdHoc { job, args, id, at, stop } => run_ad_hoc::decide(view, job, args, *id, (*at, *stop)),
        Command::Wake { run } => wake::decide(view, *run),
        Command::ReportProbe { run, attempt, result } => probes::report(view, *run, *attempt, result),
        Command::Report { run, report } => report::decide(view, *run, report),
        Command::Start { run } => start::decide(view, *run),
        Command::Skip { run, why } => skip::decide(view, *run, why),
        Command::Stop { run } => stop::decide(view, *run),
        Command::Signal { run, signal } => signal::decide(view, *run, *signal),
        Command::Mark { run, state, why } => mark::decide(view, *run, *state, why),
        Command::EndUnreadable { job, run, state, why } => end_unreadable::decide(view, job, *run, *state, why),
        Command::Rerun { run, id, current } => rerun::decide(view, *run, *id, *current),
        Command::Reap { run, beat } => reap::decide(view, *run, *beat),
        Command::Drain { node, on } => drain::decide(view, *node, *on),
        Command::AcquireLock { lock, holder, ttl } => node_lock::acquire(view, lock, *holder, *ttl),
        Command::ReleaseLock { lock, holder } => Ok(node_lock::release(lock, *holder)),
        Command::Event { once, holder, command } => event::decide(view, once, *holder, command),
        Command::Keyed { key, command } => keyed::decide(view, key, command),
        Command::Expire { keys, before } => expire::decide(view, keys, *before),
        Command::Prune { job, records } => prune::decide(view, job, records),
        Command::Deliver { action } => deliver::decide(view, *action),
        Command::ReportDelivery { action, attempt, result } => deliver::report(view, *action, *attempt, result),
    }
}
