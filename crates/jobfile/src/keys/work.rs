//! Keys of programs, conditions and actions: what is run, awaited and done.

use cronhold_core::job::{Feature, HttpProgram, HttpTarget};
use cronhold_core::run::State;

use super::codec::{self, FROM_ONE};
use super::record::{key, record};
use super::{CHANNEL, IDENTIFIER, KeySpec, KeyTable, ValueShape};

const TEMPLATES: ValueShape = ValueShape::Names { regex: IDENTIFIER, value: &ValueShape::Template };
pub(super) const HEADERS: ValueShape =
    ValueShape::Names { regex: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", value: &ValueShape::Template };
pub(super) const URL: ValueShape =
    ValueShape::Pattern { regex: r"^(https?://|\{\{)", noun: "a URL, which begins with `http://` or `https://`" };
const REQUEST: ValueShape = ValueShape::Either(&[URL, ValueShape::Map(&HTTP)]);
const SOME_STATES: ValueShape = ValueShape::Some(&ValueShape::Word(&State::NAMES));
/// Methods of requests.
pub const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
pub(super) const METHOD: ValueShape = ValueShape::Pattern {
    regex: "^([Gg][Ee][Tt]|[Hh][Ee][Aa][Dd]|[Pp][Oo][Ss][Tt]|[Pp][Uu][Tt]|[Pp][Aa][Tt][Cc][Hh]|[Dd][Ee][Ll][Ee][Tt][Ee]|[Oo][Pp][Tt][Ii][Oo][Nn][Ss])$",
    noun: "a method: GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS",
};
pub(super) const STATUS: ValueShape = ValueShape::Either(&[
    ValueShape::Whole { least: 100, most: 599 },
    ValueShape::Pattern { regex: "^([1-5][0-9][0-9](-[1-5][0-9][0-9])?|[1-5]xx)$", noun: "`200`, `200-299` or `2xx`" },
]);

/// A program.
pub static PROGRAM: KeyTable = KeyTable {
    name: "program",
    noun: "a program",
    doc: "What a run executes.",
    one_of: &[&["shell"], &["exec"], &["http"], &["remote"], &["task"], &["noop"], &["plugin"]],
    keys: &[
        KeySpec::new("shell", ValueShape::Text, "A command line for the job's shell."),
        KeySpec::new("exec", ValueShape::Some(&ValueShape::Template), "A program and its arguments, without a shell."),
        KeySpec::new("http", REQUEST, "One HTTP request.").needs(Feature::HttpProgram),
        KeySpec::new("remote", ValueShape::Map(&REMOTE), "A remote task: started, polled and cancelled by HTTP.")
            .needs(Feature::RemoteProgram),
        KeySpec::new(
            "task",
            ValueShape::Either(&[ValueShape::Map(&TASK_QUEUE), ValueShape::Map(&TASK_WRITE)]),
            "A durable task that is queued, or a value for an existing one.",
        )
        .needs(Feature::TaskProgram),
        KeySpec::new(
            "noop",
            ValueShape::Either(&[ValueShape::True, ValueShape::Null, ValueShape::Span, ValueShape::Map(&NOOP)]),
            "Does nothing for the given time.",
        ),
        KeySpec::new("plugin", ValueShape::Map(&PLUGIN), "An executable that implements the plug-in protocol.")
            .needs(Feature::PluginProgram),
    ],
};

record! {
    /// A request.
    pub static HTTP: HttpProgram = "http", "a request", "One HTTP request.";
    always url = codec::URL => key("url", "URL of the request.").required();
    value method = codec::METHOD => key("method", "The method.").default("GET");
    value headers = codec::HEADERS => key("headers", "Headers to send.");
    option body = codec::TEMPLATE => key("body", "Body to send.");
    value expect = codec::STATUSES => key("expect", "Status codes that mean success.").default("2xx");
    value timeout = codec::SOME_SPAN => key("timeout", "Time after which the request fails.").default("1m");
}

/// A remote task.
pub static REMOTE: KeyTable = KeyTable {
    name: "remote",
    noun: "`remote`",
    doc: "A remote task in the shape of Swarming-like services.",
    one_of: &[],
    keys: &[
        KeySpec::new(
            "start",
            REQUEST,
            "Request that starts the task; the JSON of its response is `task` in the following keys.",
        )
        .required(),
        KeySpec::new(
            "poll",
            REQUEST,
            "Request that polls the task; the JSON of its response is `answer` in `success` and `failure`.",
        )
        .required(),
        KeySpec::new("every", ValueShape::Span, "Time between two polls.").default("10s"),
        KeySpec::new("success", ValueShape::Expression, "Whether the response to a poll means success.").required(),
        KeySpec::new("failure", ValueShape::Expression, "Whether the response to a poll means failure.").required(),
        KeySpec::new("cancel", REQUEST, "Request that cancels the task."),
    ],
};

/// A new task.
pub static TASK_QUEUE: KeyTable = KeyTable {
    name: "task_queue",
    noun: "a new task",
    doc: "A new task.",
    one_of: &[],
    keys: &[
        KeySpec::new("queue", ValueShape::Text, "Queue of the worker.").required(),
        KeySpec::new("class", ValueShape::Text, "Class of the worker.").required(),
        KeySpec::new(
            "inports",
            ValueShape::Names { regex: "", value: &ValueShape::Template },
            "Values for its in ports.",
        ),
    ],
};

/// A value for a task.
pub static TASK_WRITE: KeyTable = KeyTable {
    name: "task_write",
    noun: "a value for a task",
    doc: "A value for a port of a task that exists.",
    one_of: &[],
    keys: &[
        KeySpec::new("task", ValueShape::Template, "Id or alias.").required(),
        KeySpec::new("port", ValueShape::Text, "In port.").required(),
        KeySpec::new("value", ValueShape::Template, "What to write.").required(),
    ],
};

/// `noop` as a map.
pub static NOOP: KeyTable = KeyTable {
    name: "noop",
    noun: "`noop`",
    doc: "Does nothing for some time.",
    one_of: &[],
    keys: &[KeySpec::new("duration", ValueShape::Span, "Duration of the run.").default("0s")],
};

/// A plug-in.
pub static PLUGIN: KeyTable = KeyTable {
    name: "plugin",
    noun: "`plugin`",
    doc: "An executable that implements the plug-in protocol.",
    one_of: &[],
    keys: &[
        KeySpec::new("command", ValueShape::Text, "Path or name of the executable.").required(),
        KeySpec::new("settings", TEMPLATES, "Settings for the executable."),
    ],
};

/// A condition.
pub static CONDITION: KeyTable = KeyTable {
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
        KeySpec::new(
            "after",
            ValueShape::Either(&[ValueShape::Text, ValueShape::Map(&AFTER)]),
            "A run of a job in one of some states.",
        ),
        KeySpec::new(
            "max_running",
            ValueShape::Either(&[FROM_ONE, ValueShape::Map(&MAX_RUNNING)]),
            "Fewer runs than this are active.",
        ),
        KeySpec::new(
            "skip_duplicate",
            ValueShape::Either(&[ValueShape::True, ValueShape::Map(&SKIP_DUPLICATE)]),
            "No other run with the same args is active, else this one is skipped.",
        ),
        KeySpec::new("file", ValueShape::Template, "A file exists.").needs(Feature::FileCondition),
        KeySpec::new("http", REQUEST, "A request gets an expected response.").needs(Feature::HttpCondition),
        KeySpec::new("command", ValueShape::Template, "A shell command ends with 0.").needs(Feature::CommandCondition),
        KeySpec::new("window", ValueShape::Map(&WINDOW), "The local time of day is inside a window."),
        KeySpec::new("all", ValueShape::Some(&ValueShape::Map(&CONDITION)), "All of these hold."),
        KeySpec::new("any", ValueShape::Some(&ValueShape::Map(&CONDITION)), "One of these holds."),
        KeySpec::new("not", ValueShape::Map(&CONDITION), "This does not hold."),
        KeySpec::new(
            "timeout",
            ValueShape::Span,
            "Time that a run waits for the condition before it ends with an error.",
        )
        .default("no limit"),
        KeySpec::new("poll", ValueShape::Span, "Time between two checks of the condition.").default("30s"),
    ],
};

/// `after` as a map.
pub static AFTER: KeyTable = KeyTable {
    name: "after",
    noun: "`after`",
    doc: "A run of a job, with these args, in one of these states.",
    one_of: &[],
    keys: &[
        KeySpec::new("job", ValueShape::Template, "Id of the job.").required(),
        KeySpec::new("args", TEMPLATES, "Args of that run; args that are not named are copied from this run."),
        KeySpec::new("states", SOME_STATES, "States that count.").default("[success]"),
        KeySpec::new("within", ValueShape::Span, "Age above which a finished run does not count.").default("any time"),
        KeySpec::new("must_exist", ValueShape::Bool, "Whether it is an error if no such run exists or is expected.")
            .default("false"),
    ],
};

/// `max_running` as a map.
pub static MAX_RUNNING: KeyTable = KeyTable {
    name: "max_running",
    noun: "`max_running`",
    doc: "Fewer runs than this are active.",
    one_of: &[],
    keys: &[
        KeySpec::new("count", FROM_ONE, "The limit.").required(),
        KeySpec::new("same_args", ValueShape::Bool, "Whether only runs with the same args count.").default("false"),
        KeySpec::new("pool", ValueShape::Text, "A pool shared by jobs, instead of this job's own runs.")
            .needs(Feature::Pool),
    ],
};

/// `skip_duplicate` as a map.
pub static SKIP_DUPLICATE: KeyTable = KeyTable {
    name: "skip_duplicate",
    noun: "`skip_duplicate`",
    doc: "No other run with the same args is in one of these states.",
    one_of: &[],
    keys: &[KeySpec::new("states", SOME_STATES, "States that count.").default("[waiting, starting, running, stopping]")],
};

/// `window`.
pub static WINDOW: KeyTable = KeyTable {
    name: "window",
    noun: "`window`",
    doc: "Part of the day, which may span midnight.",
    one_of: &[],
    keys: &[
        KeySpec::new("from", ValueShape::Time, "Start of the window.").required(),
        KeySpec::new("until", ValueShape::Time, "End of the window, exclusive.").required(),
        KeySpec::new("timezone", ValueShape::Text, "IANA zone of both.").also(&["tz"]).default("the node's"),
    ],
};

/// An action.
pub static ACTION: KeyTable = KeyTable {
    name: "action",
    noun: "an action",
    doc: "What happens when a run enters a state.",
    one_of: &[&["run"], &["webhook"], &["email"], &["command"], &["publish"]],
    keys: &[
        KeySpec::new("run", ValueShape::Either(&[ValueShape::Text, ValueShape::Map(&RUN)]), "Creates a run of a job.")
            .needs(Feature::RunAction),
        KeySpec::new("webhook", ValueShape::Either(&[URL, ValueShape::Map(&WEBHOOK)]), "Sends an HTTP request.")
            .needs(Feature::WebhookAction),
        KeySpec::new("email", ValueShape::Map(&EMAIL), "Sends an email.").needs(Feature::EmailAction),
        KeySpec::new("command", ValueShape::Template, "Runs a shell command on the node.")
            .needs(Feature::CommandAction),
        KeySpec::new(
            "publish",
            ValueShape::Either(&[CHANNEL, ValueShape::Map(&PUBLISH)]),
            "Publishes a message to a channel.",
        )
        .needs(Feature::PublishAction),
    ],
};

/// `run`.
pub static RUN: KeyTable = KeyTable {
    name: "run",
    noun: "`run`",
    doc: "Creates a run of a job.",
    one_of: &[],
    keys: &[
        KeySpec::new("job", ValueShape::Template, "Id of the job.").required(),
        KeySpec::new("args", TEMPLATES, "Args of the new run; args that are not named are copied from this run."),
    ],
};

record! {
    /// `webhook` as a map.
    pub static WEBHOOK: HttpTarget = "webhook", "`webhook`", "Sends an HTTP request.";
    always url = codec::URL => key("url", "URL of the request.").required();
    value method = codec::METHOD => key("method", "The method.").default("POST");
    value headers = codec::HEADERS => key("headers", "Headers to send.");
    option body = codec::TEMPLATE => key("body", "Body to send.").default("the run's summary as JSON");
}

/// `email`.
pub static EMAIL: KeyTable = KeyTable {
    name: "email",
    noun: "`email`",
    doc: "Sends an email.",
    one_of: &[],
    keys: &[
        KeySpec::new("to", ValueShape::Either(&[ADDRESS, ValueShape::Some(&ADDRESS)]), "Receivers.").required(),
        KeySpec::new("subject", ValueShape::Template, "Subject.").default("job, number and state"),
        KeySpec::new("body", ValueShape::Template, "Text.").default("the run's summary and last lines"),
    ],
};

const ADDRESS: ValueShape =
    ValueShape::Pattern { regex: "^[^@\\s]+@[^@\\s]+$", noun: "an address such as `ops@example.org`" };

/// `publish` as a map.
pub static PUBLISH: KeyTable = KeyTable {
    name: "publish",
    noun: "`publish`",
    doc: "Publishes a message to a channel.",
    one_of: &[],
    keys: &[
        KeySpec::new("channel", CHANNEL, "The channel.").required(),
        KeySpec::new("message", ValueShape::Template, "The message.").default("the run's summary"),
    ],
};
