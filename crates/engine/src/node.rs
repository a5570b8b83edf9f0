//! The loop of a node: gather what is due and what came in, take a turn, do what is owed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cronhold_core::command::{Command, Report, Stamp};
use cronhold_core::record::{Actor, LockName, Node as NodeRecord, Owner, ScheduleId};
use cronhold_core::{JobId, NodeId, RunId, World};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Asked, Desk, Fault, Flight, Outcome, Prepared};

use crate::clock_watch::ClockWatch;
use crate::intake::{Handle, Input, Refused, Reply};
use crate::meter::Meter;
use crate::plan::{Item, Plan};
use crate::ports::{News, Ports};
use crate::race::race;
use crate::retention::EXPIRE_EVERY;

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
/// The clock is looked at this often at least, so that a step is noticed.
const SLEEP_MAX: Span = Span::from_secs(1);
/// First and longest wait after the store failed.
const AWAY_MIN: Span = Span::from_millis(100);
const AWAY_MAX: Span = Span::from_secs(5);
/// A claim that is later than this is counted as late.
const LATE: Span = Span::from_secs(1);
/// What needs a record that cannot be read is tried again after this.
const BROKEN_WAIT: Span = Span::from_secs(60);
/// What has to wait because the node is full is looked at again after this.
const FULL_WAIT: Span = Span::from_millis(250);

/// What a node can be told at its start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its identity.
    pub node: NodeId,
    /// What people call it.
    pub name: String,
    /// Runs of backlogs that it starts in a second.
    pub catch_up_rate: u32,
    /// Programs that it has at once.
    pub programs_max: usize,
    /// Records that it remembers.
    pub remembers: usize,
}

impl Options {
    /// A node with all defaults.
    pub fn new(node: NodeId, name: impl Into<String>) -> Self {
        Self { node, name: name.into(), catch_up_rate: 100, programs_max: 10_000, remembers: 150_000 }
    }
}

/// A node that can be run.
#[derive(Debug)]
pub struct Engine {
    ports: Ports,
    options: Options,
    world: World,
    handle: Handle,
}

/// A node while it runs.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) ports: Ports,
    pub(crate) options: Options,
    pub(crate) world: World,
    pub(crate) handle: Handle,
    pub(crate) desk: Desk,
    pub(crate) me: Owner,
    pub(crate) record: NodeRecord,
    pub(crate) plan: Plan,
    /// Occurrences whose time came while their job was paused.
    pub(crate) resting: BTreeMap<(JobId, ScheduleId), Instant>,
    /// Runs whose programs were asked for in this life.
    pub(crate) programs: BTreeSet<RunId>,
    /// Runs that wait for locks.
    pub(crate) waiters: BTreeMap<LockName, BTreeSet<RunId>>,
    /// What the watchdog found, so that the records say so.
    pub(crate) found: BTreeSet<Item>,
    /// What the node asks of itself.
    pub(crate) own: VecDeque<(Actor, Command)>,
    /// Reports that the store has not taken yet.
    unsettled: VecDeque<(RunId, Report)>,
    /// Schedules for which each start of a node is an occurrence.
    pub(crate) at_start: BTreeSet<(JobId, ScheduleId)>,
    /// What lost against someone else and is decided again.
    again: VecDeque<Work>,
    /// Whether the outcome of something is unknown, so that stored state has to be compared with what is known here.
    pub(crate) is_unsure: bool,
    /// Whether the clock was set back.
    pub(crate) went_back: bool,
    away: Option<Away>,
    clock_watch: ClockWatch,
    allowance: Allowance,
    /// Turns in a row that had as much to claim as they could have.
    rush: usize,
    is_stopping: bool,
}

/// The store fails.
#[derive(Debug, Clone, Copy)]
struct Away {
    until: Span,
    wait: Span,
}

/// How many runs of backlogs may start now.
#[derive(Debug, Default)]
struct Allowance {
    second: u64,
    used: u32,
}

/// Something to be carried out, who waits for it, and how often it lost against someone else.
#[derive(Debug)]
struct Work {
    actor: Actor,
    command: Command,
    origin: Origin,
    attempt: usize,
}

/// Commands that are carried out together.
struct Turn {
    asked: Vec<Asked>,
    origins: Vec<(Origin, usize)>,
}

/// A turn that was sent.
struct Airborne {
    flight: Flight,
    turn: Turn,
}

#[derive(Debug)]
enum Origin {
    Request(Reply),
    Report(RunId, Report),
    Timer { item: Item, due: Instant, nominal: Instant },
    Own,
}

impl Engine {
    /// A node and the way to talk to it.
    pub fn new(ports: Ports, options: Options, world: World) -> (Self, Handle) {
        let handle = Handle::new(ports.clone());
        (Self { ports, options, world, handle: handle.clone() }, handle)
    }

    /// Runs until it is asked to stop. Waits for a store that is away, but not for one that is broken.
    pub async fn run(self) -> Result<(), Fault> {
        let Self { ports, options, world, handle } = self;
        let mut wait = AWAY_MIN;
        let mut node = loop {
            match Node::start(&ports, &options, &world, &handle).await {
                Ok(node) => break node,
                Err(fault) if fault.is_passing() => {
                    ports.feed.tell(&News::StoreAway(&fault));
                    ports.clock.sleep(wait).await;
                    if handle.is_stopping() {
                        return Ok(());
                    }
                    wait = wait.plus(wait).min(AWAY_MAX);
                }
                Err(fault) => return Err(fault),
            }
        };
        node.live().await;
        Ok(())
    }
}

impl Node {
    async fn start(ports: &Ports, options: &Options, world: &World, handle: &Handle) -> Result<Self, Fault> {
        let desk = Desk::new(ports.store.clone(), options.remembers).await?;
        // Every start is another writer, so the writer's number tells the lives of a node apart.
        let me = Owner { node: options.node, incarnation: desk.writer() };
        let now = ports.clock.now();
        let record = NodeRecord {
            id: options.node,
            name: options.name.clone(),
            incarnation: me.incarnation,
            since: now,
            beat: now,
            gone: now,
            labels: (*world.labels).clone(),
            draining: false,
        };
        let mut node = Self {
            ports: ports.clone(),
            options: options.clone(),
            world: World { is_shared: ports.store.is_shared(), ..world.clone() },
            handle: handle.clone(),
            desk,
            me,
            record,
            plan: Plan::default(),
            resting: BTreeMap::new(),
            programs: BTreeSet::new(),
            waiters: BTreeMap::new(),
            found: BTreeSet::new(),
            own: VecDeque::new(),
            unsettled: VecDeque::new(),
            at_start: BTreeSet::new(),
            again: VecDeque::new(),
            is_unsure: false,
            went_back: false,
            away: None,
            clock_watch: ClockWatch::default(),
            allowance: Allowance::default(),
            rush: 0,
            is_stopping: false,
        };
        node.beat().await?;
        node.recover().await?;
        node.plan.put(Item::Beat, now.plus(node.beat_every()));
        node.plan.put(Item::Watch, now.plus(Self::WATCH_EVERY));
        node.plan.put(Item::Expire(None), now.plus(EXPIRE_EVERY));
        Ok(node)
    }

    /// While one turn is on its way to the disk the next is decided on top of it.
    async fn live(&mut self) {
        let mut airborne: Option<Airborne> = None;
        while !self.is_stopping || airborne.is_some() {
            let now = self.look_at_clock();
            let mut chores = Vec::new();
            let batch = self.gather(now, &mut chores);
            let next = if batch.is_empty() { None } else { self.prepare(now, batch).await };
            let landed = match airborne.take() {
                Some(Airborne { flight, turn }) => Some((self.desk.land(flight).await, turn)),
                None => None,
            };
            let was_idle = next.is_none() && landed.is_none() && chores.is_empty();
            if let Some((mut prepared, turn)) = next {
                if landed.as_ref().is_some_and(|(outcomes, _)| !outcomes.iter().all(is_done)) {
                    prepared.doubt();
                }
                airborne = Some(Airborne { flight: self.desk.send(prepared).await, turn });
            }
            if let Some((outcomes, turn)) = landed {
                self.finish(outcomes, turn).await;
            }
            if !chores.is_empty() {
                // A chore compares what is stored with what is known here, so nothing may be in the air.
                if let Some(Airborne { flight, turn }) = airborne.take() {
                    let outcomes = self.desk.land(flight).await;
                    self.finish(outcomes, turn).await;
                }
                for chore in chores {
                    self.chore(chore, now).await;
                }
            }
            if was_idle && !self.is_stopping {
                self.wait(now).await;
            }
        }
        self.turn_away();
    }

    /// Whoever still waits for an answer is told that there will be none.
    fn turn_away(&mut self) {
        for input in self.handle.inputs.take(usize::MAX) {
            if let Input::Ask { reply, .. } = input {
                reply.answer(Err(Refused::Stopping));
            }
        }
        for work in self.again.drain(..) {
            if let Origin::Request(reply) = work.origin {
                reply.answer(Err(Refused::Stopping));
            }
        }
    }

    fn look_at_clock(&mut self) -> Instant {
        let now = self.ports.clock.now();
        if let Some(step) = self.clock_watch.look(now, self.ports.clock.uptime()) {
            Meter::add(&self.handle.meter.clock_steps, 1);
            self.ports.feed.tell(&News::ClockStep { forward: step.forward, by: step.by });
            self.went_back |= !step.forward;
            // Times of the plan were computed with the other time.
            self.plan.put_by(Item::Watch, now.plus(Span::from_secs(10)));
            self.plan.put(Item::Beat, now);
        }
        now
    }

    /// What is to be carried out now: what came in, then what is due.
    fn gather(&mut self, now: Instant, chores: &mut Vec<Item>) -> Vec<Work> {
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
        if self.clock_watch.hold(uptime).is_none() {
            due = self.gather_due(now, uptime, chores);
        }
        let room = self.room_for_inputs(due.len());
        for input in self.handle.inputs.take(room) {
            match input {
                Input::Ask { actor, command, reply } => {
                    batch.push(Work::new(actor, command, Origin::Request(reply)));
                }
                Input::Report { run, report } => batch.push(Work::report(run, report)),
                Input::Begin => self.begin(now),
                Input::Calendars(calendars) => self.world.calendars = calendars,
                Input::Stop => self.is_stopping = true,
            }
        }
        batch.extend(due);
        batch
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
            self.own.push_back((Actor::Schedule, Command::Fire { job, schedule, nominal: now }));
        }
    }

    fn gather_due(&mut self, now: Instant, uptime: Span, chores: &mut Vec<Item>) -> Vec<Work> {
        let mut batch = Vec::new();
        for (item, due, nominal) in self.plan.take_due(now, DUE_MAX, LATE_MAX) {
            if let Some(wait) = self.must_wait(&item, now, uptime) {
                self.plan.put_for(item, wait, nominal);
                continue;
            }
            let by_watchdog = self.found.remove(&item);
            let (actor, command) = match &item {
                Item::Fire(job, schedule) => {
                    let (job, schedule) = (job.clone(), schedule.clone());
                    (Actor::Schedule, Command::Fire { job, schedule, nominal })
                }
                Item::CatchUp(job, schedule) => {
                    (Actor::CatchUp, Command::CatchUp { job: job.clone(), schedule: schedule.clone() })
                }
                Item::Wake(run) => (Actor::Queue, Command::Wake { run: *run }),
                Item::Beat | Item::Watch | Item::Prune(_) | Item::Expire(_) => {
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

    /// Decides a batch. When the store cannot even be read, everything is put back.
    async fn prepare(&mut self, now: Instant, batch: Vec<Work>) -> Option<(Prepared, Turn)> {
        let mut turn = Turn { asked: Vec::with_capacity(batch.len()), origins: Vec::with_capacity(batch.len()) };
        for Work { actor, command, origin, attempt } in batch {
            turn.asked.push(Asked { stamp: Stamp { at: now, actor, owner: self.me }, command });
            turn.origins.push((origin, attempt));
        }
        let asked: Vec<&Asked> = turn.asked.iter().collect();
        match self.desk.prepare(&self.world, &asked).await {
            Ok(prepared) => Some((prepared, turn)),
            Err(fault) => {
                let failed = turn.asked.iter().map(|_| Some(Outcome::Failed(fault.clone()))).collect();
                self.finish(failed, turn).await;
                None
            }
        }
    }

    /// Does what the outcomes of a turn ask for.
    async fn finish(&mut self, outcomes: Vec<Option<Outcome>>, turn: Turn) {
        Meter::add(&self.handle.meter.turns, 1);
        Meter::add(&self.handle.meter.commands, turn.asked.len() as u64);
        let mut trouble = None;
        for ((asked, (origin, attempt)), outcome) in turn.asked.into_iter().zip(turn.origins).zip(outcomes) {
            let outcome = match outcome {
                None if attempt < Desk::ATTEMPTS_MAX => {
                    let Asked { stamp, command } = asked;
                    self.again.push_back(Work { actor: stamp.actor, command, origin, attempt: attempt + 1 });
                    continue;
                }
                outcome => outcome.unwrap_or_else(Outcome::contended),
            };
            match outcome {
                Outcome::Done { done, fences } => {
                    if let Origin::Timer { item: Item::Fire(..), due, .. } = &origin {
                        self.count_lateness(asked.stamp.at.since(*due));
                    }
                    let answer = done.answer.clone();
                    self.settle(&asked.stamp, *done, &fences).await;
                    if let Origin::Request(reply) = origin {
                        reply.answer(Ok(answer));
                    }
                }
                Outcome::Rejected(rejection) => match origin {
                    Origin::Request(reply) => reply.answer(Err(rejection.into())),
                    _ => self.ports.feed.tell(&News::Dropped(&format!("{:?}: {rejection}", asked.command))),
                },
                Outcome::Failed(fault @ Fault::Broken(_)) => self.put_aside(&asked, origin, &fault),
                Outcome::Failed(fault) => {
                    self.put_back(&asked, origin, &fault);
                    trouble = Some(fault);
                }
            }
        }
        self.note_trouble(trouble);
    }

    fn count_lateness(&self, late: Span) {
        if late > LATE {
            Meter::add(&self.handle.meter.late, 1);
            Meter::raise(&self.handle.meter.latest_ms, late.millis());
        }
    }

    /// The store failed a command: whoever asked is told, everything else is tried again.
    fn put_back(&mut self, asked: &Asked, origin: Origin, fault: &Fault) {
        Meter::add(&self.handle.meter.faults, 1);
        self.is_unsure |= matches!(fault, Fault::Unknown(_));
        match origin {
            Origin::Request(reply) => reply.answer(Err(fault.clone().into())),
            Origin::Report(run, report) => self.unsettled.push_back((run, report)),
            Origin::Timer { item, nominal, .. } => self.plan.put_for(item, asked.stamp.at, nominal),
            Origin::Own => self.own.push_back((asked.stamp.actor.clone(), asked.command.clone())),
        }
    }

    /// A record that a command needs cannot be read, and trying again at once would not help. Everything else goes on.
    fn put_aside(&mut self, asked: &Asked, origin: Origin, fault: &Fault) {
        Meter::add(&self.handle.meter.faults, 1);
        self.ports.feed.tell(&News::Dropped(&format!("{:?}: {fault}", asked.command)));
        match origin {
            Origin::Request(reply) => reply.answer(Err(fault.clone().into())),
            Origin::Timer { item, nominal, .. } => self.plan.put_for(item, asked.stamp.at.plus(BROKEN_WAIT), nominal),
            // The watchdog finds what a report would have settled.
            Origin::Report(..) | Origin::Own => {}
        }
    }

    fn note_trouble(&mut self, trouble: Option<Fault>) {
        match (trouble, self.away) {
            (Some(fault), before) => {
                if before.is_none() {
                    self.ports.feed.tell(&News::StoreAway(&fault));
                }
                let wait = before.map_or(AWAY_MIN, |away| away.wait.plus(away.wait).min(AWAY_MAX));
                self.away = Some(Away { until: self.ports.clock.uptime().plus(wait), wait });
            }
            (None, Some(_)) => {
                self.away = None;
                self.ports.feed.tell(&News::StoreBack);
            }
            (None, None) => {}
        }
        if self.is_unsure && self.away.is_none() {
            self.plan.put(Item::Watch, Instant::EPOCH);
        }
    }

    /// Waits for an input or for the next thing in the plan.
    async fn wait(&mut self, now: Instant) {
        let uptime = self.ports.clock.uptime();
        let away = self.away.map(|away| away.until.minus(uptime));
        if let Some(away) = away.filter(|away| !away.is_zero()) {
            return self.ports.clock.sleep(away).await;
        }
        let planned = self.plan.first().map_or(SLEEP_MAX, |first| first.since(now)).min(SLEEP_MAX);
        let wait = self.clock_watch.hold(uptime).map_or(planned, |hold| hold.min(SLEEP_MAX));
        race(self.handle.inputs.ready(), self.ports.clock.sleep(wait)).await;
    }

    async fn chore(&mut self, chore: Item, now: Instant) {
        let done = match &chore {
            Item::Beat => self.beat().await,
            Item::Watch => self.watch(now).await,
            Item::Prune(job) => self.prune(job).await,
            Item::Expire(after) => self.expire(*after, now).await,
            Item::Wake(_) | Item::Fire(..) | Item::CatchUp(..) => Ok(()),
        };
        match (chore, done) {
            (Item::Beat, _) => self.plan.put(Item::Beat, now.plus(self.beat_every())),
            (Item::Watch, Ok(())) => self.plan.put(Item::Watch, now.plus(Self::WATCH_EVERY)),
            (chore, Err(fault)) => {
                self.plan.put(chore, now.plus(AWAY_MAX));
                self.note_trouble(Some(fault));
            }
            (_, Ok(())) => {}
        }
    }
}

impl Work {
    fn new(actor: Actor, command: Command, origin: Origin) -> Self {
        Self { actor, command, origin, attempt: 1 }
    }

    fn report(run: RunId, report: Report) -> Self {
        let command = Command::Report { run, report: report.clone() };
        Self::new(Actor::Program, command, Origin::Report(run, report))
    }
}

fn is_done(outcome: &Option<Outcome>) -> bool {
    matches!(outcome, Some(Outcome::Done { .. } | Outcome::Rejected(_)))
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
