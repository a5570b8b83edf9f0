//! What the runner does for plug-ins: it reads their messages for the thread that stores outputs, and reports their
//! progress to the node.

use std::io;
use std::path::{Path, PathBuf};

use cronhold_core::RunId;
use cronhold_core::command::ProgramReport;
use cronhold_core::plugin::PluginProgress;
use cronhold_engine::NodeHandle;

use super::LocalRunner;
use crate::process::PluginEnd;

impl LocalRunner {
    pub(super) async fn forward_progress(&self, node: &NodeHandle) {
        loop {
            let (run, progress) = self.progress_reports.next().await;
            node.report(run, ProgramReport::Progress(progress)).await;
        }
    }

    /// The file with the text of the messages of a run; `None` if it is not a plug-in.
    pub(crate) fn plugin_output(&self, run: RunId) -> Option<PathBuf> {
        self.plugins.output(run)
    }

    /// Which parts of that text are standard error.
    pub(crate) fn plugin_stderr(&self, run: RunId) -> Option<Vec<(u64, u64)>> {
        self.plugins.stderr(run)
    }

    /// Reads what a running plug-in has written to its file, and reports its progress at intervals. Does nothing for
    /// other programs.
    pub(crate) fn read_messages(&self, run: RunId, messages: &Path) {
        // What cannot be read now is read when the program has ended, and a failure is logged then.
        let _ = self.plugins.read(run, messages);
        if let Some(progress) = self.plugins.take_progress(run, self.clock.uptime())
            && !self.is_command(run)
        {
            let secrets = self.secrets_of(run).unwrap_or_default();
            let text = secrets.hide_text(&progress.text);
            self.progress_reports.push((run, PluginProgress { text, ..progress }));
        }
    }

    /// Reads all messages of a plug-in that has ended, and returns the length of their text; `None` for other programs.
    pub(crate) fn finish_messages(&self, run: RunId, messages: &Path, total: Option<u64>) -> Option<io::Result<u64>> {
        self.plugins.finish(run, messages, total)
    }

    /// Removes the files of plug-ins that are over.
    pub(crate) fn forget_messages(&self) {
        self.plugins.retain(|run| self.processes().has(run));
    }

    /// What was read of the messages of a plug-in until its end; `None` for other programs.
    pub(super) fn plugin_end(&self, run: RunId) -> Option<PluginEnd> {
        let messages = self.plugins.messages(run)?;
        Some(PluginEnd { messages, secrets: self.secrets_of(run).unwrap_or_default() })
    }
}
