//! The conformance suite for tasks notices stores that are wrong: each flaw makes the named cases fail.
#![cfg(feature = "conformance")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cronhold_core::task::{Channel, JsonText, TaskAct, TaskRecord, TaskRefusal, TaskUnit, UnitOrigin};
use cronhold_schedule::{Instant, Span};
use cronhold_store::conformance::tasks::{TASK_CASES, TaskSubject};
use cronhold_store::tasks::{
    HeartbeatReply, MemoryTaskStore, ProcessHeartbeat, TaskQuery, TaskReceipt, TaskStore, TaskStoreWrapper,
    TaskUnitError,
};
use cronhold_store::{Fault, Pending};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskFlaw {
    /// Carries out what a step has done although it has lost its lease.
    CommitsLostSteps,
    /// Takes items that the step has not read.
    TakesAnyItems,
    /// Wakes no task when a port is written.
    ForgetsWakes,
    /// Carries out each act by itself.
    CommitsInParts,
    /// Carries out a request with a key again.
    ForgetsKeys,
    /// Does not renew leases.
    ForgetsHeartbeats,
    /// Loses messages.
    LosesMessages,
    /// Wakes a task at once instead of at its time.
    WakesTooEarly,
    ShortPages,
}

#[derive(Debug)]
struct CarelessTasks {
    store: MemoryTaskStore,
    flaw: TaskFlaw,
}

impl CarelessTasks {
    fn change_unit(&self, mut unit: TaskUnit) -> TaskUnit {
        for act in &mut unit.acts {
            match (self.flaw, &*act) {
                (TaskFlaw::TakesAnyItems, TaskAct::Take { port, count, .. }) => {
                    *act = TaskAct::Pop { port: port.clone(), count: *count, or_default: false };
                }
                (TaskFlaw::ForgetsWakes, TaskAct::Write { port, items, as_default, .. }) => {
                    let (port, items) = (port.clone(), items.clone());
                    *act = TaskAct::Write { port, items, as_default: *as_default, notify: false };
                }
                (TaskFlaw::LosesMessages, TaskAct::Publish { channel, .. }) if channel.as_str() == "/b" => {
                    let nowhere = Channel::parse("/nowhere").expect("a channel");
                    *act = TaskAct::Publish { channel: nowhere, message: JsonText::null() };
                }
                (TaskFlaw::WakesTooEarly, TaskAct::Run { task, forced, .. }) => {
                    *act = TaskAct::Run { task: *task, forced: *forced, at: None };
                }
                _ => {}
            }
        }
        match (&unit.origin, self.flaw) {
            (UnitOrigin::Request { .. }, TaskFlaw::ForgetsKeys) => TaskUnit::request(unit.acts),
            _ => unit,
        }
    }

    async fn commit_one(&self, unit: TaskUnit) -> Result<TaskReceipt, TaskUnitError> {
        let one = |unit| async { self.store.commit(vec![unit]).await.pop().expect("one unit has one result") };
        if self.flaw == TaskFlaw::CommitsInParts && unit.acts.len() > 1 {
            let mut outcomes = Vec::new();
            for act in unit.acts {
                match one(TaskUnit::request(vec![act])).await? {
                    TaskReceipt::Committed(part) => outcomes.extend(part),
                    repeated => return Ok(repeated),
                }
            }
            return Ok(TaskReceipt::Committed(outcomes));
        }
        let acts = unit.acts.clone();
        match one(unit).await {
            Err(TaskUnitError::Refused(TaskRefusal::StepLost(_))) if self.flaw == TaskFlaw::CommitsLostSteps => {
                one(TaskUnit::request(acts)).await
            }
            result => result,
        }
    }
}

impl TaskStoreWrapper for CarelessTasks {
    fn inside(&self) -> &dyn TaskStore {
        &self.store
    }

    fn commit(&self, units: Vec<TaskUnit>) -> Pending<'_, Vec<Result<TaskReceipt, TaskUnitError>>> {
        Box::pin(async move {
            let mut results = Vec::new();
            for unit in units {
                results.push(self.commit_one(self.change_unit(unit)).await);
            }
            results
        })
    }

    fn heartbeat(&self, beat: ProcessHeartbeat) -> Pending<'_, Result<HeartbeatReply, Fault>> {
        match self.flaw == TaskFlaw::ForgetsHeartbeats {
            true => self.store.heartbeat(ProcessHeartbeat { held: Vec::new(), ..beat }),
            false => self.store.heartbeat(beat),
        }
    }

    fn page<'a>(&'a self, query: &'a TaskQuery, limit: usize) -> Pending<'a, Result<Vec<TaskRecord>, Fault>> {
        let is_short = self.flaw == TaskFlaw::ShortPages && limit > 1;
        self.store.page(query, if is_short { limit - 1 } else { limit })
    }
}

struct FlawedTasks {
    store: MemoryTaskStore,
    micros: Arc<AtomicI64>,
    flaw: TaskFlaw,
}

impl TaskSubject for FlawedTasks {
    fn store(&self) -> Arc<dyn TaskStore> {
        Arc::new(CarelessTasks { store: self.store.clone(), flaw: self.flaw })
    }

    fn pass(&self, span: Span) {
        self.micros.fetch_add(i64::try_from(span.micros()).expect("little time passes"), Ordering::SeqCst);
    }

    fn reopen(&self) -> Arc<dyn TaskStore> {
        self.store()
    }
}

/// Whether a case detects a flaw.
fn notices(name: &str, flaw: TaskFlaw) -> bool {
    let (_, case) = TASK_CASES.iter().find(|(other, _)| *other == name).expect("there is such a case");
    let micros = Arc::new(AtomicI64::new(1_800_000_000_000_000));
    let clock = Arc::clone(&micros);
    let store = MemoryTaskStore::new(Arc::new(move || Instant::from_micros(clock.load(Ordering::SeqCst))));
    let subject = FlawedTasks { store, micros, flaw };
    catch_unwind(AssertUnwindSafe(|| case(&subject))).is_err()
}

#[test]
fn task_suite_detects_every_flaw() {
    for (flaw, cases) in [
        (TaskFlaw::CommitsLostSteps, &["lost_step_commits_nothing"][..]),
        (TaskFlaw::TakesAnyItems, &["step_with_stale_reads_is_repeated"]),
        (TaskFlaw::ForgetsWakes, &["write_runs_the_task_that_reads", "run_during_a_failing_step_is_kept"]),
        (TaskFlaw::CommitsInParts, &["refused_unit_publishes_nothing", "names_have_one_owner"]),
        (TaskFlaw::ForgetsKeys, &["request_with_a_key_takes_effect_once"]),
        (TaskFlaw::ForgetsHeartbeats, &["heartbeats_hold_steps", "lost_step_is_repeated"]),
        (TaskFlaw::LosesMessages, &["port_leaves_channels"]),
        (TaskFlaw::WakesTooEarly, &["delayed_run_waits_for_the_earliest_time"]),
        (TaskFlaw::ShortPages, &["tasks_are_listed_by_status_and_queue"]),
    ] {
        for case in cases {
            assert!(notices(case, flaw), "`{case}` does not notice that a store is wrong: {flaw:?}");
        }
    }
}
