//! A Rust file split into code, comments and test lines, as far as the rules need it. A small scanner is enough,
//! because no rule needs a syntax tree.

use crate::tree::TextFile;

/// A Rust file in three views with the same lines.
#[derive(Debug)]
pub struct RustFile {
    /// Path relative to the workspace root.
    pub path: String,
    /// Lines as they are in the file.
    pub raw: Vec<String>,
    /// Lines with comments and the contents of string literals blanked out.
    pub code: Vec<String>,
    /// Lines with everything except comments blanked out.
    pub comments: Vec<String>,
    /// Whether the line is below `#[cfg(test)]`, or the whole file is a test.
    pub is_test: Vec<bool>,
}

impl RustFile {
    /// Splits a file.
    pub fn new(file: &TextFile) -> Self {
        let (code, comments) = split(&file.text);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let code = lines(&code);
        let is_test = if is_test_path(&file.path) { vec![true; code.len()] } else { test_lines(&code) };
        Self { path: file.path.clone(), raw: lines(&file.text), code, comments: lines(&comments), is_test }
    }

    /// The folder below `crates/` that contains the file; `None` for files elsewhere.
    pub fn crate_folder(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Code lines that are not tests, with line numbers from 1.
    pub fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.iter().zip(&self.is_test).enumerate();
        lines.filter(|(_, (_, is_test))| !**is_test).map(|(index, (line, _))| (index + 1, line.as_str()))
    }
}

/// Whether `line` contains `word` as a whole: `rand::` matches `rand::rng()` but not `operand::x`.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let opens = !word.starts_with(is_name) || !before.is_some_and(is_name);
        let closes = !word.ends_with(is_name) || !after.is_some_and(is_name);
        opens && closes
    })
}

/// Whether a file contains only tests, benchmarks or examples.
fn is_test_path(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "benches" | "examples" | "tests.rs" | "fuzz_targets"))
}

/// Marks the lines of items below `#[cfg(test)]`, up to the closing brace or semicolon.
fn test_lines(code: &[String]) -> Vec<bool> {
    let mut marks = vec![false; code.len()];
    let mut depth: Option<usize> = None;
    for (line, mark) in code.iter().zip(&mut marks) {
        if depth.is_none() && line.trim_start().starts_with("#[cfg(test)]") {
            depth = Some(0);
        }
        let Some(open) = &mut depth else { continue };
        *mark = true;
        let mut ended = false;
        for c in line.chars() {
            match c {
                '{' => *open += 1,
                '}' => {
                    *open = open.saturating_sub(1);
                    ended = *open == 0;
                }
                ';' if *open == 0 => ended = true,
                _ => {}
            }
        }
        if ended {
            depth = None;
        }
    }
    marks
}

/// What the scanner is in.
#[derive(Clone, Copy, PartialEq)]
enum ScanState {
    Code,
    LineComment,
    BlockComment { depth: usize },
    Text,
    RawText { hashes: usize },
}

/// Returns the text twice: with comments and string literals blanked out, and with everything except comments blanked
/// out. Line breaks stay.
fn split(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut comments = String::with_capacity(text.len());
    let mut inside = ScanState::Code;
    let mut at = 0;
    while at < chars.len() {
        let (len, is_code, is_comment, next) = token(&chars, at, inside);
        for &c in &chars[at..at + len] {
            let blank = if c == '\n' { '\n' } else { ' ' };
            code.push(if is_code { c } else { blank });
            comments.push(if is_comment { c } else { blank });
        }
        inside = next;
        at += len;
    }
    (code, comments)
}

/// Scans the next token: its length (at least 1), whether it is code, whether it is a comment, and the state after it.
fn token(chars: &[char], at: usize, inside: ScanState) -> (usize, bool, bool, ScanState) {
    let c = chars[at];
    let next = chars.get(at + 1).copied();
    match inside {
        ScanState::LineComment if c == '\n' => (1, true, true, ScanState::Code),
        ScanState::LineComment => (1, false, true, inside),
        ScanState::BlockComment { depth } => match (c, next) {
            ('*', Some('/')) if depth == 1 => (2, false, true, ScanState::Code),
            ('*', Some('/')) => (2, false, true, ScanState::BlockComment { depth: depth - 1 }),
            ('/', Some('*')) => (2, false, true, ScanState::BlockComment { depth: depth + 1 }),
            _ => (1, false, true, inside),
        },
        ScanState::Text => match c {
            '\\' if next.is_some() => (2, false, false, inside),
            '"' => (1, true, false, ScanState::Code),
            _ => (1, false, false, inside),
        },
        ScanState::RawText { hashes } => {
            let closes = c == '"' && (1..=hashes).all(|n| chars.get(at + n) == Some(&'#'));
            if closes { (1 + hashes, true, false, ScanState::Code) } else { (1, false, false, inside) }
        }
        ScanState::Code => match (c, next) {
            ('/', Some('/')) => (2, false, true, ScanState::LineComment),
            ('/', Some('*')) => (2, false, true, ScanState::BlockComment { depth: 1 }),
            ('"', _) => (1, true, false, ScanState::Text),
            ('r', Some('"' | '#')) => match raw_text_hashes(chars, at) {
                Some(hashes) => (2 + hashes, true, false, ScanState::RawText { hashes }),
                None => (1, true, false, inside),
            },
            ('\'', _) => match char_literal_len(chars, at) {
                Some(len) => (len, false, false, inside),
                None => (1, true, false, inside),
            },
            _ => (1, true, false, inside),
        },
    }
}

/// Number of `#` of the raw string that starts at `at`; `None` if no raw string starts there.
fn raw_text_hashes(chars: &[char], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map(|index| chars[index]);
    // `r` may end a name such as `for`; only `b` and `c` may precede a raw string.
    if before.is_some_and(|c| (c.is_alphanumeric() || c == '_') && c != 'b' && c != 'c') {
        return None;
    }
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    (chars.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

/// Length of the character literal that starts at `at`; `None` if a lifetime starts there.
fn char_literal_len(chars: &[char], at: usize) -> Option<usize> {
    if chars.get(at + 1) == Some(&'\\') {
        let close = chars.get(at + 3..)?.iter().take(10).position(|c| *c == '\'')?;
        return Some(close + 4);
    }
    (chars.get(at + 2) == Some(&'\'')).then_some(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> RustFile {
        RustFile::new(&TextFile { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn separates_code_comments_and_strings() {
        for (text, code, comment) in [
            ("let a = 1; // why", "let a = 1;", "// why"),
            ("let a = \"b // c\";", "let a = \"      \";", ""),
            ("a /* b /* c */ d */ e", "a                   e", "/* b /* c */ d */"),
            ("let a = r#\"x \"y\" z\"#;", "let a = r#\"       \"#;", ""),
            ("let a = br\"\\\";", "let a = br\" \";", ""),
            ("let a = \"\\\"{\"; b", "let a = \"   \"; b", ""),
            ("fn a<'b>(c: &'b str) {}", "fn a<'b>(c: &'b str) {}", ""),
            ("let a = ['\"', '{', '\\''];", "let a = [   ,    ,     ];", ""),
        ] {
            let file = file("crates/x/src/lib.rs", text);
            assert_eq!(file.code[0].trim_end(), code, "{text}");
            assert_eq!(file.comments[0].trim(), comment, "{text}");
        }
    }

    #[test]
    fn marks_test_modules() {
        let text =
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nuse x;\nfn d() {}\n";
        let file = file("crates/x/src/lib.rs", text);
        let numbers: Vec<usize> = file.product_code().map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 6, 9]);
    }

    #[test]
    fn every_line_of_a_test_file_is_a_test() {
        assert_eq!(file("crates/x/tests/a.rs", "fn a() {}\n").product_code().count(), 0);
        assert_eq!(file("crates/x/src/a/tests.rs", "fn a() {}\n").product_code().count(), 0);
        assert_eq!(file("crates/x/src/a.rs", "fn a() {}\n").product_code().count(), 1);
    }

    #[test]
    fn matches_whole_words_only() {
        for (line, word, expected) in [
            ("use rand::rng;", "rand::", true),
            ("operand::x", "rand::", false),
            ("HashMap::new()", "HashMap", true),
            ("MyHashMapper", "HashMap", false),
            ("x.unwrap()", ".unwrap()", true),
            ("x.unwrap_or(1)", ".unwrap()", false),
        ] {
            assert_eq!(has_word(line, word), expected, "{line}");
        }
    }
}
