//! Pools: the active runs of the jobs that share a limit.

use std::sync::Arc;

use cronhold_core::record::{Pool, PoolName, Record};

use super::cells::{CellReader, RowCells, UnreadableRow};
use super::table::TableLayout;

pub(super) const LAYOUT: TableLayout = TableLayout { name: "pools", key: &["name"], rest: &["active"], fixed: &[] };

pub(super) fn write(cells: &mut RowCells, pool: &Pool) {
    cells.json(&pool.active);
}

pub(super) fn read(name: PoolName, reading: &CellReader<'_>) -> Result<Record, UnreadableRow> {
    Ok(Record::Pool(Arc::new(Pool { name, active: reading.json()? })))
}
