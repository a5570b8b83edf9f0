//! Guarantees about failures must be tested. Each cell of the tables in the failure section of `docs/guarantees.md`
//! cites a test, and every test that a table of that document cites must exist.
//!
//! A test is cited as `crate::module::test`: the folder below `crates/`, the modules of the file (`main` of an
//! integration test is left out), and the function. A case of a suite is a test of the file that runs the suite.

use std::collections::BTreeSet;

use crate::{Finding, RustFile, TextFile};

const RULE: &str = "promises";

/// The document that lists the guarantees.
pub const DOCUMENT: &str = "docs/guarantees.md";

/// Documents whose tables cite tests, but need not.
pub const CITING: &[&str] = &["docs/from-sidejob.md"];

/// The section in which every cell must cite a test.
const SECTION: &str = "## When things fail";

/// Suites: the macro that generates a test for each case, and the folder with the cases.
const SUITES: &[(&str, &str)] = &[
    ("cronhold_store::conformance_tests!(", "crates/store/src/conformance/"),
    ("cronhold_store::task_conformance_tests!(", "crates/store/src/conformance/tasks/"),
    ("cronhold_store::trouble_tests!(", "crates/store/src/troubles/"),
];

/// Prefix of a cell that needs no test.
const NO_PROMISE: &str = "does not arise";

#[derive(Debug, PartialEq, Eq)]
struct PromiseRow<'a> {
    line: usize,
    cells: Vec<&'a str>,
    /// Whether every cell except the first must cite a test.
    is_strict: bool,
}

/// Reports cited tests that do not exist, and cells that must cite a test and do not.
pub fn check(document: &TextFile, files: &[RustFile]) -> Vec<Finding> {
    let mut known: BTreeSet<String> = files.iter().flat_map(tests).collect();
    known.extend(SUITES.iter().flat_map(|(invocation, folder)| suite_tests(files, invocation, folder)));
    let mut findings = Vec::new();
    let rows = rows(&document.text);
    if !rows.iter().any(|row| row.is_strict) && !CITING.contains(&document.path.as_str()) {
        let message = format!("needs a table in a section `{SECTION}`");
        findings.push(Finding::whole(&document.path, RULE, message));
    }
    for row in rows {
        let mut find = |message: String| findings.push(Finding::at(&document.path, row.line, RULE, message));
        for (index, cell) in row.cells.iter().enumerate() {
            let names: Vec<&str> = names(cell).collect();
            if row.is_strict && index > 0 && names.is_empty() && !cell.starts_with(NO_PROMISE) {
                find(format!("no test covers `{cell}`; cite one, or start with `{NO_PROMISE}`"));
            }
            for name in names.into_iter().filter(|name| !known.contains(*name)) {
                find(format!("test `{name}` does not exist; cite one as `crate::module::test`"));
            }
        }
    }
    findings
}

/// The rows of all tables, without headers.
fn rows(text: &str) -> Vec<PromiseRow<'_>> {
    let mut rows = Vec::new();
    let mut is_strict = false;
    let mut is_body = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("## ") {
            is_strict = line.trim_end() == SECTION;
        }
        let Some(inner) = line.trim().strip_prefix('|') else {
            is_body = false;
            continue;
        };
        let cells: Vec<&str> = inner.trim_end_matches('|').split('|').map(str::trim).collect();
        if cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|sign| matches!(sign, '-' | ':'))) {
            is_body = true;
        } else if is_body {
            rows.push(PromiseRow { line: index + 1, cells, is_strict });
        }
    }
    rows
}

/// Tests that a cell cites: code that contains `::`.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).filter(|code| code.contains("::"))
}

/// Full names of all tests in a file.
fn tests(file: &RustFile) -> Vec<String> {
    let Some(modules) = modules(&file.path) else { return Vec::new() };
    let mut tests = Vec::new();
    let mut inner: Option<&str> = None;
    let mut is_marked = false;
    // A macro that generates tests from table rows contains `fn $name`; the rows then name the tests.
    let has_table = file.code.windows(2).any(|pair| pair[0].contains("#[test]") && pair[1].contains("fn $"));
    for line in &file.code {
        if let Some(name) = row(line).filter(|_| has_table) {
            tests.push(format!("{modules}::{name}"));
        }
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            inner = Some(name);
        } else if line.starts_with('}') {
            inner = None;
        }
        is_marked |= line.contains("#[test]");
        let Some(name) = function(line) else { continue };
        if std::mem::take(&mut is_marked) {
            let inner = inner.map_or_else(String::new, |inner| format!("{inner}::"));
            tests.push(format!("{modules}::{inner}{name}"));
        }
    }
    tests
}

/// Full names of the tests of all files that run a suite.
fn suite_tests(files: &[RustFile], invocation: &str, folder: &str) -> Vec<String> {
    let of_suite = files.iter().filter(|file| file.path.starts_with(folder));
    let cases: Vec<&str> = of_suite.flat_map(|file| file.code.iter().filter_map(|line| case(line))).collect();
    let runs_suite = |file: &&RustFile| file.code.iter().any(|line| line.starts_with(invocation));
    let mut tests = Vec::new();
    for modules in files.iter().filter(runs_suite).filter_map(|file| modules(&file.path)) {
        tests.extend(cases.iter().map(|case| format!("{modules}::{case}")));
    }
    tests
}

/// The name of the case of a suite that starts on this line.
fn case(line: &str) -> Option<&str> {
    let (name, parameter) = line.strip_prefix("pub fn ")?.split_once('(')?;
    parameter.contains(": &dyn ").then_some(name)
}

/// The name in a table row of the form `name: …;`.
fn row(line: &str) -> Option<&str> {
    let (name, rest) = line.trim_start().split_once(": ")?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_name && line.starts_with(' ') && rest.ends_with(';')).then_some(name)
}

/// The name of the function that starts on this line.
fn function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let is_alone = before.is_empty() || before.ends_with(' ');
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    (is_alone && end > 0).then(|| &rest[..end])
}

/// The crate folder and the modules of a file, joined with `::`.
fn modules(path: &str) -> Option<String> {
    let (folder, rest) = path.strip_prefix("crates/")?.strip_suffix(".rs")?.split_once('/')?;
    let inside = rest.strip_prefix("src/").or_else(|| rest.strip_prefix("tests/"))?;
    let mut parts: Vec<&str> = std::iter::once(folder).chain(inside.split('/')).collect();
    parts.pop_if(|last| matches!(*last, "lib" | "main" | "mod"));
    Some(parts.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(path: &str, text: &str) -> RustFile {
        RustFile::new(&TextFile { path: path.to_owned(), text: text.to_owned() })
    }

    fn found(document: &str) -> Vec<(usize, String)> {
        let files = [
            rust("crates/a-b/tests/c/main.rs", "#[test]\nfn d() {}\nfn no_test() {}\n"),
            rust("crates/e/src/f.rs", "fn g() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn h() {}\n}\n"),
            rust("crates/e/tests/m.rs", "#[test]\n    fn $name() {\n}\nrows! {\n    n: 1 on 2;\n}\n"),
            rust("crates/e/tests/o.rs", "rows! {\n    n: 1 on 2;\n}\n"),
            rust("crates/store/src/troubles/q.rs", "pub fn r(servers: &dyn S) {\n}\npub fn s() {}\n"),
            rust("crates/e/tests/p.rs", "cronhold_store::trouble_tests!(make);\n"),
            rust("crates/e/tests/i/j.rs", "all! {\n    #[test] fn k: 1 => 2;\n}\n// #[test] fn l\nfn l() {}\n"),
        ];
        let document = TextFile { path: DOCUMENT.to_owned(), text: document.to_owned() };
        check(&document, &files).into_iter().map(|finding| (finding.line, finding.message)).collect()
    }

    fn in_section(cell: &str) -> Vec<(usize, String)> {
        found(&format!("## When things fail\n\n| fault | store |\n|---|:--|\n| a | {cell}\n"))
    }

    #[test]
    fn tests_are_cited_by_crate_modules_and_name() {
        for name in ["a-b::c::d", "e::f::tests::h", "e::i::j::k", "e::m::n", "e::p::r"] {
            assert_eq!(in_section(&format!("shown, `{name}` |")), [], "{name}");
        }
        for name in
            ["a-b::d", "a-b::c::no_test", "e::f::h", "e::f::g", "e::i::j::l", "e::o::n", "d::d", "e::p::s", "e::m::r"]
        {
            let found = in_section(&format!("`a-b::c::d` and `{name}` |"));
            assert!(matches!(&found[..], [(5, message)] if message.contains(name)), "{name}: {found:?}");
        }
    }

    #[test]
    fn every_cell_of_the_section_must_cite_a_test() {
        assert_eq!(in_section("does not arise: there is one node |"), []);
        for cell in ["it works |", "`code` |", "|"] {
            let found = in_section(cell);
            assert!(matches!(&found[..], [(5, message)] if message.contains("no test covers")), "{cell}: {found:?}");
        }
    }

    #[test]
    fn section_is_required_and_other_tables_are_optional() {
        let table = "| a | b |\n|---|---|\n| c | d |\n";
        assert_eq!(found(table).len(), 1, "no section");
        let strict = "## When things fail\n| a | b |\n|---|---|\n| c | `a-b::c::d` |\n";
        assert_eq!(found(&format!("{table}{strict}")), []);
        assert_eq!(found(&format!("{strict}\n## More\n\n{table}")), []);
        assert_eq!(found(&format!("{strict}\n## More\n\n{table}| `e::f` | |\n")).len(), 1, "a name is a name anywhere");
    }
}
