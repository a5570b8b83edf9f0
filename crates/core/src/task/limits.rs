//! The limits of tasks. They are checked before a unit is committed, so that every store has the same ones.

/// Longest name of a port, a queue, a class, a child or a field of the state, and longest alias, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Longest channel in bytes.
pub const CHANNEL_BYTES_MAX: usize = 1_000;
/// Largest item of a port, value of the state, message or list of args, in bytes of JSON.
pub const VALUE_BYTES_MAX: usize = 1 << 20;
/// Acts of one unit.
pub const UNIT_ACTS_MAX: usize = 100_000;
/// JSON that one unit writes, in bytes.
pub const UNIT_BYTES_MAX: usize = 16 << 20;
/// Ports that a task has in one direction.
pub const PORTS_MAX: usize = 1_000;
/// Channels of one port.
pub const PORT_CHANNELS_MAX: usize = 64;
/// Tasks between a task and the root of its tree, itself included.
pub const TREE_DEPTH_MAX: usize = 1_000;
/// Tasks that one unit terminates or deletes together with their parent.
pub const TREE_TASKS_MAX: usize = 100_000;
/// Items that one unit moves from a port to others.
pub const MOVED_ITEMS_MAX: usize = 100_000;
/// Port writes that the messages of one unit cause. Beyond it, a unit is refused if it publishes further messages
/// itself, and messages that were caused by port writes of the same unit are left out, which is logged.
pub const DELIVERIES_MAX: usize = 100_000;
/// Steps that a task starts within one minute. The next one terminates it, because it runs away.
pub const STEPS_PER_MINUTE_MAX: u32 = 600;
/// Steps in a row whose worker was lost, after which the task fails.
pub const LOST_STEPS_MAX: u32 = 3;
/// Steps in a row that were refused, after which the task fails.
pub const REFUSED_STEPS_MAX: u32 = 12;
