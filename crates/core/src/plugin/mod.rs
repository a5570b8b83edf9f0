//! The plug-in protocol: the messages that Cronhold and an executable exchange in lines of JSON. Cronhold writes one message
//! to the standard input of a plug-in, [`start_message`], and closes it. The plug-in writes messages to its standard
//! output, one in each line; [`MessageReader`] reads them, and [`judge`] decides what they mean together with the exit
//! code. A plug-in is stopped by signals, so no process has to keep its standard input open.
//!
//! Nothing here reads or writes a stream: the daemon reads the file to which the keeper has moved what the plug-in
//! wrote, and `cronhold plugin check` reads a pipe.

mod message;
mod reader;
mod verdict;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::record::Run;

pub use message::{PluginMessage, PluginOutcome, PluginProgress, PluginResult};
pub use reader::{LINE_MAX, MessageReader, ReaderEvent};
pub use verdict::{PluginVerdict, judge};

/// The version of the protocol, which every first message names.
pub const PROTOCOL: u32 = 1;

/// What a plug-in is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginKind {
    /// It is the program of a run.
    Program,
    /// It is asked whether a run may start.
    Condition,
}

impl PluginKind {
    /// The type of the message that it gets.
    pub const fn first_message(self) -> &'static str {
        match self {
            Self::Program => "start",
            Self::Condition => "check",
        }
    }

    /// The outcomes that its `result` may have.
    pub const fn outcomes(self) -> [PluginOutcome; 3] {
        match self {
            Self::Program => [PluginOutcome::Success, PluginOutcome::Failure, PluginOutcome::Error],
            Self::Condition => [PluginOutcome::Holds, PluginOutcome::DoesNotHold, PluginOutcome::Error],
        }
    }
}

/// The only message that a plug-in gets, as a line. `run` is the run that it executes, or that waits for its answer.
pub fn start_message(kind: PluginKind, run: &Run, settings: &BTreeMap<String, String>) -> String {
    let args: BTreeMap<&str, &str> = run.args.iter().collect();
    let message = json!({
        "type": kind.first_message(),
        "protocol": PROTOCOL,
        "run": {
            "id": run.id.to_string(),
            "job": run.job.to_string(),
            "number": run.number.0,
            "attempt": run.attempt,
            "nominal_time": run.nominal.to_string(),
            "args": args,
        },
        "settings": settings,
    });
    format!("{message}\n")
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Instant;
    use serde_json::Value;

    use super::*;
    use crate::ids::{JobId, JobUid, RunId, RunNumber};

    #[test]
    fn first_message_is_one_line_with_run_and_settings() {
        let id = RunId::from_key(Instant::EPOCH, "r");
        let job = JobId::parse("etl/load").expect("an id");
        let mut run = Run::blank(id, RunNumber(7), job, JobUid::from_bits(1), Instant::EPOCH);
        run.args = serde_json::from_str(r#"{"day": "monday"}"#).expect("args");
        let settings = BTreeMap::from([("note".to_owned(), "two\nlines \"x\"".to_owned())]);
        let line = start_message(PluginKind::Condition, &run, &settings);
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let expected = json!({
            "type": "check",
            "protocol": 1,
            "run": {
                "id": id.to_string(), "job": "etl/load", "number": 7, "attempt": 1,
                "nominal_time": "1970-01-01T00:00:00Z", "args": {"day": "monday"},
            },
            "settings": {"note": "two\nlines \"x\""},
        });
        assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON"), expected);
        assert!(start_message(PluginKind::Program, &run, &settings).contains(r#""type":"start""#));
    }
}
