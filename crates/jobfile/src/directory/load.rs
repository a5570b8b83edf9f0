//! Loads a directory once.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use cronhold_core::JobId;

use super::{Directory, DirectoryReport, JobsRoot, LiveDirectories, Options};

/// Reads a directory and checks it as a whole.
pub fn load(root: &Path, options: &Options<'_>) -> Directory {
    let root = JobsRoot { path: root.to_owned(), prefix: None };
    let mut live = LiveDirectories::keeping([root], usize::MAX);
    live.refresh(options);
    live.check(options, &BTreeSet::new());
    let ids: Vec<JobId> = live.jobs().filter_map(|job| JobId::parse(&job.id).ok()).collect();
    let jobs = live.read_jobs(&ids, options);
    let jobs = ids.into_iter().zip(jobs).filter_map(|(id, job)| Some((id, Arc::clone(&job?.1)))).collect();
    Directory { jobs, report: live.into_report() }
}

/// Reads the calendars of a directory, and no job.
pub fn load_calendars(root: &Path, options: &Options<'_>) -> DirectoryReport {
    let root = JobsRoot { path: root.to_owned(), prefix: None };
    let mut live = LiveDirectories::keeping([root], 0);
    live.refresh_calendars(options);
    live.check(options, &BTreeSet::new());
    live.into_report()
}
