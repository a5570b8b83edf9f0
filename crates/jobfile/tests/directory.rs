//! Small directories, each defined by one text in `directories/`, and their mistakes as users see them. The expected
//! texts are in `snapshots/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_jobfile::directory::{Directory, Options, load};
use cronhold_jobfile::{Style, render, render_line};
use cronhold_schedule::{Instant, Zone, ZoneRegistry};

/// A directory on disk that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("directory-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn put(&self, file: &str, text: impl AsRef<[u8]>) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// Writes the files of a text in which each file begins with a line `=== path`.
    fn put_all(&self, text: &str) {
        for part in text.split("=== ").skip(1) {
            let (file, text) = part.split_once('\n').expect("a line with a path");
            self.put(file, text);
        }
    }

    /// The whole result of loading.
    fn shown(&self) -> String {
        let directory = loaded(&self.0);
        let mistakes = directory.report.mistakes.iter();
        let mut text: String =
            mistakes.map(|mistake| render(mistake, directory.report.text_of(mistake), Style::Plain) + "\n\n").collect();
        let mut list = |what: &str, names: Vec<&str>| {
            let names = if names.is_empty() { "none".to_owned() } else { names.join(" ") };
            text += &format!("{what}: {names}\n");
        };
        list("jobs", directory.jobs.keys().map(JobId::as_str).collect());
        list("broken", directory.report.broken.iter().map(JobId::as_str).collect());
        list("calendars", directory.report.calendars.names().collect());
        list("texts kept", directory.report.texts.keys().map(String::as_str).collect());
        text.replace(&format!("{}/", self.0.display()), "")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn loaded(root: &Path) -> Directory {
    let zones = Arc::new(ZoneRegistry::bundled());
    let now = Instant::parse("2026-11-15T12:00:00Z").expect("an instant");
    load(root, &Options { zones: &zones, zone: &Zone::utc(), now })
}

/// Mistakes on one line each, with `DIR` for the root.
fn lines(root: &Path) -> Vec<String> {
    let directory = loaded(root);
    let line =
        |mistake| render_line(mistake, directory.report.text_of(mistake)).replace(&root.display().to_string(), "DIR");
    directory.report.mistakes.iter().map(line).collect()
}

#[test]
fn directories_show_all_their_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/directories");
    let mut cases: Vec<PathBuf> =
        fs::read_dir(folder).expect("the cases").map(|entry| entry.expect("an entry").path()).collect();
    cases.sort();
    assert!(cases.len() >= 8);
    for case in cases {
        let name = case.file_stem().expect("a name").to_string_lossy().into_owned();
        let folder = Folder::new(&name);
        folder.put_all(&fs::read_to_string(&case).expect("a text"));
        insta::assert_snapshot!(name, folder.shown());
    }
}

#[test]
fn examples_load_without_mistakes() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/jobs");
    assert_eq!(lines(&examples), [] as [&str; 0]);
    let directory = loaded(&examples);
    assert!(directory.jobs.len() >= 8 && directory.report.broken.is_empty() && directory.report.texts.is_empty());
}

#[test]
fn unreadable_files_are_reported_and_the_others_loaded() {
    let folder = Folder::new("unreadable");
    let link = |to: &str, from: &str| std::os::unix::fs::symlink(to, folder.0.join(from)).expect("a link");
    folder.put("a/ok.yaml", "program: x\n");
    folder.put("bytes.yaml", b"program: x\nlabels: [\xc3\xa4\xff]\n");
    folder.put("large.yaml", "#".repeat((1 << 20) + 1));
    folder.put("at-the-limit.yaml", format!("program: x\n{}", "#".repeat((1 << 20) - 11)));
    folder.put("c.cal", b"\xff");
    link("nowhere", "dangling.yaml");
    link("nowhere", "somebody-elses-link");
    link("itself.yaml", "itself.yaml");
    link("/dev/null", "device.yaml");
    link("..", "a/up");
    link("a/ok.yaml", "linked.yaml");
    link("a", "again");
    assert_eq!(
        lines(&folder.0),
        [
            "DIR/a/up:1:1: this link points to one of its parent folders (remove it)",
            "DIR/again/up:1:1: this link points to one of its parent folders (remove it)",
            "DIR/bytes.yaml:2:11: the byte 0xff is not valid UTF-8 (save the file as UTF-8)",
            "DIR/c.cal:1:1: the byte 0xff is not valid UTF-8 (save the file as UTF-8)",
            "DIR/dangling.yaml:1:1: it cannot be read: No such file or directory (os error 2)",
            "DIR/device.yaml:1:1: it is not a regular file (move it out of the directory)",
            "DIR/itself.yaml:1:1: it cannot be read: Too many levels of symbolic links (os error 40)",
            "DIR/large.yaml:1:1: the file is too large: at most 1048576 bytes are read",
        ]
    );
    let directory = loaded(&folder.0);
    let ids: Vec<&str> = directory.jobs.keys().map(JobId::as_str).collect();
    assert_eq!(ids, ["a/ok", "again/ok", "at-the-limit", "linked"]);
    let broken: Vec<&str> = directory.report.broken.iter().map(JobId::as_str).collect();
    assert_eq!(broken, ["bytes", "large"]);
}

#[test]
fn root_that_is_not_a_directory_is_reported() {
    let folder = Folder::new("root");
    folder.put("file", "");
    let missing = lines(&folder.0.join("missing"));
    assert_eq!(missing, ["DIR:1:1: it cannot be read: No such file or directory (os error 2)"]);
    let file = lines(&folder.0.join("file"));
    assert_eq!(file, ["DIR:1:1: it is not a directory (use the directory that contains the job files)"]);
}

#[test]
fn mistakes_of_many_files_have_a_fixed_order() {
    let folder = Folder::new("many");
    for number in 0..300 {
        let after = (number + 1) % 300;
        folder.put(
            &format!("f{}/j{number:03}.yaml", number % 7),
            format!("program: x\nconditions: [{{after: f{}/j{after:03}}}]\n", after % 7),
        );
    }
    let (first, second) = (lines(&folder.0), lines(&folder.0));
    assert_eq!(first, second);
    assert_eq!(first.len(), 1);
    assert!(
        first[0].starts_with("DIR/f0/j000.yaml:2:22: these jobs wait for each other: f0/j000 → f1/j001 → "),
        "{first:?}"
    );
    assert!(first[0].contains(" → 288 more → f0/j000 (remove one"), "{first:?}");
    assert_eq!(loaded(&folder.0).jobs.len(), 299);
}
