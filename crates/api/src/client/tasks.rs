//! Requests about tasks. A task is named by its id or an alias.

use cronhold_core::task::{PortDirection, TaskStatus};
use hyper::Method;
use serde::Serialize;

use super::exchange::RequestBuilder;
use super::runs::with_key;
use super::{CallError, DaemonClient, RequestPath, api};
use crate::{
    AdoptBody, AliasesBody, ConnectBody, ConnectReply, CreatedTask, DisownBody, PortChangeBody, PortItemList,
    PortReadBody, PortReadReply, TaskBody, TaskDetail, TaskList, TaskPortSummary, TaskRunBody, TaskStateBody, TaskTree,
    TerminateBody,
};

/// Filter of a list of tasks.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Status of the tasks.
    pub status: Option<TaskStatus>,
    /// Queue of the tasks.
    pub queue: Option<String>,
}

impl DaemonClient {
    /// Loads a page of tasks, ordered by id, after the task with the id `after`.
    pub fn task_page(&self, filter: &TaskFilter, after: Option<u64>, limit: usize) -> Result<TaskList, CallError> {
        let path = api().segment("tasks").with_some("status", filter.status).with_some("queue", filter.queue.as_ref());
        self.get(path.with_some("after", after).with("limit", limit))
    }

    /// Loads a task in detail.
    pub fn task(&self, task: &str) -> Result<TaskDetail, CallError> {
        self.get(named(task))
    }

    /// Loads a task and its descendants.
    pub fn task_tree(&self, task: &str) -> Result<TaskTree, CallError> {
        self.get(named(task).segment("tree"))
    }

    /// Creates a task. The same key never creates a second task.
    pub fn create_task(&self, body: &TaskBody, key: Option<&str>) -> Result<CreatedTask, CallError> {
        let request = RequestBuilder::new(Method::POST, api().segment("tasks")).json(body);
        self.send(with_key(request, key))?.read()
    }

    /// Requests a step of a task.
    pub fn run_task(&self, task: &str, body: &TaskRunBody) -> Result<TaskDetail, CallError> {
        self.change_task(task, "run", body)
    }

    /// Ends a task, and with `recursive`, its descendants.
    pub fn terminate_task(&self, task: &str, recursive: bool) -> Result<TaskDetail, CallError> {
        self.change_task(task, "terminate", &TerminateBody { recursive })
    }

    /// Deletes a task and its descendants.
    pub fn delete_task(&self, task: &str) -> Result<(), CallError> {
        self.send(RequestBuilder::new(Method::DELETE, named(task))).map(drop)
    }

    /// Makes a task the child of another.
    pub fn adopt_task(&self, parent: &str, body: &AdoptBody) -> Result<TaskDetail, CallError> {
        self.change_task(parent, "adopt", body)
    }

    /// Takes a child from its parent.
    pub fn disown_task(&self, parent: &str, name: &str) -> Result<TaskDetail, CallError> {
        self.change_task(parent, "disown", &DisownBody { name: name.to_owned() })
    }

    /// Adds and removes aliases.
    pub fn alias_task(&self, task: &str, body: &AliasesBody) -> Result<TaskDetail, CallError> {
        self.change_task(task, "aliases", body)
    }

    /// Sets and removes fields of the state.
    pub fn change_task_state(&self, task: &str, body: &TaskStateBody) -> Result<TaskDetail, CallError> {
        self.change_task(task, "state", body)
    }

    /// Moves the values of a port to other ports.
    pub fn connect_task(&self, task: &str, body: &ConnectBody) -> Result<ConnectReply, CallError> {
        self.post(named(task).segment("connect"), body)
    }

    /// Loads values of a port without taking them, from a position on.
    pub fn port_items(
        &self,
        task: &str,
        direction: PortDirection,
        port: &str,
        from: Option<u64>,
        limit: usize,
    ) -> Result<PortItemList, CallError> {
        self.get(port_path(task, direction, port).with_some("from", from).with("limit", limit))
    }

    /// Writes to a port, or changes its options. The same key never writes twice.
    pub fn change_port(
        &self,
        task: &str,
        direction: PortDirection,
        port: &str,
        body: &PortChangeBody,
        key: Option<&str>,
    ) -> Result<TaskPortSummary, CallError> {
        let request = RequestBuilder::new(Method::POST, port_path(task, direction, port)).json(body);
        self.send(with_key(request, key))?.read()
    }

    /// Takes values from a port.
    pub fn read_port(
        &self,
        task: &str,
        direction: PortDirection,
        port: &str,
        body: &PortReadBody,
    ) -> Result<PortReadReply, CallError> {
        self.post(port_path(task, direction, port).segment("read"), body)
    }

    fn change_task(&self, task: &str, operation: &str, body: &impl Serialize) -> Result<TaskDetail, CallError> {
        self.post(named(task).segment(operation), body)
    }
}

fn named(task: &str) -> RequestPath {
    api().segment("tasks").segment(task)
}

fn port_path(task: &str, direction: PortDirection, port: &str) -> RequestPath {
    let ports = match direction {
        PortDirection::In => "inports",
        PortDirection::Out => "outports",
    };
    named(task).segment(ports).segment(port)
}
