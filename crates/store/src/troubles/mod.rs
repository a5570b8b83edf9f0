//! The suite for stores on servers that fail: what handles return while a server is suspended, killed or without its
//! data, and that they go on by themselves when it is back. It is used like the conformance suite: a store provides a
//! function that starts servers of its own, and gets a test for each case:
//!
//! ```text
//! cronhold_store::trouble_tests!(start_servers);
//! ```
//!
//! Cases are grouped by the failure: [`suspensions`], [`restarts`], [`losses`].

mod client;
pub mod losses;
pub mod restarts;
pub mod suspensions;
mod waiting;

use std::sync::Arc;

use cronhold_schedule::Span;

use crate::Store;

/// Of locks that do not expire during a case.
const LONG_TTL: Span = Span::from_secs(300);

/// The servers of a store under test; new and empty ones for each case. All methods act on all servers.
pub trait FailingServers {
    /// Another handle, as a new process would have. It gives up a request after at most some seconds without a reply.
    /// The servers may be down.
    fn open(&self) -> Arc<dyn Store>;

    /// Suspends the servers: connections stay open, and nothing replies.
    fn suspend(&self);

    /// Continues suspended servers.
    fn resume(&self);

    /// Kills the servers, at any point of their work.
    fn kill(&self);

    /// Starts killed servers again, with their data, and waits until they reply.
    fn start(&self);

    /// Kills the servers, and starts them again without their data.
    fn forget(&self);

    /// What handles do when the store has lost data that they have seen.
    fn loss_response(&self) -> LossResponse;

    /// Ends the time for which commits are rejected after a loss, so that cases do not wait as long as nodes do.
    fn end_recovery(&self) {}
}

/// What handles do when the store has lost data that they have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossResponse {
    /// They restore what they have written. Commits are rejected as [`crate::Fault::Recovering`] for some time.
    Restores,
    /// They reject everything that writes, as [`crate::Fault::Permanent`]: an operator has to decide.
    Refuses,
}

/// One case of the suite.
pub type TroubleCase = fn(&dyn FailingServers);

/// Generates a test for each case, given the path of a function that creates [`FailingServers`].
#[macro_export]
macro_rules! trouble_tests {
    ($make:path) => {
        $crate::trouble_cases!([$crate::trouble_tests] $make;);
    };
    ($make:path; $($module:ident::$case:ident)+) => {
        $(
            #[test]
            fn $case() {
                $crate::troubles::$module::$case(&$make());
            }
        )+
    };
}

/// Calls a macro with its arguments and all cases, in reading order.
#[doc(hidden)]
#[macro_export]
macro_rules! trouble_cases {
    ([$($then:tt)+] $($before:tt)*) => {
        $($then)+! {
            $($before)*
            suspensions::commits_to_a_suspended_server_settle
            suspensions::unit_sent_to_a_suspended_server_is_whole
            suspensions::reads_from_a_suspended_server_fail
            suspensions::locks_expire_while_the_server_is_suspended
            restarts::killed_server_keeps_confirmed_commits
            restarts::increments_of_several_processes_add_up_across_outages
            restarts::every_request_works_again_after_a_restart
            restarts::health_shows_an_outage_while_it_lasts
            restarts::locks_are_renewed_after_a_restart
            restarts::lock_of_a_dead_holder_expires_after_a_restart
            restarts::output_is_whole_after_a_restart_and_a_suspension
            restarts::hints_resume_after_a_restart
            losses::lost_records_and_locks_are_restored
            losses::each_process_restores_its_own_writes
            losses::restored_records_never_regress
            losses::lock_that_another_took_after_a_loss_is_reported_as_lost
        }
    };
}

macro_rules! trouble_list {
    ($($module:ident::$case:ident)+) => {
        &[$((stringify!($case), $module::$case)),+]
    };
}

/// All cases with their names, in reading order.
pub const TROUBLE_CASES: &[(&str, TroubleCase)] = trouble_cases!([trouble_list]);

#[cfg(test)]
mod tests {
    use super::*;

    /// Files with cases.
    const FILES: [&str; 3] = [include_str!("suspensions.rs"), include_str!("restarts.rs"), include_str!("losses.rs")];

    #[test]
    fn every_case_is_listed() {
        let name = |line: &'static str| line.strip_prefix("pub fn ")?.strip_suffix("(servers: &dyn FailingServers) {");
        let written: Vec<&str> = FILES.iter().flat_map(|file| file.lines().filter_map(name)).collect();
        let listed: Vec<&str> = TROUBLE_CASES.iter().map(|(name, _)| *name).collect();
        assert_eq!(written, listed, "cases in the files, and cases in the list");
    }
}
