//! Programs: what a run executes. The types are here; the crate `programs` executes them.

use std::collections::BTreeMap;

use cronhold_schedule::Span;

use super::HttpProgram;
use crate::template::{Expression, Template};

/// What a run executes. Most are a command; larger kinds are boxed, so that a job with a command stays small.
#[derive(Debug, Clone, PartialEq)]
pub enum Program {
    /// A command line for the job's shell.
    Shell(Template),
    /// A program and its arguments, without a shell; never empty.
    Exec(Vec<Template>),
    /// One HTTP request.
    Http(Box<HttpProgram>),
    /// A remote task: started, polled and cancelled by HTTP.
    Remote(Box<RemoteProgram>),
    /// A durable task: a new one, or a value for an existing one.
    Task(Box<TaskProgram>),
    /// Does nothing for the given time.
    Noop {
        /// Duration of the run.
        duration: Span,
    },
    /// An executable that speaks the plug-in protocol.
    Plugin(Box<PluginCall>),
}

/// An executable that speaks the plug-in protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginCall {
    /// Path or name of the executable.
    pub command: String,
    /// Settings for the executable; values may hold template expressions.
    pub settings: BTreeMap<String, Template>,
}

/// A remote task in the shape of Swarming-like services.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteProgram {
    /// Request that starts the task; the JSON of its response is `task` in the following fields.
    pub start: HttpProgram,
    /// Request that polls the task; the JSON of its response is `answer` in `success` and `failure`.
    pub poll: HttpProgram,
    /// Time between two polls; 10 s by default.
    pub every: Span,
    /// Whether the response to a poll means success.
    pub success: Expression,
    /// Whether the response to a poll means failure.
    pub failure: Expression,
    /// Request that cancels the task; it cannot be cancelled when absent.
    pub cancel: Option<HttpProgram>,
}

impl RemoteProgram {
    /// Default of `every`.
    pub const EVERY_DEFAULT: Span = Span::from_secs(10);
}

/// Work for a durable task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskProgram {
    /// A new task.
    Queue {
        /// Queue of the worker.
        queue: String,
        /// Class of the worker.
        class: String,
        /// Its args in order.
        args: Vec<Template>,
        /// Values for its in ports, by name.
        inports: BTreeMap<String, Template>,
        /// A name of the task.
        alias: Option<Template>,
        /// Whether the run ends with the task, rather than when the task is created.
        wait: bool,
    },
    /// A value for an in port of an existing task.
    Write {
        /// Id or alias of the task.
        to: Template,
        /// Name of the in port.
        port: String,
        /// Value to write.
        data: Template,
    },
}
