//! The directories that were given with `--jobs`, with their paths and prefixes. The id of each job in a directory
//! starts with its prefix.

use std::path::{Path, PathBuf};

use cronhold_cli::CliError;
use cronhold_core::JobId;
use cronhold_core::record::JobSource;
use cronhold_jobfile::directory::JobsRoot;

/// Parses the values of `--jobs`: `DIR` or `PREFIX=DIR`. If the path of a directory contains `=`, it must start with
/// `./` or `/`. Fails if two directories have the same prefix, or if one contains another.
pub fn roots(given: &[String]) -> Result<Vec<JobsRoot>, CliError> {
    let mut roots: Vec<JobsRoot> = Vec::with_capacity(given.len());
    let mut places: Vec<(PathBuf, &str)> = Vec::with_capacity(given.len());
    for text in given {
        let root = root(text);
        let place = root.path.canonicalize().ok().filter(|place| place.is_dir()).ok_or_else(|| {
            let message = format!("--jobs: there is no directory {}", root.path.display());
            CliError::usage(message, "give the directory that holds the job files")
        })?;
        if roots.iter().any(|other| other.prefix == root.prefix) {
            let message = match &root.prefix {
                Some(prefix) => format!("--jobs: two directories have the prefix {prefix}"),
                None => "--jobs: two directories have no prefix".to_owned(),
            };
            let hint = format!("give this one a prefix of its own: --jobs NAME={}", root.path.display());
            return Err(CliError::usage(message, hint));
        }
        if let Some((_, other)) = places.iter().find(|(other, _)| is_within(other, &place) || is_within(&place, other))
        {
            let message = format!("--jobs: {other} and {text} overlap");
            return Err(CliError::usage(message, "give directories that have no file in common"));
        }
        places.push((place, text));
        roots.push(root);
    }
    Ok(roots)
}

/// The source that is recorded in the jobs of a directory.
pub(super) fn source(root: &JobsRoot) -> JobSource {
    JobSource::Directory(root.prefix.clone().unwrap_or_default())
}

/// The directories as text for logs and reports.
pub(super) fn shown<'a>(roots: impl Iterator<Item = &'a JobsRoot>) -> String {
    let shown = roots.map(|root| match &root.prefix {
        Some(prefix) => format!("{prefix}={}", root.path.display()),
        None => root.path.display().to_string(),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn root(text: &str) -> JobsRoot {
    // A path that starts with a dot or a slash is not a valid id.
    let split = text.split_once('=').filter(|(prefix, _)| JobId::parse(prefix).is_ok());
    match split {
        Some((prefix, path)) => JobsRoot { path: path.into(), prefix: Some(prefix.to_owned()) },
        None => JobsRoot { path: text.into(), prefix: None },
    }
}

fn is_within(inner: &Path, outer: &Path) -> bool {
    inner.starts_with(outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_is_split_from_the_path() {
        for (text, prefix, path) in [
            ("jobs", None, "jobs"),
            ("team=jobs", Some("team"), "jobs"),
            ("a/b=c=d", Some("a/b"), "c=d"),
            ("./a=b", None, "./a=b"),
            ("/a=b", None, "/a=b"),
            ("=b", None, "=b"),
        ] {
            let expected = JobsRoot { path: path.into(), prefix: prefix.map(str::to_owned) };
            assert_eq!(root(text), expected, "{text}");
        }
    }
}
