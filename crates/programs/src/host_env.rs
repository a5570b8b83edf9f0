//! Turns a run into what the keeper executes: the command line and the environment. Secrets are read at the last
//! moment.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::string::FromUtf8Error;

use cronhold_core::job::{IoPriority, SecretSource};
use cronhold_core::record::{
    CommandLine, EnvText, ExecutionPolicy, ResolvedHeader, ResolvedProcess, ResolvedProgram, ResolvedRequest, Run,
    RunTrigger, StdinText,
};
use cronhold_engine::LaunchRequest;
use cronhold_keeper::{OutputLimits, ProcessLimits, ProgramFile, ProgramLaunch, RunKey, StdinInput};
use cronhold_schedule::Span;
use nix::unistd::{Uid, User};
use serde_json::{Value, json};

use crate::output::SecretMask;

/// Bytes of command line and environment together. The system allows about as many.
const ARGUMENTS_MAX: usize = 2 << 20;
/// Bytes of a secret.
const SECRET_MAX: u64 = 128 * 1024;
/// A program receives the signal at most this fraction of its lease before the lease ends.
const NOTICE_SHARE: u64 = 3;
/// Variables of the daemon that every program inherits: names, and beginnings of names with a `*`.
const INHERITED: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ"];
/// The `PATH` of programs if the daemon has none.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";
/// Variables that concern the daemon and are not passed to programs, even if they are to inherit all.
const OWN: [&str; 7] = ["CRONHOLD_*", "LISTEN_*", "NOTIFY_SOCKET", "INVOCATION_ID", "JOURNAL_STREAM", "PWD", "OLDPWD"];
/// The variable by which the keeper finds the processes of a run.
const RUN_ID: &str = "CRONHOLD_RUN_ID";
/// The variable by which commands find the daemon.
const DATA_VARIABLE: &str = "CRONHOLD_DATA";
/// The variable with the path of the file with the triggers of a run.
const TRIGGERS_FILE: &str = "CRONHOLD_TRIGGERS_FILE";
/// Variables that depend on the user.
const PERSONAL: [&str; 4] = ["HOME", "USER", "LOGNAME", "SHELL"];
/// Shells for jobs that do not name one; every system has the last.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// What programs get from the daemon.
#[derive(Debug, Clone)]
pub struct HostEnv {
    /// The environment of the daemon.
    env: BTreeMap<String, String>,
    /// The variables that every program gets, unless its job says otherwise.
    inherited: BTreeMap<String, String>,
    /// The daemon's data directory.
    data: Option<String>,
    /// The shell for jobs that do not name one.
    shell: &'static str,
}

/// Why a run's program cannot be started. The message becomes the reason of the run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The run has a program of another kind.
    #[error("the run does not have a process")]
    NoProcess,
    /// The command line is empty.
    #[error("the command does not name a program")]
    NoProgram,
    /// A variable is taken from one that the daemon does not have.
    #[error("cannot set the variable {name}: the daemon does not have the variable {from}")]
    VariableUnset {
        /// The variable of the job.
        name: String,
        /// The variable of the daemon.
        from: String,
    },
    /// A variable cannot be read from its file.
    #[error("cannot read the variable {name} from {path}: {source}")]
    Secret { name: String, path: String, source: SecretError },
    /// A variable has a name that no environment can hold.
    #[error("`{0}` is not a valid variable name")]
    VariableName(String),
    /// The value or the name of a variable has a zero byte.
    #[error("the variable {0} contains a zero byte")]
    NulInVariable(String),
    /// The command line has a zero byte.
    #[error("the command line contains a zero byte")]
    NulInCommand,
    /// The working directory or the user has a zero byte.
    #[error("the directory or the user contains a zero byte")]
    NulInSettings,
    /// The system would not accept this many arguments and variables.
    #[error(
        "the command line has {command} bytes and the environment {environment}; together at most {ARGUMENTS_MAX} are \
         allowed"
    )]
    TooLong {
        /// Bytes of the command line.
        command: usize,
        /// Bytes of the environment.
        environment: usize,
    },
}

/// Why a secret cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The path names a directory, a pipe or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// The file is longer than a secret may be.
    #[error("it has more than {SECRET_MAX} bytes")]
    TooLong,
    /// The file is not text.
    #[error("it is not valid UTF-8")]
    NotText(#[from] FromUtf8Error),
}

impl HostEnv {
    /// Takes the daemon's environment. Programs inherit only what they need to find their way: [`INHERITED`].
    pub fn new(env: impl IntoIterator<Item = (String, String)>) -> Self {
        let shell = SHELLS.into_iter().find(|shell| Path::new(shell).exists()).unwrap_or(SHELLS[1]);
        let env: BTreeMap<String, String> = env.into_iter().collect();
        let mut inherited = BTreeMap::from([("PATH".to_owned(), PATH_DEFAULT.to_owned())]);
        // A service may have no variables of its user.
        inherited.extend(personal(&Uid::effective().to_string()));
        inherited.extend(matching(&env, &INHERITED));
        Self { env, inherited, data: None, shell }
    }

    /// Lets programs inherit more of the daemon's variables: names, or beginnings of names with a `*`.
    #[must_use]
    pub fn with_inherited(mut self, names: &[String]) -> Self {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.inherited.extend(matching(&self.env, &names).filter(|(name, _)| !is_match(name, &OWN)));
        self
    }

    /// Lets programs of the daemon's user find the daemon of this data directory.
    #[must_use]
    pub fn with_data(mut self, data: &Path) -> Self {
        self.data = data.to_str().map(str::to_owned);
        self
    }

    /// Reads a secret from its file or from the daemon's environment.
    pub(crate) fn secret(&self, source: &SecretSource) -> Result<String, LaunchError> {
        let name = || "secret".to_owned();
        match source {
            SecretSource::Env(from) => {
                let value = self.env.get(from).cloned();
                value.ok_or_else(|| LaunchError::VariableUnset { name: name(), from: from.clone() })
            }
            SecretSource::File(path) => read_secret(Path::new(path)).map_err(|source| LaunchError::Secret {
                name: name(),
                path: path.clone(),
                source,
            }),
        }
    }

    /// What must not be shown of the output of a program: its secrets, as they are now.
    pub(crate) fn secrets_of(&self, program: &ResolvedProgram) -> SecretMask {
        let mut sources = Vec::new();
        let mut add_headers = |request: &ResolvedRequest| {
            sources.extend(request.headers.values().filter_map(|header| match header {
                ResolvedHeader::Secret { source, .. } => Some(source.clone()),
                ResolvedHeader::Text(_) => None,
            }));
        };
        match program {
            ResolvedProgram::Process(process) => sources.extend(process.env.values().filter_map(|text| match text {
                EnvText::Text(_) => None,
                EnvText::File(path) => Some(SecretSource::File(path.clone())),
                EnvText::Env(name) => Some(SecretSource::Env(name.clone())),
            })),
            ResolvedProgram::Http(http) => add_headers(&http.request),
            ResolvedProgram::Remote(remote) => {
                [Some(&remote.start), Some(&remote.poll), remote.cancel.as_ref()]
                    .into_iter()
                    .flatten()
                    .for_each(add_headers);
            }
            ResolvedProgram::Noop(_) | ResolvedProgram::Task(_) | ResolvedProgram::Unsupported(_) => {}
        }
        let values: Vec<Option<String>> = sources.iter().map(|source| self.secret(source).ok()).collect();
        let is_unreadable = values.contains(&None);
        SecretMask::new(values.into_iter().flatten()).with_unreadable(is_unreadable)
    }

    /// The launch message of an action's command for the keeper. Its environment names the run that caused it.
    pub(crate) fn launch_command(&self, request: &LaunchRequest) -> Result<ProgramLaunch, LaunchError> {
        let mut launch = self.launch(request)?;
        if let Some(ResolvedProgram::Process(process)) = &request.run.work {
            for (name, text) in &process.env {
                let EnvText::Text(text) = text else { continue };
                if let Some((_, value)) = launch.env.iter_mut().find(|(known, _)| known == name && known != RUN_ID) {
                    value.clone_from(text);
                }
            }
        }
        Ok(launch)
    }

    /// The launch message of a run for the keeper.
    pub fn launch(&self, request: &LaunchRequest) -> Result<ProgramLaunch, LaunchError> {
        let LaunchRequest { run, fence, launch_by, kill_at } = request;
        let Some(ResolvedProgram::Process(process)) = &run.work else { return Err(LaunchError::NoProcess) };
        let argv = match &process.command {
            CommandLine::Shell { text, shell } => {
                let shell = shell.as_deref().unwrap_or(self.shell);
                vec![shell.to_owned(), "-c".to_owned(), text.clone()]
            }
            CommandLine::Exec(words) => words.clone(),
        };
        if argv.first().is_none_or(String::is_empty) {
            return Err(LaunchError::NoProgram);
        }
        let env = self.environment(run, process, *fence)?;
        check(&argv, &env, process)?;
        tracing::debug!(event = "program_launched", job = %run.job, run = %run.id, "launching {}#{}", run.job, run.number.0);
        Ok(ProgramLaunch {
            run: RunKey(run.id.bits()),
            argv,
            env: env.into_iter().collect(),
            cwd: process.cwd.clone(),
            umask: process.umask,
            user: process.user.clone(),
            stdin: process.stdin.clone().map(|stdin| match stdin {
                StdinText::Text(text) => StdinInput::Text(text),
                StdinText::File(path) => StdinInput::File(path),
            }),
            file: triggers_file(run),
            // Messages are read from standard output alone.
            separate_stderr: process.separate_stderr || process.plugin.is_some(),
            nice: process.nice,
            io_priority: process.ionice.map(io_priority),
            limits: limits(process),
            output: OutputLimits::DEFAULT,
            launch_by: launch_by.micros(),
            kill_at: kill_at.map(Span::micros),
            stop_signal: run.terms.signal.number(),
            stop_grace: notice(run).micros(),
        })
    }

    /// The inherited variables, then those of the user, then of the job, then of the run. Later ones replace earlier
    /// ones.
    fn environment(
        &self,
        run: &Run,
        process: &ResolvedProcess,
        fence: Option<u64>,
    ) -> Result<BTreeMap<String, String>, LaunchError> {
        let mut env = self.inherited.clone();
        if let Some(user) = &process.user {
            PERSONAL.iter().for_each(|name| drop(env.remove(*name)));
            env.extend(personal(user));
        } else if let Some(data) = &self.data {
            // Another user cannot read the token there.
            env.insert(DATA_VARIABLE.to_owned(), data.clone());
        }
        for (name, text) in &process.env {
            let value = match text {
                EnvText::Text(text) => text.clone(),
                EnvText::Env(from) => {
                    let value = self.env.get(from).cloned();
                    value.ok_or_else(|| LaunchError::VariableUnset { name: name.clone(), from: from.clone() })?
                }
                EnvText::File(path) => read_secret(Path::new(path)).map_err(|source| LaunchError::Secret {
                    name: name.clone(),
                    path: path.clone(),
                    source,
                })?,
            };
            env.insert(name.clone(), value);
        }
        let mut put = |name: &str, value: String| env.insert(format!("CRONHOLD_{name}"), value);
        put("RUN_ID", run.id.to_string());
        put("JOB", run.job.to_string());
        put("ATTEMPT", run.attempt.to_string());
        put("NOMINAL_TIME", run.nominal.to_string());
        if !run.triggers.is_empty() {
            put("TRIGGERS", run.triggers.len().to_string());
        }
        if let Some(fence) = fence {
            put("FENCE", fence.to_string());
        }
        for (name, value) in run.args.iter() {
            put(&format!("ARG_{}", in_capitals(name)), value.to_owned());
        }
        Ok(env)
    }
}

/// The file with the triggers that a run stands for.
fn triggers_file(run: &Run) -> Option<ProgramFile> {
    if run.triggers.is_empty() {
        return None;
    }
    let shown = |trigger: &RunTrigger| {
        let RunTrigger { id, at, by, message } = trigger;
        let mut shown = json!({"id": id, "at": at, "by": by, "args": run.args});
        if let Some(message) = message {
            shown["channel"] = json!(message.channel);
            shown["message"] = message.message.value();
        }
        shown
    };
    let text = Value::from_iter(run.triggers.iter().map(shown)).to_string();
    Some(ProgramFile { variable: TRIGGERS_FILE.to_owned(), text })
}

/// The variables with these names, or with these beginnings of names with a `*`.
fn matching<'a>(
    env: &'a BTreeMap<String, String>,
    names: &'a [&str],
) -> impl Iterator<Item = (String, String)> + use<'a> {
    env.iter().filter(|(name, _)| is_match(name, names)).map(|(name, value)| (name.clone(), value.clone()))
}

fn is_match(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.strip_suffix('*').map_or(*known == name, |beginning| name.starts_with(beginning)))
}

/// How long before the end of its lease a program receives the signal: its grace period, but only a small part of the
/// lease, because otherwise the signal would come before the next extension is due.
fn notice(run: &Run) -> Span {
    let ExecutionPolicy { grace, lease, .. } = run.terms;
    lease.map_or(grace, |lease| grace.min(Span::from_micros(lease.micros() / NOTICE_SHARE)))
}

/// The variables of a user. The keeper refuses a user that the system does not know.
fn personal(user: &str) -> Vec<(String, String)> {
    let by_number = || user.parse().ok().and_then(|number| User::from_uid(Uid::from_raw(number)).ok().flatten());
    let Some(user) = User::from_name(user).ok().flatten().or_else(by_number) else { return Vec::new() };
    let text = |path: &Path| path.to_str().map(str::to_owned);
    let [home, shell] = [text(&user.dir), text(&user.shell)];
    let values = [home, Some(user.name.clone()), Some(user.name), shell];
    PERSONAL.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?))).collect()
}

/// The content of a file without a final newline.
pub(crate) fn read_secret(path: &Path) -> Result<String, SecretError> {
    // A pipe or a device could block.
    let found = std::fs::metadata(path)?;
    if !found.is_file() {
        return Err(SecretError::NotAFile);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(SECRET_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SECRET_MAX {
        return Err(SecretError::TooLong);
    }
    let mut text = String::from_utf8(bytes)?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// Finds arguments that no system can execute, before the keeper tries.
fn check(argv: &[String], env: &BTreeMap<String, String>, process: &ResolvedProcess) -> Result<(), LaunchError> {
    let has_nul = |text: &str| text.contains('\0');
    if argv.iter().any(|word| has_nul(word)) {
        return Err(LaunchError::NulInCommand);
    }
    if let Some((name, _)) = env.iter().find(|(name, value)| has_nul(name) || has_nul(value)) {
        return Err(LaunchError::NulInVariable(name.replace('\0', "␀")));
    }
    if let Some(name) = env.keys().find(|name| name.is_empty() || name.contains('=')) {
        return Err(LaunchError::VariableName(name.clone()));
    }
    if process.cwd.as_deref().is_some_and(has_nul) || process.user.as_deref().is_some_and(has_nul) {
        return Err(LaunchError::NulInSettings);
    }
    let command: usize = argv.iter().map(String::len).sum();
    let environment: usize = env.iter().map(|(name, value)| name.len() + value.len()).sum();
    if command + environment > ARGUMENTS_MAX {
        return Err(LaunchError::TooLong { command, environment });
    }
    Ok(())
}

/// A priority for the disk as the kernel writes it: the class in the upper bits, the level below them.
fn io_priority(priority: IoPriority) -> u16 {
    const BEST_EFFORT: u16 = 2 << 13;
    const IDLE: u16 = 3 << 13;
    match priority {
        IoPriority::Idle => IDLE,
        IoPriority::BestEffort(level) => BEST_EFFORT | u16::from(level.min(IoPriority::LEVEL_MAX)),
    }
}

fn limits(process: &ResolvedProcess) -> ProcessLimits {
    let cronhold_core::job::ResourceLimits { memory, cpu, pids, files, cpu_time, core } = process.limits;
    // Rounded up, because zero would mean no time at all.
    let seconds = |span: Span| span.secs() + u64::from(!span.is_whole_secs());
    ProcessLimits { memory, cpu, pids, files, cpu_time: cpu_time.map(seconds), core }
}

fn in_capitals(name: &str) -> String {
    let capital = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    name.chars().map(capital).collect()
}

#[cfg(test)]
mod tests;
