//! What programs receive and what is reported about them: arguments, environment, directory, output and exit.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::support::{Keeper, launch, new_run, shell};
use cronhold_keeper::{ProcessExit, ProcessLimits, ProgramEnd, ProgramFile, StdinInput, ToKeeper};

#[test]
fn exit_codes_and_signals_are_reported() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    for (script, wanted) in [
        ("exit 0", ProcessExit::Code(0)),
        ("exit 7", ProcessExit::Code(7)),
        ("exit 255", ProcessExit::Code(255)),
        ("kill -9 $$", ProcessExit::Signal(9)),
        ("kill -TERM $$", ProcessExit::Signal(15)),
        ("kill -SEGV $$", ProcessExit::Signal(11)),
        ("kill -PIPE $$", ProcessExit::Signal(13)),
    ] {
        let run = daemon.launch(&shell(script));
        daemon.started(run);
        assert_eq!(daemon.ended(run), ProgramEnd { exit: wanted, output: 0, by_lease: false }, "{script}");
    }
}

#[test]
fn both_streams_are_written_to_one_file_in_order() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let run = daemon.launch(&shell("for i in 1 2 3; do echo out $i; echo err $i >&2; done; printf end"));
    let ProgramEnd { exit, output, .. } = daemon.ended(run);
    let wanted = "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\nend";
    assert_eq!(keeper.read_output(run), wanted);
    assert_eq!((exit, output), (ProcessExit::Code(0), wanted.len() as u64));
    assert_eq!(std::fs::metadata(keeper.output(run)).unwrap().mode() & 0o777, 0o640);
}

#[test]
fn program_that_closes_its_output_continues() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let run = daemon.launch(&shell("echo before; exec >&- 2>&-; exit 4"));
    assert_eq!(daemon.ended(run), ProgramEnd { exit: ProcessExit::Code(4), output: 7, by_lease: false });
}

#[test]
fn program_gets_exactly_its_environment_directory_mask_and_session() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let mut wanted = shell("env | sort; pwd; umask; cat; ps -o sid=,pgid= -p $$; echo $$");
    wanted.env.push(("GREETING".to_owned(), "hello, world".to_owned()));
    wanted.cwd = Some("/usr/bin".to_owned());
    wanted.umask = Some(0o077);
    let run = daemon.launch(&wanted);
    let pid = daemon.started(run);
    assert_eq!(daemon.ended(run).exit, ProcessExit::Code(0));
    let text = keeper.read_output(run);
    assert!(text.contains("GREETING=hello, world\n"), "{text}");
    assert!(text.contains(&format!("CRONHOLD_RUN_ID={run}\n")), "{text}");
    assert!(!text.contains("HOME="), "{text}");
    assert!(text.contains("\n/usr/bin\n0077\n"), "{text}");
    assert!(text.replace(' ', "").contains(&format!("\n{pid}{pid}\n{pid}\n")), "{text}");
    let run = daemon.launch(&shell("pwd; umask"));
    daemon.ended(run);
    assert_eq!(keeper.read_output(run), "/\n0022\n");
    // The three standard streams, and the directory that is being listed.
    let run = daemon.launch(&launch(&["ls", "/proc/self/fd"]));
    daemon.ended(run);
    assert_eq!(keeper.read_output(run), "0\n1\n2\n3\n");
}

#[test]
fn wrong_run_id_in_the_environment_is_replaced() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let mut wanted = shell("echo $CRONHOLD_RUN_ID");
    wanted.env.push(("CRONHOLD_RUN_ID".to_owned(), new_run().to_string()));
    let run = daemon.launch(&wanted);
    daemon.ended(run);
    assert_eq!(keeper.read_output(run), format!("{run}\n"));
}

#[test]
fn program_that_cannot_be_executed_is_refused_with_the_reason() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let place = |name: &str, text: &str, mode: u32| {
        let path = keeper.data.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let plain = place("plain", "#!/bin/sh\n", 0o644);
    let script = place("script", "#!/no/such/shell\n", 0o755);
    let noise = place("noise", "\u{1}\u{2}\u{3}", 0o755);
    for (argv, words) in [
        (vec!["/no/such/program"], "it does not exist"),
        (vec!["no-such-program"], "cannot find the program `no-such-program` in PATH"),
        (vec![plain.as_str()], "may not be executed"),
        (vec![script.as_str()], "its interpreter /no/such/shell does not exist"),
        (vec![noise.as_str()], "neither a program"),
        (vec!["/usr"], "it is a directory"),
        (vec!["/bin/echo", "a\0b"], "zero byte"),
        (vec![], "does not name a program"),
    ] {
        let run = daemon.launch(&launch(&argv));
        let why = daemon.refused(run);
        assert!(why.contains(words), "{argv:?}: {why}");
        assert!(!keeper.output(run).exists());
    }
    let mut elsewhere = shell("true");
    elsewhere.cwd = Some("/no/such/folder".to_owned());
    let run = daemon.launch(&elsewhere);
    assert_eq!(daemon.refused(run), "cannot enter the directory /no/such/folder: no such file or directory");
    drop(daemon);
    assert!(keeper.daemon().listed.is_empty());
}

#[test]
fn standard_input_and_priorities_are_set_by_the_second_stage() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    std::fs::write(keeper.data.join("input"), "from a file").unwrap();
    let mut text = shell("cat; nice; ionice");
    text.stdin = Some(StdinInput::Text("from a text\n".to_owned()));
    (text.nice, text.io_priority) = (Some(19), Some(3 << 13));
    let mut file = shell("cat; cat");
    file.cwd = Some(keeper.data.to_str().unwrap().to_owned());
    file.stdin = Some(StdinInput::File("input".to_owned()));
    for (wanted, expected) in [(text, "from a text\n19\nidle\n"), (file, "from a file")] {
        let run = daemon.launch(&wanted);
        assert_eq!(daemon.ended(run).exit, ProcessExit::Code(0));
        assert_eq!(keeper.read_output(run), expected);
    }
    for (input, expected) in [("no-such-file", "cannot open the standard input no-such-file"), ("/dev/zero", "regular")]
    {
        let mut wanted = shell("true");
        wanted.stdin = Some(StdinInput::File(input.to_owned()));
        let run = daemon.launch(&wanted);
        let why = daemon.refused(run);
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn file_of_a_program_is_for_its_user_and_gone_when_it_ends() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    for files in [None, Some(20)] {
        let script = "cat \"$LIST\" && (cat \"$LIST\") && stat -L -c ' %a %u %F' \"$LIST\" && echo \"$LIST\"";
        let mut wanted = shell(script);
        wanted.file = Some(ProgramFile { variable: "LIST".to_owned(), text: "[1]".to_owned() });
        wanted.limits.files = files;
        let run = daemon.launch(&wanted);
        assert_eq!(daemon.ended(run).exit, ProcessExit::Code(0));
        let output = keeper.read_output(run);
        let (content, path) = output.trim_end().split_once('\n').expect("two lines");
        assert_eq!(content, format!("[1][1] 400 {} regular file", rustix::process::getuid().as_raw()));
        assert!(path.starts_with("/proc/") && !std::path::Path::new(path).exists(), "{path}");
    }
}

#[test]
fn limits_are_set_by_the_second_stage() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let mut wanted = shell("ulimit -n; ulimit -t; ulimit -c; pwd; umask; cat; echo $0; kill -PIPE $$");
    wanted.argv.push("name".to_owned());
    wanted.cwd = Some("/usr".to_owned());
    wanted.umask = Some(0o027);
    wanted.limits = ProcessLimits { files: Some(33), cpu_time: Some(77), core: Some(0), ..ProcessLimits::default() };
    let run = daemon.launch(&wanted);
    daemon.started(run);
    assert_eq!(daemon.ended(run).exit, ProcessExit::Signal(13));
    assert_eq!(keeper.read_output(run), "33\n77\n0\n/usr\n0027\nname\n");
}

#[test]
fn failure_in_the_second_stage_is_refused_with_the_reason() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let limits = ProcessLimits { files: Some(64), ..ProcessLimits::default() };
    let mut absent = launch(&["no-such-program"]);
    absent.limits = limits;
    let mut unknown_user = shell("true");
    unknown_user.user = Some("no-such-user".to_owned());
    let mut elsewhere = shell("true");
    elsewhere.limits = limits;
    elsewhere.cwd = Some("/no/such/folder".to_owned());
    for (wanted, words) in [
        (absent, "cannot find the program `no-such-program`"),
        (unknown_user, "there is no user no-such-user"),
        (elsewhere, "cannot enter the directory /no/such/folder"),
    ] {
        let run = daemon.launch(&wanted);
        let why = daemon.refused(run);
        assert!(why.contains(words), "{why}");
        assert_eq!(daemon.launch(&wanted), run);
        assert_eq!(daemon.refused(run), why);
    }
    drop(daemon);
    assert!(keeper.daemon().listed.is_empty());
}

#[test]
fn another_user_needs_a_keeper_that_is_root() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let mut wanted = shell("id -u; id -g");
    wanted.user = Some("65534".to_owned());
    let run = daemon.launch(&wanted);
    if rustix::process::geteuid().is_root() {
        assert_eq!(daemon.ended(run).exit, ProcessExit::Code(0));
        assert!(keeper.read_output(run).starts_with("65534\n"));
    } else {
        assert!(daemon.refused(run).contains("not as root"));
    }
}

#[test]
fn background_process_survives_and_its_later_output_is_not_counted() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let pid_file = keeper.data.join("pid");
    let script = format!("sleep 600 & echo $! > {}; printf abc", pid_file.display());
    let run = daemon.launch(&shell(&script));
    assert_eq!(daemon.ended(run), ProgramEnd { exit: ProcessExit::Code(0), output: 3, by_lease: false });
    let pid = crate::support::read_pid(&pid_file);
    daemon.send(&ToKeeper::Forget { runs: vec![run] });
    crate::support::until("its output is removed", || (!keeper.output(run).exists()).then_some(()));
    assert!(crate::support::is_alive(pid));
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}
