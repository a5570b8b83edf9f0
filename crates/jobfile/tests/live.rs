//! Repeated scans of a directory: what is read, what is kept, and what counts as removed.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_core::job::{ActionRule, RunEvent};
use cronhold_core::{Job, JobId};
use cronhold_jobfile::directory::{DirectoryReport, DirectoryWatch, JobFileCache, JobsRoot, LiveDirectories, Options};
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
    fn lines(&self, directory: &DirectoryReport) -> Vec<String> {
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

/// Checks everything, and returns the mistakes and the ids of the valid jobs.
fn check(live: &mut LiveDirectories) -> (&DirectoryReport, String) {
    with_options(LATER, |options| live.check(options, &BTreeSet::new()));
    let ids = ids(live);
    (live.report(), ids)
}

fn ids(live: &LiveDirectories) -> String {
    live.jobs().map(|job| job.id.into_owned()).collect::<Vec<_>>().join(" ")
}

/// A valid job, with the index of its directory.
fn job(live: &LiveDirectories, text: &str) -> Option<(usize, Arc<Job>)> {
    with_options(LATER, |options| live.read_jobs(&[id(text)], options)).remove(0)
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
    assert_eq!(check(&mut live).1, "a b");
    let before = live.find(&id("b"));
    live.drop_recent();
    folder.put("b.yaml", "program: other\n");
    assert!(refresh(&mut live));
    assert!(!live.is_unchecked(), "no other file depends on the program");
    assert_ne!(live.find(&id("b")), before);
    let (_, read) = job(&live, "b").expect("it is valid");
    assert_eq!(job(&live, "b").map(|(_, again)| Arc::ptr_eq(&again, &read)), Some(true), "it was kept for now");
    // Writing the same content is not a change.
    folder.put("a.yaml", "program: x\n");
    assert!(!refresh(&mut live));
    fs::remove_file(folder.0.join("a.yaml")).expect("there");
    assert!(refresh(&mut live));
    assert!(live.is_unchecked());
    assert_eq!(check(&mut live).1, "b");
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
    assert_eq!(check(&mut live).0.mistakes, []);
    fs::rename(folder.0.join("prices.yaml"), folder.0.join("c.yaml")).expect("there");
    assert!(refresh(&mut live));
    let (found, valid) = check(&mut live);
    assert_eq!((folder.lines(found), &*valid), (vec!["a.yaml:2:22: there is no job `prices`".to_owned()], "c"));
    assert_eq!(found.owners.values().map(JobId::as_str).collect::<Vec<_>>(), ["a"]);
    let elsewhere = BTreeSet::from([id("prices")]);
    with_options(LATER, |options| live.check(options, &elsewhere));
    assert_eq!((live.report().mistakes.len(), &*ids(&live)), (0, "a c"));
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
    let (found, valid) = check(&mut live);
    assert_eq!((folder.lines(found).len(), &*valid), (1, "a in/b"));
    assert!(!live.is_gone(0, &id("a")));
    fs::create_dir(folder.0.join("jobs")).expect("gone");
    assert!(refresh(&mut live));
    let (found, valid) = check(&mut live);
    assert_eq!(valid, "a in/b", "an empty one is more likely one that is not mounted");
    assert!(folder.lines(found)[0].contains("it contains no job files any more"));
    fs::remove_dir(folder.0.join("jobs")).expect("empty");
    symlink("away", folder.0.join("jobs")).expect("a link");
    assert!(refresh(&mut live));
    assert_eq!(check(&mut live).0.mistakes, []);

    let closed = folder.0.join("away/in");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("closed");
    refresh(&mut live);
    let (found, valid) = check(&mut live);
    let is_root = fs::read_dir(&closed).is_ok();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).expect("opened");
    assert_eq!(valid, "a in/b");
    assert!(is_root || folder.lines(found)[0].contains("it cannot be read"));
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
    let (found, valid) = check(&mut live);
    assert_eq!(valid, "stays team/a team/b");
    let expected = "two/a.yaml:1:1: the job `team/a` is in one/team/a.yaml already (rename or remove one of the files)";
    assert_eq!(folder.lines(found), [expected]);
    let root = |live: &LiveDirectories, id: &str| job(live, id).map(|(root, _)| root);
    assert_eq!((root(&live, "team/a"), root(&live, "team/b")), (Some(0), Some(1)));
    fs::remove_file(folder.0.join("one/team/a.yaml")).expect("there");
    refresh(&mut live);
    assert_eq!(check(&mut live).0.mistakes, []);
    assert_eq!(root(&live, "team/a"), Some(1));
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
fn actions(live: &mut LiveDirectories) -> Vec<String> {
    let event = |(event, rules): (&RunEvent, &Vec<ActionRule>)| {
        let kinds: Vec<&str> = rules.iter().map(|rule| rule.action.kind().name()).collect();
        format!(" {event}={}", kinds.join("+"))
    };
    check(live);
    let mut all: Vec<String> = live.jobs().map(|job| job.id.into_owned()).collect();
    all.sort();
    let shown = |id: String| {
        let (_, job) = job(live, &id).expect("it is valid");
        format!("{id}{}", job.on.iter().map(event).collect::<String>())
    };
    all.into_iter().map(shown).collect()
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
    assert_eq!(actions(&mut live), without);

    folder.put("a/defaults.yaml", "on: {failure: [{email: {to: ops@example.org}}, {run: plain}]}");
    assert!(refresh(&mut live));
    let with = [
        "b/other",
        "inner/defaults failure=email+run",
        "own failure=command+email+run",
        "plain failure=email",
        "quiet failure=",
    ];
    assert_eq!(actions(&mut live), with);
    assert_eq!(live.report().mistakes, []);
    assert!(!refresh(&mut live));

    // Only what a job can have is added to it: its labels, its params and `late` decide.
    folder.put(
        "a/defaults.yaml",
        "on:\n  late: [{command: x}]\n  missed:\n  - {command: x, when: {labels: [prod]}}\n  - {run: plain, when: {args: {region: eu}}}\n",
    );
    folder.put("a/own.yaml", "program: x\nlabels: [prod]\nlate: 5m");
    folder.put("a/quiet.yaml", "program: x\nparams: [region]\non: {late: []}");
    assert!(refresh(&mut live));
    let selected = ["b/other", "inner/defaults", "own late=command missed=command", "plain", "quiet late= missed=run"];
    assert_eq!(actions(&mut live), selected);
    assert_eq!(live.report().mistakes, []);
    folder.put("a/own.yaml", "program: x\non: {failure: [{command: page-me}]}");
    folder.put("a/quiet.yaml", "program: x\non: {failure: []}");

    // While the file is invalid, the jobs of its directory stay as they are.
    folder.put("a/defaults.yaml", "on: {failure: [{email: {}}]}\nprogram: x");
    assert!(refresh(&mut live));
    let (found, valid) = check(&mut live);
    assert_eq!((&*valid, found.broken.len()), ("b/other", 4));
    let lines = folder.lines(found);
    assert!(lines.iter().all(|line| line.starts_with("a/defaults.yaml:")) && lines.len() == 2, "{lines:?}");
    assert!(!live.is_gone(0, &id("plain")));

    fs::remove_file(folder.0.join("a/defaults.yaml")).expect("there");
    assert!(refresh(&mut live));
    assert_eq!(actions(&mut live), without);
}

/// A cache saves reading only as long as nothing has changed that the outlines depend on, and never hides a change.
#[test]
fn cache_replaces_reading_of_unchanged_files() {
    let folder = Folder::new("cache");
    for number in 0..300 {
        let after = format!("program: x\nconditions: [{{after: {{job: k{number:03}, args: {{a: b}}}}}}]\n");
        folder.put(&format!("jobs/j{number:03}.yaml"), &after);
        folder.put(&format!("jobs/k{number:03}.yaml"), "program: x\nparams: {a: {choices: [b, d], default: d}}\n");
    }
    folder.put("jobs/open.cal", "2026-01-01\n");
    folder.put("jobs/wrong.yaml", "progam: x\n");
    let file = folder.0.join("cache");
    let start = |tag: &str| {
        let mut live = folder.live(&[("jobs", None)]).with_cache(JobFileCache::new(file.clone(), tag.to_owned()));
        let is_changed = refresh(&mut live);
        let jobs = check(&mut live).1.split(' ').count();
        let lines = folder.lines(live.report());
        (live, is_changed, jobs, lines)
    };
    let save = |live: &mut LiveDirectories| with_options(LATER, |options| live.save_cache(options)).expect("saved");
    let (mut live, _, jobs, lines) = start("one");
    assert_eq!((jobs, lines.len()), (600, 2), "{lines:?}");
    assert!(!file.exists());
    save(&mut live);
    let cached = fs::read_to_string(&file).expect("it was written");
    let count = |text: &str| text.lines().filter(|line| line.contains("\"definition\"")).count();
    assert_eq!(count(&cached), 600, "the invalid file is read at each start");

    // An outline that only the cache has shows that a file was not read.
    let marked = cached.replace("\"job\":\"k007\"", "\"job\":\"gone\"");
    let marked = with_digest(&marked);
    fs::write(&file, &marked).expect("written");
    let (live, _, jobs, lines) = start("one");
    assert_eq!((live.is_unchecked(), jobs, lines.len()), (false, 600, 2), "a wrong reference is verified by reading");
    let (before, definition) = cached.split_once("\"definition\":[").expect("a file");
    let (_, after) = definition.split_once(',').expect("a digest has two parts");
    let marked = with_digest(&format!("{before}\"definition\":[7,{after}"));
    fs::write(&file, &marked).expect("written");
    let (live, ..) = start("one");
    assert!(job(&live, "j000").is_none(), "the cached digest counts, and differs from the file's");
    // With another program, with a damaged cache, without one, and after a change of a calendar, all files are read.
    for (tag, text) in [("two", marked.clone()), ("one", marked.replacen("\"b\"", "\"c\"", 1)), ("one", String::new())]
    {
        fs::write(&file, text).expect("written");
        let (live, _, jobs, _) = start(tag);
        assert!(job(&live, "j000").is_some() && jobs == 600);
    }
    fs::write(&file, &marked).expect("written");
    folder.put("jobs/open.cal", "2026-01-02\n");
    assert!(job(&start("one").0, "j000").is_some());
    folder.put("jobs/open.cal", "2026-01-01\n");
    assert!(job(&start("one").0, "j000").is_none());
    // Changed, new and removed files are found.
    folder.put("jobs/j000.yaml", "program: other\n");
    folder.put("jobs/new.yaml", "program: x\nconditions: [{after: k000}]\n");
    fs::remove_file(folder.0.join("jobs/k000.yaml")).expect("there");
    let (live, is_changed, jobs, lines) = start("one");
    assert!(is_changed && job(&live, "j000").is_some());
    assert_eq!((jobs, lines.len()), (599, 3), "{lines:?}");
    assert!(lines[0].starts_with("jobs/new.yaml:2:22: there is no job `k000`"), "{lines:?}");
    assert!(live.is_gone(0, &id("k000")));
}

/// A cache whose last line has the digest of its other lines.
fn with_digest(text: &str) -> String {
    let (lines, _) = text.trim_end().rsplit_once('\n').expect("several lines");
    let lines = format!("{lines}\n");
    let mut hasher = DefaultHasher::new();
    hasher.write(lines.as_bytes());
    format!("{lines}{{\"digest\":{}}}\n", hasher.finish())
}
