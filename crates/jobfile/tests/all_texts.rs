//! Every text that a job accepts, in any of its keys, is written so that it reads back: as the JSON that stores keep, as
//! a job file, and as the JSON that clients send.

use cronhold_core::Job;
use cronhold_jobfile::{Options, escape_unprintable, read_job_of_any_version, read_stored_job, to_yaml, write_job};
use proptest::prelude::*;
use serde_json::Value;

/// Characters that some writer, reader or store could treat in a special way.
const SIGNS: [&str; 30] = [
    "\0",
    "\u{1}",
    "\u{1b}",
    "\u{7f}",
    "\u{80}",
    "\u{85}",
    "\u{92}",
    "\u{9f}",
    "\u{a0}",
    "\u{ad}",
    "\u{200b}",
    "\u{2028}",
    "\u{2029}",
    "\u{202e}",
    "\u{2066}",
    "\u{d7ff}",
    "\u{e000}",
    "\u{fdd0}",
    "\u{feff}",
    "\u{fffd}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{1f600}",
    "\u{10ffff}",
    "\r",
    "\r\n",
    "\n",
    "\t",
    "\\u0092",
    "\"'",
];

/// The jobs of all example files, in the form that stores keep.
fn jobs() -> Vec<(String, Value)> {
    let mut jobs = Vec::new();
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/good")).expect("the folder") {
        let path = file.expect("a file").path();
        let (name, text) = (path.display().to_string(), std::fs::read_to_string(&path).expect("a text"));
        let job = read_job_of_any_version(&name, &text, &Options::default()).job.expect(&name);
        jobs.push((name, write_job(&job)));
    }
    jobs
}

/// The number of texts in a value, keys of maps included.
fn count(value: &Value) -> usize {
    match value {
        Value::String(_) => 1,
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(entries) => entries.values().map(|value| 1 + count(value)).sum(),
        _ => 0,
    }
}

/// The value with its text number `at` replaced.
fn replaced(value: &Value, at: &mut usize, change: &dyn Fn(&str) -> String) -> Value {
    let mut text = |text: &str| {
        let is_it = *at == 0;
        *at = at.wrapping_sub(1);
        if is_it { change(text) } else { text.to_owned() }
    };
    match value {
        Value::String(content) => Value::String(text(content)),
        Value::Array(items) => items.iter().map(|item| replaced(item, at, change)).collect(),
        Value::Object(entries) => {
            let mut changed = serde_json::Map::new();
            for (key, value) in entries {
                let is_it = *at == 0;
                *at = at.wrapping_sub(1);
                let key = if is_it { change(key) } else { key.clone() };
                changed.insert(key, replaced(value, at, change));
            }
            Value::Object(changed)
        }
        other => other.clone(),
    }
}

fn read_stored(text: &str) -> Option<Job> {
    read_stored_job("job", text, &Options::default()).job
}

/// Checks all forms of a job, if it is one. Returns whether it is.
fn assert_survives(definition: &Value) -> bool {
    let Some(job) = read_stored(&definition.to_string()) else { return false };
    let written = write_job(&job);
    assert_eq!(read_stored(&written.to_string()).as_ref(), Some(&job), "stored: {written}");
    let yaml = to_yaml(&written).expect("JSON");
    let file = read_job_of_any_version("job", &yaml, &Options::default());
    assert_eq!(file.job.as_ref(), Some(&job), "as a file: {yaml}\n{:?}", file.mistakes);
    let sent = escape_unprintable(&written.to_string()).into_owned();
    let received = read_job_of_any_version("job", &sent, &Options::default());
    assert_eq!(received.job.as_ref(), Some(&job), "sent: {sent}\n{:?}", received.mistakes);
    true
}

#[test]
fn every_accepted_text_of_a_job_reads_back() {
    let mut accepted = 0;
    for (_, definition) in jobs() {
        for at in 0..count(&definition) {
            for sign in SIGNS {
                let end = replaced(&definition, &mut at.clone(), &|text| format!("{text}{sign}"));
                let start = replaced(&definition, &mut at.clone(), &|text| format!("{sign}{text}"));
                accepted += usize::from(assert_survives(&end)) + usize::from(assert_survives(&start));
            }
        }
    }
    assert!(accepted > 1_000, "{accepted}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_accepted_text_of_a_job_reads_back(job: prop::sample::Index, at: prop::sample::Index, text: String) {
        let jobs = jobs();
        let (_, definition) = job.get(&jobs);
        let changed = replaced(definition, &mut at.index(count(definition)), &|_| text.clone());
        assert_survives(&changed);
    }

    #[test]
    fn any_factor_reads_back(factor in 1.0_f64..1e9) {
        let definition = serde_json::json!({"program": "x", "retry": {"attempts": 3, "factor": factor}});
        let job = read_stored(&definition.to_string()).expect("a job");
        prop_assert_eq!(job.retry.factor, factor);
        assert_survives(&definition);
    }
}
