//! Endpoints of runs: create, list and show.

use serde_json::{Value, json};

use super::sandbox::{IDLE, Sandbox};

#[test]
fn runs_are_created_and_shown() {
    let sandbox = Sandbox::new("runs");
    sandbox
        .put_file("greet", "program: [echo, 'hello {{ who }}']\nparams: {who: {default: you}}\nschedule: triggered\n");
    sandbox.put_file("fail", "program: [sh, -c, 'echo no >&2; exit 7']\nschedule: triggered\n");
    let daemon = sandbox.up();
    let made = daemon.send("POST /api/v1/jobs/greet/runs", r#"{"args": {"who": "Anna"}}"#);
    assert_eq!((made.status, &made.json()["number"], &made.json()["job"]), (201, &1.into(), &"greet".into()));
    let id = made.json()["id"].as_str().expect("an id").to_owned();
    let run = daemon.wait_for(&id, |run| run["state"] == "success");
    assert_eq!((&run["args"], &run["exit_code"], &run["signal"]), (&json!({"who": "Anna"}), &0.into(), &Value::Null));
    assert_eq!(
        (&run["tail"], &run["output_bytes"], &run["node"]),
        (&json!(["hello Anna"]), &11.into(), &"test".into())
    );
    assert_eq!(
        (&run["command"], &run["attempt"], &run["reason"]),
        (&"echo hello Anna".into(), &1.into(), &Value::Null)
    );
    let states: Vec<&Value> = run["log"].as_array().expect("a list").iter().map(|step| &step["state"]).collect();
    assert_eq!(states, ["waiting", "starting", "running", "success"]);
    for name in ["greet", "greet%231", &id] {
        assert_eq!(daemon.get(&format!("/api/v1/runs/{name}"))["id"], *id, "{name}");
    }
    let failed = daemon.run("fail");
    assert_eq!((&failed["state"], &failed["exit_code"]), (&"failure".into(), &7.into()), "{failed}");

    daemon.request("POST /api/v1/jobs/nobody/runs").assert_problem(404, "not_found");
    daemon.send("POST /api/v1/jobs/greet/runs", r#"{"args": {"whom": "x"}}"#).assert_problem(422, "invalid");
    for unknown in ["greet%2399", "nobody", "019d376a41fb7fffbfffffffffffffff"] {
        daemon.request(&format!("GET /api/v1/runs/{unknown}")).assert_problem(404, "not_found");
    }
}

#[test]
fn runs_are_listed_in_pages() {
    let sandbox = Sandbox::new("runs-pages");
    sandbox.put_file("a", IDLE);
    sandbox.put_file("b", IDLE);
    let daemon = sandbox.up();
    for job in ["a", "b", "a", "a", "b"] {
        daemon.run(job);
    }
    let planned = daemon.send("POST /api/v1/jobs/a/runs", r#"{"at": "2090-01-01T00:00:00Z"}"#);
    assert_eq!(planned.status, 201);
    let names = |query: &str| -> Vec<String> {
        let list = daemon.get(&format!("/api/v1/runs{query}"));
        let runs = list["runs"].as_array().expect("a list");
        runs.iter().map(|run| format!("{}#{}", run["job"].as_str().expect("a job"), run["number"])).collect()
    };
    assert_eq!(names(""), ["a#4", "b#2", "a#3", "a#2", "b#1", "a#1"]);
    assert_eq!(names("?job=b"), ["b#2", "b#1"]);
    assert_eq!(names("?state=scheduled,failure"), ["a#4"]);
    assert_eq!(names("?since=2089-12-31T00:00:00Z"), ["a#4"]);
    let mut seen = Vec::new();
    let mut before = String::new();
    loop {
        let page = daemon.get(&format!("/api/v1/runs?limit=4{before}"));
        seen.extend(page["runs"].as_array().expect("a list").iter().map(|run| run["id"].clone()));
        let Some(next) = page["next"].as_str() else { break };
        before = format!("&before={next}");
    }
    let all = daemon.get("/api/v1/runs");
    let all: Vec<Value> = all["runs"].as_array().expect("a list").iter().map(|run| run["id"].clone()).collect();
    assert_eq!(seen, all, "pages contain each run once");
    for bad in ["?limit=0", "?limit=1001", "?state=done", "?since=noon", "?before=x", "?jobs=a"] {
        daemon.request(&format!("GET /api/v1/runs{bad}")).assert_problem(400, "bad_request");
    }
    daemon.request("GET /api/v1/runs?job=nobody").assert_problem(404, "not_found");
}
