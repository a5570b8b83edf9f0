//! Checks that the committed documents are up to date, and that the schema agrees with the reader as far as a schema can.

use std::fs;
use std::path::Path;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use super::{markdown, schema};
use crate::read::{Options, read_job_of_any_version};
use crate::write::write_job;
use crate::yaml;

/// The schema of job files, ready to check values.
struct Validator {
    schemas: Schemas,
    root: SchemaIndex,
}

impl Validator {
    fn new() -> Self {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.add_resource("job.schema.json", schema()).expect("the schema is JSON");
        let root = compiler.compile("job.schema.json", &mut schemas).expect("the schema is a schema");
        Self { schemas, root }
    }

    /// The schema's error for a value; `None` if it is valid.
    fn error(&self, value: &Value) -> Option<String> {
        self.schemas.validate(value, self.root).err().map(|error| format!("{error:#}"))
    }
}

fn folder(name: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    let entries = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    entries.map(|path| (path.display().to_string(), fs::read_to_string(path).expect("a text"))).collect()
}

#[test]
fn committed_documents_are_up_to_date() {
    for (name, what, generated) in
        [("job.schema.json", "schema", format!("{:#}\n", schema())), ("jobfile.md", "markdown", markdown())]
    {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
        let committed = fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == generated,
            "docs/reference/{name} is out of date; regenerate it with \
             `cargo run -p cronhold-jobfile --example reference -- {what} > docs/reference/{name}`"
        );
    }
}

#[test]
fn good_files_fit_the_schema() {
    let validator = Validator::new();
    for (name, text) in folder("good") {
        let json = yaml::parse(&name, &text).0.expect("a tree").to_json();
        assert_eq!(validator.error(&json), None, "{name}");
        let job = read_job_of_any_version(&name, &text, &Options::default()).job.expect(&name);
        let written = write_job(&job);
        assert_eq!(validator.error(&written), None, "{name}: {written:#}");
    }
}

#[test]
fn schema_and_reader_reject_the_same() {
    let validator = Validator::new();
    for text in [
        "{}",
        "[]",
        "program: []",
        "program: {}",
        "program: true",
        "program: {shell: a, exec: [b]}",
        "program: {http: example.org}",
        "program: {http: {method: GET}}",
        "program: {http: {url: 'https://x', method: GET IT}}",
        "program: {http: {url: 'https://x', expect: 600}}",
        "{program: x, colour: red}",
        "{program: x, labels: eod}",
        "{program: x, params: {2nd: {}}}",
        "{program: x, params: {a: {choices: []}}}",
        "{program: x, schedule: {}}",
        "{program: x, schedule: {every: 1m, cron: '* * * * *'}}",
        "{program: x, schedule: {every: 1m, interval: 1m}, paused: 1}",
        "{program: x, schedule: {triggered: false}}",
        "{program: x, schedule: {daily: noon}}",
        "{program: x, schedule: {every: 1m, gap: both}}",
        "{program: x, schedule: {type: weekly}}",
        "{program: x, schedule: {daily_interval: {from: '09:00'}}}",
        "{program: x, overlap: wait}",
        "{program: x, overlap: {queue: {limit: 0}}}",
        "{program: x, catch_up: newest}",
        "{program: x, retry: 0}",
        "{program: x, retry: {factor: 0.5}}",
        "{program: x, retry: {on: []}}",
        "{program: x, success_codes: [256]}",
        "{program: x, success_codes: []}",
        "{program: x, umask: '888'}",
        "{program: x, limits: 1G}",
        "{program: x, limits: {memory: 512}}",
        "{program: x, limits: {memory: 1PB}}",
        "{program: x, limits: {cpu: 0}}",
        "{program: x, limits: {pids: 0}}",
        "{program: x, limits: {core: -1}}",
        "{program: x, limits: {swap: 1G}}",
        "{program: x, nodes: every}",
        "{program: x, env: {A-B: x}}",
        "{program: x, env: {A: {file: a, env: B}}}",
        "{program: x, conditions: [{timeout: 1m}]}",
        "{program: x, conditions: [{after: {}}]}",
        "{program: x, conditions: [{after: {job: a, states: [done]}}]}",
        "{program: x, conditions: [{max_running: 0}]}",
        "{program: x, conditions: [{all: []}]}",
        "{program: x, on: {done: []}}",
        "{program: x, on: {success: [{publish: alerts}]}}",
        "{program: x, on: {success: [{email: {to: []}}]}}",
        "{program: x, triggers: [alerts]}",
        "{program: x, retain: {success: -1}}",
        "{program: x, timeout: -5}",
        "{program: x, paused: yes}",
    ] {
        let (node, _) = yaml::parse("x.yaml", text);
        assert!(validator.error(&node.expect("a tree").to_json()).is_some(), "the schema accepts {text}");
        let read = read_job_of_any_version("x.yaml", text, &Options::default());
        assert!(!read.mistakes.is_empty(), "the reader accepts {text}");
    }
}
