//! Reads lists of tasks, queues and channels. Each query uses an index, and continues where the page before ended.

use cronhold_core::task::{Channel, QueueName, TaskRecord};
use cronhold_schedule::Instant;
use cronhold_store::tasks::{ChannelSummary, QueueSummary, TaskQuery};
use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::record::{TASK_COLUMNS, read_task};
use super::{TaskRowError, TaskTransaction};
use crate::listing::SqlCondition;
use crate::rows::CellReader;

impl TaskTransaction<'_> {
    pub(super) fn page(&self, query: &TaskQuery, limit: usize) -> Result<Vec<TaskRecord>, TaskRowError> {
        let mut condition = SqlCondition::default();
        if let Some(queue) = &query.queue {
            condition.text("queue = ?", queue.as_str());
        }
        if let Some(status) = query.status {
            condition.text("status = ?", status.as_str());
        }
        if let Some(after) = query.after {
            condition.and("id > ?", [Value::Integer(after.number().cast_signed())]);
        }
        let sql = format!("SELECT {TASK_COLUMNS} FROM tasks{} ORDER BY id LIMIT ?", condition.clause());
        let mut cells = condition.values;
        cells.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
        self.all(&sql, params_from_iter(cells), read_task)
    }

    pub(super) fn queues(&self) -> Result<Vec<QueueSummary>, TaskRowError> {
        let sql = "SELECT queue, sum(ready) FROM (\
                       SELECT DISTINCT queue, 0 AS ready FROM task_classes UNION ALL \
                       SELECT queue, count(*) FROM tasks WHERE entry IS NOT NULL AND step IS NULL GROUP BY queue\
                   ) GROUP BY queue ORDER BY queue";
        self.all(sql, [], |row| {
            let cells = CellReader::new(row);
            Ok(QueueSummary { queue: cells.parsed(QueueName::parse)?, ready: cells.integer()? })
        })
    }

    pub(super) fn channels(&self, after: Option<&Channel>, limit: usize) -> Result<Vec<ChannelSummary>, TaskRowError> {
        let sql = "SELECT channel, count(*) FROM task_channels WHERE channel > ?1 GROUP BY channel LIMIT ?2";
        // The empty text comes before every channel.
        self.all(sql, (after.map_or("", Channel::as_str), limit), |row| {
            let cells = CellReader::new(row);
            Ok(ChannelSummary { channel: cells.parsed(Channel::parse)?, subscribers: cells.integer()? })
        })
    }

    /// When the next task is due or the next lease expires.
    pub(super) fn next_due(&self) -> Result<Option<Instant>, TaskRowError> {
        let mut first = None;
        for sql in [
            "SELECT run_at FROM tasks WHERE run_at IS NOT NULL ORDER BY run_at LIMIT 1",
            "SELECT lease_until FROM tasks WHERE lease_until IS NOT NULL ORDER BY lease_until LIMIT 1",
        ] {
            let found = self.first(sql, [], |row| CellReader::new(row).instant())?;
            first = first.into_iter().chain(found).min();
        }
        Ok(first)
    }
}
