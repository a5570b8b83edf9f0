//! The units that move the finished runs and outcomes of a renamed job to its new name. The request that renames the job
//! sends them; the walk through what can expire sends them too, for a rename that was interrupted.

use cronhold_core::JobId;
use cronhold_core::command::Command;
use cronhold_core::decide::MOVED_MAX;
use cronhold_core::record::RecordKey;
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
    let (mut keys, mut is_last) = (Vec::new(), false);
    while keys.is_empty() && !is_last {
        // Records that cannot be read stay under the old name.
        let runs = store.page(&Query::Runs(query.clone()), limit).await?;
        keys.extend(runs.records.iter().map(|stored| stored.record.key()));
        query.before = runs.next(limit).and_then(|last| last.run_list_id());
        is_last = query.before.is_none();
    }
    if is_last && keys.len() < limit {
        let outcomes = store.page(&Query::IdentitiesOf { job: from.clone() }, limit - keys.len()).await?;
        keys.extend(outcomes.records.iter().map(|stored| stored.record.key()));
    }
    let command = |keys: &[RecordKey]| Command::MoveHistory { to: to.clone(), keys: keys.to_vec() };
    // Only a list without any says that everything has moved.
    Ok(if keys.is_empty() { vec![command(&[])] } else { keys.chunks(MOVED_MAX).map(command).collect() })
}
