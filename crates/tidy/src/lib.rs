//! Checks for the rules of this repository. Each rule is a pure function from file texts to findings, so that unit
//! tests can run it on small invalid inputs. `tests/rules.rs` applies all rules to the workspace. No other crate
//! depends on this one.

mod finding;
mod metadata;
mod rust;
mod tree;

pub mod calls;
pub mod crate_edges;
pub mod dependencies;
pub mod documents;
pub mod lengths;
pub mod licences;
pub mod names;
pub mod opening;
pub mod promises;
pub mod texts;

pub use finding::{Finding, report};
pub use metadata::{CargoDependency, CargoMetadata, CargoPackage, DependencyKind};
pub use rust::RustFile;
pub use tree::{SourceTree, TextFile};
