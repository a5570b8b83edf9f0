//! Documents: every link has a target, every document in `docs/` is reachable by links, and the change log has a
//! section for unreleased changes.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Finding, TextFile};

const LINK_RULE: &str = "links";
const REACH_RULE: &str = "reachable documents";
const CHANGELOG_RULE: &str = "change log";

/// Documents from which all others must be reachable.
const ENTRY_POINTS: &[&str] = &["README.md", "docs/README.md"];

#[derive(Debug, PartialEq, Eq)]
struct DocumentLink {
    line: usize,
    target: String,
}

/// Reports links without a target. `files` are all files of the workspace.
pub fn check_links(files: &[TextFile]) -> Vec<Finding> {
    let documents: BTreeMap<&str, &TextFile> = documents(files);
    let mut findings = Vec::new();
    for document in documents.values() {
        for link in links(&document.text) {
            let (path, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
            let resolved = if path.is_empty() { Some(document.path.clone()) } else { resolve(&document.path, path) };
            let problem = match resolved {
                None => Some(format!("`{path}` is outside of the project")),
                Some(to) if !exists(files, &to) => {
                    Some(format!("there is no `{to}`; repair the link or write the file"))
                }
                Some(to) if !anchor.is_empty() && !has_heading(documents.get(to.as_str()), anchor) => {
                    Some(format!("`{to}` has no heading `#{anchor}`"))
                }
                Some(_) => None,
            };
            findings.extend(problem.map(|message| Finding::at(&document.path, link.line, LINK_RULE, message)));
        }
    }
    findings
}

/// Reports documents below `docs/` that are not reachable from `ENTRY_POINTS`.
pub fn check_reach(files: &[TextFile]) -> Vec<Finding> {
    let documents = documents(files);
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = ENTRY_POINTS.to_vec();
    while let Some(path) = open.pop() {
        let Some((path, document)) = documents.get_key_value(path) else { continue };
        if !reached.insert(path) {
            continue;
        }
        for link in links(&document.text) {
            let target = link.target.split('#').next().unwrap_or_default();
            if let Some((to, _)) = resolve(path, target).and_then(|to| documents.get_key_value(to.as_str())) {
                open.push(to);
            }
        }
    }
    let lost = documents.keys().filter(|path| path.starts_with("docs/") && !reached.contains(**path));
    lost.map(|path| Finding::whole(path, REACH_RULE, "no document links to it; add a link to docs/README.md")).collect()
}

/// Reports a change log without a section for unreleased changes.
pub fn check_changelog(files: &[TextFile]) -> Option<Finding> {
    let changelog = files.iter().find(|file| file.path == "CHANGELOG.md");
    let has_section = changelog.is_some_and(|file| {
        file.text.lines().any(|line| matches!(line.trim_end(), "## Unreleased" | "## [Unreleased]"))
    });
    let message = "needs a section `## [Unreleased]` with a line for each change";
    (!has_section).then(|| Finding::whole("CHANGELOG.md", CHANGELOG_RULE, message))
}

fn documents(files: &[TextFile]) -> BTreeMap<&str, &TextFile> {
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    documents.map(|file| (file.path.as_str(), file)).collect()
}

/// Links to other files and headings, outside of code.
fn links(text: &str) -> Vec<DocumentLink> {
    let mut links = Vec::new();
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        // Every second piece between backticks is code.
        for prose in line.split('`').step_by(2) {
            links.extend(targets(prose).map(|target| DocumentLink { line: index + 1, target: target.to_owned() }));
        }
        // A link whose text is code: `[`name`](target)` is cut by the split above.
        if line.contains("`](") {
            let cut = line.match_indices("`](").map(|(at, _)| &line[at + 1..]);
            let found = cut.flat_map(|rest| targets(rest).take(1));
            links.extend(found.map(|target| DocumentLink { line: index + 1, target: target.to_owned() }));
        }
    }
    links.dedup();
    links
}

fn targets(prose: &str) -> impl Iterator<Item = &str> {
    let ends = prose.match_indices("](").filter_map(|(at, _)| prose[at + 2..].split_once(')'));
    let targets = ends.map(|(target, _)| target.split_whitespace().next().unwrap_or_default());
    targets.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

/// Resolves `target` relative to the folder of `from`. `None` if it is outside of the workspace.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn exists(files: &[TextFile], path: &str) -> bool {
    let as_folder = format!("{path}/");
    files.iter().any(|file| file.path == path || file.path.starts_with(&as_folder))
}

fn has_heading(document: Option<&&TextFile>, anchor: &str) -> bool {
    let Some(document) = document else { return true };
    let headings = document.text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| slug(line.trim_start_matches('#').trim())).any(|slug| slug == anchor)
}

/// Converts a heading to its anchor: lower case, dashes for spaces, no punctuation.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(texts: &[(&str, &str)]) -> Vec<TextFile> {
        texts.iter().map(|(path, text)| TextFile { path: (*path).to_owned(), text: (*text).to_owned() }).collect()
    }

    #[test]
    fn finds_links_without_a_target() {
        let guide = ("docs/guide/a.md", "# A thing, and more\n");
        for (text, message) in [
            ("[a](guide/a.md)", None),
            ("[a](guide/a.md#a-thing-and-more)", None),
            ("[`a`](guide/a.md)", None),
            ("[a](https://example.com/x)", None),
            ("[up](../docs)", None),
            ("`[a](b.md)`", None),
            ("```\n[a](b.md)\n```", None),
            ("[a](b.md)", Some("there is no `docs/b.md`")),
            ("[`a`](b.md)", Some("there is no `docs/b.md`")),
            ("[a](../../b.md)", Some("is outside")),
            ("[a](guide/a.md#other)", Some("no heading `#other`")),
            ("[a](#here)", Some("no heading `#here`")),
        ] {
            let findings = check_links(&files(&[("docs/x.md", text), guide]));
            match message {
                None => assert_eq!(findings, [], "{text}"),
                Some(message) => assert!(findings[0].message.contains(message), "{text}: {findings:?}"),
            }
        }
    }

    #[test]
    fn finds_unreachable_documents() {
        let all = files(&[
            ("README.md", "[docs](docs/README.md)"),
            ("docs/README.md", "[a](guide/a.md)"),
            ("docs/guide/a.md", "[b](b.md)"),
            ("docs/guide/b.md", ""),
            ("docs/guide/lost.md", "[a](a.md)"),
        ]);
        let places: Vec<String> = check_reach(&all).into_iter().map(|finding| finding.place).collect();
        assert_eq!(places, ["docs/guide/lost.md"]);
    }

    #[test]
    fn change_log_needs_an_unreleased_section() {
        assert_eq!(check_changelog(&files(&[("CHANGELOG.md", "# Changes\n\n## [Unreleased]\n")])), None);
        assert!(check_changelog(&files(&[("CHANGELOG.md", "# Changes\n")])).is_some());
        assert!(check_changelog(&[]).is_some());
    }
}
