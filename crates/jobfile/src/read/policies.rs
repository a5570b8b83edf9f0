//! Values of the small policies of a job that have short forms or rules of their own: overlap, catch-up, retry, triggers.

use cronhold_core::job::{Batching, CatchUpPolicy, Job, LockPolicy, OverlapPolicy, QUEUE_LIMIT_DEFAULT, Retry};
use cronhold_core::record::JobState;
use cronhold_core::signal::Signal;
use cronhold_schedule::text::did_you_mean;

use super::fields::Fields;
use super::quoted;
use super::reader::{JobReader, NamedNode};
use crate::keys;
use crate::yaml::{YamlNode, YamlValue};

impl JobReader<'_> {
    pub(crate) fn overlap(&mut self, item: NamedNode<'_>) -> Option<OverlapPolicy> {
        if let YamlValue::Map(_) = item.node.value {
            let fields = self.fields(item, &keys::OVERLAP)?;
            let (_, item) = fields.kind()?;
            return (keys::QUEUE_MAP.read)(self, item);
        }
        Some(match self.word(item, &["allow", "skip", "queue", "replace"])? {
            "allow" => OverlapPolicy::Allow,
            "skip" => OverlapPolicy::Skip,
            "queue" => OverlapPolicy::Queue { limit: QUEUE_LIMIT_DEFAULT },
            _ => OverlapPolicy::Replace,
        })
    }

    /// The length of a queue. A stored job may have a larger one than a job can use.
    pub(crate) fn queue_limit(&mut self, item: NamedNode<'_>) -> Option<u32> {
        let most =
            if self.is_strict() { i64::try_from(JobState::QUEUE_MAX).unwrap_or(i64::MAX) } else { u32::MAX.into() };
        self.whole(item, 1, most).and_then(|limit| u32::try_from(limit).ok())
    }

    pub(crate) fn catch_up_policy(&mut self, item: NamedNode<'_>) -> Option<CatchUpPolicy> {
        Some(match self.word(item, &["none", "last", "all"])? {
            "none" => CatchUpPolicy::None,
            "last" => CatchUpPolicy::Last,
            _ => CatchUpPolicy::All,
        })
    }

    pub(crate) fn retry(&mut self, item: NamedNode<'_>) -> Option<Retry> {
        let mut retry = Retry::default();
        if !matches!(item.node.value, YamlValue::Map(_)) {
            retry.attempts = self.count(item, 1)?;
            return Some(retry);
        }
        self.record_into(item, &mut retry)?;
        if let (true, Some(node)) = (retry.backoff > retry.most, item.node.get("backoff")) {
            let message = format!("`backoff` is {}, longer than the longest wait of {}", retry.backoff, retry.most);
            let hint = format!("write `most: {}` or more", retry.backoff);
            return self.refuse(NamedNode { name: "backoff", node }, message, hint);
        }
        Some(retry)
    }

    pub(crate) fn signal(&mut self, item: NamedNode<'_>) -> Option<Signal> {
        let text = self.text(item)?;
        self.parsed(item, Signal::parse(text))
    }

    /// Checks that the args for a job's own runs name its params.
    pub(crate) fn known_params(&mut self, item: NamedNode<'_>) {
        for entry in item.node.entries() {
            if self.params.contains(&entry.key) {
                continue;
            }
            let mistake = self.mistake(&entry.key_span, format!("the job has no param {}", quoted(&entry.key)));
            let mistake = match did_you_mean(&entry.key, self.params.iter().map(String::as_str)) {
                Some(meant) => mistake.hint(format!("did you mean `{meant}`?")),
                None => mistake.hint(format!("add `{}` to `params`", entry.key)),
            };
            self.report(mistake);
        }
    }

    pub(crate) fn batching(&mut self, item: NamedNode<'_>) -> Option<Batching> {
        if !matches!(item.node.value, YamlValue::Map(_)) {
            return Some(match self.word(item, &["greedy", "newest"])? {
                "newest" => Batching::Newest { concurrent: 1, timeout: Batching::TIMEOUT_DEFAULT },
                _ => Batching::default(),
            });
        }
        let fields = self.fields(item, &keys::BATCHING)?;
        let policy = match fields.get("policy") {
            Some(item) => self.word(item, &["greedy", "logarithmic", "newest"])?,
            None => "greedy",
        };
        self.only_of_policy(&fields, policy);
        let concurrent = fields.get("concurrent").and_then(|item| self.count(item, 1)).unwrap_or(1);
        let most = fields.get("most").and_then(|item| self.count(item, 1)).unwrap_or(Batching::MOST_DEFAULT);
        match policy {
            "greedy" => Some(Batching::Greedy { concurrent, most }),
            "newest" => {
                let timeout =
                    fields.get("timeout").and_then(|item| self.span(item)).unwrap_or(Batching::TIMEOUT_DEFAULT);
                Some(Batching::Newest { concurrent, timeout })
            }
            _ => match fields.get("base") {
                Some(item) => Some(Batching::Logarithmic { concurrent, most, base: self.number(item, 1.0001)? }),
                None => {
                    self.refuse(item, "the policy `logarithmic` needs the key `base`", "write for example `base: 2`")
                }
            },
        }
    }

    /// Checks that the job's overlap policy and its lock let as many runs start together as `batching` wants.
    pub(super) fn check_concurrent(&mut self, root: &YamlNode, job: &Job) {
        let wanted = job.batching.map_or(1, Batching::concurrent);
        if let Some(node) = root.get("batching")
            && wanted > 1
            && (job.overlap != OverlapPolicy::Allow || job.lock != LockPolicy::None)
        {
            let item = NamedNode { name: "batching", node };
            let (key, hint) = match job.overlap {
                OverlapPolicy::Allow => ("lock", "remove the lock, or omit `concurrent`"),
                _ => ("overlap", "write `overlap: allow`, or omit `concurrent`"),
            };
            let message = format!("`batching` has `concurrent: {wanted}`, but `{key}` lets only one run start");
            self.refuse::<()>(item, message, hint);
        }
    }

    fn only_of_policy(&mut self, fields: &Fields<'_>, policy: &str) {
        for (name, policies) in
            [("most", &["greedy", "logarithmic"][..]), ("base", &["logarithmic"]), ("timeout", &["newest"])]
        {
            if let (Some(item), false) = (fields.get(name), policies.contains(&policy)) {
                let message = format!("the policy `{policy}` has no `{name}`");
                self.refuse::<()>(item, message, format!("it belongs to `{}`", policies.join("` and `")));
            }
        }
    }
}
