//! A machine: its clock, its programs, its line to the store, and the lives of the daemon on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::NodeId;
use cronhold_engine::{Engine, Entropy, Feed, Handle, News, Options, Ports};
use cronhold_store::{MemoryStore, Store};

use crate::chance::Chance;
use crate::executor::Whose;
use crate::film;
use crate::line::Line;
use crate::programs::Programs;
use crate::stage::Stage;
use crate::tap::Tap;
use crate::time::WallClock;
use crate::variant::Variant;
use crate::weather::Weather;

/// A machine.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Its name in the film.
    pub(crate) name: String,
    /// Its clock.
    pub(crate) clock: Arc<WallClock>,
    number: usize,
    stage: Stage,
    chance: Chance,
    weather: Weather,
    variant: Variant,
    store: Arc<dyn Store>,
    programs: Programs,
    life: Option<Life>,
}

/// One life of the daemon.
#[derive(Debug)]
struct Life {
    handle: Handle,
    is_alive: Arc<AtomicBool>,
    is_stopping: bool,
}

/// What a machine is made of.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    /// What the simulation shares.
    pub(crate) stage: &'a Stage,
    /// The store that all share.
    pub(crate) store: &'a MemoryStore,
    /// Its clock.
    pub(crate) clock: Arc<WallClock>,
    /// Its own chance.
    pub(crate) chance: Chance,
    /// What the way to the store is like.
    pub(crate) weather: &'a Weather,
    /// What is wrong with it on purpose.
    pub(crate) variant: Variant,
    /// Whether others use the store too.
    pub(crate) is_shared: bool,
    /// Whether its programs outlive its daemon.
    pub(crate) has_keeper: bool,
}

impl Machine {
    /// A machine that is off.
    pub(crate) fn new(number: usize, parts: Parts<'_>) -> Self {
        let Parts { stage, store, clock, chance, weather, variant, is_shared, has_keeper } = parts;
        let name = format!("n{}", number + 1);
        let tap = Tap::new(store.clone(), stage.clone(), name.clone(), is_shared);
        let programs = Programs::new(stage.clone(), chance.fork(), number, name.clone(), has_keeper);
        Self {
            clock,
            number,
            stage: stage.clone(),
            weather: weather.clone(),
            variant,
            store: variant.before_the_store(Arc::new(tap)),
            programs,
            life: None,
            name,
            chance,
        }
    }

    /// The way to talk to its daemon, while that is up.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        self.life.as_ref().map(|life| &life.handle)
    }

    /// Whose the tasks of its daemon are.
    pub(crate) fn whose(&self) -> Whose {
        Whose::Daemon { machine: self.number }
    }

    /// Its daemon starts.
    pub(crate) fn start(&mut self) {
        assert!(self.life.is_none(), "one daemon at a time");
        let is_alive = Arc::new(AtomicBool::new(true));
        let line = Line {
            store: Arc::clone(&self.store),
            stage: self.stage.clone(),
            weather: self.weather.clone(),
            chance: self.chance.fork(),
            machine: self.number,
            who: self.name.clone(),
            is_alive: Arc::clone(&is_alive),
        };
        let store = self.variant.before_the_line(Arc::new(line), &self.stage, self.whose(), &self.chance);
        let ports = Ports {
            clock: self.clock.clone(),
            entropy: Arc::new(Bits(self.chance.fork())),
            store,
            outside: Arc::new(self.programs.clone()),
            feed: Arc::new(Reel { stage: self.stage.clone(), who: self.name.clone() }),
        };
        let node = NodeId::from_bits(self.number as u128 + 1);
        let (engine, handle) = Engine::new(ports, Options::new(node, &self.name), self.stage.world.clone());
        self.programs.connect(handle.clone());
        let begins = handle.clone();
        self.stage.executor.spawn(self.whose(), async move { begins.begin().await });
        self.life = Some(Life { handle, is_alive, is_stopping: false });
        self.stage.say(&self.name, || "starts".to_owned());
        let (stage, who) = (self.stage.clone(), self.name.clone());
        self.stage.executor.spawn(self.whose(), async move {
            let end = engine.run().await;
            stage.say(&who, || end.map_or_else(|fault| format!("gives up: {fault}"), |()| "has stopped".to_owned()));
        });
    }

    /// Its daemon is asked to stop. Answers whether there is one.
    pub(crate) fn stop(&mut self) -> bool {
        let Some(life) = &mut self.life else { return false };
        life.is_stopping = true;
        self.stage.say(&self.name, || "is asked to stop".to_owned());
        let handle = life.handle.clone();
        self.stage.executor.spawn(Whose::Nobody, async move { handle.stop().await });
        true
    }

    /// Its daemon is killed, wherever it is, and also one that was asked to stop and takes too long.
    pub(crate) fn crash(&mut self) {
        let Some(life) = self.life.take() else { return };
        self.stage.say(&self.name, || if life.is_stopping { "is gone" } else { "crashes" }.to_owned());
        life.is_alive.store(false, Ordering::Relaxed);
        self.stage.executor.end(self.whose());
        self.programs.disconnect();
    }
}

/// Chance as a node sees it.
#[derive(Debug)]
struct Bits(Chance);

impl Entropy for Bits {
    fn bits(&self) -> u128 {
        u128::from(self.0.bits()) << 64 | u128::from(self.0.bits())
    }
}

/// News of a node for the film.
#[derive(Debug)]
struct Reel {
    stage: Stage,
    who: String,
}

impl Feed for Reel {
    fn tell(&self, news: &News<'_>) {
        if let Some(text) = film::of_news(news) {
            self.stage.say(&self.who, || text);
        }
    }
}
