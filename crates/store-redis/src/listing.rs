//! Reads pages of records, and due obligations. Indexes are sorted sets in byte order, so that a page begins after a
//! member and not at an offset.

use std::sync::{Arc, LazyLock};

use cronhold_core::record::{Record, RecordKey, RecordKind, StoredRecord};
use cronhold_core::{JobId, RunId, State};
use cronhold_schedule::Instant;
use cronhold_store::{Fault, Obligation, Page, Query, RunQuery};
use redis::Value;

use crate::client::NamespaceClient;
use crate::codec::{self, reply};
use crate::connections::Script;
use crate::keys;
use crate::load::RecordReader;

static PAGE: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[include_str!("scripts/prelude.lua"), include_str!("scripts/page.lua")]));

/// A field and its value; `None` if the record does not exist.
type FieldValue = (String, Option<Vec<u8>>);

/// Hex digits of the time at the start of a member of the index `due`.
const TIME_LEN: usize = 16;

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

    /// Obligations that are due at or before `until`, by time and then by key.
    pub(crate) async fn due(
        &self,
        after: Option<Obligation>,
        until: Instant,
        limit: usize,
    ) -> Result<Vec<Obligation>, Fault> {
        let after = after.map(|Obligation { at, key }| {
            format!("({}{}{}", codec::moment_text(at), keys::digit(key.kind()), keys::field(&key))
        });
        // No member has this byte after its time.
        let mut max = format!("[{}", codec::moment_text(until)).into_bytes();
        max.push(0xff);
        let min = after.unwrap_or_else(|| "-".to_owned()).into_bytes();
        let found = self.request_page("due", vec![min, max, count(limit)]).await?;
        found.into_iter().map(|member| self.obligation(&reply::text(member)?)).collect()
    }

    fn obligation(&self, member: &str) -> Result<Obligation, Fault> {
        let invalid = || {
            let member = member.escape_debug();
            Fault::Permanent(format!("key {}:cronhold:due: invalid member `{member}`", self.client.namespace()))
        };
        let (at, rest) = member.split_at_checked(TIME_LEN).ok_or_else(invalid)?;
        let at = codec::read_moment(at).map_err(|_| invalid())?;
        let kind = rest.bytes().next().and_then(keys::kind).ok_or_else(invalid)?;
        let key = keys::key(kind, &rest[1..]).ok_or_else(invalid)?;
        Ok(Obligation { at, key })
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

    /// Nodes by id. They are few and have no index.
    async fn nodes(&self, after: Option<String>, limit: usize) -> Result<Page, Fault> {
        let mut found = field_values(self.request_page("nodes", Vec::new()).await?)?;
        found.retain(|(field, _)| after.as_ref().is_none_or(|after| field > after));
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found.truncate(limit);
        self.page_of(RecordKind::Node, found, limit)
    }

    /// Runs, the latest id first. If the query matches few of many, several calls scan the index.
    async fn latest_runs(&self, query: RunQuery, limit: usize) -> Result<Page, Fault> {
        let mut page = Page::default();
        let mut below = query.before;
        loop {
            let wanted = limit - page.records.len() - page.unreadable.len();
            let mut reply = self.request_page("latest", latest_args(&query, below, wanted)).await?.into_iter();
            let next = reply::text(reply.next().unwrap_or(Value::Nil))?;
            for (field, value) in field_values(reply.collect())? {
                match self.decode_listed(RecordKind::Run, &field, value) {
                    Ok(stored) => page.records.extend(Some(stored).filter(|stored| is_since(stored, query.since))),
                    Err(fault) => page.unreadable.push(fault.to_string()),
                }
            }
            if next.is_empty() || page.records.len() + page.unreadable.len() >= limit {
                return Ok(page);
            }
            below = RunId::parse(&next).ok();
        }
    }

    async fn request_page(&self, list: &str, args: Vec<Vec<u8>>) -> Result<Vec<Value>, Fault> {
        let head = [self.client.namespace_arg(), list.as_bytes().to_vec()];
        reply::list(self.client.call(&PAGE, head.into_iter().chain(args).collect()).await?)
    }

    fn read_page(&self, kind: RecordKind, reply: Vec<Value>, limit: usize) -> Result<Page, Fault> {
        self.page_of(kind, field_values(reply)?, limit)
    }

    fn page_of(&self, kind: RecordKind, found: Vec<FieldValue>, limit: usize) -> Result<Page, Fault> {
        let mut page = Page::default();
        let mut last = None;
        for (field, value) in found {
            match self.decode_listed(kind, &field, value) {
                Ok(stored) => page.records.push(stored),
                // An unreadable record must not hide the others.
                Err(fault) => {
                    page.unreadable.push(fault.to_string());
                    last = Some(fault);
                }
            }
        }
        match last {
            // Such a page has no key after which the next could begin, and would look like the end of the list.
            Some(fault) if page.records.is_empty() && page.unreadable.len() >= limit => Err(fault),
            _ => Ok(page),
        }
    }

    fn decode_listed(&self, kind: RecordKind, field: &str, value: Option<Vec<u8>>) -> Result<StoredRecord, Fault> {
        let missing = || codec::UnreadableText("the index has it, and the record does not exist".to_owned());
        let value = value.ok_or_else(|| self.records.unreadable(kind, field, &missing()))?;
        self.records.decode_stored(kind, field, &value)
    }
}

/// Arguments of the script for a list of runs.
fn latest_args(query: &RunQuery, below: Option<RunId>, limit: usize) -> Vec<Vec<u8>> {
    let RunQuery { job, number, states, since, .. } = query;
    let mut classes: Vec<u8> = match states.is_empty() {
        true => State::ALL.into_iter().flat_map(class).collect(),
        false => states.iter().copied().flat_map(class).collect(),
    };
    classes.sort_unstable();
    classes.dedup();
    // Only unfinished states share a class.
    let is_mixed = states.iter().any(|state| !state.is_finished());
    let digits = states.iter().filter(|_| is_mixed).map(|state| state_digit(*state)).collect();
    // Run ids begin with the milliseconds of the nominal time.
    let from = since.map_or_else(String::new, |since| format!("{:012x}", since.millis().max(0)));
    let number = number.map_or_else(String::new, |number| format!("{:016x}", number.0));
    vec![name(job.as_ref()), classes, id(below), from.into_bytes(), digits, number.into_bytes(), count(limit)]
}

/// Ids have milliseconds only, so the exact time is compared here.
fn is_since(stored: &StoredRecord, since: Option<Instant>) -> bool {
    let is_since = |nominal: Instant| since.is_none_or(|since| nominal >= since);
    match &stored.record {
        Record::Run(run) => is_since(run.nominal),
        Record::SkipSpan(span) => is_since(span.nominal()),
        _ => false,
    }
}

/// The digit of a state in the first line of a run.
fn state_digit(state: State) -> u8 {
    let index = State::ALL.iter().position(|known| *known == state).expect("all states are there");
    b'0' + u8::try_from(index).expect("there are fewer than ten")
}

/// The digit of a state's class, see `prelude.lua`.
fn class(state: State) -> Vec<u8> {
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
fn count(limit: usize) -> Vec<u8> {
    i64::try_from(limit).unwrap_or(i64::MAX).to_string().into_bytes()
}

fn name(job: Option<&JobId>) -> Vec<u8> {
    job.map(|job| job.as_str().as_bytes().to_vec()).unwrap_or_default()
}

fn id(run: Option<RunId>) -> Vec<u8> {
    run.map(|run| run.to_string().into_bytes()).unwrap_or_default()
}

/// Alternating fields and values.
fn field_values(reply: Vec<Value>) -> Result<Vec<FieldValue>, Fault> {
    let mut found = Vec::with_capacity(reply.len() / 2);
    let mut reply = reply.into_iter();
    while let (Some(field), Some(value)) = (reply.next(), reply.next()) {
        found.push((reply::text(field)?, reply::bytes(value)?));
    }
    Ok(found)
}
