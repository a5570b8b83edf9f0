//! `cronhold up` that does not even begin. What it does when it does is in the tests of the daemon.

use super::Folder;

#[test]
fn refusals() {
    let folder = Folder::new("up").put("home/node-id", "nobody\n").put("foreign/cronhold.db", "not a database\n");
    let folder = folder.put("file", "").put("foreign/node-id", "0199a3c45e7870008f3b6d2a91c4e507\n");
    let text = folder.transcript(&[
        &["up"],
        &["up", "--data", "new", "--store", "redis://localhost"],
        &["up", "--data", "new", "--store", "new.db"],
        &["up", "--data", "new", "--timezone", "Berlin"],
        &["up", "--data", "new", "--jobs", "nowhere"],
        &["up", "--data", "new", "--quiet", "--verbose"],
        &["up", "--data", "home"],
        &["up", "--data", "file"],
        &["up", "--data", "foreign"],
    ]);
    insta::assert_snapshot!(text);
    assert!(!folder.0.join("new").exists(), "nothing is made before the command line is known to be right");
}
