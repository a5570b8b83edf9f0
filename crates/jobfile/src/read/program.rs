//! Reads the short forms of programs, and values in programs that have rules of their own.

use std::collections::BTreeMap;

use cronhold_core::job::{HeaderValue, HttpProgram, Program};
use cronhold_core::template::Template;
use cronhold_schedule::Span;
use cronhold_schedule::text::did_you_mean;

use super::reader::{JobReader, NamedNode};
use super::{names, quoted};
use crate::keys::{HEADER_SOURCE, METHOD_MAX, METHODS, NOOP_MAP, PROGRAM_MAP};
use crate::yaml::{ScalarKind, YamlValue};

impl JobReader<'_> {
    /// A text for the shell, a list of program and arguments, or a map with one kind.
    pub(crate) fn program(&mut self, item: NamedNode<'_>) -> Option<Program> {
        match &item.node.value {
            YamlValue::Scalar(_) => self.template_text(item).map(Program::Shell),
            YamlValue::List(_) => self.exec(item).map(Program::Exec),
            YamlValue::Map(_) => (PROGRAM_MAP.read)(self, item),
            YamlValue::Null | YamlValue::Broken => self.wrong(item, "a text, a list or a map", "echo hello"),
        }
    }

    /// A program and its arguments. The program must not be empty.
    pub(crate) fn exec(&mut self, item: NamedNode<'_>) -> Option<Vec<Template>> {
        let nodes = self.some(item, "[load, --region, \"{{ region }}\"]")?;
        let first = self.template_text(item.item(&nodes[0]));
        let rest: Vec<Template> = nodes[1..].iter().filter_map(|node| self.template(item.item(node))).collect();
        let words: Vec<Template> = first.into_iter().chain(rest).collect();
        (words.len() == nodes.len()).then_some(words)
    }

    /// A request: a URL or a map.
    pub(crate) fn request(&mut self, item: NamedNode<'_>) -> Option<HttpProgram> {
        let request = self.record_or_first(item, HttpProgram::new(Template::literal("")))?;
        if request.body.is_some() && request.body_file.is_some() {
            return self.refuse(item, "`body` and `body_file` exclude each other".to_owned(), "remove one of them");
        }
        if request.insecure && request.ca_file.is_some() {
            let message = "`insecure` ignores the certificates of `ca_file`".to_owned();
            return self.refuse(item, message, "remove `insecure`");
        }
        Some(request)
    }

    /// Headers, whose values may be secrets.
    pub(crate) fn header_values(&mut self, item: NamedNode<'_>) -> BTreeMap<String, HeaderValue> {
        let entries = self.names(item, names::header, "{Accept: text/plain}").unwrap_or_default();
        entries
            .iter()
            .filter_map(|entry| Some((entry.key.clone(), self.header_value(NamedNode::entry(entry))?)))
            .collect()
    }

    fn header_value(&mut self, item: NamedNode<'_>) -> Option<HeaderValue> {
        if !matches!(item.node.value, YamlValue::Map(_)) {
            return self.template(item).map(HeaderValue::Text);
        }
        let fields = self.fields(item, &HEADER_SOURCE)?;
        let prefix = fields.get("prefix").map(|item| self.text(item).map(str::to_owned));
        let source = self.secret_of(&fields)?;
        Some(HeaderValue::Secret { source, prefix: prefix.unwrap_or_else(|| Some(String::new()))? })
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

    /// A method in upper case. Any word is one, unless it looks like a misspelt usual method.
    pub(crate) fn method(&mut self, item: NamedNode<'_>) -> Option<String> {
        let text = self.text(item)?;
        let upper = text.to_ascii_uppercase();
        if METHODS.contains(&upper.as_str()) {
            return Some(upper);
        }
        let is_word = (1..=METHOD_MAX).contains(&upper.len())
            && upper.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        let hint = match did_you_mean(&upper, METHODS.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if is_word => return Some(upper),
            None => format!("usual methods are {}", METHODS.join(", ")),
        };
        self.refuse(item, format!("{} is not a method", quoted(text)), hint)
    }

    /// A status code as `200`, or several as `200-299` or `2xx`.
    pub(crate) fn status(&mut self, item: NamedNode<'_>) -> Option<(u16, u16)> {
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

    pub(crate) fn noop(&mut self, item: NamedNode<'_>) -> Option<Program> {
        match &item.node.value {
            YamlValue::Null => Some(Program::Noop { duration: Span::ZERO }),
            YamlValue::Scalar(scalar) if scalar.kind() == ScalarKind::Bool(true) => {
                Some(Program::Noop { duration: Span::ZERO })
            }
            YamlValue::Scalar(_) | YamlValue::Map(_) => (NOOP_MAP.read)(self, item),
            YamlValue::List(_) | YamlValue::Broken => self.wrong(item, "a span of time", "5s"),
        }
    }
}
