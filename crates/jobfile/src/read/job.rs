//! Reads the job, and values of its keys that have several forms.

use std::collections::BTreeSet;

use cronhold_core::NameMap;
use cronhold_core::job::{EnvValue, IoPriority, Job, LockPolicy, NodeSelector, Program, SecretSource, StdinSource};
use cronhold_core::record::LockName;
use cronhold_schedule::Span;

use super::fields::Fields;
use super::reader::{JobReader, NamedNode};
use super::{names, quoted};
use crate::keys;
use crate::yaml::{ScalarKind, YamlNode, YamlValue};

impl JobReader<'_> {
    /// Reads a job from the root of its file.
    pub(super) fn job(&mut self, root: &YamlNode) -> Option<Job> {
        // The other keys are read even if the program is wrong, to report their mistakes.
        let mut job = Job::new(Program::Noop { duration: Span::ZERO });
        self.record_into(NamedNode { name: "job", node: root }, &mut job)?;
        if let Some(node) = root.get("schedule") {
            self.check_args(NamedNode { name: "schedule", node }, &job.params);
        }
        self.check_concurrent(root, &job);
        if let (Program::Plugin(_), Some(node)) = (&job.program, root.get("stdin")) {
            let message = "a plug-in reads its message from the standard input".to_owned();
            self.refuse::<()>(NamedNode { name: "stdin", node }, message, "pass the text in `settings`");
        }
        if let Some(node) = root.get("on") {
            self.check_events(node, &job);
        }
        Some(job)
    }

    pub(crate) fn lock(&mut self, item: NamedNode<'_>) -> Option<LockPolicy> {
        if let YamlValue::Scalar(scalar) = &item.node.value
            && let ScalarKind::Bool(own) = scalar.kind()
        {
            return Some(if own { LockPolicy::Job } else { LockPolicy::None });
        }
        let name = self.text(item)?;
        if matches!(name.to_lowercase().as_str(), "yes" | "no" | "on" | "off" | "true" | "false" | "none") {
            let message = format!("{} would be the name of a lock", quoted(name));
            return self.refuse(item, message, "write `true` for the job's own lock, `false` for none");
        }
        if name.is_empty() || name.len() > LockName::MAX {
            let message =
                format!("the name of a lock has 1 to {} bytes, and this one has {}", LockName::MAX, name.len());
            return self.refuse(item, message, "write a short one, such as `lock: database`");
        }
        Some(LockPolicy::Named(name.to_owned()))
    }

    pub(crate) fn env(&mut self, item: NamedNode<'_>) -> NameMap<EnvValue> {
        let entries = self.names(item, names::variable, "{TZ: UTC}").unwrap_or_default();
        entries.iter().filter_map(|entry| Some((entry.key.clone(), self.env_value(NamedNode::entry(entry))?))).collect()
    }

    fn env_value(&mut self, item: NamedNode<'_>) -> Option<EnvValue> {
        if !matches!(item.node.value, YamlValue::Map(_)) {
            return self.template(item).map(EnvValue::Text);
        }
        self.secret(item).map(|source| match source {
            SecretSource::File(path) => EnvValue::File(path),
            SecretSource::Env(name) => EnvValue::Env(name),
        })
    }

    /// Where a secret is read.
    pub(crate) fn secret(&mut self, item: NamedNode<'_>) -> Option<SecretSource> {
        let fields = self.fields(item, &keys::ENV_SOURCE)?;
        self.secret_of(&fields)
    }

    /// The source of a secret in a map that has `file` or `env`.
    pub(crate) fn secret_of(&mut self, fields: &Fields<'_>) -> Option<SecretSource> {
        match fields.kind()? {
            ("file", item) => self.text(item).map(|path| SecretSource::File(path.to_owned())),
            (_, item) => {
                let name = self.text(item)?;
                self.parsed(item, names::variable(name))?;
                Some(SecretSource::Env(name.to_owned()))
            }
        }
    }

    /// A mask in octal digits. A bare `22` is refused, because YAML reads it as decimal.
    pub(crate) fn umask(&mut self, item: NamedNode<'_>) -> Option<u32> {
        let YamlValue::Scalar(scalar) = &item.node.value else {
            return self.wrong(item, "a mask in octal digits", "\"022\"");
        };
        let digits = scalar.text.strip_prefix("0o").unwrap_or(&scalar.text);
        let is_octal = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let mask = u32::from_str_radix(digits, 8).ok().filter(|mask| is_octal && *mask <= 0o777);
        let is_decimal = scalar.kind() == ScalarKind::Integer && !scalar.text.starts_with("0o") && scalar.text != "0";
        match mask {
            Some(mask) if !is_decimal => Some(mask),
            Some(_) => {
                let message = format!("`umask` is the number {digits}, which may be decimal or octal");
                self.refuse(item, message, format!("write `\"0{digits}\"` or `0o{digits}`"))
            }
            None => self.wrong(item, "a mask in octal digits, at most 777", "\"022\""),
        }
    }

    /// What a program reads: a text or a file.
    pub(crate) fn stdin(&mut self, item: NamedNode<'_>) -> Option<StdinSource> {
        if !matches!(item.node.value, YamlValue::Map(_)) {
            return self.template(item).map(StdinSource::Text);
        }
        let fields = self.fields(item, &keys::STDIN_FILE)?;
        self.template_text(fields.get("file")?).map(StdinSource::File)
    }

    pub(crate) fn io_priority(&mut self, item: NamedNode<'_>) -> Option<IoPriority> {
        match &item.node.value {
            YamlValue::Scalar(scalar) if scalar.text == keys::IO_IDLE => Some(IoPriority::Idle),
            YamlValue::Scalar(scalar) if scalar.kind() == ScalarKind::Integer => {
                let level = self.whole(item, 0, IoPriority::LEVEL_MAX.into())?;
                u8::try_from(level).ok().map(IoPriority::BestEffort)
            }
            _ => self.wrong(item, "`idle` or a level from 0 to 7", "idle"),
        }
    }

    pub(crate) fn nodes(&mut self, item: NamedNode<'_>) -> Option<NodeSelector> {
        match &item.node.value {
            YamlValue::Scalar(scalar) if scalar.text == "each" => Some(NodeSelector::Each(BTreeSet::new())),
            YamlValue::Map(_) => {
                let fields = self.fields(item, &keys::EACH)?;
                let labels = self.texts(fields.get("each")?, "{each: [gpu]}")?;
                Some(NodeSelector::Each(labels.into_iter().collect()))
            }
            YamlValue::List(items) if items.is_empty() => Some(NodeSelector::Any),
            YamlValue::List(_) => Some(NodeSelector::Labels(self.texts(item, "[gpu]")?.into_iter().collect())),
            _ => self.wrong(item, "`each` or a list of labels", "[gpu]"),
        }
    }
}
