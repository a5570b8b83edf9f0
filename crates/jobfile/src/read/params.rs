//! Reads params of a job, and checks the args that schedules give to them.

use cronhold_core::NameMap;
use cronhold_core::args::check_arg;
use cronhold_core::job::{Param, ParamType};
use cronhold_schedule::text::did_you_mean;

use super::reader::{JobReader, NamedNode};
use super::{names, quoted};
use crate::yaml::{YamlNode, YamlValue};

impl JobReader<'_> {
    /// Reads `params` and makes their names known to templates.
    pub(crate) fn params(&mut self, item: NamedNode<'_>) -> NameMap<Param> {
        if let YamlValue::List(nodes) = &item.node.value {
            return nodes.iter().filter_map(|node| self.bare_param(item.item(node))).collect();
        }
        let entries = self.names(item, names::param, "{region: {default: us}}").unwrap_or_default();
        // Names are registered before values are read, so that a mistake in one param causes no others.
        let known = entries.iter().map(|entry| &entry.key).filter(|name| names::param(name).is_ok());
        self.params.extend(known.cloned());
        entries.iter().filter_map(|entry| Some((entry.key.clone(), self.param(NamedNode::entry(entry))?))).collect()
    }

    fn bare_param(&mut self, item: NamedNode<'_>) -> Option<(String, Param)> {
        let name = self.text(item)?;
        self.parsed(item, names::param(name))?;
        self.params.insert(name.to_owned());
        Some((name.to_owned(), Param::default()))
    }

    fn param(&mut self, item: NamedNode<'_>) -> Option<Param> {
        match &item.node.value {
            YamlValue::Null => return Some(Param::default()),
            YamlValue::Scalar(scalar) => {
                let message = format!("the param `{}` must be a map, but is {}", item.name, item.node.found());
                return self.refuse(item, message, format!("write `{{default: {}}}`", scalar.text));
            }
            _ => {}
        }
        let param = self.record(item, Param::default())?;
        if let (Some(default), Some(node)) = (&param.default, item.node.get("default")) {
            let place = NamedNode { name: "default", node };
            if !param.choices.is_empty() && !param.choices.contains(default) {
                let message = format!("the default {} of `{}` is not one of its choices", quoted(default), item.name);
                let hint = format!("choices are {}", param.choices.join(", "));
                self.refuse::<()>(place, message, hint);
            } else {
                self.check_value(place, item.name, &param, default);
            }
        }
        if let Some(YamlValue::List(choices)) = item.node.get("choices").map(|node| &node.value) {
            for (node, choice) in choices.iter().zip(&param.choices).filter(|_| choices.len() == param.choices.len()) {
                self.check_value(NamedNode { name: "choices", node }, item.name, &param, choice);
            }
        }
        if let (Some(node), true) = (item.node.get("pattern"), param.kind != ParamType::String) {
            let message = format!("`pattern` has no place beside `type: {}`", param.kind.name());
            self.refuse::<()>(NamedNode { name: "pattern", node }, message, "remove one of them".to_owned());
        }
        Some(param)
    }

    /// Checks that type and pattern of a param allow a value. Choices are not checked.
    fn check_value(&mut self, item: NamedNode<'_>, name: &str, param: &Param, value: &str) {
        if let Some(message) = form_error(name, param, value) {
            let mistake = self.mistake(&item.node.span, message);
            self.report(mistake);
        }
    }

    /// Checks that args of schedules name params and have allowed values.
    pub(crate) fn check_args(&mut self, item: NamedNode<'_>, params: &NameMap<Param>) {
        let nodes = match &item.node.value {
            YamlValue::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(item.node),
        };
        for node in nodes {
            let args = node.get("args").or_else(|| node.get("start").and_then(|start| start.get("args")));
            if let Some(args) = args {
                self.check_arg_entries(args, params);
            }
        }
    }

    /// Checks that a map of args has only params of the job, and values that they allow.
    pub(super) fn check_arg_entries(&mut self, args: &YamlNode, params: &NameMap<Param>) {
        for entry in args.entries() {
            let Some(param) = params.get(&entry.key) else {
                let hint = match did_you_mean(&entry.key, params.keys().map(String::as_str)) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None if params.is_empty() => format!("add `params: {{{}: {{}}}}`", entry.key),
                    None => format!("its params are {}", params.keys().cloned().collect::<Vec<_>>().join(", ")),
                };
                let message = format!("the job has no param {}", quoted(&entry.key));
                let mistake = self.mistake(&entry.key_span, message).hint(hint);
                self.report(mistake);
                continue;
            };
            let item = NamedNode::entry(entry);
            match &entry.value.value {
                YamlValue::List(nodes) => nodes.iter().for_each(|node| self.check_arg(item.item(node), param)),
                _ => self.check_arg(item, param),
            }
        }
    }

    /// Checks that a param allows a value.
    fn check_arg(&mut self, item: NamedNode<'_>, param: &Param) {
        let YamlValue::Scalar(scalar) = &item.node.value else { return };
        if param.choices.is_empty() {
            self.check_value(item, item.name, param, &scalar.text);
        } else if !param.choices.contains(&scalar.text) {
            let message = format!("{} is not one of the choices of `{}`", quoted(&scalar.text), item.name);
            self.refuse::<()>(item, message, format!("choices are {}", param.choices.join(", ")));
        }
    }
}

/// Why type and pattern of a param do not allow a value; `None` if they do. Choices are not checked.
pub(crate) fn form_error(name: &str, param: &Param, value: &str) -> Option<String> {
    let param = Param { choices: Vec::new(), ..param.clone() };
    check_arg(name, &param, value).err().map(|error| error.to_string())
}
