//! The znodes `/jobs/NAME` as they are known: their texts with their data versions, and whether they agree with the
//! jobs. They agree if the znode `forms/NAME` has a digest of the text. The next time is not part of the digest.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cronhold_jobfile::foreign::castle;
use cronhold_store::{DefinitionRules, DefinitionStatus, Fault, SharedDefinition, lock_mutex};

use crate::paths::{ZnodePaths, digest, unescape_name};
use crate::wire::{Znode, ZooKeeperSession};

/// Znodes of one read; each name has two.
const NAMES_PER_READ: usize = 250;

/// The known znodes below `/jobs`, by the names of the jobs.
#[derive(Debug, Default)]
pub(super) struct JobTexts(Mutex<BTreeMap<String, JobText>>);

/// The data of a job's znode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobText {
    pub(super) text: String,
    pub(super) version: i32,
}

/// A job's znode and the mark that it agrees with its job.
#[derive(Debug, Clone)]
pub(super) struct FoundForm {
    pub(super) name: String,
    pub(super) job: Option<Znode>,
    pub(super) mark: Option<Znode>,
}

impl JobTexts {
    /// What is known of a job.
    pub(super) fn get(&self, name: &str) -> Option<JobText> {
        lock_mutex(&self.0).get(name).cloned()
    }

    /// The names of all known jobs.
    pub(super) fn names(&self) -> Vec<String> {
        lock_mutex(&self.0).keys().cloned().collect()
    }

    /// A job's znode was read or written; `None` if it does not exist.
    pub(super) fn set(&self, name: &str, text: Option<JobText>) {
        let mut known = lock_mutex(&self.0);
        match text {
            Some(text) => drop(known.insert(name.to_owned(), text)),
            None => drop(known.remove(name)),
        }
    }

    /// Reads everything again. Returns what was found.
    pub(super) async fn reload(&self, session: &ZooKeeperSession, paths: &ZnodePaths) -> Result<Vec<FoundForm>, Fault> {
        let names = all_names(session, paths).await?;
        let found = read_forms(session, paths, &names).await?;
        let known = found.iter().filter_map(|form| Some((form.name.clone(), form.text()?)));
        *lock_mutex(&self.0) = known.collect();
        Ok(found)
    }

    /// Reads some znodes again. Returns what was found.
    pub(super) async fn refresh(
        &self,
        session: &ZooKeeperSession,
        paths: &ZnodePaths,
        names: &[String],
    ) -> Result<Vec<FoundForm>, Fault> {
        let found = read_forms(session, paths, names).await?;
        found.iter().for_each(|form| self.set(&form.name, form.text()));
        Ok(found)
    }
}

impl FoundForm {
    /// The text of the job's znode, and its version.
    pub(super) fn text(&self) -> Option<JobText> {
        let znode = self.job.as_ref()?;
        Some(JobText { text: String::from_utf8_lossy(&znode.data).into_owned(), version: znode.stat.version })
    }

    /// How the text compares with the one that last agreed with its job.
    pub(super) fn status(&self) -> DefinitionStatus {
        match (&self.mark, self.text()) {
            (None, _) => DefinitionStatus::New,
            (Some(mark), Some(text)) if mark.data == mark_of(&text.text) => {
                DefinitionStatus::Settled(DefinitionRules::Ours)
            }
            (Some(_), _) => DefinitionStatus::Changed,
        }
    }

    pub(super) fn into_definition(self) -> SharedDefinition {
        let (standing, text) = (self.status(), self.text().map(|text| text.text));
        SharedDefinition { name: self.name, text, standing }
    }
}

/// The data of the mark for a text.
pub(super) fn mark_of(text: &str) -> Vec<u8> {
    digest(&castle::without_next(text)).into_bytes()
}

/// The names of all jobs that have a znode, or had one that agreed with the job.
pub(super) async fn all_names(session: &ZooKeeperSession, paths: &ZnodePaths) -> Result<Vec<String>, Fault> {
    session.sync().await?;
    let children = session.children(&[paths.castle_jobs(), paths.forms()]).await?;
    let mut names: Vec<String> = children.into_iter().flatten().map(|znode| unescape_name(&znode)).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Reads the znodes of these jobs, with everything that was written before the call.
pub(super) async fn read_forms(
    session: &ZooKeeperSession,
    paths: &ZnodePaths,
    names: &[String],
) -> Result<Vec<FoundForm>, Fault> {
    let mut forms = Vec::with_capacity(names.len());
    for names in names.chunks(NAMES_PER_READ) {
        let pairs: Vec<String> = names.iter().flat_map(|name| znodes_of(paths, name)).collect();
        let mut found = session.read(&pairs, true).await?.into_iter();
        for name in names {
            let (job, mark) = (found.next().flatten(), found.next().flatten());
            forms.push(FoundForm { name: name.clone(), job, mark });
        }
    }
    Ok(forms)
}

/// The znode of a job and that of its mark.
pub(super) fn znodes_of(paths: &ZnodePaths, name: &str) -> [String; 2] {
    match name.strip_prefix('/') {
        // The znode has a name that no job has.
        Some(znode) => [format!("{}/{znode}", paths.castle_jobs()), paths.form(name)],
        None => [paths.castle_job(name), paths.form(name)],
    }
}
