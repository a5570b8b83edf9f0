//! The limits of units.

use crate::task::limits::{UNIT_ACTS_MAX, VALUE_BYTES_MAX};
use crate::task::{
    Channel, ClassName, JsonText, NewTask, QueueName, TaskAct, TaskId, TaskRefusal, TaskTarget, TaskUnit,
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
        let found = TaskUnit::request(acts).check().err().map(|refusal| match refusal {
            TaskRefusal::TooLarge { what, .. } => what,
            other => panic!("{other}"),
        });
        assert_eq!(found, expected);
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
