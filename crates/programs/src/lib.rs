//! Programs: what runs execute. [`LocalRunner`] implements the engine's port for programs on this machine. It keeps two
//! tables, which receive events and never block: [`Noops`] for programs that do nothing, and [`Processes`] for those
//! that the keeper runs. `service` has those that are requests, which threads send by `http`, and `task_programs` those that create durable tasks. [`host_env`] turns a run into what the keeper executes, and [`output`] stores what programs
//! write. `plugin` reads the messages of plug-ins. `delivery` sends the webhooks and mails of actions; their commands run under the keeper (`command_actions`), and `publisher` sends their messages.

mod command_actions;
mod delivery;
mod event;
pub mod host_env;
mod http;
mod noop;
pub mod output;
mod plugin;
mod probes;
mod process;
mod publisher;
mod runner;
mod service;
mod task_programs;
#[cfg(test)]
mod testing;
mod worker_pool;

pub use delivery::{MailSettings, MailSettingsError};
pub use event::{EventObserver, ProgramEvent};
pub use noop::Noops;
pub use process::{KEEPER_PENDING, PluginEnd, Processes, UnstoredOutput};
pub use runner::LocalRunner;
