//! Whole files: good ones are read, written and read again; bad ones show all their mistakes as
//! people see them. The pictures are in `snapshots/`.

use std::fs;
use std::path::{Path, PathBuf};

use cronhold_jobfile::{Options, Style, read_job, render, render_line, write_job};

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).expect("a text"))).collect()
}

#[test]
fn good_files_survive_writing_and_reading() {
    for (name, text) in files("good") {
        let read = read_job(&name, &text, &Options::default());
        let shown: Vec<String> = read.mistakes.iter().map(|mistake| render_line(mistake, &text)).collect();
        assert!(shown.is_empty(), "{shown:#?}");
        let job = read.job.expect("a job, as there is no mistake");
        let written = format!("{:#}", write_job(&job));
        let again = read_job(&name, &written, &Options::default());
        assert_eq!(again.mistakes, [], "{name}: {written}");
        assert_eq!(again.job, Some(job), "{name}: {written}");
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
fn colours_are_asked_for() {
    let text = "program: [";
    let mistake = &read_job("x.yaml", text, &Options::default()).mistakes[0];
    assert!(render(mistake, text, Style::Coloured).contains('\u{1b}'));
    assert!(!render(mistake, text, Style::Plain).contains('\u{1b}'));
}
