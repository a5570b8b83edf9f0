//! From a run to what the keeper is told to start: the command line and the environment, with secrets read at the last
//! moment. What does not fit is said in words, because it becomes the reason why the run was not launched.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use cronhold_core::record::{CommandLine, EnvText, Process, Run, Terms, Work};
use cronhold_keeper::{Launch, Limits, OutputRule, RunKey};
use cronhold_schedule::Span;
use nix::unistd::{Uid, User};

/// How much of an output is kept.
pub const OUTPUT: OutputRule = OutputRule { head: 1 << 20, tail: 9 << 20 };

/// Bytes of command line and environment together. The system takes about as much.
const WORDS_MAX: usize = 2 << 20;
/// Bytes of a secret.
const SECRET_MAX: u64 = 128 * 1024;
/// A program is asked to end in the last part of so many of its lease.
const NOTICE_SHARE: u64 = 3;
/// Variables of the daemon that are about the daemon and not about its programs.
const OWN_NAMES: [&str; 5] = ["NOTIFY_SOCKET", "INVOCATION_ID", "JOURNAL_STREAM", "PWD", "OLDPWD"];
const OWN_PREFIXES: [&str; 2] = ["CRONHOLD_", "LISTEN_"];
/// Variables that say whose home one is in.
const PERSONAL: [&str; 4] = ["HOME", "USER", "LOGNAME", "SHELL"];
/// Shells for jobs that name none; the last is there on every system.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// What programs get from the daemon.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// All variables of the daemon.
    env: BTreeMap<String, String>,
    /// The shell of jobs that name none.
    shell: &'static str,
}

impl Surroundings {
    /// With the daemon's environment. Variables that are not text are left out.
    pub fn new(env: impl IntoIterator<Item = (String, String)>) -> Self {
        let shell = SHELLS.into_iter().find(|shell| Path::new(shell).exists()).unwrap_or(SHELLS[1]);
        Self { env: env.into_iter().collect(), shell }
    }

    /// What the keeper is told for a run, or why its program cannot be started. It has to begin by one uptime, and to be
    /// dead by another when it has a lease.
    pub fn launch(
        &self,
        run: &Run,
        fence: Option<u64>,
        launch_by: Span,
        kill_at: Option<Span>,
    ) -> Result<Launch, String> {
        let Some(Work::Process(process)) = &run.work else { return Err("it has no process".to_owned()) };
        let argv = match &process.command {
            CommandLine::Shell { text, shell } => {
                let shell = shell.as_deref().unwrap_or(self.shell);
                vec![shell.to_owned(), "-c".to_owned(), text.clone()]
            }
            CommandLine::Exec(words) => words.clone(),
        };
        if argv.first().is_none_or(String::is_empty) {
            return Err("it names no program".to_owned());
        }
        let env = self.environment(run, process, fence)?;
        check(&argv, &env, process)?;
        tracing::debug!(event = "program_launched", job = %run.job, run = %run.id, "launching {}#{}", run.job, run.number.0);
        Ok(Launch {
            run: RunKey(run.id.bits()),
            argv,
            env: env.into_iter().collect(),
            cwd: process.cwd.clone(),
            umask: process.umask,
            user: process.user.clone(),
            limits: limits(process),
            output: OUTPUT,
            launch_by: launch_by.micros(),
            kill_at: kill_at.map(Span::micros),
            stop_signal: run.terms.signal.number(),
            stop_grace: notice(run).micros(),
        })
    }

    /// The daemon's own variables, then those of the user, then those of the job, then those of the run.
    fn environment(
        &self,
        run: &Run,
        process: &Process,
        fence: Option<u64>,
    ) -> Result<BTreeMap<String, String>, String> {
        let is_inherited =
            |name: &str| !OWN_NAMES.contains(&name) && !OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let mut env: BTreeMap<String, String> = self
            .env
            .iter()
            .filter(|(name, _)| is_inherited(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if let Some(user) = &process.user {
            PERSONAL.iter().for_each(|name| drop(env.remove(*name)));
            env.extend(personal(user));
        }
        for (name, text) in &process.env {
            let value = match text {
                EnvText::Text(text) => text.clone(),
                EnvText::Env(from) => self.env.get(from).cloned().ok_or_else(|| {
                    format!("the variable {name} is to be taken from {from}, which the daemon does not have")
                })?,
                EnvText::File(path) => secret(Path::new(path))
                    .map_err(|why| format!("the variable {name} is to be read from {path}: {why}"))?,
            };
            env.insert(name.clone(), value);
        }
        let mut put = |name: &str, value: String| env.insert(format!("CRONHOLD_{name}"), value);
        put("RUN_ID", run.id.to_string());
        put("JOB", run.job.to_string());
        put("ATTEMPT", run.attempt.to_string());
        put("NOMINAL_TIME", run.nominal.to_string());
        if let Some(fence) = fence {
            put("FENCE", fence.to_string());
        }
        for (name, value) in run.args.iter() {
            put(&format!("ARG_{}", in_capitals(name)), value.to_owned());
        }
        Ok(env)
    }
}

/// How long before the end of its lease a program is asked to end: its grace, but no large part of its lease, or it would
/// be asked while all is well.
fn notice(run: &Run) -> Span {
    let Terms { grace, lease, .. } = run.terms;
    lease.map_or(grace, |lease| grace.min(Span::from_micros(lease.micros() / NOTICE_SHARE)))
}

/// What a system that knows the user says of them. One that nobody knows is refused by the keeper.
fn personal(user: &str) -> Vec<(String, String)> {
    let by_number = || user.parse().ok().and_then(|number| User::from_uid(Uid::from_raw(number)).ok().flatten());
    let Some(user) = User::from_name(user).ok().flatten().or_else(by_number) else { return Vec::new() };
    let text = |path: &Path| path.to_str().map(str::to_owned);
    let [home, shell] = [text(&user.dir), text(&user.shell)];
    let values = [home, Some(user.name.clone()), Some(user.name), shell];
    PERSONAL.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?))).collect()
}

/// The content of a file without the end of its last line.
fn secret(path: &Path) -> Result<String, String> {
    // A pipe or a device could make everyone wait.
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(SECRET_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > SECRET_MAX {
        return Err(format!("it has more than {SECRET_MAX} bytes"));
    }
    let mut text = String::from_utf8(bytes).map_err(|_| "it is not text in UTF-8".to_owned())?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// What no system can execute is found before anyone tries.
fn check(argv: &[String], env: &BTreeMap<String, String>, process: &Process) -> Result<(), String> {
    let zero = |text: &str| text.contains('\0');
    if argv.iter().any(|word| zero(word)) {
        return Err("its command line has a zero byte in it".to_owned());
    }
    if let Some((name, _)) = env.iter().find(|(name, value)| zero(name) || zero(value)) {
        return Err(format!("the variable {} has a zero byte in it", name.replace('\0', "␀")));
    }
    if let Some(name) = env.keys().find(|name| name.is_empty() || name.contains('=')) {
        return Err(format!("`{name}` cannot be the name of a variable"));
    }
    if process.cwd.as_deref().is_some_and(zero) || process.user.as_deref().is_some_and(zero) {
        return Err("its directory or user has a zero byte in it".to_owned());
    }
    let words: usize = argv.iter().map(String::len).sum();
    let variables: usize = env.iter().map(|(name, value)| name.len() + value.len()).sum();
    if words + variables > WORDS_MAX {
        let sizes = format!("its command line has {words} bytes and its environment {variables}");
        return Err(format!("{sizes}; {WORDS_MAX} are allowed together"));
    }
    Ok(())
}

fn limits(process: &Process) -> Limits {
    let cronhold_core::job::Limits { memory, cpu, pids, files, cpu_time, core } = process.limits;
    // A part of a second is a second: less would be none.
    let seconds = |span: Span| span.secs() + u64::from(!span.is_whole_secs());
    Limits { memory, cpu, pids, files, cpu_time: cpu_time.map(seconds), core }
}

fn in_capitals(name: &str) -> String {
    let capital = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    name.chars().map(capital).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    fn surroundings(env: &[(&str, &str)]) -> Surroundings {
        Surroundings::new(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    fn launched(run: &Run, env: &[(&str, &str)]) -> Result<Launch, String> {
        surroundings(env).launch(run, Some(9), Span::from_secs(5), Some(Span::from_secs(30)))
    }

    fn exec(words: &[&str]) -> Process {
        Process::plain(CommandLine::Exec(words.iter().map(|word| (*word).to_owned()).collect()))
    }

    #[test]
    fn what_is_executed() {
        let shell = |shell: Option<&str>| {
            let command = CommandLine::Shell { text: "echo $HOME".to_owned(), shell: shell.map(str::to_owned) };
            launched(&run(Process::plain(command)), &[]).expect("fine").argv.join(" ")
        };
        assert_eq!(shell(Some("/bin/zsh")), "/bin/zsh -c echo $HOME");
        let usual = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
        assert_eq!(shell(None), format!("{usual} -c echo $HOME"));
        assert_eq!(launched(&run(exec(&["ls", "-l"])), &[]).expect("fine").argv, ["ls", "-l"]);
    }

    #[test]
    fn a_lease_and_how_early_its_end_is_told() {
        let secs = Span::from_secs;
        for (grace, lease, notice) in
            [(60, None, 60), (60, Some(45), 15), (10, Some(45), 10), (15, Some(45), 15), (0, Some(6), 0)]
        {
            let mut run = run(exec(&["true"]));
            (run.terms.grace, run.terms.lease) = (secs(grace), lease.map(secs));
            let launch = launched(&run, &[]).expect("fine");
            assert_eq!(launch.stop_grace, secs(notice).micros(), "{grace} {lease:?}");
            assert_eq!((launch.launch_by, launch.kill_at), (5_000_000, Some(30_000_000)));
        }
    }

    #[test]
    fn the_environment_in_layers() {
        let mut process = exec(&["true"]);
        let text = |text: &str| EnvText::Text(text.to_owned());
        process.env = BTreeMap::from([
            ("PATH".to_owned(), text("/job")),
            ("TOKEN".to_owned(), EnvText::Env("VAULT".to_owned())),
            ("CRONHOLD_JOB".to_owned(), text("a lie")),
        ]);
        let mut run = run(process);
        run.args = serde_json::from_str(r#"{"region": "eu", "as-of": "today"}"#).expect("args");
        let own = [
            ("PATH", "/own"),
            ("LANG", "C"),
            ("VAULT", "s3cret"),
            ("CRONHOLD_STORE", "sqlite:x"),
            ("NOTIFY_SOCKET", "@x"),
            ("LISTEN_FDS", "1"),
            ("INVOCATION_ID", "1"),
            ("JOURNAL_STREAM", "8:1"),
            ("PWD", "/own"),
            ("OLDPWD", "/before"),
        ];
        let launch = launched(&run, &own).expect("fine");
        let shown: Vec<String> = launch.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let id = format!("CRONHOLD_RUN_ID={}", run.id);
        let expected = [
            "CRONHOLD_ARG_AS_OF=today",
            "CRONHOLD_ARG_REGION=eu",
            "CRONHOLD_ATTEMPT=1",
            "CRONHOLD_FENCE=9",
            "CRONHOLD_JOB=nothing",
            "CRONHOLD_NOMINAL_TIME=1970-01-01T00:00:00Z",
            &id,
            "LANG=C",
            "PATH=/job",
            "TOKEN=s3cret",
            "VAULT=s3cret",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn another_users_home() {
        let mut process = exec(&["true"]);
        process.user = Some("0".to_owned());
        let launch = launched(&run(process.clone()), &[("HOME", "/nowhere"), ("LANG", "C")]).expect("fine");
        let value = |name: &str| launch.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!((value("USER"), value("LOGNAME"), value("LANG")), (Some("root"), Some("root"), Some("C")));
        assert!(value("HOME").is_some_and(|home| home != "/nowhere"), "{launch:?}");
        process.env.insert("HOME".to_owned(), EnvText::Text("/mine".to_owned()));
        let launch = launched(&run(process), &[]).expect("fine");
        assert!(launch.env.contains(&("HOME".to_owned(), "/mine".to_owned())));
    }

    #[test]
    fn what_cannot_be_started_in_words() {
        let dir = std::env::temp_dir();
        let with = |name: &str, text: EnvText| {
            let mut process = exec(&["true"]);
            process.env.insert(name.to_owned(), text);
            process
        };
        let text = |text: &str| EnvText::Text(text.to_owned());
        for (process, why) in [
            (with("TOKEN", EnvText::Env("VAULT".to_owned())), "TOKEN is to be taken from VAULT, which the daemon"),
            (with("TOKEN", EnvText::File("/no/such".to_owned())), "TOKEN is to be read from /no/such: No such file"),
            (with("TOKEN", EnvText::File(dir.display().to_string())), "it is no file"),
            (with("A=B", text("x")), "`A=B` cannot be the name of a variable"),
            (with("A", text("x\0y")), "the variable A has a zero byte"),
            (with("A", text(&"x".repeat(WORDS_MAX))), "are allowed together"),
            (exec(&["echo", "\0"]), "its command line has a zero byte"),
            (exec(&[]), "it names no program"),
            (exec(&[""]), "it names no program"),
        ] {
            let said = launched(&run(process.clone()), &[]).expect_err("it cannot");
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn secrets_are_read_at_the_start() {
        let file = std::env::temp_dir().join(format!("cronhold-secret-{}", std::process::id()));
        std::fs::write(&file, "two\nlines\n").expect("written");
        let mut process = exec(&["true"]);
        process.env.insert("TOKEN".to_owned(), EnvText::File(file.display().to_string()));
        let launch = launched(&run(process), &[]).expect("fine");
        std::fs::remove_file(&file).expect("there");
        assert!(launch.env.contains(&("TOKEN".to_owned(), "two\nlines".to_owned())));
    }
}
