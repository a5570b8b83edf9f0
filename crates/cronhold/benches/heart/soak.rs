//! A soak test and an output flood. The keeper must not leak, however many programs have run and however much one of
//! them writes. Both take minutes. They have a pass criterion, so a failure changes the exit code.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_daemon::bench::machine::IN_FLIGHT;
use cronhold_daemon::bench::node::{BenchNode, job_id};
use cronhold_daemon::bench::samples::number;
use cronhold_schedule::Span;
use tokio::task::JoinSet;

use crate::burden::{keeper, processes, resident};
use crate::report::{Report, Target};
use crate::rig::on_node_with_keeper;
use crate::sqlite;

/// A program that writes the numbers up to this writes more than a gigabyte.
const NUMBERS: u64 = 112_000_000;
/// The least number of bytes that the store keeps at the beginning and at the end.
const HEAD: usize = 1 << 20;
const TAIL: usize = 9 << 20;
const POLL_INTERVAL: Span = Span::from_millis(10);

/// Runs after which all one-time allocations are done and the keeper's history has its full length.
const EARLY: usize = 80_000;
const GROWTH_MOST_KB: f64 = 1_024.0;

/// Soak test: `runs` more runs after the early ones.
pub(crate) fn soak(report: &mut Report, runs: usize) {
    on_node_with_keeper("soak", &sqlite, async |rig, dir| {
        let yaml = "program: [/bin/echo, hello]\noverlap: allow\nretain: {success: 10}\n";
        rig.put_jobs(IN_FLIGHT, |_| yaml.to_owned()).await?;
        for job in 0..IN_FLIGHT {
            BenchNode::run_once(&rig.node, job_id(job)).await?;
        }
        let mut requests = JoinSet::new();
        let (mut ended, mut early) = (0, None);
        while ended < EARLY + runs {
            let over = rig.recorder.next_ended(IN_FLIGHT).await;
            ended += over.len();
            for run in over {
                assert_eq!(run.state, State::Success, "{run:?}");
                let (node, job) = (rig.node.clone(), run.job.clone());
                requests.spawn(async move { BenchNode::run_once(&node, job).await.expect("a run") });
            }
            while requests.try_join_next().is_some() {}
            if ended > EARLY && early.is_none() {
                early = Some((open_files(dir), resident(dir)));
            }
        }
        requests.join_all().await;
        rig.recorder.collect_ended(IN_FLIGHT).await;
        rig.clock.sleep(Span::from_secs(3)).await;
        let (files, memory) = early.expect("more runs than the early ones");
        let (files_now, memory_now) = (open_files(dir), resident(dir));
        report.note("soak: runs", number(ended as u64), "");
        report.compare("  remaining children of the keeper", number(processes(dir) as u64), "", Target::AtMost(0.0));
        report.compare("  growth of the keeper's open files", files_now - files, "", Target::AtMost(0.0));
        let growth = memory_now - memory;
        report.note("  memory of the keeper", memory_now, "kB");
        report.compare("  growth of the keeper's memory", growth, "kB", Target::AtMost(GROWTH_MOST_KB));
        Ok(())
    });
}

/// One program writes a gigabyte. The beginning and the end are kept, and the rest does not fill the disk.
pub(crate) fn flood(report: &mut Report) {
    on_node_with_keeper("flood", &sqlite, async |rig, dir| {
        rig.put_jobs(1, |_| format!("program: [seq, \"1\", \"{NUMBERS}\"]\n")).await?;
        BenchNode::run_once(&rig.node, job_id(0)).await?;
        let mut most_on_disk = 0;
        let run = loop {
            most_on_disk = most_on_disk.max(on_disk(dir));
            if let Some(run) = rig.recorder.take_ended(1).pop() {
                break run;
            }
            rig.clock.sleep(POLL_INTERVAL).await;
        };
        let whole: u64 = written_below(NUMBERS);
        let output = rig.store.read(run.id, 0, usize::MAX).await.expect("an output").bytes;
        report.note("flood: one program writes", number(whole) / 1e6, "MB");
        report.note("  peak usage of the disk", number(most_on_disk) / 1e6, "MB");
        let wrong = why_wrong(&run, &output, whole);
        wrong.iter().for_each(|why| println!("{why}"));
        report.compare("  wrong parts", number(wrong.len() as u64), "", Target::AtMost(0.0));
        report.compare("  memory of the keeper", resident(dir), "kB", Target::AtMost(32_768.0));
        Ok(())
    });
}

/// The size of the numbers from 1 to `last`, each on its own line, in bytes.
fn written_below(last: u64) -> u64 {
    let bytes_of = |digits: u32| {
        let (from, to) = (10_u64.pow(digits - 1), (10_u64.pow(digits) - 1).min(last));
        (to + 1).saturating_sub(from) * u64::from(digits + 1)
    };
    (1..=last.ilog10() + 1).map(bytes_of).sum()
}

/// The disk usage of outputs, in bytes. Holes of sparse files do not count.
fn on_disk(dir: &Path) -> u64 {
    let outputs = fs::read_dir(dir.join("keeper/outputs")).into_iter().flatten().flatten();
    outputs.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.blocks() * 512).sum()
}

fn why_wrong(run: &Run, output: &[u8], whole: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    if run.state != State::Success {
        wrong.push(format!("it ended as {:?}", run.state));
    }
    let counted = run.written.as_ref().map(|written| written.bytes);
    if counted != Some(whole) {
        wrong.push(format!("{counted:?} bytes were counted, not {whole}"));
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

/// The output of a program that writes these numbers.
fn numbers(first: u64, last: u64) -> Vec<u8> {
    let mut text = Vec::new();
    (first..=last).for_each(|number| writeln!(text, "{number}").expect("a Vec accepts all bytes"));
    text
}

/// The number of open files of the keeper.
fn open_files(dir: &Path) -> f64 {
    number(fs::read_dir(format!("/proc/{}/fd", keeper(dir))).expect("it runs").count() as u64)
}
