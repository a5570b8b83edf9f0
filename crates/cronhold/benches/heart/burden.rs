//! The memory that running programs cost the keeper, and the speed at which output is recorded.

use std::fs;
use std::path::Path;
use std::process::Command;

use cronhold_daemon::bench::node::{BenchNode, job_id};
use cronhold_daemon::bench::samples::{number, seconds};
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use tokio::task::JoinSet;

use crate::report::Report;
use crate::rig::on_node_with_keeper;
use crate::sqlite;

/// Sleeping programs. One job has at most 1000 runs at once.
const SLEEPERS: usize = 900;
const POLL_INTERVAL: Span = Span::from_millis(20);
const OUTPUT: u64 = 1 << 30;

/// Measures the memory of the keeper per running program, and the speed of recording output.
pub(crate) fn burden(report: &mut Report, clock: &dyn MachineClock) {
    on_node_with_keeper("burden", &sqlite, async |rig, dir| {
        rig.put_jobs(1, |_| "program: [/bin/sleep, 300]\noverlap: allow\n".to_owned()).await?;
        BenchNode::run_once(&rig.node, job_id(0)).await?;
        rig.clock.sleep(Span::from_secs(2)).await;
        let before = resident(dir);
        let mut requests = JoinSet::new();
        for _ in 0..SLEEPERS {
            let node = rig.node.clone();
            requests.spawn(async move { BenchNode::run_once(&node, job_id(0)).await.expect("a run") });
        }
        requests.join_all().await;
        while processes(dir) <= SLEEPERS {
            rig.clock.sleep(POLL_INTERVAL).await;
        }
        let each = (resident(dir) - before) / number(SLEEPERS as u64);
        report.note("keeper with one program", before, "kB");
        report.note("  per additional running program", each, "kB");
        let _ = Command::new("pkill").args(["-P", &keeper(dir)]).status();
        rig.recorder.collect_ended(SLEEPERS + 1).await;

        let writer = format!("program: [head, -c, \"{OUTPUT}\", /dev/zero]\noverlap: allow\n");
        rig.put_jobs(1, |_| writer.clone()).await?;
        let begin = rig.clock.uptime();
        BenchNode::run_once(&rig.node, job_id(0)).await?;
        rig.recorder.collect_ended(1).await;
        let ours = seconds(rig.clock.uptime().minus(begin));
        let begin = clock.uptime();
        let file = fs::File::create(dir.join("bare")).expect("a file");
        let bare = Command::new("head").args(["-c", &OUTPUT.to_string(), "/dev/zero"]).stdout(file).status();
        assert!(bare.expect("a program").success());
        let bare = seconds(clock.uptime().minus(begin));
        let megabytes = number(OUTPUT) / 1e6;
        report.note("bare program: write 1 GiB to a file", megabytes / bare, "MB/s");
        report.note("run: write and record 1 GiB of output", megabytes / ours, "MB/s");
        Ok(())
    });
}

/// The pid of the keeper.
pub(crate) fn keeper(dir: &Path) -> String {
    let arguments = format!("\0keeper\0--data\0{}\0", dir.display());
    let processes = fs::read_dir("/proc").expect("a list of processes").filter_map(Result::ok);
    let mut pids = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let is_keeper = |pid: &String| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&arguments)
    };
    pids.find(is_keeper).expect("a keeper")
}

/// The resident memory of the keeper, in kilobytes.
pub(crate) fn resident(dir: &Path) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", keeper(dir))).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The number of child processes of the keeper.
pub(crate) fn processes(dir: &Path) -> usize {
    let pid = keeper(dir);
    programs_of(&pid).expect("it runs").count()
}

/// The children of a keeper, also dead ones, except the process that collects outputs; `None` if the keeper is gone.
pub(crate) fn programs_of(keeper: &str) -> Option<impl Iterator<Item = String> + use<>> {
    let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).ok()?;
    let children: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
    let is_collector = |pid: &String| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).nth(1) == Some(b"keeper-outputs")
    };
    Some(children.into_iter().filter(move |pid| !is_collector(pid)))
}
