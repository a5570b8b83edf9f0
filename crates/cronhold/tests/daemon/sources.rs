//! Several directories, and jobs that were added by the API.

use std::fs;

use super::daemon::{Daemon, Sandbox, transcript};
use super::files::TICK;
use super::http::Api;

/// Ids and sources of the stored jobs.
fn jobs(sandbox: &Sandbox) -> String {
    let stored = sandbox.stored();
    let jobs = stored.jobs.iter().map(|job| format!("{} {}", job.id, job.source));
    jobs.collect::<Vec<_>>().join(", ")
}

fn put(sandbox: &Sandbox, file: &str) {
    let file = sandbox.path(file);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, TICK).expect("written");
}

#[test]
fn each_directory_owns_its_jobs() {
    let sandbox = Sandbox::new("prefixes");
    put(&sandbox, "jobs/a.yaml");
    put(&sandbox, "team/x.yaml");
    let both = ["--jobs", "jobs", "--jobs", "team=team"];
    let mut daemon = Daemon::start(&mut sandbox.command(&both));
    daemon.wait_for_event("job_files_loaded", &[("directories", "jobs, team=team"), ("put", "2")]);
    daemon.wait_for("ready");
    assert_eq!(jobs(&sandbox), "a directory:, team/x directory:team");
    put(&sandbox, "team/y.yaml");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "team/y")]);
    fs::remove_file(sandbox.path("team/x.yaml")).expect("there");
    daemon.wait_for_event("job_files_applied", &[("jobs_removed", "team/x")]);
    daemon.kill();
    // The jobs of a directory that is no longer given stay until a user removes them. A job with a file cannot be
    // removed.
    let mut daemon = sandbox.up();
    daemon.wait_until_logged("job_files_orphaned", &[]);
    daemon.wait_until_logged("ready", &[]);
    assert_eq!(jobs(&sandbox), "a directory:, team/y directory:team");
    let api = Api::of(&sandbox);
    api.delete("/api/v1/jobs/team%2Fy");
    assert_eq!(jobs(&sandbox), "a directory:");
    assert!(api.refused("DELETE", "/api/v1/jobs/a").contains("comes from a job file"));
    assert_eq!(jobs(&sandbox), "a directory:");
    daemon.kill();
}

/// If two directories define a job, the one that is given first wins until it removes the job.
#[test]
fn first_directory_wins_a_duplicate_job() {
    let sandbox = Sandbox::new("clash");
    put(&sandbox, "jobs/stays.yaml");
    put(&sandbox, "jobs/team/x.yaml");
    put(&sandbox, "team/x.yaml");
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs", "--jobs", "team=team"]));
    daemon.wait_for_event("job_file_invalid", &[("file", "team/x.yaml")]);
    daemon.wait_for("ready");
    assert_eq!(jobs(&sandbox), "stays directory:, team/x directory:");
    fs::remove_file(sandbox.path("jobs/team/x.yaml")).expect("there");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "team/x"), ("jobs_removed", "team/x")]);
    daemon.wait_for_event("job_file_valid", &[("file", "team/x.yaml")]);
    assert_eq!(jobs(&sandbox), "stays directory:, team/x directory:team");
    daemon.kill();
}

/// A file does not replace a job that was added by the API. It takes effect when the job is removed.
#[test]
fn file_does_not_replace_job_added_by_api() {
    let sandbox = Sandbox::new("clash-api");
    put(&sandbox, "jobs/stays.yaml");
    let mut daemon = sandbox.up();
    let api = Api::of(&sandbox);
    api.put("/api/v1/jobs/x", "{\"program\": {\"noop\": true}}");
    // Files may refer to the job, as they may refer to each other.
    fs::write(sandbox.path("jobs/after.yaml"), "program: {noop: true}\nconditions: [{after: x}]\n").expect("written");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "after")]);
    put(&sandbox, "jobs/x.yaml");
    daemon.wait_for_event("job_file_invalid", &[("file", "jobs/x.yaml")]);
    assert!(api.get("/api/v1/jobs/x").contains("was created by the command line"));
    assert_eq!(jobs(&sandbox), "after directory:, stays directory:, x api");
    api.delete("/api/v1/jobs/x");
    daemon.wait_for_event("job_files_applied", &[("jobs_put", "x")]);
    assert_eq!(jobs(&sandbox), "after directory:, stays directory:, x directory:");
    daemon.kill();
}

#[test]
fn overlapping_directories_are_refused() {
    let sandbox = Sandbox::new("usage");
    fs::create_dir_all(sandbox.path("jobs/inner")).expect("a folder");
    fs::create_dir_all(sandbox.path("other")).expect("a folder");
    let shown: String = [["jobs", "other"], ["a=jobs", "a=other"], ["jobs", "a=jobs/inner"], ["jobs", "a=none"]]
        .iter()
        .map(|[one, two]| transcript(&mut sandbox.command(&["--jobs", one, "--jobs", two])))
        .collect();
    insta::assert_snapshot!(shown);
}
