//! Job files: YAML read into the one job type, with every mistake of a file at its place, and the
//! job written back in the same keys. Only `directory` touches a disk; whoever holds a text can read it.

pub mod directory;
pub mod foreign;
pub mod keys;
mod mistake;
mod read;
pub mod reference;
mod render;
mod size;
mod support;
mod write;
mod yaml;

pub use mistake::{Mistake, MistakeKind, line_column};
pub use read::{JobRead, Options, Places, read_job, read_schedule, read_stored_job};
pub use render::{Style, render, render_line};
pub use support::unsupported_in;
pub use write::write_job;
pub use yaml::to_yaml;
