//! Nodes. The fields that a heartbeat changes and the drain flag are in the first line, where a
//! store reads them.

use std::sync::Arc;

use cronhold_core::record::{NodeRecord, Record};
use cronhold_schedule::Instant;

use crate::UnreadableText;
use crate::head::{RecordBody, TextReader};

const INCARNATION: usize = 8;
const DRAINING: usize = 1;

pub(super) fn write(body: &mut RecordBody, node: &NodeRecord) {
    body.number(u64::from(node.incarnation), INCARNATION);
    body.number(u64::from(node.draining), DRAINING);
    body.moment(Some(node.beat));
    body.moment(Some(node.gone));
    body.json(&NodeRecord { beat: Instant::EPOCH, gone: Instant::EPOCH, draining: false, ..node.clone() });
}

pub(super) fn read(reading: &TextReader<'_>) -> Result<Record, UnreadableText> {
    reading.text(INCARNATION)?;
    let draining = reading.number(DRAINING)? != 0;
    let (beat, gone) = (reading.moment()?, reading.moment()?);
    let (Some(beat), Some(gone)) = (beat, gone) else {
        return Err(UnreadableText::new("it has no time"));
    };
    let node: NodeRecord = reading.json()?;
    Ok(Record::Node(Arc::new(NodeRecord { beat, gone, draining, ..node })))
}
