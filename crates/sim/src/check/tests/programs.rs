//! Invalid launches and ends of programs.

use super::*;
use State::{Starting, Success, Waiting};

fn started(number: u64) -> Run {
    run(number, &[Waiting, Starting])
}

fn leased(number: u64) -> Run {
    let mut run = started(number);
    run.terms.lease = Some(Span::from_secs(10));
    run
}

#[test]
fn second_launch_is_reported() {
    let mut bench = Bench::of("one first start per occurrence");
    bench.launch(&started(1), None, None);
    bench.end(&started(1));
    bench.expect("");
    bench.launch(&started(1), None, None);
    bench.expect("the program of j#1 starts again");
}

#[test]
fn launch_without_its_commit_is_reported() {
    let bench = || Bench::of("nothing is launched without its commit");
    let mut late = bench();
    late.launch(&started(1), None, None);
    late.expect("j#1 was launched without a commit");
    let mut late = bench();
    late.commit(&unit([put(&started(1))]));
    late.pass(11);
    late.launch(&started(1), None, None);
    late.expect("j#1 was launched 11s after its commit");
    let mut elsewhere = bench();
    let owner = Some(RunOwner { node: NodeId::from_bits(2), incarnation: 1 });
    elsewhere.commit(&unit([put(&Run { owner, ..started(1) })]));
    elsewhere.launch(&started(1), None, None);
    elsewhere.expect("which does not own it");
}

/// The state of the run in the store does not matter: its program counts until it actually ends.
#[test]
fn second_program_under_a_lock_is_reported() {
    let lock = LockName::parse("l").expect("a letter");
    let [one, two, three] = [1, 2, 3].map(|number| locked(number, &lock, None).0);
    let mut bench = Bench::of("one program per lock");
    bench.launch(&one, Some(1), None);
    bench.end(&one);
    bench.launch(&two, Some(2), None);
    bench.expect("");
    bench.launch(&three, Some(3), None);
    bench.expect("j#3 starts under the lock `l` beside j#2");
}

#[test]
fn wrong_fences_are_reported() {
    let lock = LockName::parse("l").expect("a letter");
    let (one, take) = locked(1, &lock, None);
    let (two, _) = locked(2, &lock, None);
    let bench = || Bench::of("fences only increase");
    let mut missing = bench();
    missing.launch(&one, None, None);
    missing.expect("j#1 does not receive the fence of `l`");
    let mut other = bench();
    other.commit(&take);
    other.launch(&one, Some(8), None);
    other.expect("j#1 receives a wrong fence of `l`");
    let mut lower = bench();
    lower.launch(&one, Some(8), None);
    lower.launch(&two, Some(8), None);
    lower.expect("j#2 receives the fence 8 of `l` after 8");
}

#[test]
fn overlapping_programs_are_reported() {
    let mut bench = Bench::shared("programs overlap only where allowed", job());
    let (one, two) = (leased(1), leased(2));
    bench.commit(&unit([put(&one)]));
    bench.launch(&one, None, None);
    // Its run was given up while its program lives on.
    let lost = Run { terms: one.terms.clone(), ..run(1, &[Waiting, Starting, State::Error]) };
    bench.commit(&unit([put(&lost)]));
    bench.commit(&unit([put(&two)]));
    bench.expect("");
    bench.launch(&two, None, None);
    bench.expect("the program of j#2 starts beside that of j#1");
}

#[test]
fn programs_beyond_their_lease_are_reported() {
    let bench = || Bench::shared("programs end before their runs are given up", job());
    let mut endless = bench();
    endless.launch(&leased(1), None, None);
    endless.expect("j#1 has a lease, and its program starts without an end");
    let mut late = bench();
    late.launch(&leased(1), None, Some(999));
    late.expect("j#1 starts after its lease is over");
    let mut long = bench();
    long.commit(&unit([put(&leased(1))]));
    long.launch(&leased(1), None, Some(1_005));
    long.checkers.extended(leased(1).id, Span::from_secs(1_008));
    long.pass(10);
    long.end(&leased(1));
    long.expect("the program of j#1 lived 2s longer than its lease");
}

#[test]
fn run_given_up_while_its_program_lives_is_reported() {
    let over = run(1, &[Waiting, Starting, State::Error]);
    let mut bench = Bench::shared("programs end before their runs are given up", job());
    bench.launch(&leased(1), None, Some(1_005));
    bench.commit(&unit([put(&over)]));
    bench.expect("j#1 is error while its program lives");
    // Without a lease the program may continue; with a local store no other node gives up its run.
    let mut bench = Bench::shared("programs end before their runs are given up", job());
    bench.launch(&started(1), None, None);
    bench.commit(&unit([put(&over)]));
    bench.expect("");
    let mut bench = Bench::of("programs end before their runs are given up");
    bench.launch(&started(1), None, None);
    bench.commit(&unit([put(&run(1, &[Waiting, Starting, Success]))]));
    bench.expect("j#1 is success while its program lives");
}
