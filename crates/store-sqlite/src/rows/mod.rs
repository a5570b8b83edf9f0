//! Converts records to rows and back: one file for each table has both directions.

mod action;
mod backlog;
mod cells;
mod cursor;
mod identity;
mod job;
mod job_state;
mod node;
mod pause;
mod pool;
mod run;
mod table;
mod triggers;

use cronhold_core::record::{ActionId, PoolName, Record, RecordKey, RecordVersion, ScheduleId, StoredRecord};
use cronhold_core::{JobId, NodeId, RunId};
use cronhold_schedule::ZoneRegistry;
use rusqlite::Row;
use rusqlite::types::Value;

pub(crate) use cells::{CellReader, RowCells, UnreadableRow, version_value};
pub(crate) use cursor::minute;
pub(crate) use table::RecordTable;

/// The cells of a record in the column order of its table, with capacity for a version after them.
pub(crate) fn write(record: &Record, version: RecordVersion) -> Vec<Value> {
    let key = record.key();
    let width = RecordTable::of(key.kind()).map_or(0, |table| table.layout().width());
    let mut cells = RowCells::new(width + 1);
    write_key(&mut cells, &key);
    cells.version(version);
    match record {
        Record::Pause(pauses) => pause::write(&mut cells, pauses),
        Record::Job(job) => job::write(&mut cells, job),
        Record::JobState(state) => job_state::write(&mut cells, state),
        Record::Cursor(cursor) => cursor::write(&mut cells, cursor),
        Record::Backlog(backlog) => backlog::write(&mut cells, backlog),
        Record::Identity(identity) => identity::write(&mut cells, identity),
        Record::Run(run) => run::write(&mut cells, run),
        Record::SkipSpan(span) => run::write_span(&mut cells, span),
        Record::Node(node) => node::write(&mut cells, node),
        Record::Action(action) => action::write(&mut cells, action),
        Record::Pool(pool) => pool::write(&mut cells, pool),
        Record::Triggers(set) => triggers::write(&mut cells, set),
        // Locks are taken and released, and foreign runs are read-only; neither is ever put.
        Record::Lock(_) | Record::Foreign(_) => {}
    }
    cells.into_values()
}

/// The cells of a key, with capacity for a version after them.
pub(crate) fn key_cells(key: &RecordKey) -> Vec<Value> {
    let mut cells = RowCells::new(3);
    write_key(&mut cells, key);
    cells.into_values()
}

/// The key and the version of a row that cannot be decoded as a whole. The key is `None` if it cannot be decoded either;
/// a row of runs counts as a run, although it may be a span of skips.
pub(crate) fn read_key(table: RecordTable, row: &Row<'_>) -> (Option<RecordKey>, Option<RecordVersion>) {
    let version = row.get::<_, i64>(table.layout().key.len()).ok();
    let version = version.map(|bits| RecordVersion::from_bits(bits.cast_unsigned()));
    (decode_key(table, &CellReader::new(row)).ok(), version)
}

fn decode_key(table: RecordTable, reading: &CellReader<'_>) -> Result<RecordKey, UnreadableRow> {
    let job = || reading.parsed(JobId::parse);
    Ok(match table {
        RecordTable::Pause => RecordKey::Pause,
        RecordTable::Jobs => RecordKey::Job(job()?),
        RecordTable::JobStates => RecordKey::JobState(job()?),
        RecordTable::Cursors => RecordKey::Cursor(job()?, reading.parsed(ScheduleId::parse)?),
        RecordTable::Backlogs => RecordKey::Backlog(job()?, reading.parsed(ScheduleId::parse)?),
        RecordTable::Identities => RecordKey::Identity(job()?, reading.json()?),
        RecordTable::Runs => RecordKey::Run(reading.parsed(RunId::parse)?),
        RecordTable::Nodes => RecordKey::Node(reading.parsed(NodeId::parse)?),
        RecordTable::Actions => RecordKey::Action(reading.parsed(ActionId::parse)?),
        RecordTable::Pools => RecordKey::Pool(reading.parsed(PoolName::parse)?),
        RecordTable::Triggers => RecordKey::Triggers(job()?),
    })
}

/// Decodes a whole row.
pub(crate) fn read(table: RecordTable, row: &Row<'_>, zones: &ZoneRegistry) -> Result<StoredRecord, UnreadableRow> {
    let reading = &CellReader::new(row);
    let (version, record) = match table {
        RecordTable::Pause => {
            reading.integer::<i64>()?;
            (reading.version()?, pause::read_record(reading)?)
        }
        RecordTable::Jobs => {
            let (id, version) = (reading.parsed(JobId::parse)?, reading.version()?);
            (version, job::read(id, reading, zones)?)
        }
        RecordTable::JobStates => {
            let (job, version) = (reading.parsed(JobId::parse)?, reading.version()?);
            (version, job_state::read(job, reading)?)
        }
        RecordTable::Cursors => {
            let (job, schedule) = (reading.parsed(JobId::parse)?, reading.parsed(ScheduleId::parse)?);
            (reading.version()?, cursor::read(job, schedule, reading)?)
        }
        RecordTable::Backlogs => {
            let (job, schedule) = (reading.parsed(JobId::parse)?, reading.parsed(ScheduleId::parse)?);
            (reading.version()?, backlog::read(job, schedule, reading)?)
        }
        RecordTable::Identities => {
            let (job, args) = (reading.parsed(JobId::parse)?, reading.json()?);
            (reading.version()?, identity::read(job, args, reading)?)
        }
        RecordTable::Runs => {
            let (id, version) = (reading.parsed(RunId::parse)?, reading.version()?);
            (version, run::read(id, reading)?)
        }
        RecordTable::Nodes => {
            let (id, version) = (reading.parsed(NodeId::parse)?, reading.version()?);
            (version, node::read(id, reading)?)
        }
        RecordTable::Actions => {
            let (id, version) = (reading.parsed(ActionId::parse)?, reading.version()?);
            (version, action::read(id, reading)?)
        }
        RecordTable::Pools => {
            let (name, version) = (reading.parsed(PoolName::parse)?, reading.version()?);
            (version, pool::read(name, reading)?)
        }
        RecordTable::Triggers => {
            let (job, version) = (reading.parsed(JobId::parse)?, reading.version()?);
            (version, triggers::read(job, reading)?)
        }
    };
    Ok(StoredRecord { version, record })
}

fn write_key(cells: &mut RowCells, key: &RecordKey) {
    match key {
        RecordKey::Pause => cells.integer(pause::ONLY),
        RecordKey::Job(job) | RecordKey::JobState(job) | RecordKey::Foreign(job) | RecordKey::Triggers(job) => {
            cells.text(job.as_str());
        }
        RecordKey::Cursor(job, schedule) | RecordKey::Backlog(job, schedule) => {
            cells.text(job.as_str());
            cells.text(schedule.as_str());
        }
        RecordKey::Identity(job, args) => {
            cells.text(job.as_str());
            cells.json(args);
        }
        RecordKey::Run(run) | RecordKey::SkipSpan(run) => cells.display(run),
        RecordKey::Lock(name) => cells.text(name.as_str()),
        RecordKey::Node(node) => cells.display(node),
        RecordKey::Action(action) => cells.display(action),
        RecordKey::Pool(pool) => cells.text(pool.as_str()),
    }
}
