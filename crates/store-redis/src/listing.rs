//! Reads pages of records, and due obligations. Indexes are sorted sets in byte order, so that a page begins after a
//! member and not at an offset.

use std::sync::{Arc, LazyLock};

use cronhold_core::record::{RecordKey, RecordKind, StoredRecord};
use cronhold_core::{JobId, RunId, State};
use cronhold_schedule::Instant;
use cronhold_store::{Fault, Obligation, Page, Query, UnreadableRecord};
use cronhold_store_records::{UnreadableText, moment_text, read_moment};
use redis::Value;

use crate::client::NamespaceClient;
use crate::connections::Script;
use crate::load::RecordReader;
use crate::{keys, reply};

static PAGE: LazyLock<Script> = LazyLock::new(|| Script::on_namespace(&[include_str!("scripts/page.lua")]));

/// A field and its value; `None` if the record does not exist.
pub(crate) type FieldValue = (String, Option<Vec<u8>>);

/// Digits of a time in the index `due`, and what follows them.
const SLOT_DIGITS: usize = 10;
const SLOT_END: &str = "000000";

/// Reads pages of lists.
#[derive(Debug)]
pub(crate) struct PageReader {
    client: Arc<NamespaceClient>,
    records: Arc<RecordReader>,
}

impl PageReader {
    pub(crate) fn new(client: Arc<NamespaceClient>, records: Arc<RecordReader>) -> Self {
        Self { client, records }
    }

    pub(crate) fn client(&self) -> &NamespaceClient {
        &self.client
    }

    pub(crate) fn records(&self) -> &RecordReader {
        &self.records
    }

    /// Obligations that are due at or before `until`, ordered by a rounded time and then by key. Without runs that a
    /// node owns.
    pub(crate) async fn due(
        &self,
        after: Option<Obligation>,
        until: Instant,
        limit: usize,
    ) -> Result<Vec<Obligation>, Fault> {
        let mut min = after.map_or_else(
            || "-".to_owned(),
            |Obligation { at, key }| format!("({}{}{}", due_slot(at), keys::letter(key.kind()), keys::field(&key)),
        );
        let mut found = Vec::new();
        while found.len() < limit {
            let args = vec![min.into_bytes(), moment_text(until).into_bytes(), count(limit - found.len())];
            let mut reply = self.request_page("due", args).await?.into_iter();
            let next = reply::text(reply.next().unwrap_or(Value::Nil))?;
            for (member, at) in field_values(reply.collect())? {
                // A member that is not one of ours must not stop the others.
                found.extend(at.and_then(|at| obligation(&member, std::str::from_utf8(&at).ok()?)));
            }
            if next.is_empty() {
                break;
            }
            min = format!("({next}");
        }
        Ok(found)
    }

    /// A page of the list that the query selects.
    pub(crate) async fn page(&self, query: Query, limit: usize) -> Result<Page, Fault> {
        if limit == 0 {
            return Ok(Page::default());
        }
        match query {
            Query::Jobs { after } => self.by_field(RecordKind::Job, after.map(RecordKey::Job), limit).await,
            Query::JobStates { after } => {
                self.by_field(RecordKind::JobState, after.map(RecordKey::JobState), limit).await
            }
            Query::Cursors { after } => {
                let after = after.map(|(job, schedule)| RecordKey::Cursor(job, schedule));
                self.by_field(RecordKind::Cursor, after, limit).await
            }
            Query::Backlogs { after } => {
                let after = after.map(|(job, schedule)| RecordKey::Backlog(job, schedule));
                self.by_field(RecordKind::Backlog, after, limit).await
            }
            Query::Identities { after } => {
                if after.is_none() {
                    self.complete_index(RecordKind::Identity).await?;
                }
                let after = after.map(|(job, args)| RecordKey::Identity(job, args));
                self.by_field(RecordKind::Identity, after, limit).await
            }
            Query::IdentitiesOf { job } => {
                // Digits of the index are the fields of the hash: the job, NUL, the args. SOH follows NUL.
                let ends = ['\0', '\u{1}'].map(|end| format!("({job}{end}").into_bytes());
                let [min, max] = ends;
                self.complete_index(RecordKind::Identity).await?;
                let args = vec![keys::digit(RecordKind::Identity).to_string().into_bytes(), min, max, count(limit)];
                let found = self.request_page("fields", args).await?;
                self.read_page(RecordKind::Identity, found, limit)
            }
            Query::Pools { after } => self.by_field(RecordKind::Pool, after.map(RecordKey::Pool), limit).await,
            Query::PendingTriggers { after } => {
                self.by_field(RecordKind::Triggers, after.map(RecordKey::Triggers), limit).await
            }
            Query::PendingActions { after } => {
                self.by_field(RecordKind::Action, after.map(RecordKey::Action), limit).await
            }
            Query::Nodes { after } => self.nodes(after.map(|after| after.to_string()), limit).await,
            Query::Unfinished { node: Some(node), after } => {
                let args = vec![node.to_string().into_bytes(), id(after), count(limit)];
                self.read_page(RecordKind::Run, self.request_page("owned", args).await?, limit)
            }
            Query::Unfinished { node: None, after } => {
                let args = vec![Vec::new(), class(State::Running), id(after), count(limit)];
                self.read_page(RecordKind::Run, self.request_page("runs", args).await?, limit)
            }
            Query::Oldest { state, .. } if !state.is_finished() => Ok(Page::default()),
            Query::Oldest { job, state, after } => {
                let args = vec![name(Some(&job)), class(state), id(after), count(limit)];
                self.read_page(RecordKind::Run, self.request_page("runs", args).await?, limit)
            }
            Query::Runs(query) => self.latest_runs(query, limit).await,
        }
    }

    /// Records of a kind, ordered by field.
    async fn by_field(&self, kind: RecordKind, after: Option<RecordKey>, limit: usize) -> Result<Page, Fault> {
        let min = after.map_or_else(|| "-".to_owned(), |key| format!("({}", keys::field(&key)));
        let args = vec![keys::digit(kind).to_string().into_bytes(), min.into_bytes(), b"+".to_vec(), count(limit)];
        let found = self.request_page("fields", args).await?;
        self.read_page(kind, found, limit)
    }

    /// Adds records to the index of their kind that were written by a version without that index.
    async fn complete_index(&self, kind: RecordKind) -> Result<(), Fault> {
        let mut cursor = b"0".to_vec();
        loop {
            let args = vec![keys::digit(kind).to_string().into_bytes(), cursor];
            let next = self.request_page("indexed", args).await?.into_iter().next().unwrap_or(Value::Nil);
            cursor = reply::text(next)?.into_bytes();
            if cursor == b"0" {
                return Ok(());
            }
        }
    }

    /// Nodes by id. They are few and have no index.
    async fn nodes(&self, after: Option<String>, limit: usize) -> Result<Page, Fault> {
        let mut found = field_values(self.request_page("nodes", Vec::new()).await?)?;
        found.retain(|(field, _)| after.as_ref().is_none_or(|after| field > after));
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found.truncate(limit);
        self.page_of(RecordKind::Node, found, limit)
    }

    pub(crate) async fn request_page(&self, list: &str, args: Vec<Vec<u8>>) -> Result<Vec<Value>, Fault> {
        let head = [self.client.namespace_arg(), list.as_bytes().to_vec()];
        reply::list(self.client.call(&PAGE, head.into_iter().chain(args).collect()).await?)
    }

    fn read_page(&self, kind: RecordKind, reply: Vec<Value>, limit: usize) -> Result<Page, Fault> {
        self.page_of(kind, field_values(reply)?, limit)
    }

    fn page_of(&self, kind: RecordKind, found: Vec<FieldValue>, limit: usize) -> Result<Page, Fault> {
        let mut page = Page::default();
        for (field, value) in found {
            match self.decode_listed(kind, &field, value) {
                Ok(stored) => page.push(stored),
                // An unreadable record must not hide the others.
                Err(record) => page.push_unreadable(record),
            }
        }
        match page.unreadable.last() {
            // Such a page has no key after which the next could begin, and would look like the end of the list.
            Some(record) if page.last.is_none() && page.len() >= limit => {
                Err(Fault::Unreadable(Box::new(record.clone())))
            }
            _ => Ok(page),
        }
    }

    pub(crate) fn decode_listed(
        &self,
        kind: RecordKind,
        field: &str,
        value: Option<Vec<u8>>,
    ) -> Result<StoredRecord, UnreadableRecord> {
        let missing = || UnreadableText::new("the index has it, and the record does not exist");
        let value = value.ok_or_else(|| self.records.unreadable(kind, field, None, &missing()))?;
        self.records.decode_stored(kind, field, &value)
    }
}

/// The time of a record in the index `due`, see `slot_of` in `prelude.lua`.
fn due_slot(at: Instant) -> String {
    let mut text = moment_text(at);
    text.replace_range(SLOT_DIGITS.., SLOT_END);
    text
}

/// The obligation of a record: the letter of its kind and its field, and its due time; `None` if they are invalid.
fn obligation(member: &str, at: &str) -> Option<Obligation> {
    let kind = member.bytes().next().and_then(keys::kind)?;
    Some(Obligation { at: read_moment(at).ok()?, key: keys::key(kind, &member[1..])? })
}

/// The digit of a state's class, see `prelude.lua`.
pub(crate) fn class(state: State) -> Vec<u8> {
    let digit = match state {
        State::Success => b'1',
        State::Failure => b'2',
        State::Error => b'3',
        State::Skipped => b'4',
        _ => b'0',
    };
    vec![digit]
}

/// The limit as Redis takes it, which is signed.
pub(crate) fn count(limit: usize) -> Vec<u8> {
    i64::try_from(limit).unwrap_or(i64::MAX).to_string().into_bytes()
}

pub(crate) fn name(job: Option<&JobId>) -> Vec<u8> {
    job.map(|job| job.as_str().as_bytes().to_vec()).unwrap_or_default()
}

pub(crate) fn id(run: Option<RunId>) -> Vec<u8> {
    run.map(|run| run.to_string().into_bytes()).unwrap_or_default()
}

/// Alternating fields and values.
pub(crate) fn field_values(reply: Vec<Value>) -> Result<Vec<FieldValue>, Fault> {
    let mut found = Vec::with_capacity(reply.len() / 2);
    let mut reply = reply.into_iter();
    while let (Some(field), Some(value)) = (reply.next(), reply.next()) {
        found.push((reply::text(field)?, reply::bytes(value)?));
    }
    Ok(found)
}
