//! Texts with unusual characters, and records that cannot be read.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::processes::eventually;
use super::sandbox::Sandbox;

/// Characters that a JSON text can contain and YAML cannot, that control terminals, or that cannot be seen.
const HIDDEN: &str = "a\u{0}\u{1b}[31m\u{7f}\u{85}\u{92}\u{9b}\u{2028}\u{202e}\u{200b}\u{feff}\u{fffe}\u{ffff}\nb";

#[test]
fn job_with_any_characters_survives_a_restart() {
    // In a job file they are escaped; on a command line they cannot be.
    let quoted: String = HIDDEN.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    let file = format!("description: \"{quoted}\"\nprogram: ['true']\nlabels: [\"{quoted}\"]\n");
    let sandbox = Sandbox::up("texts-restart", &[("file", &file)]);
    let word = HIDDEN.replace('\0', "");
    sandbox.done(&["add", "--description", &word, "typed", "triggered", "echo", &word]);
    sandbox.done(&["pause", "typed", "--why", &word]);
    let before = (sandbox.json(&["show", "file"]), sandbox.json(&["show", "typed"]));
    assert_eq!((&before.0["text"], &before.0["labels"]), (&json!(HIDDEN), &json!([HIDDEN])));
    assert_eq!((&before.1["definition"]["program"][1], &before.1["pause"]["why"]), (&json!(word), &json!(word)));
    // The YAML that is shown defines the same job.
    let yaml = before.0["yaml"].as_str().expect("a text");
    sandbox.put("copy.yaml", yaml);
    sandbox.done(&["add", "copy", "--file", "copy.yaml"]);
    assert_eq!(sandbox.json(&["show", "copy"])["definition"], before.0["definition"]);

    sandbox.end(Signal::TERM);
    sandbox.start();
    assert_eq!((sandbox.json(&["show", "file"]), sandbox.json(&["show", "typed"])), before);
    assert_eq!(sandbox.done(&["run", "typed", "--wait"]), format!("{word}\n"));
    assert_eq!(sandbox.json(&["runs", "typed"])[0]["state"], "success");
}

#[test]
fn hidden_characters_are_shown_escaped() {
    let sandbox = Sandbox::up("texts-shown", &[]);
    let text = "x\u{1b}]0;title\u{7}\u{9b}2J\u{202e}\u{200b}\n  last      typed#9 success";
    sandbox.done(&["add", "--description", text, "--label", text, "typed", "triggered", "echo", text]);
    sandbox.done(&["run", "typed", "--wait"]);
    sandbox.done(&["mark", "typed#1", "failure", "--why", text]);
    sandbox.done(&["pause", "typed", "--why", text]);
    sandbox.put(&format!("jobs/{}.yaml", text.replace(['/', '\n'], "")), "program: [");
    sandbox.run_command(&["reload"]);
    let shown = "x\\u{1b}]0;title\\u{7}\\u{9b}2J\\u{202e}\\u{200b}";
    let commands: [&[&str]; 5] = [&["show", "typed"], &["why", "typed"], &["list"], &["runs"], &["check", "jobs"]];
    for args in commands {
        let output = sandbox.run_command(args);
        let all = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
        assert!(all.contains(shown), "{args:?}: {all}");
        let is_hidden = |sign: char| sign.is_control() && sign != '\n' || "\u{202e}\u{200b}".contains(sign);
        assert!(!all.contains(is_hidden), "{args:?}: {all:?}");
        assert!(!all.lines().any(|line| line.trim_start().starts_with("last      typed#9")), "{args:?}: {all}");
    }
    assert_eq!(sandbox.json(&["show", "typed"])["text"], text, "JSON has the exact text");
    // Output is exact if it does not go to a terminal.
    assert_eq!(sandbox.done(&["logs", "typed#1"]), format!("{text}\n"));
}

/// On a terminal, colours of a program pass, and nothing else that could control it.
#[test]
fn output_on_a_terminal_passes_colours_only() {
    let program = "program: 'printf \"\\033[31mred\\033[0m \\033]0;x\\007 \\033[2J\\n\"'\n";
    let sandbox = Sandbox::up("texts-terminal", &[("talk", program)]);
    sandbox.run("talk");
    let on_terminal = |options: &str| {
        let plain = sandbox.command(&[]);
        let mut script = Command::new("script");
        script.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let command = format!("{} logs talk{options}", env!("CARGO_BIN_EXE_cronhold"));
        script.current_dir(sandbox.path("")).args(["-qec", &command, "/dev/null"]);
        String::from_utf8(script.output().expect("script is installed").stdout).expect("UTF-8")
    };
    assert_eq!(on_terminal("").trim_end(), "\u{1b}[31mred\u{1b}[0m \\u{1b}]0;x\\u{7} \\u{1b}[2J");
    assert_eq!(on_terminal(" --raw").trim_end(), "\u{1b}[31mred\u{1b}[0m \u{1b}]0;x\u{7} \u{1b}[2J");
}

#[test]
fn unreadable_job_is_named_everywhere_and_can_be_removed_or_replaced() {
    let sandbox = Sandbox::up("texts-unreadable", &[("good", "program: 'true'\nschedule: '@every 1s'\n")]);
    for name in ["bad", "worse"] {
        sandbox.done(&["add", "--description", "MARKED", name, "@every 1h", "true"]);
    }
    damage_marked(&sandbox);
    sandbox.start();

    eventually("health reports both", || {
        let health = health(&sandbox);
        let code = &health["problems"][0]["code"];
        health["ok"] == true && health["unreadable_records"] == 2 && code == "records_unreadable"
    });
    assert!(get(&sandbox, "/metrics").contains("\ncronhold_unreadable_records 2\n"));
    let list = sandbox.run_command(&["list"]);
    let warnings = String::from_utf8(list.stderr).expect("UTF-8");
    assert!(warnings.contains("cannot read job bad: ") && warnings.contains("cannot read job worse: "), "{warnings}");
    assert!(String::from_utf8_lossy(&list.stdout).contains("good"));
    let holes = sandbox.run_command(&["holes"]);
    assert_eq!(holes.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&holes.stderr).contains("cannot read job bad: "));
    for args in [&["show", "bad"][..], &["why", "bad"], &["run", "bad"]] {
        let output = sandbox.run_command(args);
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {error}");
        assert!(error.contains("cannot read job bad: ") && error.contains("`cronhold del bad`"), "{args:?}: {error}");
    }
    sandbox.done(&["del", "bad"]);
    sandbox.put("worse.yaml", "program: 'true'\n");
    sandbox.done(&["upd", "worse", "--file", "worse.yaml"]);
    sandbox.done(&["run", "worse", "--wait"]);
    assert_eq!(sandbox.done(&["list", "bad"]), "");
    eventually("nothing is unreadable", || health(&sandbox)["problems"] == json!([]));
    assert_eq!(sandbox.run_command(&["holes"]).status.code(), Some(0));
}

/// Stops the daemon, and damages all stored JSON texts that have the value `MARKED`.
fn damage_marked(sandbox: &Sandbox) {
    sandbox.end(Signal::TERM);
    // A copy has everything in one file, without a log that has checksums.
    sandbox.done(&["store", "backup", "copy.db"]);
    let mut bytes = fs::read(sandbox.path("copy.db")).expect("a copy");
    let marks: Vec<usize> =
        bytes.windows(8).enumerate().filter(|(_, part)| *part == b"\"MARKED\"").map(|(at, _)| at).collect();
    assert!(!marks.is_empty());
    marks.iter().for_each(|at| bytes[*at] = b'?');
    for log in ["home/cronhold.db-wal", "home/cronhold.db-shm"] {
        let _ = fs::remove_file(sandbox.path(log));
    }
    fs::write(sandbox.path("home/cronhold.db"), bytes).expect("written");
}

fn health(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&get(sandbox, "/health")).expect("JSON")
}

/// The body of the reply to a request.
fn get(sandbox: &Sandbox, path: &str) -> String {
    let address: Value =
        serde_json::from_slice(&fs::read(sandbox.path("home/address")).expect("an address")).expect("JSON");
    let host = address["url"].as_str().expect("a URL").trim_start_matches("http://").trim_end_matches('/');
    let token = fs::read_to_string(sandbox.path("home/token")).expect("a token");
    let mut wire = TcpStream::connect(host).expect("a daemon");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        token.trim()
    );
    wire.write_all(request.as_bytes()).expect("sent");
    let mut reply = String::new();
    wire.read_to_string(&mut reply).expect("a reply");
    reply.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

/// A run whose record was damaged while no daemon ran. The job starts nothing until an operator ends that run.
#[test]
fn unreadable_active_run_blocks_its_job_until_it_is_marked() {
    let sandbox = Sandbox::empty("texts-unreadable-run");
    let pid = sandbox.path("pid");
    let program = format!("program: echo $$ > {}; exec sleep 1000\n", pid.display());
    sandbox.put("jobs/job.yaml", &format!("{program}params: {{x: {{}}}}\noverlap: skip\nlock: true\n"));
    sandbox.start();
    sandbox.done(&["run", "job", "x=MARKED"]);
    sandbox.wait_for("job#1", "running");
    let id = sandbox.json(&["runs", "job#1"])[0]["id"].as_str().expect("an id").to_owned();
    damage_marked(&sandbox);
    let process = format!("/proc/{}", fs::read_to_string(&pid).expect("a pid").trim());
    sandbox.start();

    let mark = format!("`cronhold mark {id} error`");
    let listed = String::from_utf8(sandbox.run_command(&["runs", "job"]).stderr).expect("UTF-8");
    assert!(listed.contains(&mark), "{listed}");
    for args in [&["stop", "job"][..], &["stop", "job#1"], &["stop", &id]] {
        let output = sandbox.run_command(args);
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {error}");
        assert!(error.contains(&mark), "{args:?}: {error}");
    }
    assert_eq!(sandbox.run_command(&["run", "job", "x=1"]).status.code(), Some(1));
    assert_eq!(sandbox.json(&["runs", "job#2"])[0]["state"], "skipped");
    assert!(fs::exists(&process).expect("a directory"));

    sandbox.done(&["mark", &id, "error", "--why", "its record is lost"]);
    assert_eq!(sandbox.json(&["runs", &id])[0]["state"], "error");
    eventually("nothing is unreadable", || health(&sandbox)["problems"] == json!([]));
    eventually("its program is killed", || !fs::exists(&process).expect("a directory"));
    sandbox.done(&["run", "job", "x=2"]);
    sandbox.wait_for("job#4", "running");
}
