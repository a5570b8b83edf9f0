//! Allowed dependency edges between the crates of the workspace. Dependencies point down the list; any other edge is a
//! finding. Planned crates are listed already.

use crate::{CargoMetadata, DependencyKind, Finding};

const RULE: &str = "crate edges";

/// A crate and the workspace crates that it may depend on.
#[derive(Debug)]
pub struct CrateEdges {
    /// Folder below `crates/`.
    pub name: &'static str,
    /// Folders of the crates that it may depend on.
    pub may_use: &'static [&'static str],
}

/// All crates, in dependency order. The tests of a crate may use any crate that comes before it in this list.
pub const CRATES: &[CrateEdges] = &[
    CrateEdges { name: "schedule", may_use: &[] },
    CrateEdges { name: "core", may_use: &["schedule"] },
    CrateEdges { name: "jobfile", may_use: &["schedule", "core"] },
    CrateEdges { name: "store", may_use: &["schedule", "core"] },
    CrateEdges { name: "store-records", may_use: &["schedule", "core", "jobfile"] },
    CrateEdges { name: "store-remote", may_use: &["schedule", "core", "store"] },
    CrateEdges { name: "store-sqlite", may_use: &["schedule", "core", "store", "jobfile"] },
    CrateEdges { name: "store-redis", may_use: &["schedule", "core", "store", "store-records", "store-remote"] },
    CrateEdges {
        name: "store-zookeeper",
        may_use: &["schedule", "core", "store", "store-records", "store-remote", "jobfile"],
    },
    CrateEdges { name: "store-postgres", may_use: &["schedule", "core", "store", "store-remote", "jobfile"] },
    CrateEdges { name: "keeper", may_use: &[] },
    CrateEdges { name: "engine", may_use: &["schedule", "core", "store"] },
    CrateEdges { name: "cronken", may_use: &["schedule", "core", "jobfile", "store", "engine"] },
    CrateEdges { name: "programs", may_use: &["schedule", "core", "store", "engine", "keeper"] },
    CrateEdges { name: "api", may_use: &["schedule", "core", "store"] },
    CrateEdges { name: "worker", may_use: &["schedule", "core", "store", "api"] },
    CrateEdges { name: "server", may_use: &["schedule", "core", "jobfile", "store", "engine", "cronken", "api"] },
    CrateEdges { name: "cli", may_use: &["core", "schedule", "jobfile", "api", "store"] },
    CrateEdges {
        name: "wiring",
        may_use: &["schedule", "store", "store-sqlite", "store-redis", "store-zookeeper", "store-postgres"],
    },
    CrateEdges { name: "sim", may_use: &["schedule", "core", "store", "engine"] },
    CrateEdges { name: "tidy", may_use: &[] },
    CrateEdges { name: "cronhold", may_use: &BELOW_THE_BINARY },
];

/// The binary may depend on every other crate of the product.
const BELOW_THE_BINARY: [&str; 19] = [
    "schedule",
    "core",
    "jobfile",
    "store",
    "store-records",
    "store-remote",
    "store-sqlite",
    "store-redis",
    "store-zookeeper",
    "store-postgres",
    "keeper",
    "engine",
    "cronken",
    "programs",
    "api",
    "worker",
    "server",
    "cli",
    "wiring",
];

/// Reports dependency edges that `CRATES` does not allow.
pub fn check(metadata: &CargoMetadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.ours() {
        let Some(position) = position(&package.name) else {
            let message = "is not listed; add it to CRATES in crates/tidy/src/crate_edges.rs and to ARCHITECTURE.md";
            findings.push(Finding::whole(&package.name, RULE, message));
            continue;
        };
        for used in &package.uses {
            // Dependencies outside of the workspace are not edges.
            let Some(below) = metadata.packages.get(&used.id).filter(|_| metadata.members.contains(&used.id)) else {
                continue;
            };
            if !is_allowed(position, &below.name, used.kind) {
                let message = format!("may not use {}; move the shared code to a crate that both may use", below.name);
                findings.push(Finding::whole(&package.name, RULE, message));
            }
        }
    }
    findings
}

fn is_allowed(position: usize, below: &str, kind: DependencyKind) -> bool {
    let allowed = CRATES[position].may_use.contains(&folder_name(below));
    let is_above = self::position(below).is_some_and(|other| other < position);
    // A crate whose tests need one of its own features depends on itself.
    let is_itself = self::position(below) == Some(position);
    allowed || (kind == DependencyKind::Dev && (is_above || is_itself))
}

fn position(package: &str) -> Option<usize> {
    CRATES.iter().position(|edges| edges.name == folder_name(package))
}

/// Packages are named `cronhold-<folder>`, except for the binary and `sim`.
fn folder_name(package: &str) -> &str {
    package.strip_prefix("cronhold-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CargoDependency, CargoPackage};

    fn workspace(from: &str, to: &str, kind: DependencyKind) -> CargoMetadata {
        let mut metadata = CargoMetadata { members: vec![from.to_owned(), to.to_owned()], ..CargoMetadata::default() };
        for name in [from, to] {
            let package = CargoPackage { name: name.to_owned(), ..CargoPackage::default() };
            metadata.packages.insert(name.to_owned(), package);
        }
        let uses = &mut metadata.packages.get_mut(from).expect("was inserted").uses;
        uses.push(CargoDependency { id: to.to_owned(), kind });
        metadata
    }

    #[test]
    fn upward_edges_are_findings() {
        for (from, to, kind, is_fine) in [
            ("cronhold-core", "cronhold-schedule", DependencyKind::Normal, true),
            ("cronhold-schedule", "cronhold-core", DependencyKind::Normal, false),
            ("cronhold-schedule", "cronhold-core", DependencyKind::Dev, false),
            ("cronhold-engine", "cronhold-store-redis", DependencyKind::Normal, false),
            ("cronhold-engine", "cronhold-store-redis", DependencyKind::Dev, true),
            ("cronhold-store-redis", "cronhold-store-redis", DependencyKind::Dev, true),
            ("cronhold-engine", "cronhold-jobfile", DependencyKind::Build, false),
            ("cronhold-cli", "cronhold-server", DependencyKind::Normal, false),
            ("cronhold-server", "cronhold-cronken", DependencyKind::Normal, true),
            ("cronhold-engine", "cronhold-cronken", DependencyKind::Normal, false),
            ("cronhold-store-redis", "cronhold-cronken", DependencyKind::Normal, false),
            ("cronhold-cronken", "cronhold-server", DependencyKind::Normal, false),
            ("cronhold", "cronhold-wiring", DependencyKind::Normal, true),
            ("sim", "cronhold-engine", DependencyKind::Normal, true),
            ("cronhold-kitchen", "cronhold-core", DependencyKind::Normal, false),
        ] {
            let findings = check(&workspace(from, to, kind));
            assert_eq!(findings.is_empty(), is_fine, "{from} -> {to} ({kind:?}): {findings:?}");
        }
    }

    #[test]
    fn the_list_is_in_dependency_order() {
        for (index, edges) in CRATES.iter().enumerate() {
            for below in edges.may_use {
                let place = CRATES.iter().position(|other| other.name == *below);
                assert!(place.is_some_and(|place| place < index), "{} uses {below}", edges.name);
            }
        }
    }
}
