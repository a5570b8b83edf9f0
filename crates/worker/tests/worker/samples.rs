//! Workers of the stories.

use std::sync::Arc;

use cronhold_core::task::TaskStatus;
use cronhold_store::tasks::TaskStore;
use cronhold_worker::{StepResult, TaskStep, Worker, WorkerRuntime};

/// Adds all numbers of a port once another port has a value.
pub(crate) struct Sum;

impl Worker for Sum {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        if !step.has_value("ready")? {
            return step.suspend();
        }
        let numbers: Vec<i64> = step.read_all("in")?;
        step.write("sum", &numbers.iter().sum::<i64>())
    }
}

/// Lets a child add numbers.
pub(crate) struct SumFlow;

impl Worker for SumFlow {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        let Some(child) = step.child("sum")? else {
            step.create_child("sum", "Sum")?;
            return step.suspend();
        };
        if step.get::<bool>("sent")?.is_none() {
            step.write_to(&child, "in", &5)?;
            step.write_to(&child, "in", &6)?;
            step.write_to(&child, "ready", &true)?;
            step.set("sent", &true)?;
            step.run_child(&child);
            return step.suspend();
        }
        match step.read_from::<i64>(&child, "sum")? {
            Some(sum) => step.write("out", &sum),
            None => step.suspend(),
        }
    }
}

/// Computes a Fibonacci number by two children.
pub(crate) struct Fibonacci;

impl Worker for Fibonacci {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        let (Some(first), Some(second)) = (step.child("job1")?, step.child("job2")?) else {
            let (n,): (i64,) = step.args()?;
            if n <= 2 {
                return step.write("num", &1);
            }
            for (name, n) in [("job1", n - 1), ("job2", n - 2)] {
                step.create_child_with_ports(name, "Fibonacci", &[n], "{}", "{}")?;
            }
            return step.suspend();
        };
        if first.status() != TaskStatus::Completed || second.status() != TaskStatus::Completed {
            return step.suspend();
        }
        let numbers = (step.read_from::<i64>(&first, "num")?, step.read_from::<i64>(&second, "num")?);
        match numbers {
            (Some(first), Some(second)) => step.write("num", &(first + second)),
            _ => step.fail("a child has no result"),
        }
    }
}

/// A worker that is a function.
pub(crate) struct Script<F>(pub(crate) F);

impl<F: Fn(&mut TaskStep<'_>) -> StepResult + Send + Sync + 'static> Worker for Script<F> {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        (self.0)(step)
    }
}

pub(crate) const SUM_PORTS: &str = r#"{"inports":{"in":{},"ready":{}},"outports":{"sum":{}}}"#;

/// A registered runtime with the workers of the stories.
pub(crate) fn runtime(store: Arc<dyn TaskStore>) -> WorkerRuntime {
    let runtime = WorkerRuntime::new(store, "testq")
        .and_then(|runtime| runtime.with_class("Sum", SUM_PORTS, Sum))
        .and_then(|runtime| runtime.with_class("SumFlow", r#"{"outports":{"out":{}}}"#, SumFlow))
        .and_then(|runtime| runtime.with_class("Fibonacci", r#"{"outports":{"num":{}}}"#, Fibonacci))
        .expect("the configurations are valid");
    runtime.register().expect("it can register");
    runtime
}

/// A registered runtime with one worker of class `Script`.
pub(crate) fn script(
    store: Arc<dyn TaskStore>,
    ports: &str,
    work: impl Fn(&mut TaskStep<'_>) -> StepResult + Send + Sync + 'static,
) -> WorkerRuntime {
    let runtime =
        WorkerRuntime::new(store, "testq").and_then(|runtime| runtime.with_class("Script", ports, Script(work)));
    let runtime = runtime.expect("the configuration is valid");
    runtime.register().expect("it can register");
    runtime
}
