//! The actions of all jobs of a daemon: reads the file that `--defaults` or `CRONHOLD_DEFAULTS` names.

use std::collections::BTreeMap;
use std::path::Path;

use cronhold_cli::CliError;
use cronhold_core::job::JobDefaults;
use cronhold_jobfile::{Options, read_defaults};
use cronhold_schedule::ZoneRegistry;

/// The variable that names the file.
pub(crate) const VARIABLE: &str = "CRONHOLD_DEFAULTS";
/// The largest file, in bytes.
const BYTES_MAX: usize = 1024 * 1024;

/// Reads the file of the option, or else that of the variable. Without either there are no such actions. A file that
/// cannot be read, or that has a mistake, ends the start.
pub(crate) fn read(
    option: Option<&Path>,
    variable: Option<&str>,
    zones: &ZoneRegistry,
) -> Result<JobDefaults, CliError> {
    let (name, path) = match (option, variable.filter(|path| !path.is_empty())) {
        (Some(path), _) => ("--defaults", path),
        (None, Some(path)) => (VARIABLE, Path::new(path)),
        (None, None) => return Ok(JobDefaults::default()),
    };
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let message = format!("{name}: cannot read {shown}: {error}");
        CliError::usage(message, "name a file with actions, such as `on: {failure: [{email: {to: ops@example.org}}]}`")
    })?;
    if text.len() > BYTES_MAX {
        let message = format!("{name}: {shown} has {} bytes; the limit is {BYTES_MAX}", text.len());
        return Err(CliError::usage(message, "name a file with actions of jobs"));
    }
    let (defaults, mistakes) = read_defaults(&shown, &text, &Options { zones });
    defaults.ok_or_else(|| CliError::Mistakes { mistakes, texts: BTreeMap::from([(shown, text)]), typed: false })
}

#[cfg(test)]
mod tests {
    use cronhold_core::State;
    use cronhold_core::job::RunEvent;

    use super::*;

    #[test]
    fn option_overrides_the_variable_and_mistakes_are_shown() {
        let folder = std::env::temp_dir().join(format!("cronhold-defaults-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a directory");
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        let zones = ZoneRegistry::bundled();
        let failure = file("failure.yaml", "on: {failure: [{command: page-me}]}");
        let late = file("late.yaml", "on:\n  late: [{command: page-me}]\n  missed: [{command: page-me}]\n");
        let wrong = file("wrong.yaml", "on: {failing: []}\nprogram: x");
        let events = |option: Option<&Path>, variable: Option<&str>| {
            read(option, variable, &zones).map(|defaults| defaults.on.into_keys().collect::<Vec<_>>())
        };
        assert_eq!(events(None, None).expect("nothing"), []);
        assert_eq!(events(None, Some("")).expect("nothing"), []);
        assert_eq!(events(Some(&failure), late.to_str()).expect("read"), [RunEvent::State(State::Failure)]);
        assert_eq!(events(None, late.to_str()).expect("read"), [RunEvent::Late, RunEvent::Missed]);
        assert!(matches!(events(Some(&wrong), None), Err(CliError::Mistakes { mistakes, .. }) if mistakes.len() == 2));
        assert!(matches!(events(Some(&folder.join("absent")), None), Err(CliError::Usage { .. })));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
