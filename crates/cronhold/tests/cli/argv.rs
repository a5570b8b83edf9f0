//! The command of `add` is an argument list: `add` passes each argument unchanged, with or without `--`, and without a
//! shell.

use super::sandbox::Sandbox;

/// A program that writes each of its arguments on its own line, in angle brackets.
const EACH: &str = "for word in \"$@\"; do printf '<%s>\\n' \"$word\"; done";

#[test]
fn add_passes_each_argument_unchanged() {
    let sandbox = Sandbox::up("argv", &[]);
    let words = [
        "two words",
        "",
        "a'b",
        "a\"b",
        "$HOME",
        "`id`",
        "$(id)",
        "*",
        "~",
        ";",
        "|",
        ">x",
        "\\n",
        "-x",
        "--long",
        "-o",
        "json",
        "--",
        "--help",
        "--data",
        "elsewhere",
        "ä 'ß'",
        "#",
        "!",
        "a=b",
        "%d",
        "two\nlines",
    ];
    let program = ["/bin/sh", "-c", EACH, "each"];
    let plain = [&["add", "plain", "triggered"], &program[..], &words].concat();
    let dashed = [&["add", "dashed", "triggered", "--"], &program[..], &words].concat();
    let typed: Vec<&str> = [&program[..], &words].concat();
    let expected: String = words.iter().map(|word| format!("<{word}>\n")).collect();
    for (name, line) in [("plain", plain), ("dashed", dashed)] {
        sandbox.done(&line);
        assert_eq!(sandbox.json(&["show", name])["definition"]["program"], serde_json::json!(typed), "{name}");
        assert_eq!(sandbox.done(&["run", name, "--wait"]), expected, "{name}");
    }
}

/// A program whose name looks like a flag, set with `add` and with `upd`.
#[test]
fn program_named_like_a_flag_is_accepted() {
    let sandbox = Sandbox::up("odd", &[]);
    for line in
        [["add", "odd", "triggered", "--", "--odd", "-f"].as_slice(), &["upd", "odd", "--", "-f", "--", "--odd"]]
    {
        sandbox.done(line);
    }
    assert_eq!(sandbox.json(&["show", "odd"])["definition"]["program"], serde_json::json!(["-f", "--", "--odd"]));
    let output = sandbox.run_command(&["run", "odd", "--wait"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(error.starts_with("odd#1 error: "), "{error}");
}
