//! Command lines, environments, files and secrets of launches.

use std::sync::Arc;

use super::*;
use crate::testing::run;

type IsLaunchError = fn(&LaunchError) -> bool;

fn launched(run: &Run, env: &[(&str, &str)]) -> Result<ProgramLaunch, LaunchError> {
    let (launch_by, kill_at) = (Span::from_secs(5), Some(Span::from_secs(30)));
    let request = LaunchRequest { run: Arc::new(run.clone()), fence: Some(9), launch_by, kill_at };
    HostEnv::new(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))).launch(&request)
}

fn exec(words: &[&str]) -> ResolvedProcess {
    ResolvedProcess::plain(CommandLine::Exec(words.iter().map(|word| (*word).to_owned()).collect()))
}

#[test]
fn command_runs_by_the_named_shell_or_directly() {
    let shell = |shell: Option<&str>| {
        let command = CommandLine::Shell { text: "echo $HOME".to_owned(), shell: shell.map(str::to_owned) };
        launched(&run(ResolvedProcess::plain(command)), &[]).expect("fine").argv.join(" ")
    };
    assert_eq!(shell(Some("/bin/zsh")), "/bin/zsh -c echo $HOME");
    let usual = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
    assert_eq!(shell(None), format!("{usual} -c echo $HOME"));
    assert_eq!(launched(&run(exec(&["ls", "-l"])), &[]).expect("fine").argv, ["ls", "-l"]);
}

#[test]
fn notice_before_lease_end_is_at_most_a_third_of_the_lease() {
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
fn environment_of_run_replaces_job_replaces_daemon() {
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
        ("LC_TIME", "de_DE.UTF-8"),
        ("TZ", "Europe/Berlin"),
        ("HOME", "/srv"),
        ("USER", "ada"),
        ("LOGNAME", "ada"),
        ("SHELL", "/bin/zsh"),
        ("AWS_SECRET_ACCESS_KEY", "not asked for"),
        ("CRONHOLD_SECRET_X", "not asked for"),
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
        "HOME=/srv",
        "LANG=C",
        "LC_TIME=de_DE.UTF-8",
        "LOGNAME=ada",
        "PATH=/job",
        "SHELL=/bin/zsh",
        "TOKEN=s3cret",
        "TZ=Europe/Berlin",
        "USER=ada",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn daemon_without_variables_gives_programs_a_path_and_the_variables_of_its_user() {
    let env = HostEnv::new([]).inherited;
    assert_eq!(env.get("PATH").map(String::as_str), Some(PATH_DEFAULT));
    let known = User::from_uid(Uid::effective()).ok().flatten();
    assert_eq!(env.get("USER"), known.as_ref().map(|user| &user.name));
    assert_eq!(env.contains_key("HOME"), known.is_some());
}

#[test]
fn programs_inherit_named_variables_but_none_of_the_daemons_own() {
    let own = [("AWS_KEY", "1"), ("AWS_REGION", "2"), ("OTHER", "3"), ("PROXY", "4"), ("CRONHOLD_TOKEN", "5")];
    let env = HostEnv::new(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let env = env.with_inherited(&["AWS_*", "PROXY", "CRONHOLD_TOKEN", "ABSENT"].map(str::to_owned));
    let added: Vec<&String> = own.iter().filter_map(|(name, _)| env.inherited.get(*name)).collect();
    assert_eq!(added, ["1", "2", "4"]);
    let env = env.with_inherited(&["*".to_owned()]);
    assert!(env.inherited.contains_key("OTHER") && !env.inherited.contains_key("CRONHOLD_TOKEN"));
}

#[test]
fn only_programs_of_the_daemons_user_find_the_daemon() {
    let host_env = HostEnv::new([]).with_data(Path::new("/var/lib/cronhold"));
    let data = |user: Option<&str>| {
        let process = ResolvedProcess { user: user.map(str::to_owned), ..exec(&["true"]) };
        let run = Arc::new(run(process));
        let (launch_by, kill_at) = (Span::from_secs(5), None);
        let launch = host_env.launch(&LaunchRequest { run, fence: None, launch_by, kill_at }).expect("fine");
        launch.env.into_iter().find(|(name, _)| name == DATA_VARIABLE).map(|(_, value)| value)
    };
    assert_eq!(data(None).as_deref(), Some("/var/lib/cronhold"));
    assert_eq!(data(Some("65534")), None);
}

#[test]
fn run_of_triggers_gets_their_number_and_a_file_with_them() {
    use cronhold_core::record::{Actor, TriggerId};
    use cronhold_schedule::Instant;

    let mut run = run(exec(&["true"]));
    let before = launched(&run, &[]).expect("fine");
    assert!(before.file.is_none() && before.env.iter().all(|(name, _)| !name.starts_with("CRONHOLD_TRIGGERS")));
    let trigger = |id: &str, secs| RunTrigger {
        id: TriggerId::parse(id).expect("an id"),
        at: Instant::from_secs(secs),
        by: Actor::Operator("anna".to_owned()),
        message: None,
    };
    run.args = serde_json::from_str(r#"{"ref": "main"}"#).expect("args");
    run.triggers = [trigger("repo@1", 1), trigger("\"größe\"", 2)].into();
    let launch = launched(&run, &[]).expect("fine");
    assert!(launch.env.contains(&("CRONHOLD_TRIGGERS".to_owned(), "2".to_owned())));
    let file = launch.file.expect("a file");
    assert_eq!(file.variable, "CRONHOLD_TRIGGERS_FILE");
    let expected = json!([
        {"id": "repo@1", "at": "1970-01-01T00:00:01Z", "by": "operator anna", "args": {"ref": "main"}},
        {"id": "\"größe\"", "at": "1970-01-01T00:00:02Z", "by": "operator anna", "args": {"ref": "main"}},
    ]);
    assert_eq!(serde_json::from_str::<Value>(&file.text).expect("JSON"), expected);
}

#[test]
fn another_user_has_its_own_home() {
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
fn unstartable_runs_have_specific_errors() {
    let dir = std::env::temp_dir();
    let with = |name: &str, text: EnvText| {
        let mut process = exec(&["true"]);
        process.env.insert(name.to_owned(), text);
        process
    };
    let text = |text: &str| EnvText::Text(text.to_owned());
    let no_file =
        |error: &SecretError| matches!(error, SecretError::Io(error) if error.kind() == io::ErrorKind::NotFound);
    let cases: [(ResolvedProcess, IsLaunchError); 7] = [
        (
            with("TOKEN", EnvText::Env("VAULT".to_owned())),
            |error| matches!(error, LaunchError::VariableUnset { from, .. } if from == "VAULT"),
        ),
        (with("A=B", text("x")), |error| matches!(error, LaunchError::VariableName(name) if name == "A=B")),
        (with("A", text("x\0y")), |error| matches!(error, LaunchError::NulInVariable(name) if name == "A")),
        (with("A", text(&"x".repeat(ARGUMENTS_MAX))), |error| matches!(error, LaunchError::TooLong { .. })),
        (exec(&["echo", "\0"]), |error| matches!(error, LaunchError::NulInCommand)),
        (exec(&[]), |error| matches!(error, LaunchError::NoProgram)),
        (exec(&[""]), |error| matches!(error, LaunchError::NoProgram)),
    ];
    for (process, is_expected) in cases {
        let error = launched(&run(process), &[]).expect_err("it cannot be started");
        assert!(is_expected(&error), "{error:?}");
    }
    let secret = |path: &str| match launched(&run(with("TOKEN", EnvText::File(path.to_owned()))), &[]) {
        Err(LaunchError::Secret { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    assert!(no_file(&secret("/no/such")));
    assert!(matches!(secret(&dir.display().to_string()), SecretError::NotAFile));
}

#[test]
fn secret_is_read_without_its_final_newline() {
    let file = std::env::temp_dir().join(format!("cronhold-secret-{}", std::process::id()));
    std::fs::write(&file, "two\nlines\n").expect("written");
    let mut process = exec(&["true"]);
    process.env.insert("TOKEN".to_owned(), EnvText::File(file.display().to_string()));
    let launch = launched(&run(process), &[]).expect("fine");
    std::fs::remove_file(&file).expect("there");
    assert!(launch.env.contains(&("TOKEN".to_owned(), "two\nlines".to_owned())));
}
