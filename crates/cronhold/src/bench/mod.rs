//! Measurements of this machine and of a node on a store, which the benchmarks of the project use.
//!
//! In reading order: `machine` measures the machine without Cronhold; `node` starts a node, which `runs`, `due_at_once`
//! and `programs` measure.

mod bench_keeper;
pub mod due_at_once;
pub mod machine;
pub mod node;
pub mod programs;
mod run_recorder;
pub mod runs;
pub mod samples;

pub use self::run_recorder::RunRecorder;
