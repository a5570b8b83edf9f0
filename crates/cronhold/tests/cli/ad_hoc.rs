//! `run --now`: ad hoc runs, whose job is not stored among the jobs.

use rustix::process::Signal;

use super::sandbox::Sandbox;

/// The job of the latest run.
fn latest_job(sandbox: &Sandbox) -> String {
    sandbox.json(&["runs"])[0]["job"].as_str().expect("a job").to_owned()
}

#[test]
fn command_runs_once_without_a_stored_job() {
    let sandbox = Sandbox::up("ad-hoc", &[("hello", "program: [echo, hi]\n")]);
    let args = ["run", "--now", "-e", "WHO=you", "-e", "GREETING=good day", "--wait", "--"];
    let shell = "echo \"$GREETING, $WHO\"; exit 3";
    let output = sandbox.run_command(&[&args[..], &["sh", "-c", shell]].concat());
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"good day, you\n"[..]), "{output:?}");
    let job = latest_job(&sandbox);
    assert!(job.starts_with("adhoc/"), "{job}");
    let run = &sandbox.json(&["runs", &job])[0];
    assert_eq!((&run["state"], &run["exit_code"], &run["number"]), (&"failure".into(), &3.into(), &1.into()));
    assert_eq!(sandbox.json(&["list"]).as_array().map(Vec::len), Some(1), "only the stored job");
    assert_eq!(sandbox.json(&["list", "adhoc/*"])[0]["id"], *job);
    assert_eq!(sandbox.json(&["show", &job])["definition"]["env"]["WHO"], "you");
    // It can be run again, as any other run.
    assert_eq!(sandbox.run_command(&["rerun", &format!("{job}#1"), "--wait"]).status.code(), Some(1));
    assert_eq!(sandbox.run_command(&["rerun", &format!("{job}#1"), "--current", "--wait"]).status.code(), Some(1));
    assert_eq!(sandbox.json(&["runs", &job]).as_array().map(Vec::len), Some(3));
}

/// The run has all settings of a job, among them retries, which need the definition later.
#[test]
fn ad_hoc_run_survives_a_restart_and_is_retried() {
    let sandbox = Sandbox::up("ad-hoc-file", &[]);
    sandbox.put(
        "once.yaml",
        "params: [mark]\nprogram: |\n  test -e {{ mark }} && exec echo second {{ mark }}\n  touch {{ mark }}; exit 1\n\
                              retry: {attempts: 2, backoff: 1s}\ntimeout: 1m\nlock: once\n",
    );
    let mark = sandbox.path("mark").display().to_string();
    let arg = format!("mark={mark}");
    let at = ["run", "--now", "-f", "once.yaml", &arg, "--at", "2099-01-01", "--key", "one"];
    sandbox.done(&at);
    let job = latest_job(&sandbox);
    sandbox.done(&at);
    assert_eq!(sandbox.json(&["runs"]).as_array().map(Vec::len), Some(1), "the key creates one run");
    sandbox.end(Signal::KILL);
    sandbox.start();
    let shown = sandbox.done(&["start", &format!("{job}#1"), "--wait"]);
    assert!(shown.contains(&format!("second {mark}")), "{shown}");
    let runs = sandbox.json(&["runs", &job]);
    let states: Vec<&str> = runs.as_array().expect("a list").iter().filter_map(|run| run["state"].as_str()).collect();
    assert_eq!(states, ["success", "failure"]);
}

#[test]
fn invalid_ad_hoc_runs_are_refused() {
    let sandbox = Sandbox::up("ad-hoc-refused", &[("hello", "program: [echo, hi]\n")]);
    sandbox.put("daily.yaml", "program: 'true'\nschedule: '@daily'\n");
    sandbox.put("wrong.yaml", "program: 'true'\ntiemout: 1m\n");
    for (args, exit, expected) in [
        (&["run", "--now"][..], 2, "--now needs a command"),
        (&["run", "--now", "hello"], 2, "write `cronhold run hello` for the job"),
        (&["run", "--now", "-e", "A", "--", "true"], 2, "--env: `A` is not NAME=VALUE"),
        (&["run", "--now", "a=1", "--", "true"], 1, "there is no param `a`"),
        (&["run", "hello", "--", "true"], 2, "--now"),
        (&["run", "--now", "-f", "daily.yaml"], 1, "an ad hoc run cannot have `schedule`"),
        (&["run", "--now", "-f", "wrong.yaml"], 1, "tiemout"),
        (&["run", "--now", "-f", "wrong.yaml", "--", "true"], 2, "cannot be used with"),
    ] {
        let output = sandbox.run_command(args);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(exit) && err.contains(expected), "{args:?}: {output:?}");
    }
    assert_eq!(sandbox.json(&["runs"]).as_array().map(Vec::len), Some(0));
}
