//! Arbitrary text as a job file: either mistakes that point into it and can be rendered, or a job that is written and
//! read back unchanged.

#![no_main]

use cronhold_jobfile::{Options, Style, read_job, render, render_line, write_job};
use libfuzzer_sys::fuzz_target;

/// Maximum number of mistakes reported for any file.
const MISTAKES_MAX: usize = 1000;

fuzz_target!(|text: &str| {
    let options = Options::default();
    let read = read_job("job.yaml", text, &options);
    assert_eq!(read.job.is_some(), read.mistakes.is_empty());
    assert!(read.mistakes.len() <= MISTAKES_MAX);
    for mistake in &read.mistakes {
        assert!(mistake.at.start <= mistake.at.end && mistake.at.end <= text.len(), "{mistake:?}");
        assert!(!mistake.message.is_empty());
        assert!(!render_line(mistake, text).is_empty());
    }
    for mistake in read.mistakes.iter().take(3) {
        assert!(!render(mistake, text, Style::Plain).is_empty());
    }
    if let Some(job) = read.job {
        let written = write_job(&job).to_string();
        let again = read_job("job.yaml", &written, &options);
        assert!(again.mistakes.is_empty(), "{written}: {:?}", again.mistakes);
        assert_eq!(again.job.as_ref(), Some(&job), "{written}");
    }
});
