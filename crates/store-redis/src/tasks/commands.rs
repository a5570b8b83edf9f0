//! Turns the changes of a batch into commands for the script. Each key gets its last value only.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::task::{JsonObject, JsonText, PortAddress, PortDirection, PortItem, TaskId, TaskRecord};
use cronhold_schedule::Instant;
use cronhold_store::tasks::{ChannelMessage, PortRecord, TaskCounter, TaskEffects};

use super::RedisTaskError;
use super::changes::{DirectChange, TaskRowSet};
use super::facts::TaskFact;
use super::keys::{TaskKeys, position_field, queue_rest};
use super::process_texts::{process_text, sidekiq_commands, signal_text};
use super::texts::{queue_entry, record_text, schedule_entry, seconds_text, time_text, worker_text};
use crate::pack::Pack;

/// Arguments of one command. Lua cannot pass many more.
const ARGS_MAX: usize = 2_000;

/// Seconds for which the counters of a day are kept: five years.
const DAY_COUNTER_SECS: u64 = 5 * 365 * 24 * 3_600;

/// Commands and checks for the script.
#[derive(Debug, Default)]
pub(super) struct CommandList {
    sets: Vec<(String, Vec<u8>)>,
    deletes: Vec<String>,
    others: Vec<Vec<Vec<u8>>>,
    checks: Vec<Vec<Vec<u8>>>,
    /// The facts that are read again if a check fails.
    check_facts: Vec<TaskFact>,
}

impl CommandList {
    fn set(&mut self, key: String, value: impl Into<Vec<u8>>) {
        self.sets.push((key, value.into()));
    }

    pub(super) fn command<const N: usize>(&mut self, parts: [&str; N]) {
        self.others.push(parts.iter().map(|part| part.as_bytes().to_vec()).collect());
    }

    /// A command with many values, which is split if there are too many.
    fn command_with(&mut self, head: &[&str], values: &[Vec<u8>]) {
        for part in values.chunks(ARGS_MAX) {
            let head = head.iter().map(|part| part.as_bytes().to_vec());
            self.others.push(head.chain(part.iter().cloned()).collect());
        }
    }

    fn check(&mut self, parts: &[&[u8]], fact: TaskFact) {
        self.checks.push(parts.iter().map(|part| part.to_vec()).collect());
        self.check_facts.push(fact);
    }

    /// Appends the checks and the commands. Returns the facts that are read again if a check fails, one for each.
    pub(super) fn pack(self, into: &mut Pack) -> Vec<TaskFact> {
        let pack_all = |lists: &[Vec<Vec<u8>>], into: &mut Pack| {
            into.list(lists.len());
            for list in lists {
                into.list(list.len());
                list.iter().for_each(|part| into.text(part));
            }
        };
        pack_all(&self.checks, into);
        let mut commands = self.others;
        for part in self.sets.chunks(ARGS_MAX / 2) {
            let pairs = part.iter().flat_map(|(key, value)| [key.clone().into_bytes(), value.clone()]);
            commands.push([b"MSET".to_vec()].into_iter().chain(pairs).collect());
        }
        for part in self.deletes.chunks(ARGS_MAX) {
            let keys = part.iter().map(|key| key.clone().into_bytes());
            commands.push([b"DEL".to_vec()].into_iter().chain(keys).collect());
        }
        pack_all(&commands, into);
        self.check_facts
    }
}

/// The commands for all changes, and for the messages and arrivals that they cause. `token` names this process.
pub(super) fn commands_of(
    rows: &mut TaskRowSet,
    keys: &TaskKeys,
    effects: &TaskEffects,
    token: &str,
) -> Result<CommandList, RedisTaskError> {
    let mut list = CommandList::default();
    let changed: Vec<(TaskId, Option<TaskRecord>)> = rows.tasks.iter().map(|(id, task)| (*id, task.clone())).collect();
    for (id, task) in changed {
        let stored = match rows.facts.peek(&TaskFact::Task(id)) {
            Some(_) => rows.stored_task(id)?.cloned(),
            // A new task.
            None => None,
        };
        let lock = stored.as_ref().map(|stored| stored.lock.clone()).unwrap_or_default();
        let before = stored.map(|stored| stored.task);
        match task {
            Some(task) => {
                put_task(&mut list, keys, before.as_ref(), &lock, &task, rows.now);
                put_places(&mut list, keys, before.as_ref(), &task, drops_entry(rows, &task));
            }
            None => delete_task(&mut list, keys, id, before.as_ref(), &lock),
        }
    }
    add_ports(&mut list, rows, keys)?;
    add_small_tables(&mut list, rows, keys)?;
    add_processes(&mut list, rows, keys)?;
    add_counters(&mut list, rows, keys);
    add_direct_changes(&mut list, rows, keys);
    add_effects(&mut list, keys, effects, token);
    Ok(list)
}

fn put_task(
    list: &mut CommandList,
    keys: &TaskKeys,
    before: Option<&TaskRecord>,
    lock: &str,
    task: &TaskRecord,
    now: Instant,
) {
    let id = task.id;
    if before.is_none() {
        list.set(keys.job(id, "worker"), worker_text(task));
        list.set(keys.job(id, "created_at"), time_text(task.created_at));
        list.set(keys.job(id, "created_by"), task.created_by.clone());
        list.command(["SADD", &keys.of("jobs"), &id.to_string()]);
    }
    if before.map(|before| before.status) != Some(task.status) {
        list.set(keys.job(id, "status"), task.status.as_str());
    }
    if let Some(at) = task.ran_at.filter(|at| before.and_then(|before| before.ran_at) != Some(*at)) {
        list.set(keys.job(id, "ran_at"), time_text(at));
    }
    let parent = |task: &TaskRecord| task.parent.as_ref().map(|(parent, _)| *parent);
    match (before.and_then(parent), parent(task)) {
        (known, now) if known == now => {}
        (_, Some(parent)) => list.set(keys.job(id, "parent"), parent.to_string()),
        (_, None) => list.deletes.push(keys.job(id, "parent")),
    }
    let record = record_text(task);
    if before.map(record_text).as_ref() != Some(&record) {
        list.set(keys.record(id), record);
    }
    if rate_has_changed(before, task) {
        let key = keys.job(id, &format!("rate:{}", task.rate_minute));
        list.command(["SET", &key, &task.rate_count.to_string(), "EX", "60"]);
    }
    put_lease(list, keys, before, lock, task, now);
}

fn rate_has_changed(before: Option<&TaskRecord>, task: &TaskRecord) -> bool {
    task.rate_count > 0
        && before.is_none_or(|before| (before.rate_minute, before.rate_count) != (task.rate_minute, task.rate_count))
}

/// The lock, and the time at which the step is lost.
fn put_lease(
    list: &mut CommandList,
    keys: &TaskKeys,
    before: Option<&TaskRecord>,
    lock: &str,
    task: &TaskRecord,
    now: Instant,
) {
    let (key, steps, id) = (keys.job(task.id, "lock"), keys.of("cronhold:steps"), task.id.to_string());
    let known = before.and_then(|before| before.lease);
    match (known, task.lease) {
        (known, lease) if known == lease => {}
        (_, Some(lease)) => {
            let millis = (lease.until.since(now).micros() / 1_000).max(1).to_string();
            list.command(["SET", &key, &lease.step.to_string(), "PX", &millis]);
            list.command(["ZADD", &steps, &seconds_text(lease.until), &id]);
        }
        (Some(known), None) => {
            if lock == known.step.to_string() {
                list.deletes.push(key);
            }
            list.command(["ZREM", &steps, &id]);
        }
        (None, None) => {}
    }
}

/// Whether the batch takes the very entry out of the queue that the task has at its end: it was leased and got a place
/// again at the same moment.
fn drops_entry(rows: &TaskRowSet, task: &TaskRecord) -> bool {
    task.entry.is_some_and(|entry| {
        let text = queue_entry(task, entry).into_bytes();
        rows.direct.get(&DirectChange::DropEntry(task.queue.clone(), text)).is_some()
    })
}

/// The entry in the queue, and the one in the schedule.
fn put_places(
    list: &mut CommandList,
    keys: &TaskKeys,
    before: Option<&TaskRecord>,
    task: &TaskRecord,
    is_dropped: bool,
) {
    let known = before.and_then(|before| before.entry);
    if let Some(entry) = task.entry.filter(|entry| known != Some(*entry) || is_dropped) {
        list.command(["SADD", &keys.of("queues"), task.queue.as_str()]);
        list.command(["LPUSH", &keys.queue(&task.queue), &queue_entry(task, entry)]);
    }
    let schedule = keys.of("schedule");
    match (before.and_then(|before| before.run_at), task.run_at) {
        (known, at) if known == at => {}
        (_, Some(at)) => list.command(["ZADD", &schedule, &seconds_text(at), &schedule_entry(task)]),
        (_, None) => list.command(["ZREM", &schedule, &schedule_entry(task)]),
    }
}

fn delete_task(list: &mut CommandList, keys: &TaskKeys, id: TaskId, before: Option<&TaskRecord>, lock: &str) {
    let Some(before) = before else { return };
    let single = ["worker", "status", "created_at", "created_by", "ran_at", "aliases", "parent", "children", "state"];
    list.deletes.extend(single.iter().map(|rest| keys.job(id, rest)));
    for direction in [PortDirection::In, PortDirection::Out] {
        let ports = keys.ports(id, direction);
        list.deletes.extend([format!("{ports}:default"), format!("{ports}:channels"), ports]);
    }
    list.deletes.extend([keys.record(id), keys.positions(id)]);
    list.command(["SREM", &keys.of("jobs"), &id.to_string()]);
    if before.run_at.is_some() {
        list.command(["ZREM", &keys.of("schedule"), &schedule_entry(before)]);
    }
    if let Some(lease) = before.lease {
        list.command(["ZREM", &keys.of("cronhold:steps"), &id.to_string()]);
        if lock == lease.step.to_string() {
            list.deletes.push(keys.job(id, "lock"));
        }
    }
}

fn add_ports(list: &mut CommandList, rows: &mut TaskRowSet, keys: &TaskKeys) -> Result<(), RedisTaskError> {
    let mut addresses: BTreeSet<PortAddress> = rows.ports.iter().map(|(address, _)| address.clone()).collect();
    addresses.extend(rows.exact_ports.iter().map(|(address, ())| address.clone()));
    let mut stored = BTreeMap::new();
    for address in &addresses {
        let group = (address.task, address.direction);
        if let Entry::Vacant(vacant) = stored.entry(group) {
            vacant.insert(rows.stored_ports(address.task, address.direction)?);
        }
        if matches!(rows.tasks.get(&address.task), Some(None)) {
            // The keys of the task are deleted as a whole.
            list.deletes.push(keys.items(address));
            continue;
        }
        let before = stored[&group].get(&address.port);
        match rows.ports.get(address).cloned() {
            Some(Some(record)) => put_port(list, rows, keys, address, before, &record),
            Some(None) => delete_port(list, keys, address, before),
            None => {}
        }
        if let Some(before) = before.filter(|_| rows.exact_ports.get(address).is_some()) {
            check_items(list, rows, address, before.size(), true);
        }
    }
    Ok(())
}

/// Lets the script check that the first items of a port are those that were read.
fn check_items(list: &mut CommandList, rows: &TaskRowSet, address: &PortAddress, count: u64, exactly: bool) {
    let (task, direction) = (address.task.to_string(), address.direction.as_str());
    let (first, count) = (rows.stored_position(address), count.to_string());
    let exactly = if exactly { "1" } else { "0" };
    let parts: [&[u8]; 7] = [
        b"items",
        task.as_bytes(),
        direction.as_bytes(),
        address.port.as_str().as_bytes(),
        &first,
        count.as_bytes(),
        exactly.as_bytes(),
    ];
    list.check(&parts, TaskFact::Ports(address.task, address.direction));
}

fn put_port(
    list: &mut CommandList,
    rows: &TaskRowSet,
    keys: &TaskKeys,
    address: &PortAddress,
    stored: Option<&PortRecord>,
    record: &PortRecord,
) {
    let (ports, name) = (keys.ports(address.task, address.direction), address.port.as_str());
    let is_replaced = rows.deleted_ports.get(address).is_some();
    let before = stored.filter(|_| !is_replaced);
    if stored.is_none() {
        list.command(["SADD", &ports, name]);
    }
    let default = |record: &PortRecord| record.default.as_ref().map(PortItem::to_json);
    match (stored.and_then(default), default(record)) {
        (known, now) if known == now => {}
        (_, Some(item)) => list.command(["HSET", &format!("{ports}:default"), name, &item]),
        (_, None) => list.command(["HDEL", &format!("{ports}:default"), name]),
    }
    if stored.map_or(&[][..], |stored| &stored.channels) != record.channels {
        let key = format!("{ports}:channels");
        match record.channels.is_empty() {
            true => list.command(["HDEL", &key, name]),
            false => {
                let texts = serde_json::to_string(&record.channels).expect("texts can be JSON");
                list.command(["HSET", &key, name, &texts]);
            }
        }
        for channel in &record.channels {
            list.command(["SADD", &keys.channel(channel), &address.task.to_string()]);
            list.command(["ZADD", &keys.of("cronhold:channels"), "0", channel.as_str()]);
        }
    }
    if stored.map(|stored| stored.first) != Some(record.first) {
        let first = record.first.to_string();
        list.command(["HSET", &keys.positions(address.task), &position_field(address), &first]);
    }
    let key = keys.items(address);
    if let (Some(stored), true) = (stored, is_replaced)
        && stored.size() > 0
    {
        list.command(["DEL", &key]);
    }
    if let Some(before) = before.filter(|before| record.first > before.first) {
        let taken = record.first.min(before.next) - before.first;
        if taken > 0 {
            check_items(list, rows, address, taken, false);
            list.command(["LTRIM", &key, &taken.to_string(), "-1"]);
        }
    }
    let appended = rows.items.range((address.clone(), record.first)..).take_while(|((of, _), _)| of == address);
    let items = appended.filter_map(|(_, item)| Some(item.as_ref()?.to_json().into_bytes()));
    list.command_with(&["RPUSH", &key], &items.collect::<Vec<_>>());
}

fn delete_port(list: &mut CommandList, keys: &TaskKeys, address: &PortAddress, stored: Option<&PortRecord>) {
    let Some(stored) = stored else { return };
    let (ports, name) = (keys.ports(address.task, address.direction), address.port.as_str());
    list.command(["SREM", &ports, name]);
    if stored.default.is_some() {
        list.command(["HDEL", &format!("{ports}:default"), name]);
    }
    if !stored.channels.is_empty() {
        list.command(["HDEL", &format!("{ports}:channels"), name]);
    }
    list.command(["HDEL", &keys.positions(address.task), &position_field(address)]);
    list.deletes.push(keys.items(address));
}

fn add_small_tables(list: &mut CommandList, rows: &mut TaskRowSet, keys: &TaskKeys) -> Result<(), RedisTaskError> {
    let is_deleted = |rows: &TaskRowSet, task: &TaskId| matches!(rows.tasks.get(task), Some(None));
    for ((parent, name), child) in rows.children.iter().filter(|((parent, _), _)| !is_deleted(rows, parent)) {
        let key = keys.job(*parent, "children");
        match child {
            Some(child) => list.command(["HSET", &key, name.as_str(), &child.to_string()]),
            None => list.command(["HDEL", &key, name.as_str()]),
        }
    }
    for ((task, field), value) in rows.state.iter().filter(|((task, _), _)| !is_deleted(rows, task)) {
        let key = keys.job(*task, "state");
        match value {
            Some(value) => list.command(["HSET", &key, field.as_str(), value.as_str()]),
            None => list.command(["HDEL", &key, field.as_str()]),
        }
    }
    for ((queue, class), config) in rows.classes.iter() {
        let key = keys.of(&format!("workers:{queue}"));
        match config {
            Some(config) => {
                list.command(["SADD", &keys.of("cronhold:queues"), queue.as_str()]);
                list.command(["HSET", &key, class.as_str(), config.text.as_str()]);
            }
            None => list.command(["HDEL", &key, class.as_str()]),
        }
    }
    for (key, record) in rows.once.iter() {
        let numbers =
            [record.expires_at.micros()].into_iter().chain(record.created.iter().map(|id| id.number().cast_signed()));
        let text = serde_json::to_string(&numbers.collect::<Vec<_>>()).expect("numbers can be JSON");
        let millis = (record.expires_at.since(rows.now).micros() / 1_000).max(1).to_string();
        list.command(["SET", &keys.of(&format!("cronhold:once:{key}")), &text, "PX", &millis]);
    }
    let aliases: Vec<_> = rows.aliases.iter().map(|(alias, owner)| (alias.clone(), *owner)).collect();
    for (alias, owner) in aliases {
        let stored = rows.fact_text(&TaskFact::Alias(alias.clone()))?.and_then(|text| TaskId::parse(&text).ok());
        let all = keys.of("jobs:aliases");
        match owner {
            Some(task) => {
                list.command(["HSET", &all, alias.as_str(), &task.to_string()]);
                list.command(["SADD", &keys.job(task, "aliases"), alias.as_str()]);
            }
            None => list.command(["HDEL", &all, alias.as_str()]),
        }
        if let Some(stored) = stored.filter(|stored| Some(*stored) != owner && !is_deleted(rows, stored)) {
            list.command(["SREM", &keys.job(stored, "aliases"), alias.as_str()]);
        }
    }
    Ok(())
}

fn add_processes(list: &mut CommandList, rows: &mut TaskRowSet, keys: &TaskKeys) -> Result<(), RedisTaskError> {
    let changed: Vec<_> = rows.processes.iter().map(|(id, process)| (id.clone(), process.clone())).collect();
    for (id, process) in changed {
        let records = keys.of("cronhold:processes");
        let Some(process) = process else {
            list.command(["HDEL", &records, id.as_str()]);
            continue;
        };
        list.command(["HSET", &records, id.as_str(), &process_text(&process)]);
        for command in sidekiq_commands(keys, &process, rows.now) {
            list.others.push(command.into_iter().map(String::into_bytes).collect());
        }
        // Signals: the next one is the last element.
        let signals = keys.process(&id, "-signals");
        let stored = rows.fact_texts(&TaskFact::Process(id))?;
        let wanted: Vec<String> = process.signals.iter().rev().map(|signal| signal_text(*signal).to_owned()).collect();
        if stored.get(1..).unwrap_or_default() != wanted {
            list.command(["DEL", &signals]);
            let wanted = wanted.into_iter().map(String::into_bytes).collect::<Vec<_>>();
            if !wanted.is_empty() {
                list.command_with(&["RPUSH", &signals], &wanted);
                list.command(["EXPIRE", &signals, "60"]);
            }
        }
    }
    Ok(())
}

fn add_counters(list: &mut CommandList, rows: &TaskRowSet, keys: &TaskKeys) {
    let day = rows.now.to_string();
    let day = day.get(..10).unwrap_or_default();
    for (counter, value) in rows.counters.iter() {
        let name = match counter {
            TaskCounter::Task => {
                list.set(keys.of("jobs:last_id"), value.to_string());
                continue;
            }
            TaskCounter::Processed => "processed",
            TaskCounter::Failed => "failed",
            TaskCounter::Entry => continue,
        };
        let of_day = keys.of(&format!("stat:{name}:{day}"));
        list.command(["INCRBY", &keys.of(&format!("stat:{name}")), &value.to_string()]);
        list.command(["INCRBY", &of_day, &value.to_string()]);
        list.command(["EXPIRE", &of_day, &DAY_COUNTER_SECS.to_string()]);
    }
}

fn add_direct_changes(list: &mut CommandList, rows: &TaskRowSet, keys: &TaskKeys) {
    for (change, ()) in rows.direct.iter() {
        match change {
            DirectChange::TakeBareJob(queue, text) => {
                list.check(&[b"entry", queue_rest(queue).as_bytes(), text], TaskFact::Listeners);
                let head = [b"LREM".to_vec(), keys.queue(queue).into_bytes(), b"-1".to_vec(), text.clone()];
                list.others.push(head.to_vec());
            }
            DirectChange::DropEntry(queue, text) => {
                let head = [b"LREM".to_vec(), keys.queue(queue).into_bytes(), b"-1".to_vec(), text.clone()];
                list.others.push(head.to_vec());
            }
            DirectChange::MoveDue(set, member) => {
                list.check(&[b"member", set.as_bytes(), member], TaskFact::Scheduled(set, seconds_text(rows.now), 0));
                list.others.push(vec![b"ZREM".to_vec(), keys.of(set).into_bytes(), member.clone()]);
                let (queue, text) = moved_entry(member, rows.now);
                list.command(["SADD", &keys.of("queues"), &queue]);
                list.others.push(vec![b"LPUSH".to_vec(), keys.of(&format!("queue:{queue}")).into_bytes(), text]);
            }
            DirectChange::LeaveChannel(channel, task) => {
                let joins =
                    rows.listening.iter().any(|((of, port), listens)| *listens && of == channel && port.task == *task);
                if !joins {
                    list.command(["SREM", &keys.channel(channel), &task.to_string()]);
                }
            }
            DirectChange::KeyCommand(_, parts) => {
                let mut parts = parts.clone();
                if let Some(key) = parts.get_mut(1) {
                    *key = [keys.prefix().as_bytes(), key].concat();
                }
                list.others.push(parts);
            }
            DirectChange::Command(_, parts) => list.others.push(parts.clone()),
        }
    }
}

/// The queue of an entry whose time has come, and the entry with the time at which it was pushed. An entry without a
/// queue gets into `default`, as Sidekiq does it.
fn moved_entry(member: &[u8], now: Instant) -> (String, Vec<u8>) {
    let default = || "default".to_owned();
    let text = std::str::from_utf8(member).ok();
    let Some(entry) = text.and_then(|text| JsonObject::parse(text).ok()) else { return (default(), member.to_vec()) };
    let queue = entry.get("queue").and_then(|queue| queue.to::<String>().ok());
    let enqueued_at = JsonText::parse(&seconds_text(now)).expect("a number is JSON");
    (queue.unwrap_or_else(default), entry.with("enqueued_at", enqueued_at).to_json().as_str().as_bytes().to_vec())
}

/// Messages on the channels of Redis, and the report of arrivals.
fn add_effects(list: &mut CommandList, keys: &TaskKeys, effects: &TaskEffects, token: &str) {
    let mut rest = &effects.messages[..];
    while let Some(ChannelMessage { channel, message }) = rest.first() {
        list.command(["PUBLISH", &keys.of(channel.as_str()), message.as_str()]);
        // The others say that it reaches the channels above. Listeners find that out by themselves.
        let levels = channel.levels().len().min(rest.len());
        rest = &rest[levels..];
    }
    if !effects.arrivals.is_empty() {
        let queues: Vec<&str> = effects.arrivals.iter().map(|queue| queue.as_str()).collect();
        list.command(["PUBLISH", &keys.arrivals(), &format!("{token}\n{}", queues.join("\n"))]);
    }
}
