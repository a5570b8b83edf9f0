//! Visits every template of a job with its path, so that no check and no binding can miss one.

use std::collections::BTreeMap;

use super::{
    Action, Condition, EnvValue, HeaderValue, HttpProgram, HttpTarget, Job, Probe, Program, Requirement, StdinSource,
    TaskProgram, TemplateScope,
};
use crate::template::Template;

impl Job {
    /// Calls `f` with a dotted path such as `conditions[0].after.args.date` for each template of the job, the template,
    /// and the names that can be used there.
    pub fn each_template(&self, f: &mut dyn FnMut(&str, &Template, TemplateScope)) {
        each_of_program(&self.program, f);
        for (index, condition) in self.conditions.iter().enumerate() {
            each_of_condition(condition, &format!("conditions[{index}]"), f);
        }
        for (name, value) in &self.env {
            if let EnvValue::Text(template) = value {
                f(&format!("env.{name}"), template, TemplateScope::Run);
            }
        }
        if let Some(cwd) = &self.cwd {
            f("cwd", cwd, TemplateScope::Run);
        }
        match self.stdin.as_deref() {
            Some(StdinSource::Text(text)) => f("stdin", text, TemplateScope::Run),
            Some(StdinSource::File(path)) => f("stdin.file", path, TemplateScope::Run),
            None => {}
        }
        for (event, rules) in &self.on {
            let event = event.name();
            for (index, rule) in rules.iter().enumerate() {
                each_of_action(&rule.action, &format!("on.{event}[{index}]"), f);
            }
        }
        for (index, trigger) in self.triggers.iter().enumerate() {
            each_of_map(&trigger.args, &format!("triggers[{index}].args"), TemplateScope::Trigger, f);
        }
    }
}

fn each_of_program(program: &Program, f: &mut dyn FnMut(&str, &Template, TemplateScope)) {
    match program {
        Program::Shell(line) => f("program", line, TemplateScope::Run),
        Program::Exec(words) => {
            for (index, word) in words.iter().enumerate() {
                f(&format!("program[{index}]"), word, TemplateScope::Run);
            }
        }
        Program::Http(http) => each_of_http(http, "program.http", TemplateScope::Run, f),
        Program::Remote(remote) => {
            each_of_http(&remote.start, "program.remote.start", TemplateScope::Run, f);
            each_of_http(&remote.poll, "program.remote.poll", TemplateScope::Remote, f);
            if let Some(cancel) = &remote.cancel {
                each_of_http(cancel, "program.remote.cancel", TemplateScope::Remote, f);
            }
        }
        Program::Task(task) => match &**task {
            TaskProgram::Queue { args, inports, alias, .. } => {
                for (index, arg) in args.iter().enumerate() {
                    f(&format!("program.task.args[{index}]"), arg, TemplateScope::Run);
                }
                each_of_map(inports, "program.task.in", TemplateScope::Run, f);
                each_of_option(alias.as_ref(), "program.task.alias", TemplateScope::Run, f);
            }
            TaskProgram::Write { to, data, .. } => {
                f("program.task.write.to", to, TemplateScope::Run);
                f("program.task.write.data", data, TemplateScope::Run);
            }
        },
        Program::Noop { .. } => {}
        Program::Plugin(plugin) => {
            each_of_map(&plugin.settings, "program.plugin.settings", TemplateScope::Run, f);
        }
    }
}

fn each_of_condition(condition: &Condition, path: &str, f: &mut dyn FnMut(&str, &Template, TemplateScope)) {
    match &condition.requires {
        Requirement::After { job, args, .. } => {
            f(&format!("{path}.after.job"), job, TemplateScope::Run);
            each_of_map(args, &format!("{path}.after.args"), TemplateScope::Run, f);
        }
        Requirement::Probe(Probe::File(file)) => f(&format!("{path}.file"), file, TemplateScope::Run),
        Requirement::Probe(Probe::Http(http)) => each_of_http(http, &format!("{path}.http"), TemplateScope::Run, f),
        Requirement::Probe(Probe::Command(line)) => f(&format!("{path}.command"), line, TemplateScope::Run),
        Requirement::Probe(Probe::Plugin(plugin)) => {
            each_of_map(&plugin.settings, &format!("{path}.plugin.settings"), TemplateScope::Run, f);
        }
        Requirement::All(inner) => each_of_conditions(inner, &format!("{path}.all"), f),
        Requirement::Any(inner) => each_of_conditions(inner, &format!("{path}.any"), f),
        Requirement::Not(inner) => each_of_condition(inner, &format!("{path}.not"), f),
        Requirement::MaxRunning { .. } | Requirement::SkipDuplicate { .. } | Requirement::Window { .. } => {}
    }
}

fn each_of_conditions(conditions: &[Condition], path: &str, f: &mut dyn FnMut(&str, &Template, TemplateScope)) {
    for (index, condition) in conditions.iter().enumerate() {
        each_of_condition(condition, &format!("{path}[{index}]"), f);
    }
}

fn each_of_action(action: &Action, path: &str, f: &mut dyn FnMut(&str, &Template, TemplateScope)) {
    match action {
        Action::Run { job, args } => {
            f(&format!("{path}.run.job"), job, TemplateScope::Action);
            each_of_map(args, &format!("{path}.run.args"), TemplateScope::Action, f);
        }
        Action::Webhook(HttpTarget { url, headers, body, .. }) => {
            let path = format!("{path}.webhook");
            f(&format!("{path}.url"), url, TemplateScope::Action);
            each_of_map(headers, &format!("{path}.headers"), TemplateScope::Action, f);
            each_of_option(body.as_ref(), &format!("{path}.body"), TemplateScope::Action, f);
        }
        Action::Email { subject, body, .. } => {
            each_of_option(subject.as_ref(), &format!("{path}.email.subject"), TemplateScope::Action, f);
            each_of_option(body.as_ref(), &format!("{path}.email.body"), TemplateScope::Action, f);
        }
        Action::Command(line) => f(&format!("{path}.command"), line, TemplateScope::Action),
        Action::Publish { channel, message } => {
            f(&format!("{path}.publish.channel"), channel, TemplateScope::Action);
            each_of_option(message.as_ref(), &format!("{path}.publish.message"), TemplateScope::Action, f);
        }
    }
}

fn each_of_http(
    http: &HttpProgram,
    path: &str,
    scope: TemplateScope,
    f: &mut dyn FnMut(&str, &Template, TemplateScope),
) {
    f(&format!("{path}.url"), &http.url, scope);
    for (name, value) in &http.headers {
        if let HeaderValue::Text(template) = value {
            f(&format!("{path}.headers.{name}"), template, scope);
        }
    }
    each_of_option(http.body.as_ref(), &format!("{path}.body"), scope, f);
    each_of_option(http.body_file.as_ref(), &format!("{path}.body_file"), scope, f);
}

fn each_of_map(
    map: &BTreeMap<String, Template>,
    path: &str,
    scope: TemplateScope,
    f: &mut dyn FnMut(&str, &Template, TemplateScope),
) {
    for (name, template) in map {
        f(&format!("{path}.{name}"), template, scope);
    }
}

fn each_of_option(
    template: Option<&Template>,
    path: &str,
    scope: TemplateScope,
    f: &mut dyn FnMut(&str, &Template, TemplateScope),
) {
    if let Some(template) = template {
        f(path, template, scope);
    }
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::Span;

    use super::super::{ActionRule, Batching, RemoteProgram, RunEvent, SecretSource, Trigger};
    use super::*;
    use crate::name_map::NameMap;
    use crate::run::State;
    use crate::template::Expression;

    fn template(text: &str) -> Template {
        Template::parse(text).expect(text)
    }

    fn map(name: &str, text: &str) -> BTreeMap<String, Template> {
        BTreeMap::from([(name.to_owned(), template(text))])
    }

    fn http(url: &str) -> HttpProgram {
        let secret = HeaderValue::Secret { source: SecretSource::Env("KEY".to_owned()), prefix: String::new() };
        HttpProgram {
            headers: BTreeMap::from([
                ("Authorization".to_owned(), secret),
                ("X-Key".to_owned(), HeaderValue::Text(template("key"))),
            ]),
            body: Some(template("body")),
            ..HttpProgram::new(template(url))
        }
    }

    fn condition(requires: Requirement) -> Condition {
        Condition::new(requires)
    }

    fn paths(job: &Job) -> Vec<String> {
        let mut found = Vec::new();
        job.each_template(&mut |path, template, scope| found.push(format!("{path} = {} {scope:?}", template.text())));
        found
    }

    #[test]
    fn each_template_is_visited_with_its_path() {
        let mut job = Job::new(Program::Exec(vec![template("load"), template("{{ date }}")]));
        let after = Requirement::After {
            job: template("feeds"),
            args: map("date", "{{ date }}"),
            states: vec![State::Success],
            within: None,
            must_exist: false,
        };
        let file = condition(Requirement::Not(Box::new(condition(Requirement::Probe(Probe::File(template("f")))))));
        job.conditions = vec![condition(after), condition(Requirement::Any(vec![file]))];
        job.env = NameMap::from([("A".to_owned(), EnvValue::Text(template("a")))]);
        job.cwd = Some(template("dir"));
        let publish = Action::Publish { channel: template("/x"), message: Some(template("m")) };
        let email = Action::Email { to: vec!["x@y".into()], subject: Some(template("s")), body: None };
        job.on = BTreeMap::from([
            (RunEvent::Finished, vec![ActionRule::always(publish)]),
            (RunEvent::State(State::Failure), [Action::Command(template("c")), email].map(ActionRule::always).into()),
        ]);
        let args = map("text", "{{ message }}");
        job.triggers = vec![Trigger { channel: "/x".into(), args, batching: Batching::default() }];
        let expected = [
            "program[0] = load Run",
            "program[1] = {{ date }} Run",
            "conditions[0].after.job = feeds Run",
            "conditions[0].after.args.date = {{ date }} Run",
            "conditions[1].any[0].not.file = f Run",
            "env.A = a Run",
            "cwd = dir Run",
            "on.finished[0].publish.channel = /x Action",
            "on.finished[0].publish.message = m Action",
            "on.failure[0].command = c Action",
            "on.failure[1].email.subject = s Action",
            "triggers[0].args.text = {{ message }} Trigger",
        ];
        assert_eq!(paths(&job), expected);
    }

    #[test]
    fn each_template_of_a_request_is_visited() {
        let found = paths(&Job::new(Program::Http(Box::new(http("u")))));
        assert_eq!(
            found,
            ["program.http.url = u Run", "program.http.headers.X-Key = key Run", "program.http.body = body Run"]
        );
        let expression = |text| Expression::parse(text).expect(text);
        let remote = RemoteProgram {
            start: http("s"),
            poll: http("p"),
            every: Span::from_secs(10),
            success: expression("answer.done"),
            failure: expression("answer.failed"),
            cancel: Some(http("c")),
        };
        let found = paths(&Job::new(Program::Remote(Box::new(remote))));
        let urls: Vec<&str> = found.iter().filter(|line| line.contains("url")).map(String::as_str).collect();
        assert_eq!(
            urls,
            [
                "program.remote.start.url = s Run",
                "program.remote.poll.url = p Remote",
                "program.remote.cancel.url = c Remote",
            ]
        );
    }
}
