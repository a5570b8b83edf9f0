//! Names of keys in Redis: a hash for each kind of records. Fields of records and numbers of kinds are those of
//! `cronhold_store::key_names`. The scripts have the same names; this file has only those that the client needs.

use cronhold_core::record::RecordKind;
pub(crate) use cronhold_store::key_names::{
    KINDS, hint_kind, hint_letter, key_field as field, kind_letter as letter, kind_number as digit,
    kind_of_letter as kind, parse_key as key,
};

/// The key with the epoch and the seq of the store. All other keys are in its hash slot.
pub(crate) fn meta(namespace: &str) -> String {
    format!("{namespace}:cronhold:meta")
}

/// The channel for notifications of commits.
pub(crate) fn hints(namespace: &str) -> String {
    format!("{namespace}:cronhold:hints")
}

/// A channel without messages, to which only the process with this id subscribes, together with that for notifications.
pub(crate) fn own_hints(namespace: &str, process: &str) -> String {
    format!("{}:{process}", hints(namespace))
}

/// The last part of the name of the hash for a kind.
pub(crate) fn table(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Pause => "pause",
        RecordKind::Job => "jobs",
        RecordKind::JobState => "job_states",
        RecordKind::Cursor => "cursors",
        RecordKind::Backlog => "backlogs",
        RecordKind::Identity => "identities",
        RecordKind::Run | RecordKind::SkipSpan => "runs",
        RecordKind::Lock => "locks",
        RecordKind::Node => "nodes",
        RecordKind::Action => "actions",
        RecordKind::Pool => "pools",
        RecordKind::Triggers => "triggers",
        // Not a hash of ours: it is read from Cronken's keys.
        RecordKind::Foreign => "foreign",
    }
}
