//! A long way and a flood: nothing may be left behind, however many programs have run and however much one of them writes.
//! They take minutes, and what they find is right or wrong, so whoever asks for them gets an exit code.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_schedule::Span;
use tokio::task::JoinSet;

use crate::burden::{keeper, processes, resident};
use crate::programs::{IN_FLIGHT, collect};
use crate::report::{Report, Target};
use crate::rig::{Rig, block_on, job_id, scratch};
use crate::sqlite;
use crate::throughput::number;

/// A program that writes the numbers up to this writes more than a gigabyte.
const NUMBERS: u64 = 112_000_000;
/// The store keeps so many bytes at the beginning and at the end, at least.
const HEAD: usize = 1 << 20;
const TAIL: usize = 9 << 20;
const LOOK_EVERY: Span = Span::from_millis(10);

/// By then everything that is made once is there, and the keeper remembers as much of the past as it ever does.
const EARLY: usize = 80_000;
const GROWTH_MOST_KB: f64 = 1_024.0;

/// A long way: so many runs after the first ones.
pub(crate) fn soak(report: &mut Report, runs: usize) {
    let dir = scratch("soak");
    block_on(async {
        let rig = Rig::with_keeper(&dir, &sqlite);
        let yaml = "program: [/bin/echo, hello]\noverlap: allow\nretain: {success: 10}\n";
        rig.put_jobs(IN_FLIGHT, |_| yaml.to_owned()).await;
        for job in 0..IN_FLIGHT {
            Rig::run_once(&rig.node, job_id(job)).await;
        }
        let mut asked = JoinSet::new();
        let (mut ended, mut early) = (0, None);
        while ended < EARLY + runs {
            rig.notes.ended.ready().await;
            let over = rig.notes.ended.take(IN_FLIGHT);
            ended += over.len();
            for run in over {
                assert_eq!(run.state, State::Success, "{run:?}");
                let (node, job) = (rig.node.clone(), run.job.clone());
                asked.spawn(async move { Rig::run_once(&node, job).await });
            }
            while asked.try_join_next().is_some() {}
            if ended > EARLY && early.is_none() {
                early = Some((open_files(&dir), resident(&dir)));
            }
        }
        asked.join_all().await;
        collect(&rig, IN_FLIGHT).await;
        rig.clock.sleep(Span::from_secs(3)).await;
        let (files, memory) = early.expect("more runs than the first ones");
        let (files_now, memory_now) = (open_files(&dir), resident(&dir));
        report.note("soak: runs", number(ended as u64), "");
        report.compare("  children of the keeper left", number(processes(&dir) as u64), "", Target::AtMost(0.0));
        report.compare("  files of the keeper more than early on", files_now - files, "", Target::AtMost(0.0));
        let growth = memory_now - memory;
        report.note("  memory of the keeper", memory_now, "kB");
        report.compare("  memory of the keeper more than early on", growth, "kB", Target::AtMost(GROWTH_MOST_KB));
        rig.stop().await;
    });
    let _ = fs::remove_dir_all(dir);
}

/// One program writes a gigabyte. The beginning and the end are kept, and what lies between does not fill the disk.
pub(crate) fn flood(report: &mut Report) {
    let dir = scratch("flood");
    block_on(async {
        let rig = Rig::with_keeper(&dir, &sqlite);
        rig.put_jobs(1, |_| format!("program: [seq, \"1\", \"{NUMBERS}\"]\n")).await;
        Rig::run_once(&rig.node, job_id(0)).await;
        let mut most_on_disk = 0;
        let run = loop {
            most_on_disk = most_on_disk.max(on_disk(&dir));
            if let Some(run) = rig.notes.ended.take(1).pop() {
                break run;
            }
            rig.clock.sleep(LOOK_EVERY).await;
        };
        let whole: u64 = written_below(NUMBERS);
        let output = rig.store.read(run.id, 0, usize::MAX).await.expect("an output").bytes;
        report.note("flood: one program writes", number(whole) / 1e6, "MB");
        report.note("  of which at most were on disk", number(most_on_disk) / 1e6, "MB");
        let wrong = why_wrong(&run, &output, whole);
        wrong.iter().for_each(|why| println!("{why}"));
        report.compare("  parts of it that are wrong", number(wrong.len() as u64), "", Target::AtMost(0.0));
        report.compare("  memory of the keeper", resident(&dir), "kB", Target::AtMost(32_768.0));
        rig.stop().await;
    });
    let _ = fs::remove_dir_all(dir);
}

/// Bytes of the numbers from 1 to another, each on a line.
fn written_below(last: u64) -> u64 {
    let bytes_of = |digits: u32| {
        let (from, to) = (10_u64.pow(digits - 1), (10_u64.pow(digits) - 1).min(last));
        (to + 1).saturating_sub(from) * u64::from(digits + 1)
    };
    (1..=last.ilog10() + 1).map(bytes_of).sum()
}

/// Bytes that outputs take on disk; holes take none.
fn on_disk(dir: &Path) -> u64 {
    let outputs = fs::read_dir(dir.join("keeper/outputs")).into_iter().flatten().flatten();
    outputs.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.blocks() * 512).sum()
}

fn why_wrong(run: &Run, output: &[u8], whole: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    if run.state != State::Success {
        wrong.push(format!("it ended as {:?}", run.state));
    }
    let told = run.written.as_ref().map(|written| written.bytes);
    if told != Some(whole) {
        wrong.push(format!("{told:?} bytes were counted, not {whole}"));
    }
    let (head, tail) = (numbers(1, HEAD as u64 / 2), numbers(NUMBERS - TAIL as u64 / 9, NUMBERS));
    if !output.starts_with(&head[..HEAD]) {
        wrong.push("its beginning is not kept".to_owned());
    }
    if !output.ends_with(&tail[tail.len() - TAIL..]) {
        wrong.push("its end is not kept".to_owned());
    }
    wrong
}

/// What a program writes that writes these numbers.
fn numbers(first: u64, last: u64) -> Vec<u8> {
    let mut text = Vec::new();
    (first..=last).for_each(|number| writeln!(text, "{number}").expect("memory takes everything"));
    text
}

/// How many files the keeper has open.
fn open_files(dir: &Path) -> f64 {
    number(fs::read_dir(format!("/proc/{}/fd", keeper(dir))).expect("it lives").count() as u64)
}
