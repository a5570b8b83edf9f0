//! Banned crates, each with the reason, and large crates of which the product may contain only one version.

use std::collections::BTreeMap;

use crate::{CargoMetadata, CargoPackage, Finding};

const BAN_RULE: &str = "banned crates";
const TWICE_RULE: &str = "two versions";
const SOURCE_RULE: &str = "crate sources";

/// A banned crate.
#[derive(Debug)]
struct CrateBan {
    name: &'static str,
    /// Prefix of the banned versions; empty bans all.
    version: &'static str,
    /// Whether tests and benchmarks may use it.
    tests_may: bool,
    reason: &'static str,
}

const fn ban(name: &'static str, reason: &'static str) -> CrateBan {
    CrateBan { name, version: "", tests_may: false, reason }
}

const BANS: &[CrateBan] = &[
    ban("serde_yaml", "archived by its author; job files are read with granit-parser"),
    ban("serde_yml", "unsound (RUSTSEC-2025-0067, RUSTSEC-2025-0068); job files are read with granit-parser"),
    ban("serde_yaml_ng", "lets the last of two equal keys win; job files are read with granit-parser"),
    ban("serde_norway", "lets the last of two equal keys win; job files are read with granit-parser"),
    CrateBan { version: "3.", ..ban("bincode", "version 3 refuses to compile; use JSON or plain columns") },
    ban("sled", "not maintained since 2021; SQLite is the embedded store"),
    ban("libsql", "SQLite itself, by rusqlite, is the embedded store"),
    ban("turso", "one process per file and still a beta; SQLite is the embedded store"),
    ban("sqlx-sqlite", "links a second SQLite; use rusqlite"),
    ban("openssl-sys", "TLS is rustls, so that the binary needs no system library"),
    ban("native-tls", "TLS is rustls, so that the binary needs no system library"),
    CrateBan { tests_may: true, ..ban("ring", "rustls with two providers panics at first use; aws-lc-rs is the one") },
    CrateBan { tests_may: true, ..ban("chrono", "time is jiff; a second date library means two ideas of a gap") },
    CrateBan { tests_may: true, ..ban("chrono-tz", "time is jiff; its zone data is newer and can be updated") },
    CrateBan { tests_may: true, ..ban("time", "time is jiff; a second date library means two ideas of a gap") },
    CrateBan { tests_may: true, ..ban("croner", "fires twice around clock changes; it serves as an oracle in tests") },
    ban("saffron", "not maintained since 2021, supports five fields and only UTC"),
    ban("fred", "not maintained; the Redis client is redis-rs"),
    ban("figment", "not maintained since 2024; configuration is plain clap and toml"),
    ban("users", "not maintained since 2020; users are looked up with nix or rustix"),
];

/// Crates so large or so central that a second version costs more than an update.
const ONCE: &[&str] = &[
    "aws-lc-rs",
    "axum",
    "clap",
    "h2",
    "hyper",
    "jiff",
    "minijinja",
    "redis",
    "regex",
    "reqwest",
    "rusqlite",
    "rustls",
    "serde",
    "serde_json",
    "tokio",
    "tokio-postgres",
    "tracing",
];

/// Prefix of the source of packages from a registry. The machine's configuration decides which registry.
const REGISTRY: &str = "registry+";

/// Reports banned crates.
pub fn check_bans(metadata: &CargoMetadata) -> Vec<Finding> {
    let shipped: Vec<String> = metadata.shipped().into_iter().map(label).collect();
    let mut findings = Vec::new();
    for package in metadata.packages.values() {
        let Some(ban) = BANS.iter().find(|ban| ban.name == package.name && package.version.starts_with(ban.version))
        else {
            continue;
        };
        if ban.tests_may && !shipped.contains(&label(package)) {
            continue;
        }
        let users = users(metadata, package);
        findings.push(Finding::whole(&label(package), BAN_RULE, format!("{} (used by {users})", ban.reason)));
    }
    findings
}

/// Reports large crates that the product contains in two versions.
pub fn check_twice(metadata: &CargoMetadata) -> Vec<Finding> {
    let mut versions: BTreeMap<&str, Vec<&CargoPackage>> = BTreeMap::new();
    for package in metadata.shipped().into_iter().filter(|package| ONCE.contains(&package.name.as_str())) {
        versions.entry(&package.name).or_default().push(package);
    }
    let mut findings = Vec::new();
    for (name, packages) in versions.into_iter().filter(|(_, packages)| packages.len() > 1) {
        let each = packages.iter().map(|package| format!("{} by {}", package.version, users(metadata, package)));
        let list = each.collect::<Vec<_>>().join(", ");
        findings.push(Finding::whole(
            name,
            TWICE_RULE,
            format!("has more than one version ({list}); update to one version"),
        ));
    }
    findings
}

/// Reports packages that do not come from a registry, such as those from a git repository.
pub fn check_sources(metadata: &CargoMetadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.packages.values() {
        if package.source.as_ref().is_some_and(|source| !source.starts_with(REGISTRY)) {
            let message = "comes from outside the registry; wait for its release or use another crate";
            findings.push(Finding::whole(&label(package), SOURCE_RULE, message));
        }
    }
    findings
}

fn label(package: &CargoPackage) -> String {
    format!("{} {}", package.name, package.version)
}

/// Names of the packages that depend on a package, for the message.
fn users(metadata: &CargoMetadata, package: &CargoPackage) -> String {
    let is_it = |id: &str| metadata.packages.get(id).is_some_and(|other| label(other) == label(package));
    let users = metadata.packages.values().filter(|other| other.uses.iter().any(|used| is_it(&used.id)));
    let names: Vec<&str> = users.map(|user| user.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CargoDependency, DependencyKind};

    /// One workspace member `us` that depends on each of these packages.
    fn workspace(uses: &[(&str, &str, DependencyKind)]) -> CargoMetadata {
        let package = |name: &str, version: &str| CargoPackage {
            name: name.to_owned(),
            version: version.to_owned(),
            source: (name != "us").then(|| REGISTRY.to_owned()),
            ..CargoPackage::default()
        };
        let mut metadata = CargoMetadata { members: vec!["us".to_owned()], ..CargoMetadata::default() };
        let mut us = package("us", "0.1.0");
        for (name, version, kind) in uses {
            let id = format!("{name} {version}");
            us.uses.push(CargoDependency { id: id.clone(), kind: *kind });
            metadata.packages.insert(id, package(name, version));
        }
        metadata.packages.insert("us".to_owned(), us);
        metadata
    }

    #[test]
    fn finds_banned_crates() {
        for (name, version, kind, is_fine) in [
            ("serde_yaml", "0.9.34", DependencyKind::Normal, false),
            ("serde_yaml", "0.9.34", DependencyKind::Dev, false),
            ("chrono", "0.4.45", DependencyKind::Dev, true),
            ("chrono", "0.4.45", DependencyKind::Normal, false),
            ("chrono", "0.4.45", DependencyKind::Build, false),
            ("bincode", "3.0.0", DependencyKind::Normal, false),
            ("bincode", "2.0.1", DependencyKind::Normal, true),
            ("serde", "1.0.0", DependencyKind::Normal, true),
        ] {
            let findings = check_bans(&workspace(&[(name, version, kind)]));
            assert_eq!(findings.is_empty(), is_fine, "{name} {version} {kind:?}");
            assert!(findings.iter().all(|finding| finding.message.contains("used by us")));
        }
    }

    #[test]
    fn finds_large_crates_with_two_versions() {
        let twice = |name, kind| {
            check_twice(&workspace(&[(name, "1.0.0", DependencyKind::Normal), (name, "2.0.0", kind)])).len()
        };
        assert_eq!(twice("tokio", DependencyKind::Normal), 1);
        assert_eq!(twice("tokio", DependencyKind::Dev), 0);
        assert_eq!(twice("syn", DependencyKind::Normal), 0);
    }

    #[test]
    fn finds_foreign_sources() {
        let mut metadata = workspace(&[("a", "1.0.0", DependencyKind::Normal)]);
        assert_eq!(check_sources(&metadata), []);
        let package = metadata.packages.get_mut("a 1.0.0").expect("was inserted");
        package.source = Some("git+https://example.com/a".to_owned());
        assert_eq!(check_sources(&metadata).len(), 1);
    }
}
