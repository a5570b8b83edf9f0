//! Jobs and events of other programs, on a store in memory: what one look does, and what nodes do that follow.

mod dialects;
mod events;
mod place;

use cronhold_core::command::{Command, Provided};
use cronhold_core::job::Program;
use cronhold_core::record::Source;
use cronhold_core::{Job, template::Template};
use cronhold_schedule::Span;
use serde_json::json;

use self::place::{Member, Place, in_executor, job_id};
use super::look::{Looked, Quiet};
use super::sight::Scope;

const DAILY: &str = r#"{"cron_args": {"cronstring": "@daily"}, "job_args": {"cmd": "true", "lock": true, "ttl": 10}}"#;
const HOURLY: &str =
    r#"{"cron_args": {"cronstring": "@hourly"}, "job_args": {"cmd": "true", "lock": true, "ttl": 10}}"#;

impl Member {
    async fn look(&mut self) -> Looked {
        self.looker.look(&Scope::All, false, &Quiet::default()).await.expect("the store works")
    }

    /// What one look says.
    async fn look_says(&mut self) -> Vec<String> {
        self.look().await.lines.into_iter().map(|(_, words)| words).collect()
    }
}

fn shell(line: &str) -> Job {
    Job::new(Program::Shell(Template::literal(line)))
}

#[test]
fn definitions_become_jobs_and_jobs_definitions() {
    in_executor(async || {
        let place = Place::new(false);
        let mut node = Member::start(1, &place).await;
        place.write("theirs", Some(DAILY));
        node.put("ours", shell("echo ours"), Source::Api).await;
        let said = node.look_says().await;
        assert_eq!(said[0], "jobs shared with other programs: 1 new or changed (theirs)");
        let theirs = place.job("theirs").await.expect("it is made");
        assert_eq!((theirs.source.clone(), theirs.revision), (Source::Foreign, 1));
        let ours = place.read("ours").expect("it is written");
        assert_eq!(
            (&ours["job_args"]["cmd"], &ours["cron_args"]["cronstring"]),
            (&json!("echo ours"), &json!("@never"))
        );
        assert!(node.look_says().await.is_empty(), "nothing is left to be done");

        place.write("theirs", Some(HOURLY));
        node.look().await;
        assert_eq!(place.job("theirs").await.expect("there").revision, 2);
        node.ask(Command::Pause { job: Some(job_id("theirs")), why: String::new() }).await;
        node.look().await;
        assert_eq!(place.read("theirs").expect("there")["job_state"], json!({"paused": true}));

        place.write("theirs", None);
        assert_eq!(node.look_says().await, ["jobs shared with other programs: 1 removed (theirs)"]);
        assert!(place.job("theirs").await.is_none());
        node.ask(Command::RemoveJob { id: job_id("ours"), source: Source::Api, provided: Provided::Any }).await;
        node.look().await;
        assert_eq!(place.read("ours"), None, "a definition goes with its job");
    });
}

#[test]
fn what_is_wrong_is_said_once_and_harms_nobody() {
    in_executor(async || {
        let place = Place::new(false);
        let mut node = Member::start(1, &place).await;
        place.write("good", Some(DAILY));
        node.look().await;
        place.write("good", Some("{"));
        place.write("bad", Some(r#"{"cron_args": {"cronstring": "every day"}, "job_args": {}}"#));
        place.write("a#b", Some(DAILY));
        place.write("last", Some(DAILY));
        let said = node.look_says().await.join("\n");
        assert!(said.contains("mistake: shared job good: it is not JSON"), "{said}");
        assert!(said.contains("the job stays as it was"), "{said}");
        assert!(said.contains("mistake: shared job bad: cron_args.cronstring: "), "{said}");
        assert!(said.contains("it is not run"), "{said}");
        assert!(said.contains("shared job `a#b` is left alone: `#` cannot be in a job's id"), "{said}");
        assert_eq!(place.job("good").await.expect("it stays").revision, 1);
        assert!(place.job("last").await.is_some(), "others come all the same");
        assert!(node.look_says().await.is_empty(), "it was said");
        let shown: Vec<String> =
            node.looker.mistakes().into_iter().filter_map(|at| Some(at.job?.to_string())).collect();
        assert_eq!(shown, ["bad", "bad", "bad", "bad", "good"]);
        place.write("bad", Some(DAILY));
        let said = node.look_says().await;
        assert_eq!(said[0], "shared job bad: nothing is wrong with it any more");
        assert!(place.job("bad").await.is_some());
    });
}

#[test]
fn validation_notes_what_is_wrong() {
    in_executor(async || {
        let place = Place::new(false);
        let mut node = Member::start(1, &place).await;
        place.write("good", Some(DAILY));
        place.write("bad", Some(r#"{"cron_args": {}, "job_args": {"cmd": "", "lock": true, "ttl": 1}, "x": 1}"#));
        place.write("other", Some(r#"{"cron_args": {}}"#));
        place.write("broken", Some("no JSON"));
        assert_eq!(node.looker.validate(&["bad".to_owned(), "nobody".to_owned()]).await, Ok(1));
        assert_eq!(node.looker.validate(&[]).await, Ok(1), "what is noted is not noted again");
        let bad = place.read("bad").expect("there");
        let errors = bad["job_state"]["validation_errors"].as_str().expect("a text");
        assert!(errors.contains("job_args.cmd: `cmd` is empty"), "{errors}");
        assert_eq!(bad["x"], json!(1), "nothing is lost");
        node.look().await;
        assert!(place.read("bad").is_some() && place.job("bad").await.is_none(), "it stays for whoever mends it");
        place.write("bad", Some(DAILY));
        node.look().await;
        assert!(place.job("bad").await.is_some());
    });
}

/// An empty store is more likely a loss than somebody's wish, on both sides.
#[test]
fn losses_of_everything_remove_nothing() {
    in_executor(async || {
        let place = Place::new(false);
        let mut node = Member::start(1, &place).await;
        place.write("a", Some(DAILY));
        place.write("b", Some(DAILY));
        node.look().await;
        place.lose_definitions();
        let said = node.look_says().await.join("\n");
        assert!(said.contains("the definitions of all 2 shared jobs are gone at once"), "{said}");
        assert!(place.read("a").is_some() && place.read("b").is_some(), "they are written again");

        for id in ["a", "b"] {
            node.ask(Command::RemoveJob { id: job_id(id), source: Source::Foreign, provided: Provided::Any }).await;
        }
        node.look().await;
        assert!(place.read("a").is_some(), "it is looked at twice");
        node.look().await;
        assert_eq!(place.job_count().await, 2, "they are made again");
    });
}

#[test]
fn job_files_win() {
    in_executor(async || {
        let place = Place::new(false);
        let mut node = Member::start(1, &place).await;
        let source = Source::Directory(String::new());
        node.put("a", Job { timeout: Some(Span::from_secs(9)), ..shell("echo a") }, source).await;
        node.look().await;
        let before = place.read("a").expect("written");
        place.write("a", Some(DAILY));
        let said = node.look_says().await.join("\n");
        assert!(said.contains("its job file counts"), "{said}");
        assert_eq!(place.read("a"), Some(before));
        place.write("a", None);
        node.look().await;
        assert!(place.job("a").await.is_some() && place.read("a").is_some());
    });
}

#[test]
fn many_definitions_are_no_problem() {
    in_executor(async || {
        let place = Place::new(false);
        let mut node = Member::start(1, &place).await;
        for number in 0..10_000 {
            place.write(&format!("job{number}"), Some(DAILY));
        }
        let looked = node.look().await;
        assert!(!looked.again, "all of it was done at once");
        assert_eq!(place.job_count().await, 10_000);
        assert!(node.look_says().await.is_empty());
    });
}
