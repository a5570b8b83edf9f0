//! The loop of a node: gather what is due and what came in, take a turn, do what is owed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use cronhold_core::command::{Command, Report, Stamp};
use cronhold_core::record::{Actor, Key, LockName, Node as NodeRecord, Owner, ScheduleId};
use cronhold_core::{JobId, NodeId, RunId, World};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Asked, Desk, Fault, Flight, Outcome, Prepared, has_foreign_nodes};

use crate::beacon::Beacon;
use crate::company::await_name;
use crate::due::Allowance;
use crate::effects::Taken;
use crate::foresight::Foreseen;
use crate::intake::{Handle, Input, Refused, Reply};
use crate::members::Members;
use crate::meter::Meter;
use crate::node_clock::NodeClock;
use crate::plan::{Item, Plan};
use crate::ports::{News, Ports};
use crate::race::{First, race};
use crate::resting::Resting;
use crate::retention::EXPIRE_EVERY;
use crate::skew::SkewWatch;

/// The clock is looked at this often at least, so that a step is noticed.
const SLEEP_MAX: Span = Span::from_secs(1);
/// First and longest wait after the store failed.
const AWAY_MIN: Span = Span::from_millis(100);
const AWAY_MAX: Span = Span::from_secs(5);
/// A claim that is later than this is counted as late.
const LATE: Span = Span::from_secs(1);
/// What needs a record that cannot be read is tried again after this.
const BROKEN_WAIT: Span = Span::from_secs(60);

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
    /// Whether it starts even when another node that is there has its name.
    pub force: bool,
    /// So many claims of one instant are decided shortly before it.
    pub foresees: usize,
}

impl Options {
    /// A node with all defaults.
    pub fn new(node: NodeId, name: impl Into<String>) -> Self {
        Self {
            node,
            name: name.into(),
            catch_up_rate: 100,
            programs_max: 10_000,
            remembers: 150_000,
            force: false,
            foresees: 8,
        }
    }
}

/// Why a node cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The store is broken.
    #[error(transparent)]
    Store(#[from] Fault),
    /// Another node that is there has its name.
    #[error("another node that is running is called `{name}` too ({other})")]
    NameTaken {
        /// The name.
        name: String,
        /// Who has it.
        other: NodeId,
    },
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
    pub(crate) plan: Plan,
    /// Occurrences whose time came while their job was paused.
    pub(crate) resting: Resting,
    /// Runs whose programs were asked for in this life.
    pub(crate) programs: BTreeSet<RunId>,
    /// Runs that wait for locks.
    pub(crate) waiters: BTreeMap<LockName, BTreeSet<RunId>>,
    /// What the watchdog found, so that the records say so.
    pub(crate) found: BTreeSet<Item>,
    /// What the node asks of itself.
    pub(crate) own: VecDeque<(Actor, Command)>,
    /// Reports that the store has not taken yet.
    pub(crate) unsettled: VecDeque<(RunId, Report)>,
    /// Schedules for which each start of a node is an occurrence.
    pub(crate) at_start: BTreeSet<(JobId, ScheduleId)>,
    /// What lost against someone else and is decided again.
    pub(crate) again: VecDeque<Work>,
    /// Whether the outcome of something is unknown, so that stored state has to be compared with what is known here.
    pub(crate) is_unsure: bool,
    /// Whether the clock was set back.
    pub(crate) went_back: bool,
    pub(crate) away: Option<Away>,
    /// What time it is.
    pub(crate) clock: NodeClock,
    /// Whether the clock on its wall is off.
    pub(crate) skew: SkewWatch,
    /// How others hear of this node.
    pub(crate) beacon: Beacon,
    /// Who is there.
    pub(crate) members: Members,
    /// Nodes that are gone and have no runs, with the beat that was their last.
    pub(crate) empty: BTreeMap<NodeId, Instant>,
    /// Records that others have changed and that were not looked at yet.
    pub(crate) unheard: BTreeSet<Key>,
    /// Whether so much was changed that everything has to be looked at.
    pub(crate) has_lost_touch: bool,
    /// When this node heard last by a record whether it drains. What was asked for before may be older.
    pub(crate) drain_heard: Span,
    /// Whether this start of the node is still to be an occurrence for schedules that want that.
    pub(crate) is_to_begin: bool,
    pub(crate) allowance: Allowance,
    /// Turns in a row that had as much to claim as they could have.
    pub(crate) rush: usize,
    pub(crate) is_stopping: bool,
}

/// The store fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Away {
    pub(crate) until: Span,
    wait: Span,
}

/// Something to be carried out, who waits for it, and how often it lost against someone else.
#[derive(Debug)]
pub(crate) struct Work {
    actor: Actor,
    command: Command,
    origin: Origin,
    attempt: usize,
}

/// Commands that are carried out together.
pub(crate) struct Turn {
    /// Uptime before any of it was sent.
    pub(crate) begin: Span,
    asked: Vec<Asked>,
    origins: Vec<(Origin, usize)>,
}

/// A turn that was sent.
struct Airborne {
    flight: Flight,
    turn: Turn,
}

#[derive(Debug)]
pub(crate) enum Origin {
    Request(Reply),
    Report(RunId, Report),
    Timer { item: Item, due: Instant, nominal: Instant },
    Own,
}

impl Engine {
    /// A node and the way to talk to it.
    pub fn new(ports: Ports, options: Options, world: World) -> (Self, Handle) {
        let handle = Handle::new(Arc::clone(&ports.clock), Arc::clone(&ports.entropy));
        (Self { ports, options, world, handle: handle.clone() }, handle)
    }

    /// Runs until it is asked to stop. Waits for a store that is away, but not for one that is broken.
    pub async fn run(self) -> Result<(), EngineError> {
        let Self { ports, options, world, handle } = self;
        let mut wait = AWAY_MIN;
        let mut node = loop {
            match Node::start(&ports, &options, &world, &handle).await {
                Ok(node) => break node,
                Err(EngineError::Store(fault)) if fault.is_passing() => {
                    ports.feed.tell(&News::StoreAway(&fault));
                    ports.clock.sleep(wait).await;
                    if handle.is_stopping() {
                        return Ok(());
                    }
                    wait = wait.plus(wait).min(AWAY_MAX);
                }
                Err(error) => return Err(error),
            }
        };
        let beacon = node.beacon.clone();
        race(node.live(), beacon.shine(&ports)).await;
        Ok(())
    }
}

impl Node {
    async fn start(ports: &Ports, options: &Options, world: &World, handle: &Handle) -> Result<Self, EngineError> {
        let desk = Desk::new(ports.store.clone(), options.remembers).await?;
        // Every start is another writer, so the writer's number tells the lives of a node apart.
        let me = Owner { node: options.node, incarnation: desk.writer() };
        let is_shared = ports.store.is_shared();
        let now = if is_shared { ports.store.time().await? } else { ports.clock.now() };
        let fresh = NodeRecord::new(options.node, options.name.clone(), me.incarnation, now);
        let record = NodeRecord { labels: (*world.labels).clone(), ..fresh };
        if is_shared
            && !options.force
            && let Some(rival) = await_name(ports, &record).await?
        {
            return Err(EngineError::NameTaken { name: record.name, other: rival.id });
        }
        let beacon = Beacon::new(record.clone(), is_shared);
        let has_foreign = has_foreign_nodes(&*ports.store);
        let mut node = Self {
            ports: ports.clone(),
            options: options.clone(),
            world: World { is_shared, has_foreign, nodes: [Arc::new(record)].into(), ..world.clone() },
            handle: handle.clone(),
            desk,
            me,
            plan: Plan::default(),
            resting: Resting::default(),
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
            clock: NodeClock::new(is_shared),
            skew: SkewWatch::default(),
            beacon,
            members: Members::default(),
            empty: BTreeMap::new(),
            unheard: BTreeSet::new(),
            has_lost_touch: false,
            drain_heard: Span::ZERO,
            is_to_begin: false,
            allowance: Allowance::default(),
            rush: 0,
            is_stopping: false,
        };
        node.beacon.beat(ports).await?;
        node.hear_beats().await;
        node.recover().await?;
        let now = node.look_at_clock();
        node.plan.put(Item::Watch, now.plus(Self::WATCH_EVERY));
        node.plan.put(Item::Expire(None), now.plus(EXPIRE_EVERY));
        Ok(node)
    }

    /// While one turn is on its way to the disk the next is decided on top of it.
    async fn live(&mut self) {
        let mut airborne: Option<Airborne> = None;
        let mut foreseen: Option<Foreseen> = None;
        while !self.is_stopping || airborne.is_some() {
            self.hear_beats().await;
            self.listen().await;
            let now = self.look_at_clock();
            let mut chores = Vec::new();
            let next = match self.take_foreseen(&mut foreseen, now) {
                Some(turn) => Some(turn),
                None => {
                    let batch = self.gather(now, &mut chores);
                    if batch.is_empty() { None } else { self.prepare(now, batch).await }
                }
            };
            let landed = match airborne.take() {
                Some(Airborne { flight, turn }) => Some((self.desk.land(flight).await, turn)),
                None => None,
            };
            let was_idle = next.is_none() && landed.is_none() && chores.is_empty();
            if let Some((mut prepared, turn)) = next {
                // Only what was refused shakes what was decided on top of it. What was only in doubt itself does not: two
                // such could put each other off for ever.
                if landed.is_some() && self.desk.is_shaken() {
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
                if foreseen.is_none() {
                    foreseen = self.foresee(now).await;
                }
                self.wait(now, foreseen.as_ref().map(Foreseen::at)).await;
            }
        }
        self.turn_away();
        self.beacon.farewell(&self.ports).await;
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

    /// What time it is.
    pub(crate) fn look_at_clock(&mut self) -> Instant {
        let (now, step) = self.clock.look(&*self.ports.clock);
        if let Some(step) = step {
            Meter::add(&self.handle.meter.clock_steps, 1);
            self.ports.feed.tell(&News::ClockStep { forward: step.forward, by: step.by });
            self.went_back |= !step.forward;
            // Times of the plan were computed with the other time.
            self.plan.put_by(Item::Watch, now.plus(Span::from_secs(10)));
            self.beacon.hurry();
        }
        now
    }

    /// Decides a batch. When the store cannot even be read, everything is put back.
    pub(crate) async fn prepare(&mut self, now: Instant, batch: Vec<Work>) -> Option<(Prepared, Turn)> {
        let begin = self.ports.clock.uptime();
        let mut turn = Turn { begin, asked: Vec::with_capacity(batch.len()), origins: Vec::with_capacity(batch.len()) };
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
                    if let Origin::Report(run, report) = &origin
                        && done.changes.is_empty()
                        && !matches!(report, Report::Launched)
                    {
                        self.ports.feed.tell(&News::Known(*run));
                    }
                    let answer = done.answer.clone();
                    self.settle(&asked.stamp, *done, Taken { at: turn.begin, fences: &fences }).await;
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

    /// Claims that were decided and are not sent are to be decided again.
    pub(crate) fn put_in_plan(&mut self, turn: Turn) {
        for (origin, _) in turn.origins {
            if let Origin::Timer { item, due, nominal } = origin {
                self.plan.put_for(item, due, nominal);
            }
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

    pub(crate) fn note_trouble(&mut self, trouble: Option<Fault>) {
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
    async fn wait(&mut self, now: Instant, foreseen: Option<Instant>) {
        let uptime = self.ports.clock.uptime();
        let away = self.away.map(|away| away.until.minus(uptime));
        if let Some(away) = away.filter(|away| !away.is_zero()) {
            return self.ports.clock.sleep(away).await;
        }
        let planned = self.plan.first().map_or(SLEEP_MAX, |first| first.since(now)).min(SLEEP_MAX);
        let planned = self.until_foresight(foreseen, now).map_or(planned, |foresight| planned.min(foresight));
        let held = if self.beacon.is_fresh(uptime) { None } else { Some(SLEEP_MAX) };
        let wait = self.clock.hold(uptime).max(held).map_or(planned, |hold| hold.min(SLEEP_MAX));
        let news = race(self.handle.inputs.ready(), self.beacon.heard.ready());
        let hints =
            async { if self.world.is_shared { self.ports.store.hints().await } else { std::future::pending().await } };
        let first = race(race(news, self.ports.clock.sleep(wait)), hints).await;
        if let First::Right(hints) = first {
            self.note_hints(hints);
        }
    }

    async fn chore(&mut self, chore: Item, now: Instant) {
        let done = match &chore {
            Item::Watch => self.watch(now).await,
            Item::Reap => self.reap().await,
            Item::Hear => self.hear(now).await,
            Item::Prune(job) => self.prune(job).await,
            Item::Expire(after) => self.expire(*after, now).await,
            Item::Wake(_) | Item::Fire(..) | Item::CatchUp(..) => Ok(()),
        };
        match (chore, done) {
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
    pub(crate) fn new(actor: Actor, command: Command, origin: Origin) -> Self {
        Self { actor, command, origin, attempt: 1 }
    }

    pub(crate) fn report(run: RunId, report: Report) -> Self {
        let command = Command::Report { run, report: report.clone() };
        Self::new(Actor::Program, command, Origin::Report(run, report))
    }
}
