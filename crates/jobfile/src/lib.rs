//! Job files: reads YAML into the job type, reports every mistake of a file with its place, and writes a job back with the
//! same keys. Only `directory` reads files; everything else works on texts.

mod definition;
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

pub use definition::DefinitionDigest;
pub use mistake::{Mistake, MistakeKind, line_column};
pub use read::{
    JobPlaces, JobRead, Options, read_defaults, read_job, read_job_of_any_version, read_schedule, read_stored_job,
};
pub use render::{Style, render, render_line};
pub use size::parse as parse_size;
pub use support::unsupported_in;
pub use write::write_job;
pub use yaml::{escape_unprintable, to_yaml};
