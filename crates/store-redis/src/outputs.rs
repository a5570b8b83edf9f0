//! Outputs of runs: their exact bytes, and the lines that Cronken's clients read. One script appends to both, so that
//! they never differ.
//!
//! Outputs never hold up commits and heartbeats: they have a connection of their own, each call writes a limited number
//! of bytes and lines, and [`LineBudget`] limits the lines per second. What a call cannot show is left out of the lines
//! and noted there; the bytes are always complete.

use std::sync::{Arc, LazyLock};

use cronhold_core::RunId;
use cronhold_store::{Chunk, Fault, OutputSizes};
use redis::{Cmd, FromRedisValue, Value};
use tokio::time::Instant;

use crate::connections::{RedisConnections, Script};
use crate::cronken::{PROJECTION_SCRIPTS, PeerFlag};
use crate::line_budget::{LINES_PER_CALL, LineBudget};
use crate::seal;

/// Outputs that one call deletes. While a script runs, the server serves no other request.
const DROPPED_PER_CALL: usize = 500;

/// Bytes that one call appends.
const BYTES_PER_CALL: usize = 64 * 1024;

static APPEND: LazyLock<Script> = LazyLock::new(|| {
    Script::new(&[PROJECTION_SCRIPTS[0], PROJECTION_SCRIPTS[1], include_str!("scripts/append_output.lua")])
});

static DROP: LazyLock<Script> = LazyLock::new(|| Script::new(&[include_str!("scripts/drop_outputs.lua")]));

static BYTES: LazyLock<Script> = LazyLock::new(|| Script::new(&[include_str!("scripts/output_bytes.lua")]));

/// Reads and writes outputs.
#[derive(Debug, Clone)]
pub(crate) struct OutputStore {
    connections: RedisConnections,
    namespace: String,
    /// Has the settings for the lines.
    peers: Arc<PeerFlag>,
    line_budget: Arc<LineBudget>,
}

/// The result of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AppendResult {
    /// The length of the output, in bytes.
    pub(crate) length: u64,
    /// Writes that were skipped because a key has the wrong type.
    pub(crate) skipped_writes: u64,
}

impl OutputStore {
    pub(crate) fn new(connections: RedisConnections, namespace: &str, peers: Arc<PeerFlag>) -> Self {
        let line_budget = Arc::new(LineBudget::new(Instant::now()));
        Self { connections, namespace: namespace.to_owned(), peers, line_budget }
    }

    /// Appends the part of `bytes` that is not stored yet; `from` is the position of the first byte.
    pub(crate) async fn append(&self, run: RunId, from: u64, bytes: Vec<u8>) -> Result<AppendResult, Fault> {
        if bytes.is_empty() {
            return self.append_part(run, from, &[], 1).await;
        }
        let mut appended = AppendResult { length: from, skipped_writes: 0 };
        let mut position = from;
        for piece in bytes.chunks(BYTES_PER_CALL) {
            let lines = newlines(piece).count();
            let granted = self.line_budget.take(lines, Instant::now());
            // An unterminated last line is shown too if the run has ended.
            let parts = if granted == lines { split_by_lines(piece) } else { vec![piece] };
            for part in parts {
                let result = self.append_part(run, position, part, (granted + 1).min(LINES_PER_CALL)).await?;
                position += part.len() as u64;
                appended.length = result.length;
                appended.skipped_writes += result.skipped_writes;
            }
        }
        Ok(appended)
    }

    /// Appends with one call, and shows the last `lines` of the new lines.
    async fn append_part(&self, run: RunId, from: u64, bytes: &[u8], lines: usize) -> Result<AppendResult, Fault> {
        let args = vec![
            self.namespace.clone().into_bytes(),
            self.peers.projection_settings().as_bytes().to_vec(),
            run.to_string().into_bytes(),
            from.to_string().into_bytes(),
            bytes.to_vec(),
            lines.to_string().into_bytes(),
        ];
        let reply = self.connections.call_script(&APPEND, &[self.output_key(run)], args).await?;
        if let Value::Array(sealed) = &reply
            && let [reason] = sealed.as_slice()
        {
            return Err(seal::fault(reason));
        }
        let (length, is_done, skipped_writes): (u64, bool, u64) = read_reply(reply)?;
        if is_done {
            return Ok(AppendResult { length, skipped_writes });
        }
        let message = format!("cannot append to the output of run {run} at byte {from}: it has {length} bytes");
        Err(Fault::Permanent(message))
    }

    /// At most `most` bytes from a position.
    pub(crate) async fn read(&self, run: RunId, from: u64, most: usize) -> Result<Chunk, Fault> {
        let key = self.output_key(run);
        let mut commands = vec![command("STRLEN", &[&key])];
        if most > 0 {
            // Positions are signed in Redis, and the end of a range is inclusive.
            let first = i64::try_from(from).unwrap_or(i64::MAX);
            let last = first.saturating_add(i64::try_from(most - 1).unwrap_or(i64::MAX));
            commands.push(command("GETRANGE", &[&key, &first.to_string(), &last.to_string()]));
        }
        let mut replies = self.connections.request(commands).await?.into_iter();
        let length: u64 = read_reply(self.connections.check_reply(replies.next().unwrap_or(Value::Nil))?)?;
        let bytes: Vec<u8> = match replies.next() {
            Some(reply) => read_reply(self.connections.check_reply(reply)?)?,
            None => Vec::new(),
        };
        // The output may have grown between the two commands.
        Ok(Chunk { length: length.max(if bytes.is_empty() { 0 } else { from + bytes.len() as u64 }), bytes })
    }

    /// Runs that have an output, in the order of their ids, after this one.
    pub(crate) async fn list(&self, after: Option<RunId>, limit: usize) -> Result<Vec<RunId>, Fault> {
        let first = after.map_or_else(|| "-".to_owned(), |run| format!("({run}"));
        let most = i64::try_from(limit).unwrap_or(i64::MAX).to_string();
        let key = format!("{}:cronhold:outputs", self.namespace);
        let list = command("ZRANGEBYLEX", &[&key, &first, "+", "LIMIT", "0", &most]);
        let found: Vec<String> = read_reply(self.connections.request_one(list).await?)?;
        // A member that is not a run id was not written by us.
        Ok(found.iter().filter_map(|id| RunId::parse(id).ok()).collect())
    }

    /// The size of all outputs, and of those of these runs.
    pub(crate) async fn sizes(&self, runs: &[RunId]) -> Result<OutputSizes, Fault> {
        let keys = ["output_bytes", "outputs"].map(|name| format!("{}:cronhold:{name}", self.namespace));
        let total = self.connections.call_script(&BYTES, &keys, vec![self.namespace.clone().into_bytes()]).await?;
        let mut sizes = OutputSizes { total: read_reply(total)?, of_runs: Vec::with_capacity(runs.len()) };
        if runs.is_empty() {
            return Ok(sizes);
        }
        let lengths = runs.iter().map(|run| command("STRLEN", &[&self.output_key(*run)])).collect();
        for reply in self.connections.request(lengths).await? {
            sizes.of_runs.push(read_reply(self.connections.check_reply(reply)?)?);
        }
        Ok(sizes)
    }

    pub(crate) async fn drop_all(&self, runs: &[RunId]) -> Result<(), Fault> {
        let keys = ["outputs", "lines", "output_bytes"].map(|name| format!("{}:cronhold:{name}", self.namespace));
        for part in runs.chunks(DROPPED_PER_CALL) {
            let ids = part.iter().map(|run| run.to_string().into_bytes());
            let args = std::iter::once(self.namespace.clone().into_bytes()).chain(ids).collect();
            let reply = self.connections.call_script(&DROP, &keys, args).await?;
            if matches!(reply, Value::BulkString(_)) {
                return Err(seal::fault(&reply));
            }
        }
        Ok(())
    }

    fn output_key(&self, run: RunId) -> String {
        format!("{}:cronhold:output:{run}", self.namespace)
    }
}

/// Positions of the newlines.
fn newlines(bytes: &[u8]) -> impl Iterator<Item = usize> {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(position, _)| position)
}

/// Splits after every [`LINES_PER_CALL`] lines.
fn split_by_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut parts, mut from) = (Vec::new(), 0);
    for newline in newlines(bytes).skip(LINES_PER_CALL - 1).step_by(LINES_PER_CALL) {
        parts.push(&bytes[from..=newline]);
        from = newline + 1;
    }
    if from < bytes.len() {
        parts.push(&bytes[from..]);
    }
    parts
}

/// A command with its arguments.
pub(crate) fn command(name: &str, args: &[&str]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(args);
    command
}

/// Converts a reply.
pub(crate) fn read_reply<T: FromRedisValue>(value: Value) -> Result<T, Fault> {
    redis::from_redis_value(value).map_err(|error| Fault::Permanent(format!("unexpected reply from Redis: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_split_after_a_number_of_lines() {
        let lines = |count: usize| "a\n".repeat(count);
        for (text, expected) in [
            (String::new(), vec![]),
            ("a".to_owned(), vec![1]),
            (lines(1_000), vec![2_000]),
            (lines(1_000) + "b", vec![2_000, 1]),
            (lines(2_500), vec![2_000, 2_000, 1_000]),
        ] {
            let parts = split_by_lines(text.as_bytes());
            assert_eq!(parts.concat(), text.as_bytes());
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), expected);
        }
    }
}
