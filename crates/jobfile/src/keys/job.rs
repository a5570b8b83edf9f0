//! Keys of a job and of its small policies.

use cronhold_core::Job;
use cronhold_core::job::{
    CatchUpRule, Feature, JobDefaults, OverlapPolicy, Param, QUEUE_LIMIT_DEFAULT, ResourceLimits, Retain, Retry,
    StopPolicy, Trigger,
};

use super::codec::{self, FROM_ONE};
use super::record::{key, record};
use super::variant::variant;
use super::{IDENTIFIER, KeySpec, KeyTable, ValueShape};

record! {
    /// A job.
    pub static JOB: Job = "job", "a job",
        "A job: what to run, when, and under which conditions. Its id is the file's path below the jobs directory.";
    value description = codec::TEXT => key("description", "Description in Markdown.");
    value labels = codec::LABELS => key("labels", "Labels to find jobs by.");
    // Params come first, because templates in the other keys use their names.
    value params = codec::PARAMS => key(
        "params",
        "Parameters of the job's runs. A list of names makes all of them required.",
    );
    value schedules = codec::SCHEDULES => key(
        "schedule",
        "When runs start automatically: one schedule or a list of them.",
    );
    always program = codec::PROGRAM_VALUE => key(
        "program",
        "What a run executes: a text for the shell, a list of program and arguments, or a map.",
    )
    .required();
    value conditions = codec::CONDITIONS => key(
        "conditions",
        "Conditions that must hold before a run starts, checked in order.",
    );
    value lock = codec::LOCK => key(
        "lock",
        "Lock that a run holds: `true` for the job's own lock, or the name of a lock that jobs share.",
    )
    .default("false");
    value ttl = codec::SOME_SPAN => key(
        "ttl",
        "Time after which the lock of a lost node expires; a number is seconds.",
    )
    .default("10s");
    option lease = codec::SOME_SPAN => key(
        "lease",
        "Without `lock`: how long a program that must not overlap with another continues while its node or the store \
         is unreachable. Only on a store that nodes share; with `lock`, `ttl` applies.",
    )
    .default("10m, or the store URL's");
    value overlap = codec::OVERLAP => key("overlap", "What happens when a run is due while another one is active.")
        .default("skip");
    value catch_up = codec::CATCH_UP => key("catch_up", "What happens to occurrences that were missed.")
        .default("last within 1h");
    value retry = codec::RETRY => key(
        "retry",
        "Whether and when a failed run is retried; a number is the total of attempts.",
    )
    .default("no retry");
    option timeout = codec::SOME_SPAN => key("timeout", "Time after which a run is stopped.").default("none");
    option late = codec::SOME_SPAN => key(
        "late",
        "Time after its nominal time, or after its creation if that is later, at which a run that has not finished is late: \
         the event `late` happens.",
    )
    .default("never");
    value stop = codec::STOP => key("stop", "How a run is stopped: a signal, a grace period, then SIGKILL.");
    value env = codec::ENV => key(
        "env",
        "Environment variables of the program; a map as value names the source of a secret.",
    );
    option cwd = codec::TEMPLATE_TEXT => key("cwd", "Working directory of the program.");
    option shell = codec::TEXT => key("shell", "Shell for shell programs.").default("/bin/bash, else /bin/sh");
    option user = codec::TEXT => key("user", "User the program runs as.");
    option umask = codec::UMASK => key("umask", "File mode mask of the program, in octal: `\"022\"` or `0o22`.");
    option stdin = codec::STDIN => key(
        "stdin",
        "What the program reads from its standard input: a text, or `{file: PATH}` for a file on the node.",
    )
    .default("nothing");
    value stderr = codec::STDERR => key(
        "stderr",
        "`separate` if standard error is to be told apart from standard output (`cronhold logs --stderr`). Then the two have a pipe each, and writes to different streams shortly after each other may change places in the output.",
    )
    .default("mixed, in the order of the writes");
    option nice = codec::NICE => key(
        "nice",
        "Niceness of the program; 19 is the least urgent. Only a keeper that runs as root can set one below its own.",
    )
    .default("as for the daemon");
    option ionice = codec::IO_PRIORITY => key(
        "ionice",
        "How urgently the disk serves the program: `idle`, or a level of best effort, of which 7 is the least urgent.",
    )
    .default("as for the daemon");
    option limits = codec::LIMITS => key("limits", "Resource limits of the program and its descendants.")
        .default("no limits");
    value nodes = codec::NODES => key(
        "nodes",
        "Labels that a node must have to run the job, or `each` for a run on every node.",
    )
    .default("any node");
    value success_codes = codec::SUCCESS_CODES => key("success_codes", "Exit codes that mean success.").default("[0]");
    value on = codec::ACTIONS => key(
        "on",
        "Actions by the state that a run enters, or by `finished` for any final state, `late` and `missed`.",
    );
    value triggers = codec::TRIGGERS => key("triggers", "Channels whose messages start runs.")
        .needs(Feature::Triggers);
    option batching = codec::BATCHING => key(
        "batching",
        "How triggers (`cronhold trigger`, the API, actions, events and messages) become runs. `overlap` limits how many of these \
         runs there are at the same time.",
    )
    .default("that of `triggers`; without them, each trigger creates a run at once");
    value retain = codec::RETAIN => key(
        "retain",
        "How many finished runs are kept, and how long their output is kept.",
    );
    value on_lost = codec::ON_LOST => key(
        "on_lost",
        "What happens to a run whose node is lost while the run is starting.",
    )
    .default("error");
    value enabled = codec::BOOL => key(
        "enabled",
        "Whether the schedules of the job are in effect. Runs that a person or an action starts are not affected.",
    )
    .default("true");
    value paused = codec::BOOL => key("paused", "Whether the job is paused when it is created.").default("false");
}

record! {
    /// A parameter.
    pub static PARAM: Param = "param", "a param", "One parameter of a job. Arguments are always texts.";
    option default = codec::ANY_TEXT => key(
        "default",
        "Value that is used if none is given; a param without a default is required.",
    );
    value choices = codec::CHOICES => key("choices", "The only values allowed.");
    value kind = codec::PARAM_TYPE => key(
        "type",
        "Type of the values: any text, a whole number without leading zeros, a date such as `2026-03-29`, or `true` or \
         `false`.",
    )
    .default("string");
    option pattern = codec::ARG_PATTERN => key("pattern", "Regular expression that a whole value has to match.");
    value description = codec::TEXT => key("description", "Description of the param.");
}

/// `overlap` as a map.
pub static OVERLAP: KeyTable = KeyTable {
    name: "overlap",
    noun: "`overlap`",
    doc: "A queue with a length of its own.",
    one_of: &[&["queue"]],
    keys: &[KeySpec::new("queue", ValueShape::Map(&QUEUE), "The new run waits for the old one.")],
};

variant! {
    /// `overlap.queue`.
    pub static QUEUE: OverlapPolicy::Queue = "queue", "`queue`", "How long the queue may become.";
    const QUEUE_MAP: OverlapPolicy;
    value limit = codec::QUEUE_LIMIT, QUEUE_LIMIT_DEFAULT => key(
        "limit",
        "How many runs may wait, at most 1,000; further runs are skipped.",
    )
    .default("100");
}

record! {
    /// `catch_up` as a map.
    pub static CATCH_UP: CatchUpRule = "catch_up", "`catch_up`",
        "Which missed occurrences run later, and how old they may be.";
    always policy = codec::CATCH_UP_POLICY => key("policy", "Which missed occurrences run.").default("last");
    always within = codec::SOME_SPAN => key("within", "Age above which a missed occurrence is not run.").default("1h");
}

record! {
    /// `retry`.
    pub static RETRY: Retry = "retry", "`retry`", "Whether and when an unsuccessful run is retried.";
    always attempts = codec::POSITIVE => key("attempts", "Total of attempts, including the first.").default("1");
    value backoff = codec::SPAN => key(
        "backoff",
        "Wait before the second attempt. Every wait is longer by up to a quarter, which differs from run to run.",
    )
    .default("10s");
    value factor = codec::FACTOR => key("factor", "Factor by which the wait grows with each attempt.").default("2");
    value most = codec::SPAN => key("most", "The longest wait.").default("10m");
    value on = codec::RETRY_ON => key("on", "Outcomes that are retried.").default("[failure]");
}

record! {
    /// `stop` of a job.
    pub static STOP: StopPolicy = "stop", "`stop`", "How a run is stopped.";
    value signal = codec::SIGNAL => key("signal", "The first signal, such as SIGINT.").default("SIGTERM");
    value grace = codec::SPAN => key("grace", "Time between the signal and SIGKILL to the whole group.").default("1m");
}

record! {
    /// `defaults.yaml`.
    pub static DEFAULTS: JobDefaults = "defaults", "the defaults",
        "What all jobs of a directory have in common: the file `defaults.yaml` at its top. The setting `defaults` of a daemon names such a file for all of its jobs.";
    value on = codec::ACTIONS => key(
        "on",
        "Actions that every job has in addition to its own. A job with an empty list for an event has none of them.",
    );
}

/// The keys that name the source of a secret.
const SECRET_FILE: KeySpec = KeySpec::new("file", ValueShape::Text, "A file on the node; its content is the value.");
const SECRET_VARIABLE: KeySpec = KeySpec::new(
    "env",
    ValueShape::Pattern { regex: IDENTIFIER, noun: "the name of a variable" },
    "A variable of the daemon's own environment.",
);

/// A header of a request that is not in the file.
pub static HEADER_SOURCE: KeyTable = KeyTable {
    name: "header_source",
    noun: "a header's source",
    doc: "Source of a secret header. The node reads it when the request is sent, and neither stores nor shows it.",
    one_of: &[&["file"], &["env"]],
    keys: &[
        SECRET_FILE,
        SECRET_VARIABLE,
        KeySpec::new("prefix", ValueShape::Text, "Text before the secret, such as `Bearer `."),
    ],
};

/// A value of `env` that is not in the file.
pub static ENV_SOURCE: KeyTable = KeyTable {
    name: "env_source",
    noun: "a variable's source",
    doc: "Source of a secret. The node reads it when it is needed, and neither stores nor shows it. Output of the program shows asterisks instead.",
    one_of: &[&["file"], &["env"]],
    keys: &[SECRET_FILE, SECRET_VARIABLE],
};

/// `stdin` as a map.
pub static STDIN_FILE: KeyTable = KeyTable {
    name: "stdin_file",
    noun: "`stdin`",
    doc: "A file that the program reads as its standard input.",
    one_of: &[],
    keys: &[KeySpec::new(
        "file",
        ValueShape::Template,
        "Path on the node. The program's user opens it in the program's working directory; it must be a regular file.",
    )
    .required()],
};

record! {
    /// `limits`.
    pub static LIMITS: ResourceLimits = "limits", "`limits`",
        "Resource limits. Memory, processors and processes are counted for the program and its descendants together.";
    option memory = codec::MEMORY => key("memory", "Memory; a program that needs more is killed.").default("no limit");
    option cpu = codec::PROCESSORS => key("cpu", "Processors, such as `0.5` or `2`.").default("no limit");
    option pids = codec::POSITIVE_WIDE => key("pids", "Processes and threads.").default("no limit");
    option files = codec::POSITIVE_WIDE => key("files", "Open files of each process.").default("as for the daemon");
    option cpu_time = codec::PROCESSOR_TIME => key("cpu_time", "Processor time of each process, from 1s on.")
        .default("as for the daemon");
    option core = codec::SIZE => key("core", "Size of a core dump; 0 for none.").default("as for the daemon");
}

/// `nodes` as a map.
pub static EACH: KeyTable = KeyTable {
    name: "each",
    noun: "`nodes`",
    doc: "A run on every node that has all labels.",
    one_of: &[],
    keys: &[KeySpec::new("each", ValueShape::List(&ValueShape::Text), "Labels that the nodes must have.").required()],
};

record! {
    /// A trigger.
    pub static TRIGGER: Trigger = "trigger", "a trigger", "Messages that start runs.";
    always channel = codec::CHANNEL => key("channel", "Channel to subscribe to, including its children.").required();
    value args = codec::TRIGGER_ARGS => key("args", "Args of the runs; `message` and `channel` can be used in them.");
    value batching = codec::BATCHING => key(
        "batching",
        "How messages become runs. A job has one policy: it is written here or as `batching` of the job.",
    )
    .default("greedy");
}

/// `batching` as a map.
pub static BATCHING: KeyTable = KeyTable {
    name: "batching",
    noun: "`batching`",
    doc: "How pending triggers are turned into runs. Messages of channels are triggers, too.",
    one_of: &[],
    keys: &[
        KeySpec::new(
            "policy",
            ValueShape::Word(&["greedy", "logarithmic", "newest"]),
            "`greedy`: the oldest together; `logarithmic`: batches that grow with the logarithm of the backlog; \
             `newest`: the newest first, one a run.",
        )
        .default("greedy"),
        KeySpec::new(
            "concurrent",
            FROM_ONE,
            "Maximum number of runs that have not ended; more than 1 needs `overlap: allow` and no `lock`.",
        )
        .default("1"),
        KeySpec::new("most", FROM_ONE, "Triggers of one run at most; not with `newest`.").default("1000"),
        KeySpec::new(
            "base",
            ValueShape::Number { least: 1.0001 },
            "Base of the logarithm; only with `logarithmic`, and needed there.",
        ),
        KeySpec::new("timeout", ValueShape::Span, "Age at which a trigger is dropped; only with `newest`.")
            .default("7d"),
    ],
};

record! {
    /// `retain`.
    pub static RETAIN: Retain = "retain", "`retain`",
        "How many finished runs of each outcome are kept, and how long their output is kept.";
    value success = codec::COUNT => key("success", "Successful runs.").default("1000");
    value failure = codec::COUNT => key("failure", "Failed runs.").default("1000");
    value error = codec::COUNT => key("error", "Runs that ended in error.").default("1000");
    value skipped = codec::COUNT => key("skipped", "Skipped runs.").default("200");
    value output = codec::SPAN => key("output", "How long the output of a run is kept after the run ended. That of a failed run is kept as long as the run. Outputs are deleted earlier, the oldest first, if all of them together exceed the total size of the node.").default("14d");
}
