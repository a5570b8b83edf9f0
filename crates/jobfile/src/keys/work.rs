//! Keys of programs, conditions and actions: what is run, awaited and done.

use cronhold_core::job::{Feature, HttpProgram, HttpTarget};
use cronhold_core::run::State;

use super::codec::{self, FROM_ONE};
use super::record::record;
use super::{CHANNEL, IDENTIFIER, Key, Shape, Table};

const TEMPLATES: Shape = Shape::Names { regex: IDENTIFIER, value: &Shape::Template };
pub(super) const HEADERS: Shape = Shape::Names { regex: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", value: &Shape::Template };
pub(super) const URL: Shape =
    Shape::Pattern { regex: r"^(https?://|\{\{)", noun: "a URL, which begins with `http://` or `https://`" };
const REQUEST: Shape = Shape::Either(&[URL, Shape::Map(&HTTP)]);
const SOME_STATES: Shape = Shape::Some(&Shape::Word(&State::NAMES));
/// Methods of requests.
pub const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
pub(super) const METHOD: Shape = Shape::Pattern {
    regex: "^([Gg][Ee][Tt]|[Hh][Ee][Aa][Dd]|[Pp][Oo][Ss][Tt]|[Pp][Uu][Tt]|[Pp][Aa][Tt][Cc][Hh]|[Dd][Ee][Ll][Ee][Tt][Ee]|[Oo][Pp][Tt][Ii][Oo][Nn][Ss])$",
    noun: "a method: GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS",
};
pub(super) const STATUS: Shape = Shape::Either(&[
    Shape::Whole { least: 100, most: 599 },
    Shape::Pattern { regex: "^([1-5][0-9][0-9](-[1-5][0-9][0-9])?|[1-5]xx)$", noun: "`200`, `200-299` or `2xx`" },
]);

/// A program.
pub static PROGRAM: Table = Table {
    name: "program",
    noun: "a program",
    doc: "What a run executes.",
    one_of: &[&["shell"], &["exec"], &["http"], &["remote"], &["task"], &["noop"], &["plugin"]],
    keys: &[
        Key::new("shell", Shape::Text, "A command line for the job's shell."),
        Key::new("exec", Shape::Some(&Shape::Template), "A program and its arguments, without a shell."),
        Key::new("http", REQUEST, "One HTTP request.").needs(Feature::HttpProgram),
        Key::new("remote", Shape::Map(&REMOTE), "A remote task: started, polled and cancelled by HTTP.")
            .needs(Feature::RemoteProgram),
        Key::new(
            "task",
            Shape::Either(&[Shape::Map(&TASK_QUEUE), Shape::Map(&TASK_WRITE)]),
            "A durable task that is queued, or a value for one that exists.",
        )
        .needs(Feature::TaskProgram),
        Key::new(
            "noop",
            Shape::Either(&[Shape::True, Shape::Null, Shape::Span, Shape::Map(&NOOP)]),
            "Nothing, for as long as it says.",
        ),
        Key::new("plugin", Shape::Map(&PLUGIN), "An executable that speaks the plug-in protocol.")
            .needs(Feature::PluginProgram),
    ],
};

record! {
    /// A request.
    pub static HTTP: HttpProgram = "http", "a request", "One HTTP request.";
    always url = codec::URL => Key::field("url", "Where to.").required();
    value method = codec::METHOD => Key::field("method", "The method.").default("GET");
    value headers = codec::HEADERS => Key::field("headers", "Headers to send.");
    option body = codec::TEMPLATE => Key::field("body", "Body to send.");
    value expect = codec::STATUSES => Key::field("expect", "Status codes that mean success.").default("2xx");
    value timeout = codec::SOME_SPAN => Key::field("timeout", "After which the request fails.").default("1m");
}

/// A remote task.
pub static REMOTE: Table = Table {
    name: "remote",
    noun: "`remote`",
    doc: "A remote task in the shape of Swarming-like services.",
    one_of: &[],
    keys: &[
        Key::new("start", REQUEST, "Starts it; the JSON of its answer is `task` in all that follows.").required(),
        Key::new(
            "poll",
            REQUEST,
            "Asks how it is doing; the JSON of its answer is `answer` in `success` and `failure`.",
        )
        .required(),
        Key::new("every", Shape::Span, "Time between questions.").default("10s"),
        Key::new("success", Shape::Expression, "Says of the poll's answer that it succeeded.").required(),
        Key::new("failure", Shape::Expression, "Says of the poll's answer that it failed.").required(),
        Key::new("cancel", REQUEST, "Stops it."),
    ],
};

/// A new task.
pub static TASK_QUEUE: Table = Table {
    name: "task_queue",
    noun: "a new task",
    doc: "A new task.",
    one_of: &[],
    keys: &[
        Key::new("queue", Shape::Text, "Queue of the worker.").required(),
        Key::new("class", Shape::Text, "Class of the worker.").required(),
        Key::new("inports", Shape::Names { regex: "", value: &Shape::Template }, "Values for its in ports."),
    ],
};

/// A value for a task.
pub static TASK_WRITE: Table = Table {
    name: "task_write",
    noun: "a value for a task",
    doc: "A value for a port of a task that exists.",
    one_of: &[],
    keys: &[
        Key::new("task", Shape::Template, "Id or alias.").required(),
        Key::new("port", Shape::Text, "In port.").required(),
        Key::new("value", Shape::Template, "What to write.").required(),
    ],
};

/// `noop` as a map.
pub static NOOP: Table = Table {
    name: "noop",
    noun: "`noop`",
    doc: "Nothing, for some time.",
    one_of: &[],
    keys: &[Key::new("duration", Shape::Span, "How long it takes.").default("0s")],
};

/// A plug-in.
pub static PLUGIN: Table = Table {
    name: "plugin",
    noun: "`plugin`",
    doc: "An executable that speaks the plug-in protocol.",
    one_of: &[],
    keys: &[
        Key::new("command", Shape::Text, "Path or name of the executable.").required(),
        Key::new("settings", TEMPLATES, "Settings handed to it."),
    ],
};

/// A condition.
pub static CONDITION: Table = Table {
    name: "condition",
    noun: "a condition",
    doc: "What must hold before a run starts.",
    one_of: &[
        &["after"],
        &["max_running"],
        &["skip_duplicate"],
        &["file"],
        &["http"],
        &["command"],
        &["window"],
        &["all"],
        &["any"],
        &["not"],
    ],
    keys: &[
        Key::new("after", Shape::Either(&[Shape::Text, Shape::Map(&AFTER)]), "A run of a job in one of some states."),
        Key::new(
            "max_running",
            Shape::Either(&[FROM_ONE, Shape::Map(&MAX_RUNNING)]),
            "Fewer than so many runs are active.",
        ),
        Key::new(
            "skip_duplicate",
            Shape::Either(&[Shape::True, Shape::Map(&SKIP_DUPLICATE)]),
            "No other run with the same args is active, else this one is skipped.",
        ),
        Key::new("file", Shape::Template, "A file is there.").needs(Feature::FileCondition),
        Key::new("http", REQUEST, "A request is answered as expected.").needs(Feature::HttpCondition),
        Key::new("command", Shape::Template, "A shell command ends with 0.").needs(Feature::CommandCondition),
        Key::new("window", Shape::Map(&WINDOW), "The local time of day is inside a window."),
        Key::new("all", Shape::Some(&Shape::Map(&CONDITION)), "All of these hold."),
        Key::new("any", Shape::Some(&Shape::Map(&CONDITION)), "One of these holds."),
        Key::new("not", Shape::Map(&CONDITION), "This does not hold."),
        Key::new("timeout", Shape::Span, "How long a run waits for it before it becomes an error.")
            .default("without end"),
        Key::new("poll", Shape::Span, "Time between two looks at the outside.").default("30s"),
    ],
};

/// `after` as a map.
pub static AFTER: Table = Table {
    name: "after",
    noun: "`after`",
    doc: "A run of a job, with these args, in one of these states.",
    one_of: &[],
    keys: &[
        Key::new("job", Shape::Template, "Which job.").required(),
        Key::new("args", TEMPLATES, "Args of the run; those not named are taken over from this run."),
        Key::new("states", SOME_STATES, "States that count.").default("[success]"),
        Key::new("within", Shape::Span, "How long ago the run may have finished.").default("any time"),
        Key::new("must_exist", Shape::Bool, "Whether it is an error when no such run exists or is on its way.")
            .default("false"),
    ],
};

/// `max_running` as a map.
pub static MAX_RUNNING: Table = Table {
    name: "max_running",
    noun: "`max_running`",
    doc: "Fewer than so many runs are active.",
    one_of: &[],
    keys: &[
        Key::new("count", FROM_ONE, "The limit.").required(),
        Key::new("same_args", Shape::Bool, "Whether only runs with the same args count.").default("false"),
        Key::new("pool", Shape::Text, "A pool shared by jobs, instead of this job's own runs.").needs(Feature::Pool),
    ],
};

/// `skip_duplicate` as a map.
pub static SKIP_DUPLICATE: Table = Table {
    name: "skip_duplicate",
    noun: "`skip_duplicate`",
    doc: "No other run with the same args is in one of these states.",
    one_of: &[],
    keys: &[Key::new("states", SOME_STATES, "States that count.").default("[waiting, starting, running, stopping]")],
};

/// `window`.
pub static WINDOW: Table = Table {
    name: "window",
    noun: "`window`",
    doc: "Part of the day; it may reach over midnight.",
    one_of: &[],
    keys: &[
        Key::new("from", Shape::Time, "First moment.").required(),
        Key::new("until", Shape::Time, "First moment after it.").required(),
        Key::new("timezone", Shape::Text, "IANA zone of both.").also(&["tz"]).default("the node's"),
    ],
};

/// An action.
pub static ACTION: Table = Table {
    name: "action",
    noun: "an action",
    doc: "What happens when a run enters a state.",
    one_of: &[&["run"], &["webhook"], &["email"], &["command"], &["publish"]],
    keys: &[
        Key::new("run", Shape::Either(&[Shape::Text, Shape::Map(&RUN)]), "A run of a job is created.")
            .needs(Feature::RunAction),
        Key::new("webhook", Shape::Either(&[URL, Shape::Map(&WEBHOOK)]), "A request is sent.")
            .needs(Feature::WebhookAction),
        Key::new("email", Shape::Map(&EMAIL), "A mail is sent.").needs(Feature::EmailAction),
        Key::new("command", Shape::Template, "A shell command runs on the node.").needs(Feature::CommandAction),
        Key::new("publish", Shape::Either(&[CHANNEL, Shape::Map(&PUBLISH)]), "A message goes to a channel.")
            .needs(Feature::PublishAction),
    ],
};

/// `run`.
pub static RUN: Table = Table {
    name: "run",
    noun: "`run`",
    doc: "A run of a job is created.",
    one_of: &[],
    keys: &[
        Key::new("job", Shape::Template, "Which job.").required(),
        Key::new("args", TEMPLATES, "Its args; those not named are taken over."),
    ],
};

record! {
    /// `webhook` as a map.
    pub static WEBHOOK: HttpTarget = "webhook", "`webhook`", "A request is sent.";
    always url = codec::URL => Key::field("url", "Where to.").required();
    value method = codec::METHOD => Key::field("method", "The method.").default("POST");
    value headers = codec::HEADERS => Key::field("headers", "Headers to send.");
    option body = codec::TEMPLATE => Key::field("body", "Body to send.").default("the run's summary as JSON");
}

/// `email`.
pub static EMAIL: Table = Table {
    name: "email",
    noun: "`email`",
    doc: "A mail is sent.",
    one_of: &[],
    keys: &[
        Key::new("to", Shape::Either(&[ADDRESS, Shape::Some(&ADDRESS)]), "Receivers.").required(),
        Key::new("subject", Shape::Template, "Subject.").default("job, number and state"),
        Key::new("body", Shape::Template, "Text.").default("the run's summary and last lines"),
    ],
};

const ADDRESS: Shape = Shape::Pattern { regex: "^[^@\\s]+@[^@\\s]+$", noun: "an address such as `ops@example.org`" };

/// `publish` as a map.
pub static PUBLISH: Table = Table {
    name: "publish",
    noun: "`publish`",
    doc: "A message goes to a channel.",
    one_of: &[],
    keys: &[
        Key::new("channel", CHANNEL, "The channel.").required(),
        Key::new("message", Shape::Template, "The message.").default("the run's summary"),
    ],
};
