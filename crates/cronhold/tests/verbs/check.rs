//! `cronhold check`.

use super::{Folder, transcript};

#[test]
fn check_reports_mistakes_in_directories() {
    let text = transcript(&[
        &["check", "examples/jobs"],
        &["check", "crates/cronhold/tests/verbs/bad"],
        &["check", "crates/cronhold/tests/verbs/bad", "-o", "json"],
        &["check", "crates/nowhere"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn check_reports_files_without_a_job() {
    let folder = Folder::new("check").put("empty/README.md", "Nothing yet.\n");
    let folder = folder.put("bad/bytes.yaml", b"program: echo\ndescription: caf\xe9\n").put("bad/empty.yaml", "");
    let folder = folder.put("bad/large.yaml", "#".repeat((1 << 20) + 1)).put("one.yaml", "program: echo\n");
    std::os::unix::fs::symlink("nowhere", folder.0.join("bad/link.yaml")).expect("a link");
    let text = folder.transcript(&[&["check", "empty"], &["check", "bad"], &["check", "one.yaml"]]);
    insta::assert_snapshot!(text);
}
