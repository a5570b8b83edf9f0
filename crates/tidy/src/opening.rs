//! Every Rust file opens with `//!`, so that a reader learns what it is before how it works.

use crate::{Finding, RustFile};

const RULE: &str = "opening";

/// Files that do not say what they are.
pub fn check(file: &RustFile) -> Option<Finding> {
    let opens = file.raw.first().is_some_and(|line| line.strip_prefix("//! ").is_some_and(|text| !text.is_empty()));
    (!opens).then(|| Finding::at(&file.path, 1, RULE, "open the file with `//!`: what it is and why it is separate"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextFile;

    #[test]
    fn wants_a_sentence_on_the_first_line() {
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
