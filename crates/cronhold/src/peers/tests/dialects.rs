//! Definitions whose meaning depends on who reads them, while nodes of another kind come and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::Job;
use cronhold_core::command::Command;
use cronhold_core::job::Schedule;
use cronhold_core::record::Source;
use cronhold_schedule::cron::CronExpr;
use cronhold_schedule::{Spec, Timing, Zones};
use serde_json::{Value, json};

use super::super::look::Looker;
use super::place::{Member, Place, in_executor, job_id};
use super::shell;

/// Definitions with the day that they mean to cron and to Cronken's nodes.
const AFFECTED: [(&str, &str, &str, &str); 2] =
    [("weekly", "0 0 * * 0", "Sunday", "Monday"), ("both", "0 0 13 * 5", "Friday", "Saturday")];

fn definition(cronstring: &str) -> String {
    json!({"cron_args": {"cronstring": cronstring}, "job_args": {"cmd": "true", "lock": true, "ttl": 10}}).to_string()
}

/// How often a job was put, and when it runs.
async fn state(place: &Place, id: &str) -> (u32, String) {
    let record = place.job(id).await.expect("it is there");
    (record.revision, record.job.schedules[0].spec.words(id))
}

fn cronstring(place: &Place, id: &str) -> Option<Value> {
    Some(place.read(id)?["cron_args"]["cronstring"].clone())
}

/// What others have written stays as they wrote it. What we make of it depends on who is there.
#[test]
fn definitions_of_others_are_read_again_and_never_rewritten() {
    in_executor(async || {
        let place = Place::new(false);
        let mut node = Member::start(1, &place).await;
        for (id, text, ..) in AFFECTED {
            place.write(id, Some(&definition(text)));
        }
        place.write("daily", Some(&definition("@daily")));
        node.put("ours", Job { schedules: schedules("0 3 * * 1"), ..shell("true") }, Source::Api).await;
        node.look().await;
        for has_foreign in [true, false, true] {
            let before = [state(&place, "weekly").await.0, state(&place, "both").await.0];
            place.set_foreign(has_foreign);
            // Whoever was not there when it changed knows it too.
            if !has_foreign {
                node = Member::start(2, &place).await;
            }
            let said = node.look_says().await.join("\n");
            for ((id, text, to_cron, to_cronken), before) in AFFECTED.into_iter().zip(before) {
                let means = if has_foreign { to_cronken } else { to_cron };
                let (revision, words) = state(&place, id).await;
                assert!(revision == before + 1 && words.contains(means), "{revision} {words}");
                assert_eq!(cronstring(&place, id), Some(json!(text)), "nobody but its writer changes it");
                assert_eq!(said.matches(&format!("shared job {id} is read as")).count(), 1, "{said}");
                assert!(said.contains(&format!("means another time: {words}")), "{said}");
            }
            assert_eq!((state(&place, "daily").await.0, cronstring(&place, "daily")), (1, Some(json!("@daily"))));
            assert_eq!((state(&place, "ours").await.0, cronstring(&place, "ours")), (1, Some(json!("0 3 * * mon"))));
            assert!(node.look_says().await.is_empty(), "nothing is left to be done");
        }
    });
}

#[test]
fn a_change_made_here_is_written_whoever_reads_it() {
    in_executor(async || {
        let place = Place::new(true);
        let mut node = Member::start(1, &place).await;
        place.write("weekly", Some(&definition("0 0 * * 0")));
        node.look().await;
        // It says the same as the text would to cron, and that is another time than the one that it has.
        let job = place.job("weekly").await.expect("there").job.clone();
        node.put("weekly", Job { schedules: schedules("0 0 * * 0"), ..(*job).clone() }, Source::Foreign).await;
        node.look().await;
        assert_eq!(state(&place, "weekly").await, (2, "At 00:00 on Sunday".to_owned()));
        assert_eq!(cronstring(&place, "weekly"), Some(json!("0 0 * * sun")));
    });
}

/// A command has no log that could say that something runs at another time.
#[test]
fn commands_leave_it_to_nodes() {
    in_executor(async || {
        let place = Place::new(false);
        let mut node = Member::start(1, &place).await;
        place.write("weekly", Some(&definition("0 0 * * 0")));
        node.look().await;
        place.set_foreign(true);
        let zones = Arc::new(Zones::bundled());
        let command = Looker::new(Arc::clone(&node.store), node.handle.clone(), zones).of_command();
        let of_node = std::mem::replace(&mut node.looker, command);
        assert!(node.look_says().await.is_empty());
        assert_eq!(state(&place, "weekly").await.0, 1);
        // What was changed here is shown all the same.
        node.ask(Command::Pause { job: Some(job_id("weekly")), why: String::new() }).await;
        node.look().await;
        assert_eq!(place.read("weekly").expect("there")["job_state"]["paused"], json!(true));
        assert_eq!(state(&place, "weekly").await.0, 1);
        assert_eq!(cronstring(&place, "weekly"), Some(json!("0 0 * * 0")));
        node.looker = of_node;
        node.look().await;
        assert_eq!(state(&place, "weekly").await.0, 2);
    });
}

#[test]
fn a_node_that_follows_reads_again_when_company_comes() {
    in_executor(async || {
        let place = Place::new(false);
        place.write("weekly", Some(&definition("0 0 * * 0")));
        let node = Member::start(1, &place).await;
        node.follow().await;
        assert_eq!(state(&place, "weekly").await.1, "At 00:00 on Sunday");
        place.set_foreign(true);
        node.until(async || node.said().contains("means another time: At 00:00 on Monday")).await;
        let said = node.said();
        let [company, time] = ["run the same jobs from now on", "means another time"].map(|words| said.find(words));
        assert!(company < time && company.is_some(), "{said}");
    });
}

#[test]
fn what_may_surprise_is_noted_once() {
    in_executor(async || {
        let place = Place::new(false);
        let node = Member::start(1, &place).await;
        place.write("weekly", Some(&definition("0 0 * * 0")));
        place.write("typo", Some(&definition("0 3 * * *").replace("\"cronstring\"", "\"hours\": 3, \"cronstring\"")));
        place.write("plain", Some(&definition("0 3 * * *")));
        node.follow().await;
        let noted = || node.said().matches("note: shared job").count();
        node.until(async || noted() == 2).await;
        assert!(node.said().contains("note: shared job weekly: cron_args.cronstring: weekday 0 is Sunday here"));
        assert!(node.said().contains("note: shared job typo: cron_args.hours: there is no such field"));
        // A look at everything, after a change that says nothing of time.
        place.write("weekly", Some(&definition("0 0 * * 0").replace("\"cmd\":\"true\"", "\"cmd\":\"echo\"")));
        place.write("late", Some(&definition("0 0 * * 1")));
        node.bell.want_all_anew();
        node.until(async || node.said().contains("note: shared job late")).await;
        assert_eq!(noted(), 3, "{}", node.said());
    });
}

/// Schedules of a job that is made here.
fn schedules(text: &str) -> Vec<Schedule> {
    let spec = Spec::new(Timing::Cron(CronExpr::parse(text).expect("an expression")));
    vec![Schedule { name: None, spec, args: BTreeMap::new(), enabled: true, stop: None }]
}
