//! What Sidekiq does with a job that failed: it waits in `retry` for its next attempt, and is stored in `dead` after the
//! last one.

use cronhold_core::task::{JsonObject, JsonText, QueueName};
use cronhold_schedule::{Instant, Span};

use super::texts::seconds_text;

/// Attempts after the first one, unless the job says how many.
const RETRIES_DEFAULT: u64 = 25;

/// Characters of an error message that are kept.
const MESSAGE_CHARS_MAX: usize = 10_000;

/// How long dead jobs are kept.
const DEAD_KEPT: Span = Span::from_secs(180 * 24 * 3_600);

/// The rank, from the newest, from which dead jobs are deleted.
const DEAD_RANK_MAX: &str = "-10000";

/// The class of errors that is stored. Our workers have no classes of errors.
const ERROR_CLASS: &str = "RuntimeError";

/// A command with a key that lacks the prefix.
type KeyCommand = Vec<Vec<u8>>;

/// Why a job failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobFailure {
    pub(super) message: String,
    /// Lines.
    pub(super) backtrace: Option<String>,
}

/// The commands that store a failed job, whose entry is this text.
pub(super) fn failure_of(entry: &str, queue: &QueueName, failure: &JobFailure, now: Instant) -> Vec<KeyCommand> {
    let Ok(job) = JsonObject::parse(entry) else { return dead_commands(now, entry.as_bytes().to_vec()) };
    let is = |field: &str, value: &str| job.get(field).is_some_and(|found| found.as_str() == value);
    if is("retry", "false") {
        return Vec::new();
    }
    let retries = job.get("retry").and_then(|retry| retry.to::<u64>().ok()).unwrap_or(RETRIES_DEFAULT);
    let count = job.get("retry_count").and_then(|count| count.to::<u64>().ok());
    let at = JsonText::parse(&seconds_text(now)).expect("a number is JSON");
    let retry_queue = job.get("retry_queue").and_then(|queue| queue.to::<String>().ok());
    let queue = retry_queue.unwrap_or_else(|| queue.to_string());
    let message: String = failure.message.chars().take(MESSAGE_CHARS_MAX).collect();
    let is_dead_wanted = !is("dead", "false");
    let lines = backtrace_lines(&job, failure);
    let mut job = job
        .with("queue", JsonText::of_text(&queue))
        .with("error_message", JsonText::of_text(&message))
        .with("error_class", JsonText::of_text(ERROR_CLASS));
    let count = match count {
        Some(count) => {
            job = job.with("retried_at", at);
            count.saturating_add(1)
        }
        None => {
            job = job.with("failed_at", at);
            0
        }
    };
    job = job.with("retry_count", JsonText::of_number(count));
    if let Some(lines) = lines {
        let text = serde_json::to_string(&lines).expect("texts can be JSON");
        job = job.with("error_backtrace", JsonText::of_text(&base64(&stored_zlib(text.as_bytes()))));
    }
    let text = job.to_json().as_str().as_bytes().to_vec();
    if count < retries {
        let next = now.plus(Span::from_secs(delay_secs(count, random_below_ten())));
        return vec![key_command(["ZADD", "retry", &seconds_text(next)], text)];
    }
    if is_dead_wanted { dead_commands(now, text) } else { Vec::new() }
}

/// The commands that store an entry among the dead ones, of which the oldest are deleted.
pub(super) fn dead_commands(now: Instant, entry: Vec<u8>) -> Vec<KeyCommand> {
    let oldest = seconds_text(now.minus(DEAD_KEPT));
    vec![
        key_command(["ZADD", "dead", &seconds_text(now)], entry),
        key_command(["ZREMRANGEBYSCORE", "dead", "-inf"], oldest.into_bytes()),
        key_command(["ZREMRANGEBYRANK", "dead", "0"], DEAD_RANK_MAX.as_bytes().to_vec()),
    ]
}

fn key_command(head: [&str; 3], last: Vec<u8>) -> KeyCommand {
    head.iter().map(|part| part.as_bytes().to_vec()).chain([last]).collect()
}

/// Seconds until the next attempt.
fn delay_secs(count: u64, random: u64) -> u64 {
    count.saturating_pow(4).saturating_add(15).saturating_add(random * (count + 1))
}

fn random_below_ten() -> u64 {
    let mut byte = [0];
    // Without random numbers the attempts of jobs are less spread.
    let _ = getrandom::fill(&mut byte);
    u64::from(byte[0]) % 10
}

/// The lines of the backtrace that the job wants to keep.
fn backtrace_lines(job: &JsonObject, failure: &JobFailure) -> Option<Vec<String>> {
    let wanted = job.get("backtrace")?;
    let count = match wanted.as_str() {
        "true" => usize::MAX,
        _ => wanted.to::<usize>().ok()?,
    };
    let backtrace = failure.backtrace.as_ref()?;
    Some(backtrace.lines().take(count).map(str::to_owned).collect())
}

/// A zlib stream that contains the bytes as they are.
fn stored_zlib(bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let blocks: Vec<&[u8]> = if bytes.is_empty() { vec![&[]] } else { bytes.chunks(0xffff).collect() };
    for (index, block) in blocks.iter().enumerate() {
        let length = u16::try_from(block.len()).expect("a chunk has at most this length");
        stream.push(u8::from(index + 1 == blocks.len()));
        stream.extend_from_slice(&length.to_le_bytes());
        stream.extend_from_slice(&(!length).to_le_bytes());
        stream.extend_from_slice(block);
    }
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    stream.extend_from_slice(&(high << 16 | low).to_be_bytes());
    stream
}

/// Base64 in lines of 60 characters, each with a line break.
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for line in bytes.chunks(45) {
        for group in line.chunks(3) {
            let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
            for place in 0..4 {
                let sign = SIGNS[(bits >> (18 - 6 * place) & 63) as usize];
                text.push(if place <= group.len() { char::from(sign) } else { '=' });
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(1_800_000_000);

    fn failed(entry: &str) -> Vec<String> {
        let queue = QueueName::parse("default").expect("a name");
        let failure = JobFailure { message: "no".to_owned(), backtrace: Some("a\nb\nc".to_owned()) };
        let commands = failure_of(entry, &queue, &failure, NOW);
        let text = |command: &KeyCommand| {
            command.iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect::<Vec<_>>().join(" ")
        };
        commands.iter().map(text).collect()
    }

    #[test]
    fn failed_job_is_retried_as_its_entry_says() {
        assert_eq!(failed(r#"{"retry":false}"#), Vec::<String>::new());
        let first = failed(r#"{"retry":true,"args":[9007199254740993]}"#);
        assert!(first[0].starts_with("ZADD retry 18000000"), "{first:?}");
        assert!(first[0].contains(r#""args":[9007199254740993]"#) && first[0].contains(r#""failed_at":1800000000.0"#));
        assert!(first[0].contains(r#""retry_count":0"#) && first[0].contains(r#""error_message":"no""#));
        let later = failed(r#"{"retry":3,"retry_count":1,"retry_queue":"slow"}"#);
        assert!(later[0].contains(r#""retry_count":2"#) && later[0].contains(r#""queue":"slow""#), "{later:?}");
        assert!(later[0].contains(r#""retried_at":1800000000.0"#));
        for last in [r#"{"retry":0}"#, r#"{"retry":2,"retry_count":1}"#] {
            assert!(failed(last)[0].starts_with("ZADD dead 1800000000.0 "), "{last}");
        }
        assert_eq!(failed(r#"{"retry":0,"dead":false}"#), Vec::<String>::new());
        assert_eq!((delay_secs(0, 9), delay_secs(3, 2)), (24, 104));
    }

    #[test]
    fn backtrace_is_packed() {
        assert_eq!(base64(b"ab"), "YWI=\n");
        assert_eq!(stored_zlib(b"a"), [0x78, 1, 1, 1, 0, 0xfe, 0xff, b'a', 0, 0x62, 0, 0x62]);
        let packed = failed(r#"{"retry":true,"backtrace":2}"#);
        let expected = base64(&stored_zlib(br#"["a","b"]"#)).replace('\n', "\\n");
        assert!(packed[0].contains(&expected), "{packed:?}");
    }
}
