//! Names of records as text: a number and a letter for each kind, and a field for each record of a kind. Stores that keep
//! records by text use them as names of hashes, paths or index members.

use cronhold_core::record::{ActionId, LockName, PoolName, RecordKey, RecordKind, ScheduleId};
use cronhold_core::{Args, JobId, NodeId, RunId};

/// Separates the parts of a field. Job ids do not contain it, so that fields sort by their parts.
const BETWEEN: char = '\0';

/// The field of the global pause.
const ALL: &str = "all";

/// The field of a record among those of its kind. Fields sort like keys, except those of identities.
pub fn key_field(key: &RecordKey) -> String {
    let pair = |job: &JobId, other: &str| format!("{job}{BETWEEN}{other}");
    match key {
        RecordKey::Pause => ALL.to_owned(),
        RecordKey::Job(job) | RecordKey::JobState(job) | RecordKey::Triggers(job) => job.as_str().to_owned(),
        RecordKey::Cursor(job, schedule) | RecordKey::Backlog(job, schedule) => pair(job, schedule.as_str()),
        RecordKey::Identity(job, args) => pair(job, &args.canonical()),
        RecordKey::Run(run) | RecordKey::SkipSpan(run) => run.to_string(),
        RecordKey::Lock(lock) => lock.as_str().to_owned(),
        RecordKey::Node(node) => node.to_string(),
        RecordKey::Foreign(job) => job.as_str().to_owned(),
        RecordKey::Action(action) => action.to_string(),
        RecordKey::Pool(pool) => pool.as_str().to_owned(),
    }
}

/// The key of a record from its field; `None` if the field is invalid.
pub fn parse_key(kind: RecordKind, field: &str) -> Option<RecordKey> {
    let schedule = || {
        let (job, schedule) = field.split_once(BETWEEN)?;
        Some((JobId::parse(job).ok()?, ScheduleId::parse(schedule).ok()?))
    };
    match kind {
        RecordKind::Pause => (field == ALL).then_some(RecordKey::Pause),
        RecordKind::Job => JobId::parse(field).ok().map(RecordKey::Job),
        RecordKind::JobState => JobId::parse(field).ok().map(RecordKey::JobState),
        RecordKind::Cursor => schedule().map(|(job, schedule)| RecordKey::Cursor(job, schedule)),
        RecordKind::Backlog => schedule().map(|(job, schedule)| RecordKey::Backlog(job, schedule)),
        RecordKind::Identity => {
            let (job, args) = field.split_once(BETWEEN)?;
            Some(RecordKey::Identity(JobId::parse(job).ok()?, Args::from_canonical(args)?))
        }
        RecordKind::Run => RunId::parse(field).ok().map(RecordKey::Run),
        RecordKind::SkipSpan => RunId::parse(field).ok().map(RecordKey::SkipSpan),
        RecordKind::Lock => LockName::parse(field).ok().map(RecordKey::Lock),
        RecordKind::Node => NodeId::parse(field).ok().map(RecordKey::Node),
        RecordKind::Foreign => JobId::parse(field).ok().map(RecordKey::Foreign),
        RecordKind::Action => ActionId::parse(field).ok().map(RecordKey::Action),
        RecordKind::Pool => PoolName::parse(field).ok().map(RecordKey::Pool),
        RecordKind::Triggers => JobId::parse(field).ok().map(RecordKey::Triggers),
    }
}

/// Kinds that are kept separately, by number. Numbers must never change, because stored texts contain them.
pub const KINDS: [RecordKind; 13] = [
    RecordKind::Pause,
    RecordKind::Job,
    RecordKind::JobState,
    RecordKind::Cursor,
    RecordKind::Backlog,
    RecordKind::Identity,
    RecordKind::Run,
    RecordKind::Lock,
    RecordKind::Node,
    RecordKind::Foreign,
    RecordKind::Action,
    RecordKind::Pool,
    RecordKind::Triggers,
];

/// The number of a kind. Numbers are in the order of kinds, so that texts that begin with them sort like keys. Spans
/// of skips have that of runs, because they are kept with the runs.
pub fn kind_number(kind: RecordKind) -> u8 {
    let table = if kind == RecordKind::SkipSpan { RecordKind::Run } else { kind };
    let place = KINDS.iter().position(|known| *known == table).expect("every kind is in the table");
    u8::try_from(place).expect("there are few")
}

/// The letter of a number: an ASCII digit, and `:`, `;` and `<` for 10 to 12, which follow the digits.
pub fn kind_letter(kind: RecordKind) -> char {
    char::from(b'0' + kind_number(kind))
}

/// The kind of a letter.
pub fn kind_of_letter(letter: u8) -> Option<RecordKind> {
    KINDS.get(usize::from(letter.checked_sub(b'0')?)).copied()
}

/// The letter of a span of skips in a hint. Its digit is that of runs.
const SPAN_LETTER: u8 = b's';

/// The letter of a kind in a hint: its ASCII digit, or a letter of its own if it shares the digit.
pub fn hint_letter(kind: RecordKind) -> u8 {
    if kind == RecordKind::SkipSpan { SPAN_LETTER } else { b'0' + kind_number(kind) }
}

/// The kind of a letter in a hint.
pub fn hint_kind(letter: u8) -> Option<RecordKind> {
    if letter == SPAN_LETTER { Some(RecordKind::SkipSpan) } else { kind_of_letter(letter) }
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
            RecordKey::Pause,
            RecordKey::Job(job("a")),
            RecordKey::JobState(job("größe")),
            RecordKey::Cursor(job("a"), schedule("z")),
            RecordKey::Cursor(job("a"), schedule("s\0t")),
            RecordKey::Cursor(job("a b"), schedule("s")),
            RecordKey::Cursor(job("a/b"), schedule("s")),
            RecordKey::Backlog(job("a"), schedule("s")),
            RecordKey::Identity(job("a"), Args::new()),
            RecordKey::Identity(job("a"), args),
            RecordKey::Run(RunId::from_key(cronhold_schedule::Instant::EPOCH, "x")),
            RecordKey::Lock(LockName::parse("a lock").expect("a name")),
            RecordKey::Node(NodeId::from_bits(7)),
            RecordKey::Foreign(job("a")),
            RecordKey::Action(ActionId::new(RunId::from_key(cronhold_schedule::Instant::EPOCH, "x"), 9)),
            RecordKey::Action(ActionId::new(RunId::from_key(cronhold_schedule::Instant::EPOCH, "x"), 10)),
            RecordKey::Pool(PoolName::parse("a pool").expect("a name")),
            RecordKey::Triggers(job("a")),
        ];
        for wanted in &keys {
            assert_eq!(parse_key(wanted.kind(), &key_field(wanted)).as_ref(), Some(wanted));
            assert_eq!(kind_of_letter(b'0' + kind_number(wanted.kind())), Some(wanted.kind()));
            assert_eq!(kind_letter(wanted.kind()) as u32, u32::from(b'0' + kind_number(wanted.kind())));
            assert_eq!(hint_kind(hint_letter(wanted.kind())), Some(wanted.kind()));
        }
        let span = RecordKey::SkipSpan(RunId::from_key(cronhold_schedule::Instant::EPOCH, "x"));
        assert_eq!(parse_key(RecordKind::SkipSpan, &key_field(&span)).as_ref(), Some(&span));
        assert_eq!(kind_number(RecordKind::SkipSpan), kind_number(RecordKind::Run));
        assert_eq!(hint_kind(hint_letter(RecordKind::SkipSpan)), Some(RecordKind::SkipSpan));
        keys.sort();
        // Identities are never listed.
        let listed = keys.iter().filter(|key| key.kind() != RecordKind::Identity);
        let texts: Vec<_> = listed.map(|key| (kind_number(key.kind()), key_field(key))).collect();
        assert!(texts.is_sorted(), "{texts:?}");
        assert_eq!(
            (parse_key(RecordKind::Cursor, "no schedule"), parse_key(RecordKind::Run, "x"), kind_of_letter(b'=')),
            (None, None, None)
        );
    }
}
