//! Jobs from the command line: `add`, `upd`, `del`, `list`, `show`.

use super::sandbox::Sandbox;

const NIGHTLY: &str = "description: Keeps a copy.\nlabels: [nightly]\nschedule: {daily: '02:30', timezone: Europe/Berlin}\n\
                       program: ['true']\n";

#[test]
fn add() {
    let sandbox = Sandbox::up("add", &[("backup/nightly", NIGHTLY)]);
    sandbox.put("prices.yaml", "schedule: 0 18 * * Mon-Fri\nprogram: [echo, prices]\n");
    sandbox.put("wrong.yaml", "schedule: 0 25 * * *\nprogam: echo\n");
    let text = sandbox.transcript(&[
        &["add", "hello", "0 3 1 1 *", "--", "echo", "hi"],
        &["add", "hello", "@daily", "echo", "again"],
        &["add", "-o", "json", "--label", "a", "--label", "b", "--timeout", "90m", "bye", "@yearly", "echo", "bye"],
        &["add", "-o", "yaml", "--paused", "--shell", "tidy", "triggered", "ls | wc -l"],
        &["add", "--timezone", "Europe/Berlin", "--env", "A=1", "zoned", "30 2 * * *", "env"],
        &["add", "reports/prices", "-f", "prices.yaml"],
        &["add", "reports/prices", "-f", "prices.yaml"],
        &["add", "reports/wrong", "-f", "wrong.yaml"],
        &["add", "reports/none", "-f", "none.yaml"],
        &["add", "backup/nightly", "@daily", "true"],
        &["add", "no//name", "@daily", "true"],
        &["add", "late", "0 25 * * *", "true"],
        &["add", "late", "@dialy", "true"],
        &["add", "--timezone", "Berlin", "late", "@daily", "true"],
        &["add", "--timeout", "long", "late", "@daily", "true"],
        &["add", "--env", "A", "late", "@daily", "true"],
        &["add", "--overlap", "never", "late", "@daily", "true"],
        &["add", "late", "@daily", "echo", "{{ dat }}"],
        &["add", "late", "@daily", "--"],
        &["add", "late", "@daily"],
        &["add"],
        &["list"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn upd() {
    let sandbox = Sandbox::up("upd", &[("backup/nightly", NIGHTLY)]);
    sandbox.put("prices.yaml", "schedule: 0 18 * * Mon-Fri\nprogram: [echo, prices]\n");
    sandbox.done(&["add", "--label", "a", "--timeout", "5m", "hello", "0 3 1 1 *", "echo", "hi"]);
    let text = sandbox.transcript(&[
        &["upd", "hello", "--schedule", "0 4 1 1 *"],
        &["upd", "hello", "--unset", "timeout", "--label", "b", "-o", "json", "--", "echo", "-n", "ho"],
        &["upd", "hello", "--program", "echo ho | cat"],
        &["upd", "hello", "-f", "prices.yaml"],
        &["show", "hello"],
        &["upd", "helo", "--schedule", "@daily"],
        &["upd", "helo", "-f", "prices.yaml"],
        &["upd", "backup/nightly", "--timeout", "1h"],
        &["upd", "hello"],
        &["upd", "hello", "--unset", "lock"],
        &["upd", "hello", "--timezone", "Europe/Berlin"],
        &["upd", "hello", "--schedule", "0 25 * * *"],
        &["upd", "hello", "echo"],
        &["upd"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn del() {
    let sandbox = Sandbox::up("del", &[("backup/nightly", NIGHTLY)]);
    for name in ["one", "two", "three", "four"] {
        sandbox.done(&["add", name, "triggered", "true"]);
    }
    let text = sandbox.transcript(&[
        &["del", "one"],
        &["del", "one"],
        &["del", "fuor", "two"],
        &["del", "three", "thre", "-o", "json"],
        &["del", "backup/nightly"],
        &["del"],
        &["list"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn list() {
    let sandbox = Sandbox::up("list", &[]);
    let before = sandbox.shown(&["list"]);
    sandbox.put("jobs/backup/nightly.yaml", NIGHTLY);
    sandbox.put("jobs/wrong.yaml", "program: ['true']\nprogam: x\n");
    sandbox.run_command(&["reload"]);
    sandbox.done(&["add", "hello", "0 3 1 1 *", "true"]);
    sandbox.done(&["add", "fails", "triggered", "false"]);
    sandbox.run("fails");
    sandbox.done(&["pause", "hello", "--why", "tea"]);
    sandbox.done(&["pause", "all", "--why", "the move"]);
    let after = sandbox.transcript(&[
        &["list"],
        &["list", "*/*"],
        &["list", "--label", "nightly", "--timezone", "Europe/Berlin"],
        &["list", "wr?ng", "-o", "json"],
        &["list", "fails", "-o", "yaml"],
        &["list", "nothing"],
        &["list", "nothing", "-o", "json"],
        &["list", "--timezone", "Berlin"],
        &["list", "-o", "xml"],
    ]);
    insta::assert_snapshot!(format!("{before}\n{after}"));
}

#[test]
fn show() {
    let sandbox = Sandbox::up("show", &[("backup/nightly", NIGHTLY), ("wrong", "program: ['true']\nprogam: x\n")]);
    sandbox.done(&["add", "fails", "triggered", "sh", "-c", "exit 3"]);
    sandbox.run("fails");
    sandbox.done(&["pause", "fails", "--why", "tea"]);
    let text = sandbox.transcript(&[
        &["show", "backup/nightly"],
        &["show", "fails"],
        &["show", "wrong"],
        &["show", "wrong", "-o", "json"],
        &["show", "backup/nightly", "-o", "json"],
        &["show", "fails", "-o", "yaml"],
        &["show", "nightly"],
        &["show", "backup/nihgtly"],
        &["show", "nothing-like-it"],
        &["show", "no//name"],
        &["show"],
    ]);
    insta::assert_snapshot!(text);
}
