//! Applies every rule to this workspace. A failure lists each finding with its place and what to do.

use cronhold_tidy::{
    CargoMetadata, Finding, RustFile, SourceTree, TextFile, calls, crate_edges, dependencies, documents, lengths,
    licences, names, opening, promises, report, texts,
};

fn tree() -> SourceTree {
    SourceTree::read().expect("the workspace can be read")
}

fn rust_files() -> Vec<RustFile> {
    tree().ending(".rs").map(RustFile::new).collect()
}

/// Files below `crates/`: the product, its tests, benchmarks and examples.
fn crate_files() -> Vec<RustFile> {
    rust_files().into_iter().filter(|file| file.crate_folder().is_some()).collect()
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
fn crates_depend_only_on_allowed_crates() {
    assert_none(crate_edges::check(&metadata()));
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
fn large_crates_have_one_version() {
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
fn files_start_with_a_description() {
    assert_none(rust_files().iter().filter_map(opening::check));
}

#[test]
fn crates_make_no_banned_calls() {
    assert_none(crate_files().iter().flat_map(calls::check));
}

#[test]
fn names_carry_meaning() {
    assert_none(rust_files().iter().flat_map(names::check));
}

#[test]
fn type_names_are_unique() {
    assert_none(names::check_types(&crate_files()));
}

#[test]
fn texts_contain_no_machine_paths() {
    assert_none(tree().files.iter().flat_map(texts::check));
}

#[test]
fn no_work_is_postponed() {
    assert_none(rust_files().iter().flat_map(texts::check_comments));
    let tree = tree();
    let is_prose = |file: &&TextFile| [".md", ".toml", ".yaml", ".yml"].iter().any(|end| file.path.ends_with(end));
    assert_none(tree.files.iter().filter(is_prose).flat_map(texts::check_later));
}

#[test]
fn links_have_targets() {
    assert_none(documents::check_links(&tree().files));
}

#[test]
fn documents_are_reachable() {
    assert_none(documents::check_reach(&tree().files));
}

#[test]
fn change_log_has_an_unreleased_section() {
    assert_none(documents::check_changelog(&tree().files));
}

#[test]
fn guarantees_about_failures_cite_tests() {
    let tree = tree();
    let document = tree.files.iter().find(|file| file.path == promises::DOCUMENT).expect("docs/guarantees.md exists");
    assert_none(promises::check(document, &crate_files()));
}

#[test]
fn tests_that_other_documents_cite_exist() {
    let tree = tree();
    for path in promises::CITING {
        let document = tree.files.iter().find(|file| file.path == *path).expect("the document exists");
        assert_none(promises::check(document, &crate_files()));
    }
}
