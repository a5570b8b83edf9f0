//! What nodes of another kind have run last of a job, for decisions: read from Cronken's keys, and never written. Lists
//! of their runs are in [`crate::foreign_runs`].

use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_core::record::{ForeignRun, Record, Stored, Version};
use cronhold_schedule::Instant;
use cronhold_store::Fault;
use redis::Value;

use crate::outputs::read_answer;

/// The part of scripts that looks for it.
pub(crate) const PART: &str = include_str!("scripts/foreign.lua");

/// Takes the answer of a script apart.
pub(crate) fn decode(job: &JobId, answer: Value) -> Result<Option<Stored>, Fault> {
    if matches!(answer, Value::Nil) {
        return Ok(None);
    }
    let (version, run, host, start, runs): (String, String, String, String, String) = read_answer(answer)?;
    let version = u64::from_str_radix(&version, 16).map(Version::from_bits);
    let version = version.map_err(|error| Fault::Broken(format!("a version is hex digits: {error}")))?;
    // What is no time was long ago.
    let started = seconds(&start).unwrap_or(Instant::EPOCH);
    let (job, system) = (job.clone(), "Cronken");
    let foreign = ForeignRun { job, system, run, host, started, is_running: runs == "1" };
    Ok(Some(Stored { version, record: Record::Foreign(Arc::new(foreign)) }))
}

/// Seconds with a fraction, as others write them.
pub(crate) fn seconds(text: &str) -> Option<Instant> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let number = |digits: &str| digits.parse::<i64>().ok();
    let micros = number(whole)?.checked_mul(1_000_000)?.checked_add(number(&micros)?)?;
    Some(Instant::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_of_others() {
        for (text, micros) in [
            ("1794833027.939430", Some(1_794_833_027_939_430)),
            ("1794833027.5", Some(1_794_833_027_500_000)),
            ("1794833027", Some(1_794_833_027_000_000)),
            ("1.0000019", Some(1_000_001)),
            ("9999999999999999", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(seconds(text).map(Instant::micros), micros, "{text}");
        }
    }
}
