//! The last run of a job on Cronken's nodes, for decisions. It is read from Cronken's keys and never written. Lists of
//! such runs are in [`super::foreign_runs`].

use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_core::record::{ForeignRun, Record, RecordVersion, StoredRecord};
use cronhold_schedule::Instant;
use cronhold_store::Fault;
use redis::Value;

use crate::outputs::read_reply;

/// The part of scripts that reads it.
pub(crate) const FOREIGN_SCRIPT: &str = include_str!("scripts/foreign.lua");

/// Decodes the reply of a script.
pub(crate) fn decode_foreign_run(job: &JobId, reply: Value) -> Result<Option<StoredRecord>, Fault> {
    if matches!(reply, Value::Nil) {
        return Ok(None);
    }
    let (version, run, host, start, runs): (String, String, String, String, String) = read_reply(reply)?;
    let version = u64::from_str_radix(&version, 16).map(RecordVersion::from_bits);
    let version = version.map_err(|error| Fault::Permanent(format!("invalid version of a foreign run: {error}")))?;
    // An invalid time counts as long ago.
    let started = parse_seconds(&start).unwrap_or(Instant::EPOCH);
    let (job, system) = (job.clone(), "Cronken");
    let foreign = ForeignRun { job, system, run, host, started, is_running: runs == "1" };
    Ok(Some(StoredRecord { version, record: Record::Foreign(Arc::new(foreign)) }))
}

/// A time as Cronken writes it: seconds with a fraction.
pub(super) fn parse_seconds(text: &str) -> Option<Instant> {
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
    fn parses_times_of_cronken() {
        for (text, micros) in [
            ("1794833027.939430", Some(1_794_833_027_939_430)),
            ("1794833027.5", Some(1_794_833_027_500_000)),
            ("1794833027", Some(1_794_833_027_000_000)),
            ("1.0000019", Some(1_000_001)),
            ("9999999999999999", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(parse_seconds(text).map(Instant::micros), micros, "{text}");
        }
    }
}
