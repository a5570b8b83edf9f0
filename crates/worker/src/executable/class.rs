//! What the configuration of a class says about its executable.

use std::collections::BTreeSet;
use std::time::Duration;

use cronhold_core::task::{ClassName, JsonText, PortName};
use serde::Deserialize;

use super::message::ReadyMessage;

/// How long a step may take unless its class says.
const DEADLINE_MS: u64 = 60_000;

/// The settings of a class that concern its executable.
#[derive(Debug, Clone)]
pub(super) struct ClassSettings {
    pub(super) name: ClassName,
    /// How long a step may take, in milliseconds.
    pub(super) deadline_ms: u64,
    /// Whether its startup and its shutdown are called.
    pub(super) has_startup: bool,
    pub(super) has_shutdown: bool,
    /// Whether it performs jobs of plain Sidekiq clients too.
    pub(super) has_jobs: bool,
    /// Ports that are read together.
    pub(super) for_inputs: Option<Vec<PortName>>,
    needs: Option<BTreeSet<String>>,
}

#[derive(Deserialize)]
struct SettingsForm {
    deadline_ms: Option<u64>,
    #[serde(default)]
    startup: bool,
    #[serde(default)]
    shutdown: bool,
    #[serde(default)]
    jobs: bool,
    for_inputs: Option<Vec<PortName>>,
    needs: Option<BTreeSet<String>>,
}

impl ClassSettings {
    /// Reads the settings from the configuration of a class.
    pub(super) fn parse(name: &ClassName, config: &JsonText) -> Result<Self, String> {
        let form: SettingsForm = config.to().map_err(|error| format!("class {name}: {}", error.message))?;
        let deadline_ms = form.deadline_ms.unwrap_or(DEADLINE_MS);
        if deadline_ms == 0 {
            return Err(format!("class {name}: `deadline_ms` must be at least 1"));
        }
        Ok(Self {
            name: name.clone(),
            deadline_ms,
            has_startup: form.startup,
            has_shutdown: form.shutdown,
            has_jobs: form.jobs,
            for_inputs: form.for_inputs,
            needs: form.needs,
        })
    }

    pub(super) const fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// The parts of a step that are sent; `None` for all.
    pub(super) fn needs(&self, ready: &ReadyMessage) -> Option<BTreeSet<String>> {
        self.needs.clone().or_else(|| ready.needs.get(&self.name).cloned())
    }
}
