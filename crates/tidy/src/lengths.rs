//! Maximum lengths of files and functions. Exceptions are listed here with their lengths, and the lists may only
//! shrink: an exception that grew or that is no longer needed is a finding too.

use crate::{Finding, RustFile};

const FILE_RULE: &str = "file length";
const FUNCTION_RULE: &str = "function length";

/// Maximum length of a Rust file, in lines.
pub const FILE_LINES_MAX: usize = 600;

/// Maximum length of a function, in lines from `fn` to its closing brace.
pub const FUNCTION_LINES_MAX: usize = 70;

/// Exceptions for files: path and number of lines.
pub const LONG_FILES: &[(&str, usize)] = &[];

/// Exceptions for functions: path, name and number of lines.
pub const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

/// A function with its length.
#[derive(Debug, PartialEq, Eq)]
pub struct FunctionLength {
    /// Line of its `fn`, from 1.
    pub line: usize,
    pub name: String,
    /// Lines from `fn` to its closing brace.
    pub lines: usize,
}

/// Reports files that are too long, and entries of `exceptions` that are not needed.
pub fn check_files(files: &[RustFile], exceptions: &[(&str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let lines = file.raw.len();
        let allowed = exceptions.iter().find(|(path, _)| *path == file.path).map(|(_, allowed)| *allowed);
        if lines > allowed.unwrap_or(FILE_LINES_MAX) {
            let message = format!("{lines} lines; split it, at most {} are allowed", allowed.unwrap_or(FILE_LINES_MAX));
            findings.push(Finding::whole(&file.path, FILE_RULE, message));
        }
    }
    for (path, _) in exceptions {
        if !files.iter().any(|file| file.path == *path && file.raw.len() > FILE_LINES_MAX) {
            findings.push(Finding::whole(path, FILE_RULE, "is short enough now; remove it from LONG_FILES"));
        }
    }
    findings
}

/// Reports functions that are too long, and entries of `exceptions` that are not needed.
pub fn check_functions(files: &[RustFile], exceptions: &[(&str, &str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut needed = vec![false; exceptions.len()];
    for file in files {
        for function in functions(file).into_iter().filter(|function| function.lines > FUNCTION_LINES_MAX) {
            let entry = exceptions.iter().position(|(path, name, _)| *path == file.path && *name == function.name);
            let allowed = entry.map_or(FUNCTION_LINES_MAX, |index| exceptions[index].2);
            if let Some(index) = entry {
                needed[index] = true;
            }
            if function.lines > allowed {
                let message = format!("`{}` has {} lines; split it, at most {allowed}", function.name, function.lines);
                findings.push(Finding::at(&file.path, function.line, FUNCTION_RULE, message));
            }
        }
    }
    for ((path, name, _), _) in exceptions.iter().zip(needed).filter(|(_, needed)| !needed) {
        let message = format!("`{name}` is short enough now; remove it from LONG_FUNCTIONS");
        findings.push(Finding::whole(path, FUNCTION_RULE, message));
    }
    findings
}

/// The functions of a file. Because files are formatted, a function ends at the first closing brace with the same
/// indentation.
pub fn functions(file: &RustFile) -> Vec<FunctionLength> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut functions = Vec::new();
    for (index, line) in file.code.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let closing = |other: &String| indent(other) == indent(line) && other.trim_start().starts_with('}');
        // A signature that ends in `;` before any brace has no body: a trait's method.
        let head_end = file.code[index..].iter().position(|other| other.contains(['{', ';']));
        let Some(head_end) = head_end else { continue };
        let head = &file.code[index + head_end];
        if !head.contains('{') || head.trim_end().ends_with('}') {
            continue;
        }
        if let Some(lines) = file.code[index + 1..].iter().position(closing) {
            functions.push(FunctionLength { line: index + 1, name: name.to_owned(), lines: lines + 2 });
        }
    }
    functions
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    loop {
        if let Some(name) = rest.strip_prefix("fn ") {
            let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
            return (end > 0).then(|| &name[..end]);
        }
        let (word, after) = rest.split_once(' ')?;
        let is_modifier = matches!(word, "pub" | "const" | "async" | "unsafe" | "extern" | "\"") || is_visibility(word);
        if !is_modifier {
            return None;
        }
        rest = after.trim_start();
    }
}

fn is_visibility(word: &str) -> bool {
    word.starts_with("pub(") && word.ends_with(')')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextFile;

    fn file(text: String) -> RustFile {
        RustFile::new(&TextFile { path: "crates/x/src/lib.rs".to_owned(), text })
    }

    fn function_of(lines: usize) -> RustFile {
        file(format!(
            "impl A {{\n    pub(crate) const fn long() {{\n{}    }}\n}}\n",
            "        b();\n".repeat(lines - 2)
        ))
    }

    #[test]
    fn finds_long_files() {
        assert!(check_files(&[file("a\n".repeat(600))], &[]).is_empty());
        assert_eq!(check_files(&[file("a\n".repeat(601))], &[]).len(), 1);
    }

    #[test]
    fn file_exceptions_only_shrink() {
        let path = "crates/x/src/lib.rs";
        assert!(check_files(&[file("a\n".repeat(650))], &[(path, 650)]).is_empty());
        assert_eq!(check_files(&[file("a\n".repeat(651))], &[(path, 650)]).len(), 1);
        assert_eq!(check_files(&[file("a\n".repeat(600))], &[(path, 650)]).len(), 1);
        assert_eq!(check_files(&[], &[(path, 650)]).len(), 1);
    }

    #[test]
    fn finds_long_functions() {
        assert!(check_functions(&[function_of(70)], &[]).is_empty());
        let findings = check_functions(&[function_of(71)], &[]);
        assert_eq!(findings[0].line, 2);
        assert!(findings[0].message.contains("`long` has 71 lines"), "{}", findings[0].message);
    }

    #[test]
    fn function_exceptions_only_shrink() {
        let exceptions = [("crates/x/src/lib.rs", "long", 80)];
        assert!(check_functions(&[function_of(80)], &exceptions).is_empty());
        assert_eq!(check_functions(&[function_of(81)], &exceptions).len(), 1);
        assert_eq!(check_functions(&[function_of(70)], &exceptions).len(), 1);
    }

    #[test]
    fn skips_signatures_without_a_body() {
        let text = "trait A {\n    fn b(\n        &self,\n    );\n    fn c() {}\n}\nfn d<T>(e: T)\nwhere\n    T: F,\n{\n    \"}\";\n}\nlet fn_x = 1;\n";
        let found = functions(&file(text.to_owned()));
        assert_eq!(found, [FunctionLength { line: 7, name: "d".to_owned(), lines: 6 }]);
    }
}
