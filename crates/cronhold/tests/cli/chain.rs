//! `rerun --chain`: a run and the runs that depended on it.

use super::sandbox::Sandbox;

const AFTER_FETCH: &str = "overlap: allow\nparams: [day]\nconditions: [{after: fetch}]\n";

/// `fetch` starts `note` by an action; `load` and `check` wait for it, and `report` for both.
fn put_jobs(sandbox: &Sandbox) {
    let fixed = sandbox.path("fixed").display().to_string();
    let fetch = "program: 'true'\noverlap: allow\nparams: [day]\non: {success: [{run: note}]}\n";
    sandbox.put("jobs/fetch.yaml", fetch);
    sandbox.put("jobs/note.yaml", "program: 'true'\noverlap: allow\nparams: [day]\n");
    sandbox.put("jobs/load.yaml", &format!("program: test -e {fixed}\n{AFTER_FETCH}"));
    sandbox.put("jobs/check.yaml", &format!("program: 'true'\n{AFTER_FETCH}"));
    let report = "program: 'true'\noverlap: allow\nparams: [day]\nconditions:\n- {after: {job: load, states: [success, failure]}}\n- {after: check}\n";
    sandbox.put("jobs/report.yaml", report);
    sandbox.put("jobs/other.yaml", &format!("program: 'true'\n{AFTER_FETCH}"));
}

#[test]
fn chain_is_run_again_in_the_order_of_its_dependencies() {
    let sandbox = Sandbox::empty("chain");
    put_jobs(&sandbox);
    sandbox.start();
    for job in ["load", "check", "report"] {
        sandbox.done(&["run", job, "day=mon"]);
    }
    sandbox.done(&["run", "other", "day=tue"]);
    sandbox.done(&["run", "fetch", "day=mon"]);
    for (run, state) in [("load#1", "failure"), ("check#1", "success"), ("report#1", "success"), ("note#1", "success")]
    {
        sandbox.wait_for(run, state);
    }
    let plan = sandbox.json(&["rerun", "fetch#1", "--chain", "--dry-run"]);
    let mut names: Vec<String> = plan.as_array().expect("a list").iter().map(|run| run["job"].to_string()).collect();
    assert_eq!(names.first().map(String::as_str), Some("\"fetch\""), "{plan}");
    assert_eq!(names.last().map(String::as_str), Some("\"report\""), "{plan}");
    names.sort();
    assert_eq!(names, ["\"check\"", "\"fetch\"", "\"load\"", "\"note\"", "\"report\""]);
    let refused = sandbox.run_command(&["rerun", "fetch#1", "--chain"]);
    assert_eq!(refused.status.code(), Some(2), "without a terminal it needs --yes");

    sandbox.put("fixed", "");
    let outcomes = sandbox.json(&["rerun", "fetch#1", "--chain", "--yes"]);
    for outcome in outcomes.as_array().expect("a list") {
        let job = outcome["run"].as_str().and_then(|run| run.strip_suffix("#1")).expect("the first run");
        assert_eq!(outcome["result"], format!("{job}#2"), "{outcomes}");
    }
    for job in ["fetch", "note", "load", "check", "report"] {
        let runs = sandbox.json(&["runs", job]);
        assert_eq!(runs.as_array().map(Vec::len), Some(2), "{job} ran again once: {runs}");
    }
    let other = sandbox.json(&["show", "other#1"]);
    assert_eq!(other["state"], "waiting", "a run with other args is not part of the chain");
    for args in [&["rerun", "fetch#1", "--yes"][..], &["rerun", "--chain"], &["rerun", "fetch#1", "--chain", "--wait"]]
    {
        assert_eq!(sandbox.run_command(args).status.code(), Some(2), "{args:?}");
    }
}

/// What depends on a run that fails again is left out.
#[test]
fn chain_ends_where_a_run_does_not_end_as_needed() {
    let sandbox = Sandbox::empty("chain-fails");
    put_jobs(&sandbox);
    let fixed = sandbox.path("fixed").display().to_string();
    sandbox.put("fixed", "");
    sandbox.put("jobs/fetch.yaml", &format!("program: test -e {fixed}\noverlap: allow\nparams: [day]\n"));
    sandbox.start();
    sandbox.done(&["run", "check", "day=mon"]);
    sandbox.done(&["run", "fetch", "day=mon"]);
    sandbox.wait_for("check#1", "success");
    std::fs::remove_file(sandbox.path("fixed")).expect("it is there");
    let output = sandbox.run_command(&["rerun", "fetch#1", "--chain", "--yes"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("it needs success of fetch#2, which ended in failure"), "{shown}");
    assert_eq!(sandbox.json(&["runs", "check"]).as_array().map(Vec::len), Some(1), "it did not run again");
}
