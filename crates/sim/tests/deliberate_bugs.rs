//! Checkers that never find anything prove nothing. These tests inject bugs into the store and the program runner that
//! real schedulers have had, and each must be detected within a stated number of seeds. Permanent faults must not be
//! reported.

use sim::{DeliberateBug, SimSettings, simulate, world};

/// A bug, the number of nodes that have it, and the number of seeds within which it must be detected.
struct BugCase {
    bug: DeliberateBug,
    nodes: usize,
    seeds: u64,
}

impl BugCase {
    /// Runs seeds until a checker finds a violation, and returns the seed and the violation.
    fn detect(&self) -> Option<(u64, String)> {
        let settings = SimSettings { nodes: self.nodes, bug: self.bug, ..SimSettings::default() };
        let world = world();
        let finding = |seed| Some((seed, simulate(seed, settings, &world).finding?.to_string()));
        (1..=self.seeds).find_map(finding)
    }
}

/// One test per row, so that they run in parallel.
macro_rules! bugs {
    ($($name:ident: $bug:ident on $nodes:literal within $seeds:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let case = BugCase { bug: DeliberateBug::$bug, nodes: $nodes, seeds: $seeds };
                let detected = case.detect();
                let (seed, finding) = detected.expect("a checker detects the bug");
                println!("{:?} on {} nodes: seed {seed}: {finding}", case.bug, case.nodes);
            }
        )*

        #[test]
        fn every_bug_is_in_the_table() {
            let table = [$(DeliberateBug::$bug),*];
            for bug in DeliberateBug::BUGS {
                assert!(table.contains(&bug), "{bug:?}");
            }
        }
    };
}

bugs! {
    detects_claims_without_compare: NoCompare on 3 within 5;
    detects_effects_before_the_commit: EffectsBeforeCommit on 3 within 5;
    detects_missing_recovery: NoRecovery on 1 within 20;
    detects_missing_watchdog: NoWatchdog on 3 within 30;
    detects_programs_that_outlive_their_leases: IgnoredLeases on 3 within 40;
    detects_locks_taken_from_their_holders: StolenLocks on 3 within 20;
    detects_locks_released_too_early: EarlyLockRelease on 3 within 20;
    detects_constant_fences: ConstantFence on 3 within 20;
    detects_ignored_heartbeats: IgnoredHeartbeats on 3 within 5;
    detects_late_reports_that_are_written: LateReports on 3 within 30;
    detects_nodes_with_wrong_time: WrongTime on 3 within 5;
    detects_ignored_pauses: IgnoredPauses on 3 within 5;
    detects_ignored_drains: IgnoredDrains on 3 within 40;
    detects_ignored_labels: IgnoredLabels on 3 within 20;
    detects_catch_up_without_limits: UnlimitedCatchUp on 3 within 20;
    detects_overlap_against_the_policy: UnlimitedOverlap on 3 within 5;
    detects_duplicate_run_numbers: DuplicateNumbers on 3 within 5;
    detects_unrecorded_skips: UnrecordedSkips on 3 within 5;
    detects_programs_started_twice: RepeatedLaunches on 3 within 20;
    detects_programs_started_too_late: LateLaunches on 1 within 5;
    detects_nodes_that_claim_without_keeper: HiddenKeeperFailures on 3 within 60;
    detects_launches_without_outcome: UnansweredLaunches on 1 within 5;
    detects_nodes_that_expect_no_other_node: OthersDrain on 3 within 10;
    detects_records_that_never_expire: NothingExpires on 3 within 30;
    detects_forgotten_claims: ForgottenClaims on 1 within 100;
    detects_missed_wakes: MissedWakes on 3 within 60;
    detects_missing_hold_after_restart: NoHoldAfterRestart on 3 within 400;
    detects_nodes_that_restore_nothing: NothingRestored on 3 within 20;
    detects_actions_that_are_not_written: LostActions on 3 within 30;
    detects_actions_that_no_node_recovers: ForgottenActions on 1 within 60;
    detects_triggers_that_stay_after_their_run: RepeatedTriggers on 3 within 10;
    detects_triggers_that_no_node_recovers: ForgottenTriggers on 1 within 200;
    detects_runs_whose_lateness_is_forgotten: ForgottenLateness on 3 within 5;
    detects_outcomes_that_are_not_counted: UncountedOutcomes on 3 within 5;
}

/// These are not bugs, so that nothing may be reported.
#[test]
fn permanent_faults_are_not_reported() {
    let world = world();
    for bug in DeliberateBug::FAULTS {
        for seed in 1..=30 {
            let finding = simulate(seed, SimSettings { nodes: 3, bug, ..SimSettings::default() }, &world).finding;
            assert_eq!(finding, None, "{bug:?}, seed {seed}");
        }
    }
}
