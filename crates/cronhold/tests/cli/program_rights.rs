//! What programs of runs may do when they call `cronhold`.

use super::sandbox::Sandbox;

/// Calls commands and prints their exit codes. The last one clears its environment and leaves its session.
const CALLS: &str = r#"
call() { "$@" > /dev/null 2>&1; echo "$?"; }
echo list $(call BINARY list)
echo pause $(call BINARY pause other --why test)
echo run $(call BINARY run other)
echo add $(call BINARY add added @daily -- true)
echo token $(call BINARY token link)
echo hidden $(call env -i CRONHOLD_DATA="$CRONHOLD_DATA" setsid -w BINARY add hidden @daily -- true)
"#;

fn sandbox(name: &str, options: &[&str]) -> Sandbox {
    let sandbox = Sandbox::empty(name);
    let indented = CALLS.replace("BINARY", env!("CARGO_BIN_EXE_cronhold")).replace('\n', "\n  ");
    sandbox.put("jobs/caller.yaml", &format!("program: |{indented}\n"));
    sandbox.put("jobs/other.yaml", "program: 'true'\n");
    sandbox.start_with(options);
    sandbox
}

#[test]
fn programs_have_the_role_that_the_daemon_gives_them() {
    for (role, options, expected) in [
        ("none", &["--programs", "none"][..], "list 1\npause 1\nrun 1\nadd 1\ntoken 1\nhidden 1\n"),
        ("viewer", &["--programs", "viewer"], "list 0\npause 1\nrun 1\nadd 1\ntoken 1\nhidden 1\n"),
        ("default", &[], "list 0\npause 0\nrun 0\nadd 1\ntoken 1\nhidden 1\n"),
        ("admin", &["--programs", "admin"], "list 0\npause 0\nrun 0\nadd 0\ntoken 0\nhidden 0\n"),
    ] {
        let sandbox = sandbox(&format!("rights-{role}"), options);
        sandbox.done(&["run", "caller", "--wait"]);
        assert_eq!(sandbox.done(&["logs", "caller"]), expected, "{role}");
        // A person has all rights.
        sandbox.done(&["add", "by-hand", "@daily", "--", "true"]);
        sandbox.done(&["token", "link"]);
    }
}

#[test]
fn changes_by_a_program_name_its_run() {
    let sandbox = sandbox("rights-actor", &[]);
    sandbox.done(&["run", "caller", "--wait"]);
    sandbox.wait_for("other#1", "success");
    assert_eq!(sandbox.json(&["show", "other"])["pause"]["by"], "run caller#1");
    let why = sandbox.done(&["why", "other#1"]);
    assert!(why.contains("run caller#1"), "{why}");
}

#[test]
fn unknown_role_is_refused() {
    let sandbox = Sandbox::empty("rights-unknown");
    let output = sandbox.run_command(&["up", "--programs", "root"]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}
