//! Reports about stored jobs that use features that this version does not support. The reader rejects a file with such
//! a key; a stored job may come from another version, and keeps its schedule.

use cronhold_core::Job;

use crate::mistake::{Mistake, MistakeKind};
use crate::read::{Options, read_job};
use crate::write::write_job;
use crate::yaml::to_yaml;

/// The keys of a stored job that this version does not support, as mistakes at their positions in the job's YAML, which
/// is returned as well. `None` if the job is fully supported.
pub fn unsupported_in(id: &str, job: &Job) -> Option<(String, Vec<Mistake>)> {
    if job.unsupported().is_empty() {
        return None;
    }
    let text = to_yaml(&write_job(job)).expect("a job is a map of texts");
    let mut mistakes = read_job(id, &text, &Options::default()).mistakes;
    mistakes.retain(|mistake| mistake.kind == MistakeKind::Unsupported);
    Some((text, mistakes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_job_of_any_version;

    #[test]
    fn supported_job_is_not_reported() {
        let text = "{program: {task: {queue: a, class: B}}, on: {failure: [{publish: /alerts}]}}";
        let job = read_job_of_any_version("backup", text, &Options::default()).job.expect("a job");
        assert_eq!(unsupported_in("backup", &job), None);
    }
}
