//! Two nodes on one Redis, with zone data of different releases. The older node claims whatever both releases agree on,
//! leaves the rest to the newer node, and takes over when that one is gone.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use cronhold_schedule::Instant;
use serde_json::Value;

use crate::processes::eventually;
use crate::sandbox::{CommandOutput, Node, Sandbox};

/// The two releases; each is the name of a node and of its directory, too.
const OLDER: &str = "2026a";
const NEWER: &str = "2026b";
/// More runs than a test creates.
const RUNS_MAX: &str = "100000";
/// Occurrences that show that a node claims those of a job.
const MORE: usize = 3;

/// Writes zone data with these zones, which have a fixed offset in seconds.
fn put_zone_data(sandbox: &Sandbox, release: &str, zones: &[(&str, i32)]) {
    sandbox.put(&format!("zones/{release}/tzdata.zi"), &format!("# version {release}\n"));
    for (name, offset) in zones {
        let file = sandbox.path(&format!("zones/{release}/{name}"));
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, zone_file(*offset)).expect("written");
    }
}

/// A zone file (RFC 9636) of version 2 without transitions.
fn zone_file(offset: i32) -> Vec<u8> {
    let counts: [u32; 6] = [0, 0, 0, 0, 1, 4];
    let mut block = b"TZif2".to_vec();
    block.extend([0; 15]);
    block.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
    block.extend(offset.to_be_bytes());
    block.extend(b"\0\0LMT\0");
    let footer = format!("\n<LMT>-{}:{:02}:{:02}\n", offset / 3600, offset / 60 % 60, offset % 60);
    [block.as_slice(), block.as_slice(), footer.as_bytes()].concat()
}

fn put_job(sandbox: &Sandbox, name: &str, schedule: &str) {
    let yaml = format!("program: {{noop: true}}\nschedule: {{{schedule}}}\noverlap: allow\n");
    sandbox.put(&format!("jobs/{name}.yaml"), &yaml);
}

fn start_node(sandbox: &Sandbox, release: &str) -> Node {
    sandbox.up_with_zones(&format!("zones/{release}"), release, &["--jobs", "jobs"])
}

/// The successful runs of a job, oldest first: the nominal time in seconds, and the node.
fn runs_of(sandbox: &Sandbox, job: &str) -> Vec<(i64, String)> {
    let runs = sandbox.json(&["runs", job, "--state", "success", "-n", RUNS_MAX]);
    let text = |run: &Value, name: &str| run[name].as_str().expect("a text").to_owned();
    let nominal = |run: &Value| Instant::parse(&text(run, "nominal_time")).expect("an instant").secs();
    let mut runs: Vec<_> = runs.as_array().expect("runs").iter().map(|run| (nominal(run), text(run, "node"))).collect();
    runs.sort();
    runs
}

/// The number of occurrences of each job that a node has claimed.
fn counts(sandbox: &Sandbox, jobs: &[&str], node: &str) -> Vec<usize> {
    let count = |job: &&str| runs_of(sandbox, job).iter().filter(|(_, of)| of == node).count();
    jobs.iter().map(count).collect()
}

/// Waits until a node has claimed more occurrences of each of these jobs.
fn wait_for_more(sandbox: &Sandbox, jobs: &[&str], node: &str) {
    let before = counts(sandbox, jobs, node);
    eventually(&format!("{node} claims more of {jobs:?}"), || {
        counts(sandbox, jobs, node).iter().zip(&before).all(|(now, before)| *now >= before + MORE)
    });
}

/// What the health check of a node says about the zone data of other nodes.
fn other_zone_data(sandbox: &Sandbox, node: &str) -> Value {
    let address = fs::read(sandbox.path(&format!("{node}/address"))).expect("it listens");
    let address: Value = serde_json::from_slice(&address).expect("JSON");
    let address = address["url"].as_str().expect("a URL").trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    let (_, body) = response.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str::<Value>(body).expect("JSON")["other_zone_data"].clone()
}

/// Searches for holes with the zone data of a release.
fn holes(sandbox: &Sandbox, release: &str) -> CommandOutput {
    let url = sandbox.server.url();
    let args = ["--store", &url, "holes"];
    let mut command = sandbox.command(&args);
    command.env("TZDIR", sandbox.path(&format!("zones/{release}")));
    CommandOutput::new(&args, &command.output().expect("the binary starts"))
}

/// Asserts that the older node says that the other one has newer data.
fn assert_difference_reported(sandbox: &Sandbox, older: &Node) {
    older.wait_until_logged("zone_data_differs", &[("ours", OLDER)]);
    assert_eq!(other_zone_data(sandbox, OLDER), serde_json::json!([format!("{NEWER}: {NEWER}")]));
    for node in sandbox.json(&["nodes"]).as_array().expect("nodes") {
        assert_eq!(node["zone_data"], node["name"], "{node}");
    }
}

/// Kills a node with its keeper, and waits until the older node says that all live nodes have the same data.
fn kill_newer(sandbox: &Sandbox, newer: Node, older: &Node) {
    drop(newer);
    older.wait_until_logged("zone_data_agrees", &[("ours", OLDER)]);
    assert_eq!(other_zone_data(sandbox, OLDER), serde_json::json!([]));
}

#[test]
fn node_with_an_older_release_of_equal_zone_data_claims_its_share() {
    let sandbox = Sandbox::new("zones-equal");
    let jobs = ["berlin-0", "berlin-1", "berlin-2", "berlin-3"];
    jobs.iter().for_each(|job| put_job(&sandbox, job, "cron: '* * * * * * *', timezone: Europe/Berlin"));
    for release in [OLDER, NEWER] {
        put_zone_data(&sandbox, release, &[("Europe/Berlin", 3600)]);
    }
    let (newer, older) = (start_node(&sandbox, NEWER), start_node(&sandbox, OLDER));
    assert_difference_reported(&sandbox, &older);
    let claimed = |node: &str| counts(&sandbox, &jobs, node).iter().sum::<usize>();
    let before = (claimed(OLDER), claimed(NEWER));
    let share = jobs.len() * MORE;
    eventually("both claim a share", || claimed(OLDER) >= before.0 + share && claimed(NEWER) >= before.1 + share);
    kill_newer(&sandbox, newer, &older);
    wait_for_more(&sandbox, &jobs, OLDER);
    [OLDER, NEWER].iter().for_each(|release| drop(holes(&sandbox, release).exits(0)));
    older.stop();
}

/// In the newer release the zone is one second ahead. A job that is due in every second second of local time is
/// therefore due at odd seconds of UTC by the newer release, and at even ones by the older one.
#[test]
fn occurrences_that_zone_data_disagree_on_are_left_to_the_node_with_newer_data() {
    let sandbox = Sandbox::new("zones-differ");
    put_job(&sandbox, "berlin", "cron: '*/2 * * * * * *', timezone: Europe/Berlin");
    put_job(&sandbox, "tokyo", "cron: '*/2 * * * * * *', timezone: Asia/Tokyo");
    put_job(&sandbox, "utc", "cron: '* * * * * * *'");
    put_job(&sandbox, "interval", "every: 1s");
    for (release, berlin) in [(OLDER, 3600), (NEWER, 3601)] {
        put_zone_data(&sandbox, release, &[("Europe/Berlin", berlin), ("Asia/Tokyo", 32400)]);
    }
    let newer = start_node(&sandbox, NEWER);
    wait_for_more(&sandbox, &["berlin"], NEWER);
    let older = start_node(&sandbox, OLDER);
    older.wait_until_logged("zone_data_older", &[("ours", OLDER), ("theirs", NEWER)]);
    assert_difference_reported(&sandbox, &older);
    wait_for_more(&sandbox, &["tokyo", "utc", "interval"], OLDER);
    wait_for_more(&sandbox, &["berlin"], NEWER);
    let runs = runs_of(&sandbox, "berlin");
    let is_by_newer = |(nominal, node): &(i64, String)| node == NEWER && nominal % 2 == 1;
    assert!(runs.iter().all(is_by_newer), "{runs:?}");
    [OLDER, NEWER].iter().for_each(|release| drop(holes(&sandbox, release).exits(0)));

    kill_newer(&sandbox, newer, &older);
    wait_for_more(&sandbox, &["berlin", "tokyo", "utc", "interval"], OLDER);
    let runs = runs_of(&sandbox, "berlin");
    let taken_over = runs.iter().skip_while(|run| is_by_newer(run));
    let (first, later): (Vec<_>, Vec<_>) = taken_over.partition(|(nominal, _)| nominal % 2 == 1);
    assert!(runs.iter().rev().take(later.len() + first.len()).all(|(_, node)| node == OLDER), "{runs:?}");
    assert_eq!(first.len(), 1, "only the stored occurrence is the newer release's: {runs:?}");
    assert!(first[0].0 < later[0].0, "{runs:?}");
    [OLDER, NEWER].iter().for_each(|release| drop(holes(&sandbox, release).exits(0)));
    older.stop();
}
