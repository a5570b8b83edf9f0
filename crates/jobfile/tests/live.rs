//! Repeated scans of a directory: what is read, what is kept, and what counts as removed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_jobfile::directory::{Directory, DirectoryWatch, JobsRoot, LiveDirectories, Options};
use cronhold_jobfile::render_line;
use cronhold_schedule::{Instant, Zone, ZoneRegistry};

/// Later than any file timestamp here, so that no file counts as recently changed.
const LATER: &str = "2200-01-01T00:00:00Z";

/// A directory on disk that is removed at the end of its test. Its parent belongs to the test as well: the parent is
/// watched too, and other tests must not cause notifications in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("live-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let inner = path.join("inner");
        fs::create_dir_all(&inner).expect("a folder");
        Self(inner)
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn live(&self, roots: &[(&str, Option<&str>)]) -> LiveDirectories {
        let root = |(path, prefix): &(&str, Option<&str>)| JobsRoot {
            path: self.0.join(path),
            prefix: prefix.map(str::to_owned),
        };
        LiveDirectories::new(roots.iter().map(root))
    }

    /// Mistakes on one line each, with paths below the folder.
    fn lines(&self, directory: &Directory) -> Vec<String> {
        let line =
            |mistake| render_line(mistake, directory.text_of(mistake)).replace(&format!("{}/", self.0.display()), "");
        directory.mistakes.iter().map(line).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.parent().expect("it has a parent"));
    }
}

fn with_options<T>(now: &str, work: impl FnOnce(&Options<'_>) -> T) -> T {
    let (zones, now) = (Arc::new(ZoneRegistry::bundled()), Instant::parse(now).expect("an instant"));
    work(&Options { zones: &zones, zone: &Zone::utc(), now })
}

fn refresh(live: &mut LiveDirectories) -> bool {
    with_options(LATER, |options| live.refresh(options))
}

fn directory(live: &mut LiveDirectories) -> Directory {
    with_options(LATER, |options| live.directory(options, &BTreeSet::new()))
}

fn ids(directory: &Directory) -> String {
    directory.jobs.keys().map(JobId::as_str).collect::<Vec<_>>().join(" ")
}

fn id(text: &str) -> JobId {
    JobId::parse(text).expect("an id")
}

#[test]
fn unchanged_files_are_not_read_again() {
    let folder = Folder::new("changed");
    folder.put("a.yaml", "program: x\n");
    folder.put("b.yaml", "program: x\n");
    let mut live = folder.live(&[("", None)]);
    assert!(refresh(&mut live) && !refresh(&mut live));
    let before = directory(&mut live);
    folder.put("b.yaml", "program: other\n");
    assert!(refresh(&mut live));
    let after = directory(&mut live);
    assert!(Arc::ptr_eq(&before.jobs["a"].job, &after.jobs["a"].job), "it was not read again");
    assert_ne!(before.jobs["b"].job, after.jobs["b"].job);
    // Writing the same content is not a change.
    folder.put("a.yaml", "program: x\n");
    assert!(!refresh(&mut live));
    fs::remove_file(folder.0.join("a.yaml")).expect("there");
    assert!(refresh(&mut live));
    assert_eq!(ids(&directory(&mut live)), "b");
    assert!(live.is_gone(0, &id("a")) && !live.is_gone(0, &id("b")));
}

/// Timestamps are coarse, so a file that was written just now is read again.
#[test]
fn change_within_one_timestamp_tick_is_found() {
    let folder = Folder::new("young");
    folder.put("a.yaml", "program: x\n");
    let mut live = folder.live(&[("", None)]);
    with_options("2000-01-01T00:00:00Z", |options| {
        assert!(live.refresh(options));
        assert!(!live.refresh(options), "it holds the same");
        folder.put("a.yaml", "program: y\n");
        assert!(live.refresh(options));
    });
}

/// A mistake that is found in another file has its position, although the position was not kept.
#[test]
fn mistakes_across_files_have_their_places() {
    let folder = Folder::new("places");
    folder.put("a.yaml", "program: x\nconditions: [{after: prices}]\n");
    folder.put("prices.yaml", "program: x\n");
    let mut live = folder.live(&[("", None)]);
    refresh(&mut live);
    assert_eq!(directory(&mut live).mistakes, []);
    fs::rename(folder.0.join("prices.yaml"), folder.0.join("c.yaml")).expect("there");
    assert!(refresh(&mut live));
    let found = directory(&mut live);
    assert_eq!(folder.lines(&found), ["a.yaml:2:22: there is no job `prices`"]);
    assert_eq!(found.owners.values().map(JobId::as_str).collect::<Vec<_>>(), ["a"]);
    let elsewhere = BTreeSet::from([id("prices")]);
    assert_eq!(with_options(LATER, |options| live.directory(options, &elsewhere)).mistakes, []);
}

#[test]
fn unreadable_folder_keeps_its_jobs() {
    let folder = Folder::new("absent");
    folder.put("jobs/a.yaml", "program: x\n");
    folder.put("jobs/in/b.yaml", "program: x\n");
    let mut live = folder.live(&[("jobs", None)]);
    refresh(&mut live);
    fs::rename(folder.0.join("jobs"), folder.0.join("away")).expect("there");
    assert!(refresh(&mut live) && !refresh(&mut live), "it is news once");
    let found = directory(&mut live);
    assert_eq!(ids(&found), "a in/b");
    assert_eq!(folder.lines(&found).len(), 1);
    assert!(!live.is_gone(0, &id("a")));
    fs::create_dir(folder.0.join("jobs")).expect("gone");
    assert!(refresh(&mut live));
    let found = directory(&mut live);
    assert_eq!(ids(&found), "a in/b", "an empty one is more likely one that is not mounted");
    assert!(folder.lines(&found)[0].contains("it contains no job files any more"));
    fs::remove_dir(folder.0.join("jobs")).expect("empty");
    symlink("away", folder.0.join("jobs")).expect("a link");
    assert!(refresh(&mut live));
    assert_eq!(directory(&mut live).mistakes, []);

    let closed = folder.0.join("away/in");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("closed");
    refresh(&mut live);
    let found = directory(&mut live);
    let is_root = fs::read_dir(&closed).is_ok();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).expect("opened");
    assert_eq!(ids(&found), "a in/b");
    assert!(is_root || folder.lines(&found)[0].contains("it cannot be read"));
}

#[test]
fn several_directories_keep_their_prefixes() {
    let folder = Folder::new("several");
    folder.put("one/team/a.yaml", "program: x\n");
    folder.put("one/stays.yaml", "program: x\n");
    folder.put("two/a.yaml", "program: y\n");
    folder.put("two/open.cal", "2026-01-01\n");
    folder.put("two/b.yaml", "program: x\nschedule: {daily: '12:00', calendar: team/open}\n");
    let mut live = folder.live(&[("one", None), ("two", Some("team"))]);
    refresh(&mut live);
    let found = directory(&mut live);
    assert_eq!(ids(&found), "stays team/a team/b");
    assert_eq!((found.jobs["team/a"].root, found.jobs["team/b"].root), (0, 1));
    let expected = "two/a.yaml:1:1: the job `team/a` is in one/team/a.yaml already (rename or remove one of the files)";
    assert_eq!(folder.lines(&found), [expected]);
    fs::remove_file(folder.0.join("one/team/a.yaml")).expect("there");
    refresh(&mut live);
    let found = directory(&mut live);
    assert_eq!((found.jobs["team/a"].root, found.mistakes.len()), (1, 0));
    assert!(live.is_gone(0, &id("team/a")) && !live.is_gone(1, &id("team/a")));
}

#[test]
fn watch_wakes_up_when_a_file_changes() {
    let folder = Folder::new("watch");
    folder.put("in/a.yaml", "program: x\n");
    let mut live = folder.live(&[("", None)]);
    refresh(&mut live);
    let mut watch = DirectoryWatch::new().expect("a watch");
    assert!(watch.cover(live.places()).has_new && !watch.cover(live.places()).has_new);
    assert!(!watch.take());
    refresh(&mut live);
    assert!(!watch.take(), "looking does not ring");
    folder.put("in/a.yaml", "program: y\n");
    assert!(watch.take() && !watch.take());
    // A folder that replaces another one is a new folder.
    fs::rename(folder.0.join("in"), folder.0.join("old")).expect("there");
    folder.put("in/a.yaml", "program: z\n");
    assert!(watch.take());
    refresh(&mut live);
    assert!(watch.cover(live.places()).has_new);
    folder.put("in/a.yaml", "program: x\n");
    assert!(watch.take());
}

/// `job event=actions …` for each job.
fn actions(directory: &Directory) -> Vec<String> {
    let event = |(event, actions): (&cronhold_core::job::RunEvent, &Vec<cronhold_core::job::Action>)| {
        let kinds: Vec<&str> = actions.iter().map(|action| action.kind().name()).collect();
        format!(" {event}={}", kinds.join("+"))
    };
    let job = |(id, loaded): (&JobId, &cronhold_jobfile::directory::LoadedJob)| {
        format!("{id}{}", loaded.job.on.iter().map(event).collect::<String>())
    };
    directory.jobs.iter().map(job).collect()
}

#[test]
fn defaults_of_a_directory_are_added_to_its_jobs() {
    let folder = Folder::new("defaults");
    folder.put("a/own.yaml", "program: x\non: {failure: [{command: page-me}]}");
    folder.put("a/plain.yaml", "program: x");
    folder.put("a/quiet.yaml", "program: x\non: {failure: []}");
    folder.put("a/inner/defaults.yaml", "program: x");
    folder.put("b/other.yaml", "program: x");
    let mut live = folder.live(&[("a", None), ("b", Some("b"))]);
    assert!(refresh(&mut live));
    let without = ["b/other", "inner/defaults", "own failure=command", "plain", "quiet failure="];
    assert_eq!(actions(&directory(&mut live)), without);

    folder.put("a/defaults.yaml", "on: {failure: [{email: {to: ops@example.org}}, {run: plain}]}");
    assert!(refresh(&mut live));
    let with = [
        "b/other",
        "inner/defaults failure=email+run",
        "own failure=command+email+run",
        "plain failure=email",
        "quiet failure=",
    ];
    let found = directory(&mut live);
    assert_eq!((actions(&found), folder.lines(&found)), (with.map(str::to_owned).to_vec(), vec![]));
    assert!(!refresh(&mut live));

    // While the file is invalid, the jobs of its directory stay as they are.
    folder.put("a/defaults.yaml", "on: {failure: [{email: {}}]}\nprogram: x");
    assert!(refresh(&mut live));
    let found = directory(&mut live);
    assert_eq!((ids(&found).as_str(), found.broken.len()), ("b/other", 4));
    let lines = folder.lines(&found);
    assert!(lines.iter().all(|line| line.starts_with("a/defaults.yaml:")) && lines.len() == 2, "{lines:?}");
    assert!(!live.is_gone(0, &id("plain")));

    fs::remove_file(folder.0.join("a/defaults.yaml")).expect("there");
    assert!(refresh(&mut live));
    assert_eq!(actions(&directory(&mut live)), without);
}
