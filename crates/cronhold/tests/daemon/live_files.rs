//! Job files that change while the daemon runs. Tests wait for the log event of each change.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use rustix::process::Signal;

use super::daemon::{Daemon, Sandbox};
use super::files::{TICK, jobs};
use super::http::Api;
use super::processes::eventually;

fn never(text: &str) -> String {
    format!("description: {text}\nprogram: {{noop: true}}\nschedule: triggered\n")
}

/// The description that is stored for a job.
fn description(sandbox: &Sandbox, id: &str) -> String {
    let stored = sandbox.stored();
    let job = stored.jobs.iter().find(|job| job.id.as_str() == id).unwrap_or_else(|| panic!("there is no {id}"));
    job.job.description.clone()
}

/// Many daemons reload their configuration on SIGHUP.
#[test]
fn sighup_reloads_job_files() {
    let sandbox = Sandbox::new("hangup");
    sandbox.put_job("a", &never("first"));
    let mut command = sandbox.command(&["--jobs", "jobs"]);
    let mut daemon = Daemon::start(command.stdin(Stdio::null()));
    daemon.wait_for("ready");
    daemon.send(Signal::HUP);
    daemon.wait_for("reload_requested");
    sandbox.put_job("a", &never("edited"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    let (status, _) = daemon.stop();
    assert!(status.success());
}

#[test]
fn changed_files_are_applied() {
    let sandbox = Sandbox::new("live");
    sandbox.put_job("a", &never("first"));
    let mut daemon = sandbox.up();
    sandbox.put_job("a", &never("edited"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    assert_eq!(description(&sandbox, "a"), "edited");

    // Editors write a temporary file and rename it.
    fs::write(sandbox.path("jobs/.a.yaml.swp"), never("replaced")).expect("written");
    fs::rename(sandbox.path("jobs/.a.yaml.swp"), sandbox.job_file("a")).expect("renamed");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    assert_eq!(description(&sandbox, "a"), "replaced");

    // New folders are watched too.
    sandbox.put_job("new/deep/b", &never("first"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "new/deep/b")]);
    sandbox.put_job("new/deep/b", &never("edited"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "new/deep/b")]);
    fs::rename(sandbox.path("jobs/new"), sandbox.path("jobs/other")).expect("renamed");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "other/deep/b")]);
    daemon.wait_for_event("job_files_applied", &[("jobs_removed", "new/deep/b")]);
    sandbox.put_job("other/deep/b", &never("once more"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "other/deep/b")]);
    assert_eq!(jobs(&sandbox), "a 3, other/deep/b 2");

    fs::remove_file(sandbox.job_file("a")).expect("there");
    daemon.wait_for_event("job_files_applied", &[("jobs_removed", "a")]);
    assert_eq!(jobs(&sandbox), "other/deep/b 2");
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// With many files, a restart takes what it needs from a cache, and finds what has changed in the meantime.
#[test]
fn restart_with_many_files_applies_changes() {
    const FILES: usize = 300;
    let sandbox = Sandbox::new("live-many");
    for number in 0..FILES {
        sandbox.put_job(&format!("j{number:03}"), &never("first"));
    }
    let mut daemon = sandbox.up();
    let api = Api::of(&sandbox);
    let cache = sandbox.path("home/job-files-cache");
    // Files that were written just now are not cached.
    eventually("all files are cached", || {
        api.post("/api/v1/reload", "");
        fs::read_to_string(&cache).is_ok_and(|text| text.matches("\"definition\"").count() == FILES)
    });
    sandbox.put_job("j007", &never("edited"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "j007")]);
    assert_eq!(description(&sandbox, "j007"), "edited");
    daemon.kill();

    sandbox.put_job("j008", &never("edited while it was down"));
    sandbox.put_job("new", "program: {noop: true}\nconditions: [{after: j009}]\n");
    sandbox.put_job("wrong", "program: {noop: true}\nconditions: [{after: j010}]\n");
    sandbox.put_job("j011", "progam: x\n");
    fs::remove_file(sandbox.job_file("j010")).expect("there");
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    daemon.wait_for_event("job_file_invalid", &[("file", "jobs/j011.yaml"), ("line", "1")]);
    daemon.wait_for_event("job_file_invalid", &[("file", "jobs/wrong.yaml"), ("line", "2"), ("column", "22")]);
    let counts = [("put", "2"), ("removed", "1"), ("unchanged", "297"), ("kept", "1")];
    daemon.wait_for_event("job_files_loaded", &counts);
    daemon.wait_for("ready");
    assert_eq!(description(&sandbox, "j008"), "edited while it was down");
    assert_eq!(description(&sandbox, "j007"), "edited");
    daemon.kill();
}

/// The mistake is logged with line and column and shown with the job. The last valid version of the job continues.
#[test]
fn invalid_file_keeps_last_valid_job_until_fixed() {
    let sandbox = Sandbox::new("live-bad");
    sandbox.put_job("good", TICK);
    sandbox.put_job("turns", TICK);
    let mut daemon = sandbox.up();
    sandbox.put_job("turns", "program: {noop: true}\nschedule: 61 * * * *\n");
    daemon.wait_for_event("job_file_invalid", &[("file", "jobs/turns.yaml"), ("line", "2"), ("column", "11")]);
    let api = Api::of(&sandbox);
    let shown = api.get("/api/v1/jobs/turns");
    assert!(shown.contains("\"line\":2,\"column\":11,"), "{shown}");
    daemon.wait_for_event("run_state", &[("job", "turns")]);
    daemon.wait_for_event("run_state", &[("job", "good")]);
    assert_eq!(jobs(&sandbox), "good 1, turns 1");
    sandbox.put_job("turns", &TICK.replace("1s", "2s"));
    daemon.wait_for_event("job_file_valid", &[("file", "jobs/turns.yaml")]);
    assert_eq!(jobs(&sandbox), "good 1, turns 2");
    let shown = api.get("/api/v1/jobs/turns");
    assert!(shown.contains("\"errors\":[]"), "{shown}");
    daemon.kill();
}

/// A mounted configuration is a set of links into a folder that is replaced as a whole.
#[test]
fn replaced_symlink_target_is_applied() {
    let sandbox = Sandbox::new("live-links");
    let version = |name: &str| {
        fs::create_dir_all(sandbox.path(&format!("jobs/{name}"))).expect("a folder");
        fs::write(sandbox.path(&format!("jobs/{name}/a.yaml")), never(name)).expect("written");
    };
    version("..one");
    symlink("..one", sandbox.path("jobs/..data")).expect("a link");
    symlink("..data/a.yaml", sandbox.job_file("a")).expect("a link");
    let mut daemon = sandbox.up();
    assert_eq!(description(&sandbox, "a"), "..one");
    version("..two");
    symlink("..two", sandbox.path("jobs/..new")).expect("a link");
    fs::rename(sandbox.path("jobs/..new"), sandbox.path("jobs/..data")).expect("renamed");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    assert_eq!(description(&sandbox, "a"), "..two");
    daemon.kill();
}

/// The directory itself is a link. It is removed, and later points to another directory.
#[test]
fn missing_directory_keeps_jobs_until_it_returns() {
    let sandbox = Sandbox::new("live-root");
    sandbox.put_job("a", &never("first"));
    fs::create_dir(sandbox.path("next")).expect("a folder");
    fs::write(sandbox.path("next/a.yaml"), never("next")).expect("written");
    symlink("jobs", sandbox.path("link")).expect("a link");
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "link"]));
    daemon.wait_for("ready");
    fs::remove_file(sandbox.path("link")).expect("there");
    daemon.wait_for_event("job_file_invalid", &[("file", "link")]);
    assert_eq!(jobs(&sandbox), "a 1");
    symlink("next", sandbox.path("link")).expect("a link");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    daemon.wait_until_logged("job_file_valid", &[("file", "link")]);
    assert_eq!(description(&sandbox, "a"), "next");

    fs::remove_file(sandbox.path("next/a.yaml")).expect("there");
    daemon.wait_for_event("job_file_invalid", &[("file", "link")]);
    assert_eq!(jobs(&sandbox), "a 2");
    fs::write(sandbox.path("next/a.yaml"), never("back")).expect("written");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    assert_eq!(jobs(&sandbox), "a 3");
    daemon.kill();
}

/// When a calendar changes, the due times of its jobs change. An invalid calendar keeps its last valid content.
#[test]
fn changed_calendar_moves_due_times() {
    let sandbox = Sandbox::new("live-calendar");
    let calendar = |text: &str| fs::write(sandbox.path("jobs/open.cal"), text).expect("written");
    calendar("2090-01-02\n");
    sandbox.put_job("a", "program: {noop: true}\nschedule: {daily: '12:00', calendar: open}\n");
    let mut daemon = sandbox.up();
    let next = || sandbox.stored().cursors[0].next.map(|next| next.to_string()).unwrap_or_default();
    assert_eq!(next(), "2090-01-02T12:00:00Z");
    calendar("2090-01-05\n");
    daemon.wait_for("calendars_changed");
    eventually("the job is due on another day", || next() == "2090-01-05T12:00:00Z");
    calendar("2090-99-99\n");
    daemon.wait_for_event("job_file_invalid", &[("file", "jobs/open.cal"), ("line", "1"), ("column", "1")]);
    sandbox.put_job("a", "program: {noop: true}\nschedule: {daily: '13:00', calendar: open}\n");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    assert_eq!(next(), "2090-01-05T13:00:00Z");
    daemon.kill();
}

#[test]
fn reload_request_applies_files() {
    let sandbox = Sandbox::new("live-reload");
    sandbox.put_job("a", TICK);
    sandbox.put_job("b", "progam: x\n");
    let daemon = sandbox.up();
    let api = Api::of(&sandbox);
    sandbox.put_job("a", &TICK.replace("1s", "2s"));
    let report = api.post("/api/v1/reload", "");
    assert!(report.contains("\"mistakes\":2"), "{report}");
    assert!(report.contains("jobs: 1 job"), "{report}");
    assert_eq!(jobs(&sandbox), "a 2");
    assert!(api.get("/api/v1/jobs").contains("did you mean `program`?"));
    daemon.send(Signal::TERM);
    assert_eq!(daemon.end().0.code(), Some(0));
}
