//! What programs cost the keeper that owns them, and how fast what they write is recorded.

use std::fs;
use std::path::Path;
use std::process::Command;

use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use tokio::task::JoinSet;

use crate::programs::collect;
use crate::report::Report;
use crate::rig::{Rig, block_on, job_id, scratch, seconds};
use crate::sqlite;
use crate::throughput::number;

/// One job has a thousand runs at once at most.
const SLEEPERS: usize = 900;
const LOOK_EVERY: Span = Span::from_millis(20);
const OUTPUT: u64 = 1 << 30;

/// What a program that runs costs the keeper, and how fast outputs are.
pub(crate) fn burden(report: &mut Report, clock: &dyn MachineClock) {
    let dir = scratch("burden");
    block_on(async {
        let rig = Rig::with_keeper(&dir, &sqlite);
        rig.put_jobs(1, |_| "program: [/bin/sleep, 300]\noverlap: allow\n".to_owned()).await;
        Rig::run_once(&rig.node, job_id(0)).await;
        rig.clock.sleep(Span::from_secs(2)).await;
        let before = resident(&dir);
        let mut asked = JoinSet::new();
        for _ in 0..SLEEPERS {
            let node = rig.node.clone();
            asked.spawn(async move { Rig::run_once(&node, job_id(0)).await });
        }
        asked.join_all().await;
        while processes(&dir) <= SLEEPERS {
            rig.clock.sleep(LOOK_EVERY).await;
        }
        let each = (resident(&dir) - before) / number(SLEEPERS as u64);
        report.note("keeper with one program", before, "kB");
        report.note("  and for each that runs", each, "kB");
        let _ = Command::new("pkill").args(["-P", &keeper(&dir)]).status();
        collect(&rig, SLEEPERS + 1).await;

        let writer = format!("program: [head, -c, \"{OUTPUT}\", /dev/zero]\noverlap: allow\n");
        rig.put_jobs(1, |_| writer.clone()).await;
        let begin = rig.clock.uptime();
        Rig::run_once(&rig.node, job_id(0)).await;
        collect(&rig, 1).await;
        let ours = seconds(rig.clock.uptime().minus(begin));
        rig.stop().await;
        let begin = clock.uptime();
        let file = fs::File::create(dir.join("bare")).expect("a file");
        let bare = Command::new("head").args(["-c", &OUTPUT.to_string(), "/dev/zero"]).stdout(file).status();
        assert!(bare.expect("a program").success());
        let bare = seconds(clock.uptime().minus(begin));
        let megabytes = number(OUTPUT) / 1e6;
        report.note("bare: one program writes 1 GiB into a file", megabytes / bare, "MB/s");
        report.note("output of a run: 1 GiB written and recorded", megabytes / ours, "MB/s");
    });
    let _ = fs::remove_dir_all(dir);
}

/// The number of the keeper's process.
pub(crate) fn keeper(dir: &Path) -> String {
    let words = format!("\0keeper\0--data\0{}\0", dir.display());
    let processes = fs::read_dir("/proc").expect("a list of processes").filter_map(Result::ok);
    let mut pids = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let is_keeper = |pid: &String| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&words)
    };
    pids.find(is_keeper).expect("a keeper")
}

/// Kilobytes of memory that the keeper has.
pub(crate) fn resident(dir: &Path) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", keeper(dir))).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// How many children the keeper has.
pub(crate) fn processes(dir: &Path) -> usize {
    let pid = keeper(dir);
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("it lives");
    children.split_whitespace().count()
}
