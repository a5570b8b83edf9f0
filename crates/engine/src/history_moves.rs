//! The units that move the finished runs and outcomes of a renamed job to its new name. The request that renames the job
//! sends them; the walk through what can expire sends them too, for a rename that was interrupted.

use cronhold_core::JobId;
use cronhold_core::command::Command;
use cronhold_core::decide::MOVED_MAX;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{RecordKey, StoredRecord};
use cronhold_store::{Fault, Query, RunQuery, Store};

/// The next commands for a rename, at least one and at most this many. If nothing is left under the old name, it is one
/// without keys, which ends the rename. Runs come first, the latest ones before the others.
pub async fn next_history_moves(
    store: &dyn Store,
    from: &JobId,
    to: &JobId,
    commands_max: usize,
) -> Result<Vec<Command>, Fault> {
    let limit = MOVED_MAX * commands_max;
    let mut query = RunQuery { job: Some(from.clone()), ..RunQuery::default() };
    let (mut records, mut is_last) = (Vec::new(), false);
    while records.is_empty() && !is_last {
        // Records that cannot be read stay under the old name.
        let runs = store.page(&Query::Runs(query.clone()), limit).await?;
        query.before = runs.next(limit).and_then(|last| last.run_list_id());
        is_last = query.before.is_none();
        records.extend(runs.records);
    }
    if is_last && records.len() < limit {
        let outcomes = store.page(&Query::IdentitiesOf { job: from.clone() }, limit - records.len()).await?;
        records.extend(outcomes.records);
    }
    let command = |keys: Vec<RecordKey>| Command::MoveHistory { to: to.clone(), keys };
    // Only a list without any says that everything has moved.
    Ok(if records.is_empty() {
        vec![command(Vec::new())]
    } else {
        split_records(store, records).into_iter().take(commands_max).map(command).collect()
    })
}

/// Splits records into lists that one unit each can move. A record grows with the new name, and an outcome is deleted
/// under the old one, so a list has at most half of what the store writes together.
fn split_records(store: &dyn Store, records: Vec<StoredRecord>) -> Vec<Vec<RecordKey>> {
    let most = store.limits().unit.map(|unit| unit / 2);
    let mut lists: Vec<Vec<RecordKey>> = Vec::new();
    let mut bytes = 0;
    for StoredRecord { record, .. } in records {
        let key = record.key();
        let size = if most.is_some() { store.unit_size(&[RecordChange::Put(record)]) } else { 0 };
        bytes += size;
        let fits = |list: &&mut Vec<RecordKey>| list.len() < MOVED_MAX && most.is_none_or(|most| bytes <= most);
        match lists.last_mut().filter(fits) {
            Some(list) => list.push(key),
            None => {
                lists.push(vec![key]);
                bytes = size;
            }
        }
    }
    lists
}
