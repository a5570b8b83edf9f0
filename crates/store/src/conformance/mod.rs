//! The conformance suite that every store must pass: each guarantee of the `Store` trait is a named case. A store
//! provides a function that creates an empty store, and gets a test for each case:
//!
//! ```text
//! cronhold_store::conformance_tests!(make_subject);
//! ```
//!
//! Cases are grouped by what they are about: [`versions`], [`units`], [`round_trips`], [`locks`], [`due`], [`pages`],
//! [`run_pages`], [`walks`], [`outputs`], [`limits`], [`hints`], [`writers`], [`seals`], [`durability`], [`unreadable`]. Two of them, [`claims`] and [`locking`], record
//! the replies to many concurrent writers, and [`linear`] checks that they are linearizable.

pub mod ahead;
mod block_on;
pub mod claims;
pub mod due;
pub mod durability;
pub mod hints;
mod history;
pub mod limits;
pub mod linear;
pub mod locking;
pub mod locks;
pub mod outputs;
pub mod pages;
pub mod rename;
mod rich_actions;
mod rich_jobs;
mod rich_records;
mod rich_triggers;
pub mod round_trips;
pub mod run_pages;
pub(crate) mod samples;
pub mod seals;
pub mod tasks;
pub(crate) mod test_writer;
pub mod units;
pub mod unreadable;
pub mod versions;
pub mod walks;
pub mod writers;

use std::sync::Arc;

use cronhold_core::record::RecordKey;
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

    /// Damages a stored record of ours so that it cannot be read. Returns false if the store cannot have such records.
    fn damage(&self, _key: &RecordKey) -> bool {
        false
    }
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
            versions::record_is_written_only_with_its_version
            versions::deleted_record_is_absent
            versions::records_can_be_compared_without_a_change
            versions::conflict_names_the_changed_record
            versions::loads_keep_the_requested_order
            ahead::prepared_units_take_effect_with_their_commit
            ahead::dropped_units_have_no_effect
            ahead::other_commits_come_before_prepared_units
            units::one_conflict_rejects_the_unit
            units::one_held_lock_rejects_the_unit
            units::units_of_a_commit_apply_in_order
            units::units_of_a_commit_fail_independently
            units::invalid_unit_fails_alone
            units::unit_takes_effect_once
            units::abandoned_commit_can_be_sent_again
            units::absent_foreign_runs_can_be_compared
            units::empty_units_and_commits_succeed
            units::unit_can_have_many_records
            units::commit_can_have_many_units
            round_trips::records_are_returned_as_written
            round_trips::jobs_are_returned_as_written
            round_trips::nodes_are_returned_as_written
            round_trips::runs_and_spans_are_different_records
            round_trips::overwriting_removes_previous_content
            round_trips::similar_keys_are_different_records
            round_trips::record_can_be_large
            locks::lock_has_one_holder
            locks::holder_can_take_its_lock_again
            locks::unit_can_hand_a_lock_over
            locks::lock_expires_after_its_ttl
            locks::heartbeats_renew_locks
            locks::heartbeats_report_lost_locks
            locks::lock_without_ttl_stays_held
            locks::fences_only_grow
            locks::expiry_keeps_held_locks_and_growing_fences
            due::due_records_are_ordered
            due::due_records_are_paged
            due::completed_records_are_not_due
            pages::lists_are_ordered_by_key
            pages::schedules_of_a_job_are_ordered
            pages::definitions_list_all_jobs
            pages::nodes_are_ordered_by_id
            pages::lists_hold_one_kind
            pages::identities_are_listed_once
            pages::pending_actions_are_listed
            pages::sets_with_pending_triggers_are_listed
            pages::pages_are_stable_under_writes
            run_pages::runs_are_listed_latest_first
            run_pages::runs_are_found_by_when_they_ran
            run_pages::runs_are_listed_from_any_id
            run_pages::runs_are_found_by_number
            run_pages::unfinished_runs_are_listed_earliest_first
            run_pages::finished_runs_of_a_state_are_listed_earliest_first
            run_pages::runs_move_between_lists
            run_pages::pages_of_runs_are_stable_under_writes
            walks::walk_returns_each_record_once
            walks::walk_continues_while_others_write
            walks::walk_returns_held_locks_and_nodes
            outputs::output_is_read_by_range
            outputs::output_can_be_empty
            outputs::append_can_be_sent_again
            outputs::output_has_no_gaps
            outputs::output_can_be_large
            outputs::output_is_deleted_with_its_run
            outputs::outputs_are_listed_in_pages
            outputs::outputs_can_be_deleted
            outputs::outputs_expire_after_retention
            outputs::output_sizes_are_counted
            outputs::oldest_outputs_are_deleted_beyond_a_total_size
            limits::definition_above_the_limit_is_rejected
            limits::unit_above_a_limit_fails_alone
            limits::oldest_outputs_are_deleted_beyond_a_number
            rename::renamed_job_takes_its_history_along
            hints::other_handles_receive_hints
            hints::waiting_handle_is_woken
            writers::writer_numbers_are_unique
            writers::concurrent_increments_add_up
            writers::load_is_a_snapshot
            claims::claims_are_linearizable
            locking::locks_are_linearizable
            seals::sealed_store_refuses_changes
            seals::heartbeats_renew_locks_of_a_sealed_store
            durability::everything_survives_a_restart
            durability::work_continues_after_a_restart
            durability::clock_advances
            durability::healthy_store_reports_no_trouble
            unreadable::unreadable_record_is_named_and_stops_no_list
            unreadable::unreadable_record_can_be_replaced_and_deleted
            unreadable::unreadable_job_can_be_removed_and_replaced_by_command
            unreadable::unreadable_pause_and_run_can_be_replaced_by_command
            unreadable::unreadable_active_run_can_be_ended_by_command
            unreadable::unreadable_records_do_not_stop_expiry
            unreadable::every_character_is_returned_as_written
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
    const FILES: [&str; 19] = [
        include_str!("versions.rs"),
        include_str!("ahead.rs"),
        include_str!("units.rs"),
        include_str!("round_trips.rs"),
        include_str!("locks.rs"),
        include_str!("due.rs"),
        include_str!("pages.rs"),
        include_str!("run_pages.rs"),
        include_str!("walks.rs"),
        include_str!("outputs.rs"),
        include_str!("limits.rs"),
        include_str!("rename.rs"),
        include_str!("hints.rs"),
        include_str!("writers.rs"),
        include_str!("claims.rs"),
        include_str!("locking.rs"),
        include_str!("seals.rs"),
        include_str!("durability.rs"),
        include_str!("unreadable.rs"),
    ];

    #[test]
    fn every_case_is_listed() {
        let name = |line: &'static str| line.strip_prefix("pub fn ")?.strip_suffix("(subject: &dyn Subject) {");
        let written: Vec<&str> = FILES.iter().flat_map(|file| file.lines().filter_map(name)).collect();
        let listed: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
        assert_eq!(written, listed, "cases in the files, and cases in the list");
    }
}
