//! What a run executes. Kinds that only talk to the outside are described here and done in
//! `programs`.

use std::collections::BTreeMap;

use cronhold_schedule::Span;

use crate::template::{Expression, Template};

/// What a run executes. Most are a command; larger kinds stand in boxes, so that a job with a command stays small.
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
    /// A durable task that is queued or fed.
    Task(Box<TaskProgram>),
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

impl HttpProgram {
    /// Status codes that mean success, unless a job says otherwise.
    pub const EXPECT_DEFAULT: (u16, u16) = (200, 299);
    /// After which a request fails, unless a job says otherwise.
    pub const TIMEOUT_DEFAULT: Span = Span::from_secs(60);

    /// A `GET` with all defaults.
    pub fn new(url: Template) -> Self {
        Self {
            url,
            method: "GET".to_owned(),
            headers: BTreeMap::new(),
            body: None,
            expect: vec![Self::EXPECT_DEFAULT],
            timeout: Self::TIMEOUT_DEFAULT,
        }
    }
}

/// A remote task in the shape of Swarming-like services.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteProgram {
    /// Starts it; the JSON of its answer is `task` in all that follows.
    pub start: HttpProgram,
    /// Asks how it is doing; the JSON of its answer is `answer` in `success` and `failure`.
    pub poll: HttpProgram,
    /// Time between questions; 10 s by default.
    pub every: Span,
    /// Says of the poll's answer that it succeeded.
    pub success: Expression,
    /// Says of the poll's answer that it failed.
    pub failure: Expression,
    /// Stops it.
    pub cancel: Option<HttpProgram>,
}

impl RemoteProgram {
    /// Time between questions, unless a job says otherwise.
    pub const EVERY_DEFAULT: Span = Span::from_secs(10);
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
