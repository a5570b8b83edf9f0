//! Operations on all runs that match a filter.

use super::processes::eventually;
use super::sandbox::Sandbox;

const JOBS: &[(&str, &str)] = &[
    ("etl/a", "program: \"test -e fixed\"\n"),
    ("etl/b", "program: \"test -e fixed\"\noverlap: allow\n"),
    ("other", "program: exit 1\n"),
    ("good", "program: [echo, hi]\n"),
    ("etl/long", "program: [sleep, '600']\noverlap: allow\nparams: [part]\n"),
];

/// The jobs of a list of runs, in its order.
fn jobs(runs: &serde_json::Value) -> Vec<String> {
    let name = |run: &serde_json::Value| format!("{}#{}", run["job"].as_str().unwrap_or_default(), run["number"]);
    runs.as_array().expect("a list").iter().map(name).collect()
}

#[test]
fn failed_runs_of_a_period_are_run_again_once() {
    let fixed = |text: &str, sandbox: &Sandbox| text.replace("fixed", &sandbox.path("fixed").display().to_string());
    let sandbox = Sandbox::empty("bulk-rerun");
    for (id, yaml) in JOBS {
        sandbox.put(&format!("jobs/{id}.yaml"), &fixed(yaml, &sandbox));
    }
    sandbox.start();
    for job in ["etl/a", "etl/a", "etl/b", "other", "good"] {
        sandbox.run(job);
    }
    let filter = ["rerun", "--failed", "--since", "1h", "--job", "etl/*"];
    let refused = sandbox.run_command(&filter);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("this would rerun 3 runs, and there is no terminal to confirm it"), "{message}");
    assert!(message.contains("--yes"), "{message}");
    let listed = sandbox.json(&[&filter[..], &["--dry-run"]].concat());
    assert_eq!(jobs(&listed), ["etl/a#1", "etl/a#2", "etl/b#1"]);
    assert!(sandbox.done(&[&filter[..], &["--dry-run"]].concat()).ends_with("would rerun 3 runs\n"));
    assert_eq!(sandbox.json(&["runs"]).as_array().map(Vec::len), Some(5), "nothing was run again");

    sandbox.put("fixed", "");
    // Runs of `etl/a` must not overlap, so the second one waits for the first one.
    let shown = sandbox.done(&[&filter[..], &["--yes"]].concat());
    assert!(shown.contains("etl/a#2 → etl/a#4\n") && shown.ends_with("reran 3 runs\n"), "{shown}");
    for run in ["etl/a#3", "etl/a#4", "etl/b#2"] {
        sandbox.wait_for(run, "success");
    }
    let again = sandbox.done(&[&filter[..], &["--yes"]].concat());
    assert_eq!(again, "no matching runs; nothing to rerun\n", "all of them were run again");
    // Without a pattern, the other job is left. Its new run fails, and can be run again in turn.
    for number in 2..4 {
        let all = sandbox.json(&["rerun", "--failed", "--since", "1h", "--yes"]);
        assert_eq!(all[0]["result"], format!("other#{number}"), "{all}");
        sandbox.wait_for(&format!("other#{number}"), "failure");
    }
}

#[test]
fn runs_of_a_pattern_are_stopped_and_skipped() {
    let sandbox = Sandbox::up("bulk-stop", JOBS);
    for part in ["part=1", "part=2"] {
        sandbox.done(&["run", "etl/long", part]);
    }
    sandbox.done(&["run", "good", "--at", "2099-01-01"]);
    for run in ["etl/long#1", "etl/long#2"] {
        sandbox.wait_for(run, "running");
    }
    assert_eq!(sandbox.run_command(&["stop", "--job", "etl/*"]).status.code(), Some(2), "without a terminal");
    let shown = sandbox.done(&["stop", "--job", "etl/*", "--yes"]);
    assert_eq!(shown, "etl/long#1\netl/long#2\nstopped 2 runs\n");
    eventually("they have ended", || {
        let runs = sandbox.json(&["runs", "etl/long"]);
        runs.as_array().expect("a list").iter().all(|run| run["signal"] == "SIGTERM")
    });
    assert_eq!(sandbox.done(&["stop", "--job", "etl/*", "--yes"]), "no matching runs; nothing to stop\n");
    let skipped = sandbox.json(&["skip", "--job", "good", "--why", "not needed", "--yes"]);
    assert_eq!((&skipped[0]["run"], &skipped[0]["refused"]), (&"good#1".into(), &serde_json::Value::Null));
    assert_eq!(sandbox.json(&["runs", "good#1"])[0]["state"], "skipped");
    for (args, exit) in [
        (&["stop", "--job", "nothing/*", "--yes"][..], 1),
        (&["stop"], 2),
        (&["stop", "good#1", "--yes"], 2),
        (&["rerun", "--failed"], 2),
        (&["rerun", "good", "--failed", "--since", "1h"], 2),
    ] {
        assert_eq!(sandbox.run_command(args).status.code(), Some(exit), "{args:?}");
    }
}
