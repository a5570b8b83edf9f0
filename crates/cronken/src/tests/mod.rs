//! Jobs and events shared with Cronken, on a store in memory: what one reconciliation does, and what nodes do that follow.

mod cluster;
mod dialects;
mod events;

use cronhold_core::command::{Command, Precondition};
use cronhold_core::job::Program;
use cronhold_core::record::JobSource;
use cronhold_core::{Job, template::Template};
use cronhold_schedule::Span;
use serde_json::json;

use self::cluster::{SharedTestStore, TestNode, in_executor, job_id};
use crate::reconciler::{AlreadyNotified, ReconcileResult};
use crate::report::SharedJobReport;
use crate::snapshot::JobScope;

const DAILY: &str = r#"{"cron_args": {"cronstring": "@daily"}, "job_args": {"cmd": "true", "lock": true, "ttl": 10}}"#;
const HOURLY: &str =
    r#"{"cron_args": {"cronstring": "@hourly"}, "job_args": {"cmd": "true", "lock": true, "ttl": 10}}"#;

impl TestNode {
    async fn reconcile(&mut self) -> ReconcileResult {
        let known = AlreadyNotified::default();
        self.reconciler.reconcile(&JobScope::All, false, &known).await.expect("the store works")
    }

    /// Reconciles all jobs and returns the reports, without notes.
    async fn reconcile_reports(&mut self) -> Vec<SharedJobReport> {
        let reports = self.reconcile().await.reports.into_iter();
        reports.filter(|report| !matches!(report, SharedJobReport::DefinitionNote { .. })).collect()
    }
}

fn jobs_changed(changed: &[&str], removed: &[&str]) -> SharedJobReport {
    let [changed, removed] = [changed, removed].map(|ids| ids.iter().copied().map(job_id).collect());
    SharedJobReport::JobsChanged { changed, removed }
}

fn shell(line: &str) -> Job {
    Job::new(Program::Shell(Template::literal(line)))
}

#[test]
fn definitions_create_jobs_and_jobs_create_definitions() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let mut node = TestNode::start(1, &shared).await;
        shared.write("theirs", Some(DAILY));
        node.put("ours", shell("echo ours"), JobSource::Api).await;
        let reports = node.reconcile_reports().await;
        assert_eq!(reports[0], jobs_changed(&["theirs"], &[]));
        let theirs = shared.job("theirs").await.expect("it is created");
        assert_eq!((theirs.source.clone(), theirs.revision), (JobSource::Foreign, 1));
        let ours = shared.read("ours").expect("it is written");
        assert_eq!(
            (&ours["job_args"]["cmd"], &ours["cron_args"]["cronstring"]),
            (&json!("echo ours"), &json!("@never"))
        );
        assert!(node.reconcile_reports().await.is_empty(), "nothing is left to be done");

        shared.write("theirs", Some(HOURLY));
        node.reconcile().await;
        assert_eq!(shared.job("theirs").await.expect("there").revision, 2);
        node.ask(Command::Pause { job: Some(job_id("theirs")), why: String::new(), until: None }).await;
        node.reconcile().await;
        assert_eq!(shared.read("theirs").expect("there")["job_state"], json!({"paused": true}));

        shared.write("theirs", None);
        assert_eq!(node.reconcile_reports().await, [jobs_changed(&[], &["theirs"])]);
        assert!(shared.job("theirs").await.is_none());
        node.ask(Command::RemoveJob { id: job_id("ours"), source: JobSource::Api, provided: Precondition::Any }).await;
        node.reconcile().await;
        assert_eq!(shared.read("ours"), None, "a definition is removed with its job");
    });
}

#[test]
fn invalid_definition_is_reported_once_and_leaves_other_jobs_alone() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let mut node = TestNode::start(1, &shared).await;
        shared.write("good", Some(DAILY));
        node.reconcile().await;
        shared.write("good", Some("{"));
        shared.write("bad", Some(r#"{"cron_args": {"cronstring": "every day"}, "job_args": {}}"#));
        shared.write("a#b", Some(DAILY));
        shared.write("last", Some(DAILY));
        let reports = node.reconcile_reports().await;
        let invalid = |id: &str| {
            let found = reports.iter().find_map(|report| match report {
                SharedJobReport::DefinitionInvalid { job, mistakes, has_job } if job.as_str() == id => {
                    Some((mistakes.iter().map(|mistake| mistake.path.as_str()).collect::<Vec<_>>(), *has_job))
                }
                _ => None,
            });
            found.expect("it is reported")
        };
        assert_eq!(invalid("good"), (vec![""], true));
        let missing = ["job_args.cmd", "job_args.lock", "job_args.ttl"];
        assert_eq!(invalid("bad"), ([&["cron_args.cronstring"], &missing[..]].concat(), false));
        let is_name =
            |report: &SharedJobReport| matches!(report, SharedJobReport::InvalidName { name, .. } if name == "a#b");
        assert!(reports.iter().any(is_name), "{reports:?}");
        assert_eq!(shared.job("good").await.expect("it stays").revision, 1);
        assert!(shared.job("last").await.is_some(), "the other jobs are created");
        assert!(node.reconcile_reports().await.is_empty(), "it was already reported");
        let invalid = node.reconciler.invalid_definitions();
        let shown: Vec<&str> = invalid.iter().map(|invalid| invalid.job.as_str()).collect();
        assert_eq!(shown, ["bad", "bad", "bad", "bad", "good"]);
        shared.write("bad", Some(DAILY));
        let reports = node.reconcile_reports().await;
        assert_eq!(reports[0], SharedJobReport::DefinitionFixed { job: job_id("bad") });
        assert!(shared.job("bad").await.is_some());
    });
}

#[test]
fn validation_marks_invalid_definitions_once() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let mut node = TestNode::start(1, &shared).await;
        shared.write("good", Some(DAILY));
        shared.write("bad", Some(r#"{"cron_args": {}, "job_args": {"cmd": "", "lock": true, "ttl": 1}, "x": 1}"#));
        shared.write("other", Some(r#"{"cron_args": {}}"#));
        shared.write("broken", Some("no JSON"));
        assert_eq!(node.reconciler.validate(&["bad".to_owned(), "nobody".to_owned()]).await, Ok(1));
        assert_eq!(node.reconciler.validate(&[]).await, Ok(1), "a marked definition is not marked again");
        let bad = shared.read("bad").expect("there");
        let errors = bad["job_state"]["validation_errors"].as_str().expect("a text");
        assert!(errors.contains("job_args.cmd: `cmd` is empty"), "{errors}");
        assert_eq!(bad["x"], json!(1), "unknown fields stay");
        node.reconcile().await;
        assert!(
            shared.read("bad").is_some() && shared.job("bad").await.is_none(),
            "the definition stays for its writer to fix"
        );
        shared.write("bad", Some(DAILY));
        node.reconcile().await;
        assert!(shared.job("bad").await.is_some());
    });
}

#[test]
fn loss_of_everything_at_once_removes_nothing() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let mut node = TestNode::start(1, &shared).await;
        shared.write("a", Some(DAILY));
        shared.write("b", Some(DAILY));
        node.reconcile().await;
        shared.lose_definitions();
        assert_eq!(node.reconcile_reports().await[0], SharedJobReport::AllDefinitionsLost { kept: 2 });
        assert!(shared.read("a").is_some() && shared.read("b").is_some(), "they are written again");

        for id in ["a", "b"] {
            node.ask(Command::RemoveJob { id: job_id(id), source: JobSource::Foreign, provided: Precondition::Any })
                .await;
        }
        node.reconcile().await;
        assert!(shared.read("a").is_some(), "definitions are kept until the next reconciliation");
        node.reconcile().await;
        assert_eq!(shared.job_count().await, 2, "they are created again");
    });
}

#[test]
fn change_of_a_definition_does_not_change_a_job_from_a_file() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let mut node = TestNode::start(1, &shared).await;
        let source = JobSource::Directory(String::new());
        node.put("a", Job { timeout: Some(Span::from_secs(9)), ..shell("echo a") }, source).await;
        node.reconcile().await;
        let before = shared.read("a").expect("written");
        shared.write("a", Some(DAILY));
        assert_eq!(node.reconcile_reports().await[0], SharedJobReport::Overruled { job: job_id("a") });
        assert_eq!(shared.read("a"), Some(before));
        shared.write("a", None);
        node.reconcile().await;
        assert!(shared.job("a").await.is_some() && shared.read("a").is_some());
    });
}

#[test]
fn ten_thousand_definitions_are_reconciled_at_once() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let mut node = TestNode::start(1, &shared).await;
        for number in 0..10_000 {
            shared.write(&format!("job{number}"), Some(DAILY));
        }
        let result = node.reconcile().await;
        assert!(!result.retry_soon, "everything is done at once");
        assert_eq!(shared.job_count().await, 10_000);
        assert!(node.reconcile_reports().await.is_empty());
    });
}
