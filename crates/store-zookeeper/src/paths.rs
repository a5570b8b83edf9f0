//! Names of znodes. All of them are below `cronhold/` in the root. Each record is a znode of its own, whose name tells
//! its key; only the key of an identity can be too long for a name, and is stored with the record.

use cronhold_core::RunId;
use cronhold_core::percent;
use cronhold_core::record::{LockName, RecordKey, RecordKind};
use cronhold_store::key_names::{key_field, parse_key};
use sha2::{Digest, Sha256};

/// Characters of a name that are not escaped, besides letters, digits and `-._~`.
const KEPT: &str = " !\"#$&'()*+,:;<=>?@[]^_`{|}";

/// Bytes of the digest that names an identity.
const DIGEST_BYTES: usize = 16;

/// Runs, spans and actions are spread over this many znodes by their last digit, so that no list of children is large.
const BUCKETS: &str = "0123456789abcdef";

/// The znodes of one store.
#[derive(Debug, Clone)]
pub(crate) struct ZnodePaths {
    root: String,
}

/// Where a znode below `records` belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordPlace {
    Key(RecordKey),
    /// An identity, whose key is in its data.
    Identity,
}

impl RecordPlace {
    /// The key; `None` for an identity.
    pub(crate) fn into_key(self) -> Option<RecordKey> {
        match self {
            Self::Key(key) => Some(key),
            Self::Identity => None,
        }
    }
}

impl ZnodePaths {
    /// `root` starts with a slash and does not end with one.
    pub(crate) fn new(root: &str) -> Self {
        Self { root: root.to_owned() }
    }

    /// The root of the store.
    #[cfg(feature = "testing")]
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    /// The format of the store and its epoch.
    pub(crate) fn meta(&self) -> String {
        self.ours("meta")
    }

    /// Its data version is the number of the last writer.
    pub(crate) fn writers(&self) -> String {
        self.ours("writers")
    }

    /// Its modification time is the time of the store.
    pub(crate) fn clock(&self) -> String {
        self.ours("clock")
    }

    /// The chain of a process, which orders the parts of a commit.
    pub(crate) fn chain(&self, token: u64) -> String {
        format!("{}/{token:016x}", self.ours("chains"))
    }

    /// Empty, or why the store is sealed.
    pub(crate) fn seal(&self) -> String {
        self.ours("seal")
    }

    pub(crate) fn locks(&self) -> String {
        self.ours("locks")
    }

    pub(crate) fn lock(&self, name: &LockName) -> String {
        format!("{}/{}", self.locks(), escape(name.as_str()))
    }

    /// The lock of the last part of a path.
    pub(crate) fn lock_name(name: &str) -> Option<LockName> {
        LockName::parse(&percent::decode(name)?).ok()
    }

    pub(crate) fn outputs(&self) -> String {
        self.ours("outputs")
    }

    /// The length of an output; its children are the pieces.
    pub(crate) fn output(&self, run: RunId) -> String {
        format!("{}/{run}", self.outputs())
    }

    /// The piece of an output that begins at a byte.
    pub(crate) fn piece(&self, run: RunId, from: u64) -> String {
        format!("{}/{from:012}", self.output(run))
    }

    /// All records. The mirror watches this znode and everything below it.
    pub(crate) fn records(&self) -> String {
        self.ours("records")
    }

    /// The znodes whose children are records.
    pub(crate) fn record_folders(&self) -> Vec<String> {
        let folder = |kind: RecordKind| format!("{}/{}", self.records(), folder_name(kind));
        KINDS
            .iter()
            .flat_map(|kind| match has_buckets(*kind) {
                true => BUCKETS.chars().map(|bucket| format!("{}/{bucket}", folder(*kind))).collect(),
                false => vec![folder(*kind)],
            })
            .collect()
    }

    /// castle-cron's znode of all jobs.
    pub(crate) fn castle_jobs(&self) -> String {
        format!("{}/jobs", self.root)
    }

    /// castle-cron's znode of a job.
    pub(crate) fn castle_job(&self, name: &str) -> String {
        format!("{}/{}", self.castle_jobs(), escape_name(name))
    }

    /// castle-cron's znode of all running servers.
    pub(crate) fn castle_servers(&self) -> String {
        format!("{}/servers", self.root)
    }

    /// castle-cron's znode of a running server.
    pub(crate) fn castle_server(&self, name: &str) -> String {
        format!("{}/{}", self.castle_servers(), escape_name(name))
    }

    /// castle-cron's copy of the job that is next.
    pub(crate) fn castle_next_job(&self) -> String {
        format!("{}/nextjob", self.root)
    }

    /// castle-cron's lock.
    pub(crate) fn castle_job_lock(&self) -> String {
        format!("{}/joblock", self.root)
    }

    /// The texts of definitions that agree with their jobs, as digests.
    pub(crate) fn forms(&self) -> String {
        self.ours("forms")
    }

    pub(crate) fn form(&self, name: &str) -> String {
        format!("{}/{}", self.forms(), escape_name(name))
    }

    /// All permanent znodes, parents before their children.
    pub(crate) fn permanent(&self) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        let parts: Vec<&str> = self.root.split('/').filter(|part| !part.is_empty()).collect();
        for end in 1..=parts.len() {
            paths.push(format!("/{}", parts[..end].join("/")));
        }
        paths.extend([self.castle_jobs(), self.castle_servers(), self.castle_next_job(), self.castle_job_lock()]);
        paths.push(format!("{}/cronhold", self.root));
        paths.extend(
            ["writers", "clock", "seal", "chains", "locks", "outputs", "records", "forms"].map(|name| self.ours(name)),
        );
        paths.extend(KINDS.iter().map(|kind| format!("{}/{}", self.records(), folder_name(*kind))));
        let buckets = self.record_folders().into_iter().filter(|path| !paths.contains(path));
        let buckets: Vec<String> = buckets.collect();
        paths.extend(buckets);
        // Every claim checks that nothing is paused, which is cheaper if there is a znode to check.
        paths.extend(self.record(&RecordKey::Pause));
        paths
    }

    /// The znode of a record; `None` for locks, which are not records, and for foreign runs, which do not exist here.
    pub(crate) fn record(&self, key: &RecordKey) -> Option<String> {
        let kind = key.kind();
        let name = match kind {
            RecordKind::Lock | RecordKind::Foreign => return None,
            RecordKind::Identity => digest(&key_field(key)),
            kind if has_buckets(kind) => in_bucket(&key_field(key)),
            _ => escape(&key_field(key)),
        };
        Some(format!("{}/{}/{name}", self.records(), folder_name(kind)))
    }

    /// The record of a path; `None` if the path is that of a folder or has an invalid name.
    pub(crate) fn place(&self, path: &str) -> Option<RecordPlace> {
        let (folder, rest) = path.strip_prefix(&self.records())?.strip_prefix('/')?.split_once('/')?;
        let kind = KINDS.into_iter().find(|kind| folder_name(*kind) == folder)?;
        if kind == RecordKind::Identity {
            return Some(RecordPlace::Identity);
        }
        let name = if has_buckets(kind) { rest.split_once('/')?.1 } else { rest };
        let key = parse_key(kind, &percent::decode(name)?)?;
        // Other spellings of a name do not stand for the record.
        (self.record(&key).as_deref() == Some(path)).then_some(RecordPlace::Key(key))
    }

    fn ours(&self, name: &str) -> String {
        format!("{}/cronhold/{name}", self.root)
    }
}

/// Kinds of records with a znode each.
const KINDS: [RecordKind; 12] = [
    RecordKind::Pause,
    RecordKind::Job,
    RecordKind::JobState,
    RecordKind::Cursor,
    RecordKind::Backlog,
    RecordKind::Identity,
    RecordKind::Run,
    RecordKind::SkipSpan,
    RecordKind::Node,
    RecordKind::Action,
    RecordKind::Pool,
    RecordKind::Triggers,
];

const fn folder_name(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Pause => "pause",
        RecordKind::Job => "jobs",
        RecordKind::JobState => "states",
        RecordKind::Cursor => "cursors",
        RecordKind::Backlog => "backlogs",
        RecordKind::Identity => "identities",
        RecordKind::Run => "runs",
        RecordKind::SkipSpan => "spans",
        RecordKind::Node => "nodes",
        RecordKind::Action => "actions",
        RecordKind::Pool => "pools",
        RecordKind::Triggers => "triggers",
        RecordKind::Lock => "locks",
        RecordKind::Foreign => "foreign",
    }
}

const fn has_buckets(kind: RecordKind) -> bool {
    matches!(kind, RecordKind::Run | RecordKind::SkipSpan | RecordKind::Action)
}

fn in_bucket(id: &str) -> String {
    let bucket = id.chars().rev().find(|digit| BUCKETS.contains(*digit)).unwrap_or('0');
    format!("{bucket}/{id}")
}

/// A name that ZooKeeper accepts: it has no slash and no control character, and is neither `.` nor `..`.
pub(crate) fn escape(text: &str) -> String {
    match text {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        text => percent::encode(text, KEPT),
    }
}

/// The name of a znode that other programs see: only what ZooKeeper rejects, and `%`, is escaped.
pub(crate) fn escape_name(text: &str) -> String {
    if matches!(text, "." | "..") {
        return escape(text);
    }
    let is_rejected =
        |sign: char| sign.is_control() || matches!(sign, '/' | '%' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}');
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        if is_rejected(sign) {
            escaped.push_str(&percent::encode(sign.encode_utf8(&mut [0; 4]), ""));
        } else {
            escaped.push(sign);
        }
    }
    escaped
}

/// The name that a znode stands for. Another spelling of an escaped name stands for no job, and is returned with a slash
/// in front, which no name has.
pub(crate) fn unescape_name(znode: &str) -> String {
    let name = percent::decode(znode).filter(|name| escape_name(name) == znode);
    name.unwrap_or_else(|| format!("/{znode}"))
}

pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use cronhold_core::record::{PoolName, ScheduleId};
    use cronhold_core::{Args, JobId, NodeId};
    use cronhold_schedule::Instant;

    use super::*;

    #[test]
    fn keys_are_found_by_their_paths() {
        let paths = ZnodePaths::new("/my/root");
        let job = |name: &str| JobId::parse(name).expect("an id");
        let run = RunId::from_key(Instant::from_secs(1_800_000_000), "r");
        for key in [
            RecordKey::Pause,
            RecordKey::Job(job("folder/job ä")),
            RecordKey::JobState(job("größe")),
            RecordKey::Cursor(job("a%b"), ScheduleId::parse("s\\/\0").expect("an id")),
            RecordKey::Backlog(job("a"), ScheduleId::parse("every minute").expect("an id")),
            RecordKey::Run(run),
            RecordKey::SkipSpan(run),
            RecordKey::Node(NodeId::from_bits(7)),
            RecordKey::Pool(PoolName::parse("a pool").expect("a name")),
            RecordKey::Triggers(job("t")),
        ] {
            let path = paths.record(&key).expect("it has a znode");
            let names: Vec<&str> = path.split('/').skip(1).collect();
            assert!(names.iter().all(|name| !matches!(*name, "" | "." | "..")), "{path}");
            assert!(!path.chars().any(char::is_control), "{path}");
            let folder = path.rsplit_once('/').map(|(folder, _)| folder.to_owned()).expect("it has a parent");
            assert!(paths.record_folders().contains(&folder) && paths.permanent().contains(&folder), "{folder}");
            assert_eq!(paths.place(&path), Some(RecordPlace::Key(key)), "{path}");
        }
        let identity = paths.record(&RecordKey::Identity(job("a"), Args::new())).expect("it has a znode");
        assert_eq!(paths.place(&identity), Some(RecordPlace::Identity));
        for alias in ["jobs/%61", "jobs/a%2fb", "runs/0/019b76da-a800-7000-8000-00000000000f"] {
            assert_eq!(paths.place(&format!("{}/{alias}", paths.records())), None, "{alias}");
        }
        for folder in [paths.records(), paths.meta(), format!("{}/jobs", paths.records())] {
            assert_eq!(paths.place(&folder), None, "{folder}");
        }
    }

    #[test]
    fn names_that_other_programs_see_stay_readable() {
        for (name, znode) in [
            ("backup", "backup"),
            ("feeds/eu größe", "feeds%2Feu größe"),
            ("100%", "100%25"),
            (".", "%2E"),
            ("a\u{7f}b", "a%7Fb"),
            ("🚀", "🚀"),
        ] {
            assert_eq!(escape_name(name), znode);
            assert_eq!(unescape_name(znode), name);
        }
        for alias in ["a%2fb", "%61", "50%", "%ff"] {
            assert_eq!(unescape_name(alias), format!("/{alias}"));
        }
    }

    #[test]
    fn parents_are_created_before_their_children() {
        let permanent = ZnodePaths::new("/my/root").permanent();
        for (index, path) in permanent.iter().enumerate() {
            let parent = path.rsplit_once('/').map(|(parent, _)| parent).expect("it begins with a slash");
            assert!(parent.is_empty() || permanent[..index].iter().any(|other| other == parent), "{path}");
        }
    }
}
