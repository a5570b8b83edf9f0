//! Command lines that `cronhold up` refuses. The tests in `daemon` cover a daemon that starts.

use super::Folder;

/// A command line with more labels than a node can have.
fn many_labels() -> Vec<&'static str> {
    let labels: Vec<&str> = "abcdefghijklmnopqrstuvwxyzABCDEFG".split("").filter(|label| !label.is_empty()).collect();
    ["up", "--data", "new"].into_iter().chain(labels.into_iter().flat_map(|label| ["--label", label])).collect()
}

#[test]
fn up_refuses_invalid_options() {
    let folder = Folder::new("up").put("home/node-id", "nobody\n").put("foreign/cronhold.db", "not a database\n");
    let folder = folder.put("file", "").put("foreign/node-id", "0199a3c45e7870008f3b6d2a91c4e507\n");
    let text = folder.transcript(&[
        &["up"],
        &["up", "--data", "new", "--store", "postgres://localhost"],
        &["up", "--data", "new", "--store", "new.db"],
        &["up", "--data", "new", "--timezone", "Berlin"],
        &["up", "--data", "new", "--jobs", "nowhere"],
        &["up", "--data", "new", "--quiet", "--verbose"],
        &["up", "--data", "new", "--log", "dbug"],
        &["up", "--data", "new", "--label", ""],
        &["up", "--data", "new", "--label", "gpu", "--label", "rack 7"],
        &["up", "--data", "new", "--label", &"x".repeat(65)],
        &many_labels(),
        &["up", "--data", "home"],
        &["up", "--data", "file"],
        &["up", "--data", "foreign"],
    ]);
    insta::assert_snapshot!(text);
    assert!(!folder.0.join("new").exists(), "an invalid command line creates nothing");
}
