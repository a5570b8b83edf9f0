//! Calls that some crates may not make. Clippy bans many of them by type (`clippy.toml`). This rule bans them by crate
//! in one table, and a lint attribute cannot silence it.

use crate::rust::has_word;
use crate::{Finding, RustFile};

const RULE: &str = "banned calls";

/// Crates whose results depend on their arguments alone.
const PURE: &[&str] = &["schedule", "core"];

/// Crates that wait only on their ports.
const TIMELESS: &[&str] = &["schedule", "core", "engine", "sim"];

/// Strings that code must not contain.
#[derive(Debug)]
struct CallBan {
    words: &'static [&'static str],
    scope: BanScope,
    remedy: &'static str,
}

/// Where a ban applies. Tests, benchmarks and examples are exempt unless the variant includes them.
#[derive(Debug)]
enum BanScope {
    /// The product code of these crates.
    Crates(&'static [&'static str]),
    /// All product code except files whose paths start with one of these prefixes.
    AllBut(&'static [&'static str]),
    /// Every line of code, tests included.
    Everywhere,
}

const BANS: &[CallBan] = &[
    CallBan {
        words: &[
            "SystemTime::now",
            "Instant::now",
            "Timestamp::now",
            "Zoned::now",
            "TimeZone::system",
            "CLOCK_REALTIME",
        ],
        scope: BanScope::Crates(TIMELESS),
        remedy: "take the time as an argument; only intake reads the clock",
    },
    CallBan {
        words: &["thread::sleep", "park_timeout", "recv_timeout"],
        scope: BanScope::Crates(TIMELESS),
        remedy: "take the time as an argument, and return the instant to wake at",
    },
    CallBan {
        words: &["std::fs", "std::net", "std::process", "File::open", "TcpStream", "UnixStream", "std::io::stdin"],
        scope: BanScope::Crates(PURE),
        remedy: "take the input as an argument; pure crates do no I/O",
    },
    CallBan {
        words: &["tokio::", "async fn", ".await", "std::thread"],
        scope: BanScope::Crates(PURE),
        remedy: "decide here, wait in the engine; pure crates are synchronous",
    },
    CallBan {
        words: &["rand::", "getrandom", "RandomState", "thread_rng", "new_v4"],
        scope: BanScope::Crates(TIMELESS),
        remedy: "take the random bits as an argument",
    },
    CallBan {
        words: &["HashMap", "HashSet"],
        scope: BanScope::Crates(TIMELESS),
        remedy: "use BTreeMap or BTreeSet; the order of a hash map differs from run to run",
    },
    CallBan {
        words: &["tokio::", "tracing::", "log::", "axum::", "hyper::"],
        scope: BanScope::Crates(&["engine", "core", "schedule"]),
        remedy: "return a value; the crates around this one do I/O and logging",
    },
    CallBan {
        words: &["env::var", "env::var_os", "env::vars", "env::vars_os", "env::set_var", "env::current_dir"],
        scope: BanScope::AllBut(&["crates/cronhold/"]),
        remedy: "take the setting as an argument; only the binary reads the environment",
    },
    CallBan {
        words: &["TimeZone::get", "tz::db", "TimeZoneDatabase::from_env", "TimeZoneDatabase::from_dir"],
        scope: BanScope::AllBut(&["crates/cronhold/"]),
        remedy: "take `Zones` as an argument; only the binary chooses where zone data is read from",
    },
    CallBan {
        words: &["println!", "print!", "eprintln!", "eprint!"],
        scope: BanScope::AllBut(&["crates/cli/src/render/", "crates/cronhold/src/main.rs"]),
        remedy: "return the text and let `render/` print it",
    },
    CallBan {
        words: &[".unwrap()"],
        scope: BanScope::AllBut(&[]),
        remedy: "return an error, or write `expect(\"why it holds\")`",
    },
    CallBan { words: &["dbg!"], scope: BanScope::Everywhere, remedy: "remove the line" },
    CallBan {
        words: &["todo!", "unimplemented!"],
        scope: BanScope::Everywhere,
        remedy: "implement it, or return an error that says so",
    },
    CallBan {
        words: &["#[ignore"],
        scope: BanScope::Everywhere,
        remedy: "repair the test or remove it; a test that does not run proves nothing",
    },
];

/// Reports banned calls in a file.
pub fn check(file: &RustFile) -> Vec<Finding> {
    BANS.iter().flat_map(|ban| check_ban(file, ban)).collect()
}

fn check_ban(file: &RustFile, ban: &CallBan) -> Vec<Finding> {
    let Some(folder) = file.crate_folder() else { return Vec::new() };
    let everywhere = matches!(ban.scope, BanScope::Everywhere);
    let holds = match ban.scope {
        BanScope::Crates(folders) => folders.contains(&folder),
        BanScope::AllBut(prefixes) => !prefixes.iter().any(|prefix| file.path.starts_with(prefix)),
        BanScope::Everywhere => true,
    };
    if !holds {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, (line, is_test)) in file.code.iter().zip(&file.is_test).enumerate() {
        if *is_test && !everywhere {
            continue;
        }
        if let Some(word) = ban.words.iter().find(|word| has_word(line, word)) {
            findings.push(Finding::at(&file.path, index + 1, RULE, format!("`{word}`: {}", ban.remedy)));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextFile;

    #[test]
    fn bans_apply_to_their_crates() {
        for (path, line, banned) in [
            ("crates/schedule/src/a.rs", "let now = Timestamp::now();", true),
            ("crates/core/src/a.rs", "let now = SystemTime::now();", true),
            ("crates/keeper/src/a.rs", "let now = SystemTime::now();", false),
            ("crates/core/src/a.rs", "use std::collections::HashMap;", true),
            ("crates/jobfile/src/a.rs", "use std::collections::HashMap;", false),
            ("crates/schedule/src/a.rs", "let a = std::fs::read(b);", true),
            ("crates/schedule/tests/a.rs", "let a = std::fs::read(b);", false),
            ("crates/jobfile/src/a.rs", "let a = std::env::var(b);", true),
            ("crates/cronhold/src/a.rs", "let a = std::env::var(b);", false),
            ("crates/jobfile/src/a.rs", "let a = jiff::tz::TimeZone::get(b);", true),
            ("crates/schedule/src/a.rs", "let a = jiff::tz::db();", true),
            ("crates/schedule/src/a.rs", "let a = TimeZoneDatabase::bundled();", false),
            ("crates/cli/src/a.rs", "let a = TimeZoneDatabase::from_env();", true),
            ("crates/cronhold/src/main.rs", "let a = TimeZoneDatabase::from_env();", false),
            ("crates/cli/src/verbs/a.rs", "println!();", true),
            ("crates/cli/src/render/a.rs", "println!();", false),
            ("crates/core/examples/a.rs", "println!();", false),
            ("crates/cli/src/a.rs", "a.unwrap();", true),
            ("crates/cli/src/a.rs", "a.unwrap_or(1);", false),
            ("crates/cli/src/a.rs", "// a.unwrap();", false),
            ("crates/cli/tests/a.rs", "a.unwrap();", false),
            ("crates/cli/tests/a.rs", "#[ignore]", true),
            ("crates/cli/src/a.rs", "todo!()", true),
            ("crates/engine/src/a.rs", "tokio::spawn(a);", true),
            ("crates/core/src/a.rs", "let a = rand::random();", true),
        ] {
            let file = RustFile::new(&TextFile { path: path.to_owned(), text: line.to_owned() });
            assert_eq!(!check(&file).is_empty(), banned, "{path}: {line}");
        }
    }

    #[test]
    fn unit_tests_may_unwrap() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n        c.unwrap();\n    }\n}\n".to_owned();
        let file = RustFile::new(&TextFile { path: "crates/x/src/a.rs".to_owned(), text });
        assert_eq!(check(&file), []);
    }

    #[test]
    fn finding_names_line_and_remedy() {
        let text = "//! A.\nfn a() { std::thread::sleep(b) }\n".to_owned();
        let file = RustFile::new(&TextFile { path: "crates/core/src/a.rs".to_owned(), text });
        let report = crate::report(&check(&file));
        assert!(
            report.starts_with("crates/core/src/a.rs:2: `thread::sleep`: take the time as an argument"),
            "{report}"
        );
    }
}
