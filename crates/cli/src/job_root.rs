//! Which job a file is: the directory that it belongs to, and its id, which is its path below that directory. A file
//! does not say where its directory begins, so that without `--root` both are a guess.

use std::path::{self, Component, Path, PathBuf};

/// The job directory that a file seems to belong to: the nearest above it with a `calendars` folder, else its own.
pub(crate) fn guess_root(file: &Path) -> PathBuf {
    let above = directories_above(file);
    let with_calendars = above.iter().find(|dir| dir.join("calendars").is_dir());
    with_calendars.or(above.first()).cloned().unwrap_or_else(here)
}

/// A file's path below its root, without suffix; none if it does not lie below it.
pub(crate) fn id_below(root: &Path, file: &Path) -> Option<String> {
    let as_written = below(&path::absolute(root).ok()?, &path::absolute(file).ok()?);
    // Only the folders are resolved: the file itself may be a link to a text that is kept elsewhere.
    let resolved = || {
        let folder = file.parent().map(own_or_here)?.canonicalize().ok()?;
        below(&root.canonicalize().ok()?, &folder.join(file.file_name()?))
    };
    as_written.or_else(resolved)
}

fn below(root: &Path, file: &Path) -> Option<String> {
    let below = file.strip_prefix(root).ok()?.with_extension("");
    let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain.then(|| below.to_string_lossy().into_owned())
}

/// The directories above a file as its path names them, nearest first. Above `..` nothing is named: what precedes it in
/// the path is no directory that the file lies in.
fn directories_above(file: &Path) -> Vec<PathBuf> {
    let mut above = Vec::new();
    let mut below = file;
    while matches!(below.components().next_back(), Some(Component::Normal(_)))
        && let Some(dir) = below.parent()
    {
        above.push(own_or_here(dir));
        below = dir;
    }
    above
}

/// The parent of a bare name is an empty path, which means the directory we are in.
fn own_or_here(dir: &Path) -> PathBuf {
    if dir.as_os_str().is_empty() { here() } else { dir.to_owned() }
}

fn here() -> PathBuf {
    PathBuf::from(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_above_a_file_are_those_it_lies_in() {
        for (file, expected) in [
            ("a.yaml", "."),
            ("jobs/a.yaml", "jobs ."),
            ("./jobs/a.yaml", "./jobs ."),
            ("../jobs/a.yaml", "../jobs .."),
            ("x/../jobs/a.yaml", "x/../jobs x/.."),
            ("/etc/jobs/feeds/a.yaml", "/etc/jobs/feeds /etc/jobs /etc /"),
        ] {
            let above: Vec<String> =
                directories_above(Path::new(file)).iter().map(|dir| dir.display().to_string()).collect();
            assert_eq!(above.join(" "), expected, "{file}");
        }
    }

    #[test]
    fn ids_are_paths_below_the_root() {
        for (root, file, expected) in [
            ("jobs", "jobs/a.yaml", Some("a")),
            ("jobs/", "./jobs/feeds/a.b.yml", Some("feeds/a.b")),
            (".", "jobs/a.yaml", Some("jobs/a")),
            ("../jobs", "../jobs/feeds/a.yaml", Some("feeds/a")),
            // Tests run in the folder of their crate.
            ("src", "src/../src/verbs/next.rs", Some("verbs/next")),
            ("src/verbs", "src/lib.rs", None),
            ("job", "jobs/a.yaml", None),
        ] {
            assert_eq!(id_below(Path::new(root), Path::new(file)).as_deref(), expected, "{file} below {root}");
        }
    }
}
