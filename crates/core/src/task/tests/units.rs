//! The limits of units.

use cronhold_schedule::Instant;

use crate::task::limits::{
    CONTEXT_BYTES_MAX, ERROR_BYTES_MAX, LABEL_BYTES_MAX, UNIT_ACTS_MAX, UNIT_BYTES_MAX, VALUE_BYTES_MAX,
};
use crate::task::log::error_entry;
use crate::task::{
    Channel, ClassName, JsonObject, JsonText, NewTask, PortDirection, PortItem, PortName, PortTarget, QueueName,
    StateField, StepEnding, StepError, StepId, TaskAct, TaskId, TaskRefusal, TaskTarget, TaskUnit,
};

fn publish(bytes: usize) -> TaskAct {
    let message = JsonText::of_text(&"x".repeat(bytes - 2));
    TaskAct::Publish { channel: Channel::parse("/a").expect("a channel"), message }
}

#[test]
fn units_have_limits() {
    let mib = VALUE_BYTES_MAX;
    for (acts, expected) in [
        (vec![publish(mib)], None),
        (vec![publish(mib + 1)], Some("bytes of a value")),
        (vec![publish(mib); 16], None),
        (vec![publish(mib); 17], Some("bytes of a unit")),
        (vec![TaskAct::Delete { task: TaskTarget::Id(TaskId::MAX) }; UNIT_ACTS_MAX], None),
        (vec![TaskAct::Delete { task: TaskTarget::Id(TaskId::MAX) }; UNIT_ACTS_MAX + 1], Some("acts of a unit")),
    ] {
        assert_eq!(exceeded(&TaskUnit::request(acts)), expected);
    }
}

/// What a unit has too much of.
fn exceeded(unit: &TaskUnit) -> Option<&'static str> {
    unit.check().err().map(|refusal| match refusal {
        TaskRefusal::TooLarge { what, .. } => what,
        other => panic!("{other}"),
    })
}

fn port() -> PortTarget {
    PortTarget::new(TaskId::FIRST, PortDirection::In, PortName::parse("in").expect("a name"))
}

fn write(items: Vec<PortItem>) -> TaskAct {
    TaskAct::Write { port: port(), items, as_default: false, notify: true }
}

/// Small parts count, however few acts they are in.
#[test]
fn items_fields_and_targets_count_as_acts() {
    let task = TaskTarget::Id(TaskId::FIRST);
    let fields = |count: usize| (0..count).map(|number| StateField::parse(&format!("f{number}")).expect("a name"));
    let too_many = UNIT_ACTS_MAX + 1;
    for act in [
        write(vec![PortItem::new(JsonText::null()); too_many]),
        TaskAct::SetState { task, fields: fields(too_many).map(|field| (field, JsonText::null())).collect() },
        TaskAct::UnsetState { task, fields: fields(too_many).collect() },
        TaskAct::Connect { from: port(), to: vec![port(); too_many] },
    ] {
        assert_eq!(exceeded(&TaskUnit::request(vec![act])), Some("acts of a unit"));
    }
    assert_eq!(exceeded(&TaskUnit::request(vec![write(vec![PortItem::new(JsonText::null()); UNIT_ACTS_MAX])])), None);
}

/// A context is stored with each item that is written in it.
#[test]
fn contexts_have_limits() {
    let context = |bytes: usize| JsonObject::new().with("x", JsonText::of_text(&"x".repeat(bytes - 3)));
    let item = |bytes| PortItem::new(JsonText::null()).with_context(context(bytes));
    let (most, small) = (CONTEXT_BYTES_MAX, 10);
    let with_options = PortItem::new(JsonText::null()).with_options(context(most + 1));
    for (items, of_unit, expected) in [
        (vec![item(most)], most, None),
        (vec![item(most + 1)], small, Some("bytes of a context")),
        (vec![with_options], small, Some("bytes of a context")),
        (vec![item(small)], most + 1, Some("bytes of a context")),
        (vec![item(most); UNIT_BYTES_MAX / most], small, Some("bytes of a unit")),
    ] {
        let unit = TaskUnit { context: context(of_unit), ..TaskUnit::request(vec![write(items)]) };
        assert_eq!(exceeded(&unit), expected);
    }
}

#[test]
fn labels_and_errors_have_limits() {
    let unit = |bytes: usize| TaskUnit::request(Vec::new()).once(&"k".repeat(bytes));
    assert_eq!(exceeded(&unit(LABEL_BYTES_MAX)), None);
    assert_eq!(exceeded(&unit(LABEL_BYTES_MAX + 1)), Some("bytes of a key"));
    let (queue, class) = (QueueName::parse("q").expect("a queue"), ClassName::parse("C").expect("a class"));
    let created_by = "x".repeat(LABEL_BYTES_MAX + 1);
    let create = TaskAct::Create(NewTask { created_by, ..NewTask::new(queue, class) });
    assert_eq!(exceeded(&TaskUnit::request(vec![create])), Some("bytes of the name of a creator"));

    let text = format!("x{}", "ü".repeat(1 << 20));
    let entry = error_entry(&JsonObject::new(), Instant::EPOCH, &text, Some(&text));
    assert!(entry.as_str().len() < 100 << 10, "an error does not fill the log");
    let entry = JsonObject::parse(entry.as_str()).expect("an object");
    let error: String = entry.get("error").and_then(|error| error.to().ok()).expect("a text");
    assert!(error.starts_with("xü") && error.ends_with("ü…") && error.len() <= ERROR_BYTES_MAX + 3, "{}", error.len());
}

/// What a repeated step does would happen again.
#[test]
fn repeated_step_changes_nothing() {
    for ending in [StepEnding::GivenBack, StepEnding::Repeated(StepError::new("away"))] {
        let step = |acts| TaskUnit::step(TaskId::FIRST, StepId::from_random([0; 16]), ending.clone(), acts);
        assert_eq!(step(Vec::new()).check(), Ok(()));
        assert!(matches!(step(vec![write(Vec::new())]).check(), Err(TaskRefusal::Invalid(_))));
    }
}

#[test]
fn args_are_a_list() {
    for (args, is_valid) in [("[]", true), ("[1,{}]", true), ("{}", false), ("1", false), ("null", false)] {
        let (queue, class) = (QueueName::parse("q").expect("a queue"), ClassName::parse("C").expect("a class"));
        let task = NewTask { args: JsonText::parse(args).ok(), ..NewTask::new(queue, class) };
        assert_eq!(TaskUnit::request(vec![TaskAct::Create(task)]).check().is_ok(), is_valid, "{args}");
    }
}
