//! The rules of the house that a test can check. Each rule is a plain function from texts to
//! findings, so that it can be tried on small bad inputs; `tests/house.rs` applies all of them to
//! this workspace. Nothing else depends on this crate.

mod finding;
mod metadata;
mod rust;
mod tree;

pub mod calls;
pub mod dependencies;
pub mod documents;
pub mod lengths;
pub mod licences;
pub mod names;
pub mod opening;
pub mod promises;
pub mod rooms;
pub mod texts;

pub use finding::{Finding, report};
pub use metadata::{CargoDependency, CargoMetadata, CargoPackage, DependencyKind};
pub use rust::RustFile;
pub use tree::{SourceTree, TextFile};
