//! Conditions: whether a run that nothing else blocks may start. Most conditions are answered from records. A run that
//! has to wait is checked again when one of them changes, or after the poll interval of its condition. Checks of the
//! outside are answered from what the run has stored; if that is too old, they are asked for.

mod after;
mod peers;
#[cfg(test)]
mod tests;
mod window;

use cronhold_schedule::text::shortened;
use cronhold_schedule::{CalendarExpr, Instant, Span, TimeOfDay};

use super::admission;
use super::bind;
use super::draft::UnitDraft;
use super::finish_run;
use super::pools;
use super::probes;
use super::run_lifecycle::RunWait;
use crate::job::{Condition, Probe, Requirement, TimeoutOutcome};
use crate::record::{Blocker, JobRecord, JobState, Pool, PoolName, ProbeAnswer, ProbeState, ResolvedProbe, Run};
use crate::run::{Reason, State};
use crate::template::Template;

use self::window::LocalTimeWindow;

/// How deep conditions may be nested. A run whose conditions are nested deeper fails.
const DEPTH_MAX: usize = 64;
/// The shortest poll interval, whatever a condition says.
const POLL_MIN: Span = Span::from_secs(1);

/// The result of evaluating the conditions of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConditionResult {
    /// The run may start.
    Open,
    /// The run waits.
    Wait(RunWait),
    /// The run is skipped.
    Skip(Reason),
    /// The run ends in error: a condition cannot be evaluated, or did not hold in time.
    Fail(Reason),
}

/// The evaluation of one condition.
#[derive(Debug, Clone)]
struct Evaluation {
    result: ConditionVerdict,
    /// What would have to change for another result.
    depends_on: Vec<Blocker>,
    /// Until when a condition that holds does so at the latest, as far as only time can end it.
    holds_until: Option<Instant>,
    /// Checks of the outside that this node has to carry out for the result.
    asks: Vec<ResolvedProbe>,
}

/// Whether a condition holds.
#[derive(Debug, Clone)]
enum ConditionVerdict {
    Holds,
    /// It is not known before an answer from the outside, which comes until then or is lost.
    Ask(Instant),
    /// It may hold later. It is evaluated again at this time, unless something that it depends on changes before.
    Wait(Instant),
    Skip(Reason),
    Fail(Reason),
}

/// Evaluates the conditions of a run.
pub(super) fn evaluate(draft: &UnitDraft<'_>, run: &Run, state: &JobState, job: &JobRecord) -> ConditionResult {
    if job.job.conditions.is_empty() {
        return ConditionResult::Open;
    }
    let mut checks = 0;
    Condition::visit(&job.job.conditions, &mut |it| checks += usize::from(matches!(it, Requirement::Probe(_))));
    if checks > ProbeState::MAX {
        let most = ProbeState::MAX;
        let why = format!("the job has {checks} conditions on files and commands; at most {most} are allowed");
        return ConditionResult::Fail(Reason::Condition(why));
    }
    // A condition may end the run, once the records that it depends on are loaded.
    finish_run::prefetch_end(draft.view, run, job, state);
    let check = ConditionCheck { draft, run, state, job };
    let Evaluation { result, depends_on, asks, .. } = check.all(&job.job.conditions, 0);
    match result {
        ConditionVerdict::Holds => match pools::full(draft, &job.job) {
            None => ConditionResult::Open,
            // A pool is not the last word in `any` and `not`, and its record has a bound nevertheless.
            Some(pool) => {
                let most = u32::try_from(Pool::ACTIVE_MAX).unwrap_or(u32::MAX);
                let blockers = vec![check.pool_blocker(&pool, most, false)];
                ConditionResult::Wait(RunWait::new(check.now().plus(Condition::POLL_DEFAULT), blockers))
            }
        },
        ConditionVerdict::Wait(until) => ConditionResult::Wait(RunWait::new(until, depends_on)),
        ConditionVerdict::Ask(until) => ConditionResult::Wait(RunWait { until, blockers: depends_on, asks }),
        ConditionVerdict::Skip(reason) => ConditionResult::Skip(reason),
        ConditionVerdict::Fail(reason) => ConditionResult::Fail(reason),
    }
}

/// The evaluation of one run's conditions.
#[derive(Clone, Copy)]
struct ConditionCheck<'a> {
    draft: &'a UnitDraft<'a>,
    run: &'a Run,
    /// The job's set of runs as this decision leaves it so far.
    state: &'a JobState,
    job: &'a JobRecord,
}

impl Evaluation {
    fn new(result: ConditionVerdict, depends_on: Vec<Blocker>) -> Self {
        Self { result, depends_on, holds_until: None, asks: Vec::new() }
    }

    /// A condition that cannot be evaluated, or did not hold in time.
    fn failed(why: String) -> Self {
        Reason::Condition(why).into()
    }

    /// Adds what another condition that is not decided either depends on.
    fn join(&mut self, other: Self) {
        self.holds_until = self.holds_until.into_iter().chain(other.holds_until).min();
        self.depends_on.extend(other.depends_on);
        for probe in other.asks {
            if !self.asks.contains(&probe) {
                self.asks.push(probe);
            }
        }
    }
}

/// A condition that ends the run in error.
impl From<Reason> for Evaluation {
    fn from(reason: Reason) -> Self {
        Self::new(ConditionVerdict::Fail(reason), Vec::new())
    }
}

impl<'a> ConditionCheck<'a> {
    fn now(&self) -> Instant {
        self.draft.at()
    }

    /// Whether a result is final. While records are missing it is not, and the conditions that follow are evaluated
    /// too, so that the records of all of them are loaded in one round.
    fn is_final(&self) -> bool {
        self.draft.view.is_complete()
    }

    /// All conditions have to hold. What a condition that holds depends on counts only while all of them hold. The
    /// outside is asked only while nothing else is known to keep the run from starting.
    fn all(&self, conditions: &[Condition], depth: usize) -> Evaluation {
        let mut all = Evaluation::new(ConditionVerdict::Holds, Vec::new());
        for condition in conditions {
            let one = self.condition(condition, depth);
            match (&one.result, &all.result) {
                (ConditionVerdict::Holds, ConditionVerdict::Holds) => all.join(one),
                (ConditionVerdict::Holds, _) => {}
                (ConditionVerdict::Wait(at), ConditionVerdict::Wait(before)) => {
                    all.result = ConditionVerdict::Wait(*at.min(before));
                    all.join(one);
                }
                (ConditionVerdict::Ask(at), ConditionVerdict::Ask(before)) => {
                    all.result = ConditionVerdict::Ask(*at.min(before));
                    all.join(one);
                }
                (ConditionVerdict::Wait(at), ConditionVerdict::Ask(_)) => {
                    all.result = ConditionVerdict::Wait(*at);
                    all.join(one);
                }
                (ConditionVerdict::Ask(_), ConditionVerdict::Wait(_)) => all.join(one),
                (ConditionVerdict::Wait(_) | ConditionVerdict::Ask(_), _) => all = one,
                _ if self.is_final() => return one,
                _ => {}
            }
        }
        all
    }

    /// One condition that holds is enough. While one may still hold, those that failed do not count.
    fn any(&self, conditions: &[Condition], depth: usize) -> Evaluation {
        let mut best: Option<Evaluation> = None;
        for condition in conditions {
            let one = self.condition(condition, depth);
            best = Some(match (&one.result, best) {
                (ConditionVerdict::Holds, _) if self.is_final() => return one,
                (_, None) => one,
                (ConditionVerdict::Wait(at) | ConditionVerdict::Ask(at), Some(mut best)) => match best.result {
                    ConditionVerdict::Wait(before) | ConditionVerdict::Ask(before) => {
                        let is_asked =
                            [&one.result, &best.result].iter().any(|it| matches!(it, ConditionVerdict::Ask(_)));
                        let at = before.min(*at);
                        best.result = if is_asked { ConditionVerdict::Ask(at) } else { ConditionVerdict::Wait(at) };
                        best.join(one);
                        best
                    }
                    _ => one,
                },
                (_, Some(best)) => best,
            });
        }
        best.unwrap_or(Evaluation::new(ConditionVerdict::Holds, Vec::new()))
    }

    /// Evaluates a condition and its timeout, which is measured from when the run began to wait.
    fn condition(&self, condition: &Condition, depth: usize) -> Evaluation {
        let found = self.requirement(&condition.requires, condition.poll, depth);
        let Some(timeout) = condition.timeout else { return found };
        let deadline = self.run.entered(State::Waiting).unwrap_or_else(|| self.now()).plus(timeout);
        match found.result {
            ConditionVerdict::Wait(at) if deadline > self.now() => {
                Evaluation { result: ConditionVerdict::Wait(deadline.min(at)), ..found }
            }
            ConditionVerdict::Ask(at) if deadline > self.now() => {
                Evaluation { result: ConditionVerdict::Ask(deadline.min(at)), ..found }
            }
            ConditionVerdict::Wait(_) | ConditionVerdict::Ask(_) => {
                let what = self.name(&condition.requires);
                let reason = Reason::Condition(format!("{what} did not hold within {timeout}"));
                let ends = match condition.on_timeout {
                    TimeoutOutcome::Error => ConditionVerdict::Fail(reason),
                    TimeoutOutcome::Skip => ConditionVerdict::Skip(reason),
                };
                Evaluation::new(ends, Vec::new())
            }
            ConditionVerdict::Holds | ConditionVerdict::Skip(_) | ConditionVerdict::Fail(_) => found,
        }
    }

    fn requirement(&self, requirement: &'a Requirement, poll: Span, depth: usize) -> Evaluation {
        if depth >= DEPTH_MAX {
            return Evaluation::failed(format!("conditions are nested more than {DEPTH_MAX} deep"));
        }
        let again = self.now().plus(poll.max(POLL_MIN));
        match requirement {
            Requirement::After { job, args, states, within, must_exist } => {
                let asked = after::AfterCondition { job, args, states, within: *within, must_exist: *must_exist };
                self.after(&asked, again)
            }
            Requirement::MaxRunning { count, same_args, pool } => match pool {
                Some(pool) => self.pool(pool, *count, *same_args, again),
                None => self.max_running(*count, *same_args, again),
            },
            Requirement::SkipDuplicate { states } => {
                let peers = peers::before(self.draft, self.state, self.run, self.job);
                let is_duplicate = peers.iter().any(|peer| states.contains(&peer.state));
                let skip = ConditionVerdict::Skip(Reason::Duplicate);
                Evaluation::new(if is_duplicate { skip } else { ConditionVerdict::Holds }, Vec::new())
            }
            Requirement::Probe(probe) => self.probe(probe, poll.max(POLL_MIN)),
            Requirement::Window { from, until, zone, calendar } => {
                self.window((*from, *until), zone.as_deref(), calendar.as_ref())
            }
            Requirement::All(conditions) => self.all(conditions, depth + 1),
            Requirement::Any(conditions) => self.any(conditions, depth + 1),
            Requirement::Not(inner) => self.not(inner, again, depth),
        }
    }

    /// The outer condition has the timeout, because the inner one may never hold.
    fn not(&self, inner: &'a Condition, again: Instant, depth: usize) -> Evaluation {
        let Evaluation { result, depends_on, holds_until, asks } =
            self.requirement(&inner.requires, inner.poll, depth + 1);
        let depends_on = depends_on.into_iter().map(Blocker::negated).collect();
        match result {
            ConditionVerdict::Holds => {
                let again = holds_until.map_or(again, |end| end.min(again));
                Evaluation::new(ConditionVerdict::Wait(again), depends_on)
            }
            ConditionVerdict::Ask(until) => {
                Evaluation { asks, ..Evaluation::new(ConditionVerdict::Ask(until), depends_on) }
            }
            ConditionVerdict::Wait(_) | ConditionVerdict::Skip(_) => {
                Evaluation::new(ConditionVerdict::Holds, depends_on)
            }
            ConditionVerdict::Fail(reason) => reason.into(),
        }
    }

    fn max_running(&self, count: u32, same_args: bool, again: Instant) -> Evaluation {
        let args = self.run.args.digest();
        // The limit applies to all nodes together.
        let in_the_way = admission::blocking_runs(self.draft, self.run, self.state, |_| true);
        let running = in_the_way.iter().filter(|active| !same_args || active.args == args).count();
        let has_room = u32::try_from(running).is_ok_and(|running| running < count);
        let result = if has_room { ConditionVerdict::Holds } else { ConditionVerdict::Wait(again) };
        Evaluation::new(result, vec![Blocker::MaxRunning { count, same_args }])
    }

    /// The limit of a pool applies to all jobs that name it, and to all nodes together.
    fn pool(&self, name: &PoolName, count: u32, same_args: bool, again: Instant) -> Evaluation {
        let args = self.run.args.digest();
        let pool = self.draft.pool(name);
        let others = pool.active.iter().filter(|active| active.run != self.run.id);
        let running = others.filter(|active| !same_args || active.args == args).count();
        let has_room = u32::try_from(running).is_ok_and(|running| running < count);
        let result = if has_room { ConditionVerdict::Holds } else { ConditionVerdict::Wait(again) };
        Evaluation::new(result, vec![self.pool_blocker(name, count, same_args)])
    }

    fn pool_blocker(&self, name: &PoolName, count: u32, same_args: bool) -> Blocker {
        let labels = self.job.job.nodes.digest();
        Blocker::Pool { pool: name.clone(), count, same_args, labels, is_negated: false }
    }

    /// The answer that the run has, as long as it counts; otherwise the outside is asked, unless a node does so already.
    fn probe(&self, probe: &Probe, poll: Span) -> Evaluation {
        let (now, me) = (self.now(), self.draft.view.stamp.owner);
        let resolved = match probes::resolve(probe, self.run, self.job, self.draft.view.world) {
            Ok(resolved) => resolved,
            Err(error) => return Reason::Unbound(error).into(),
        };
        let known = self.run.probes.iter().find(|known| known.probe == resolved);
        // That a file is on another node does not help this one.
        let counts = |answer: &&ProbeAnswer| {
            let is_here = !answer.holds || !resolved.is_local() || answer.node == me.node;
            answer.at.plus(poll) > now && is_here
        };
        let answer = known.and_then(|known| known.answer.as_ref());
        let under_way = known.and_then(|known| known.under_way(me, now));
        let blocker = Blocker::Probe {
            check: resolved.to_string(),
            answer: answer.map(|answer| (answer.at, answer.message.clone())),
            is_negated: false,
        };
        match (answer.filter(counts), under_way) {
            (Some(answer), _) => {
                let until = answer.at.plus(poll);
                let result = if answer.holds { ConditionVerdict::Holds } else { ConditionVerdict::Wait(until) };
                Evaluation { holds_until: Some(until), ..Evaluation::new(result, vec![blocker]) }
            }
            (None, Some(until)) => Evaluation::new(ConditionVerdict::Ask(until), vec![blocker]),
            (None, None) => {
                let until = ProbeState::lease_end(&resolved, now);
                Evaluation { asks: vec![resolved], ..Evaluation::new(ConditionVerdict::Ask(until), vec![blocker]) }
            }
        }
    }

    fn window(&self, times: (TimeOfDay, TimeOfDay), zone: Option<&str>, days: Option<&CalendarExpr>) -> Evaluation {
        let world = self.draft.view.world;
        let zone = match world.zones.get(zone.unwrap_or(&self.job.zone)) {
            Ok(zone) => zone,
            Err(error) => return Evaluation::failed(format!("`window`: {error}")),
        };
        let days = match days.map(|days| world.calendars.compile(days)).transpose() {
            Ok(days) => days,
            Err(error) => return Evaluation::failed(format!("`window.calendar`: {error}")),
        };
        let window = LocalTimeWindow { from: times.0, until: times.1, zone: &zone, days: days.as_ref() };
        match window.opens(self.now()) {
            Some(at) => Evaluation::new(ConditionVerdict::Wait(at), vec![Blocker::Time(at)]),
            None => {
                let holds_until = window.closes(self.now());
                let depends_on = vec![Blocker::Time(holds_until)];
                let holds_until = Some(holds_until);
                Evaluation { holds_until, ..Evaluation::new(ConditionVerdict::Holds, depends_on) }
            }
        }
    }

    /// The start of what a template resolves to.
    fn text_of(&self, template: &Template) -> String {
        let bound = template.bind(&bind::bindings(self.run, self.draft.view.world));
        shortened(&bound.unwrap_or_else(|_| template.text().to_owned()))
    }

    /// The name of a requirement in messages: its key in a job file, and its main value.
    fn name(&self, requirement: &Requirement) -> String {
        match requirement {
            Requirement::After { job, .. } => match self.named_job(job) {
                Ok(job) => format!("`after: {job}`"),
                Err(_) => "`after`".to_owned(),
            },
            Requirement::MaxRunning { count, pool: Some(pool), .. } => {
                format!("`max_running: {count}` in the pool `{pool}`")
            }
            Requirement::MaxRunning { count, .. } => format!("`max_running: {count}`"),
            Requirement::SkipDuplicate { .. } => "`skip_duplicate`".to_owned(),
            Requirement::Probe(Probe::File(path)) => format!("`file: {}`", self.text_of(path)),
            Requirement::Probe(Probe::Command(command)) => format!("`command: {}`", self.text_of(command)),
            Requirement::Probe(Probe::Plugin(call)) => format!("`plugin: {}`", shortened(&call.command)),
            Requirement::Probe(Probe::Http(request)) => format!("`http: {}`", self.text_of(&request.url)),
            Requirement::Window { from, until, .. } => format!("`window: {from}–{until}`"),
            Requirement::All(_) => "`all`".to_owned(),
            Requirement::Any(_) => "`any`".to_owned(),
            Requirement::Not(inner) => format!("`not` {}", self.name(&inner.requires)),
        }
    }
}
