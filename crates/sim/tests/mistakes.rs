//! Checkers that never find anything prove nothing. Here the store and whoever has programs are wrong on purpose, in ways
//! that schedulers have been wrong in before, and each has to be noticed within a stated number of seeds. Bad luck that
//! never ends has to go unnoticed.

use sim::{DeliberateBug, SimSettings, simulate, world};

/// A mistake, on how many nodes it is made, and within how many seeds it is noticed.
struct Mistake {
    variant: DeliberateBug,
    nodes: usize,
    seeds: u64,
}

impl Mistake {
    /// Plays seeds until a checker finds something, and tells which and when.
    fn caught(&self) -> Option<(u64, String)> {
        let settings = SimSettings { nodes: self.nodes, variant: self.variant, ..SimSettings::default() };
        let world = world();
        let finding = |seed| Some((seed, simulate(seed, settings, &world).finding?.to_string()));
        (1..=self.seeds).find_map(finding)
    }
}

/// One test for each row, so that they run beside each other.
macro_rules! mistakes {
    ($($name:ident: $variant:ident on $nodes:literal within $seeds:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let mistake = Mistake { variant: DeliberateBug::$variant, nodes: $nodes, seeds: $seeds };
                let caught = mistake.caught();
                let (seed, finding) = caught.expect("no checker notices it");
                println!("{:?} on {} nodes: seed {seed}: {finding}", mistake.variant, mistake.nodes);
            }
        )*

        #[test]
        fn every_mistake_is_in_the_table() {
            let table = [$(DeliberateBug::$variant),*];
            for variant in DeliberateBug::WRONG {
                assert!(table.contains(&variant), "{variant:?}");
            }
        }
    };
}

mistakes! {
    claims_without_compare: Blind on 3 within 5;
    effects_before_the_commit: Hasty on 3 within 5;
    a_node_that_does_not_recover: Forgetful on 1 within 20;
    a_watchdog_that_sleeps: Asleep on 3 within 30;
    programs_that_ignore_their_leases: Immortal on 3 within 40;
    locks_that_can_be_taken_from_others: Grabby on 3 within 20;
    locks_that_are_freed_too_early: FreesEarly on 3 within 20;
    fences_that_do_not_grow: OneFence on 3 within 20;
    a_reaper_that_does_not_look_at_beats: Deaf on 3 within 5;
    late_reports_that_are_written: Late on 3 within 30;
    nodes_with_another_time: WrongTime on 3 within 5;
    pauses_that_are_ignored: Restless on 3 within 5;
    drains_that_are_ignored: Undrained on 3 within 40;
    labels_that_are_ignored: Anywhere on 3 within 20;
    catch_up_without_limits: Eager on 3 within 20;
    overlap_that_nobody_allowed: Crowded on 3 within 5;
    numbers_that_are_given_twice: Miscounting on 3 within 5;
    skips_that_are_not_written: Careless on 3 within 5;
    programs_that_are_started_again: Restarting on 3 within 20;
    programs_that_start_too_late: Tardy on 1 within 5;
    nodes_that_count_on_nobody_else: Lonely on 3 within 10;
}

/// It is not wrong, so that nothing may be noticed.
#[test]
fn bad_luck_is_not_a_mistake() {
    let world = world();
    for variant in DeliberateBug::UNLUCKY {
        for seed in 1..=30 {
            let finding = simulate(seed, SimSettings { nodes: 3, variant, ..SimSettings::default() }, &world).finding;
            assert_eq!(finding, None, "{variant:?}, seed {seed}");
        }
    }
}
