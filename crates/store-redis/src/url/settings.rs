//! The query parameters of the URL: how Cronken's keys are kept, and timeouts.

use std::time::Duration;

use cronhold_core::policy::lease::LEASE_DEFAULT;
use cronhold_schedule::text::{did_you_mean, shortened};
use cronhold_schedule::{Span, TextError};

use super::escaped;

/// Parameters that every URL may have.
pub(super) const NAMES: [&str; 11] = [
    "namespace",
    "output",
    "peers",
    "heartbeat",
    "stale",
    "job_results",
    "all_results",
    "lines",
    "output_ttl",
    "lease",
    "timeout",
];

/// Bytes of a namespace, which is part of every key.
const NAMESPACE_MAX: usize = 200;

/// The largest limit for a set of results.
const RESULTS_MAX: u64 = 10_000_000;

/// The largest number of output lines in a result.
const LINES_MAX: u64 = 10_000;

/// A reply takes a moment even on the same machine.
const TIMEOUT_MIN: Span = Span::from_millis(50);

/// A server that does not reply for this long is considered dead.
const TIMEOUT_MAX: Span = Span::from_secs(60);

/// The parameters of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrlSettings {
    /// The prefix of every key, including braces.
    pub(crate) namespace: String,
    pub(crate) output: OutputKeyType,
    /// Whether Cronken's nodes run the same jobs; `None` to use the value stored in the namespace.
    pub(crate) peers: Option<bool>,
    /// How often the heartbeats of runs in Cronken's format are refreshed.
    pub(crate) heartbeat: Duration,
    /// A run without such a heartbeat for this long counts as lost.
    pub(crate) stale: Duration,
    /// Results that are kept for each job, successes and failures each.
    pub(crate) job_results: u64,
    /// Results that are kept for all jobs together, successes and failures each.
    pub(crate) all_results: u64,
    /// Last lines of the output in the result of a run.
    pub(crate) lines: u64,
    /// How long output lines are kept after the last one.
    pub(crate) output_ttl: Duration,
    /// The lease of runs without a lock, for jobs that set none.
    pub(crate) lease: Duration,
    /// How long to wait for a reply.
    pub(crate) timeout: Duration,
}

/// The type of the key with the output lines of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputKeyType {
    /// A sorted set with times as scores.
    Zset,
    List,
}

impl Default for UrlSettings {
    fn default() -> Self {
        Self {
            namespace: "{cronken}".to_owned(),
            output: OutputKeyType::Zset,
            peers: None,
            heartbeat: Duration::from_secs(30),
            stale: Duration::from_secs(45),
            job_results: 1_000,
            all_results: 10_000,
            lines: 10,
            output_ttl: Duration::from_secs(86_400),
            lease: Duration::from_micros(LEASE_DEFAULT.micros()),
            timeout: Duration::from_secs(2),
        }
    }
}

impl UrlSettings {
    /// Sets a parameter. An unknown one is an error.
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
            "lease" => self.lease = span(name, value)?,
            "timeout" => self.timeout = span(name, value)?,
            unknown => return Err(unknown_param(unknown, known)),
        }
        Ok(())
    }

    /// Checks combinations and sets dependent defaults, after all parameters are set.
    pub(super) fn complete(&mut self, given: &[String]) -> Result<(), TextError> {
        let was_given = |name: &str| given.iter().any(|given| given == name);
        let has_peers = self.peers == Some(true);
        if has_peers && was_given("output") && self.output == OutputKeyType::Zset {
            return Err(wrong("Cronken's nodes keep output lines in lists").hint("remove `output`, or `peers=cronken`"));
        }
        if has_peers {
            self.output = OutputKeyType::List;
        }
        // If only one of the two is given, the other follows from it.
        if was_given("heartbeat") && !was_given("stale") {
            self.stale = self.heartbeat + self.heartbeat / 2;
        }
        if self.stale <= self.heartbeat {
            let message = "`stale` must be longer than `heartbeat`, otherwise live runs would count as lost";
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

    /// Parameters that differ from their defaults.
    pub(super) fn params(&self) -> Vec<String> {
        let usual = Self::default();
        let mut params = Vec::new();
        let mut add = |differs: bool, name: &str, value: String| {
            if differs {
                params.push(format!("{name}={value}"));
            }
        };
        let spans = |span: Duration| as_span(span).to_string().replace(' ', "");
        add(self.namespace != usual.namespace, "namespace", escaped(&self.namespace, "/"));
        add(self.output == OutputKeyType::List && self.peers != Some(true), "output", "list".to_owned());
        let peers = if self.peers == Some(true) { "cronken" } else { "none" };
        add(self.peers.is_some(), "peers", peers.to_owned());
        add(self.heartbeat != usual.heartbeat, "heartbeat", spans(self.heartbeat));
        add(self.stale != usual.stale, "stale", spans(self.stale));
        add(self.job_results != usual.job_results, "job_results", self.job_results.to_string());
        add(self.all_results != usual.all_results, "all_results", self.all_results.to_string());
        add(self.lines != usual.lines, "lines", self.lines.to_string());
        add(self.output_ttl != usual.output_ttl, "output_ttl", spans(self.output_ttl));
        add(self.lease != usual.lease, "lease", spans(self.lease));
        add(self.timeout != usual.timeout, "timeout", spans(self.timeout));
        params
    }
}

/// The error for an unknown parameter.
pub(super) fn unknown_param(name: &str, known: &[&str]) -> TextError {
    let error = wrong(format!("unknown parameter `{}`", shortened(name)));
    match did_you_mean(name, known.iter().copied()) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint(format!("there are {}", known.join(", "))),
    }
}

/// An error without a position, because the URL is shown with its passwords masked.
pub(super) fn wrong(message: impl Into<String>) -> TextError {
    TextError::new(0..0, message)
}

pub(super) fn namespace(value: &str) -> Result<String, TextError> {
    if value.is_empty() || value.len() > NAMESPACE_MAX {
        return Err(wrong(format!("`namespace` must have 1 to {NAMESPACE_MAX} bytes")));
    }
    if value.chars().any(char::is_control) {
        return Err(wrong("`namespace` has a control character"));
    }
    Ok(value.to_owned())
}

fn output(value: &str) -> Result<OutputKeyType, TextError> {
    match value {
        "zset" => Ok(OutputKeyType::Zset),
        "list" => Ok(OutputKeyType::List),
        other => Err(wrong(format!("`output` is `zset` or `list`, not `{}`", shortened(other)))),
    }
}

fn peers(value: &str) -> Result<bool, TextError> {
    match value {
        "cronken" => Ok(true),
        "none" => Ok(false),
        other => Err(wrong(format!("`peers` must be `cronken`, `none` or absent, not `{}`", shortened(other)))),
    }
}

fn span(name: &str, value: &str) -> Result<Duration, TextError> {
    let span = Span::parse(value).map_err(|error| wrong(format!("`{name}`: {error}")))?;
    if span.is_zero() {
        return Err(wrong(format!("`{name}` must be longer than 0")));
    }
    Ok(Duration::from_micros(span.micros()))
}

fn count(name: &str, value: &str, min: u64, max: u64) -> Result<u64, TextError> {
    let number = value.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| wrong(format!("`{name}` is a number from {min} to {max}, not `{}`", shortened(value))))
}

pub(super) fn as_span(duration: Duration) -> Span {
    Span::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}
