//! Job files, where there is no daemon: none are read, and whoever reads them is elsewhere.

use cronhold_api::ReloadReport;
use cronhold_core::JobId;
use cronhold_server::{JobFilesPort, MistakeAt};
use cronhold_store::Pending;

/// No directory of job files.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoFiles;

impl JobFilesPort for NoFiles {
    fn mistakes(&self) -> Vec<MistakeAt> {
        Vec::new()
    }

    /// Nobody here knows the directories of the nodes, and a job that comes from one comes back after its removal.
    fn may_have_file(&self, _: &JobId) -> bool {
        true
    }

    fn reload(&self) -> Pending<'_, ReloadReport> {
        let summary = "job files are read by daemons, and none was asked".to_owned();
        Box::pin(std::future::ready(ReloadReport { summary, mistakes: 0 }))
    }
}
