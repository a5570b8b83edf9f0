//! Keys of a job and of its small policies.

use cronhold_core::job::Feature;

use super::schedule::WHEN;
use super::work::{ACTION, CONDITION, PROGRAM};
use super::{CHANNEL, IDENTIFIER, Key, Shape, Table};

/// A count from 0 on.
const COUNT: Shape = Shape::Whole { least: 0, most: u32::MAX as i64 };
/// A count from 1 on.
const POSITIVE: Shape = Shape::Whole { least: 1, most: u32::MAX as i64 };

/// Less memory than this starts no program: someone forgot the unit.
pub(crate) const MEMORY_LEAST: u64 = 1 << 20;
/// The smallest part of a processor that kernels can deal out.
pub(crate) const CPU_LEAST: f64 = 0.01;

/// What `nodes` can be besides labels.
static EVERYWHERE: &[&str] = &["each"];

/// Transitions that actions can wait for: every state, and `finished` for any of the last four.
static EVENTS: &str = "^(finished|scheduled|waiting|starting|running|stopping|success|failure|error|skipped)$";

/// A job.
pub static JOB: Table = Table {
    name: "job",
    noun: "a job",
    doc: "A job: what to run, when, and under which conditions. Its id is the file's path below the jobs directory.",
    one_of: &[],
    keys: &[
        Key::new("description", Shape::Text, "Markdown for people."),
        Key::new("labels", Shape::List(&Shape::Text), "Words to find the job by."),
        Key::new(
            "params",
            Shape::Either(&[
                Shape::Names { regex: IDENTIFIER, value: &Shape::Either(&[Shape::Null, Shape::Map(&PARAM)]) },
                Shape::List(&Shape::Pattern { regex: IDENTIFIER, noun: "a name" }),
            ]),
            "What runs of the job are told apart by; a list of names makes all of them required.",
        ),
        Key::new("schedule", WHEN, "When the job runs by itself: one schedule or a list of them."),
        Key::new(
            "program",
            Shape::Either(&[Shape::Text, Shape::Some(&Shape::Template), Shape::Map(&PROGRAM)]),
            "What a run executes: a text for the shell, a list of program and arguments, or a map.",
        )
        .required(),
        Key::new("conditions", Shape::List(&Shape::Map(&CONDITION)), "What must hold before a run starts, in order."),
        Key::new(
            "lock",
            Shape::Either(&[Shape::Bool, Shape::Text]),
            "What the job holds alone while it runs: `true` for a lock of its own, or a name that jobs share.",
        )
        .default("false"),
        Key::new("ttl", Shape::Span, "How long the lock outlives a holder that is gone; a number is seconds.")
            .default("10s"),
        Key::new(
            "overlap",
            Shape::Either(&[Shape::Word(&["allow", "skip", "queue", "replace"]), Shape::Map(&OVERLAP)]),
            "What happens when a run is due while another one is active.",
        )
        .default("skip"),
        Key::new(
            "catch_up",
            Shape::Either(&[Shape::Word(&["none", "last", "all"]), Shape::Map(&CATCH_UP)]),
            "What happens to occurrences that were missed.",
        )
        .default("last within 1h"),
        Key::new(
            "retry",
            Shape::Either(&[POSITIVE, Shape::Map(&RETRY)]),
            "Whether and when a failed run is tried again; a number is the attempts in all.",
        )
        .default("no retry"),
        Key::new("timeout", Shape::Span, "After which a run is stopped.").default("none"),
        Key::new("stop", Shape::Map(&STOP), "How a run is stopped: a signal, a grace period, then SIGKILL."),
        Key::new(
            "env",
            Shape::Names { regex: IDENTIFIER, value: &Shape::Either(&[Shape::Template, Shape::Map(&ENV_SOURCE)]) },
            "Environment of the program; a map names where a secret comes from.",
        ),
        Key::new("cwd", Shape::Template, "Directory the program starts in."),
        Key::new("shell", Shape::Text, "Shell for shell programs.").default("/bin/bash, else /bin/sh"),
        Key::new("user", Shape::Text, "User the program runs as."),
        Key::new(
            "umask",
            Shape::Either(&[
                Shape::Pattern { regex: "^(0o)?[0-7]{1,4}$", noun: "a mask in octal digits" },
                Shape::Whole { least: 0, most: 0o777 },
            ]),
            "File mode mask of the program, in octal: `\"022\"` or `0o22`.",
        ),
        Key::new("limits", Shape::Map(&LIMITS), "What the program and all that descends from it may use.")
            .default("no limits"),
        Key::new(
            "nodes",
            Shape::Either(&[Shape::Word(EVERYWHERE), Shape::List(&Shape::Text), Shape::Map(&EACH)]),
            "Labels that a node must have to run the job, or `each` for a run on every node.",
        )
        .default("any node"),
        Key::new("success_codes", Shape::Some(&Shape::Whole { least: 0, most: 255 }), "Exit codes that mean success.")
            .default("[0]"),
        Key::new(
            "on",
            Shape::Names { regex: EVENTS, value: &Shape::List(&Shape::Map(&ACTION)) },
            "Actions by the state that a run enters, or `finished` for any of its last states.",
        ),
        Key::new(
            "triggers",
            Shape::List(&Shape::Either(&[CHANNEL, Shape::Map(&TRIGGER)])),
            "Channels whose messages start runs.",
        )
        .needs(Feature::Triggers),
        Key::new("retain", Shape::Map(&RETAIN), "How many finished runs are kept, and how long their output."),
        Key::new(
            "on_lost",
            Shape::Word(&["error", "retry"]),
            "What becomes of a run whose node was lost as it started.",
        )
        .default("error"),
        Key::new("paused", Shape::Bool, "Whether the job is paused from the beginning.").default("false"),
    ],
};

/// A parameter.
pub static PARAM: Table = Table {
    name: "param",
    noun: "a param",
    doc: "One parameter of a job. Arguments are always texts.",
    one_of: &[],
    keys: &[
        Key::new("default", Shape::Value, "Used when nobody gives a value; without it the param is required."),
        Key::new("choices", Shape::Some(&Shape::Value), "The only values allowed."),
        Key::new("description", Shape::Text, "For people."),
    ],
};

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
    keys: &[Key::new("limit", POSITIVE, "How many runs may wait; more are skipped.").default("100")],
};

/// `catch_up` as a map.
pub static CATCH_UP: Table = Table {
    name: "catch_up",
    noun: "`catch_up`",
    doc: "Which missed occurrences run afterwards, and how old they may be.",
    one_of: &[],
    keys: &[
        Key::new("policy", Shape::Word(&["none", "last", "all"]), "Which of them run.").default("last"),
        Key::new("within", Shape::Span, "How old they may be.").default("1h"),
    ],
};

/// `retry`.
pub static RETRY: Table = Table {
    name: "retry",
    noun: "`retry`",
    doc: "Whether and when a run that did not succeed is tried again.",
    one_of: &[],
    keys: &[
        Key::new("attempts", POSITIVE, "Attempts in all, the first included.").default("1"),
        Key::new("backoff", Shape::Span, "Wait before the second attempt.").default("10s"),
        Key::new("factor", Shape::Number { least: 1.0 }, "What the wait is multiplied with each time.").default("2"),
        Key::new("most", Shape::Span, "The longest wait.").default("10m"),
        Key::new("on", Shape::Some(&Shape::Word(&["failure", "error"])), "Which outcomes are tried again.")
            .default("[failure]"),
    ],
};

/// `stop` of a job.
pub static STOP: Table = Table {
    name: "stop",
    noun: "`stop`",
    doc: "How a run is stopped.",
    one_of: &[],
    keys: &[
        Key::new("signal", Shape::Text, "The first signal, such as SIGINT.").default("SIGTERM"),
        Key::new("grace", Shape::Span, "Time between the signal and SIGKILL to the whole group.").default("1m"),
    ],
};

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

/// `limits`.
pub static LIMITS: Table = Table {
    name: "limits",
    noun: "`limits`",
    doc: "What a program may use. Memory, processors and processes are counted together with all that descends from it.",
    one_of: &[],
    keys: &[
        Key::new("memory", Shape::Size { least: MEMORY_LEAST }, "Memory; whoever needs more is killed.")
            .default("no limit"),
        Key::new("cpu", Shape::Number { least: CPU_LEAST }, "Processors, such as `0.5` or `2`.").default("no limit"),
        Key::new("pids", POSITIVE, "Processes and threads.").default("no limit"),
        Key::new("files", POSITIVE, "Open files of each process.").default("as the daemon"),
        Key::new("cpu_time", Shape::Span, "Processor time of each process, from 1s on.").default("as the daemon"),
        Key::new("core", Shape::Size { least: 0 }, "Size of a core dump; 0 for none.").default("as the daemon"),
    ],
};

/// `nodes` as a map.
pub static EACH: Table = Table {
    name: "each",
    noun: "`nodes`",
    doc: "A run on every node that has all labels.",
    one_of: &[],
    keys: &[Key::new("each", Shape::List(&Shape::Text), "Labels that the nodes must have.").required()],
};

/// A trigger.
pub static TRIGGER: Table = Table {
    name: "trigger",
    noun: "a trigger",
    doc: "Messages that start runs.",
    one_of: &[],
    keys: &[
        Key::new("channel", CHANNEL, "Channel listened to, its children included.").required(),
        Key::new(
            "args",
            Shape::Names { regex: IDENTIFIER, value: &Shape::Template },
            "Args of the runs; `message` and `channel` can be used in them.",
        ),
        Key::new(
            "batching",
            Shape::Either(&[Shape::Word(&["greedy", "newest"]), Shape::Map(&BATCHING)]),
            "How messages become runs.",
        )
        .default("greedy"),
    ],
};

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
        Key::new("concurrent", POSITIVE, "Runs at once.").default("1"),
        Key::new("most", POSITIVE, "Messages in one run at most; not with `newest`.").default("1000"),
        Key::new(
            "base",
            Shape::Number { least: 1.0001 },
            "Base of the logarithm; only with `logarithmic`, and needed there.",
        ),
        Key::new("timeout", Shape::Span, "Age from which a message is dropped; only with `newest`.").default("7d"),
    ],
};

/// `retain`.
pub static RETAIN: Table = Table {
    name: "retain",
    noun: "`retain`",
    doc: "How many finished runs are kept, each outcome apart, and for how long the output.",
    one_of: &[],
    keys: &[
        Key::new("success", COUNT, "Successful runs.").default("1000"),
        Key::new("failure", COUNT, "Failed runs.").default("1000"),
        Key::new("error", COUNT, "Runs that ended in error.").default("1000"),
        Key::new("skipped", COUNT, "Skipped runs.").default("200"),
        Key::new("output", Shape::Span, "How long output is kept after its last line.").default("24h"),
    ],
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cronhold_core::job::Event;

    use super::*;

    #[test]
    fn every_event_is_a_key_of_on() {
        let listed = EVENTS.trim_start_matches("^(").trim_end_matches(")$").split('|');
        assert_eq!(listed.collect::<BTreeSet<_>>(), Event::names().collect());
    }
}
