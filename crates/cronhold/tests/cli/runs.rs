//! `run` and `runs`.

use super::sandbox::{Sandbox, transcript_of};

const JOBS: &[(&str, &str)] = &[
    ("good", "program: [echo, hi]\n"),
    ("bad", "program: echo out; echo err >&2; exit 3\n"),
    ("lost", "program: [/no/such/program]\n"),
    ("killed", "program: kill -9 $$\n"),
    (
        "reports/prices",
        "params: {region: {default: us, choices: [us, eu]}, date: {}}\nprogram: [echo, '{{ region }}', '{{ date }}']\n",
    ),
];

#[test]
fn run() {
    let sandbox = Sandbox::up("run", JOBS);
    let text = sandbox.transcript(&[
        &["run", "good", "--wait"],
        &["run", "bad", "--wait"],
        &["run", "lost", "--wait"],
        &["run", "killed", "--wait"],
        &["run", "bad", "--wait", "-o", "json"],
        &["run", "reports/prices", "region=eu", "date=2020-01-01", "--wait"],
        &["run", "good", "--at", "2099-01-01T00:00:00Z"],
        &["run", "good", "--at", "2099-01-01", "--timezone", "Europe/Berlin", "-o", "yaml"],
        &["run", "good", "--key", "once", "--at", "2099-01-02"],
        &["run", "good", "--key", "once", "--at", "2099-01-02"],
        &["run", "god"],
        &["run", "prices"],
        &["run", "reports/prices"],
        &["run", "reports/prices", "region=mars", "date=x"],
        &["run", "reports/prices", "date=x", "regoin=eu"],
        &["run", "good", "eu"],
        &["run", "good", "a=1", "a=2"],
        &["run", "good", "--at", "soon"],
        &["run", "good", "--timezone", "Berlin"],
        &["run"],
    ]);
    insta::assert_snapshot!(text);
    // Without `--wait`, the state of the run is not deterministic.
    let begun = sandbox.done(&["run", "good"]);
    assert!(begun.starts_with("good#") && begun.lines().count() == 1, "{begun}");
}

/// A run that never starts is a failure, also without `--wait`.
#[test]
fn run_that_is_skipped_at_once_exits_1() {
    let sandbox = Sandbox::up("skipped-at-once", &[("nap", "program: {noop: 1h}\n")]);
    sandbox.done(&["run", "nap"]);
    let text = sandbox.transcript(&[&["run", "nap"]]);
    assert_eq!(text, "$ cronhold run nap\nnap#2 skipped: overlap\nexit 1\n");
}

#[test]
fn runs() {
    let sandbox = Sandbox::up("runs", JOBS);
    let before = sandbox.shown(&["runs"]);
    sandbox.run("good");
    sandbox.run("bad");
    sandbox.run_command(&["run", "reports/prices", "date=2020-01-01", "--wait"]);
    sandbox.done(&["run", "good", "--at", "2099-01-01"]);
    sandbox.done(&["run", "good", "--at", "2099-01-02"]);
    sandbox.done(&["skip", "good#3", "--why", "not needed"]);
    let after = sandbox.transcript(&[
        &["runs"],
        &["runs", "good"],
        &["runs", "--job", "good", "--limit", "1"],
        &["runs", "--state", "failure,skipped"],
        &["runs", "--since", "1h", "bad", "-o", "json"],
        &["runs", "--job", "bad", "-o", "yaml"],
        &["runs", "bad#1"],
        &["runs", "good#3"],
        &["runs", "--since", "2098-01-01", "--state", "running"],
        &["runs", "god"],
        &["runs", "good#77"],
        &["runs", "god#1"],
        &["runs", "01a1e321f93a7453887ab709aaa1bbac"],
        &["runs", "--state", "failed"],
        &["runs", "--since", "soon"],
        &["runs", "--limit", "0"],
        &["runs", "good", "--job", "bad"],
    ]);
    insta::assert_snapshot!(format!("{before}\n{after}"));
}

/// Skipped runs are listed among the others.
#[test]
fn runs_are_listed_newest_first() {
    let sandbox = Sandbox::up("order", JOBS);
    for _ in 0..3 {
        sandbox.run("good");
        sandbox.run("bad");
    }
    sandbox.done(&["run", "good", "--at", "2099-01-02"]);
    sandbox.done(&["skip", "good#4"]);
    let runs = sandbox.json(&["runs"]);
    let names = runs.as_array().expect("an array").iter().map(|run| {
        let text = |key: &str| run[key].as_str().expect("a text").to_owned();
        format!("{}#{} {}", text("job"), run["number"], text("state"))
    });
    let expected = [
        "good#4 skipped",
        "bad#3 failure",
        "good#3 success",
        "bad#2 failure",
        "good#2 success",
        "bad#1 failure",
        "good#1 success",
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    let two = sandbox.json(&["runs", "--limit", "2"]);
    assert_eq!(two.as_array().expect("an array"), &runs.as_array().expect("an array")[..2]);
}

/// A run is identified by its id or by its job and number. The job alone means its latest run.
#[test]
fn run_is_found_by_id_number_or_job() {
    let sandbox = Sandbox::up("names", JOBS);
    sandbox.run("bad");
    sandbox.run("bad");
    let id = sandbox.json(&["runs", "bad#2"])[0]["id"].as_str().expect("an id").to_owned();
    for name in [id.as_str(), "bad#2", "bad"] {
        let args = ["mark", name, "success"];
        let output = sandbox.run_command(&args);
        assert_eq!(output.status.code(), Some(0), "{}", transcript_of(&args, &output));
        assert_eq!(sandbox.json(&["runs", "bad#2"])[0]["state"], "success", "{name}");
        sandbox.done(&["mark", "bad#2", "failure"]);
    }
    assert_eq!(
        sandbox.json(&["runs", "bad#1"])[0]["log"].as_array().map(Vec::len),
        Some(4),
        "the other one is untouched"
    );
}

/// A run for a time that has passed would start at once, which `--at` does not say.
#[test]
fn run_at_a_time_that_has_passed_is_refused() {
    let sandbox = Sandbox::up("past", JOBS);
    for at in ["yesterday", "2020-01-01", "-1h"] {
        let at = format!("--at={at}");
        let output = sandbox.run_command(&["run", "good", &at]);
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(text.contains(" has passed\n  hint: omit --at to run now"), "{at}: {text}");
        assert_eq!(output.status.code(), Some(2), "{at}");
    }
    assert_eq!(sandbox.json(&["runs", "good"]), serde_json::json!([]));
}

/// Whoever called sudo, else the user of the session, else the user of the process.
#[test]
fn run_names_the_person_who_created_it() {
    let sandbox = Sandbox::up("who", JOBS);
    let id = |option: &str| {
        let output = std::process::Command::new("id").arg(option).output().expect("id starts");
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    };
    let sudo = if id("-u") == "0" { "grace" } else { "ada" };
    for (number, (user, sudo_user, expected)) in
        [(Some("ada"), None, "ada"), (Some("ada"), Some("grace"), sudo), (None, None, id("-un").as_str())]
            .into_iter()
            .enumerate()
    {
        let mut command = sandbox.command(&["run", "good", "--wait"]);
        match user {
            Some(user) => command.env("USER", user),
            None => command.env_remove("USER"),
        };
        if let Some(sudo_user) = sudo_user {
            command.env("SUDO_USER", sudo_user);
        }
        assert!(command.output().expect("the binary starts").status.success());
        let run = format!("good#{}", number + 1);
        let actor = sandbox.json(&["runs", &run])[0]["log"][0]["actor"].clone();
        assert_eq!(actor, format!("operator {expected}"), "{user:?} {sudo_user:?}");
    }
}
