//! Conditions, as scripts: what runs wait for, and how they continue.

use cronhold_schedule::Span;

use crate::decide::testing::{DecisionBench, play};
use crate::ids::JobId;
use crate::run::State;

#[test]
fn after_waits_for_the_other_run() {
    play(
        "00:00 put feeds param region; param date; overlap allow
            job r1
        00:00 put j param region; param day; overlap allow; needs after feeds date={{day}} poll=10s
            job r1
        00:01 run j region=us day=mon
            j#1 00:01 waiting, → #1
        00:02 run feeds region=eu date=mon
            feeds#1 00:02 starting, → #1
        00:02 ended feeds#1 yes
            feeds#1 00:02 success
        00:03 run feeds region=us date=mon
            feeds#2 00:03 starting, → #2
        00:03 ended feeds#2 no
            feeds#2 00:03 failure: exit code 1
        00:03 wake j#1
            j#1 00:01 waiting
        00:03:09 wake j#1
            (wake #1 00:03:10), unchanged
        00:03:09 run feeds region=us date=mon
            feeds#3 00:03:09 starting, → #3
        00:03:09 ended feeds#3 yes
            feeds#3 00:03:09 success
        00:03:10 wake j#1
            j#1 00:01 starting
        00:04 run j region=us day=mon
            j#2 00:04 starting, → #2",
    );
}

#[test]
fn after_requires_state_and_age() {
    play(
        "00:00 put up overlap queue
            job r1
        00:00 put old overlap allow; needs after up within=10m in success,failure
            job r1
        00:00 put now overlap allow; needs after up in running,waiting
            job r1
        00:00 put gone overlap allow; needs after nowhere
            job r1
        00:01 run up
            up#1 00:01 starting, → #1
        00:01:30 run now
            now#1 00:01:30 waiting, → #1
        00:02 launched up#1
            up#1 00:01 running
        00:02 wake now#1
            now#1 00:01:30 starting
        00:03 ended up#1 no
            up#1 00:01 failure: exit code 1
        00:12 run old
            old#1 00:12 starting, → #1
        00:14 run old
            old#2 00:14 waiting, → #2
        00:15 run gone
            gone#1 00:15 waiting, → #1",
    );
}

#[test]
fn after_with_must_exist_fails_without_such_a_run() {
    play(
        "00:00 put up param x; overlap queue
            job r1
        00:00 put j param x; overlap allow; needs after up must_exist
            job r1
        00:00 put k overlap allow
            job r1
        00:01 run j x=1
            j#1 00:01 error: condition: there is no run of up x=1, and none is pending, → #1
        00:01 run up x=2
            up#1 00:01 starting, → #1
        00:02 run j x=2
            j#2 00:02 waiting, → #2
        00:02 run up x=3
            up#2 00:02 waiting, → #2
        00:03 run j x=3
            j#3 00:03 waiting, → #3
        00:03 ended up#1 no
            up#1 00:01 failure: exit code 1
        00:04 run j x=2
            j#4 00:04 error: condition: the last run of up x=2 ended in failure at 2026-01-05T00:03:00Z, and none is \
             pending, → #4
        00:04 remove up
            job gone, (wake #2 00:04)
        00:05 wake j#3
            j#3 00:03 error: condition: the job that `after` names does not exist",
    );
}

#[test]
fn unresolvable_condition_fails_the_run() {
    play(
        "00:00 put up param x
            job r1
        00:00 put j param y; overlap allow; needs after up
            job r1
        00:00 put k param y; overlap allow; needs after {{y}} x=1
            job r1
        00:01 run j y=1
            j#1 00:01 error: not bound: `after.args`: the param `x` needs a value, → #1
        00:01 run k y=up
            k#1 00:01 waiting, → #1
        00:01 run k y=/
            k#2 00:01 error: not bound: `after.job`: a job's id has an empty part \
             (parts are separated by one `/`, with none at the beginning or end), → #2",
    );
}

#[test]
fn max_running_limits_concurrent_runs() {
    play(
        "00:00 put j param x; overlap allow; needs max_running 2; needs max_running 1 same_args; retry 2
            job r1
        00:01 run j x=1
            #1 00:01 starting, → #1
        00:02 run j x=1
            #2 00:02 waiting, → #2
        00:03 run j x=2
            #3 00:03 starting, → #3
        00:04 run j x=3
            #4 00:04 waiting, → #4
        00:05 ended #1 no
            #1 00:01 failure: exit code 1, #5 00:01 attempt 2 scheduled
        00:05 wake #2
            #2 00:02 waiting
        00:05 wake #4
            #4 00:04 waiting
        00:05:10 wake #5
            #5 00:01 attempt 2 starting
        00:06 ended #5 yes
            #5 00:01 attempt 2 success
        00:06 wake #4
            #4 00:04 starting
        00:06 wake #2
            #2 00:02 waiting
        00:07 ended #3 yes
            #3 00:03 success
        00:07 wake #2
            #2 00:02 starting",
    );
}

#[test]
fn skip_duplicate_skips_a_second_run_with_equal_args() {
    play(
        "00:00 put j param x; overlap queue; needs skip_duplicate
            job r1
        00:01 run j x=1
            #1 00:01 starting, → #1
        00:02 run j x=1
            #2 00:02 waiting, → #2
        00:03 run j x=2
            #3 00:03 waiting, → #3
        00:04 run j x=2
            #4 00:04 waiting, → #4
        00:05 ended #1 yes
            #1 00:01 success
        00:05 wake #2
            #2 00:02 starting
        00:06 ended #2 yes
            #2 00:02 success
        00:06 wake #3
            #3 00:03 starting
        00:06 put j param x; overlap allow; needs skip_duplicate
            job r2, (wake #4 00:06), (wake #3 00:06)
        00:06 run j x=2
            #5 00:06 skipped: duplicate, → #5
        00:06 wake #4
            #4 00:04 skipped: duplicate
        00:06 run j x=3
            #6 00:06 starting, → #6",
    );
}

#[test]
fn window_delays_the_start_until_it_opens() {
    play(
        "00:00 put j overlap allow; needs window 22:00 06:00 Europe/Berlin
            job r1
        04:59 run j
            #1 04:59 starting, → #1
        05:00 run j
            #2 05:00 waiting, → #2
        20:59 wake #2
            (wake #2 21:00), unchanged
        21:00 wake #2
            #2 05:00 starting",
    );
}

#[test]
fn condition_timeout_fails_the_run() {
    play(
        "00:00 put j overlap allow; needs after j timeout=45s
            job r1
        00:01 run j at=00:02
            #1 00:02 scheduled, → #1
        00:02 wake #1
            #1 00:02 waiting
        00:02:30 wake #1
            #1 00:02 waiting
        00:02:44 wake #1
            (wake #1 00:02:45), unchanged
        00:02:45 wake #1
            #1 00:02 error: condition: `after: j` did not hold within 45s
        00:03 put j overlap allow; needs window 23:00 23:30 timeout=1h
            job r2
        00:03 run j
            #2 00:03 waiting, → #2
        01:03 wake #2
            #2 00:03 error: condition: `window: 23:00–23:30` did not hold within 1h",
    );
}

#[test]
fn invalid_condition_fails_the_run() {
    play(
        "00:03 put j overlap allow; needs window 01:00 02:00 Mars/Olympus
            job r1
        00:03 run j
            #1 00:03 error: condition: `window`: there is no time zone `Mars/Olympus` \
             (zones have IANA names such as Europe/Berlin or UTC), → #1",
    );
}

/// `w` is a closed window, `o` an open one, `f` cannot be evaluated, `d` finds a duplicate.
#[test]
fn all_any_and_not_combine_conditions() {
    for (conditions, expected) in [
        ("needs all o | o", "starting"),
        ("needs all o | w", "waiting"),
        ("needs all w | f", "error"),
        ("needs all w | d", "skipped"),
        ("needs all d | f", "skipped"),
        ("needs any w | o", "starting"),
        ("needs any f | o", "starting"),
        ("needs any f | w", "waiting"),
        ("needs any w | f", "waiting"),
        ("needs any d | f", "skipped"),
        ("needs not w", "starting"),
        ("needs not o", "waiting"),
        ("needs not d", "starting"),
        ("needs not f", "error"),
        ("needs not not o", "starting"),
        ("needs o; needs w", "waiting"),
        ("needs o; needs not w", "starting"),
        ("needs w; needs d", "skipped"),
    ] {
        let words = conditions.split(' ').map(|word| match word {
            "w" | "w;" => word.replacen('w', "window 22:00 23:00", 1),
            "o" | "o;" => word.replacen('o', "window 00:00 23:00", 1),
            "f" => "window 01:00 02:00 Mars/Olympus".to_owned(),
            "d" => "skip_duplicate".to_owned(),
            _ => word.to_owned(),
        });
        let conditions: Vec<String> = words.collect();
        let bench = play(&format!(
            "00:00 put j overlap allow
                job r1
            00:00 run j
                #1 00:00 starting, → #1
            00:01 put j overlap allow; {}
                job r2, (wake #1 00:01)",
            conditions.join(" "),
        ));
        let mut bench = bench;
        bench.happens("run j");
        assert_eq!(bench.run(None, 2).state.name(), expected, "{conditions:?}");
    }
}

/// What run `number` of the job `j` waits for at the end of a script.
fn waits(script: &str, number: u64) -> String {
    let run = play(script).run(Some(&JobId::parse("j").expect("an id")), number);
    run.blockers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ")
}

/// What a waiting run waits for is stored with it.
#[test]
fn waiting_run_records_its_blockers() {
    let jobs = "00:00 put up param x; overlap allow
            job r1
        00:00 put k overlap allow; lock l
            job r1
        ";
    let at_once = |needs: &str| {
        format!(
            "{jobs}00:00 put j param x; overlap allow; needs {needs}
            job r1
        00:01 run j x=1
            j#1 00:01 waiting, → #1"
        )
    };
    let first_runs = |with: &str, other: &str| {
        format!(
            "{jobs}00:00 put j param x; {with}
            job r1
        00:01 run j x=1
            j#1 00:01 starting, → #1
        00:02 run j x={other}
            j#2 00:02 waiting, → #2"
        )
    };
    for (script, run, expected) in [
        (at_once("after up"), 1, "a run of `up` with x=1 in success"),
        (at_once("after up x=2 in failure,error"), 1, "a run of `up` with x=2 in failure or error"),
        (at_once("after nowhere"), 1, "the job `nowhere`, which does not exist"),
        (at_once("window 09:00 17:00"), 1, "2026-01-05T09:00:00Z"),
        (at_once("not window 00:00 00:30"), 1, "2026-01-05T00:30:00Z"),
        (
            at_once("all after up | window 00:00 12:00 | after up in failure"),
            1,
            "a run of `up` with x=1 in success + a run of `up` with x=1 in failure",
        ),
        (
            at_once("any after up | after nowhere"),
            1,
            "a run of `up` with x=1 in success + the job `nowhere`, which does not exist",
        ),
        (first_runs("overlap allow; needs max_running 1", "2"), 2, "fewer than 1 active runs"),
        (
            first_runs("overlap allow; needs max_running 1 same_args", "1"),
            2,
            "fewer than 1 active runs with the same args",
        ),
        (first_runs("overlap queue", "2"), 2, "other runs of the job"),
        (first_runs("overlap queue; lock", "2"), 2, "the lock `j` + other runs of the job"),
        (first_runs("overlap allow; lock", "2"), 2, "the lock `j`"),
    ] {
        assert_eq!(waits(&script, run), expected, "{script}");
    }
}

#[test]
fn blockers_change_with_what_a_run_waits_for() {
    let moved = "00:00 put j @every 1h; overlap queue; lock l
            next 01:00, job r1
        00:00 put k overlap allow; lock l
            job r1
        00:59 run k
            k#1 00:59 starting, → #1
        01:00 due
            j#1 01:00 waiting, j next 02:00
        01:01 pause j
            job paused
        01:02 wake j#1
            j#1 01:00 waiting";
    assert_eq!(waits(moved, 1), "the end of the job's pause");
    let started = format!(
        "{moved}\n        01:02 ended k#1 yes\n            k#1 00:59 success\n        01:03 start j#1\n            j#1 01:00 starting"
    );
    assert_eq!(waits(&started, 1), "");
}

/// The order in which the other runs end does not matter, and the last one releases the run.
#[test]
fn run_with_200_dependencies_starts_after_the_last_of_them() {
    const COUNT: u32 = 200;
    let mut bench = play("");
    let act = |bench: &mut DecisionBench, what: &str| {
        bench.now = bench.now.plus(Span::from_secs(1));
        bench.happens(what).join(", ")
    };
    let needs: Vec<String> = (0..COUNT).map(|number| format!("needs after up{number}")).collect();
    for number in 0..COUNT {
        act(&mut bench, &format!("put up{number} overlap allow"));
    }
    for step in 0..COUNT {
        // Before the last one ends, the run begins to wait.
        if step == COUNT - 1 {
            act(&mut bench, &format!("put j overlap allow; {}", needs.join("; ")));
            assert!(act(&mut bench, "run j").contains("waiting"));
        }
        let number = step * 7 % COUNT;
        act(&mut bench, &format!("run up{number}"));
        act(&mut bench, &format!("ended up{number}#1 yes"));
    }
    assert!(act(&mut bench, "wake j#1").contains("starting"));
}

/// A limit that had room when the run was first checked is compared again when the last condition comes true.
#[test]
fn conditions_are_checked_again_before_the_start_whatever_their_order() {
    play(
        "00:00 put up overlap allow
            job r1
        00:00 put j param x; overlap allow; needs max_running 1; needs after up
            job r1
        00:00 put k param x; overlap allow; needs max_running 1 pool=p; needs after up
            job r1
        00:01:01 run j x=1
            j#1 00:01:01 waiting, → #1
        00:01:02 run j x=2
            j#2 00:01:02 waiting, → #2
        00:01:03 run k x=1
            k#1 00:01:03 waiting, → #1
        00:01:04 run k x=2
            k#2 00:01:04 waiting, → #2
        00:02 run up
            up#1 00:02 starting, → #1
        00:02 ended up#1 yes
            up#1 00:02 success
        00:02 wake j#1
            j#1 00:01:01 starting
        00:02 wake j#2
            j#2 00:01:02 waiting
        00:02 wake k#1
            k#1 00:01:03 starting, pool p: k#1
        00:02 wake k#2
            k#2 00:01:04 waiting",
    );
}

/// A run that is being stopped still runs.
#[test]
fn stopping_run_counts_for_limits_and_duplicates() {
    play(
        "00:00 put j overlap allow; needs max_running 1
            job r1
        00:00 put k overlap allow; needs skip_duplicate
            job r1
        00:01 run j
            j#1 00:01 starting, → #1
        00:02 run k
            k#1 00:02 starting, → #1
        00:02 launched j#1
            j#1 00:01 running
        00:02 launched k#1
            k#1 00:02 running
        00:03 stop j#1
            j#1 00:01 stopping (stopped)
        00:03 stop k#1
            k#1 00:02 stopping (stopped)
        00:04 run j
            j#2 00:04 waiting, → #2
        00:05 run k
            k#2 00:05 skipped: duplicate, → #2",
    );
}

/// The args of the other run are exactly those that the condition asks for.
#[test]
fn after_compares_all_args() {
    play(
        "00:00 put up param a; param b; overlap allow
            job r1
        00:00 put j param a; overlap allow; needs after up b=2
            job r1
        00:01 run j a=1
            j#1 00:01 waiting, → #1
        00:02 run up a=1 b=1
            up#1 00:02 starting, → #1
        00:02 ended up#1 yes
            up#1 00:02 success
        00:03 run up a=2 b=2
            up#2 00:03 starting, → #2
        00:03 ended up#2 yes
            up#2 00:03 success
        00:03 wake j#1
            j#1 00:01 waiting
        00:04 run up a=1 b=2
            up#3 00:04 starting, → #3
        00:04 ended up#3 yes
            up#3 00:04 success
        00:04 wake j#1
            j#1 00:01 starting",
    );
}

#[test]
fn of_128_duplicates_that_are_released_together_one_runs() {
    let mut bench = play(
        "00:00 put up overlap allow
            job r1
        00:00 put j param x; overlap allow; needs after up; needs skip_duplicate
            job r1",
    );
    for _ in 0..128 {
        bench.now = bench.now.plus(Span::from_secs(1));
        bench.happens("run j x=1");
    }
    bench.happens("run up");
    bench.happens("ended up#1 yes");
    let waiting: Vec<String> =
        bench.runs().filter(|run| run.job.as_str() == "j").map(|run| format!("j#{}", run.number.0)).collect();
    assert_eq!(waiting.len(), 128);
    // Whatever is woken, and however often.
    for _ in 0..2 {
        for run in &waiting {
            bench.happens(&format!("wake {run}"));
        }
    }
    let states: Vec<State> = bench.runs().filter(|run| run.job.as_str() == "j").map(|run| run.state).collect();
    let count = |state| states.iter().filter(|other| **other == state).count();
    assert_eq!((count(State::Starting), count(State::Skipped)), (1, 127), "{states:?}");
}
