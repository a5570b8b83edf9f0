//! Reads lists of runs, the latest id first. A list of what ran since some time also has runs of earlier occurrences,
//! which an index finds by when they ended.

use std::collections::BTreeSet;

use cronhold_core::record::RecordKind;
use cronhold_core::{RunId, State};
use cronhold_schedule::Instant;
use cronhold_store::{Fault, Page, RunQuery};
use cronhold_store_records::moment_text;
use redis::Value;

use crate::listing::{FieldValue, PageReader, class, count, field_values, id, name};
use crate::reply;

/// Members of the index of ends that one call reads.
const ENDED_PART: usize = 1_000;
/// The position of the class in a member of the index of ends; the id follows it.
const CLASS: usize = 16;

/// A part of a list of runs that one index has.
struct RunScan<'q> {
    query: &'q RunQuery,
    /// The states whose classes are scanned.
    states: Vec<State>,
    /// Only ids below this one.
    below: Option<RunId>,
    /// Only ids at or above this text.
    from: String,
}

impl PageReader {
    /// A page of runs, the latest id first.
    pub(crate) async fn latest_runs(&self, query: RunQuery, limit: usize) -> Result<Page, Fault> {
        let states = if query.states.is_empty() { State::ALL.to_vec() } else { query.states.clone() };
        let below = query.before;
        match query.since.filter(|_| query.job.is_none()) {
            Some(since) => self.runs_since(&query, &states, since, limit).await,
            // A job keeps few runs, so those of the job are scanned.
            None => self.scan(RunScan { query: &query, states, below, from: String::new() }, limit).await,
        }
    }

    /// Runs of all jobs that were unfinished at `since` or later. Those with a later nominal time have the latest ids.
    async fn runs_since(
        &self,
        query: &RunQuery,
        states: &[State],
        since: Instant,
        limit: usize,
    ) -> Result<Page, Fault> {
        let first = RunId::from_random(since, [0; 10]);
        // Run ids begin with the milliseconds of the nominal time.
        let from = format!("{:012x}", since.millis().max(0));
        let later = RunScan { query, states: states.to_vec(), below: query.before, from };
        let mut page = self.scan(later, limit).await?;
        let left = limit - page.len();
        if left == 0 {
            return Ok(page);
        }
        let below = query.before.map_or(first, |before| before.min(first));
        let (ended, open): (Vec<State>, Vec<State>) = states.iter().copied().partition(|state| state.is_finished());
        let mut earlier = Page::default();
        if !open.is_empty() {
            let open = RunScan { query, states: open, below: Some(below), from: String::new() };
            earlier = self.scan(open, left).await?;
        }
        for (field, value) in self.ended_since(&ended, since, below, left).await? {
            // A node of an earlier version deletes a run without its entry in this index.
            let Some(value) = value else { continue };
            self.add(&mut earlier, query, &field, Some(value));
        }
        earlier.records.sort_by_key(|stored| std::cmp::Reverse(stored.record.key().run_list_id()));
        earlier.records.truncate(left);
        // The part that was truncated is on the next page.
        let last = earlier.records.last().filter(|_| earlier.len() >= left).map(|stored| stored.record.key());
        earlier.unreadable.into_iter().for_each(|record| page.push_unreadable(record));
        earlier.records.into_iter().for_each(|stored| page.push(stored));
        page.last = last.or(page.last);
        Ok(page)
    }

    /// The runs with the latest ids below an id, among those that ended at or after a time.
    async fn ended_since(
        &self,
        states: &[State],
        since: Instant,
        below: RunId,
        limit: usize,
    ) -> Result<Vec<FieldValue>, Fault> {
        let classes: Vec<u8> = states.iter().copied().flat_map(class).collect();
        let mut min = format!("[{}", moment_text(since));
        let mut found: BTreeSet<RunId> = BTreeSet::new();
        // Without ended states there is nothing to look for.
        let mut has_more = !classes.is_empty();
        while has_more {
            let members = self.request_page("ended", vec![min.clone().into_bytes(), count(ENDED_PART)]).await?;
            has_more = members.len() == ENDED_PART;
            for member in members {
                let member = reply::text(member)?;
                let is_wanted = member.as_bytes().get(CLASS).is_some_and(|class| classes.contains(class));
                let run = member.get(CLASS + 1..).and_then(|run| RunId::parse(run).ok());
                found.extend(run.filter(|run| is_wanted && *run < below));
                if found.len() > limit {
                    found.pop_first();
                }
                min = format!("({member}");
            }
        }
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let ids = found.into_iter().map(|run| run.to_string().into_bytes()).collect();
        field_values(self.request_page("ids", ids).await?)
    }

    /// The runs of a part. If the query matches few of many, several calls scan the index.
    async fn scan(&self, scan: RunScan<'_>, limit: usize) -> Result<Page, Fault> {
        let mut page = Page::default();
        let mut below = scan.below;
        loop {
            let wanted = limit - page.len();
            let mut reply = self.request_page("latest", scan.args(below, wanted)).await?.into_iter();
            let next = reply::text(reply.next().unwrap_or(Value::Nil))?;
            for (field, value) in field_values(reply.collect())? {
                self.add(&mut page, scan.query, &field, value);
            }
            if next.is_empty() || page.len() >= limit {
                return Ok(page);
            }
            below = RunId::parse(&next).ok();
        }
    }

    /// Adds a run to a page. Runs of earlier versions have no end in the index, so it is compared here.
    fn add(&self, page: &mut Page, query: &RunQuery, field: &str, value: Option<Vec<u8>>) {
        match self.decode_listed(RecordKind::Run, field, value) {
            Ok(stored) if query.includes_end_of(&stored.record) => page.push(stored),
            Ok(_) => {}
            Err(record) => page.push_unreadable(record),
        }
    }
}

impl RunScan<'_> {
    /// Arguments of the script.
    fn args(&self, below: Option<RunId>, limit: usize) -> Vec<Vec<u8>> {
        let RunQuery { job, number, states, since, .. } = self.query;
        let mut classes: Vec<u8> = self.states.iter().copied().flat_map(class).collect();
        classes.sort_unstable();
        classes.dedup();
        // Only unfinished states share a class.
        let is_mixed = states.iter().any(|state| !state.is_finished());
        let digits = states.iter().filter(|_| is_mixed).map(|state| state_digit(*state)).collect();
        let number = number.map_or_else(String::new, |number| format!("{:016x}", number.0));
        let since = since.map_or_else(String::new, moment_text);
        let texts = [number, since].map(String::into_bytes);
        let head = [name(job.as_ref()), classes, id(below), self.from.clone().into_bytes(), digits];
        head.into_iter().chain(texts).chain([count(limit)]).collect()
    }
}

/// The digit of a state in the first line of a run.
fn state_digit(state: State) -> u8 {
    let index = State::ALL.iter().position(|known| *known == state).expect("all states are there");
    b'0' + u8::try_from(index).expect("there are fewer than ten")
}
