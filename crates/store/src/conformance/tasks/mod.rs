//! The conformance suite for stores of tasks: each guarantee of [`TaskStore`] is a named case. A store provides a
//! function that creates an empty store, and gets a test for each case:
//!
//! ```text
//! cronhold_store::task_conformance_tests!(make_subject);
//! ```
//!
//! Cases are grouped by what they are about: [`creation`], [`runs`], [`trees`], [`ports`], [`messages`], [`steps`],
//! [`leases`], [`registry`], [`lists`]. In [`races`] many workers use the store at once, and [`histories`]
//! has random events from a seed.

pub mod creation;
mod fixture;
pub mod histories;
pub mod leases;
pub mod lists;
pub mod messages;
pub mod ports;
pub mod races;
pub mod registry;
pub mod runs;
pub mod steps;
pub mod trees;

use std::sync::Arc;

use cronhold_schedule::Span;

use crate::tasks::TaskStore;

/// A store of tasks under test; a new and empty one for each case.
pub trait TaskSubject: Sync {
    /// Another handle on the store, as another process would have.
    fn store(&self) -> Arc<dyn TaskStore>;

    /// Advances the clock of the store.
    fn pass(&self, span: Span);

    /// Closes the store and opens it again. Cases have dropped all handles they had.
    fn reopen(&self) -> Arc<dyn TaskStore>;
}

/// One case of the suite.
pub type TaskCase = fn(&dyn TaskSubject);

/// Generates a test for each case, given the path of a function that creates a [`TaskSubject`].
#[macro_export]
macro_rules! task_conformance_tests {
    ($make:path) => {
        $crate::task_conformance_cases!([$crate::task_conformance_tests] $make;);
    };
    ($make:path; $($module:ident::$case:ident)+) => {
        $(
            #[test]
            fn $case() {
                $crate::conformance::tasks::$module::$case(&$make());
            }
        )+
    };
}

/// Calls a macro with its arguments and all cases, in reading order.
#[doc(hidden)]
#[macro_export]
macro_rules! task_conformance_cases {
    ([$($then:tt)+] $($before:tt)*) => {
        $($then)+! {
            $($before)*
            creation::created_task_is_queued_once
            creation::refused_creation_leaves_nothing
            creation::args_and_creator_are_kept
            creation::child_is_created_with_its_parent
            creation::unit_uses_the_tasks_it_creates
            creation::ports_of_class_and_request_are_merged
            creation::task_for_later_waits_for_its_time
            creation::request_with_a_key_takes_effect_once
            creation::out_ports_are_given_at_creation
            runs::run_queues_tasks_that_have_not_ended
            runs::run_of_ended_task_needs_force
            runs::write_to_ended_task_stays_in_the_port
            runs::run_of_parent_queues_the_parent_only
            runs::task_without_a_registered_class_is_terminated
            runs::parent_notices_that_the_class_of_a_child_is_missing
            runs::run_of_unknown_task_is_refused
            runs::delayed_run_waits_for_the_earliest_time
            runs::run_in_the_past_is_a_run_now
            runs::delayed_run_of_a_running_task_waits
            runs::forced_run_can_be_delayed
            runs::status_changes_are_published
            trees::adopted_task_is_a_child
            trees::task_cannot_be_below_itself
            trees::disowned_task_has_no_parent
            trees::step_of_a_child_runs_its_parent
            trees::termination_performs_the_shutdown
            trees::termination_takes_descendants_if_requested
            trees::termination_during_a_step_is_kept
            trees::task_is_deleted_once_its_tree_is_terminated
            trees::deleted_task_leaves_its_channels
            trees::wide_tree_is_terminated_and_deleted
            trees::alias_is_unique
            trees::state_fields_are_set_and_removed
            trees::window_has_the_children
            trees::child_is_found_by_its_name
            trees::shutdown_is_performed_after_lost_steps
            trees::shutdown_is_performed_after_an_impossible_step
            ports::items_are_read_in_their_order
            ports::several_items_are_read_at_once
            ports::default_is_read_while_a_port_is_empty
            ports::written_default_replaces_the_default
            ports::items_keep_context_and_options
            ports::unknown_ports_are_refused
            ports::template_creates_ports_on_demand
            ports::replaced_ports_keep_their_items
            ports::write_runs_the_task_that_reads
            ports::connected_ports_get_all_items
            ports::connected_ports_get_the_default
            ports::connected_out_port_runs_the_parent_and_publishes
            ports::refused_connection_moves_nothing
            ports::windows_are_limited
            ports::reads_and_connections_are_limited
            ports::connection_to_an_out_port_wakes_the_parent_only
            ports::connection_copies_the_default_to_all_targets
            messages::message_reaches_ports_on_its_channel_and_above
            messages::port_on_two_levels_gets_a_message_twice
            messages::port_leaves_channels
            messages::out_port_publishes_what_is_written
            messages::messages_of_a_step_name_its_task
            messages::listener_receives_messages_of_its_channels_and_below
            messages::refused_unit_publishes_nothing
            messages::log_entries_cause_no_log_entries
            messages::requests_are_logged
            messages::status_listener_does_not_loop_within_a_unit
            messages::message_reaches_many_subscribers
            messages::many_listeners_to_statuses_refuse_no_lease
            messages::channels_of_ports_are_replaced
            messages::context_of_a_request_is_in_messages_and_log
            messages::subscriber_without_a_class_stops_no_message
            steps::step_is_running_and_then_completed
            steps::step_commits_everything_together
            steps::lost_step_commits_nothing
            steps::late_step_commits_while_it_holds_its_task
            steps::unit_of_a_step_takes_effect_once
            steps::unknown_step_is_refused
            steps::step_with_stale_reads_is_repeated
            steps::write_during_a_step_commutes_with_it
            steps::step_with_an_impossible_act_fails
            steps::write_during_a_step_that_is_given_up_is_kept
            steps::step_that_is_always_refused_fails
            steps::failed_step_is_logged
            steps::run_during_a_failing_step_is_kept
            steps::task_that_runs_itself_makes_another_step
            steps::startup_is_repeated_until_it_succeeds
            steps::suspended_startup_is_woken
            steps::task_that_runs_away_is_terminated
            steps::units_of_a_commit_are_independent
            steps::steps_are_counted
            steps::step_whose_port_was_removed_is_repeated
            steps::step_that_is_too_large_is_repeated
            leases::heartbeats_hold_steps
            leases::lost_step_is_repeated
            leases::task_whose_workers_are_always_lost_fails
            leases::lost_steps_in_a_row_are_counted
            leases::lost_step_keeps_what_came_meanwhile
            leases::repeated_step_does_not_wait_for_a_delayed_run
            leases::given_back_step_is_leased_again
            leases::worker_leases_its_classes_only
            leases::arrivals_wake_waiting_workers
            registry::registered_classes_are_those_of_live_processes
            registry::tasks_wait_while_the_process_of_their_class_restarts
            registry::process_that_a_later_one_replaces_is_forgotten
            registry::process_that_was_away_is_alive_again
            registry::registration_is_published
            registry::processes_are_listed_while_they_beat
            registry::signals_are_delivered_once_and_in_order
            lists::tasks_are_listed_by_status_and_queue
            lists::queues_show_what_is_ready
            lists::children_are_listed_in_pages
            lists::channels_are_listed_in_pages
            lists::tasks_survive_a_restart
            races::ports_are_linearizable
            races::items_are_conserved
            races::no_wake_up_is_lost
            races::busy_parent_sees_all_children
            races::names_have_one_owner
            races::trees_are_deleted_as_a_whole
            histories::random_histories_keep_every_item
        }
    };
}

macro_rules! list {
    ($($module:ident::$case:ident)+) => {
        &[$((stringify!($case), $module::$case)),+]
    };
}

/// All cases with their names, in reading order.
pub const TASK_CASES: &[(&str, TaskCase)] = task_conformance_cases!([list]);

#[cfg(test)]
mod tests {
    use super::*;

    /// Files with cases.
    const FILES: [&str; 11] = [
        include_str!("creation.rs"),
        include_str!("runs.rs"),
        include_str!("trees.rs"),
        include_str!("ports.rs"),
        include_str!("messages.rs"),
        include_str!("steps.rs"),
        include_str!("leases.rs"),
        include_str!("registry.rs"),
        include_str!("lists.rs"),
        include_str!("races.rs"),
        include_str!("histories.rs"),
    ];

    #[test]
    fn every_task_case_is_listed() {
        let name = |line: &'static str| line.strip_prefix("pub fn ")?.strip_suffix("(subject: &dyn TaskSubject) {");
        let written: Vec<&str> = FILES.iter().flat_map(|file| file.lines().filter_map(name)).collect();
        let listed: Vec<&str> = TASK_CASES.iter().map(|(name, _)| *name).collect();
        assert_eq!(written, listed, "cases in the files, and cases in the list");
    }
}
