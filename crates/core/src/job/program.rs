//! What a run executes. Kinds that only talk to the outside are described here and done in
//! `programs`.

use std::collections::BTreeMap;

use cronhold_schedule::Span;

use crate::template::Template;

/// What a run executes.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a job has one program, and is itself much larger")]
pub enum Program {
    /// A command line for the job's shell.
    Shell(Template),
    /// A program and its arguments, without a shell; never empty.
    Exec(Vec<Template>),
    /// One HTTP request.
    Http(HttpProgram),
    /// A remote task: started, polled and cancelled by HTTP.
    Remote(RemoteProgram),
    /// A durable task that is queued or fed.
    Task(TaskProgram),
    /// Nothing, for as long as it says.
    Noop {
        /// How long it takes.
        duration: Span,
    },
    /// An executable that speaks the plug-in protocol, with its own settings as JSON text.
    Plugin {
        /// Path or name of the executable.
        command: String,
        /// Settings handed to it: text values may hold template expressions.
        settings: BTreeMap<String, Template>,
    },
}

/// One HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpProgram {
    /// Where to.
    pub url: Template,
    /// Upper case; `GET` by default.
    pub method: String,
    /// Headers to send.
    pub headers: BTreeMap<String, Template>,
    /// Body to send.
    pub body: Option<Template>,
    /// Status codes that mean success, as inclusive ranges; 200–299 by default.
    pub expect: Vec<(u16, u16)>,
    /// After which the request fails; 60 s by default.
    pub timeout: Span,
}

/// A remote task in the shape of Swarming-like services.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteProgram {
    /// Starts it; the answer's JSON is the value `task` in the other two.
    pub start: HttpProgram,
    /// Asks how it is doing.
    pub poll: HttpProgram,
    /// Time between questions; 10 s by default.
    pub every: Span,
    /// Expression over the poll's answer that says it succeeded.
    pub success: String,
    /// Expression over the poll's answer that says it failed.
    pub failure: String,
    /// Stops it.
    pub cancel: Option<HttpProgram>,
}

/// Work handed to a durable task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskProgram {
    /// A new task.
    Queue {
        /// Queue of the worker.
        queue: String,
        /// Class of the worker.
        class: String,
        /// Values for its in ports.
        inports: BTreeMap<String, Template>,
    },
    /// A value for a port of a task that exists.
    Write {
        /// Id or alias.
        task: Template,
        /// In port.
        port: String,
        /// What to write.
        value: Template,
    },
}
