//! Keys of programs, conditions and actions: what is run, awaited and done.

use cronhold_core::job::{
    Action, ActionFilter, ActionRule, Condition, Feature, HttpProgram, HttpTarget, PluginCall, Probe, Program,
    RemoteProgram, Requirement, TaskProgram, TimeoutOutcome,
};
use cronhold_core::run::State;

use super::codec;
use super::record::{key, record};
use super::variant::{variant, variants};
use super::{CHANNEL, KeySpec, KeyTable, ValueShape};

variants! {
    /// A program.
    pub static PROGRAM: Program = "program", "a program", "What a run executes.";
    static PROGRAM_MAP;
    Shell(command) = codec::COMMAND_LINE => key("shell", "A command line for the job's shell.");
    Exec(words) = codec::EXEC => key("exec", "A program and its arguments, without a shell.");
    Http(request) = codec::REQUEST => key("http", "One HTTP request.").needs(Feature::HttpProgram);
    Remote(remote) = REMOTE_MAP => key("remote", "A remote task: started, polled and cancelled by HTTP.")
        .needs(Feature::RemoteProgram);
    Task(task) = codec::TASK => key("task", "A durable task that is queued, or a value for an existing one.")
        .needs(Feature::TaskProgram);
    Noop {..} = codec::NOOP => key("noop", "Does nothing for the given time.");
    Plugin(plugin) = PLUGIN_MAP => key("plugin", "An executable that implements the plug-in protocol.")
        .needs(Feature::PluginProgram);
}

record! {
    /// A request.
    pub static HTTP: HttpProgram = "http", "a request", "One HTTP request.";
    always url = codec::URL => key("url", "URL of the request.").required();
    value method = codec::METHOD => key("method", "The method.").default("GET");
    value headers = codec::HEADER_VALUES => key("headers", "Headers to send.");
    option body = codec::TEMPLATE => key("body", "Body to send.");
    option body_file = codec::TEMPLATE_TEXT => key(
        "body_file",
        "Path of a file on the node whose content is sent as the body, instead of `body`.",
    );
    value expect = codec::STATUSES => key("expect", "Status codes that mean success.").default("2xx");
    option body_matches = codec::BODY_PATTERN => key(
        "body_matches",
        "Regular expression that the body of the response must match somewhere.",
    );
    value redirects = codec::REDIRECTS => key("redirects", "Number of redirects that are followed; 0 follows none.")
        .default("10");
    value timeout = codec::SOME_SPAN => key(
        "timeout",
        "Time for the whole request, with redirects and the body of the response.",
    )
    .default("1m");
    option ca_file = codec::TEXT => key(
        "ca_file",
        "File with the certificates (PEM) of the authorities that are trusted, instead of those of the system.",
    );
    value insecure = codec::BOOL => key("insecure", "Whether the certificate of the server is not verified.")
        .default("false");
}

variant! {
    /// A remote task.
    pub static REMOTE: RemoteProgram = "remote", "`remote`", "A remote task in the shape of Swarming-like services.";
    const REMOTE_MAP: RemoteProgram;
    required start = codec::REQUEST => key(
        "start",
        "Request that starts the task; the JSON of its response is `task` in the following keys.",
    );
    required poll = codec::REMOTE_REQUEST => key(
        "poll",
        "Request that polls the task; the JSON of its response is `answer` in `success` and `failure`.",
    );
    value every = codec::SOME_SPAN, RemoteProgram::EVERY_DEFAULT => key("every", "Time between two polls.")
        .default("10s");
    required success = codec::VERDICT => key("success", "Whether the response to a poll means success.");
    required failure = codec::VERDICT => key("failure", "Whether the response to a poll means failure.");
    option cancel = codec::REMOTE_REQUEST => key("cancel", "Request that cancels the task.");
}

variant! {
    /// A new task.
    pub static TASK_QUEUE: TaskProgram::Queue = "task_queue", "a new task", "A new task.";
    const TASK_QUEUE_MAP: TaskProgram;
    required queue = codec::TEXT => key("queue", "Queue of the worker.");
    required class = codec::TEXT => key("class", "Class of the worker.");
    value args = codec::TASK_ARGS => key("args", "Its args in order. A value that is JSON is that value.");
    value inports = codec::INPORTS => key("in", "Values for its in ports.");
    option alias = codec::TEMPLATE => key("alias", "A name of the task that no other task has.");
    value wait = codec::BOOL => key(
        "wait",
        "Whether the run ends with the task: as a success when it is completed, as a failure when it has failed or was \
         terminated. A stop of the run terminates the task.",
    )
    .default("false");
}

variant! {
    /// A value for a task.
    pub static TASK_WRITE: TaskProgram::Write = "task_write", "a value for a task",
        "A value for a port of a task that exists.";
    const TASK_WRITE_MAP: TaskProgram;
    required to = codec::TEMPLATE => key("to", "Id or alias of the task.");
    required port = codec::TEXT => key("port", "In port.");
    required data = codec::TEMPLATE => key("data", "What to write. A value that is JSON is that value.");
}

/// `task` with a value for a task.
pub static TASK_FEED: KeyTable = KeyTable {
    name: "task_feed",
    noun: "`task`",
    doc: "A value for a task that exists.",
    one_of: &[],
    keys: &[KeySpec::new("write", ValueShape::Map(&TASK_WRITE), "The value and the port that gets it.").required()],
};

variant! {
    /// `noop` as a map.
    pub static NOOP: Program::Noop = "noop", "`noop`", "Does nothing for some time.";
    const NOOP_MAP: Program, or ValueShape::Span;
    always duration = codec::SPAN => key("duration", "Duration of the run.").default("0s");
}

variant! {
    /// A plug-in.
    pub static PLUGIN: PluginCall = "plugin", "`plugin`", "An executable that implements the plug-in protocol.";
    const PLUGIN_MAP: PluginCall;
    required command = codec::TEXT => key("command", "Path or name of the executable.");
    always settings = codec::SETTINGS => key("settings", "Settings for the executable.");
}

variants! {
    /// A condition.
    pub static CONDITION: Condition { requires: Requirement } = "condition", "a condition",
        "What must hold before a run starts.";
    static CONDITION_MAP;
    After {..} = AFTER_MAP => key("after", "A run of a job in one of some states.");
    MaxRunning {..} = codec::MAX_RUNNING => key("max_running", "Fewer runs than this are active.");
    SkipDuplicate {..} = codec::SKIP_DUPLICATE => key(
        "skip_duplicate",
        "No other run with the same args is active, else this one is skipped.",
    );
    Probe(Probe::File(path)) = codec::TEMPLATE_TEXT => key("file", "A file exists.").needs(Feature::FileCondition);
    Probe(Probe::Http(request)) = codec::REQUEST => key("http", "A request gets an expected response.")
        .needs(Feature::HttpCondition);
    Probe(Probe::Command(command)) = codec::TEMPLATE_TEXT => key("command", "A shell command ends with 0.")
        .needs(Feature::CommandCondition);
    Probe(Probe::Plugin(plugin)) = PLUGIN_MAP => key("plugin", "A plug-in reports that it holds.")
        .needs(Feature::PluginCondition);
    Window {..} = codec::WINDOW => key("window", "The local time of day is inside a window.");
    All(conditions) = codec::CONDITION_GROUP => key("all", "All of these hold.");
    Any(conditions) = codec::CONDITION_GROUP => key("any", "One of these holds.");
    Not(condition) = CONDITION_MAP => key("not", "This does not hold.");
    {
        option timeout = codec::SOME_SPAN => key(
            "timeout",
            "Time that a run waits, for whatever reason, before the condition must hold.",
        )
        .default("no limit");
        value poll = codec::SOME_SPAN, Condition::POLL_DEFAULT => key(
            "poll",
            "Time between two checks of the condition.",
        )
        .default("30s");
        value on_timeout = codec::ON_TIMEOUT, TimeoutOutcome::Error => key(
            "on_timeout",
            "What happens to the run after the timeout: it ends with an error, or it is skipped.",
        )
        .default("error");
    }
}

variant! {
    /// `after` as a map.
    pub static AFTER: Requirement::After = "after", "`after`",
        "A run of a job, with these args, in one of these states.";
    const AFTER_MAP: Requirement, or ValueShape::Text;
    required job = codec::JOB_ID => key("job", "Id of the job.");
    value args = codec::ARG_TEMPLATES => key(
        "args",
        "Args of that run; args that are not named are copied from this run.",
    );
    value states = codec::STATES, vec![State::Success] => key("states", "States that count.").default("[success]");
    option within = codec::SOME_SPAN => key("within", "Age above which a finished run does not count.")
        .default("any time");
    value must_exist = codec::BOOL => key("must_exist", "Whether it is an error if no such run exists or is expected.")
        .default("false");
}

variant! {
    /// `max_running` as a map.
    pub static MAX_RUNNING: Requirement::MaxRunning = "max_running", "`max_running`",
        "Fewer runs than this are active.";
    const MAX_RUNNING_MAP: Requirement, or codec::FROM_ONE;
    required count = codec::POSITIVE => key("count", "The limit.");
    value same_args = codec::BOOL => key("same_args", "Whether only runs with the same args count.").default("false");
    option pool = codec::POOL => key(
        "pool",
        "Name of a pool: the active runs of all jobs that name it count, instead of this job's own.",
    )
    .needs(Feature::Pool);
}

variant! {
    /// `skip_duplicate` as a map.
    pub static SKIP_DUPLICATE: Requirement::SkipDuplicate = "skip_duplicate", "`skip_duplicate`",
        "No other run with the same args is in one of these states.";
    const SKIP_DUPLICATE_MAP: Requirement;
    value states = codec::STATES, Requirement::DUPLICATE_STATES_DEFAULT.to_vec() => key("states", "States that count.")
        .default("[waiting, starting, running, stopping]");
}

variant! {
    /// `window`.
    pub static WINDOW: Requirement::Window = "window", "`window`", "Part of the day, which may span midnight.";
    const WINDOW_MAP: Requirement;
    required from = codec::TIME => key("from", "Start of the window.");
    required until = codec::TIME => key("until", "End of the window, exclusive.");
    option zone = codec::ZONE => key("timezone", "IANA zone of both.").also(&["tz"]).default("the node's");
    option calendar = codec::CALENDAR => key("calendar", "Days on which the window begins, as in a schedule.")
        .default("every day");
}

variants! {
    /// An action.
    pub static ACTION: ActionRule { action: Action } = "action", "an action", "What happens at an event of a run.";
    static ACTION_MAP;
    Run {..} = RUN_MAP => key("run", "Creates a run of a job.").needs(Feature::RunAction);
    Webhook(target) = codec::WEBHOOK => key("webhook", "Sends an HTTP request.").needs(Feature::WebhookAction);
    Email {..} = EMAIL_MAP => key("email", "Sends an email.").needs(Feature::EmailAction);
    Command(command) = codec::TEMPLATE_TEXT => key("command", "Runs a shell command on a node, with the settings of the job's program.")
        .needs(Feature::CommandAction);
    Publish {..} = PUBLISH_MAP => key("publish", "Publishes a message to a channel.").needs(Feature::PublishAction);
    {
        option when = codec::ACTION_FILTER => key(
            "when",
            "Which runs have the action: those that fit everything in this map.",
        )
        .default("all");
    }
}

record! {
    /// `when` of an action.
    pub static ACTION_FILTER: ActionFilter = "action_filter", "`when`",
        "Which runs have an action: those that fit everything in this map.";
    option outcome = codec::OUTCOME_CHANGE => key(
        "outcome",
        "How the outcome follows the one before it: `changed`, or `recovered` for a success after a failure or an error. \
         Only for `success`, `failure`, `error` and `finished`.",
    );
    option in_a_row = codec::POSITIVE => key(
        "in_a_row",
        "The outcome is this one in a row, such as the third failure since the last success. With `outcome: recovered`, \
         at least so many failures and errors went before.",
    );
    value args = codec::ARG_VALUES => key("args", "Values of args: one value, or a list of which any fits.");
    value labels = codec::LABELS => key("labels", "Labels that the job has, all of them.");
}

variant! {
    /// `run`.
    pub static RUN: Action::Run = "run", "`run`", "Creates a run of a job.";
    const RUN_MAP: Action, or ValueShape::Text;
    required job = codec::JOB_ID => key("job", "Id of the job.");
    value args = codec::ARG_TEMPLATES => key(
        "args",
        "Args of the new run; args that are not named are copied from this run.",
    );
}

record! {
    /// `webhook` as a map.
    pub static WEBHOOK: HttpTarget = "webhook", "`webhook`", "Sends an HTTP request.";
    always url = codec::URL => key("url", "URL of the request.").required();
    value method = codec::METHOD => key("method", "The method.").default("POST");
    value headers = codec::HEADERS => key("headers", "Headers to send.");
    option body = codec::TEMPLATE => key("body", "Body to send.").default("the run's summary as JSON");
    option secret = codec::SECRET => key(
        "secret",
        "Key of the signature in the header `X-Cronhold-Signature`: `sha256=` and the HMAC-SHA256 of the body in hex.",
    )
    .default("not signed");
}

variant! {
    /// `email`.
    pub static EMAIL: Action::Email = "email", "`email`", "Sends an email.";
    const EMAIL_MAP: Action;
    required to = codec::ADDRESSES => key("to", "Receivers.");
    option subject = codec::TEMPLATE => key("subject", "Subject.").default("job, number and state");
    option body = codec::TEMPLATE => key("body", "Text.").default("the run's summary and last lines");
}

variant! {
    /// `publish` as a map.
    pub static PUBLISH: Action::Publish = "publish", "`publish`", "Publishes a message to a channel.";
    const PUBLISH_MAP: Action, or CHANNEL;
    required channel = codec::CHANNEL_TEMPLATE => key("channel", "The channel.");
    option message = codec::TEMPLATE => key("message", "The message.").default("the run's summary");
}
