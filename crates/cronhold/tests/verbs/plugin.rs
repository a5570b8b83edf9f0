//! `cronhold plugin check`.

use std::os::unix::fs::PermissionsExt;

use super::Folder;

/// A folder with executable scripts.
fn scripts(name: &str, scripts: &[(&str, &str)]) -> Folder {
    let mut folder = Folder::new(name);
    for (file, body) in scripts {
        folder = folder.put(file, format!("#!/bin/sh\nread -r message\n{body}\n"));
        let path = folder.0.join(file);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a file");
    }
    folder
}

/// The transcript without what differs from run to run.
fn check(folder: &Folder, args: &[&str]) -> String {
    let text = folder.transcript(&[&[&["plugin", "check"], args].concat()]);
    let is_stable = |line: &&str| !line.trim_start().starts_with("started");
    text.lines().filter(is_stable).collect::<Vec<_>>().join("\n")
}

const DONE: &str = r#"echo '{"type":"result","outcome":"success","message":"3 rows"}'"#;

#[test]
fn faultless_plugin_is_shown_with_its_messages() {
    let body = format!(
        r#"trap 'echo "{{\"type\":\"result\",\"outcome\":\"failure\",\"message\":\"stopped\"}}"; exit 0' TERM
printf '%s\n' '{{"type":"output","text":"one\ntwo"}}'; echo '{{"type":"progress","percent":50,"text":"half"}}'
case $message in *'"wait":"yes"'*) exec 2>/dev/null; while :; do sleep 0.05; done;; esac
{DONE}"#
    );
    let folder = scripts("plugin-fine", &[("fine.sh", &body)]);
    let text = check(&folder, &["--once", "--", "./fine.sh"]);
    insta::assert_snapshot!("plugin_fine", text);
    let text = check(&folder, &["--with", "wait=yes", "--timeout", "3s", "--", "./fine.sh"]);
    insta::assert_snapshot!("plugin_stopped", text);
}

#[test]
fn mistakes_of_plugins_are_shown_with_their_lines() {
    let folder = scripts(
        "plugin-mistakes",
        &[
            ("noise.sh", &format!("echo starting; echo '{{\"type\":\"progress\"}}'; {DONE}; {DONE}; exit 3")),
            ("deaf.sh", "trap '' TERM; echo '{\"type\":\"output\",\"text\":\"deaf\"}'; while :; do sleep 0.05; done"),
            ("silent.sh", "echo oops >&2; exit 3"),
            ("quick.sh", DONE),
        ],
    );
    let cases: [&[&str]; 7] = [
        &["--once", "--", "./noise.sh"],
        &["--timeout", "3s", "--grace", "300ms", "--", "./deaf.sh"],
        &["--once", "--", "./silent.sh"],
        &["--condition", "--", "./silent.sh"],
        &["--condition", "--", "./quick.sh"],
        &["--", "./quick.sh", "argument"],
        &["--", "./missing.sh"],
    ];
    let text: Vec<String> = cases.iter().map(|args| check(&folder, args)).collect();
    insta::assert_snapshot!("plugin_mistakes", text.join("\n\n"));
}

#[test]
fn check_of_a_plugin_is_a_document_as_json() {
    let folder = scripts("plugin-json", &[("noise.sh", &format!("echo noise; {DONE}"))]);
    let text = folder.transcript(&[&["plugin", "check", "--once", "-o", "json", "--", "./noise.sh"]]);
    let begin = text.find('{').expect("a document");
    let end = text.rfind('}').expect("a document");
    let document: serde_json::Value = serde_json::from_str(&text[begin..=end]).expect("JSON");
    let kinds: Vec<&str> = document["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|event| event["event"].as_str().expect("a kind"))
        .collect();
    assert_eq!(kinds, ["started", "malformed", "message", "ended"]);
    assert_eq!((&document["problems"], &document["events"][1]["line"]), (&1.into(), &1.into()));
    assert!(text.ends_with("exit 1\n"), "{text}");
}
