//! Whole files: valid ones are read, written and read again; invalid and unsupported ones show all their mistakes as
//! users see them. The expected texts are in `snapshots/`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cronhold_core::job::Feature;
use cronhold_jobfile::{JobRead, Options, Style, read_job, read_job_of_any_version, render, render_line, write_job};

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).expect("a text"))).collect()
}

/// A file that `read` accepts, written and read again.
fn assert_survives(read: fn(&str, &str, &Options<'_>) -> JobRead, name: &str, text: &str) {
    let first = read(name, text, &Options::default());
    let shown: Vec<String> = first.mistakes.iter().map(|mistake| render_line(mistake, text)).collect();
    assert!(shown.is_empty(), "{shown:#?}");
    let job = first.job.expect("a job, as there is no mistake");
    let written = format!("{:#}", write_job(&job));
    let again = read(name, &written, &Options::default());
    assert_eq!(again.mistakes, [], "{name}: {written}");
    assert_eq!(again.job, Some(job), "{name}: {written}");
}

#[test]
fn good_files_survive_writing_and_reading() {
    for (name, text) in files("good") {
        assert_survives(read_job, &name, &text);
    }
}

/// A file is rejected exactly if its job uses a feature that this version does not support.
#[test]
fn reader_and_job_agree_about_what_is_supported() {
    for (name, text) in files("good") {
        let refused = read_job(&name, &text, &Options::default()).mistakes;
        let messages: BTreeSet<String> = refused.into_iter().map(|mistake| mistake.message).collect();
        let job = read_job_of_any_version(&name, &text, &Options::default()).job.expect("a job");
        let expected: BTreeSet<String> = job.unsupported().into_iter().map(|feature| feature.message()).collect();
        assert_eq!(messages, expected, "{name}");
        assert!(messages.is_empty(), "{name}");
    }
}

#[test]
fn each_unsupported_feature_is_rejected_with_its_place() {
    let condition = |text: &str| format!("program: x\nconditions:\n  - {text}\n");
    let action = |text: &str| format!("program: x\non:\n  failure:\n    - {text}\n");
    for (feature, text, place) in [
        (Feature::HttpProgram, "program:\n  http: https://example.org\n".to_owned(), "2:3"),
        (
            Feature::RemoteProgram,
            "program: {remote: {start: 'https://x', poll: 'https://x', success: '1', failure: '0'}}".to_owned(),
            "1:11",
        ),
        (Feature::TaskProgram, "program: {task: {queue: a, class: B}}".to_owned(), "1:11"),
        (Feature::PluginProgram, "program: {plugin: {command: k8s}}".to_owned(), "1:11"),
        (Feature::FileCondition, condition("file: /ready"), "3:5"),
        (Feature::HttpCondition, condition("http: https://example.org"), "3:5"),
        (Feature::CommandCondition, condition("not: {command: test -e /stop}"), "3:11"),
        (Feature::PluginCondition, condition("plugin: {command: free-space}"), "3:5"),
        (Feature::Pool, condition("max_running: {count: 2, pool: database}"), "3:29"),
        (Feature::RunAction, action("run: other"), "4:7"),
        (Feature::WebhookAction, action("webhook: https://example.org"), "4:7"),
        (Feature::EmailAction, action("email: {to: ops@example.org}"), "4:7"),
        (Feature::CommandAction, action("command: page-me"), "4:7"),
        (Feature::PublishAction, action("publish: /alerts"), "4:7"),
        (Feature::Triggers, "program: x\ntriggers: [/prices]\n".to_owned(), "2:1"),
    ] {
        let read = read_job("job.yaml", &text, &Options::default());
        let lines: Vec<String> = read.mistakes.iter().map(|mistake| render_line(mistake, &text)).collect();
        let expected =
            (!feature.is_supported()).then(|| format!("job.yaml:{place}: {} ({})", feature.message(), feature.hint()));
        assert_eq!(lines, expected.into_iter().collect::<Vec<_>>(), "{text}");
        let stored =
            read_job_of_any_version("job", &text, &Options::default()).job.expect("a stored job is not refused");
        assert_eq!(stored.unsupported().contains(&feature), !feature.is_supported(), "{text}");
    }
}

#[test]
fn every_key_is_read_and_written() {
    let (_, text) = files("good").into_iter().find(|(name, _)| name == "prices.yaml").expect("the file");
    let job = read_job("prices.yaml", &text, &Options::default()).job.expect("a job");
    insta::assert_snapshot!("prices", format!("{:#}", write_job(&job)));
}

#[test]
fn bad_files_show_all_mistakes() {
    for (name, text) in files("bad") {
        let read = read_job(&name, &text, &Options::default());
        assert!(read.job.is_none() && !read.mistakes.is_empty(), "{name}");
        let shown: Vec<String> = read.mistakes.iter().map(|mistake| render(mistake, &text, Style::Plain)).collect();
        insta::assert_snapshot!(name.trim_end_matches(".yaml"), shown.join("\n\n"));
    }
}

#[test]
fn colours_appear_only_if_requested() {
    let text = "program: [";
    let mistake = &read_job("x.yaml", text, &Options::default()).mistakes[0];
    assert!(render(mistake, text, Style::Coloured).contains('\u{1b}'));
    assert!(!render(mistake, text, Style::Plain).contains('\u{1b}'));
}
