//! One file per command: its arguments, its help text and its implementation.

pub(crate) mod add;
pub(crate) mod backfill;
pub(crate) mod bench;
pub(crate) mod channel;
pub(crate) mod check;
pub(crate) mod coming;
pub(crate) mod del;
pub(crate) mod drain;
pub(crate) mod explain;
pub(crate) mod holes;
pub(crate) mod import;
pub(crate) mod keeper;
pub(crate) mod kill;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod mark;
pub(crate) mod next;
pub(crate) mod nodes;
pub(crate) mod pause;
pub(crate) mod plugin;
pub(crate) mod pools;
pub(crate) mod queues;
pub(crate) mod reload;
pub(crate) mod rename;
pub(crate) mod rerun;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod show;
pub(crate) mod signal;
pub(crate) mod skip;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod store;
pub(crate) mod task;
pub(crate) mod token;
pub(crate) mod trigger;
pub(crate) mod triggers;
pub(crate) mod up;
pub(crate) mod upd;
pub(crate) mod watch;
pub(crate) mod why;
pub(crate) mod worker;
pub(crate) mod workers;

/// The end of the help of commands about tasks.
pub(crate) const SIDEJOB_HELP: &str = "\
If no option and no variable of Cronhold names a daemon or a store, $SIDEJOB_URL or else
$SIDEJOB_HOST names the Redis of the tasks.";
