//! Reads programs.

use std::collections::BTreeMap;

use cronhold_core::job::{HttpProgram, Program, RemoteProgram, TaskProgram, TemplateScope};
use cronhold_core::template::{Expression, Template};
use cronhold_schedule::Span;
use cronhold_schedule::text::did_you_mean;

use super::reader::{JobReader, NamedNode};
use super::{names, quoted};
use crate::keys::{self, METHODS};
use crate::yaml::{ScalarKind, YamlValue};

impl JobReader<'_> {
    /// A text for the shell, a list of program and arguments, or a map with one kind.
    pub(crate) fn program(&mut self, item: NamedNode<'_>) -> Option<Program> {
        match &item.node.value {
            YamlValue::Scalar(_) => self.template_text(item).map(Program::Shell),
            YamlValue::List(_) => self.exec(item),
            YamlValue::Map(_) => self.program_kind(item),
            YamlValue::Null | YamlValue::Broken => self.wrong(item, "a text, a list or a map", "echo hello"),
        }
    }

    fn program_kind(&mut self, item: NamedNode<'_>) -> Option<Program> {
        let fields = self.fields(item, &keys::PROGRAM)?;
        let (kind, item) = fields.kind()?;
        match kind {
            "shell" => self.template_text(item).map(Program::Shell),
            "exec" => self.exec(item),
            "http" => self.http(item).map(Box::new).map(Program::Http),
            "remote" => self.remote(item).map(Box::new).map(Program::Remote),
            "task" => self.task(item).map(Box::new).map(Program::Task),
            "noop" => self.noop(item).map(|duration| Program::Noop { duration }),
            _ => self.plugin(item),
        }
    }

    fn exec(&mut self, item: NamedNode<'_>) -> Option<Program> {
        let nodes = self.some(item, "[load, --region, \"{{ region }}\"]")?;
        let first = self.template_text(item.item(&nodes[0]));
        let rest: Vec<Template> = nodes[1..].iter().filter_map(|node| self.template(item.item(node))).collect();
        let words: Vec<Template> = first.into_iter().chain(rest).collect();
        (words.len() == nodes.len()).then_some(Program::Exec(words))
    }

    /// A request: a URL or a map.
    pub(crate) fn http(&mut self, item: NamedNode<'_>) -> Option<HttpProgram> {
        if !matches!(item.node.value, YamlValue::Map(_)) {
            return self.url(item).map(HttpProgram::new);
        }
        self.record(item, HttpProgram::new(Template::literal("")))
    }

    /// A URL, which may begin with an expression.
    pub(crate) fn url(&mut self, item: NamedNode<'_>) -> Option<Template> {
        let url = self.template_text(item)?;
        if ["http://", "https://", "{{"].iter().any(|start| url.text().starts_with(start)) {
            return Some(url);
        }
        let message = format!("{} is not a URL", quoted(url.text()));
        self.refuse(item, message, "a URL begins with `https://` or `http://`")
    }

    pub(crate) fn method(&mut self, item: NamedNode<'_>) -> Option<&'static str> {
        let text = self.text(item)?;
        let upper = text.to_ascii_uppercase();
        if let Some(method) = METHODS.iter().find(|method| **method == upper) {
            return Some(method);
        }
        let hint = match did_you_mean(&upper, METHODS.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("methods are {}", METHODS.join(", ")),
        };
        self.refuse(item, format!("{} is not a method", quoted(text)), hint)
    }

    pub(crate) fn headers(&mut self, item: NamedNode<'_>) -> BTreeMap<String, Template> {
        self.templates(item, names::header, "{Accept: text/plain}")
    }

    /// Status codes: `200`, `200-299`, `2xx`, one or a list.
    pub(crate) fn statuses(&mut self, item: NamedNode<'_>) -> Option<Vec<(u16, u16)>> {
        let nodes = self.one_or_some(item, "[200, 404]")?;
        let ranges: Vec<_> = nodes.iter().filter_map(|node| self.status(item.item(node))).collect();
        (ranges.len() == nodes.len()).then_some(ranges)
    }

    fn status(&mut self, item: NamedNode<'_>) -> Option<(u16, u16)> {
        let text = self.text(item)?;
        let code = |text: &str| text.parse::<u16>().ok().filter(|code| text.len() == 3 && (100..600).contains(code));
        let class = || text.strip_suffix("xx")?.parse::<u16>().ok().filter(|class| (1..6).contains(class));
        let range = match (text.split_once('-'), class()) {
            (Some((first, last)), _) => code(first).zip(code(last)).filter(|(first, last)| first <= last),
            (None, Some(class)) => Some((class * 100, class * 100 + 99)),
            (None, None) => code(text).map(|code| (code, code)),
        };
        match range {
            Some(range) => Some(range),
            None => self.refuse(item, format!("{} is not a status", quoted(text)), "write `200`, `200-299` or `2xx`"),
        }
    }

    fn remote(&mut self, item: NamedNode<'_>) -> Option<RemoteProgram> {
        let fields = self.fields(item, &keys::REMOTE)?;
        let start = fields.get("start").and_then(|item| self.http(item));
        let poll = fields.get("poll").and_then(|item| self.scoped(TemplateScope::Remote, |reader| reader.http(item)));
        let cancel =
            fields.get("cancel").and_then(|item| self.scoped(TemplateScope::Remote, |reader| reader.http(item)));
        let every = fields.get("every").and_then(|item| self.some_span(item)).unwrap_or(RemoteProgram::EVERY_DEFAULT);
        let success = fields.get("success").and_then(|item| self.verdict(item));
        let failure = fields.get("failure").and_then(|item| self.verdict(item));
        Some(RemoteProgram { start: start?, poll: poll?, every, success: success?, failure: failure?, cancel })
    }

    /// `success` or `failure`, which evaluate the response to a poll.
    fn verdict(&mut self, item: NamedNode<'_>) -> Option<Expression> {
        self.scoped(TemplateScope::Answer, |reader| reader.expression(item))
    }

    fn task(&mut self, item: NamedNode<'_>) -> Option<TaskProgram> {
        let is_write = ["task", "port", "value"].iter().any(|key| item.node.get(key).is_some());
        if is_write {
            let fields = self.fields(item, &keys::TASK_WRITE)?;
            let task = fields.get("task").and_then(|item| self.template(item));
            let port = fields.get("port").and_then(|item| self.text(item)).map(str::to_owned);
            let value = fields.get("value").and_then(|item| self.template(item));
            return Some(TaskProgram::Write { task: task?, port: port?, value: value? });
        }
        let fields = self.fields(item, &keys::TASK_QUEUE)?;
        let queue = fields.get("queue").and_then(|item| self.text(item)).map(str::to_owned);
        let class = fields.get("class").and_then(|item| self.text(item)).map(str::to_owned);
        let inports = fields.get("inports").map(|item| self.templates(item, names::port, "{in: 1}"));
        let inports = inports.unwrap_or_default();
        Some(TaskProgram::Queue { queue: queue?, class: class?, inports })
    }

    fn noop(&mut self, item: NamedNode<'_>) -> Option<Span> {
        match &item.node.value {
            YamlValue::Null => Some(Span::ZERO),
            YamlValue::Scalar(scalar) if scalar.kind() == ScalarKind::Bool(true) => Some(Span::ZERO),
            YamlValue::Scalar(_) => self.span(item),
            YamlValue::Map(_) => {
                let fields = self.fields(item, &keys::NOOP)?;
                fields.get("duration").map_or(Some(Span::ZERO), |item| self.span(item))
            }
            YamlValue::List(_) | YamlValue::Broken => self.wrong(item, "a span of time", "5s"),
        }
    }

    fn plugin(&mut self, item: NamedNode<'_>) -> Option<Program> {
        let fields = self.fields(item, &keys::PLUGIN)?;
        let command = fields.get("command").and_then(|item| self.text(item)).map(str::to_owned);
        let settings = fields.get("settings").map(|item| self.templates(item, names::setting, "{size: 3}"));
        Some(Program::Plugin { command: command?, settings: settings.unwrap_or_default() })
    }
}
