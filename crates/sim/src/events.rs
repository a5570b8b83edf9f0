//! Doing what a plot says: each act at its time, and what follows from it later.

use cronhold_core::NodeId;
use cronhold_core::command::Command;
use cronhold_core::record::Actor;
use cronhold_schedule::Span;

use crate::chance::SimRandom;
use crate::check::DaemonChange;
use crate::machine::SimMachine;
use crate::scenario::ScenarioAction;
use crate::simulation::Simulation;

/// A pause is lifted this often until it is, and a node is asked to drain no more.
const RESUME_EVERY: Span = Span::from_secs(5);

/// A keeper that has no program to lose is lost this much later, and is looked at so often until then.
const KEEPER_PATIENCE: Span = Span::from_secs(300);
const KEEPER_LOOK: Span = Span::from_millis(700);

/// Something that happens at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimedEvent {
    /// An act of the plot.
    Act(usize),
    /// The daemon of a machine starts again.
    Start(usize),
    /// A daemon that was asked to stop is gone, and stays down for a while.
    Gone(usize, Span),
    /// The daemon of a machine goes on after the pause of an act.
    GoOn(usize, usize),
    /// The keeper of a machine dies, unless it has nothing and there is patience left.
    LoseKeeper(usize, Span),
    /// The storm of an act is over.
    Lull(usize),
    /// What people did is undone, after all trouble.
    Undo,
}

/// What happens to a daemon after some steps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DaemonFate {
    /// It crashes, and is down for so long.
    Crash(Span),
    /// It stands still for so long, by an act of this number.
    Pause(Span, usize),
}

impl Simulation {
    /// Lets something happen.
    pub(crate) fn act(&mut self, then: TimedEvent) {
        match then {
            TimedEvent::Act(number) => self.act_of_plot(number),
            TimedEvent::Start(machine) => {
                if self.machines[machine].handle().is_none() {
                    self.machines[machine].start();
                }
            }
            TimedEvent::Gone(machine, down) => self.crash(machine, down),
            TimedEvent::GoOn(machine, number) => self.machines[machine].resume(number),
            TimedEvent::LoseKeeper(machine, patience) => self.lose_keeper(machine, patience),
            TimedEvent::Lull(number) => {
                self.fault_plan.end(number).into_iter().for_each(|storm| self.context.lull(storm))
            }
            TimedEvent::Undo => self.undo(),
        }
    }

    fn act_of_plot(&mut self, number: usize) {
        let now = self.context.time.now();
        match self.scenario.acts[number].what {
            ScenarioAction::Machine(machine) => {
                self.machines[machine].is_there = true;
                self.machines[machine].start();
            }
            ScenarioAction::Job(job) => {
                let command = self.workload.opening(job);
                self.ask(number, command);
            }
            ScenarioAction::Calls { away, unknown } => self.fault_plan.fail(away, unknown),
            ScenarioAction::Hints(loss) => self.fault_plan.lose_hints(loss),
            ScenarioAction::Reports(loss) => self.fault_plan.lose_reports(loss),
            ScenarioAction::Crash { machine, steps, down } => self.doom(machine, steps, DaemonFate::Crash(down)),
            ScenarioAction::Pause { machine, steps, lasts } => {
                self.doom(machine, steps, DaemonFate::Pause(lasts, number))
            }
            ScenarioAction::Stop { machine, gone, down } => {
                if self.machines[machine].stop() {
                    self.put(now.plus(gone), TimedEvent::Gone(machine, down));
                }
            }
            ScenarioAction::SetClock { machine, ahead } => {
                self.context.say(&self.machines[machine].name, || format!("clock is set {} ms ahead", ahead / 1_000));
                self.machines[machine].clock.set(ahead);
                self.context.turned(machine, DaemonChange::Disturbed);
            }
            ScenarioAction::SetStoreClock { ahead } => {
                self.context.say("store", || format!("clock is set {} ms ahead", ahead / 1_000));
                self.store_clock.set(ahead);
                (0..self.machines.len()).for_each(|machine| self.context.turned(machine, DaemonChange::Disturbed));
            }
            ScenarioAction::Storm { storm, lasts } => {
                self.context.storm(storm);
                self.fault_plan.begin(number, storm);
                self.put(now.plus(lasts), TimedEvent::Lull(number));
            }
            ScenarioAction::KeeperLoss { machine } => self.lose_keeper(machine, KEEPER_PATIENCE),
            ScenarioAction::Meddle => {
                if let Some(command) = self.workload.meddle(number) {
                    self.ask(number, command);
                }
            }
            ScenarioAction::Drain { machine, on } => {
                let command = Command::Drain { node: self.machines[machine].node(), on };
                self.ask(number, command);
            }
        }
    }

    /// Something happens to a daemon after so many more of its steps. What was to happen before does at once.
    fn doom(&mut self, machine: usize, steps: u64, doom: DaemonFate) {
        if let Some((_, before)) = self.doomed.remove(&machine) {
            self.meet(machine, before);
        }
        if steps == 0 {
            self.meet(machine, doom);
        } else {
            self.doomed.insert(machine, (steps, doom));
        }
    }

    /// What was to happen to a daemon does.
    pub(crate) fn meet(&mut self, machine: usize, doom: DaemonFate) {
        match doom {
            DaemonFate::Crash(down) => self.crash(machine, down),
            DaemonFate::Pause(lasts, number) => {
                self.doomed.remove(&machine);
                if self.machines[machine].pause(number) {
                    self.put(self.context.time.now().plus(lasts), TimedEvent::GoOn(machine, number));
                }
            }
        }
    }

    /// The keeper of a machine dies, as soon as it has something to lose.
    fn lose_keeper(&mut self, machine: usize, patience: Span) {
        if self.machines[machine].is_busy() || patience.is_zero() {
            return self.machines[machine].lose_keeper();
        }
        let next = TimedEvent::LoseKeeper(machine, patience.minus(KEEPER_LOOK));
        self.put(self.context.time.now().plus(KEEPER_LOOK), next);
    }

    /// Everything works from now on.
    pub(crate) fn end_trouble(&mut self) {
        self.context.say("end", || "of all trouble".to_owned());
        self.doomed.clear();
        self.fault_plan.clear_up().into_iter().for_each(|storm| self.context.lull(storm));
        self.machines.iter_mut().for_each(SimMachine::recover);
        self.put(self.context.time.now(), TimedEvent::Undo);
    }

    /// The daemon of a machine crashes, and starts again later.
    pub(crate) fn crash(&mut self, machine: usize, down: Span) {
        self.doomed.remove(&machine);
        if self.machines[machine].handle().is_none() {
            return;
        }
        self.machines[machine].crash();
        self.put(self.context.time.now().plus(down), TimedEvent::Start(machine));
    }

    /// Pauses are lifted, nodes drain no more, and what no node may start is skipped.
    fn undo(&mut self) {
        let now = self.context.time.now();
        let there = self.machines.iter().zip(&self.scenario.machines).filter(|(machine, _)| machine.is_there);
        let there: Vec<_> = there.map(|(machine, build)| (machine.node(), &build.labels)).collect();
        for command in self.workload.resume().into_iter().chain(self.workload.give_up(&there)) {
            self.ask_later(now, command);
        }
        let drained: Vec<NodeId> =
            self.context.ask(|model| model.nodes.values().filter(|node| node.draining).map(|node| node.id).collect());
        for node in drained {
            self.ask_later(now, Command::Drain { node, on: false });
        }
        self.put(now.plus(RESUME_EVERY), TimedEvent::Undo);
    }

    /// Somebody asks one of the daemons that are up, by an act.
    fn ask(&mut self, number: usize, command: Command) {
        if self.context.is_filmed() {
            self.asked.insert(number, in_words(&command));
        }
        self.ask_one(&SimRandom::of(self.scenario.seed, "who is asked", number as u64), command);
    }

    /// Somebody asks at a moment after all trouble, to undo what was done to a machine.
    fn ask_later(&self, now: Span, command: Command) {
        self.ask_one(&SimRandom::of(self.scenario.seed, "who is asked later", now.micros()), command);
    }

    fn ask_one(&self, chance: &SimRandom, command: Command) {
        let up: Vec<&SimMachine> = self.machines.iter().filter(|machine| machine.handle().is_some()).collect();
        if up.is_empty() {
            return;
        }
        let machine = *chance.pick(&up);
        let Some(handle) = machine.handle().cloned() else { return };
        let (context, who) = (self.context.clone(), machine.name.clone());
        context.say(&who, || format!("anna asks: {}", in_words(&command)));
        self.context.executor.spawn(machine.whose(), async move {
            let answer = handle.request(Actor::Operator("anna".to_owned()), command).await;
            context.say(&who, || match answer {
                Ok(answer) => format!("anna hears: {answer:?}"),
                Err(refused) => format!("anna hears: {refused}"),
            });
        });
    }
}

/// A command without the whole job in it.
fn in_words(command: &Command) -> String {
    match command {
        Command::PutJob { id, job, .. } => {
            format!(
                "put {id}: {:?}, {:?} for {}, {:?}, {:?}, {} schedules",
                job.overlap,
                job.lock,
                job.ttl,
                job.nodes,
                job.catch_up.policy,
                job.schedules.len()
            )
        }
        other => format!("{other:?}"),
    }
}
