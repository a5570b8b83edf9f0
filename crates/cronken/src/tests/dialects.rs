//! Definitions that mean different times to cron and to Cronken's nodes, while those nodes come and go.

use std::sync::Arc;

use cronhold_core::Job;
use cronhold_core::NameMap;
use cronhold_core::command::Command;
use cronhold_core::job::JobSchedule;
use cronhold_core::record::JobSource;
use cronhold_schedule::cron::CronExpr;
use cronhold_schedule::{ScheduleSpec, Timing, ZoneRegistry};
use serde_json::{Value, json};

use super::cluster::{SharedTestStore, TestNode, in_executor, job_id};
use super::shell;
use crate::reconciler::Reconciler;
use crate::report::SharedJobReport;

/// Definitions with the day that they mean to cron and the day that they mean to Cronken's nodes.
const AFFECTED: [(&str, &str, &str, &str); 2] =
    [("weekly", "0 0 * * 0", "Sunday", "Monday"), ("both", "0 0 13 * 5", "Friday", "Saturday")];

fn definition(cronstring: &str) -> String {
    json!({"cron_args": {"cronstring": cronstring}, "job_args": {"cmd": "true", "lock": true, "ttl": 10}}).to_string()
}

/// The revision of a job, and its times in words.
async fn state(shared: &SharedTestStore, id: &str) -> (u32, String) {
    let record = shared.job(id).await.expect("it is there");
    (record.revision, record.job.schedules[0].spec.words(id))
}

/// The times that a job was reported to have by other rules.
fn reread_times(reports: &[SharedJobReport], id: &str) -> Vec<String> {
    let times = reports.iter().filter_map(|report| match report {
        SharedJobReport::ScheduleReread { job, times, .. } if job.as_str() == id => Some(times.join("; ")),
        _ => None,
    });
    times.collect()
}

fn cronstring(shared: &SharedTestStore, id: &str) -> Option<Value> {
    Some(shared.read(id)?["cron_args"]["cronstring"].clone())
}

#[test]
fn definitions_are_read_again_and_not_rewritten_when_cronken_nodes_come_or_go() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let mut node = TestNode::start(1, &shared).await;
        for (id, text, ..) in AFFECTED {
            shared.write(id, Some(&definition(text)));
        }
        shared.write("daily", Some(&definition("@daily")));
        node.put("ours", Job { schedules: schedules("0 3 * * 1"), ..shell("true") }, JobSource::Api).await;
        node.reconcile().await;
        for has_foreign in [true, false, true] {
            let before = [state(&shared, "weekly").await.0, state(&shared, "both").await.0];
            shared.set_foreign(has_foreign);
            // A node that starts after the change follows it too.
            if !has_foreign {
                node = TestNode::start(2, &shared).await;
            }
            let reports = node.reconcile_reports().await;
            for ((id, text, to_cron, to_cronken), before) in AFFECTED.into_iter().zip(before) {
                let means = if has_foreign { to_cronken } else { to_cron };
                let (revision, words) = state(&shared, id).await;
                assert!(revision == before + 1 && words.contains(means), "{revision} {words}");
                assert_eq!(cronstring(&shared, id), Some(json!(text)), "only its writer changes it");
                assert_eq!(reread_times(&reports, id), [words], "{reports:?}");
            }
            assert_eq!((state(&shared, "daily").await.0, cronstring(&shared, "daily")), (1, Some(json!("@daily"))));
            assert_eq!((state(&shared, "ours").await.0, cronstring(&shared, "ours")), (1, Some(json!("0 3 * * mon"))));
            assert!(node.reconcile_reports().await.is_empty(), "everything agrees");
        }
    });
}

#[test]
fn change_of_a_job_is_written_in_both_dialects() {
    in_executor(async || {
        let shared = SharedTestStore::new(true);
        let mut node = TestNode::start(1, &shared).await;
        shared.write("weekly", Some(&definition("0 0 * * 0")));
        node.reconcile().await;
        // Cron reads the same text as different times than the job has.
        let job = shared.job("weekly").await.expect("there").job.clone();
        node.put("weekly", Job { schedules: schedules("0 0 * * 0"), ..(*job).clone() }, JobSource::Foreign).await;
        node.reconcile().await;
        assert_eq!(state(&shared, "weekly").await, (2, "At 00:00 on Sunday".to_owned()));
        assert_eq!(cronstring(&shared, "weekly"), Some(json!("0 0 * * sun")));
    });
}

/// A command has no log to report that a job runs at other times.
#[test]
fn command_does_not_read_definitions_by_other_rules() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let mut node = TestNode::start(1, &shared).await;
        shared.write("weekly", Some(&definition("0 0 * * 0")));
        node.reconcile().await;
        shared.set_foreign(true);
        let zones = Arc::new(ZoneRegistry::bundled());
        let command = Reconciler::new(Arc::clone(&node.store), node.handle.clone(), zones).for_command();
        let of_node = std::mem::replace(&mut node.reconciler, command);
        assert!(node.reconcile_reports().await.is_empty());
        assert_eq!(state(&shared, "weekly").await.0, 1);
        // A change made here is still shown.
        node.ask(Command::Pause { job: Some(job_id("weekly")), why: String::new(), until: None }).await;
        node.reconcile().await;
        assert_eq!(shared.read("weekly").expect("there")["job_state"]["paused"], json!(true));
        assert_eq!(state(&shared, "weekly").await.0, 1);
        assert_eq!(cronstring(&shared, "weekly"), Some(json!("0 0 * * 0")));
        node.reconciler = of_node;
        node.reconcile().await;
        assert_eq!(state(&shared, "weekly").await.0, 2);
    });
}

#[test]
fn follower_reads_definitions_again_when_cronken_nodes_arrive() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        shared.write("weekly", Some(&definition("0 0 * * 0")));
        let node = TestNode::start(1, &shared).await;
        node.follow().await;
        assert_eq!(state(&shared, "weekly").await.1, "At 00:00 on Sunday");
        shared.set_foreign(true);
        node.until(async || reread_times(&node.reports(), "weekly") == ["At 00:00 on Monday"]).await;
        let reports = node.reports();
        let arrived = reports.iter().position(|report| *report == SharedJobReport::ForeignNodesArrived);
        let reread = reports.iter().position(|report| matches!(report, SharedJobReport::ScheduleReread { .. }));
        assert!(arrived < reread && arrived.is_some(), "{reports:?}");
    });
}

#[test]
fn surprising_definition_is_noted_once() {
    in_executor(async || {
        let shared = SharedTestStore::new(false);
        let node = TestNode::start(1, &shared).await;
        shared.write("weekly", Some(&definition("0 0 * * 0")));
        shared.write("typo", Some(&definition("0 3 * * *").replace("\"cronstring\"", "\"hours\": 3, \"cronstring\"")));
        shared.write("plain", Some(&definition("0 3 * * *")));
        node.follow().await;
        let noted = || noted_fields(&node.reports());
        node.until(async || noted().len() == 2).await;
        assert_eq!(noted(), [("typo", "cron_args.hours"), ("weekly", "cron_args.cronstring")].map(owned));
        // All definitions are read again, after a change that leaves the schedule alone.
        shared.write("weekly", Some(&definition("0 0 * * 0").replace("\"cmd\":\"true\"", "\"cmd\":\"echo\"")));
        shared.write("late", Some(&definition("0 0 * * 1")));
        node.requests.reload();
        node.until(async || noted().len() == 3).await;
        assert_eq!(noted()[2], owned(("late", "cron_args.cronstring")));
    });
}

/// The jobs and fields that were noted.
fn noted_fields(reports: &[SharedJobReport]) -> Vec<(String, String)> {
    let noted = reports.iter().filter_map(|report| match report {
        SharedJobReport::DefinitionNote { job, note } => Some((job.to_string(), note.path.clone())),
        _ => None,
    });
    noted.collect()
}

fn owned((job, path): (&str, &str)) -> (String, String) {
    (job.to_owned(), path.to_owned())
}

/// The schedules of a job that Cronhold creates.
fn schedules(text: &str) -> Vec<JobSchedule> {
    let spec = ScheduleSpec::new(Timing::Cron(CronExpr::parse(text).expect("an expression")));
    vec![JobSchedule { name: None, spec, args: NameMap::new(), enabled: true, stop: None }]
}
