//! One simulation from its first moment to its rest. First everything happens at once: jobs run, people meddle,
//! daemons crash, the store fails. Then the trouble ends, pauses are lifted, and everything has to come to rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::World;
use cronhold_core::command::Command;
use cronhold_core::record::Actor;
use cronhold_engine::Clock;
use cronhold_schedule::{Instant, Span};
use cronhold_store::MemoryStore;

use crate::chance::Chance;
use crate::check::Finding;
use crate::executor::Whose;
use crate::film::Film;
use crate::jobs::Recipe;
use crate::machine::{Machine, Parts};
use crate::mirror::Mirror;
use crate::stage::{Stage, Tally};
use crate::time::WallClock;
use crate::variant::Variant;
use crate::weather::Weather;
use crate::workload::Workload;

/// How long it may take until everything has come to rest.
const REST_MAX: Span = Span::from_secs(12 * 3_600);
/// Once quiet, it must stay so for two passes of the watchdog.
const QUIET: Span = Span::from_secs(130);
/// Steps of one simulation, and at one moment of it; more would be going round in circles.
const STEPS_MAX: u64 = 3_000_000;
const STEPS_AT_ONCE_MAX: u64 = 100_000;
/// Occurrences that a simulation has, about.
const OCCURRENCES: u64 = 250;
/// A pause is lifted this often until it is.
const RESUME_EVERY: Span = Span::from_secs(5);

/// When simulations begin: an ordinary noon, and shortly before clocks change in New York and in Berlin.
const STARTS: [Instant; 4] = [
    Instant::from_secs(1_772_451_000),
    Instant::from_secs(1_772_952_600),
    Instant::from_secs(1_774_745_400),
    Instant::from_secs(1_792_889_400),
];

/// What can be chosen beside the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Machines, each with a node.
    pub nodes: usize,
    /// How long there is trouble; drawn when absent.
    pub length: Option<Span>,
    /// How many jobs; drawn when absent.
    pub jobs: Option<usize>,
    /// What is wrong on purpose.
    pub variant: Variant,
    /// Whether a film is made.
    pub film: bool,
}

/// What came of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Showing {
    /// The first thing that a checker found.
    pub finding: Option<Finding>,
    /// One line for each event, if wanted.
    pub film: Vec<String>,
    /// How long it lasted in virtual time.
    pub lasted: Span,
    /// How often a task was let go on.
    pub steps: u64,
    /// How much happened.
    pub tally: Tally,
}

impl Default for Settings {
    fn default() -> Self {
        Self { nodes: 1, length: None, jobs: None, variant: Variant::Sound, film: false }
    }
}

/// Plays the simulation of a seed.
pub fn play(seed: u64, settings: Settings, world: &World) -> Showing {
    let mut play = Play::draw(seed, settings, world);
    let finding = play.perform().err();
    let Play { stage, steps, .. } = play;
    let finding = stage.finding().or(finding);
    if let Some(finding) = &finding {
        stage.say("check", || finding.to_string());
    }
    let (lasted, tally) = (stage.time.now(), stage.tally());
    let Tally { units, runs, launches } = tally;
    stage.say("end", || format!("{units} units, {runs} runs, {launches} programs"));
    Showing { finding, film: stage.take_film(), lasted, steps, tally }
}

/// A simulation under way.
struct Play {
    stage: Stage,
    chance: Chance,
    weather: Weather,
    machines: Vec<Machine>,
    workload: Workload,
    length: Span,
    /// What is going to happen; the number tells those apart that happen at one moment.
    acts: BTreeMap<(Span, u64), Act>,
    count: u64,
    /// A daemon that has just done something crashes once in so many steps; never, when zero.
    crash_one_in: u64,
    is_clock_set: bool,
    is_trouble: bool,
    steps: u64,
    steps_at_once: u64,
}

/// Something that happens by itself.
#[derive(Debug)]
enum Act {
    Start(usize),
    Crash(usize),
    Stop(usize),
    SetClock(usize, i64),
    Meddle,
    Ask(Box<Command>),
}

impl Play {
    /// Draws everything that is known before the beginning.
    fn draw(seed: u64, settings: Settings, world: &World) -> Self {
        let chance = Chance::new(seed);
        let length = settings.length.unwrap_or_else(|| chance.secs(240, 2_400));
        let jobs =
            settings.jobs.unwrap_or_else(|| if chance.one_in(4) { chance.index(28) + 3 } else { chance.index(8) + 3 });
        let start = *chance.pick(&STARTS);
        let stage = Stage::new(world.clone(), start, Film::new(settings.film));
        let weather = Weather::draw(&chance.fork(), length, settings.nodes);
        let shortest = (length.secs() * jobs as u64 / OCCURRENCES).clamp(3, 300);
        let is_clock_set = chance.one_in(5);
        let recipe = Recipe {
            chance: chance.fork(),
            zones: Arc::clone(&world.zones),
            start,
            end: start.plus(length),
            shortest,
            // After a clock was set back an occurrence comes a second time, and only its run tells that it has been.
            keeps_all: is_clock_set,
        };
        let is_shared = settings.nodes > 1 || chance.one_in(4);
        let has_keeper = chance.one_in(3);
        let machines = machines(&stage, &weather, settings, is_shared, has_keeper, &chance);
        stage.say("seed", || {
            let keeper = if has_keeper { "a keeper" } else { "no keeper" };
            format!("{seed}: {jobs} jobs, {length}, from {start}, {keeper}, {}", weather.describe())
        });
        let mut play = Self {
            workload: Workload::new(stage.clone(), chance.fork(), recipe, jobs),
            stage,
            weather,
            machines,
            length,
            acts: BTreeMap::new(),
            count: 0,
            crash_one_in: *chance.pick(&[0, 0, 300, 2_000]),
            is_clock_set,
            is_trouble: true,
            steps: 0,
            steps_at_once: 0,
            chance,
        };
        play.draw_acts();
        play
    }

    fn draw_acts(&mut self) {
        for number in 0..self.machines.len() {
            self.put(Span::ZERO, Act::Start(number));
        }
        for command in self.workload.opening() {
            let at = self.chance.micros(10_000, 3_000_000);
            self.put(at, Act::Ask(Box::new(command)));
        }
        let length = self.length.micros();
        for _ in 0..self.chance.between(0, 60) {
            let at = self.chance.micros(0, length);
            self.put(at, Act::Meddle);
        }
        for _ in 0..self.chance.between(0, 3) {
            let (at, number) = (self.chance.micros(0, length), self.chance.index(self.machines.len()));
            let act = if self.chance.one_in(3) { Act::Stop(number) } else { Act::Crash(number) };
            self.put(at, act);
        }
        if self.is_clock_set {
            let (at, number) = (self.chance.micros(0, length), self.chance.index(self.machines.len()));
            // One machine among many is set by less than what counts as a cursor that ran ahead: the others are right,
            // and what they wrote must not be undone.
            let most = if self.machines.len() > 1 { 50_000_000 } else { 200_000_000 };
            let by = i64::try_from(self.chance.between(0, 2 * most)).expect("small") - most.cast_signed();
            self.put(at, Act::SetClock(number, by));
        }
    }

    /// Plays to the end.
    fn perform(&mut self) -> Result<(), Finding> {
        self.run_until(self.length, |_| false)?;
        self.end_trouble();
        let limit = self.length.plus(REST_MAX);
        self.run_until(limit, |play| play.stage.ask(Mirror::is_quiet) && play.workload.resume().is_none())?;
        let limit = self.stage.time.now().plus(QUIET);
        self.run_until(limit, |_| false)?;
        self.stage.rested();
        self.stage.finding().map_or(Ok(()), Err)
    }

    /// Everything works from now on.
    fn end_trouble(&mut self) {
        self.stage.say("end", || "of all trouble".to_owned());
        self.is_trouble = false;
        self.weather.clear_up();
        // A daemon that was asked to stop is gone before it starts again.
        for act in std::mem::take(&mut self.acts).into_values() {
            if let Act::Crash(number) = act {
                self.machines[number].crash();
            }
        }
        for machine in &mut self.machines {
            machine.clock.set(0);
            if machine.handle().is_none() {
                machine.start();
            }
        }
        self.put(self.stage.time.now(), Act::Meddle);
    }

    /// Lets time pass until a moment, or until something holds.
    fn run_until(&mut self, until: Span, is_over: fn(&Self) -> bool) -> Result<(), Finding> {
        loop {
            while let Some(whose) = self.stage.executor.step(&self.chance) {
                self.note_step(whose)?;
            }
            if is_over(self) {
                return Ok(());
            }
            let act = self.acts.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = self.stage.time.next().into_iter().chain(act).min().filter(|next| *next <= until) else {
                self.stage.time.advance(until);
                return Ok(());
            };
            self.steps_at_once = if next > self.stage.time.now() { 0 } else { self.steps_at_once };
            self.stage.time.advance(next);
            while let Some(entry) = self.acts.first_entry().filter(|entry| entry.key().0 <= next) {
                let act = entry.remove();
                self.act(act);
            }
        }
    }

    /// Looks at what a step has done, and may let the daemon that did it crash.
    fn note_step(&mut self, whose: Whose) -> Result<(), Finding> {
        self.steps += 1;
        self.steps_at_once += 1;
        if let Some(finding) = self.stage.finding() {
            return Err(finding);
        }
        if self.steps > STEPS_MAX || self.steps_at_once > STEPS_AT_ONCE_MAX {
            return Err(Finding { checker: "progress", what: "it goes round in circles".to_owned() });
        }
        if let Whose::Daemon { machine } = whose
            && self.is_trouble
            && self.chance.one_in(self.crash_one_in)
        {
            self.crash(machine);
        }
        Ok(())
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Start(number) => {
                if self.machines[number].handle().is_none() {
                    self.machines[number].start();
                }
            }
            Act::Crash(number) => self.crash(number),
            Act::Stop(number) => {
                if self.machines[number].stop() {
                    let gone = self.stage.time.now().plus(self.chance.secs(1, 5));
                    self.put(gone, Act::Crash(number));
                }
            }
            Act::SetClock(number, ahead) => {
                let machine = &self.machines[number];
                self.stage.say(&machine.name, || format!("clock is set {} ms ahead", ahead / 1_000));
                machine.clock.set(ahead);
            }
            Act::Meddle if self.is_trouble => {
                if let Some(command) = self.workload.meddle() {
                    self.ask(command);
                }
            }
            Act::Meddle => {
                if let Some(command) = self.workload.resume() {
                    self.ask(command);
                }
                let next = self.stage.time.now().plus(RESUME_EVERY);
                self.put(next, Act::Meddle);
            }
            Act::Ask(command) => self.ask(*command),
        }
    }

    /// The daemon of a machine crashes, and starts again later.
    fn crash(&mut self, number: usize) {
        if self.machines[number].handle().is_none() {
            return;
        }
        self.machines[number].crash();
        let down = if self.chance.one_in(4) { self.chance.secs(60, 600) } else { self.chance.micros(1, 10_000_000) };
        self.put(self.stage.time.now().plus(down), Act::Start(number));
    }

    /// Somebody asks one of the daemons that are up.
    fn ask(&self, command: Command) {
        let up: Vec<&Machine> = self.machines.iter().filter(|machine| machine.handle().is_some()).collect();
        if up.is_empty() {
            return;
        }
        let machine = *self.chance.pick(&up);
        let Some(handle) = machine.handle().cloned() else { return };
        let (stage, who) = (self.stage.clone(), machine.name.clone());
        stage.say(&who, || format!("anna asks: {}", in_words(&command)));
        self.stage.executor.spawn(machine.whose(), async move {
            let answer = handle.ask(Actor::Operator("anna".to_owned()), command).await;
            stage.say(&who, || match answer {
                Ok(answer) => format!("anna hears: {answer:?}"),
                Err(refused) => format!("anna hears: {refused}"),
            });
        });
    }

    fn put(&mut self, at: Span, act: Act) {
        self.count += 1;
        self.acts.insert((at, self.count), act);
    }
}

/// The machines, all on one store.
fn machines(
    stage: &Stage,
    weather: &Weather,
    settings: Settings,
    is_shared: bool,
    has_keeper: bool,
    chance: &Chance,
) -> Vec<Machine> {
    let clock = |_| {
        let ahead = i64::try_from(chance.between(0, 400_000)).expect("small") - 200_000;
        Arc::new(WallClock::new(stage.time.clone(), ahead))
    };
    let clocks: Vec<Arc<WallClock>> = (0..settings.nodes).map(clock).collect();
    // A store that is shared has a time of its own; one on the machine itself has the machine's.
    let (time, own) = (stage.time.clone(), Arc::clone(&clocks[0]));
    let store = MemoryStore::new(Arc::new(move || if is_shared { time.day() } else { own.now() }));
    let machine = |(number, clock)| {
        let (store, variant, chance) = (&store, settings.variant, chance.fork());
        Machine::new(number, Parts { stage, store, clock, chance, weather, variant, is_shared, has_keeper })
    };
    clocks.into_iter().enumerate().map(machine).collect()
}

/// A command without the whole job in it.
fn in_words(command: &Command) -> String {
    match command {
        Command::PutJob { id, job, .. } => {
            format!(
                "put {id}: {:?}, {:?}, {:?}, {} schedules",
                job.overlap,
                job.lock,
                job.catch_up.policy,
                job.schedules.len()
            )
        }
        other => format!("{other:?}"),
    }
}
