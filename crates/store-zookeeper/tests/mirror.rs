//! The mirror of a process whose connection is cut again and again while another process writes: afterwards it equals what
//! is stored. `./dev bench zookeeper mirror` does the same for longer and under more load.

mod mirror_cuts;

/// Cuts of the connection.
const CUTS: u64 = 150;
const SEED: u64 = 0x0d15_c0de_51de_0001;

#[test]
fn mirror_equals_what_is_stored_after_many_disconnects() {
    assert!(mirror_cuts::compare_mirror(CUTS, SEED, false) > CUTS);
}
