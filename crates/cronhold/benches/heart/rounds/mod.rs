//! Kills at random moments: while the real daemon runs many programs, it or its keeper is killed, once or several
//! times. Afterwards every run must have the right exit code and the right output, byte for byte.
//!
//! `rounds` runs all rounds, `rounds=COUNT` at most that many of each kind, and `seed=NUMBER` repeats earlier rounds.
//! The seed of a round is the first seed plus its position, so `rounds=1 seed=NUMBER` repeats one round.

mod chance;
mod judge;
mod scene;
mod writer;

use std::fs;
use std::path::Path;

use cronhold_daemon::bench::samples::{number, seconds};
use cronhold_daemon::chance::SystemEntropy;
use cronhold_daemon::clock::SystemClock;
use cronhold_engine::{EntropySource, MachineClock};
use cronhold_schedule::Instant;

use self::chance::Chance;
use self::judge::Tally;
use self::scene::Scene;
use crate::report::{Report, Target};
use crate::rig::{block_on, scratch};

pub(crate) use self::writer::{VERB, write};

/// Programs that run at once in a round.
const PROGRAMS: usize = 500;
/// Rounds in which the daemon is killed.
const DAEMON_ROUNDS: u64 = 100;
/// Rounds in which the keeper is killed.
const KEEPER_ROUNDS: u64 = 10;
/// An additional job that runs every second.
const TICK: &str = "tick";
/// The longest time between the start of all programs and the first kill. By then the first programs have ended.
const FIRST_MILLIS: u64 = 2_500;
/// In one of this many rounds, the first kill happens while programs are being started.
const EARLY_ONE_IN: u64 = 4;
/// The longest time between the due time and such an early kill.
const EARLY_MILLIS: u64 = 1_000;
/// The longest time between two kills.
const NEXT_MILLIS: u64 = 1_500;
/// The largest number of kills in a round.
const BLOWS_MAX: u64 = 4;
/// The longest time without a daemon, unless the round waits until all programs have ended.
const AWAY_MILLIS: u64 = 1_000;
/// In one of this many rounds, all programs end while no daemon runs.
const ALL_END_ONE_IN: u64 = 5;
/// In one of this many rounds, the idle keeper has then exited as well.
const KEEPER_ENDS_ONE_IN: u64 = 25;
/// In one of this many rounds in which the keeper is killed, the daemon is killed too.
const BOTH_ONE_IN: u64 = 3;
/// Time for the daemon to read the job files before they are due. It is doubled if that is not enough.
const PREPARE_SECONDS: i64 = 1;
const PREPARATIONS_MAX: u32 = 5;
/// A random seed is short enough to be typed.
const SEED_BITS: u128 = 0xFFFF_FFFF;
/// Violations of one round that are printed.
const SHOWN_MAX: usize = 5;

/// The process that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    Daemon,
    Keeper,
}

/// Runs the rounds that the command line selects.
pub(crate) fn measure(report: &mut Report, words: &[String]) {
    let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok());
    let most = value("rounds=").unwrap_or(u64::MAX);
    let seed = value("seed=").unwrap_or_else(|| u64::try_from(SystemEntropy.bits() & SEED_BITS).expect("few bits"));
    println!("rounds: seed={seed}");
    let base = scratch("rounds").canonicalize().expect("it is there");
    block_on(async {
        let clock = SystemClock::new().expect("a timer");
        for (blow, many, name) in [
            (Blow::Daemon, DAEMON_ROUNDS, "the daemon is killed"),
            (Blow::Keeper, KEEPER_ROUNDS, "the keeper is killed"),
        ] {
            let begin = clock.uptime();
            let mut all = Tally::default();
            for position in 0..many.min(most) {
                all.add(round(&base, seed.wrapping_add(position), blow, &clock).await);
            }
            let took = seconds(clock.uptime().minus(begin));
            add_rows(report, name, many.min(most), took, &all);
        }
    });
    // The directories of failed rounds are kept for inspection, and then this fails.
    let _ = fs::remove_dir(base);
}

fn add_rows(report: &mut Report, name: &str, rounds: u64, took: f64, all: &Tally) {
    report.note(format!("rounds: {name}"), number(rounds), "");
    report.note("  seconds", took, "s");
    report.note("  with all programs running at the first kill", number(all.all_running), "");
    report.note("  kills", number(all.blows), "");
    report.note("  programs that ran to their end, each checked", number(all.ended), "");
    report.note("  ended while no daemon ran", number(all.ended_alone), "");
    report.note("  start unknown, and never started", number(all.unknown), "");
    report.note("  keeper lost, and no process left", number(all.lost), "");
    report.compare("  violations", number(all.violations.len() as u64), "", Target::AtMost(0.0));
}

/// Runs one round, in a directory that is kept if there are violations.
async fn round(base: &Path, seed: u64, blow: Blow, clock: &dyn MachineClock) -> Tally {
    let dir = base.join(format!("{blow:?}-{seed}"));
    let mut scene = Scene::new(dir.clone(), clock);
    let mut tally = match act(&mut scene, seed, blow).await {
        Ok(tally) => tally,
        Err(why) => Tally { violations: vec![why], ..Tally::default() },
    };
    scene.kill();
    tally.violations.extend((!scene.end_all().await).then(|| "a process of the round does not end".to_owned()));
    if tally.violations.is_empty() {
        let _ = fs::remove_dir_all(dir);
    }
    for violation in tally.violations.iter().take(SHOWN_MAX) {
        println!("rounds=1 seed={seed}, {blow:?}: {violation}");
    }
    tally
}

async fn act(scene: &mut Scene<'_>, seed: u64, blow: Blow) -> Result<Tally, String> {
    prepare(scene, seed).await?;
    let mut chance = Chance::new(seed);
    let blows = 1 + chance.below(BLOWS_MAX);
    let mut tally = Tally { blows, ..Tally::default() };
    let (is_early, early, later) =
        (chance.one_in(EARLY_ONE_IN), chance.below(EARLY_MILLIS), chance.below(FIRST_MILLIS));
    if is_early {
        scene.rest(early).await;
    } else if scene.eventually(|| scene.starts() == PROGRAMS).await {
        tally.all_running = 1;
        scene.rest(later).await;
    } else {
        return Err(format!("only {} programs were started", scene.starts()));
    }
    for nth in 0..blows {
        if nth > 0 {
            scene.rest(chance.below(NEXT_MILLIS)).await;
        }
        match blow {
            Blow::Daemon => daemon_dies(scene, &mut chance, nth + 1 == blows).await?,
            Blow::Keeper => keeper_dies(scene, &mut chance).await,
        }
    }
    let after = scene.now();
    let runs = scene.wait_for_ends().await?;
    // All runs may have ended before the last start.
    if !scene.eventually(|| scene.is_ready()).await {
        return Err("the daemon does not become ready".to_owned());
    }
    judge::judge(scene, seed, blow, &runs, &mut tally).await;
    if blow == Blow::Keeper && !scene.ticks_after(after).await {
        tally.violations.push("the new keeper starts nothing".to_owned());
    }
    if !scene.eventually(|| scene.kept_outputs() == 0 && !scene.has_children()).await {
        tally.violations.push("the keeper keeps outputs that are stored, or zombie children".to_owned());
    }
    tally.violations.extend(scene.stop().await);
    Ok(tally)
}

/// Starts a daemon, and waits until all programs are due.
async fn prepare(scene: &mut Scene<'_>, seed: u64) -> Result<(), String> {
    for doubling in 0..PREPARATIONS_MAX {
        let due = Instant::from_secs(scene.now().secs_up() + (PREPARE_SECONDS << doubling));
        scene.put_jobs(seed, due);
        scene.start();
        scene.eventually(|| scene.is_ready()).await;
        let left = due.since(scene.now());
        if !left.is_zero() {
            scene.rest(left.millis()).await;
            return Ok(());
        }
        scene.stop().await.map_or(Ok(()), Err)?;
        scene.clear();
    }
    Err("the daemon does not read its job files in time".to_owned())
}

async fn daemon_dies(scene: &mut Scene<'_>, chance: &mut Chance, is_last: bool) -> Result<(), String> {
    scene.kill();
    let away = chance.below(AWAY_MILLIS);
    let (all_end, keeper_ends) = (chance.one_in(ALL_END_ONE_IN), chance.one_in(KEEPER_ENDS_ONE_IN));
    if is_last && all_end && !scene.eventually(|| !scene.has_programs()).await {
        return Err("programs do not end without a daemon".to_owned());
    }
    if is_last && keeper_ends && !scene.eventually(|| scene.keeper().is_none()).await {
        return Err("the keeper does not end without a daemon".to_owned());
    }
    scene.rest(away).await;
    scene.start();
    Ok(())
}

async fn keeper_dies(scene: &mut Scene<'_>, chance: &mut Chance) {
    let (is_both, is_daemon_first, between) =
        (chance.one_in(BOTH_ONE_IN), chance.one_in(2), chance.below(NEXT_MILLIS / 10));
    if is_both && is_daemon_first {
        scene.kill();
        scene.rest(between).await;
    }
    scene.kill_keeper();
    if is_both {
        scene.rest(between).await;
        scene.kill();
        scene.start();
    }
}
