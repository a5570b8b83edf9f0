//! `resume all` on Redis.

use crate::resume_all::assert_live_job_overtakes;
use crate::sandbox::Sandbox;

#[test]
fn live_job_overtakes_thousands_of_resumed_jobs() {
    let sandbox = Sandbox::new("resume-all");
    sandbox.put("jobs/.keep", "");
    let node = sandbox.up("one", &["--jobs", "jobs"]);
    let put = |job: &str, yaml: &str| sandbox.put(&format!("jobs/{job}.yaml"), yaml);
    assert_live_job_overtakes(put, |args| sandbox.done(args));
    node.stop();
}
