//! What programs must not do.

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
fn a_program_starts_once() {
    let mut bench = Bench::of("one first start for each occurrence");
    bench.launch(&started(1), None, None);
    bench.end(&started(1));
    bench.says("");
    bench.launch(&started(1), None, None);
    bench.says("the program of j#1 starts again");
}

#[test]
fn no_program_starts_without_its_commit() {
    let bench = || Bench::of("nothing is launched without its commit");
    let mut late = bench();
    late.launch(&started(1), None, None);
    late.says("j#1 was launched, and no commit says so");
    let mut late = bench();
    late.commit(&unit([put(&started(1))]));
    late.pass(11);
    late.launch(&started(1), None, None);
    late.says("j#1 was launched 11s after its commit");
    let mut elsewhere = bench();
    let owner = Some(RunOwner { node: NodeId::from_bits(2), incarnation: 1 });
    elsewhere.commit(&unit([put(&Run { owner, ..started(1) })]));
    elsewhere.launch(&started(1), None, None);
    elsewhere.says("which it was not given to");
}

/// What the store says of the run does not matter: its program is there until it truly ends.
#[test]
fn two_programs_under_one_lock() {
    let lock = LockName::parse("l").expect("a letter");
    let [one, two, three] = [1, 2, 3].map(|number| locked(number, &lock, None).0);
    let mut bench = Bench::of("no two under one lock");
    bench.launch(&one, Some(1), None);
    bench.end(&one);
    bench.launch(&two, Some(2), None);
    bench.says("");
    bench.launch(&three, Some(3), None);
    bench.says("j#3 starts under the lock `l` beside j#2");
}

#[test]
fn programs_are_told_their_fences() {
    let lock = LockName::parse("l").expect("a letter");
    let (one, take) = locked(1, &lock, None);
    let (two, _) = locked(2, &lock, None);
    let bench = || Bench::of("fences only grow");
    let mut untold = bench();
    untold.launch(&one, None, None);
    untold.says("j#1 is not told the fence of `l`");
    let mut other = bench();
    other.commit(&take);
    other.launch(&one, Some(8), None);
    other.says("j#1 is told another fence of `l` than it has");
    let mut lower = bench();
    lower.launch(&one, Some(8), None);
    lower.launch(&two, Some(8), None);
    lower.says("j#2 is told the fence 8 of `l` after one was told 8");
}

#[test]
fn programs_of_a_job_do_not_overlap() {
    let mut bench = Bench::shared("no overlap that nobody allowed", job());
    let (one, two) = (leased(1), leased(2));
    bench.commit(&unit([put(&one)]));
    bench.launch(&one, None, None);
    // Its run was given up, and its program lives on.
    let lost = Run { terms: one.terms.clone(), ..run(1, &[Waiting, Starting, State::Error]) };
    bench.commit(&unit([put(&lost)]));
    bench.commit(&unit([put(&two)]));
    bench.says("");
    bench.launch(&two, None, None);
    bench.says("the program of j#2 starts beside that of j#1");
}

#[test]
fn leases_end_programs() {
    let bench = || Bench::shared("programs end before others believe it", job());
    let mut endless = bench();
    endless.launch(&leased(1), None, None);
    endless.says("j#1 has a lease, and its program starts without an end");
    let mut late = bench();
    late.launch(&leased(1), None, Some(999));
    late.says("j#1 starts after its lease is over");
    let mut long = bench();
    long.commit(&unit([put(&leased(1))]));
    long.launch(&leased(1), None, Some(1_005));
    long.checkers.extended(leased(1).id, Span::from_secs(1_008));
    long.pass(10);
    long.end(&leased(1));
    long.says("the program of j#1 lived 2s longer than its lease");
}

#[test]
fn nobody_is_given_up_alive() {
    let over = run(1, &[Waiting, Starting, State::Error]);
    let mut bench = Bench::shared("programs end before others believe it", job());
    bench.launch(&leased(1), None, Some(1_005));
    bench.commit(&unit([put(&over)]));
    bench.says("j#1 is error while its program lives");
    // Without a lease it may go on; alone on a store nobody gives up what is there.
    let mut bench = Bench::shared("programs end before others believe it", job());
    bench.launch(&started(1), None, None);
    bench.commit(&unit([put(&over)]));
    bench.says("");
    let mut bench = Bench::of("programs end before others believe it");
    bench.launch(&started(1), None, None);
    bench.commit(&unit([put(&run(1, &[Waiting, Starting, Success]))]));
    bench.says("j#1 is success while its program lives");
}
