//! Names of records in Redis: a hash for each kind, and a field for each record. The scripts have the same names; this
//! file has only those that the client needs.

use cronhold_core::record::{Key, Kind, LockName, ScheduleId};
use cronhold_core::{Args, JobId, NodeId, RunId};

/// Separates the parts of a field. Job ids do not contain it, so that fields sort by their parts.
const BETWEEN: char = '\0';

/// The field of the global pause.
const ALL: &str = "all";

/// The key with the epoch and the seq of the store. All other keys are in its hash slot.
pub(crate) fn meta(namespace: &str) -> String {
    format!("{namespace}:cronhold:meta")
}

/// The channel for notifications of commits.
pub(crate) fn hints(namespace: &str) -> String {
    format!("{namespace}:cronhold:hints")
}

/// The last part of the name of the hash for a kind.
pub(crate) fn table(kind: Kind) -> &'static str {
    match kind {
        Kind::Pause => "pause",
        Kind::Job => "jobs",
        Kind::JobState => "job_states",
        Kind::Cursor => "cursors",
        Kind::Backlog => "backlogs",
        Kind::Identity => "identities",
        Kind::Run => "runs",
        Kind::Lock => "locks",
        Kind::Node => "nodes",
        // Not a hash of ours: it is read from Cronken's keys.
        Kind::Foreign => "foreign",
    }
}

/// The field of a record in the hash of its kind; the name of a lock.
pub(crate) fn field(key: &Key) -> String {
    let pair = |job: &JobId, other: &str| format!("{job}{BETWEEN}{other}");
    match key {
        Key::Pause => ALL.to_owned(),
        Key::Job(job) | Key::JobState(job) => job.as_str().to_owned(),
        Key::Cursor(job, schedule) | Key::Backlog(job, schedule) => pair(job, schedule.as_str()),
        Key::Identity(job, args) => pair(job, &args.canonical()),
        Key::Run(run) => run.to_string(),
        Key::Lock(lock) => lock.as_str().to_owned(),
        Key::Node(node) => node.to_string(),
        Key::Foreign(job) => job.as_str().to_owned(),
    }
}

/// The key of a record from its field; `None` if the field is invalid.
pub(crate) fn key(kind: Kind, field: &str) -> Option<Key> {
    let schedule = || {
        let (job, schedule) = field.split_once(BETWEEN)?;
        Some((JobId::parse(job).ok()?, ScheduleId::parse(schedule).ok()?))
    };
    match kind {
        Kind::Pause => (field == ALL).then_some(Key::Pause),
        Kind::Job => JobId::parse(field).ok().map(Key::Job),
        Kind::JobState => JobId::parse(field).ok().map(Key::JobState),
        Kind::Cursor => schedule().map(|(job, schedule)| Key::Cursor(job, schedule)),
        Kind::Backlog => schedule().map(|(job, schedule)| Key::Backlog(job, schedule)),
        Kind::Identity => {
            let (job, args) = field.split_once(BETWEEN)?;
            let args: Args = serde_json::from_str(args).ok()?;
            Some(Key::Identity(JobId::parse(job).ok()?, args))
        }
        Kind::Run => RunId::parse(field).ok().map(Key::Run),
        Kind::Lock => LockName::parse(field).ok().map(Key::Lock),
        Kind::Node => NodeId::parse(field).ok().map(Key::Node),
        Kind::Foreign => JobId::parse(field).ok().map(Key::Foreign),
    }
}

/// Kinds by number, as in `prelude.lua`.
pub(crate) const KINDS: [Kind; 10] = [
    Kind::Pause,
    Kind::Job,
    Kind::JobState,
    Kind::Cursor,
    Kind::Backlog,
    Kind::Identity,
    Kind::Run,
    Kind::Lock,
    Kind::Node,
    Kind::Foreign,
];

/// The digit of a kind. Digits are in the order of kinds, so that index members that begin with them sort like keys.
pub(crate) fn digit(kind: Kind) -> u8 {
    let place = KINDS.iter().position(|known| *known == kind).expect("every kind is in the table");
    u8::try_from(place).expect("there are ten")
}

/// The kind of an ASCII digit.
pub(crate) fn kind(digit: u8) -> Option<Kind> {
    KINDS.get(usize::from(digit.checked_sub(b'0')?)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_back_and_are_in_the_order_of_keys() {
        let job = |name: &str| JobId::parse(name).expect("an id");
        let schedule = |name: &str| ScheduleId::parse(name).expect("an id");
        let args: Args = [("n".to_owned(), "1\0".to_owned())].into_iter().collect();
        let mut keys = vec![
            Key::Pause,
            Key::Job(job("a")),
            Key::JobState(job("größe")),
            Key::Cursor(job("a"), schedule("z")),
            Key::Cursor(job("a"), schedule("s\0t")),
            Key::Cursor(job("a b"), schedule("s")),
            Key::Cursor(job("a/b"), schedule("s")),
            Key::Backlog(job("a"), schedule("s")),
            Key::Identity(job("a"), Args::new()),
            Key::Identity(job("a"), args),
            Key::Run(RunId::from_key(cronhold_schedule::Instant::EPOCH, "x")),
            Key::Lock(LockName::parse("a lock").expect("a name")),
            Key::Node(NodeId::from_bits(7)),
            Key::Foreign(job("a")),
        ];
        for wanted in &keys {
            assert_eq!(key(wanted.kind(), &field(wanted)).as_ref(), Some(wanted));
            assert_eq!(kind(b'0' + digit(wanted.kind())), Some(wanted.kind()));
        }
        keys.sort();
        // Identities are never listed.
        let listed = keys.iter().filter(|key| key.kind() != Kind::Identity);
        let texts: Vec<_> = listed.map(|key| (digit(key.kind()), field(key))).collect();
        assert!(texts.is_sorted(), "{texts:?}");
        assert_eq!((key(Kind::Cursor, "no schedule"), key(Kind::Run, "x"), kind(b':')), (None, None, None));
    }
}
