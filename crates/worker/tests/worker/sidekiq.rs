//! A plain Sidekiq client pushes a job, our worker performs it, and Sidekiq's API stops the worker.

use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use cronhold_core::task::StepEnding;
use cronhold_schedule::{Span, ZoneRegistry};
use cronhold_store::tasks::BareJobEnding;
use cronhold_store_redis::testing::RedisServer;
use cronhold_store_redis::{Options, RedisStore, RedisUrl};
use cronhold_worker::{BareJobStep, RuntimeEvent, StepOutcome, StepResult, TaskStep, Worker, WorkerRuntime};

/// How long to wait for an event on a busy machine.
const EVENT_MAX: Duration = Duration::from_secs(100);

/// Performs jobs of Sidekiq clients, each of which creates a task.
struct Hard;

impl Worker for Hard {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        step.set("done", &true)
    }

    fn performs_jobs(&self) -> bool {
        true
    }

    fn perform_job(&self, job: &mut BareJobStep<'_>) -> StepResult {
        let (number, text, list): (u32, String, Vec<u32>) = job.args()?;
        assert_eq!((number, text.as_str(), list.len()), (1, "x", 0));
        job.create("testq", "Hard", &(number,))
    }
}

/// Runs a command of the script that uses a real Sidekiq.
fn sidekiq(server: &RedisServer, command: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../store-redis/tests/tasks/sidekiq.rb");
    let output = Command::new("ruby").args([script, &server.url(), command]).output();
    let output = output.expect("ruby cannot be started; install Sidekiq: apt-get install ruby-sidekiq");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn next_event(events: &Receiver<String>) -> String {
    events.recv_timeout(EVENT_MAX).expect("the worker reports an event")
}

#[test]
fn worker_performs_jobs_of_sidekiq_until_it_gets_a_signal() {
    let server = RedisServer::start();
    let url = RedisUrl::parse(&server.url_with("timeout=30s")).expect("a URL");
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
    let store = RedisStore::open(&url, options).expect("it can be opened");
    let (sender, events) = channel();
    let observer = move |event: &RuntimeEvent| {
        let text = match event {
            RuntimeEvent::JobEnded(report) if report.ending == BareJobEnding::Completed => "job".to_owned(),
            RuntimeEvent::StepEnded(report) if report.outcome == StepOutcome::Committed(StepEnding::Completed) => {
                format!("step {}", report.task)
            }
            other => format!("{other:?}"),
        };
        // The test may have ended.
        let _ = sender.send(text);
    };
    let runtime = WorkerRuntime::new(Arc::new(store.tasks()), "testq")
        .and_then(|runtime| runtime.with_class("Hard", "{}", Hard))
        .expect("names")
        .with_concurrency(2)
        .with_lease(Span::from_secs(6))
        .with_observer(observer);
    let running = thread::spawn(move || runtime.run());
    sidekiq(&server, "push");
    assert_eq!((next_event(&events).as_str(), next_event(&events).as_str()), ("job", "step 1"));
    sidekiq(&server, "stop");
    running.join().expect("no panic").expect("it stops by the signal");
    assert_eq!(server.cli(&["EXISTS", "processes"]), "0");
}
