//! `coming`: what runs next across all jobs.

use super::sandbox::Sandbox;

#[test]
fn coming_lists_what_runs_next() {
    let jobs = [
        ("hourly", "program: 'true'\nschedule: 30 * * * *\n"),
        ("paused", "program: 'true'\nschedule: '* * * * *'\npaused: true\n"),
        ("off", "program: 'true'\nenabled: false\nschedule: '* * * * *'\n"),
        ("by-hand", "program: 'true'\n"),
    ];
    let sandbox = Sandbox::up("coming", &jobs);
    sandbox.done(&["run", "by-hand", "--at", "3h"]);
    let coming = sandbox.json(&["coming", "--for", "1d"]);
    let items = coming.as_array().expect("a list");
    assert_eq!(items.iter().filter(|item| item["job"] == "hourly").count(), 24, "{coming}");
    assert_eq!(items.iter().filter(|item| item["job"] == "by-hand" && item["run"].is_string()).count(), 1);
    assert_eq!(items.len(), 25, "{coming}");
    assert!(items.is_sorted_by_key(|item| item["due"].as_str().map(str::to_owned)), "{coming}");
    assert_eq!(items[0]["nominal"], items[0]["due"], "without jitter");
    assert_eq!(sandbox.json(&["coming"]).as_array().map(Vec::len), Some(1), "within an hour");
    let text = sandbox.done(&["coming", "--for", "1d", "-n", "2"]);
    assert!(text.contains("hourly") && text.lines().count() == 3, "{text}");
    assert_eq!(sandbox.run_command(&["coming", "--for", "soon"]).status.code(), Some(2));
}
