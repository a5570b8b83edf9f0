//! Job files that change while the daemon runs. Tests wait for the log event of each change.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use rustix::process::Signal;

use super::daemon::{Daemon, Place};
use super::files::{TICK, jobs};
use super::http::Api;
use super::processes::eventually;

fn never(text: &str) -> String {
    format!("description: {text}\nprogram: {{noop: true}}\nschedule: triggered\n")
}

/// The description that is stored for a job.
fn description(place: &Place, id: &str) -> String {
    let stored = place.stored();
    let job = stored.jobs.iter().find(|job| job.id.as_str() == id).unwrap_or_else(|| panic!("there is no {id}"));
    job.job.description.clone()
}

/// Many daemons reload their configuration on SIGHUP.
#[test]
fn sighup_reloads_job_files() {
    let place = Place::new("hangup");
    place.put_job("a", &never("first"));
    let mut command = place.command(&["--jobs", "jobs"]);
    let mut daemon = Daemon::start(command.stdin(Stdio::null()));
    daemon.wait_for("ready");
    daemon.send(Signal::HUP);
    daemon.wait_for("reload_requested");
    place.put_job("a", &never("edited"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    let (status, _) = daemon.stop();
    assert!(status.success());
}

#[test]
fn changed_files_are_applied() {
    let place = Place::new("live");
    place.put_job("a", &never("first"));
    let mut daemon = place.up();
    place.put_job("a", &never("edited"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    assert_eq!(description(&place, "a"), "edited");

    // Editors write a temporary file and rename it.
    fs::write(place.path("jobs/.a.yaml.swp"), never("replaced")).expect("written");
    fs::rename(place.path("jobs/.a.yaml.swp"), place.job_file("a")).expect("renamed");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    assert_eq!(description(&place, "a"), "replaced");

    // New folders are watched too.
    place.put_job("new/deep/b", &never("first"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "new/deep/b")]);
    place.put_job("new/deep/b", &never("edited"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "new/deep/b")]);
    fs::rename(place.path("jobs/new"), place.path("jobs/other")).expect("renamed");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "other/deep/b")]);
    daemon.wait_for_event("job_files_applied", &[("jobs_removed", "new/deep/b")]);
    place.put_job("other/deep/b", &never("once more"));
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "other/deep/b")]);
    assert_eq!(jobs(&place), "a 3, other/deep/b 2");

    fs::remove_file(place.job_file("a")).expect("there");
    daemon.wait_for_event("job_files_applied", &[("jobs_removed", "a")]);
    assert_eq!(jobs(&place), "other/deep/b 2");
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// The mistake is logged with line and column and shown with the job. The last valid version of the job continues.
#[test]
fn invalid_file_keeps_last_valid_job_until_fixed() {
    let place = Place::new("live-bad");
    place.put_job("good", TICK);
    place.put_job("turns", TICK);
    let mut daemon = place.up();
    place.put_job("turns", "program: {noop: true}\nschedule: 61 * * * *\n");
    daemon.wait_for_event("job_file_invalid", &[("file", "jobs/turns.yaml"), ("line", "2"), ("column", "11")]);
    let api = Api::of(&place);
    let shown = api.get("/api/v1/jobs/turns");
    assert!(shown.contains("\"line\":2,\"column\":11,"), "{shown}");
    daemon.wait_for_event("run_state", &[("job", "turns")]);
    daemon.wait_for_event("run_state", &[("job", "good")]);
    assert_eq!(jobs(&place), "good 1, turns 1");
    place.put_job("turns", &TICK.replace("1s", "2s"));
    daemon.wait_for_event("job_file_valid", &[("file", "jobs/turns.yaml")]);
    assert_eq!(jobs(&place), "good 1, turns 2");
    let shown = api.get("/api/v1/jobs/turns");
    assert!(shown.contains("\"errors\":[]"), "{shown}");
    daemon.kill();
}

/// A mounted configuration is a set of links into a folder that is replaced as a whole.
#[test]
fn replaced_symlink_target_is_applied() {
    let place = Place::new("live-links");
    let version = |name: &str| {
        fs::create_dir_all(place.path(&format!("jobs/{name}"))).expect("a folder");
        fs::write(place.path(&format!("jobs/{name}/a.yaml")), never(name)).expect("written");
    };
    version("..one");
    symlink("..one", place.path("jobs/..data")).expect("a link");
    symlink("..data/a.yaml", place.job_file("a")).expect("a link");
    let mut daemon = place.up();
    assert_eq!(description(&place, "a"), "..one");
    version("..two");
    symlink("..two", place.path("jobs/..new")).expect("a link");
    fs::rename(place.path("jobs/..new"), place.path("jobs/..data")).expect("renamed");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    assert_eq!(description(&place, "a"), "..two");
    daemon.kill();
}

/// The directory itself is a link. It is removed, and later points to another directory.
#[test]
fn missing_directory_keeps_jobs_until_it_returns() {
    let place = Place::new("live-root");
    place.put_job("a", &never("first"));
    fs::create_dir(place.path("next")).expect("a folder");
    fs::write(place.path("next/a.yaml"), never("next")).expect("written");
    symlink("jobs", place.path("link")).expect("a link");
    let mut daemon = Daemon::start(&mut place.command(&["--jobs", "link"]));
    daemon.wait_for("ready");
    fs::remove_file(place.path("link")).expect("there");
    daemon.wait_for_event("job_file_invalid", &[("file", "link")]);
    assert_eq!(jobs(&place), "a 1");
    symlink("next", place.path("link")).expect("a link");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    daemon.wait_until_logged("job_file_valid", &[("file", "link")]);
    assert_eq!(description(&place, "a"), "next");

    fs::remove_file(place.path("next/a.yaml")).expect("there");
    daemon.wait_for_event("job_file_invalid", &[("file", "link")]);
    assert_eq!(jobs(&place), "a 2");
    fs::write(place.path("next/a.yaml"), never("back")).expect("written");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    assert_eq!(jobs(&place), "a 3");
    daemon.kill();
}

/// When a calendar changes, the due times of its jobs change. An invalid calendar keeps its last valid content.
#[test]
fn changed_calendar_moves_due_times() {
    let place = Place::new("live-calendar");
    let calendar = |text: &str| fs::write(place.path("jobs/open.cal"), text).expect("written");
    calendar("2090-01-02\n");
    place.put_job("a", "program: {noop: true}\nschedule: {daily: '12:00', calendar: open}\n");
    let mut daemon = place.up();
    let next = || place.stored().cursors[0].next.map(|next| next.to_string()).unwrap_or_default();
    assert_eq!(next(), "2090-01-02T12:00:00Z");
    calendar("2090-01-05\n");
    daemon.wait_for("calendars_changed");
    eventually("the job is due on another day", || next() == "2090-01-05T12:00:00Z");
    calendar("2090-99-99\n");
    daemon.wait_for_event("job_file_invalid", &[("file", "jobs/open.cal"), ("line", "1"), ("column", "1")]);
    place.put_job("a", "program: {noop: true}\nschedule: {daily: '13:00', calendar: open}\n");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "a")]);
    assert_eq!(next(), "2090-01-05T13:00:00Z");
    daemon.kill();
}

#[test]
fn reload_request_applies_files() {
    let place = Place::new("live-reload");
    place.put_job("a", TICK);
    place.put_job("b", "progam: x\n");
    let daemon = place.up();
    let api = Api::of(&place);
    place.put_job("a", &TICK.replace("1s", "2s"));
    let report = api.post("/api/v1/reload", "");
    assert!(report.contains("\"mistakes\":2"), "{report}");
    assert!(report.contains("jobs: 1 job"), "{report}");
    assert_eq!(jobs(&place), "a 2");
    assert!(api.get("/api/v1/jobs").contains("did you mean `program`?"));
    daemon.send(Signal::TERM);
    assert_eq!(daemon.end().0.code(), Some(0));
}
