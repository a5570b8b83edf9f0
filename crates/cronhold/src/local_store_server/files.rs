//! Job files for commands that work on a store without a daemon. Such a command reads no job files; daemons do.

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

    /// Always true: the directories of the nodes are unknown here, and a node restores a removed job whose file it has.
    fn may_have_file(&self, _: &JobId) -> bool {
        true
    }

    fn reload(&self) -> Pending<'_, ReloadReport> {
        let summary = "only a daemon reads job files; this command works on the store without one".to_owned();
        Box::pin(std::future::ready(ReloadReport { summary, mistakes: 0 }))
    }
}
