//! Reads templates and expressions, and checks that every name in them will be bound.
//! `cronhold_core::job::TemplateScope` defines which names are bound in which key.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cronhold_core::JobId;
use cronhold_core::job::{NAMES, TemplateScope};
use cronhold_core::template::{Expression, Template};
use cronhold_schedule::text::did_you_mean;

use super::names::{self, NameCheck};
use super::reader::{JobReader, NamedNode};

impl JobReader<'_> {
    /// Reads with the names of another scope.
    pub(crate) fn scoped<T>(&mut self, scope: TemplateScope, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.scope, scope);
        let value = read(self);
        self.scope = outer;
        value
    }

    /// Any text, number or boolean that may hold expressions.
    pub(crate) fn template(&mut self, item: NamedNode<'_>) -> Option<Template> {
        let text = self.value(item)?;
        self.template_of(item, text)
    }

    /// A text that may hold expressions, and that is not empty.
    pub(crate) fn template_text(&mut self, item: NamedNode<'_>) -> Option<Template> {
        let text = self.text(item)?;
        self.template_of(item, text)
    }

    /// The id of a job, which may hold expressions.
    pub(crate) fn job_id(&mut self, item: NamedNode<'_>) -> Option<Template> {
        let id = self.template_text(item)?;
        if id.is_literal() {
            self.parsed(item, JobId::parse(id.text()))?;
        }
        Some(id)
    }

    /// An expression without braces.
    pub(crate) fn expression(&mut self, item: NamedNode<'_>) -> Option<Expression> {
        let text = self.text(item)?;
        let expression = self.parsed(item, Expression::parse(text))?;
        let place_of = |name: &str| expression.place_of(name);
        self.names_are_bound(item, &expression.names(), &expression.required_names(), &place_of)?;
        Some(expression)
    }

    /// Templates by name.
    pub(crate) fn templates(
        &mut self,
        item: NamedNode<'_>,
        check: NameCheck,
        example: &str,
    ) -> BTreeMap<String, Template> {
        let entries = self.names(item, check, example).unwrap_or_default();
        entries.iter().filter_map(|entry| Some((entry.key.clone(), self.template(NamedNode::entry(entry))?))).collect()
    }

    /// Args of a run that a condition refers to or an action creates.
    pub(crate) fn arg_templates(&mut self, item: NamedNode<'_>) -> BTreeMap<String, Template> {
        self.templates(item, names::param, "{date: \"{{ date }}\"}")
    }

    fn template_of(&mut self, item: NamedNode<'_>, text: &str) -> Option<Template> {
        let template = self.parsed(item, Template::parse(text))?;
        if !template.is_literal() {
            let place_of = |name: &str| template.place_of(name);
            self.names_are_bound(item, &template.names(), &template.required_names(), &place_of)?;
        }
        Some(template)
    }

    /// Reports every name that is not bound in this scope, and every name that is bound twice.
    fn names_are_bound(
        &mut self,
        item: NamedNode<'_>,
        names: &BTreeSet<&str>,
        required: &BTreeSet<&str>,
        place_of: &dyn Fn(&str) -> Option<Range<usize>>,
    ) -> Option<()> {
        let mut all = true;
        for name in names {
            let is_param = self.scope.has_params() && self.params.contains(*name);
            let (message, hint) = match (self.scope.has(name), is_param) {
                (true, false) | (false, true) => continue,
                (false, false) if !required.contains(name) => continue,
                (false, false) => self.unbound(name),
                (true, true) => {
                    let message = format!("`{name}` is a param of the job, but has another meaning here");
                    (message, "give the param another name".to_owned())
                }
            };
            all = false;
            let at = place_of(name).unwrap_or_default();
            let at = self.inside(item, &at);
            let mistake = self.mistake(&at, message).hint(hint);
            self.report(mistake);
        }
        all.then_some(())
    }

    /// Message and hint for a name that is not bound in this scope.
    fn unbound(&self, name: &str) -> (String, String) {
        let mut names: Vec<&str> = Vec::new();
        if self.scope.has_params() {
            names.extend(self.params.iter().map(String::as_str).filter(|name| !self.scope.has(name)));
        }
        for name in self.scope.names() {
            names.push(name);
        }
        let listed = names.join(", ");
        let message = format!("unknown name `{name}`");
        if self.params.contains(name) {
            let hint = format!("params have no values before there is a run; here it can be {listed}");
            return (format!("{message} here"), hint);
        }
        if let Some(known) = NAMES.iter().find(|known| known.name == name) {
            let places: Vec<&str> = known.scopes.iter().map(|scope| scope.noun()).collect();
            return (
                format!("{message} here"),
                format!("it is available in {}; here it can be {listed}", places.join(", ")),
            );
        }
        let hint = match did_you_mean(name, names.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if self.scope.has_params() => format!("add it to `params`, or use one of {listed}"),
            None => format!("it can be {listed}"),
        };
        (message, hint)
    }
}
