//! Parts of real servers for tests and benchmarks: folders, free ports, certificates and processes. Dropping a value
//! kills its process and removes its folder, also when a test panics.

mod certificates;
mod folder;
mod process;
mod waiting;

pub use certificates::Certificates;
pub use folder::TestFolder;
pub use process::{ServerProcess, start_on_free_port};
pub use waiting::{PATIENCE, free_port, until};
