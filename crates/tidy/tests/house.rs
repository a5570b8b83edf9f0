//! Applies every rule of the house to this workspace. A failure lists each place with what to do.

use cronhold_tidy::{
    CargoMetadata, Finding, RustFile, SourceTree, TextFile, calls, dependencies, documents, lengths, licences, names,
    opening, promises, report, rooms, texts,
};

fn tree() -> SourceTree {
    SourceTree::read().expect("the workspace can be read")
}

fn rust_files() -> Vec<RustFile> {
    tree().ending(".rs").map(RustFile::new).collect()
}

/// Files below `crates/`: what is shipped, its tests, benchmarks and examples.
fn crate_files() -> Vec<RustFile> {
    rust_files().into_iter().filter(|file| file.room().is_some()).collect()
}

fn metadata() -> CargoMetadata {
    CargoMetadata::read(&tree().root).expect("cargo knows the workspace")
}

#[track_caller]
fn assert_none(findings: impl IntoIterator<Item = Finding>) {
    let findings: Vec<Finding> = findings.into_iter().collect();
    assert!(findings.is_empty(), "\n{}", report(&findings));
}

#[test]
fn crates_use_only_what_is_below_them() {
    assert_none(rooms::check(&metadata()));
}

#[test]
fn licences_are_allowed() {
    assert_none(licences::check(&metadata()));
}

#[test]
fn banned_crates_are_absent() {
    assert_none(dependencies::check_bans(&metadata()));
}

#[test]
fn large_crates_are_there_once() {
    assert_none(dependencies::check_twice(&metadata()));
}

#[test]
fn crates_come_from_the_public_registry() {
    assert_none(dependencies::check_sources(&metadata()));
}

#[test]
fn files_are_short() {
    assert_none(lengths::check_files(&rust_files(), lengths::LONG_FILES));
}

#[test]
fn functions_are_short() {
    assert_none(lengths::check_functions(&rust_files(), lengths::LONG_FUNCTIONS));
}

#[test]
fn files_say_what_they_are() {
    assert_none(rust_files().iter().filter_map(opening::check));
}

#[test]
fn rooms_make_no_banned_calls() {
    assert_none(crate_files().iter().flat_map(calls::check));
}

#[test]
fn names_say_something() {
    assert_none(rust_files().iter().flat_map(names::check));
}

#[test]
fn a_type_name_exists_once() {
    assert_none(names::check_types(&crate_files()));
}

#[test]
fn texts_name_no_machine() {
    assert_none(tree().files.iter().flat_map(texts::check));
}

#[test]
fn nothing_is_put_off() {
    assert_none(rust_files().iter().flat_map(texts::check_comments));
    let tree = tree();
    let is_prose = |file: &&TextFile| [".md", ".toml", ".yaml", ".yml"].iter().any(|end| file.path.ends_with(end));
    assert_none(tree.files.iter().filter(is_prose).flat_map(texts::check_later));
}

#[test]
fn links_lead_somewhere() {
    assert_none(documents::check_links(&tree().files));
}

#[test]
fn documents_can_be_reached() {
    assert_none(documents::check_reach(&tree().files));
}

#[test]
fn the_change_log_has_a_place_for_what_comes() {
    assert_none(documents::check_changelog(&tree().files));
}

#[test]
fn promises_about_failures_are_shown_by_tests() {
    let tree = tree();
    let document = tree.files.iter().find(|file| file.path == promises::DOCUMENT).expect("the promises");
    assert_none(promises::check(document, &crate_files()));
}
