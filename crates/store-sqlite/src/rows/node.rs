//! Nodes.

use std::sync::Arc;

use cronhold_core::NodeId;
use cronhold_core::record::{NodeRecord, Record};

use super::cells::{CellReader, RowCells, UnreadableRow};
use super::table::TableLayout;

pub(super) const LAYOUT: TableLayout = TableLayout {
    name: "nodes",
    key: &["id"],
    rest: &["name", "incarnation", "since", "beat", "gone", "labels", "draining"],
    fixed: &[],
};

pub(super) fn write(cells: &mut RowCells, node: &NodeRecord) {
    cells.text(&node.name);
    cells.integer(node.incarnation);
    cells.instant(node.since);
    cells.instant(node.beat);
    cells.instant(node.gone);
    cells.json(&node.labels);
    cells.integer(node.draining);
}

pub(super) fn read(id: NodeId, reading: &CellReader<'_>) -> Result<Record, UnreadableRow> {
    let node = NodeRecord {
        id,
        name: reading.text()?.to_owned(),
        incarnation: reading.integer()?,
        since: reading.instant()?,
        beat: reading.instant()?,
        gone: reading.instant()?,
        labels: reading.json()?,
        draining: reading.flag()?,
        // These are only needed on a shared store, and a file is not shared.
        skew: None,
        zones: String::new(),
        keeper_problem: None,
    };
    Ok(Record::Node(Arc::new(node)))
}
