//! `run` and `runs`.

use super::place::{Place, transcript_of};

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
    let place = Place::up("run", JOBS);
    let text = place.transcript(&[
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
    let begun = place.done(&["run", "good"]);
    assert!(begun.starts_with("good#") && begun.lines().count() == 1, "{begun}");
}

/// A run that never starts is a failure, also without `--wait`.
#[test]
fn run_that_is_skipped_at_once_exits_1() {
    let place = Place::up("skipped-at-once", &[("nap", "program: {noop: 1h}\n")]);
    place.done(&["run", "nap"]);
    let text = place.transcript(&[&["run", "nap"]]);
    assert_eq!(text, "$ cronhold run nap\nnap#2 skipped: overlap\nexit 1\n");
}

#[test]
fn runs() {
    let place = Place::up("runs", JOBS);
    let before = place.shown(&["runs"]);
    place.run("good");
    place.run("bad");
    place.run_command(&["run", "reports/prices", "date=2020-01-01", "--wait"]);
    place.done(&["run", "good", "--at", "2099-01-01"]);
    place.done(&["run", "good", "--at", "2099-01-02"]);
    place.done(&["skip", "good#3", "--why", "not needed"]);
    let after = place.transcript(&[
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
    let place = Place::up("order", JOBS);
    for _ in 0..3 {
        place.run("good");
        place.run("bad");
    }
    place.done(&["run", "good", "--at", "2099-01-02"]);
    place.done(&["skip", "good#4"]);
    let runs = place.json(&["runs"]);
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
    let two = place.json(&["runs", "--limit", "2"]);
    assert_eq!(two.as_array().expect("an array"), &runs.as_array().expect("an array")[..2]);
}

/// A run is identified by its id or by its job and number. The job alone means its latest run.
#[test]
fn run_is_found_by_id_number_or_job() {
    let place = Place::up("names", JOBS);
    place.run("bad");
    place.run("bad");
    let id = place.json(&["runs", "bad#2"])[0]["id"].as_str().expect("an id").to_owned();
    for name in [id.as_str(), "bad#2", "bad"] {
        let args = ["mark", name, "success"];
        let output = place.run_command(&args);
        assert_eq!(output.status.code(), Some(0), "{}", transcript_of(&args, &output));
        assert_eq!(place.json(&["runs", "bad#2"])[0]["state"], "success", "{name}");
        place.done(&["mark", "bad#2", "failure"]);
    }
    assert_eq!(
        place.json(&["runs", "bad#1"])[0]["log"].as_array().map(Vec::len),
        Some(4),
        "the other one is untouched"
    );
}
