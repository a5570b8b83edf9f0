//! The jobs directory of a file, and the job id, which is the path of the file below it. Without `--root`, both are
//! guessed, because a file does not name its jobs directory.

use std::path::{self, Component, Path, PathBuf};

/// Guesses the jobs directory of a file: the nearest parent with a `calendars` folder, else the file's own directory.
pub(crate) fn guess_root(file: &Path) -> PathBuf {
    let above = directories_above(file);
    let with_calendars = above.iter().find(|dir| dir.join("calendars").is_dir());
    with_calendars.or(above.first()).cloned().unwrap_or_else(here)
}

/// The path of a file below its root, without extension, or `None` if it is not below it.
pub(crate) fn id_below(root: &Path, file: &Path) -> Option<String> {
    let as_written = below(&path::absolute(root).ok()?, &path::absolute(file).ok()?);
    // Resolve only the folders: the file itself may be a symbolic link to a file elsewhere.
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

/// The parent directories of a file as named in its path, nearest first. Stops at `..`, because what precedes it in the
/// path is not a parent of the file.
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

/// The parent of a bare file name is an empty path, which means the current directory.
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
    fn parent_directories_are_listed_nearest_first() {
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
    fn job_id_is_path_below_root() {
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
