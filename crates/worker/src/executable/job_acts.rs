//! The acts of a job of a Sidekiq client. The job itself is not a task, so every act names the task that it is about, or
//! creates one.

use cronhold_core::task::log::{message_entry, object_entry};
use cronhold_core::task::port::parse_ports;
use cronhold_core::task::{
    Channel, JsonObject, JsonText, NewTask, PortDirection, PortItem, PortMap, PortTarget, TaskAct, TaskKey, TaskTarget,
};
use cronhold_schedule::{Instant, TextError};

use super::apply::protocol_error;
use super::change::{
    AliasForm, DirectionForm, KeyForm, QueueForm, RunForm, StepChange, TerminateForm, TimeForm, WriteForm,
    parse_change, seconds_span,
};
use crate::bare::BareJobStep;
use crate::step::load;
use crate::worker::{StepResult, StepStop};

/// Adds acts to a job, in order. An error names the number of the act in the job, from 1; `count` has those before.
pub(super) fn push_acts(job: &mut BareJobStep<'_>, acts: &[JsonText], count: &mut usize) -> StepResult {
    for act in acts {
        *count += 1;
        let number = *count;
        let change = parse_change(act).map_err(|error| protocol_error(format!("act {number}: {}", error.message)))?;
        push_act(job, change).map_err(|stop| match stop {
            StepStop::Failed(message) => protocol_error(format!("act {number}: {message}")),
            other => other,
        })?;
    }
    Ok(())
}

fn push_act(job: &mut BareJobStep<'_>, change: StepChange) -> StepResult {
    let act = match change {
        StepChange::Write(write) => write_act(job, write)?,
        StepChange::Queue(queue) => create_act(job, queue)?,
        StepChange::Run(run) => run_act(job, run)?,
        StepChange::Terminate(TerminateForm { own: false, child: None, task: Some(task), recursive }) => {
            TaskAct::Terminate { task: find(job, &task)?, recursive }
        }
        StepChange::Alias(AliasForm::Other { name, child: None, task: Some(task) }) => {
            TaskAct::AddAlias { task: find(job, &task)?, alias: name }
        }
        StepChange::Unalias(AliasForm::Other { name, child: None, task: Some(task) }) => {
            TaskAct::RemoveAlias { task: find(job, &task)?, alias: name }
        }
        StepChange::Publish(publish) => TaskAct::Publish { channel: publish.channel, message: publish.message },
        StepChange::Log(entry) => log_act(job, &entry)?,
        StepChange::Terminate(_) | StepChange::Alias(_) | StepChange::Unalias(_) => return fail("it needs `task`"),
        StepChange::Take(_)
        | StepChange::Default(_)
        | StepChange::Channels(_)
        | StepChange::Ports(_)
        | StepChange::Set(_)
        | StepChange::Unset(_)
        | StepChange::Adopt(_)
        | StepChange::Disown(_)
        | StepChange::Connect(_)
        | StepChange::Context(_)
        | StepChange::Group(_) => {
            return fail(
                "a job of a Sidekiq client is not a task; its acts are write, queue, run, terminate, alias, unalias, \
                 publish and log",
            );
        }
    };
    job.act(act);
    Ok(())
}

fn fail<T>(message: &str) -> StepResult<T> {
    Err(StepStop::Failed(message.to_owned()))
}

/// The task that an act is about, which exists.
fn find(job: &BareJobStep<'_>, key: &KeyForm) -> StepResult<TaskTarget> {
    match key.key()? {
        TaskKey::Id(id) => Ok(TaskTarget::Id(id)),
        key @ TaskKey::Alias(_) => match load(job.store().find(&key))? {
            Some(task) => Ok(TaskTarget::Id(task.id)),
            None => fail(&format!("there is no task `{key}`")),
        },
    }
}

fn write_act(job: &BareJobStep<'_>, write: WriteForm) -> StepResult<TaskAct> {
    let (None, Some(task)) = (write.child, &write.task) else { return fail("`write` needs `task`") };
    let values = match (write.data, write.list) {
        (Some(value), None) => vec![value],
        (None, Some(values)) => values,
        _ => return fail("`write` needs either `data` or `list`"),
    };
    let direction = write.dir.map_or(PortDirection::In, DirectionForm::direction);
    let port = PortTarget { task: find(job, task)?, direction, port: write.port };
    let items = values.into_iter().map(PortItem::new).collect();
    Ok(TaskAct::Write { port, items, as_default: false, notify: true })
}

fn create_act(job: &BareJobStep<'_>, new: QueueForm) -> StepResult<TaskAct> {
    if new.name.is_some() {
        return fail("`queue` takes no `name`, because a job has no children");
    }
    let ports = |ports: Option<JsonText>| ports.map_or(Ok(PortMap::new()), |ports| parse_ports(ports.as_str()));
    let queue = new.queue.unwrap_or_else(|| job.queue().clone());
    Ok(TaskAct::Create(NewTask {
        args: new.args,
        inports: ports(new.inports)?,
        outports: ports(new.outports)?,
        at: new.at.map(|at| at.instant()).transpose()?,
        ..NewTask::new(queue, new.class)
    }))
}

fn run_act(job: &BareJobStep<'_>, run: RunForm) -> StepResult<TaskAct> {
    let (false, false, None, Some(task)) = (run.own, run.parent, run.child, &run.task) else {
        return fail("`run` needs `task`");
    };
    let at = time(job, run.at, run.wait)?;
    Ok(TaskAct::Run { task: find(job, task)?, forced: run.force, at })
}

fn time(job: &BareJobStep<'_>, at: Option<TimeForm>, wait: Option<f64>) -> StepResult<Option<Instant>> {
    match (at, wait) {
        (Some(at), None) => Ok(Some(at.instant()?)),
        (None, Some(wait)) => Ok(Some(load(job.store().time())?.plus(seconds_span(wait)?))),
        (None, None) => Ok(None),
        (Some(_), Some(_)) => fail("`run` takes `at` or `wait`, not both"),
    }
}

fn log_act(job: &BareJobStep<'_>, entry: &JsonText) -> StepResult<TaskAct> {
    let (context, now) = (JsonObject::default(), load(job.store().time())?);
    let message = match JsonObject::parse(entry.as_str()) {
        Ok(object) => object_entry(&context, now, &object),
        Err(_) => {
            let text: Result<String, TextError> = entry.to();
            message_entry(&context, now, &text.unwrap_or_else(|_| entry.to_string()))
        }
    };
    Ok(TaskAct::Publish { channel: Channel::log(), message })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cronhold_core::task::{ClassName, QueueName, StepId};
    use cronhold_store::tasks::{BareJob, MemoryTaskStore};

    use super::*;

    /// The acts of a job that are committed, or why it fails.
    fn acts_of(acts: &[&str]) -> Result<Vec<TaskAct>, StepStop> {
        let store = MemoryTaskStore::new(Arc::new(|| Instant::from_secs(1_800_000_000)));
        let job = BareJob {
            step: StepId::from_random([7; 16]),
            queue: QueueName::parse("testq").expect("a name"),
            class: ClassName::parse("Mail").expect("a name"),
            jid: "a1".to_owned(),
            args: JsonText::list([]),
            entry: JsonText::null(),
        };
        let acts: Vec<JsonText> = acts.iter().map(|act| JsonText::parse(act).expect("JSON")).collect();
        let mut step = BareJobStep::new(&store, &job);
        push_acts(&mut step, &acts, &mut 0).map(|()| step.into_acts())
    }

    #[test]
    fn acts_of_a_job_name_their_task() {
        let acts = acts_of(&[
            r#"{"write":{"task":7,"port":"in","list":[1,2]}}"#,
            r#"{"queue":{"class":"Sum","args":[1]}}"#,
            r#"{"run":{"task":7,"wait":60}}"#,
            r#"{"terminate":{"task":7,"recursive":true}}"#,
            r#"{"alias":{"name":"daily","task":7}}"#,
            r#"{"unalias":{"name":"daily","task":7}}"#,
            r#"{"publish":{"channel":"/mails","message":1}}"#,
            r#"{"log":"sent"}"#,
        ]);
        let acts = acts.expect("all are possible");
        assert_eq!(acts.len(), 8);
        let TaskAct::Create(new) = &acts[1] else { panic!("{acts:?}") };
        assert_eq!((new.queue.as_str(), new.class.as_str()), ("testq", "Sum"), "the queue is that of the job");
        let TaskAct::Run { at, .. } = &acts[2] else { panic!("{acts:?}") };
        assert_eq!(*at, Some(Instant::from_secs(1_800_000_060)));
    }

    #[test]
    fn acts_about_the_job_itself_fail_it() {
        for (act, expected) in [
            (r#"{"take":{"port":"in"}}"#, "is not a task"),
            (r#"{"set":{"a":1}}"#, "is not a task"),
            (r#"{"write":{"port":"out","data":1}}"#, "`write` needs `task`"),
            (r#"{"write":{"task":7,"port":"in"}}"#, "either `data` or `list`"),
            (r#"{"write":{"task":"nowhere","port":"in","data":1}}"#, "there is no task `nowhere`"),
            (r#"{"queue":{"name":"one","class":"Sum"}}"#, "takes no `name`"),
            (r#"{"run":{"self":true}}"#, "`run` needs `task`"),
            (r#"{"terminate":{"self":true}}"#, "it needs `task`"),
            (r#"{"alias":"daily"}"#, "it needs `task`"),
        ] {
            let stop = acts_of(&[r#"{"log":"first"}"#, act]).expect_err(act);
            let StepStop::Failed(message) = stop else { panic!("{act}: {stop:?}") };
            assert!(message.starts_with("protocol: act 2: ") && message.contains(expected), "{act}: {message}");
        }
    }
}
