//! The workers of the simulation. Each passes numbers on; some of their steps fail, wait, or leave a part to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_schedule::Span;
use cronhold_worker::{StepResult, TaskStep, Worker};

/// The classes with their configurations.
pub(crate) const CLASSES: [(&str, &str); 4] = [
    ("Pump", r#"{"inports":{"in":{}},"outports":{"out":{"channels":["/numbers/pump"]}}}"#),
    ("Pipe", r#"{"inports":{"in":{}},"outports":{"out":{}}}"#),
    ("Boss", r#"{"inports":{"in":{}},"outports":{"out":{"channels":["/numbers/boss"]}}}"#),
    ("Sink", r#"{"inports":{"in":{"channels":["/numbers"]}}}"#),
];

/// Whether steps still fail for no reason.
pub(crate) type TroubleFlag = Arc<AtomicBool>;

/// The worker of a class.
pub(crate) fn worker_of(class: &str, trouble: &TroubleFlag) -> Box<dyn Worker> {
    let trouble = Arc::clone(trouble);
    match class {
        "Pump" => Box::new(PumpStory(trouble)),
        "Pipe" => Box::new(PipeStory(trouble)),
        "Boss" => Box::new(BossStory(trouble)),
        _ => Box::new(SinkStory(trouble)),
    }
}

/// Some steps fail after all that they have done, or panic.
fn maybe_fail(step: &TaskStep<'_>, trouble: &TroubleFlag) -> StepResult {
    let is_troubled = trouble.load(Ordering::SeqCst);
    match step.now().micros() / 1_000 % 23 {
        7 if is_troubled => step.fail("bad luck"),
        _ => Ok(()),
    }
}

/// Publishes each number, in rounds.
struct PumpStory(TroubleFlag);

impl Worker for PumpStory {
    fn has_startup(&self) -> bool {
        true
    }

    fn startup(&self, step: &mut TaskStep<'_>) -> StepResult {
        let starts: u64 = step.get("starts")?.unwrap_or_default();
        step.set("starts", &(starts + 1))
    }

    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        step.for_inputs(&["in"], |step, (number,): (u64,)| step.write("out", &number))?;
        maybe_fail(step, &self.0)
    }
}

/// Passes one or two numbers on in each step.
struct PipeStory(TroubleFlag);

impl Worker for PipeStory {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        for _ in 0..2 {
            let Some(number) = step.read::<u64>("in")? else { return Ok(()) };
            step.write("out", &number)?;
        }
        step.run_again();
        maybe_fail(step, &self.0)?;
        step.suspend()
    }
}

/// Gives numbers to a child, moves what it returns to a second one, and publishes what that returns.
struct BossStory(TroubleFlag);

impl Worker for BossStory {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        let (Some(first), Some(second)) = (step.child("first")?, step.child("second")?) else {
            let first = step.create_child("first", "Pipe")?;
            step.create_child("second", "Pipe")?;
            if let Some(number) = step.read::<u64>("in")? {
                step.write_to(&first, "in", &number)?;
            }
            step.run_again();
            maybe_fail(step, &self.0)?;
            return step.suspend();
        };
        for number in step.read_all::<u64>("in")? {
            step.write_to(&first, "in", &number)?;
        }
        step.connect(&first, "out", &second, "in")?;
        while let Some(number) = step.read_from::<u64>(&second, "out")? {
            step.write("out", &number)?;
        }
        maybe_fail(step, &self.0)?;
        step.suspend()
    }
}

/// Keeps the numbers that it gets, some of them later.
struct SinkStory(TroubleFlag);

impl Worker for SinkStory {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        let mut seen: Vec<u64> = step.get("seen")?.unwrap_or_default();
        let most = if self.0.load(Ordering::SeqCst) { 3 } else { usize::MAX };
        while let Some(number) = step.read::<u64>("in")? {
            seen.push(number);
            if seen.len() % 5 == most {
                step.run_at(step.now().plus(Span::from_secs(30)));
                break;
            }
        }
        step.set("seen", &seen)?;
        maybe_fail(step, &self.0)
    }
}
