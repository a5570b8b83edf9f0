//! `resume all` on the embedded store.

use super::daemon::{Sandbox, transcript};
use super::resume_all::assert_live_job_overtakes;

#[test]
fn live_job_overtakes_thousands_of_resumed_jobs() {
    let sandbox = Sandbox::new("resume-all");
    let daemon = sandbox.up();
    let command = |args: &[&str]| {
        let text = transcript(&mut sandbox.verb(args));
        text.strip_suffix("exit 0\n").unwrap_or_else(|| panic!("{args:?}: {text}")).to_owned()
    };
    assert_live_job_overtakes(|job, yaml| sandbox.put_job(job, yaml), command);
    assert_eq!(daemon.stop().0.code(), Some(0));
}
