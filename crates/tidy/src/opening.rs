//! Every Rust file starts with a `//!` comment that says what the file is for.

use crate::{Finding, RustFile};

const RULE: &str = "opening";

/// Reports files that do not start with a `//!` sentence.
pub fn check(file: &RustFile) -> Option<Finding> {
    let opens = file.raw.first().is_some_and(|line| line.strip_prefix("//! ").is_some_and(|text| !text.is_empty()));
    (!opens).then(|| Finding::at(&file.path, 1, RULE, "start the file with `//!`: what it is and why it is separate"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextFile;

    #[test]
    fn first_line_needs_a_sentence() {
        for (text, is_fine) in [
            ("//! Ports.\nfn a() {}\n", true),
            ("fn a() {}\n", false),
            ("//!\nfn a() {}\n", false),
            ("// Ports.\n//! Too late.\n", false),
            ("", false),
        ] {
            let file = RustFile::new(&TextFile { path: "crates/x/src/lib.rs".to_owned(), text: text.to_owned() });
            assert_eq!(check(&file).is_none(), is_fine, "{text:?}");
        }
    }
}
