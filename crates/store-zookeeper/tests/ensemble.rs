//! Cases of the conformance suite about concurrency and order on an ensemble of three. Each process of a case
//! connects to a random member, so that one may read from a member that lags behind.

mod subject;

use cronhold_store::conformance::CASES;
use cronhold_store_zookeeper::ZooKeeperUrl;
use cronhold_store_zookeeper::testing::ZooKeeperEnsemble;
use subject::OnZooKeeper;

/// The cases that depend on what other processes see, and when.
const CHOSEN: [&str; 14] = [
    "conflict_names_the_changed_record",
    "other_commits_come_before_prepared_units",
    "units_of_a_commit_apply_in_order",
    "units_of_a_commit_fail_independently",
    "abandoned_commit_can_be_sent_again",
    "commit_can_have_many_units",
    "lock_has_one_holder",
    "fences_only_grow",
    "other_handles_receive_hints",
    "concurrent_increments_add_up",
    "load_is_a_snapshot",
    "claims_are_linearizable",
    "locks_are_linearizable",
    "everything_survives_a_restart",
];

#[test]
fn concurrent_cases_pass_on_an_ensemble() {
    let ensemble = ZooKeeperEnsemble::start();
    for (number, chosen) in CHOSEN.into_iter().enumerate() {
        let case = CASES.iter().find(|(name, _)| *name == chosen).map(|(_, case)| case).expect("the case exists");
        let url = ZooKeeperUrl::parse(&ensemble.url(&format!("/case-{number}")), None).expect("a valid URL");
        case(&OnZooKeeper::new(url, None));
    }
}
