//! The keeper: a small process that owns running programs and outlives the daemon. It spawns them, waits for them,
//! records launches and exits in a journal, stops programs with everything that descends from them, and reports to the
//! daemon over a Unix socket. It does not know jobs, stores or schedules: a [`ProgramLaunch`] describes a program
//! completely.

pub mod client;
pub mod fail;
pub mod frames;
pub mod protocol;

mod cgroups;
mod clock;
mod collector;
mod connection;
mod ending;
mod events;
mod home;
mod journal;
mod keeper;
mod log;
mod options;
mod output_pipe;
mod output_snapshot;
mod outputs;
mod recover;
mod refusal;
mod run_mark;
#[cfg(test)]
mod scratch_dir;
mod sole;
mod spawn;
mod stderr_index;
mod table;
mod tree;

pub use collector::collect_outputs;
pub use keeper::run;
pub use options::{IDLE, JOURNAL_MAX, KeeperError, Options};
pub use output_snapshot::{OutputSnapshot, snapshot_output};

pub use protocol::{
    FromKeeper, ListedProgram, OutputLimits, PROTOCOL, PROTOCOL_OLDEST, ProcessExit, ProcessLimits, ProgramEnd,
    ProgramFile, ProgramLaunch, ProgramStage, RunKey, StdinInput, ToKeeper,
};
pub use spawn::launch_stage;
pub use stderr_index::{STDERR_PARTS_MAX, stderr_parts};
pub use tree::run_of_process;
