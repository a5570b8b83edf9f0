//! Outputs of runs: their bytes, exactly and by position, and beside them the lines that Cronken's clients read. One
//! script appends to both, so that neither is ahead of the other.

use std::sync::{Arc, LazyLock};

use cronhold_core::RunId;
use cronhold_store::{Chunk, Fault};
use redis::{Cmd, FromRedisValue, Value};

use crate::link::{Link, Script};
use crate::peers::Peers;
use crate::projection::PARTS;

/// So many outputs are dropped by one call, so that others are not kept waiting.
const DROPPED_A_CALL: usize = 500;

static APPEND: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[PARTS[0], PARTS[1], include_str!("scripts/output.lua")]));

static DROP: LazyLock<Script> = LazyLock::new(|| Script::new(&[include_str!("scripts/drop.lua")]));

/// Where outputs are.
#[derive(Debug, Clone)]
pub(crate) struct Outputs {
    link: Link,
    ns: String,
    /// Whose settings these follow.
    peers: Arc<Peers>,
}

/// What came of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    /// How long the output is.
    pub(crate) length: u64,
    /// Writes to keys of a wrong type, which were left out.
    pub(crate) failures: u64,
}

impl Outputs {
    pub(crate) fn new(link: Link, ns: &str, peers: Arc<Peers>) -> Self {
        Self { link, ns: ns.to_owned(), peers }
    }

    /// Appends what is new of `bytes`, which begin at `from`.
    pub(crate) async fn append(&self, run: RunId, from: u64, bytes: Vec<u8>) -> Result<Appended, Fault> {
        let args = vec![
            self.ns.clone().into_bytes(),
            self.peers.shown_settings().as_bytes().to_vec(),
            run.to_string().into_bytes(),
            from.to_string().into_bytes(),
            bytes,
        ];
        let (length, is_done, failures): (u64, bool, u64) =
            read_answer(self.link.call(&APPEND, &[self.output(run)], args).await?)?;
        if is_done {
            return Ok(Appended { length, failures });
        }
        let message = format!("the output of run {run} has {length} bytes; nothing can be appended at {from}");
        Err(Fault::Broken(message))
    }

    /// At most so many bytes from a position on.
    pub(crate) async fn read(&self, run: RunId, from: u64, most: usize) -> Result<Chunk, Fault> {
        let key = self.output(run);
        let mut commands = vec![command("STRLEN", &[&key])];
        if most > 0 {
            // Redis counts with signs, and the last position is part of a range.
            let first = i64::try_from(from).unwrap_or(i64::MAX);
            let last = first.saturating_add(i64::try_from(most - 1).unwrap_or(i64::MAX));
            commands.push(command("GETRANGE", &[&key, &first.to_string(), &last.to_string()]));
        }
        let mut answers = self.link.ask(commands).await?.into_iter();
        let length: u64 = read_answer(self.link.checked(answers.next().unwrap_or(Value::Nil))?)?;
        let bytes: Vec<u8> = match answers.next() {
            Some(answer) => read_answer(self.link.checked(answer)?)?,
            None => Vec::new(),
        };
        // It may have grown in between.
        Ok(Chunk { length: length.max(if bytes.is_empty() { 0 } else { from + bytes.len() as u64 }), bytes })
    }

    /// Runs that have an output, those after one of them.
    pub(crate) async fn list(&self, after: Option<RunId>, limit: usize) -> Result<Vec<RunId>, Fault> {
        let first = after.map_or_else(|| "-".to_owned(), |run| format!("({run}"));
        let most = i64::try_from(limit).unwrap_or(i64::MAX).to_string();
        let key = format!("{}:cronhold:outputs", self.ns);
        let ask = command("ZRANGEBYLEX", &[&key, &first, "+", "LIMIT", "0", &most]);
        let found: Vec<String> = read_answer(self.link.ask_one(ask).await?)?;
        // What is no run's id was not written by us, and is nobody's output.
        Ok(found.iter().filter_map(|id| RunId::parse(id).ok()).collect())
    }

    /// Deletes outputs.
    pub(crate) async fn drop_all(&self, runs: &[RunId]) -> Result<(), Fault> {
        let keys = [format!("{}:cronhold:outputs", self.ns), format!("{}:cronhold:lines", self.ns)];
        for part in runs.chunks(DROPPED_A_CALL) {
            let ids = part.iter().map(|run| run.to_string().into_bytes());
            let args = std::iter::once(self.ns.clone().into_bytes()).chain(ids).collect();
            self.link.call(&DROP, &keys, args).await?;
        }
        Ok(())
    }

    fn output(&self, run: RunId) -> String {
        format!("{}:cronhold:output:{run}", self.ns)
    }
}

/// A command and what stands behind it.
pub(crate) fn command(name: &str, args: &[&str]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(args);
    command
}

/// What Redis answered, as what it should be.
pub(crate) fn read_answer<T: FromRedisValue>(value: Value) -> Result<T, Fault> {
    redis::from_redis_value(value).map_err(|error| Fault::Broken(format!("Redis answered what nobody asked: {error}")))
}
