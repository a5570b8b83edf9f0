//! One statement for each method of `TaskRows`. Every statement uses a primary key or an index.

use std::sync::LazyLock;

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, JsonText, PortAddress, PortDirection, PortItem, PortName, QueueName,
    StateField, TaskAlias, TaskId, TaskRecord,
};
use cronhold_schedule::Instant;
use cronhold_store::tasks::{OnceRecord, PortRecord, ProcessId, TaskCounter, TaskRows, WorkerProcess};
use rusqlite::{Params, Row, params_from_iter};

use super::record::{
    PROCESS_COLUMNS, TASK_COLUMNS, changing_cells, port_key, process_cells, read_id, read_port, read_process,
    read_task, task_cells,
};
use super::{TaskRowError, TaskTransaction};
use crate::rows::{CellReader, UnreadableRow};

impl TaskTransaction<'_> {
    /// Executes a statement that changes rows.
    fn change(&self, sql: &str, cells: impl Params) -> Result<(), TaskRowError> {
        self.connection.prepare_cached(sql)?.execute(cells)?;
        Ok(())
    }

    /// The first row of a query.
    pub(super) fn first<T>(
        &self,
        sql: &str,
        cells: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, UnreadableRow>,
    ) -> Result<Option<T>, TaskRowError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(cells)?;
        Ok(rows.next()?.map(read).transpose()?)
    }

    /// All rows of a query.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        cells: impl Params,
        read: impl Fn(&Row<'_>) -> Result<T, UnreadableRow>,
    ) -> Result<Vec<T>, TaskRowError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(cells)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }
}

static SELECT_TASK: LazyLock<String> = LazyLock::new(|| format!("SELECT {TASK_COLUMNS} FROM tasks WHERE id = ?1"));

const fn counter_name(counter: TaskCounter) -> &'static str {
    match counter {
        TaskCounter::Task => "task",
        TaskCounter::Entry => "entry",
        TaskCounter::Processed => "processed",
        TaskCounter::Failed => "failed",
    }
}

fn only_id(row: &Row<'_>) -> Result<TaskId, UnreadableRow> {
    read_id(&CellReader::new(row))
}

fn only_number(row: &Row<'_>) -> Result<u64, UnreadableRow> {
    CellReader::new(row).integer()
}

impl TaskRows for TaskTransaction<'_> {
    type Error = TaskRowError;

    fn next_number(&mut self, counter: TaskCounter) -> Result<u64, TaskRowError> {
        let sql = "UPDATE task_counters SET value = value + 1 WHERE name = ?1 RETURNING value";
        Ok(self.first(sql, [counter_name(counter)], only_number)?.unwrap_or(0))
    }

    fn number(&mut self, counter: TaskCounter) -> Result<u64, TaskRowError> {
        let sql = "SELECT value FROM task_counters WHERE name = ?1";
        Ok(self.first(sql, [counter_name(counter)], only_number)?.unwrap_or(0))
    }

    fn task(&mut self, id: TaskId) -> Result<Option<TaskRecord>, TaskRowError> {
        if let Some(known) = self.known.get(id) {
            return Ok(Some(known.clone()));
        }
        let found = self.first(&SELECT_TASK, [id.number()], read_task)?;
        if let Some(found) = &found {
            self.make_room()?;
            self.known.add(found);
        }
        Ok(found)
    }

    fn insert_task(&mut self, task: &TaskRecord) -> Result<(), TaskRowError> {
        let sql = format!(
            "INSERT INTO tasks ({TASK_COLUMNS}) VALUES \
             (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)"
        );
        self.change(&sql, params_from_iter(task_cells(task)))
    }

    fn put_task(&mut self, task: &TaskRecord) -> Result<(), TaskRowError> {
        self.make_room()?;
        self.known.change(task);
        Ok(())
    }

    fn delete_task(&mut self, id: TaskId) -> Result<(), TaskRowError> {
        self.known.forget(id);
        self.change("DELETE FROM tasks WHERE id = ?1", [id.number()])
    }

    fn child(&mut self, parent: TaskId, name: &ChildName) -> Result<Option<TaskId>, TaskRowError> {
        self.write_changed()?;
        let sql = "SELECT id FROM tasks WHERE parent = ?1 AND child_name = ?2";
        self.first(sql, (parent.number(), name.as_str()), only_id)
    }

    fn children(
        &mut self,
        parent: TaskId,
        after: Option<&ChildName>,
        limit: usize,
    ) -> Result<Vec<(ChildName, TaskId)>, TaskRowError> {
        self.write_changed()?;
        let sql = "SELECT child_name, id FROM tasks WHERE parent = ?1 AND child_name > ?2 ORDER BY child_name LIMIT ?3";
        // The empty text comes before every name.
        let after = after.map_or("", ChildName::as_str);
        self.all(sql, (parent.number(), after, limit), |row| {
            let cells = CellReader::new(row);
            Ok((cells.parsed(ChildName::parse)?, read_id(&cells)?))
        })
    }

    fn alias(&mut self, alias: &TaskAlias) -> Result<Option<TaskId>, TaskRowError> {
        self.first("SELECT task FROM task_aliases WHERE alias = ?1", [alias.as_str()], only_id)
    }

    fn aliases(&mut self, task: TaskId) -> Result<Vec<TaskAlias>, TaskRowError> {
        let sql = "SELECT alias FROM task_aliases WHERE task = ?1 ORDER BY alias";
        self.all(sql, [task.number()], |row| CellReader::new(row).parsed(TaskAlias::parse))
    }

    fn put_alias(&mut self, alias: &TaskAlias, task: TaskId) -> Result<(), TaskRowError> {
        self.change("INSERT INTO task_aliases (alias, task) VALUES (?1, ?2)", (alias.as_str(), task.number()))
    }

    fn delete_alias(&mut self, alias: &TaskAlias) -> Result<(), TaskRowError> {
        self.change("DELETE FROM task_aliases WHERE alias = ?1", [alias.as_str()])
    }

    fn state(&mut self, task: TaskId) -> Result<Vec<(StateField, JsonText)>, TaskRowError> {
        let sql = "SELECT field, value FROM task_state WHERE task = ?1 ORDER BY field";
        self.all(sql, [task.number()], |row| {
            let cells = CellReader::new(row);
            Ok((cells.parsed(StateField::parse)?, cells.parsed(JsonText::parse)?))
        })
    }

    fn state_size(&mut self, task: TaskId) -> Result<(usize, usize), TaskRowError> {
        let sql = "SELECT count(*), coalesce(sum(octet_length(field) + octet_length(value)), 0) FROM task_state \
                   WHERE task = ?1";
        let size = self.first(sql, [task.number()], |row| {
            let cells = CellReader::new(row);
            Ok((cells.integer()?, cells.integer()?))
        })?;
        Ok(size.unwrap_or_default())
    }

    fn put_state(&mut self, task: TaskId, field: &StateField, value: &JsonText) -> Result<(), TaskRowError> {
        let sql = "INSERT INTO task_state (task, field, value) VALUES (?1, ?2, ?3) \
                   ON CONFLICT DO UPDATE SET value = excluded.value";
        self.change(sql, (task.number(), field.as_str(), value.as_str()))
    }

    fn delete_state(&mut self, task: TaskId, field: &StateField) -> Result<(), TaskRowError> {
        self.change("DELETE FROM task_state WHERE task = ?1 AND field = ?2", (task.number(), field.as_str()))
    }

    fn port(&mut self, port: &PortAddress) -> Result<Option<PortRecord>, TaskRowError> {
        let sql = "SELECT port, default_item, channels, first, next FROM task_ports \
                   WHERE task = ?1 AND direction = ?2 AND port = ?3";
        Ok(self.first(sql, port_key(port), read_port)?.map(|(_, record)| record))
    }

    fn ports(&mut self, task: TaskId, direction: PortDirection) -> Result<Vec<(PortName, PortRecord)>, TaskRowError> {
        let sql = "SELECT port, default_item, channels, first, next FROM task_ports \
                   WHERE task = ?1 AND direction = ?2 ORDER BY port";
        self.all(sql, (task.number(), direction.as_str()), read_port)
    }

    fn put_port(&mut self, port: &PortAddress, record: &PortRecord) -> Result<(), TaskRowError> {
        self.unsubscribe(port)?;
        let sql = "INSERT INTO task_ports (task, direction, port, default_item, channels, first, next) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET default_item = excluded.default_item, \
                   channels = excluded.channels, first = excluded.first, next = excluded.next";
        let (task, direction, name) = port_key(port);
        let default = record.default.as_ref().map(PortItem::to_json);
        let channels = serde_json::to_string(&record.channels).expect("texts can be JSON");
        self.change(sql, (task, direction, name, default, channels, record.first, record.next))?;
        if listens(port) {
            for channel in &record.channels {
                let sql = "INSERT INTO task_channels (channel, task, port) VALUES (?1, ?2, ?3)";
                self.change(sql, (channel.as_str(), task, name))?;
            }
        }
        Ok(())
    }

    fn put_bounds(&mut self, port: &PortAddress, record: &PortRecord) -> Result<(), TaskRowError> {
        let sql = "UPDATE task_ports SET first = ?4, next = ?5 WHERE task = ?1 AND direction = ?2 AND port = ?3";
        let (task, direction, name) = port_key(port);
        self.change(sql, (task, direction, name, record.first, record.next))
    }

    fn delete_port(&mut self, port: &PortAddress) -> Result<(), TaskRowError> {
        self.unsubscribe(port)?;
        self.change("DELETE FROM task_ports WHERE task = ?1 AND direction = ?2 AND port = ?3", port_key(port))
    }

    fn items(
        &mut self,
        port: &PortAddress,
        from: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<PortItem>, TaskRowError> {
        let sql = "SELECT item FROM task_items WHERE task = ?1 AND direction = ?2 AND port = ?3 AND position >= ?4 \
                   ORDER BY position LIMIT ?5";
        let (task, direction, name) = port_key(port);
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query((task, direction, name, from, limit))?;
        let (mut found, mut read) = (Vec::new(), 0);
        while let Some(row) = rows.next()?.filter(|_| read <= bytes) {
            let item = CellReader::new(row).parsed(PortItem::parse)?;
            read += item.data.as_str().len();
            found.push(item);
        }
        Ok(found)
    }

    fn put_item(&mut self, port: &PortAddress, position: u64, item: &PortItem) -> Result<(), TaskRowError> {
        let sql = "INSERT INTO task_items (task, direction, port, position, item) VALUES (?1, ?2, ?3, ?4, ?5)";
        let (task, direction, name) = port_key(port);
        self.change(sql, (task, direction, name, position, item.to_json()))
    }

    fn delete_items(&mut self, port: &PortAddress, from: u64, to: u64) -> Result<(), TaskRowError> {
        let sql = "DELETE FROM task_items \
                   WHERE task = ?1 AND direction = ?2 AND port = ?3 AND position >= ?4 AND position < ?5";
        let (task, direction, name) = port_key(port);
        self.change(sql, (task, direction, name, from, to))
    }

    fn subscribers(&mut self, channel: &Channel) -> Result<Vec<PortAddress>, TaskRowError> {
        let sql = "SELECT task, port FROM task_channels WHERE channel = ?1 ORDER BY task, port";
        self.all(sql, [channel.as_str()], |row| {
            let cells = CellReader::new(row);
            let (task, port) = (read_id(&cells)?, cells.parsed(PortName::parse)?);
            Ok(PortAddress { task, direction: PortDirection::In, port })
        })
    }

    /// One statement for all levels of a channel, because every change of a status asks.
    fn has_subscribers(&mut self, channels: &[Channel]) -> Result<bool, TaskRowError> {
        let sql = match channels.len() {
            0 => return Ok(false),
            // The channel of a task has four levels.
            4 => "SELECT 1 FROM task_channels WHERE channel IN (?1, ?2, ?3, ?4) LIMIT 1".to_owned(),
            count => {
                let places = vec!["?"; count].join(", ");
                format!("SELECT 1 FROM task_channels WHERE channel IN ({places}) LIMIT 1")
            }
        };
        Ok(self.first(&sql, params_from_iter(channels.iter().map(Channel::as_str)), only_number)?.is_some())
    }

    fn has_class(&mut self, queue: &QueueName, class: &ClassName) -> Result<bool, TaskRowError> {
        let sql = "SELECT 1 FROM task_classes WHERE queue = ?1 AND class = ?2";
        Ok(self.first(sql, (queue.as_str(), class.as_str()), only_number)?.is_some())
    }

    fn class(&mut self, queue: &QueueName, class: &ClassName) -> Result<Option<ClassConfig>, TaskRowError> {
        let sql = "SELECT config FROM task_classes WHERE queue = ?1 AND class = ?2";
        self.first(sql, (queue.as_str(), class.as_str()), |row| CellReader::new(row).parsed(ClassConfig::parse))
    }

    fn classes(&mut self, queue: &QueueName) -> Result<Vec<(ClassName, ClassConfig)>, TaskRowError> {
        let sql = "SELECT class, config FROM task_classes WHERE queue = ?1 ORDER BY class";
        self.all(sql, [queue.as_str()], |row| {
            let cells = CellReader::new(row);
            Ok((cells.parsed(ClassName::parse)?, cells.parsed(ClassConfig::parse)?))
        })
    }

    fn put_class(&mut self, queue: &QueueName, class: &ClassName, config: &ClassConfig) -> Result<(), TaskRowError> {
        let sql = "INSERT INTO task_classes (queue, class, config) VALUES (?1, ?2, ?3) \
                   ON CONFLICT DO UPDATE SET config = excluded.config";
        self.change(sql, (queue.as_str(), class.as_str(), config.text.as_str()))
    }

    fn delete_class(&mut self, queue: &QueueName, class: &ClassName) -> Result<(), TaskRowError> {
        self.change("DELETE FROM task_classes WHERE queue = ?1 AND class = ?2", (queue.as_str(), class.as_str()))
    }

    /// Each class is found by one search of the index, however many tasks it has.
    fn first_ready(&mut self, queue: &QueueName, class: &ClassName) -> Result<Option<(u64, TaskId)>, TaskRowError> {
        self.write_changed()?;
        let sql = "SELECT entry, id FROM tasks WHERE queue = ?1 AND class = ?2 AND entry IS NOT NULL AND step IS NULL \
                   ORDER BY entry LIMIT 1";
        self.first(sql, (queue.as_str(), class.as_str()), |row| {
            let cells = CellReader::new(row);
            Ok((cells.integer()?, read_id(&cells)?))
        })
    }

    fn due(&mut self, until: Instant, limit: usize) -> Result<Vec<TaskId>, TaskRowError> {
        self.write_changed()?;
        let sql = "SELECT id FROM tasks WHERE run_at <= ?1 ORDER BY run_at, id LIMIT ?2";
        self.all(sql, (until.micros(), limit), only_id)
    }

    fn expired(&mut self, until: Instant, limit: usize) -> Result<Vec<TaskId>, TaskRowError> {
        self.write_changed()?;
        let sql = "SELECT id FROM tasks WHERE lease_until <= ?1 ORDER BY lease_until, id LIMIT ?2";
        self.all(sql, (until.micros(), limit), only_id)
    }

    fn once(&mut self, key: &str) -> Result<Option<OnceRecord>, TaskRowError> {
        self.first("SELECT expires_at, created FROM task_requests WHERE key = ?1", [key], |row| {
            let cells = CellReader::new(row);
            Ok(OnceRecord { expires_at: cells.instant()?, created: cells.json()? })
        })
    }

    fn put_once(&mut self, key: &str, record: &OnceRecord) -> Result<(), TaskRowError> {
        let sql = "INSERT INTO task_requests (key, expires_at, created) VALUES (?1, ?2, ?3) \
                   ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at, created = excluded.created";
        let created = serde_json::to_string(&record.created).expect("ids can be JSON");
        self.change(sql, (key, record.expires_at.micros(), created))
    }

    fn expire_once(&mut self, until: Instant, limit: usize) -> Result<(), TaskRowError> {
        let sql = "DELETE FROM task_requests WHERE key IN \
                   (SELECT key FROM task_requests WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";
        self.change(sql, (until.micros(), limit))
    }

    fn process(&mut self, id: &ProcessId) -> Result<Option<WorkerProcess>, TaskRowError> {
        let sql = format!("SELECT {PROCESS_COLUMNS} FROM task_processes WHERE id = ?1");
        self.first(&sql, [id.as_str()], read_process)
    }

    fn processes(&mut self) -> Result<Vec<WorkerProcess>, TaskRowError> {
        self.all(&format!("SELECT {PROCESS_COLUMNS} FROM task_processes ORDER BY id"), [], read_process)
    }

    fn put_process(&mut self, process: &WorkerProcess) -> Result<(), TaskRowError> {
        let sql = format!(
            "INSERT OR REPLACE INTO task_processes ({PROCESS_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
        );
        self.change(&sql, params_from_iter(process_cells(process)))
    }

    fn delete_process(&mut self, id: &ProcessId) -> Result<(), TaskRowError> {
        self.change("DELETE FROM task_processes WHERE id = ?1", [id.as_str()])
    }
}

impl TaskTransaction<'_> {
    /// Writes the rows of the tasks that were changed. A query that looks for tasks by anything but their id needs it,
    /// and so does the end of a unit.
    pub(super) fn write_changed(&mut self) -> Result<(), TaskRowError> {
        let sql = "UPDATE tasks SET status = ?1, ran_at = ?2, parent = ?3, child_name = ?4, entry = ?5, run_at = ?6, \
                   step = ?7, lease_until = ?8, last_step = ?9, lost_steps = ?10, refused_steps = ?11, \
                   rate_minute = ?12, rate_count = ?13 WHERE id = ?14";
        for task in self.known.take_changed() {
            let mut cells = changing_cells(&task);
            cells.push(rusqlite::types::Value::Integer(task.id.number().cast_signed()));
            self.change(sql, params_from_iter(cells))?;
        }
        Ok(())
    }

    /// Writes changed rows if there are many, so that one more task can be remembered.
    fn make_room(&mut self) -> Result<(), TaskRowError> {
        match self.known.is_full() {
            true => self.write_changed(),
            false => Ok(()),
        }
    }

    /// Removes a port from the channels that it has now.
    fn unsubscribe(&mut self, port: &PortAddress) -> Result<(), TaskRowError> {
        if !listens(port) {
            return Ok(());
        }
        let known = self.port(port)?.map(|record| record.channels).unwrap_or_default();
        for channel in known {
            let sql = "DELETE FROM task_channels WHERE channel = ?1 AND task = ?2 AND port = ?3";
            self.change(sql, (channel.as_str(), port.task.number(), port.port.as_str()))?;
        }
        Ok(())
    }
}

/// Whether messages of the channels of a port are written to it. The template never receives anything.
fn listens(port: &PortAddress) -> bool {
    port.direction == PortDirection::In && !port.port.is_template()
}
