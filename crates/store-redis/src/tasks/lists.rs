//! Lists of tasks, queues and channels, and single tasks.

use std::collections::BTreeMap;

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, PortAddress, QueueName, TaskAlias, TaskId, TaskKey, TaskRecord,
};
use cronhold_schedule::Instant;
use cronhold_store::Fault;
use cronhold_store::tasks::{
    ChannelSummary, PortWindow, QueueSummary, TaskQuery, TaskTotals, TaskWindow, WindowLimits,
};
use redis::Value;

use super::RedisTaskError;
use super::scripts::{ITEMS, PAGE, TaskScripts, WINDOWS};
use super::texts::read_task;
use super::windows::{WindowRequest, byte_list, read_port_items};
use crate::pack::Pack;
use crate::reply;

/// Channels that are read at once.
const CHANNELS_PAGE: usize = 100;

impl TaskScripts {
    async fn minute(&self) -> Result<i64, Fault> {
        Ok(self.now().await?.secs().div_euclid(60))
    }

    /// Sends one command whose arguments are a key and other texts.
    async fn read(&self, name: &str, args: &[&str]) -> Result<Value, Fault> {
        let mut command = redis::cmd(name);
        command.arg(args);
        self.connections().request_one(command).await
    }

    pub(super) async fn find(&self, key: &TaskKey) -> Result<Option<TaskRecord>, Fault> {
        let id = match key {
            TaskKey::Id(id) => *id,
            TaskKey::Alias(alias) => match self.owner_of(alias).await? {
                Some(id) => id,
                None => return Ok(None),
            },
        };
        let limits = WindowLimits { items: 1, bytes: 0, children: 0 };
        Ok(self.window(id, &limits).await?.map(|window| window.task))
    }

    async fn owner_of(&self, alias: &TaskAlias) -> Result<Option<TaskId>, Fault> {
        let found = self.read("HGET", &[&self.keys().of("jobs:aliases"), alias.as_str()]).await?;
        let text = reply::bytes(found)?.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.and_then(|text| TaskId::parse(&text).ok()))
    }

    pub(super) async fn window(&self, task: TaskId, limits: &WindowLimits) -> Result<Option<TaskWindow>, Fault> {
        let (request, minute) = (WindowRequest { tasks: vec![task], limits: *limits }, self.minute().await?);
        let mut pack = Pack::default();
        request.pack(minute, &mut pack);
        let reply = self.call(&WINDOWS, pack).await?;
        Ok(request.read(reply, minute)?.pop().flatten())
    }

    pub(super) async fn items(
        &self,
        port: &PortAddress,
        from: u64,
        limits: &WindowLimits,
    ) -> Result<Option<PortWindow>, Fault> {
        let mut pack = Pack::default();
        pack.list(6);
        pack.text(port.task.to_string());
        pack.text(port.direction.as_str());
        pack.text(port.port.as_str());
        pack.text(from.to_string());
        pack.text(limits.items.max(1).to_string());
        pack.text(limits.bytes.saturating_mul(4).to_string());
        let reply = self.call(&ITEMS, pack).await?;
        read_port_items(port.task, port.direction, &port.port, reply, limits)
    }

    pub(super) async fn child(&self, task: TaskId, name: &ChildName) -> Result<Option<TaskId>, Fault> {
        let found = self.read("HGET", &[&self.keys().job(task, "children"), name.as_str()]).await?;
        let text = reply::bytes(found)?.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.and_then(|text| TaskId::parse(&text).ok()))
    }

    pub(super) async fn children(
        &self,
        task: TaskId,
        after: Option<&ChildName>,
        limit: usize,
    ) -> Result<Vec<(ChildName, TaskId)>, Fault> {
        let mut all = BTreeMap::new();
        for (name, id) in self.hash(&self.keys().job(task, "children")).await? {
            let child = ChildName::parse(&name).ok().zip(TaskId::parse(&id).ok());
            all.extend(child);
        }
        Ok(all.into_iter().filter(|(name, _)| after.is_none_or(|after| name > after)).take(limit).collect())
    }

    async fn hash(&self, key: &str) -> Result<Vec<(String, String)>, Fault> {
        let values = byte_list(self.read("HGETALL", &[key]).await?)?;
        let texts = values.into_iter().map(String::from_utf8).collect::<Result<Vec<_>, _>>();
        texts.map(super::changes::pairs).map_err(|error| RedisTaskError::damaged(key, &error).into())
    }

    async fn texts(&self, name: &str, args: &[&str]) -> Result<Vec<String>, Fault> {
        let values = byte_list(self.read(name, args).await?)?;
        Ok(values.into_iter().filter_map(|bytes| String::from_utf8(bytes).ok()).collect())
    }

    pub(super) async fn page(&self, query: &TaskQuery, limit: usize) -> Result<Vec<TaskRecord>, Fault> {
        let minute = self.minute().await?;
        let mut after = query.after.map_or_else(|| "0".to_owned(), |after| after.to_string());
        let mut found = Vec::new();
        while found.len() < limit {
            let mut pack = Pack::default();
            pack.list(5);
            pack.text(minute.to_string());
            pack.text(&after);
            pack.text(query.status.map_or("", |status| status.as_str()));
            pack.text(query.queue.as_ref().map_or("", QueueName::as_str));
            pack.text((limit - found.len()).to_string());
            let mut parts = reply::list(self.call(&PAGE, pack).await?)?.into_iter();
            let mut next = || parts.next().unwrap_or(Value::Nil);
            let (last, more) = (reply::text(next())?, reply::text(next())?);
            for task in reply::list(next())? {
                let [id, values] = <[Value; 2]>::try_from(reply::list(task)?)
                    .map_err(|found| reply::unexpected("a task", &Value::Array(found)))?;
                let id = TaskId::parse(&reply::text(id)?).map_err(|error| Fault::Permanent(error.to_string()))?;
                found.extend(read_task(id, &byte_list(values)?, minute)?.map(|stored| stored.task));
            }
            if more != "1" {
                break;
            }
            after = last;
        }
        Ok(found)
    }

    pub(super) async fn queues(&self) -> Result<Vec<QueueSummary>, Fault> {
        let keys = self.keys();
        let mut names = self.texts("SMEMBERS", &[&keys.of("cronhold:queues")]).await?;
        let registered = names.len();
        names.extend(self.texts("SMEMBERS", &[&keys.of("queues")]).await?);
        let mut found = BTreeMap::new();
        for (index, name) in names.iter().enumerate() {
            let Ok(queue) = QueueName::parse(name) else { continue };
            let ready = reply::number(&self.read("LLEN", &[&keys.queue(&queue)]).await?)?.max(0).cast_unsigned();
            if index < registered || ready > 0 {
                found.insert(queue, ready);
            }
        }
        Ok(found.into_iter().map(|(queue, ready)| QueueSummary { queue, ready }).collect())
    }

    pub(super) async fn classes(&self, queue: &QueueName) -> Result<Vec<(ClassName, ClassConfig)>, Fault> {
        let key = self.keys().of(&format!("workers:{queue}"));
        let mut found = Vec::new();
        for (name, text) in self.hash(&key).await? {
            let damaged = |why: &dyn std::fmt::Display| Fault::from(RedisTaskError::damaged(&key, why));
            let name = ClassName::parse(&name).map_err(|error| damaged(&error))?;
            found.push((name, ClassConfig::parse(&text).map_err(|error| damaged(&error))?));
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    /// Channels are found by a list of names, from which those without subscribers are left out.
    pub(super) async fn channels(&self, after: Option<&Channel>, limit: usize) -> Result<Vec<ChannelSummary>, Fault> {
        let keys = self.keys();
        let mut from = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let mut found = Vec::new();
        while found.len() < limit {
            let count = CHANNELS_PAGE.to_string();
            let args = [&keys.of("cronhold:channels"), from.as_str(), "+", "LIMIT", "0", &count];
            let names = self.texts("ZRANGEBYLEX", &args).await?;
            let is_last = names.len() < CHANNELS_PAGE;
            from = names.last().map_or_else(String::new, |last| format!("({last}"));
            for name in names {
                let Ok(channel) = Channel::parse(&name) else { continue };
                let subscribers = self.subscribers(&channel).await?;
                if subscribers > 0 && found.len() < limit {
                    found.push(ChannelSummary { channel, subscribers });
                }
            }
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// The number of in ports that listen to a channel.
    async fn subscribers(&self, channel: &Channel) -> Result<u64, Fault> {
        let mut count = 0;
        for id in self.texts("SMEMBERS", &[&self.keys().channel(channel)]).await? {
            let Ok(task) = TaskId::parse(&id) else { continue };
            for (port, channels) in self.hash(&self.keys().job(task, "inports:channels")).await? {
                let channels: Vec<String> = serde_json::from_str(&channels).unwrap_or_default();
                count += u64::from(port != "*" && channels.iter().any(|of| of == channel.as_str()));
            }
        }
        Ok(count)
    }

    pub(super) async fn totals(&self) -> Result<TaskTotals, Fault> {
        let keys = self.keys();
        let values = byte_list(self.read("MGET", &[&keys.of("stat:processed"), &keys.of("stat:failed")]).await?)?;
        let number = |index: usize| values.get(index).and_then(|text| super::facts::number(text)).unwrap_or(0);
        Ok(TaskTotals { processed: number(0), failed: number(1) })
    }

    pub(super) async fn next_due(&self) -> Result<Option<Instant>, Fault> {
        let mut first = None;
        for set in ["schedule", "retry", "cronhold:steps", "cronhold:bare_leases"] {
            let found = self.texts("ZRANGE", &[&self.keys().of(set), "0", "0", "WITHSCORES"]).await?;
            let at = found.get(1).and_then(|score| score.parse::<f64>().ok()).map(instant_of_score);
            first = first.into_iter().chain(at).min();
        }
        Ok(first)
    }
}

/// A score is a number of seconds with a fraction.
#[expect(clippy::cast_possible_truncation, reason = "times of this century have fewer bits than a float")]
fn instant_of_score(score: f64) -> Instant {
    Instant::from_micros((score * 1e6).round() as i64)
}
