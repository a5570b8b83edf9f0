//! Keys of a job and of its small policies.

use cronhold_core::Job;
use cronhold_core::job::{CatchUp, Feature, Limits, Param, Retain, Retry, StopPolicy, Trigger};

use super::codec::{self, FROM_ONE};
use super::record::record;
use super::{IDENTIFIER, Key, Shape, Table};

record! {
    /// A job.
    pub static JOB: Job = "job", "a job",
        "A job: what to run, when, and under which conditions. Its id is the file's path below the jobs directory.";
    value description = codec::TEXT => Key::field("description", "Markdown for people.");
    value labels = codec::LABELS => Key::field("labels", "Words to find the job by.");
    // Params come before everything that may hold templates, which use their names.
    value params = codec::PARAMS => Key::field(
        "params",
        "What runs of the job are told apart by; a list of names makes all of them required.",
    );
    value schedules = codec::SCHEDULES => Key::field(
        "schedule",
        "When the job runs by itself: one schedule or a list of them.",
    );
    always program = codec::PROGRAM_VALUE => Key::field(
        "program",
        "What a run executes: a text for the shell, a list of program and arguments, or a map.",
    )
    .required();
    value conditions = codec::CONDITIONS => Key::field(
        "conditions",
        "What must hold before a run starts, in order.",
    );
    value lock = codec::LOCK => Key::field(
        "lock",
        "What the job holds alone while it runs: `true` for a lock of its own, or a name that jobs share.",
    )
    .default("false");
    value ttl = codec::SOME_SPAN => Key::field(
        "ttl",
        "How long the lock outlives a holder that is gone; a number is seconds.",
    )
    .default("10s");
    value overlap = codec::OVERLAP => Key::field(
        "overlap",
        "What happens when a run is due while another one is active.",
    )
    .default("skip");
    value catch_up = codec::CATCH_UP => Key::field("catch_up", "What happens to occurrences that were missed.")
        .default("last within 1h");
    value retry = codec::RETRY => Key::field(
        "retry",
        "Whether and when a failed run is tried again; a number is the attempts in all.",
    )
    .default("no retry");
    option timeout = codec::SOME_SPAN => Key::field("timeout", "After which a run is stopped.").default("none");
    value stop = codec::STOP => Key::field("stop", "How a run is stopped: a signal, a grace period, then SIGKILL.");
    value env = codec::ENV => Key::field(
        "env",
        "Environment of the program; a map names where a secret comes from.",
    );
    option cwd = codec::TEMPLATE_TEXT => Key::field("cwd", "Directory the program starts in.");
    option shell = codec::TEXT => Key::field("shell", "Shell for shell programs.").default("/bin/bash, else /bin/sh");
    option user = codec::TEXT => Key::field("user", "User the program runs as.");
    option umask = codec::UMASK => Key::field(
        "umask",
        "File mode mask of the program, in octal: `\"022\"` or `0o22`.",
    );
    option limits = codec::LIMITS => Key::field("limits", "What the program and all that descends from it may use.")
        .default("no limits");
    value nodes = codec::NODES => Key::field(
        "nodes",
        "Labels that a node must have to run the job, or `each` for a run on every node.",
    )
    .default("any node");
    value success_codes = codec::SUCCESS_CODES => Key::field("success_codes", "Exit codes that mean success.")
        .default("[0]");
    value on = codec::ACTIONS => Key::field(
        "on",
        "Actions by the state that a run enters, or `finished` for any of its last states.",
    );
    value triggers = codec::TRIGGERS => Key::field("triggers", "Channels whose messages start runs.")
        .needs(Feature::Triggers);
    value retain = codec::RETAIN => Key::field(
        "retain",
        "How many finished runs are kept, and how long their output.",
    );
    value on_lost = codec::ON_LOST => Key::field(
        "on_lost",
        "What becomes of a run whose node was lost as it started.",
    )
    .default("error");
    value paused = codec::BOOL => Key::field("paused", "Whether the job is paused from the beginning.")
        .default("false");
}

record! {
    /// A parameter.
    pub static PARAM: Param = "param", "a param", "One parameter of a job. Arguments are always texts.";
    option default = codec::ANY_TEXT => Key::field(
        "default",
        "Used when nobody gives a value; without it the param is required.",
    );
    value choices = codec::CHOICES => Key::field("choices", "The only values allowed.");
    value description = codec::TEXT => Key::field("description", "For people.");
}

/// `overlap` as a map.
pub static OVERLAP: Table = Table {
    name: "overlap",
    noun: "`overlap`",
    doc: "A queue with a length of its own.",
    one_of: &[&["queue"]],
    keys: &[Key::new("queue", Shape::Map(&QUEUE), "The new run waits for the old one.")],
};

/// `overlap.queue`.
pub static QUEUE: Table = Table {
    name: "queue",
    noun: "`queue`",
    doc: "How long the queue may become.",
    one_of: &[],
    keys: &[Key::new("limit", FROM_ONE, "How many runs may wait; more are skipped.").default("100")],
};

record! {
    /// `catch_up` as a map.
    pub static CATCH_UP: CatchUp = "catch_up", "`catch_up`",
        "Which missed occurrences run afterwards, and how old they may be.";
    always policy = codec::CATCH_UP_POLICY => Key::field("policy", "Which of them run.").default("last");
    always within = codec::SOME_SPAN => Key::field("within", "How old they may be.").default("1h");
}

record! {
    /// `retry`.
    pub static RETRY: Retry = "retry", "`retry`", "Whether and when a run that did not succeed is tried again.";
    always attempts = codec::POSITIVE => Key::field("attempts", "Attempts in all, the first included.").default("1");
    value backoff = codec::SPAN => Key::field("backoff", "Wait before the second attempt.").default("10s");
    value factor = codec::FACTOR => Key::field("factor", "What the wait is multiplied with each time.").default("2");
    value most = codec::SPAN => Key::field("most", "The longest wait.").default("10m");
    value on = codec::RETRY_ON => Key::field("on", "Which outcomes are tried again.").default("[failure]");
}

record! {
    /// `stop` of a job.
    pub static STOP: StopPolicy = "stop", "`stop`", "How a run is stopped.";
    value signal = codec::SIGNAL => Key::field("signal", "The first signal, such as SIGINT.").default("SIGTERM");
    value grace = codec::SPAN => Key::field("grace", "Time between the signal and SIGKILL to the whole group.")
        .default("1m");
}

/// A value of `env` that is not in the file.
pub static ENV_SOURCE: Table = Table {
    name: "env_source",
    noun: "a variable's source",
    doc: "Where a secret comes from. It is read when a run starts, and not stored or shown. Outputs are not masked.",
    one_of: &[&["file"], &["env"]],
    keys: &[
        Key::new("file", Shape::Text, "A file on the node; its content is the value."),
        Key::new(
            "env",
            Shape::Pattern { regex: IDENTIFIER, noun: "the name of a variable" },
            "A variable of the daemon's own environment.",
        ),
    ],
};

record! {
    /// `limits`.
    pub static LIMITS: Limits = "limits", "`limits`",
        "What a program may use. Memory, processors and processes are counted together with all that descends from it.";
    option memory = codec::MEMORY => Key::field("memory", "Memory; whoever needs more is killed.").default("no limit");
    option cpu = codec::PROCESSORS => Key::field("cpu", "Processors, such as `0.5` or `2`.").default("no limit");
    option pids = codec::POSITIVE_WIDE => Key::field("pids", "Processes and threads.").default("no limit");
    option files = codec::POSITIVE_WIDE => Key::field("files", "Open files of each process.")
        .default("as the daemon");
    option cpu_time = codec::PROCESSOR_TIME => Key::field("cpu_time", "Processor time of each process, from 1s on.")
        .default("as the daemon");
    option core = codec::SIZE => Key::field("core", "Size of a core dump; 0 for none.").default("as the daemon");
}

/// `nodes` as a map.
pub static EACH: Table = Table {
    name: "each",
    noun: "`nodes`",
    doc: "A run on every node that has all labels.",
    one_of: &[],
    keys: &[Key::new("each", Shape::List(&Shape::Text), "Labels that the nodes must have.").required()],
};

record! {
    /// A trigger.
    pub static TRIGGER: Trigger = "trigger", "a trigger", "Messages that start runs.";
    always channel = codec::CHANNEL => Key::field("channel", "Channel listened to, its children included.").required();
    value args = codec::TRIGGER_ARGS => Key::field(
        "args",
        "Args of the runs; `message` and `channel` can be used in them.",
    );
    value batching = codec::BATCHING => Key::field("batching", "How messages become runs.").default("greedy");
}

/// `batching` as a map.
pub static BATCHING: Table = Table {
    name: "batching",
    noun: "`batching`",
    doc: "How pending messages are turned into runs.",
    one_of: &[],
    keys: &[
        Key::new(
            "policy",
            Shape::Word(&["greedy", "logarithmic", "newest"]),
            "`greedy`: the oldest together; `logarithmic`: batches that grow with the logarithm of the backlog; \
             `newest`: the newest first, one a run.",
        )
        .default("greedy"),
        Key::new("concurrent", FROM_ONE, "Runs at once.").default("1"),
        Key::new("most", FROM_ONE, "Messages in one run at most; not with `newest`.").default("1000"),
        Key::new(
            "base",
            Shape::Number { least: 1.0001 },
            "Base of the logarithm; only with `logarithmic`, and needed there.",
        ),
        Key::new("timeout", Shape::Span, "Age from which a message is dropped; only with `newest`.").default("7d"),
    ],
};

record! {
    /// `retain`.
    pub static RETAIN: Retain = "retain", "`retain`",
        "How many finished runs are kept, each outcome apart, and for how long the output.";
    value success = codec::COUNT => Key::field("success", "Successful runs.").default("1000");
    value failure = codec::COUNT => Key::field("failure", "Failed runs.").default("1000");
    value error = codec::COUNT => Key::field("error", "Runs that ended in error.").default("1000");
    value skipped = codec::COUNT => Key::field("skipped", "Skipped runs.").default("200");
    value output = codec::SPAN => Key::field("output", "How long output is kept after its last line.").default("24h");
}
