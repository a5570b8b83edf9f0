//! The job itself: every key of its map.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::job::{EnvValue, Job, Lock, Nodes, OnLost, Program};
use cronhold_core::record::LockName;
use cronhold_schedule::Span;

use super::fields::Fields;
use super::reader::{Item, Reader};
use super::{names, quoted};
use crate::keys;
use crate::yaml::{Kind, Node, Value};

impl Reader<'_> {
    /// Reads a job from the root of its file. Params come first wherever they stand, as templates use their names.
    pub(super) fn job(&mut self, root: &Node) -> Option<Job> {
        let fields = self.fields(Item { name: "job", node: root }, &keys::JOB)?;
        let params = fields.get("params").map(|item| self.params(item)).unwrap_or_default();
        let program = fields.get("program").and_then(|item| self.program(item));
        // What stands in the other keys is read even if the program is wrong, for their mistakes.
        let mut job = Job::new(program.unwrap_or(Program::Noop { duration: Span::ZERO }));
        job.params = params;
        self.texts_of_job(&fields, &mut job);
        self.work_of_job(&fields, &mut job);
        self.policies_of_job(&fields, &mut job);
        self.surroundings_of_job(&fields, &mut job);
        Some(job)
    }

    fn texts_of_job(&mut self, fields: &Fields<'_>, job: &mut Job) {
        if let Some(text) = fields.get("description").and_then(|item| self.text(item)) {
            job.description = text.to_owned();
        }
        if let Some(labels) = fields.get("labels").and_then(|item| self.texts(item, "[eod]")) {
            job.labels = labels;
        }
        if let Some(paused) = fields.get("paused").and_then(|item| self.bool(item)) {
            job.paused = paused;
        }
    }

    fn work_of_job(&mut self, fields: &Fields<'_>, job: &mut Job) {
        if let Some(item) = fields.get("schedule") {
            job.schedules = self.schedules(item);
            self.check_args(item, &job.params);
        }
        if let Some(item) = fields.get("conditions") {
            let nodes = self.list(item, "[{max_running: 1}]").unwrap_or_default();
            job.conditions = nodes.iter().filter_map(|node| self.condition(item.item(node))).collect();
        }
        if let Some(item) = fields.get("on") {
            job.on = self.actions(item);
        }
        if let Some(item) = fields.get("triggers") {
            let nodes = self.list(item, "[{channel: /prices/ready}]").unwrap_or_default();
            job.triggers = nodes.iter().filter_map(|node| self.trigger(item.item(node))).collect();
        }
    }

    fn policies_of_job(&mut self, fields: &Fields<'_>, job: &mut Job) {
        if let Some(lock) = fields.get("lock").and_then(|item| self.lock(item)) {
            job.lock = lock;
        }
        if let Some(ttl) = fields.get("ttl").and_then(|item| self.some_span(item)) {
            job.ttl = ttl;
        }
        if let Some(overlap) = fields.get("overlap").and_then(|item| self.overlap(item)) {
            job.overlap = overlap;
        }
        if let Some(catch_up) = fields.get("catch_up").and_then(|item| self.catch_up(item)) {
            job.catch_up = catch_up;
        }
        if let Some(retry) = fields.get("retry").and_then(|item| self.retry(item)) {
            job.retry = retry;
        }
        job.timeout = fields.get("timeout").and_then(|item| self.some_span(item));
        if let Some(stop) = fields.get("stop").and_then(|item| self.stop(item)) {
            job.stop = stop;
        }
        if let Some(retain) = fields.get("retain").and_then(|item| self.retain(item)) {
            job.retain = retain;
        }
        if let Some("retry") = fields.get("on_lost").and_then(|item| self.word(item, &["error", "retry"])) {
            job.on_lost = OnLost::Retry;
        }
    }

    fn surroundings_of_job(&mut self, fields: &Fields<'_>, job: &mut Job) {
        if let Some(item) = fields.get("env") {
            job.env = self.env(item);
        }
        job.cwd = fields.get("cwd").and_then(|item| self.template_text(item));
        job.shell = fields.get("shell").and_then(|item| self.text(item)).map(str::to_owned);
        job.user = fields.get("user").and_then(|item| self.text(item)).map(str::to_owned);
        job.umask = fields.get("umask").and_then(|item| self.umask(item));
        job.limits = fields.get("limits").and_then(|item| self.limits(item));
        if let Some(nodes) = fields.get("nodes").and_then(|item| self.nodes(item)) {
            job.nodes = nodes;
        }
        if let Some(item) = fields.get("success_codes") {
            let nodes = self.some(item, "[0, 3]").unwrap_or_default();
            let codes = nodes.iter().filter_map(|node| self.whole(item.item(node), 0, 255));
            // A set: the order and repeats of exit codes mean nothing.
            let codes: BTreeSet<u8> = codes.filter_map(|code| u8::try_from(code).ok()).collect();
            job.success_codes = codes.into_iter().collect();
        }
    }

    fn lock(&mut self, item: Item<'_>) -> Option<Lock> {
        if let Value::Scalar(scalar) = &item.node.value
            && let Kind::Bool(own) = scalar.kind()
        {
            return Some(if own { Lock::Job } else { Lock::None });
        }
        let name = self.text(item)?;
        if matches!(name.to_lowercase().as_str(), "yes" | "no" | "on" | "off" | "true" | "false" | "none") {
            let message = format!("{} would be the name of a lock", quoted(name));
            return self.refuse(item, message, "write `true` for a lock of the job's own, `false` for none");
        }
        if name.is_empty() || name.len() > LockName::MAX {
            let message =
                format!("the name of a lock has 1 to {} bytes, and this one has {}", LockName::MAX, name.len());
            return self.refuse(item, message, "write a short one, such as `lock: database`");
        }
        Some(Lock::Named(name.to_owned()))
    }

    fn env(&mut self, item: Item<'_>) -> BTreeMap<String, EnvValue> {
        let entries = self.names(item, names::variable, "{TZ: UTC}").unwrap_or_default();
        entries.iter().filter_map(|entry| Some((entry.key.clone(), self.env_value(Item::entry(entry))?))).collect()
    }

    fn env_value(&mut self, item: Item<'_>) -> Option<EnvValue> {
        if !matches!(item.node.value, Value::Map(_)) {
            return self.template(item).map(EnvValue::Text);
        }
        let fields = self.fields(item, &keys::ENV_SOURCE)?;
        match fields.kind()? {
            ("file", item) => self.text(item).map(|path| EnvValue::File(path.to_owned())),
            (_, item) => {
                let name = self.text(item)?;
                self.parsed(item, names::variable(name))?;
                Some(EnvValue::Env(name.to_owned()))
            }
        }
    }

    /// A mask as people write it: octal digits. A bare `22` is refused, as YAML makes 22 of it and not octal 22.
    fn umask(&mut self, item: Item<'_>) -> Option<u32> {
        let Value::Scalar(scalar) = &item.node.value else {
            return self.wrong(item, "a mask in octal digits", "\"022\"");
        };
        let digits = scalar.text.strip_prefix("0o").unwrap_or(&scalar.text);
        let is_octal = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let mask = u32::from_str_radix(digits, 8).ok().filter(|mask| is_octal && *mask <= 0o777);
        let is_decimal = scalar.kind() == Kind::Integer && !scalar.text.starts_with("0o") && scalar.text != "0";
        match mask {
            Some(mask) if !is_decimal => Some(mask),
            Some(_) => {
                let message = format!("`umask` is the number {digits}, and it is unclear whether octal is meant");
                self.refuse(item, message, format!("write `\"0{digits}\"` or `0o{digits}`"))
            }
            None => self.wrong(item, "a mask in octal digits, at most 777", "\"022\""),
        }
    }

    fn nodes(&mut self, item: Item<'_>) -> Option<Nodes> {
        match &item.node.value {
            Value::Scalar(scalar) if scalar.text == "each" => Some(Nodes::Each(BTreeSet::new())),
            Value::Map(_) => {
                let fields = self.fields(item, &keys::EACH)?;
                let labels = self.texts(fields.get("each")?, "{each: [gpu]}")?;
                Some(Nodes::Each(labels.into_iter().collect()))
            }
            Value::List(items) if items.is_empty() => Some(Nodes::Any),
            Value::List(_) => Some(Nodes::Labels(self.texts(item, "[gpu]")?.into_iter().collect())),
            _ => self.wrong(item, "`each` or a list of labels", "[gpu]"),
        }
    }
}
