//! The URL of a store. Its scheme names the kind of store.

use std::fmt;
use std::path::PathBuf;

use cronhold_schedule::text::{did_you_mean, shortened};
use cronhold_schedule::{Span, TextError};
#[cfg(feature = "redis")]
use cronhold_store_redis::RedisUrl;
#[cfg(feature = "zookeeper")]
use cronhold_store_zookeeper::ZooKeeperUrl;

/// Schemes of Redis stores.
const REDIS: [&str; 4] = ["redis", "rediss", "redis+sentinel", "redis+cluster"];

/// Schemes of ZooKeeper stores.
const ZOOKEEPER: [&str; 2] = ["zk", "zks"];

/// Schemes that later versions will support.
const PLANNED: [&str; 1] = ["postgres"];

/// The URLs that this build accepts.
fn supported() -> String {
    let mut urls = vec!["sqlite:PATH"];
    if cfg!(feature = "redis") {
        urls.extend(["redis://HOST", "rediss://HOST", "redis+sentinel://HOSTS/SERVICE", "redis+cluster://HOSTS"]);
    }
    if cfg!(feature = "zookeeper") {
        urls.extend(["zk://HOSTS/ROOT", "zks://HOSTS/ROOT?ca=FILE"]);
    }
    let missing: Vec<&str> = [("redis", cfg!(feature = "redis")), ("zookeeper", cfg!(feature = "zookeeper"))]
        .into_iter()
        .filter_map(|(feature, is_built)| (!is_built).then_some(feature))
        .collect();
    let last = match missing.is_empty() {
        true => "PostgreSQL comes with a later version".to_owned(),
        false => format!("it was built without the feature `{}`", missing.join("`, `")),
    };
    format!("this build supports {}; {last}", urls.join(", "))
}

/// The URL of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file on this machine.
    Sqlite(PathBuf),
    /// One or many Redis servers, and a namespace in them.
    #[cfg(feature = "redis")]
    Redis(Box<RedisUrl>),
    /// A ZooKeeper ensemble, and a root znode in it.
    #[cfg(feature = "zookeeper")]
    ZooKeeper(Box<ZooKeeperUrl>),
}

impl StoreUrl {
    /// The variable of SideJob that names the Redis of tasks, and its URL, for a program that has no store of its own.
    /// `None` if neither is set, or if this build does not support Redis.
    pub fn of_sidejob(variable: impl Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
        #[cfg(feature = "redis")]
        return RedisUrl::of_sidejob(variable);
        #[cfg(not(feature = "redis"))]
        {
            let _ = variable;
            None
        }
    }

    /// Parses a URL. Error messages do not contain its password.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        Self::parse_with(text, None)
    }

    /// Parses a URL. The servers of a ZooKeeper store whose URL names none are `zookeeper_servers`: the value of
    /// `ZOOKEEPER_SERVERS`.
    #[cfg_attr(not(feature = "zookeeper"), expect(unused_variables, reason = "only ZooKeeper stores use it"))]
    pub fn parse_with(text: &str, zookeeper_servers: Option<&str>) -> Result<Self, TextError> {
        let wrong = |message: String| TextError::new(0..text.len(), message);
        let Some((scheme, rest)) = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
            let message = format!("`{}` does not say which kind of store it is", shortened(text));
            // A path was probably meant as one.
            let hint = if is_path(text) { format!("write sqlite:{}", shortened(text)) } else { supported() };
            return Err(wrong(message).hint(hint));
        };
        match scheme {
            "sqlite" if rest.is_empty() => {
                Err(wrong("`sqlite:` names no file".to_owned()).hint("such as sqlite:/var/lib/cronhold/cronhold.db"))
            }
            // In other URLs two slashes precede a host, which a file does not have.
            "sqlite" => match rest.strip_prefix("//") {
                Some(path) if !path.starts_with('/') => {
                    let message = format!("`{}` names a host, and an SQLite store is a file", shortened(text));
                    Err(wrong(message).hint(format!("write sqlite:{}", shortened(path))))
                }
                Some(path) => Ok(Self::Sqlite(path.into())),
                None => Ok(Self::Sqlite(rest.into())),
            },
            #[cfg(feature = "redis")]
            redis if REDIS.contains(&redis) => RedisUrl::parse(text).map(|url| Self::Redis(Box::new(url))),
            #[cfg(feature = "zookeeper")]
            zookeeper if ZOOKEEPER.contains(&zookeeper) => {
                ZooKeeperUrl::parse(text, zookeeper_servers).map(|url| Self::ZooKeeper(Box::new(url)))
            }
            other if [&PLANNED[..], &REDIS, &ZOOKEEPER].concat().contains(&other) => {
                Err(wrong(format!("this build has no store of the kind `{other}`")).hint(supported()))
            }
            unknown => {
                let error = wrong(format!("there is no store of the kind `{}`", shortened(unknown)));
                let redis: &[&str] = if cfg!(feature = "redis") { &REDIS } else { &[] };
                let zookeeper: &[&str] = if cfg!(feature = "zookeeper") { &ZOOKEEPER } else { &[] };
                let meant = did_you_mean(unknown, [&["sqlite"], redis, zookeeper].concat());
                Err(error.hint(meant.map_or_else(supported, |meant| format!("did you mean `{meant}:`?"))))
            }
        }
    }

    /// Whether the URL states that foreign nodes run the same jobs.
    pub fn names_peers(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.names_peers(),
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(_) => false,
        }
    }

    /// The lease of runs without a lock, for jobs that set none; `None` for a store that nodes do not share.
    pub fn lease(&self) -> Option<Span> {
        match self {
            Self::Sqlite(_) => None,
            #[cfg(feature = "redis")]
            Self::Redis(url) => Some(url.lease()),
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(url) => Some(url.lease()),
        }
    }

    /// Whether it is a store on ZooKeeper, which castle-cron uses too.
    pub fn is_zookeeper(&self) -> bool {
        match self {
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(_) => true,
            _ => false,
        }
    }

    /// Whether several nodes, and commands besides them, can use it at the same time.
    pub fn is_shared(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            #[cfg(feature = "redis")]
            Self::Redis(_) => true,
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(_) => true,
        }
    }
}

impl fmt::Display for StoreUrl {
    /// Passwords are masked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.fmt(f),
            #[cfg(feature = "zookeeper")]
            Self::ZooKeeper(url) => url.fmt(f),
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
            let url = StoreUrl::parse(text).expect(text);
            assert_eq!((url.to_string().as_str(), url.is_shared()), (printed, false));
        }
    }

    #[cfg(feature = "redis")]
    #[test]
    fn display_masks_passwords() {
        for text in [
            "redis://:secret@localhost",
            "rediss://ada:secret@cache.example:6380/2?namespace={jobs}",
            "redis+sentinel://:secret@a:1,b:2/main?sentinel_password=secret",
            "redis+cluster://ada:secret@a:1,b:2",
        ] {
            let url = StoreUrl::parse(text).expect(text);
            assert!(url.is_shared());
            let shown = format!("{url} {url:?}");
            assert!(shown.contains("***") && !shown.contains("secret"), "{shown}");
        }
        for wrong in ["redis://:secret@localhost:port", "redis://:secret@localhost?outptu=list"] {
            let error = StoreUrl::parse(wrong).expect_err(wrong);
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
    }

    #[cfg(feature = "zookeeper")]
    #[test]
    fn zookeeper_servers_can_come_from_the_environment() {
        let url = StoreUrl::parse_with("zk:///castle-cron", Some("a:1,b")).expect("the environment names servers");
        assert_eq!((url.to_string().as_str(), url.is_shared()), ("zk://a:1,b:2181/castle-cron", true));
        let url = StoreUrl::parse_with("zk://ada:secret@c/x", Some("a:1,b")).expect("the URL names a server");
        assert_eq!(url.to_string(), "zk://ada:***@c:2181/x");
        assert!(url.lease().is_some() && !url.names_peers() && !format!("{url:?}").contains("secret"));
        assert!(StoreUrl::parse("zk:///castle-cron").is_err());
    }

    #[cfg(not(feature = "redis"))]
    #[test]
    fn build_without_redis_rejects_redis_urls() {
        let error = StoreUrl::parse("redis://localhost").expect_err("it has none");
        assert_eq!(error.message, "this build has no store of the kind `redis`");
        assert!(error.hint.is_some_and(|hint| hint.contains("without the feature `redis")));
    }

    #[test]
    fn invalid_urls_have_hints() {
        for (text, message, hint) in [
            ("", "`` does not say which kind of store it is", supported().as_str()),
            ("cronhold", "`cronhold` does not say which kind of store it is", &supported()),
            ("jobs.db", "`jobs.db` does not say which kind of store it is", "write sqlite:jobs.db"),
            ("/var/a:b.db", "`/var/a:b.db` does not say which kind of store it is", "write sqlite:/var/a:b.db"),
            ("sqlite:", "`sqlite:` names no file", "such as sqlite:/var/lib/cronhold/cronhold.db"),
            ("sqlite://a.db", "`sqlite://a.db` names a host, and an SQLite store is a file", "write sqlite:a.db"),
            ("postgres://a/b", "this build has no store of the kind `postgres`", &supported()),
            ("sqlit:a.db", "there is no store of the kind `sqlit`", "did you mean `sqlite:`?"),
            ("mysql://a", "there is no store of the kind `mysql`", &supported()),
        ] {
            let error = StoreUrl::parse(text).expect_err(text);
            assert_eq!((error.message.as_str(), error.hint.as_deref()), (message, Some(hint)), "{text}");
        }
    }
}
