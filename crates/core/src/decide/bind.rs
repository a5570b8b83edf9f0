//! What a run gets from its job when it is made: everything that may depend on args and time is bound once, here.

use cronhold_schedule::{Fold, Gap, Instant, Local, TextError};

use crate::job::{Program, StopSchedule};
use crate::record::{JobRecord, Run, ScheduleId, Terms, Work};
use crate::template::{Bindings, Template};
use crate::world::World;

/// What a run does.
pub(super) fn work(job: &JobRecord, run: &Run, world: &World) -> Result<Work, TextError> {
    let bind = |template: &Template| match template.is_literal() {
        true => Ok(template.text().to_owned()),
        false => template.bind(&bindings(run, world)),
    };
    match &job.job.program {
        Program::Noop { duration } => Ok(Work::Noop(*duration)),
        Program::Shell(command) => bind(command).map(Work::Shell),
        Program::Exec(words) => words.iter().map(bind).collect::<Result<_, _>>().map(Work::Exec),
        Program::Http(_) => Ok(Work::Unsupported("http".to_owned())),
        Program::Remote(_) => Ok(Work::Unsupported("remote".to_owned())),
        Program::Task(_) => Ok(Work::Unsupported("task".to_owned())),
        Program::Plugin { .. } => Ok(Work::Unsupported("plugin".to_owned())),
    }
}

/// How long a run may take and how it is stopped. A run that is made after the time at which its schedule stops runs,
/// because it was missed then, is not stopped by it.
pub(super) fn terms(
    job: &JobRecord,
    schedule: Option<&ScheduleId>,
    nominal: Instant,
    now: Instant,
    world: &World,
) -> Terms {
    let stop = schedule.and_then(|id| job.schedule(id)).and_then(|schedule| {
        schedule.stop.as_ref().and_then(|stop| match stop {
            StopSchedule::After(span) => Some(nominal.plus(*span)),
            StopSchedule::At(time) => {
                let zone = job.compile(schedule, world).ok()?.zone().clone();
                let local = zone.local(nominal.secs());
                let today = local.day();
                let candidates = [today, today.plus(1), today.plus(2)].into_iter().flat_map(|day| {
                    let at = Local(day.midnight().0 + i64::from(time.0));
                    zone.instants(at, Gap::Next, Fold::First).collect::<Vec<_>>()
                });
                candidates.map(Instant::from_secs).find(|at| *at > nominal)
            }
        })
    });
    let stop_at = stop.filter(|at| *at > now);
    Terms { timeout: job.job.timeout, stop_at, signal: job.job.stop.signal, grace: job.job.stop.grace }
}

/// What templates of a run can use.
pub(super) fn bindings(run: &Run, world: &World) -> Bindings {
    let own = world
        .bindings()
        .with("run_id", run.id.to_string())
        .with("job", run.job.as_str())
        .with("nominal_time", run.nominal.to_string())
        .with("attempt", run.attempt);
    run.args.iter().fold(own, |bindings, (name, value)| bindings.with(name, value))
}
