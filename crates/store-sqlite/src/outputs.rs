//! Reads outputs of runs by position. They are stored in pieces of limited size, so that reading a range costs in
//! proportion to its length.

use cronhold_core::RunId;
use cronhold_store::{Chunk, OutputSizes};
use rusqlite::{Connection, OptionalExtension};

/// Bytes of a piece, at most.
pub(crate) const PIECE_MAX: usize = 64 * 1024;

/// The length of an output; no row if there is none.
pub(crate) const LENGTH: &str = "SELECT at + length(bytes) FROM outputs WHERE run = ?1 ORDER BY at DESC LIMIT 1";

/// At most `most` bytes from a position.
pub(crate) fn read(connection: &Connection, run: RunId, from: u64, most: usize) -> rusqlite::Result<Chunk> {
    let id = run.to_string();
    let length: Option<u64> = connection.prepare_cached(LENGTH)?.query_row([&id], |row| row.get(0)).optional()?;
    let length = length.unwrap_or(0);
    let from = from.min(length);
    let until = from.saturating_add(most as u64).min(length);
    let mut bytes = Vec::with_capacity(usize::try_from(until - from).unwrap_or(0));
    // No piece is longer than `PIECE_MAX`, so the one that contains `from` begins less than that before it.
    let first = from.saturating_sub(PIECE_MAX as u64 - 1);
    let mut statement = connection
        .prepare_cached("SELECT at, bytes FROM outputs WHERE run = ?1 AND at >= ?2 AND at < ?3 ORDER BY at")?;
    let mut rows = statement.query((&id, first, until))?;
    while let Some(row) = rows.next()? {
        let at: u64 = row.get(0)?;
        let piece = row.get_ref(1)?.as_blob()?;
        let within =
            |position: u64| usize::try_from(position.saturating_sub(at)).unwrap_or(usize::MAX).min(piece.len());
        bytes.extend_from_slice(&piece[within(from)..within(until)]);
    }
    Ok(Chunk { bytes, length })
}

/// The size of all outputs, which triggers count, and of those of these runs.
pub(crate) fn sizes(connection: &Connection, runs: &[RunId]) -> rusqlite::Result<OutputSizes> {
    let total = connection.prepare_cached("SELECT bytes FROM output_total")?.query_row([], |row| row.get(0))?;
    let mut statement = connection.prepare_cached(LENGTH)?;
    let length = |run: &RunId| statement.query_row([run.to_string()], |row| row.get(0)).optional();
    let of_runs = runs.iter().map(length).collect::<rusqlite::Result<Vec<Option<u64>>>>()?;
    Ok(OutputSizes { total, of_runs: of_runs.into_iter().map(Option::unwrap_or_default).collect() })
}

/// Runs that have an output, ordered by id, after this one. Reads only the first index entry of each run.
pub(crate) fn list(connection: &Connection, after: Option<RunId>, limit: usize) -> rusqlite::Result<Vec<RunId>> {
    // No id comes before the empty text.
    let mut last = after.map_or(String::new(), |run| run.to_string());
    let mut statement = connection.prepare_cached("SELECT min(run) FROM outputs WHERE run > ?1")?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(run) = statement.query_row([&last], |row| row.get::<_, Option<String>>(0))?
    {
        // A value that is not a run id was not written by us.
        found.extend(RunId::parse(&run));
        last = run;
    }
    Ok(found)
}
