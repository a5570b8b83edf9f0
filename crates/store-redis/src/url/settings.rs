//! The query parameters of the URL: how Cronken's keys are kept, and timeouts.

use std::time::Duration;

use cronhold_core::policy::lease::LEASE_DEFAULT;
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use cronhold_store_remote::url::{PrintedParams, check_timeout, invalid_url, read_count, read_span, unknown_param};

use super::escaped;

/// Parameters that every URL may have.
pub(super) const NAMES: [&str; 12] = [
    "namespace",
    "tasks",
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

/// The parameters of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrlSettings {
    /// The prefix of every key, including braces.
    pub(crate) namespace: String,
    /// What precedes the keys of tasks, without the colon after it; empty for the default.
    pub(crate) tasks: String,
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
            tasks: String::new(),
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
            "tasks" => self.tasks = tasks(value)?,
            "output" => self.output = output(value)?,
            "peers" => self.peers = Some(peers(value)?),
            "heartbeat" => self.heartbeat = read_span(name, value)?,
            "stale" => self.stale = read_span(name, value)?,
            "job_results" => self.job_results = read_count(name, value, 1, RESULTS_MAX)?,
            "all_results" => self.all_results = read_count(name, value, 1, RESULTS_MAX)?,
            "lines" => self.lines = read_count(name, value, 0, LINES_MAX)?,
            "output_ttl" => self.output_ttl = read_span(name, value)?,
            "lease" => self.lease = read_span(name, value)?,
            "timeout" => self.timeout = read_span(name, value)?,
            unknown => return Err(unknown_param(unknown, known)),
        }
        Ok(())
    }

    /// Checks combinations and sets dependent defaults, after all parameters are set.
    pub(super) fn complete(&mut self, given: &[String]) -> Result<(), TextError> {
        let was_given = |name: &str| given.iter().any(|given| given == name);
        let has_peers = self.peers == Some(true);
        if has_peers && was_given("output") && self.output == OutputKeyType::Zset {
            return Err(
                invalid_url("Cronken's nodes keep output lines in lists").hint("remove `output`, or `peers=cronken`")
            );
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
            return Err(invalid_url(message));
        }
        check_timeout(self.timeout)?;
        if self.output_ttl < Duration::from_secs(1) {
            return Err(invalid_url("`output_ttl` must be a second or more"));
        }
        Ok(())
    }

    /// Adds the parameters that differ from their defaults.
    pub(super) fn print(&self, params: &mut PrintedParams) {
        let usual = Self::default();
        if self.namespace != usual.namespace {
            params.add("namespace", escaped(&self.namespace, "/"));
        }
        if self.tasks != usual.tasks {
            params.add("tasks", escaped(&self.tasks, "/"));
        }
        if self.output == OutputKeyType::List && self.peers != Some(true) {
            params.add("output", "list");
        }
        if let Some(has_peers) = self.peers {
            params.add("peers", if has_peers { "cronken" } else { "none" });
        }
        params.add_span("heartbeat", self.heartbeat, usual.heartbeat);
        params.add_span("stale", self.stale, usual.stale);
        params.add_number("job_results", self.job_results, usual.job_results);
        params.add_number("all_results", self.all_results, usual.all_results);
        params.add_number("lines", self.lines, usual.lines);
        params.add_span("output_ttl", self.output_ttl, usual.output_ttl);
        params.add_span("lease", self.lease, usual.lease);
        params.add_span("timeout", self.timeout, usual.timeout);
    }
}

pub(super) fn namespace(value: &str) -> Result<String, TextError> {
    if value.is_empty() || value.len() > NAMESPACE_MAX {
        return Err(invalid_url(format!("`namespace` must have 1 to {NAMESPACE_MAX} bytes")));
    }
    if value.chars().any(char::is_control) {
        return Err(invalid_url("`namespace` has a control character"));
    }
    Ok(value.to_owned())
}

/// The prefix of the keys of tasks, as the namespace of a Ruby client is written.
fn tasks(value: &str) -> Result<String, TextError> {
    if value.len() > NAMESPACE_MAX {
        return Err(invalid_url(format!("`tasks` can have at most {NAMESPACE_MAX} bytes")));
    }
    if value.chars().any(|sign| sign.is_control() || "*?[]\\".contains(sign)) || value.ends_with(':') {
        return Err(invalid_url("`tasks` has a control character or one of *?[]\\, or ends with a colon")
            .hint("write a name such as myapp; a colon is added"));
    }
    Ok(value.to_owned())
}

fn output(value: &str) -> Result<OutputKeyType, TextError> {
    match value {
        "zset" => Ok(OutputKeyType::Zset),
        "list" => Ok(OutputKeyType::List),
        other => Err(invalid_url(format!("`output` is `zset` or `list`, not `{}`", shortened(other)))),
    }
}

fn peers(value: &str) -> Result<bool, TextError> {
    match value {
        "cronken" => Ok(true),
        "none" => Ok(false),
        other => Err(invalid_url(format!("`peers` must be `cronken`, `none` or absent, not `{}`", shortened(other)))),
    }
}
