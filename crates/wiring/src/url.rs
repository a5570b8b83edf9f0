//! How a store is named: a URL whose scheme says which kind it is.

use std::fmt;
use std::path::{Path, PathBuf};

use cronhold_schedule::TextError;
use cronhold_schedule::text::{did_you_mean, shortened};

/// Schemes that later versions will know.
const PLANNED: [&str; 6] = ["redis", "rediss", "redis+sentinel", "redis+cluster", "zk", "postgres"];

/// What this build knows, with what stands behind the colon.
const KNOWN: &str = "sqlite:PATH";

/// The name of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file on this machine.
    Sqlite(PathBuf),
}

impl StoreUrl {
    /// Reads a URL.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let wrong = |message: String| TextError::new(0..text.len(), message);
        let knows = format!("this build knows {KNOWN}; Redis, ZooKeeper and PostgreSQL come with later versions");
        let Some((scheme, rest)) = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
            let message = format!("`{}` does not say which kind of store it is", shortened(text));
            // What looks like a path is meant as one.
            let hint = if is_path(text) { format!("write sqlite:{}", shortened(text)) } else { knows };
            return Err(wrong(message).hint(hint));
        };
        match scheme {
            "sqlite" if rest.is_empty() => {
                Err(wrong("`sqlite:` names no file".to_owned()).hint("such as sqlite:/var/lib/cronhold/cronhold.db"))
            }
            // Two slashes stand before a host in other URLs, and a file has none.
            "sqlite" => match rest.strip_prefix("//") {
                Some(path) if !path.starts_with('/') => {
                    let message = format!("`{}` names a host, and an SQLite store is a file", shortened(text));
                    Err(wrong(message).hint(format!("write sqlite:{}", shortened(path))))
                }
                Some(path) => Ok(Self::Sqlite(path.into())),
                None => Ok(Self::Sqlite(rest.into())),
            },
            planned if PLANNED.contains(&planned) => {
                Err(wrong(format!("this build has no store of the kind `{planned}`")).hint(knows))
            }
            unknown => {
                let error = wrong(format!("there is no store of the kind `{}`", shortened(unknown)));
                let meant = did_you_mean(unknown, ["sqlite"]);
                Err(error.hint(meant.map_or(knows, |meant| format!("did you mean `{meant}:`?"))))
            }
        }
    }

    /// The file that it is kept in.
    pub fn path(&self) -> &Path {
        match self {
            Self::Sqlite(path) => path,
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
}

fn is_path(text: &str) -> bool {
    text.contains('/') || text.ends_with(".db") || text.ends_with(".sqlite")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (text, printed) in [
            ("sqlite:cronhold.db", "sqlite:cronhold.db"),
            ("sqlite:/var/lib/cronhold/cronhold.db", "sqlite:/var/lib/cronhold/cronhold.db"),
            ("sqlite:///var/lib/cronhold.db", "sqlite:/var/lib/cronhold.db"),
            ("sqlite:a b:c.db", "sqlite:a b:c.db"),
        ] {
            assert_eq!(StoreUrl::parse(text).expect(text).to_string(), printed);
        }
    }

    #[test]
    fn says_what_to_write_instead() {
        let knows = "this build knows sqlite:PATH; Redis, ZooKeeper and PostgreSQL come with later versions";
        for (text, message, hint) in [
            ("", "`` does not say which kind of store it is", knows),
            ("cronhold", "`cronhold` does not say which kind of store it is", knows),
            ("jobs.db", "`jobs.db` does not say which kind of store it is", "write sqlite:jobs.db"),
            ("/var/a:b.db", "`/var/a:b.db` does not say which kind of store it is", "write sqlite:/var/a:b.db"),
            ("sqlite:", "`sqlite:` names no file", "such as sqlite:/var/lib/cronhold/cronhold.db"),
            ("sqlite://a.db", "`sqlite://a.db` names a host, and an SQLite store is a file", "write sqlite:a.db"),
            ("redis://localhost", "this build has no store of the kind `redis`", knows),
            ("zk://a,b/castle-cron", "this build has no store of the kind `zk`", knows),
            ("sqlit:a.db", "there is no store of the kind `sqlit`", "did you mean `sqlite:`?"),
            ("mysql://a", "there is no store of the kind `mysql`", knows),
        ] {
            let error = StoreUrl::parse(text).expect_err(text);
            assert_eq!((error.message.as_str(), error.hint.as_deref()), (message, Some(hint)), "{text}");
        }
    }
}
