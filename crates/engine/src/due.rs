//! What goes into the next turn: what came in, and what is due.

use cronhold_core::command::Command;
use cronhold_core::record::Actor;
use cronhold_schedule::{Instant, Span};

use crate::intake::{Input, Refused};
use crate::node::{Node, Origin, Work};
use crate::plan::Item;

/// Commands in one turn. Many of them share a flush to disk, and the pages of tables and indexes that they change.
const BATCH_MAX: usize = 2_048;
/// Of these, what is due: few enough that the first of many is on its way while the others are being decided. Smaller
/// turns were slower, because they share less.
const DUE_MAX: usize = 512;
/// After these, claims that are late. One of them can stand for thousands of occurrences, so they are few enough that
/// what becomes due meanwhile does not have to wait for long.
const LATE_MAX: usize = 64;
/// While more is due than fits into a turn, what came in meanwhile waits for so many turns at most. It is mostly news of
/// programs that have just been started, and they are not in a hurry.
const RUSH_MAX: usize = 4;
/// What comes in then is taken a little at a time.
const RUSH_INPUTS: usize = 32;
/// What has to wait because the node is full is looked at again after this.
const FULL_WAIT: Span = Span::from_millis(250);

/// How many runs of backlogs may start now.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    second: u64,
    used: u32,
}

impl Node {
    /// What is to be carried out now: what came in, then what is due.
    pub(crate) fn gather(&mut self, now: Instant, chores: &mut Vec<Item>) -> Vec<Work> {
        let uptime = self.ports.clock.uptime();
        if self.is_stopping || self.away.is_some_and(|away| away.until > uptime) {
            return Vec::new();
        }
        let mut batch: Vec<Work> = self.again.drain(..).collect();
        for (run, report) in self.unsettled.drain(..) {
            batch.push(Work::report(run, report));
        }
        for (actor, command) in self.own.drain(..self.own.len().min(BATCH_MAX)) {
            batch.push(Work::new(actor, command, Origin::Own));
        }
        // What is due has the larger share, because it should be on time. What has come in is decided first, because a
        // run that has ended must not be in the way of the next.
        let mut due = Vec::new();
        if self.is_sure(uptime) {
            if std::mem::take(&mut self.is_to_begin) {
                self.begin(now);
            }
            due = self.gather_due(now, uptime, chores);
        }
        let room = self.room_for_inputs(due.len());
        for input in self.handle.inputs.take(room) {
            match input {
                Input::Ask { by: Some(by), reply, .. } if by < uptime => reply.answer(Err(Refused::Late)),
                Input::Ask { actor, command, reply, .. } => {
                    batch.push(Work::new(actor, command, Origin::Request(reply)));
                }
                Input::Report { run, report } => batch.push(Work::report(run, report)),
                Input::Begin => self.is_to_begin = true,
                Input::Calendars(calendars) => self.world.calendars = calendars,
                Input::Stop => self.is_stopping = true,
            }
        }
        batch.extend(due);
        batch
    }

    /// Whether the node knows the time, and was heard of so lately, that it may claim something.
    pub(crate) fn is_sure(&mut self, uptime: Span) -> bool {
        self.clock.hold(uptime).is_none() && self.beacon.is_fresh(uptime)
    }

    /// How many inputs go into a turn in which so much is due. What had come in when a rush began is decided before it.
    fn room_for_inputs(&mut self, due: usize) -> usize {
        let makes_wait = due > 0 && !self.rush.is_multiple_of(RUSH_MAX + 1);
        self.rush = if due >= DUE_MAX { self.rush + 1 } else { 0 };
        if makes_wait { RUSH_INPUTS } else { BATCH_MAX - due }
    }

    /// The start of the node is an occurrence for some schedules.
    fn begin(&mut self, now: Instant) {
        for (job, schedule) in self.at_start.clone() {
            self.own.push_back((Actor::Schedule, Command::Fire { job, schedule, nominal: now, at_start: true }));
        }
    }

    fn gather_due(&mut self, now: Instant, uptime: Span, chores: &mut Vec<Item>) -> Vec<Work> {
        let due = self.plan.take_due(now, DUE_MAX, LATE_MAX);
        self.works(due, now, uptime, chores)
    }

    /// Claims that are due at one instant which is to come.
    pub(crate) fn gather_claims(&mut self, at: Instant, uptime: Span) -> Vec<Work> {
        let claims = self.plan.take_claims(at, DUE_MAX);
        self.works(claims, at, uptime, &mut Vec::new())
    }

    /// What was planned, as work; what has to wait is in the plan again.
    fn works(
        &mut self,
        planned: Vec<(Item, Instant, Instant)>,
        now: Instant,
        uptime: Span,
        chores: &mut Vec<Item>,
    ) -> Vec<Work> {
        let mut batch = Vec::with_capacity(planned.len());
        for (item, due, nominal) in planned {
            let others = self.left_to_others(&item, due, nominal, now);
            if let Some(until) = others.or_else(|| self.must_wait(&item, now, uptime)) {
                self.plan.put_off(item, until, due, nominal);
                continue;
            }
            let by_watchdog = self.found.remove(&item);
            let (actor, command) = match &item {
                Item::Fire(job, schedule) => {
                    let (job, schedule) = (job.clone(), schedule.clone());
                    (Actor::Schedule, Command::Fire { job, schedule, nominal, at_start: false })
                }
                Item::CatchUp(job, schedule) => {
                    (Actor::CatchUp, Command::CatchUp { job: job.clone(), schedule: schedule.clone() })
                }
                Item::Wake(run) => (Actor::Queue, Command::Wake { run: *run }),
                Item::Watch | Item::Reap | Item::Hear | Item::Prune(_) | Item::Expire(_) => {
                    chores.push(item);
                    continue;
                }
            };
            let actor = if by_watchdog { Actor::Watchdog } else { actor };
            batch.push(Work::new(actor, command, Origin::Timer { item, due, nominal }));
        }
        batch
    }

    /// Until when something that is due has to wait, because the node has enough to do.
    fn must_wait(&mut self, item: &Item, now: Instant, uptime: Span) -> Option<Instant> {
        match item {
            Item::Fire(..) | Item::CatchUp(..) if self.programs.len() >= self.options.programs_max => {
                Some(now.plus(FULL_WAIT))
            }
            Item::CatchUp(..) if !self.allowance.take(uptime, self.options.catch_up_rate) => {
                Some(now.plus(Span::from_micros(1_000_000 - uptime.micros() % 1_000_000)))
            }
            _ => None,
        }
    }
}

impl Allowance {
    fn take(&mut self, uptime: Span, rate: u32) -> bool {
        if self.second != uptime.secs() {
            *self = Self { second: uptime.secs(), used: 0 };
        }
        self.used += 1;
        self.used <= rate.max(1)
    }
}
