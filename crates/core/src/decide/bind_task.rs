//! Resolves the program `task`.

use std::collections::BTreeMap;

use cronhold_schedule::TextError;

use crate::job::TaskProgram;
use crate::record::ResolvedTask;
use crate::task::{ClassName, JsonText, PortName, QueueName, TaskAlias, TaskKey};
use crate::template::Template;

/// The largest size of the values that a run gives to a task, in bytes. They are stored with the run.
const VALUES_MAX: usize = 256 * 1024;

/// Resolves what a run does with tasks. `bind` resolves its templates.
pub(super) fn resolve(
    task: &TaskProgram,
    bind: &dyn Fn(&Template) -> Result<String, TextError>,
) -> Result<ResolvedTask, TextError> {
    let value = |template: &Template| bind(template).map(|text| json_of(&text));
    let (resolved, bytes) = match task {
        TaskProgram::Queue { queue, class, args, inports, alias, wait } => {
            let args = args.iter().map(value).collect::<Result<Vec<_>, _>>()?;
            let inports = inports.iter().map(|(port, data)| Ok((PortName::parse(port)?, value(data)?)));
            let inports = inports.collect::<Result<BTreeMap<_, _>, TextError>>()?;
            let alias = alias.as_ref().map(|alias| TaskAlias::parse(&bind(alias)?)).transpose()?;
            let (queue, class) = (QueueName::parse(queue)?, ClassName::parse(class)?);
            let bytes = args.iter().chain(inports.values()).map(|value| value.as_str().len()).sum::<usize>();
            (ResolvedTask::Queue { queue, class, args, inports, alias, wait: *wait }, bytes)
        }
        TaskProgram::Write { to, port, data } => {
            let (to, data) = (bind(to)?, value(data)?);
            TaskKey::parse(&to)?;
            let bytes = data.as_str().len();
            (ResolvedTask::Write { to, port: PortName::parse(port)?, data }, bytes)
        }
    };
    match bytes > VALUES_MAX {
        true => {
            let message = format!("the values for the task have {bytes} bytes; at most {VALUES_MAX} are allowed");
            Err(TextError::new(0..0, message).hint("write where the data is, instead of the data"))
        }
        false => Ok(resolved),
    }
}

/// A text that is JSON as the value that it stands for, and any other text as itself.
pub(super) fn json_of(text: &str) -> JsonText {
    JsonText::parse(text).unwrap_or_else(|_| JsonText::of_text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template::parse(text).expect(text)
    }

    fn resolved(task: &TaskProgram) -> Result<ResolvedTask, String> {
        resolve(task, &|template| Ok(template.text().replace("{{ day }}", "monday"))).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_json_or_texts() {
        let task = TaskProgram::Queue {
            queue: "numbers".to_owned(),
            class: "Sum".to_owned(),
            args: ["7", "{{ day }}", r#"{"a": [1]}"#].map(template).into(),
            inports: BTreeMap::from([("in".to_owned(), template("null"))]),
            alias: Some(template("sum/{{ day }}")),
            wait: true,
        };
        let Ok(ResolvedTask::Queue { args, inports, alias, .. }) = resolved(&task) else { panic!("{task:?}") };
        assert_eq!(args.iter().map(JsonText::as_str).collect::<Vec<_>>(), ["7", r#""monday""#, r#"{"a":[1]}"#]);
        assert_eq!(inports.values().map(JsonText::as_str).collect::<Vec<_>>(), ["null"]);
        assert_eq!(alias.map(|alias| alias.to_string()).as_deref(), Some("sum/monday"));
    }

    #[test]
    fn receiver_that_is_neither_an_id_nor_an_alias_is_rejected() {
        let write = |to: &str, data: &str| TaskProgram::Write {
            to: template(to),
            port: "in".to_owned(),
            data: Template::literal(data),
        };
        assert!(resolved(&write("{{ day }}", "1")).is_ok());
        assert!(resolved(&write("12abc", "1")).expect_err("no id").contains("`12abc` is not the id of a task"));
        let large = resolved(&write("7", &"x".repeat(300_000))).expect_err("too large");
        assert!(large.starts_with("the values for the task have 300002 bytes"), "{large}");
    }
}
