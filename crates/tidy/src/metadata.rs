//! The dependency graph as reported by `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// How one package uses another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DependencyKind {
    /// A dependency of the product.
    Normal,
    /// A dependency of its build scripts.
    Build,
    /// A dependency of tests, benchmarks and examples.
    Dev,
}

/// A package of the graph.
#[derive(Debug, Clone, Default)]
pub struct CargoPackage {
    pub name: String,
    pub version: String,
    /// SPDX expression; `None` if the package has no licence.
    pub licence: Option<String>,
    /// Source of the package; `None` for workspace members.
    pub source: Option<String>,
    pub uses: Vec<CargoDependency>,
}

/// A dependency of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CargoDependency {
    /// Id of the package that it depends on.
    pub id: String,
    pub kind: DependencyKind,
}

/// All packages, and which of them are workspace members.
#[derive(Debug, Default)]
pub struct CargoMetadata {
    /// All packages by their ids.
    pub packages: BTreeMap<String, CargoPackage>,
    /// Ids of the workspace members.
    pub members: Vec<String>,
}

impl CargoMetadata {
    /// Runs `cargo metadata` for the workspace at `root`.
    pub fn read(root: &Path) -> Result<Self, String> {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1"])
            .current_dir(root)
            .output()
            .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let json: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        Ok(Self::from_json(&json))
    }

    /// Parses the output of `cargo metadata`.
    pub fn from_json(json: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut packages = BTreeMap::new();
        let mut described = BTreeMap::new();
        for package in list(&json["packages"]) {
            described.insert(text(&package["id"]), package);
            packages.insert(
                text(&package["id"]),
                CargoPackage {
                    name: text(&package["name"]),
                    version: text(&package["version"]),
                    licence: package["license"].as_str().map(str::to_owned),
                    source: package["source"].as_str().map(str::to_owned),
                    uses: Vec::new(),
                },
            );
        }
        for node in list(&json["resolve"]["nodes"]) {
            let id = text(&node["id"]);
            let (Some(package), Some(described)) = (packages.get_mut(&id), described.get(&id)) else { continue };
            let off = switched_off(described, node);
            // In this list cargo uses library names, which have underscores.
            let is_off = |used: &Value| off.iter().any(|name| name.replace('-', "_") == text(&used["name"]));
            for used in list(&node["deps"]).iter().filter(|used| !is_off(used)) {
                let kinds: BTreeSet<DependencyKind> =
                    list(&used["dep_kinds"]).iter().map(|kind| read_kind(&kind["kind"])).collect();
                let id = text(&used["pkg"]);
                package.uses.extend(kinds.into_iter().map(|kind| CargoDependency { id: id.clone(), kind }));
            }
        }
        let members = list(&json["workspace_members"]).iter().map(text).collect();
        Self { packages, members }
    }

    /// The workspace members.
    pub fn ours(&self) -> impl Iterator<Item = &CargoPackage> {
        self.members.iter().filter_map(|id| self.packages.get(id))
    }

    /// Packages that are part of the product or needed to build it: everything that members reach without
    /// dev-dependencies.
    pub fn shipped(&self) -> Vec<&CargoPackage> {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = self.members.iter().map(String::as_str).collect();
        while let Some(id) = open.pop() {
            let Some(package) = self.packages.get(id).filter(|_| seen.insert(id)) else { continue };
            open.extend(
                package.uses.iter().filter(|used| used.kind != DependencyKind::Dev).map(|used| used.id.as_str()),
            );
        }
        seen.into_iter().filter_map(|id| self.packages.get(id)).collect()
    }
}

/// Optional dependencies of a package that no active feature enables. Cargo lists them as dependencies when an active
/// feature mentions them weakly (`ring?/std`), and does not build them.
fn switched_off<'a>(package: &'a Value, node: &Value) -> Vec<&'a str> {
    let active: Vec<&str> = list(&node["features"]).iter().filter_map(Value::as_str).collect();
    let turned_on = |name: &str| {
        let enables = |value: &str| {
            let value = value.strip_prefix("dep:").unwrap_or(value);
            value == name || value.split_once('/').is_some_and(|(before, _)| before == name)
        };
        let values = active.iter().flat_map(|feature| list(&package["features"][*feature]));
        active.contains(&name) || values.filter_map(Value::as_str).any(enables)
    };
    let optional = list(&package["dependencies"]).iter().filter(|used| used["optional"] == true);
    let names = optional.filter_map(|used| used["rename"].as_str().or_else(|| used["name"].as_str()));
    names.filter(|name| !turned_on(name)).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn read_kind(value: &Value) -> DependencyKind {
    match value.as_str() {
        Some("dev") => DependencyKind::Dev,
        Some("build") => DependencyKind::Build,
        _ => DependencyKind::Normal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_packages_exclude_dev_dependencies() {
        let json = serde_json::json!({
            "packages": [
                {"id": "a", "name": "a", "version": "1.0.0", "license": "MIT", "source": null},
                {"id": "b", "name": "b", "version": "2.0.0", "license": null, "source": "registry+x"},
                {"id": "c", "name": "c", "version": "3.0.0", "license": "MIT", "source": "registry+x"},
            ],
            "workspace_members": ["a"],
            "resolve": {"nodes": [
                {"id": "a", "deps": [
                    {"pkg": "b", "dep_kinds": [{"kind": null}, {"kind": "dev"}]},
                    {"pkg": "c", "dep_kinds": [{"kind": "dev"}]},
                ]},
            ]},
        });
        let metadata = CargoMetadata::from_json(&json);
        let names: Vec<&str> = metadata.shipped().iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(metadata.packages["a"].uses.len(), 3);
        assert_eq!(metadata.packages["b"].licence, None);
    }

    #[test]
    fn excludes_optional_dependencies_without_a_feature() {
        let package = serde_json::json!({
            "features": {"std": ["ring?/std", "dep:log"], "fast": ["simd/avx"], "other": ["dep:ring"]},
            "dependencies": [
                {"name": "ring", "optional": true}, {"name": "log", "optional": true},
                {"name": "simd", "optional": true}, {"name": "must", "optional": false},
                {"name": "long-name", "rename": "short", "optional": true},
            ],
        });
        let off = |features: &[&str]| switched_off(&package, &serde_json::json!({"features": features})).join(" ");
        assert_eq!(off(&["std", "fast"]), "ring short");
        assert_eq!(off(&["std", "other", "short"]), "simd");
        assert_eq!(off(&[]), "ring log simd short");
    }
}
