//! The keeper: a small process that owns running programs and outlives the daemon. It spawns them, waits for them,
//! writes their intents and exits into a journal, stops them with all that descends from them, and tells the daemon over a
//! Unix socket. It knows nothing of jobs, stores or schedules: a program is what a [`Launch`] says.

pub mod client;
pub mod fail;
pub mod frames;
pub mod protocol;

mod cgroups;
mod clock;
mod ending;
mod events;
mod home;
mod journal;
mod keeper;
mod line;
mod log;
mod options;
mod outputs;
mod recover;
#[cfg(test)]
mod scratch;
mod sole;
mod spawn;
mod table;
mod tree;

pub use keeper::run;
pub use options::{IDLE, JOURNAL_MAX, KeeperError, Options};

pub use protocol::{
    End, Exit, FromKeeper, Launch, Limits, OutputLimits, PROTOCOL, PROTOCOL_OLDEST, Program, RunKey, Stage, ToKeeper,
};
pub use spawn::launch_stage;
