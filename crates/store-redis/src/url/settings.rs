//! What stands behind the question mark: how Cronken's keys are kept, and how long answers are waited for.

use std::time::Duration;

use cronhold_schedule::text::{did_you_mean, shortened};
use cronhold_schedule::{Span, TextError};

use super::escaped;

/// Parameters that every URL may have.
pub(super) const NAMES: [&str; 10] = [
    "namespace",
    "output",
    "peers",
    "heartbeat",
    "stale",
    "job_results",
    "all_results",
    "lines",
    "output_ttl",
    "timeout",
];

/// A namespace is part of every key, and keys are sent often.
const NAMESPACE_MAX: usize = 200;

/// No set of results may be longer.
const RESULTS_MAX: u64 = 10_000_000;

/// No more lines of an output are put into a run's own record.
const LINES_MAX: u64 = 10_000;

/// Answers take a moment even on the same machine.
const TIMEOUT_MIN: Span = Span::from_millis(50);

/// Whoever waits longer than this waits for nothing.
const TIMEOUT_MAX: Span = Span::from_secs(60);

/// How keys are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrlSettings {
    /// What every key begins with. Braces are the user's.
    pub(crate) namespace: String,
    /// What holds the lines of a run's output.
    pub(crate) output: LineFormat,
    /// Whether Python nodes run the same jobs; nothing, when that is for the namespace to say.
    pub(crate) peers: Option<bool>,
    /// How often runs say that they are alive.
    pub(crate) heartbeat: Duration,
    /// After how long without that a run counts as lost.
    pub(crate) stale: Duration,
    /// How many results are kept of a job, of each kind.
    pub(crate) job_results: u64,
    /// How many results are kept of all jobs together, of each kind.
    pub(crate) all_results: u64,
    /// How many last lines of the output a finished run shows.
    pub(crate) lines: u64,
    /// How long lines are kept after the last of them.
    pub(crate) output_ttl: Duration,
    /// How long an answer is waited for.
    pub(crate) timeout: Duration,
}

/// What holds the lines of a run's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineFormat {
    /// A sorted set, by time.
    Zset,
    /// A list.
    List,
}

impl Default for UrlSettings {
    fn default() -> Self {
        Self {
            namespace: "{cronken}".to_owned(),
            output: LineFormat::Zset,
            peers: None,
            heartbeat: Duration::from_secs(30),
            stale: Duration::from_secs(45),
            job_results: 1_000,
            all_results: 10_000,
            lines: 10,
            output_ttl: Duration::from_secs(86_400),
            timeout: Duration::from_secs(2),
        }
    }
}

impl UrlSettings {
    /// Takes a parameter. Those that it does not know are mistakes.
    pub(super) fn take(&mut self, name: &str, value: &str, known: &[&str]) -> Result<(), TextError> {
        match name {
            "namespace" => self.namespace = namespace(value)?,
            "output" => self.output = output(value)?,
            "peers" => self.peers = Some(peers(value)?),
            "heartbeat" => self.heartbeat = span(name, value)?,
            "stale" => self.stale = span(name, value)?,
            "job_results" => self.job_results = count(name, value, 1, RESULTS_MAX)?,
            "all_results" => self.all_results = count(name, value, 1, RESULTS_MAX)?,
            "lines" => self.lines = count(name, value, 0, LINES_MAX)?,
            "output_ttl" => self.output_ttl = span(name, value)?,
            "timeout" => self.timeout = span(name, value)?,
            unknown => return Err(unknown_param(unknown, known)),
        }
        Ok(())
    }

    /// Settles what follows from each other, once all parameters are taken.
    pub(super) fn settle(&mut self, given: &[String]) -> Result<(), TextError> {
        let was_given = |name: &str| given.iter().any(|given| given == name);
        let has_peers = self.peers == Some(true);
        if has_peers && was_given("output") && self.output == LineFormat::Zset {
            return Err(wrong("Python nodes keep lines in lists").hint("leave out `output` beside `peers=cronken`"));
        }
        if has_peers {
            self.output = LineFormat::List;
        }
        // Whoever names one of the two means the other to follow.
        if was_given("heartbeat") && !was_given("stale") {
            self.stale = self.heartbeat + self.heartbeat / 2;
        }
        if self.stale <= self.heartbeat {
            let message = "`stale` is not longer than `heartbeat`, so that living runs would count as lost";
            return Err(wrong(message));
        }
        let timeout = as_span(self.timeout);
        if timeout < TIMEOUT_MIN || timeout > TIMEOUT_MAX {
            return Err(wrong(format!("`timeout` must be between {TIMEOUT_MIN} and {TIMEOUT_MAX}")));
        }
        if self.output_ttl < Duration::from_secs(1) {
            return Err(wrong("`output_ttl` must be a second or more"));
        }
        Ok(())
    }

    /// Those that differ from what holds otherwise, as they stand in a URL.
    pub(super) fn params(&self) -> Vec<String> {
        let usual = Self::default();
        let mut params = Vec::new();
        let mut tell = |differs: bool, name: &str, value: String| {
            if differs {
                params.push(format!("{name}={value}"));
            }
        };
        let spans = |span: Duration| as_span(span).to_string().replace(' ', "");
        tell(self.namespace != usual.namespace, "namespace", escaped(&self.namespace, "/"));
        tell(self.output == LineFormat::List && self.peers != Some(true), "output", "list".to_owned());
        let peers = if self.peers == Some(true) { "cronken" } else { "none" };
        tell(self.peers.is_some(), "peers", peers.to_owned());
        tell(self.heartbeat != usual.heartbeat, "heartbeat", spans(self.heartbeat));
        tell(self.stale != usual.stale, "stale", spans(self.stale));
        tell(self.job_results != usual.job_results, "job_results", self.job_results.to_string());
        tell(self.all_results != usual.all_results, "all_results", self.all_results.to_string());
        tell(self.lines != usual.lines, "lines", self.lines.to_string());
        tell(self.output_ttl != usual.output_ttl, "output_ttl", spans(self.output_ttl));
        tell(self.timeout != usual.timeout, "timeout", spans(self.timeout));
        params
    }
}

/// The mistake of a parameter that nobody knows.
pub(super) fn unknown_param(name: &str, known: &[&str]) -> TextError {
    let error = wrong(format!("there is no parameter `{}`", shortened(name)));
    match did_you_mean(name, known.iter().copied()) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint(format!("there are {}", known.join(", "))),
    }
}

/// A mistake of the text as a whole: places in it are of no use to people who see it masked.
pub(super) fn wrong(message: impl Into<String>) -> TextError {
    TextError::new(0..0, message)
}

fn namespace(value: &str) -> Result<String, TextError> {
    if value.is_empty() || value.len() > NAMESPACE_MAX {
        return Err(wrong(format!("`namespace` must have 1 to {NAMESPACE_MAX} bytes")));
    }
    if value.chars().any(char::is_control) {
        return Err(wrong("`namespace` holds a character that cannot be seen"));
    }
    Ok(value.to_owned())
}

fn output(value: &str) -> Result<LineFormat, TextError> {
    match value {
        "zset" => Ok(LineFormat::Zset),
        "list" => Ok(LineFormat::List),
        other => Err(wrong(format!("`output` is `zset` or `list`, not `{}`", shortened(other)))),
    }
}

fn peers(value: &str) -> Result<bool, TextError> {
    match value {
        "cronken" => Ok(true),
        "none" => Ok(false),
        other => Err(wrong(format!("`peers` is `cronken`, `none` or left out, not `{}`", shortened(other)))),
    }
}

fn span(name: &str, value: &str) -> Result<Duration, TextError> {
    let span = Span::parse(value).map_err(|error| wrong(format!("`{name}`: {error}")))?;
    if span.is_zero() {
        return Err(wrong(format!("`{name}` must be longer than nothing")));
    }
    Ok(Duration::from_micros(span.micros()))
}

fn count(name: &str, value: &str, min: u64, max: u64) -> Result<u64, TextError> {
    let number = value.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| wrong(format!("`{name}` is a number from {min} to {max}, not `{}`", shortened(value))))
}

fn as_span(duration: Duration) -> Span {
    Span::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
