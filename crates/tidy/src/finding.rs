//! A violation of a rule: the place, the rule, and what to do about it.

use std::fmt;

/// A place that violates a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Path relative to the workspace root, or the name of a package.
    pub place: String,
    /// Line number in that file, from 1; 0 if the finding is about the whole file or package.
    pub line: usize,
    pub rule: &'static str,
    /// What is wrong and what to do instead.
    pub message: String,
}

impl Finding {
    /// A finding at a line of a file.
    pub fn at(place: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        Self { place: place.to_owned(), line, rule, message: message.into() }
    }

    /// A finding about a whole file or package.
    pub fn whole(place: &str, rule: &'static str, message: impl Into<String>) -> Self {
        Self::at(place, 0, rule, message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {} [{}]", self.message, self.rule)
    }
}

/// Formats findings as text, one per line; empty if there are none.
pub fn report(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_file_line_rule_and_remedy() {
        let findings = [
            Finding::at("crates/x/src/lib.rs", 7, "calls", "take the time as an argument"),
            Finding::whole("x 1.0", "licence", "find another crate"),
        ];
        assert_eq!(
            report(&findings),
            "crates/x/src/lib.rs:7: take the time as an argument [calls]\nx 1.0: find another crate [licence]\n"
        );
    }
}
