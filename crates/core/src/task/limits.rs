//! The limits of tasks. They are checked before a unit is committed, so that every store has the same ones.

/// Longest name of a port, a queue, a class, a child or a field of the state, and longest alias, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Longest channel in bytes.
pub const CHANNEL_BYTES_MAX: usize = 1_000;
/// Largest item of a port, value of the state, message or list of args, in bytes of JSON.
pub const VALUE_BYTES_MAX: usize = 1 << 20;
/// Context or options of an item, and context of a unit, in bytes of JSON. Each message that a unit publishes has its
/// context.
pub const CONTEXT_BYTES_MAX: usize = 16 << 10;
/// Name of the creator of a task, and key of a request, in bytes.
pub const LABEL_BYTES_MAX: usize = 1_000;
/// Acts of one unit. Each item, field and target of an act counts as one too.
pub const UNIT_ACTS_MAX: usize = 100_000;
/// JSON that one unit writes, in bytes.
pub const UNIT_BYTES_MAX: usize = 16 << 20;
/// Ports that a task has in one direction.
pub const PORTS_MAX: usize = 1_000;
/// Channels of one port.
pub const PORT_CHANNELS_MAX: usize = 64;
/// Fields of the state of one task.
pub const STATE_FIELDS_MAX: usize = 10_000;
/// Names and values of the state of one task, in bytes. A step loads the whole state.
pub const STATE_BYTES_MAX: usize = 16 << 20;
/// Aliases of one task.
pub const ALIASES_MAX: usize = 1_000;
/// Tasks between a task and the root of its tree, itself included.
pub const TREE_DEPTH_MAX: usize = 1_000;
/// Tasks that one unit terminates or deletes together with their parent.
pub const TREE_TASKS_MAX: usize = 100_000;
/// Items that one act moves from a port to others, counted once for each target.
pub const MOVED_ITEMS_MAX: usize = 100_000;
/// Port writes that the messages of one unit cause. Beyond it, a unit is refused if it publishes further messages
/// itself, and messages that were caused by port writes of the same unit are left out, which is logged.
pub const DELIVERIES_MAX: usize = 100_000;
/// Bytes of these port writes, under the same rules.
pub const DELIVERED_BYTES_MAX: usize = 128 << 20;
/// Steps that a task starts within one minute. The next one terminates it, because it runs away.
pub const STEPS_PER_MINUTE_MAX: u32 = 600;
/// Steps in a row whose worker was lost, after which the task fails.
pub const LOST_STEPS_MAX: u32 = 3;
/// Steps in a row that were refused, after which the task fails.
pub const REFUSED_STEPS_MAX: u32 = 12;
/// Text of an error that is logged, in bytes. The rest is left out.
pub const ERROR_BYTES_MAX: usize = 16 << 10;
/// Backtrace of an error that is logged, in bytes. The rest is left out.
pub const BACKTRACE_BYTES_MAX: usize = 64 << 10;
