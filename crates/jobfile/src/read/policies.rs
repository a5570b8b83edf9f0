//! The small policies of a job: overlap, catch-up, retry, stop, retention, triggers.

use cronhold_core::job::{
    Batching, CatchUp, CatchUpPolicy, Overlap, QUEUE_LIMIT_DEFAULT, Retain, Retry, RetryOn, Scope, StopPolicy, Trigger,
};
use cronhold_core::signal::Signal;
use cronhold_schedule::text::did_you_mean;

use super::fields::Fields;
use super::quoted;
use super::reader::{Item, Reader};
use crate::keys;
use crate::yaml::Value;

impl Reader<'_> {
    pub(super) fn overlap(&mut self, item: Item<'_>) -> Option<Overlap> {
        if let Value::Map(_) = item.node.value {
            let fields = self.fields(item, &keys::OVERLAP)?;
            let (_, item) = fields.kind()?;
            let fields = self.fields(item, &keys::QUEUE)?;
            let limit = fields.get("limit").map(|item| self.count(item, 1));
            return Some(Overlap::Queue { limit: limit.unwrap_or(Some(QUEUE_LIMIT_DEFAULT))? });
        }
        Some(match self.word(item, &["allow", "skip", "queue", "replace"])? {
            "allow" => Overlap::Allow,
            "skip" => Overlap::Skip,
            "queue" => Overlap::Queue { limit: QUEUE_LIMIT_DEFAULT },
            _ => Overlap::Replace,
        })
    }

    pub(super) fn catch_up(&mut self, item: Item<'_>) -> Option<CatchUp> {
        let mut catch_up = CatchUp::default();
        if !matches!(item.node.value, Value::Map(_)) {
            catch_up.policy = self.catch_up_policy(item)?;
            return Some(catch_up);
        }
        let fields = self.fields(item, &keys::CATCH_UP)?;
        if let Some(policy) = fields.get("policy").and_then(|item| self.catch_up_policy(item)) {
            catch_up.policy = policy;
        }
        if let Some(within) = fields.get("within").and_then(|item| self.some_span(item)) {
            catch_up.within = within;
        }
        Some(catch_up)
    }

    fn catch_up_policy(&mut self, item: Item<'_>) -> Option<CatchUpPolicy> {
        Some(match self.word(item, &["none", "last", "all"])? {
            "none" => CatchUpPolicy::None,
            "last" => CatchUpPolicy::Last,
            _ => CatchUpPolicy::All,
        })
    }

    pub(super) fn retry(&mut self, item: Item<'_>) -> Option<Retry> {
        let mut retry = Retry::default();
        if !matches!(item.node.value, Value::Map(_)) {
            retry.attempts = self.count(item, 1)?;
            return Some(retry);
        }
        let fields = self.fields(item, &keys::RETRY)?;
        if let Some(attempts) = fields.get("attempts").and_then(|item| self.count(item, 1)) {
            retry.attempts = attempts;
        }
        if let Some(backoff) = fields.get("backoff").and_then(|item| self.span(item)) {
            retry.backoff = backoff;
        }
        if let Some(factor) = fields.get("factor").and_then(|item| self.number(item, 1.0)) {
            retry.factor = factor;
        }
        if let Some(most) = fields.get("most").and_then(|item| self.span(item)) {
            retry.most = most;
        }
        if let Some(item) = fields.get("on") {
            let nodes = self.some(item, "[failure, error]")?;
            let words = nodes.iter().filter_map(|node| self.word(item.item(node), &["failure", "error"]));
            retry.on = words.map(|word| if word == "error" { RetryOn::Error } else { RetryOn::Failure }).collect();
        }
        if let (true, Some(item)) = (retry.backoff > retry.most, fields.get("backoff")) {
            let message = format!("`backoff` is {}, longer than the longest wait of {}", retry.backoff, retry.most);
            return self.refuse(item, message, format!("write `most: {}` or more", retry.backoff));
        }
        Some(retry)
    }

    pub(super) fn stop(&mut self, item: Item<'_>) -> Option<StopPolicy> {
        let fields = self.fields(item, &keys::STOP)?;
        let mut stop = StopPolicy::default();
        if let Some(signal) = fields.get("signal").and_then(|item| self.signal(item)) {
            stop.signal = signal;
        }
        if let Some(grace) = fields.get("grace").and_then(|item| self.span(item)) {
            stop.grace = grace;
        }
        Some(stop)
    }

    fn signal(&mut self, item: Item<'_>) -> Option<Signal> {
        let text = self.text(item)?;
        self.parsed(item, Signal::parse(text))
    }

    pub(super) fn retain(&mut self, item: Item<'_>) -> Option<Retain> {
        let fields = self.fields(item, &keys::RETAIN)?;
        let default = Retain::default();
        let mut count = |name, default| fields.get(name).and_then(|item| self.count(item, 0)).unwrap_or(default);
        let (success, failure) = (count("success", default.success), count("failure", default.failure));
        let (error, skipped) = (count("error", default.error), count("skipped", default.skipped));
        let output = fields.get("output").and_then(|item| self.span(item)).unwrap_or(default.output);
        Some(Retain { success, failure, error, skipped, output })
    }

    pub(super) fn trigger(&mut self, item: Item<'_>) -> Option<Trigger> {
        if !matches!(item.node.value, Value::Map(_)) {
            let channel = self.channel(item)?.to_owned();
            return Some(Trigger { channel, args: Default::default(), batching: Batching::default() });
        }
        let fields = self.fields(item, &keys::TRIGGER)?;
        let channel = fields.get("channel").and_then(|item| self.channel(item)).map(str::to_owned);
        let args = fields.get("args").map(|item| {
            let args = self.scoped(Scope::Trigger, |reader| reader.arg_templates(item));
            self.known_params(item);
            args
        });
        let batching = fields.get("batching").map(|item| self.batching(item));
        Some(Trigger {
            channel: channel?,
            args: args.unwrap_or_default(),
            batching: batching.unwrap_or_else(|| Some(Batching::default()))?,
        })
    }

    /// Args that a job's own runs get must name its params.
    fn known_params(&mut self, item: Item<'_>) {
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

    fn batching(&mut self, item: Item<'_>) -> Option<Batching> {
        if !matches!(item.node.value, Value::Map(_)) {
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
