//! The conformance suite that every store must pass: each guarantee of the `Store` trait is a named case. A store
//! provides a function that creates an empty store, and gets a test for each case:
//!
//! ```text
//! cronhold_store::conformance_tests!(make_subject);
//! ```
//!
//! Cases are grouped by what they are about: [`versions`], [`units`], [`round_trips`], [`locks`], [`due`], [`pages`],
//! [`run_pages`], [`outputs`], [`hints`], [`writers`], [`durability`]. Two of them, [`claims`] and [`locking`], record
//! the replies to many concurrent writers, and [`linear`] checks that they are linearizable.

mod block_on;
pub mod claims;
pub mod due;
pub mod durability;
pub mod hints;
mod history;
pub mod linear;
pub mod locking;
pub mod locks;
pub mod outputs;
pub mod pages;
mod rich_jobs;
mod rich_records;
pub mod round_trips;
pub mod run_pages;
mod samples;
mod seeded_random;
mod test_writer;
pub mod units;
pub mod versions;
pub mod writers;

use std::sync::Arc;

use cronhold_schedule::Span;

pub use block_on::block_on;

use crate::Store;

/// A store under test; a new and empty one for each case.
pub trait Subject {
    /// Another handle on the store, as another process would have.
    fn store(&self) -> Arc<dyn Store>;

    /// Advances the clock of the store.
    fn pass(&self, span: Span);

    /// Closes the store and opens it again. Cases have dropped all handles they had.
    fn reopen(&self) -> Arc<dyn Store>;
}

/// One case of the suite.
pub type Case = fn(&dyn Subject);

/// Generates a test for each case, given the path of a function that creates a [`Subject`].
#[macro_export]
macro_rules! conformance_tests {
    ($make:path) => {
        $crate::conformance_cases!([$crate::conformance_tests] $make;);
    };
    ($make:path; $($module:ident::$case:ident)+) => {
        $(
            #[test]
            fn $case() {
                $crate::conformance::$module::$case(&$make());
            }
        )+
    };
}

/// Calls a macro with its arguments and all cases, in reading order.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ([$($then:tt)+] $($before:tt)*) => {
        $($then)+! {
            $($before)*
            versions::a_record_is_written_by_those_who_know_it
            versions::a_deleted_record_is_not_there
            versions::records_can_be_compared_without_a_change
            versions::a_conflict_names_what_has_changed
            versions::loads_answer_in_order
            units::one_conflict_undoes_a_unit
            units::one_held_lock_undoes_a_unit
            units::units_of_a_commit_are_done_in_order
            units::units_of_a_commit_fail_alone
            units::a_unit_is_done_once
            units::an_abandoned_commit_can_be_sent_again
            units::what_nobody_else_has_run_can_be_compared
            units::nothing_can_be_done
            units::a_unit_can_have_many_records
            units::a_commit_can_have_many_units
            round_trips::records_come_back_as_they_were
            round_trips::jobs_come_back_as_they_were
            round_trips::nodes_come_back_as_they_were
            round_trips::runs_and_spans_are_different_records
            round_trips::a_change_leaves_nothing_behind
            round_trips::similar_keys_are_different_records
            round_trips::a_record_can_be_large
            locks::a_lock_has_one_holder
            locks::a_holder_can_take_its_lock_again
            locks::a_unit_can_hand_a_lock_over
            locks::a_lock_runs_out
            locks::beats_renew_locks
            locks::beats_tell_of_lost_locks
            locks::a_lock_without_end_stays
            locks::fences_only_grow
            due::what_is_due_comes_in_order
            due::what_is_due_comes_in_pages
            due::what_is_done_is_not_due
            pages::lists_come_in_order
            pages::schedules_of_a_job_come_in_order
            pages::nodes_come_in_order
            pages::lists_hold_one_kind
            pages::pages_are_stable_under_writes
            run_pages::runs_come_with_the_latest_first
            run_pages::runs_come_from_anywhere
            run_pages::runs_are_found_by_number
            run_pages::unfinished_runs_come_with_the_earliest_first
            run_pages::the_oldest_runs_of_a_state_come_first
            run_pages::runs_move_between_lists
            run_pages::pages_of_runs_are_stable_under_writes
            outputs::an_output_is_read_by_range
            outputs::an_output_can_be_empty
            outputs::an_append_can_be_sent_again
            outputs::an_output_has_no_gaps
            outputs::an_output_can_be_large
            outputs::an_output_goes_with_its_run
            outputs::outputs_come_in_pages
            outputs::outputs_can_be_dropped
            outputs::outputs_go_when_their_time_is_over
            hints::others_hear_of_changes
            hints::who_waits_is_woken
            writers::writers_have_numbers_of_their_own
            writers::no_change_is_lost
            writers::a_load_sees_one_moment
            claims::claims_are_linearizable
            locking::locks_are_linearizable
            durability::everything_is_there_after_a_restart
            durability::work_goes_on_after_a_restart
            durability::time_goes_on
            durability::a_healthy_store_says_so
        }
    };
}

macro_rules! list {
    ($($module:ident::$case:ident)+) => {
        &[$((stringify!($case), $module::$case)),+]
    };
}

/// All cases with their names, in reading order.
pub const CASES: &[(&str, Case)] = conformance_cases!([list]);

#[cfg(test)]
mod tests {
    use super::*;

    /// Files with cases.
    const FILES: [&str; 13] = [
        include_str!("versions.rs"),
        include_str!("units.rs"),
        include_str!("round_trips.rs"),
        include_str!("locks.rs"),
        include_str!("due.rs"),
        include_str!("pages.rs"),
        include_str!("run_pages.rs"),
        include_str!("outputs.rs"),
        include_str!("hints.rs"),
        include_str!("writers.rs"),
        include_str!("claims.rs"),
        include_str!("locking.rs"),
        include_str!("durability.rs"),
    ];

    #[test]
    fn every_case_is_listed() {
        let name = |line: &'static str| line.strip_prefix("pub fn ")?.strip_suffix("(subject: &dyn Subject) {");
        let written: Vec<&str> = FILES.iter().flat_map(|file| file.lines().filter_map(name)).collect();
        let listed: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
        assert_eq!(written, listed, "those that are written, and those that are run");
    }
}
