//! Applies the events of a scenario at their times, and what follows from them later.

use cronhold_core::NodeId;
use cronhold_core::command::Command;
use cronhold_core::record::Actor;
use cronhold_schedule::Span;

use crate::check::DaemonChange;
use crate::machine::SimMachine;
use crate::random::SimRandom;
use crate::scenario::ScenarioAction;
use crate::simulation::Simulation;

/// Interval between attempts to lift pauses and to end draining.
const RESUME_EVERY: Span = Span::from_secs(5);

/// A keeper without programs is killed at the latest after `KEEPER_PATIENCE`; until then it is checked every
/// `KEEPER_LOOK`.
const KEEPER_PATIENCE: Span = Span::from_secs(300);
const KEEPER_LOOK: Span = Span::from_millis(700);

/// An event at a moment of virtual time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimedEvent {
    /// A scenario event, by number.
    Scenario(usize),
    /// The daemon of a machine restarts.
    Start(usize),
    /// A daemon that was asked to stop is killed, and stays down for a while.
    Gone(usize, Span),
    /// The daemon of a machine resumes after the pause of a scenario event.
    Resume(usize, usize),
    /// The keeper of a machine dies, unless it has no programs and there is time left to wait for one.
    LoseKeeper(usize, Span),
    /// The store faults of a scenario event end.
    FaultEnds(usize),
    /// The store restarts with the file of a scenario event.
    RollBack(usize),
    /// The simulation checks whether the store has recovered from a rollback.
    CheckRecovery,
    /// After the fault phase, what operators changed is undone.
    Undo,
}

/// What happens to a daemon after a number of steps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DaemonFate {
    /// It crashes and is down for this long.
    Crash(Span),
    /// It is suspended for this long, by the scenario event of this number.
    Pause(Span, usize),
}

impl Simulation {
    /// Applies an event.
    pub(crate) fn apply_event(&mut self, then: TimedEvent) {
        match then {
            TimedEvent::Scenario(number) => self.apply_scenario_event(number),
            TimedEvent::Start(machine) => {
                if self.machines[machine].handle().is_none() {
                    self.machines[machine].start();
                }
            }
            TimedEvent::Gone(machine, down) => self.crash(machine, down),
            TimedEvent::Resume(machine, number) => self.machines[machine].resume(number),
            TimedEvent::LoseKeeper(machine, patience) => self.lose_keeper(machine, patience),
            TimedEvent::FaultEnds(number) => {
                self.fault_plan.end(number).into_iter().for_each(|period| self.context.end_fault(period));
            }
            TimedEvent::RollBack(number) => self.roll_back_store(number),
            TimedEvent::CheckRecovery => self.check_recovery(),
            TimedEvent::Undo => self.undo(),
        }
    }

    fn apply_scenario_event(&mut self, number: usize) {
        let now = self.context.time.now();
        match self.scenario.events[number].what {
            ScenarioAction::Machine(machine) => {
                self.machines[machine].is_started = true;
                self.machines[machine].start();
            }
            ScenarioAction::Job(job) => {
                let command = self.workload.create_job(job);
                self.send_command(number, command);
            }
            ScenarioAction::Calls { unavailable, unknown } => self.fault_plan.fail(unavailable, unknown),
            ScenarioAction::Hints(loss) => self.fault_plan.lose_hints(loss),
            ScenarioAction::Reports(loss) => self.fault_plan.lose_reports(loss),
            ScenarioAction::Crash { machine, steps, down } => self.set_fate(machine, steps, DaemonFate::Crash(down)),
            ScenarioAction::Pause { machine, steps, lasts } => {
                self.set_fate(machine, steps, DaemonFate::Pause(lasts, number));
            }
            ScenarioAction::Stop { machine, gone, down } => {
                if self.machines[machine].stop() {
                    self.put(now.plus(gone), TimedEvent::Gone(machine, down));
                }
            }
            ScenarioAction::SetClock { machine, ahead } => {
                self.context.log(&self.machines[machine].name, || format!("clock is set {} ms ahead", ahead / 1_000));
                self.machines[machine].clock.set(ahead);
                self.context.daemon_changed(machine, DaemonChange::Disturbed);
            }
            ScenarioAction::SetStoreClock { ahead } => {
                self.context.log("store", || format!("clock is set {} ms ahead", ahead / 1_000));
                self.store_clock.set(ahead);
                (0..self.machines.len())
                    .for_each(|machine| self.context.daemon_changed(machine, DaemonChange::Disturbed));
            }
            ScenarioAction::StoreFault { period, lasts } => {
                self.context.begin_fault(period);
                self.fault_plan.begin(number, period);
                self.put(now.plus(lasts), TimedEvent::FaultEnds(number));
            }
            ScenarioAction::Rollback { lost } => self.write_snapshot(number, lost),
            ScenarioAction::KeeperLoss { machine } => self.lose_keeper(machine, KEEPER_PATIENCE),
            ScenarioAction::KeeperFailure { machine, is_hung, lasts } => {
                self.machines[machine].fail_keeper(is_hung, lasts);
            }
            ScenarioAction::OperatorCommand => {
                if let Some(command) = self.workload.draw_command(number) {
                    self.send_command(number, command);
                }
            }
            ScenarioAction::Trigger => {
                let command = self.workload.draw_trigger(number);
                self.send_command(number, command);
            }
            ScenarioAction::Drain { machine, on } => {
                let command = Command::Drain { node: self.machines[machine].node(), on };
                self.send_command(number, command);
            }
        }
    }

    /// Sets the fate of a daemon after `steps` more of its steps. An earlier fate that is still pending applies now.
    fn set_fate(&mut self, machine: usize, steps: u64, fate: DaemonFate) {
        if let Some((_, before)) = self.fates.remove(&machine) {
            self.apply_fate(machine, before);
        }
        if steps == 0 {
            self.apply_fate(machine, fate);
        } else {
            self.fates.insert(machine, (steps, fate));
        }
    }

    /// Applies the fate of a daemon.
    pub(crate) fn apply_fate(&mut self, machine: usize, fate: DaemonFate) {
        match fate {
            DaemonFate::Crash(down) => self.crash(machine, down),
            DaemonFate::Pause(lasts, number) => {
                self.fates.remove(&machine);
                if self.machines[machine].pause(number) {
                    self.put(self.context.time.now().plus(lasts), TimedEvent::Resume(machine, number));
                }
            }
        }
    }

    /// Kills the keeper of a machine as soon as it has programs, or when `patience` is used up.
    fn lose_keeper(&mut self, machine: usize, patience: Span) {
        if self.machines[machine].is_busy() || patience.is_zero() {
            return self.machines[machine].lose_keeper();
        }
        let next = TimedEvent::LoseKeeper(machine, patience.minus(KEEPER_LOOK));
        self.put(self.context.time.now().plus(KEEPER_LOOK), next);
    }

    /// Ends all faults.
    pub(crate) fn end_faults(&mut self) {
        self.context.log("end", || "of the fault phase".to_owned());
        self.fates.clear();
        self.fault_plan.clear().into_iter().for_each(|period| self.context.end_fault(period));
        self.machines.iter_mut().for_each(SimMachine::recover);
        self.put(self.context.time.now(), TimedEvent::Undo);
        // A recovery that has begun takes its time.
        self.put(self.context.time.now(), TimedEvent::CheckRecovery);
    }

    /// Crashes the daemon of a machine and schedules its restart.
    pub(crate) fn crash(&mut self, machine: usize, down: Span) {
        self.fates.remove(&machine);
        if self.machines[machine].handle().is_none() {
            return;
        }
        self.machines[machine].crash();
        self.put(self.context.time.now().plus(down), TimedEvent::Start(machine));
    }

    /// Lifts pauses, ends draining, and skips runs that no node may start.
    fn undo(&mut self) {
        let now = self.context.time.now();
        let present = self.machines.iter().zip(&self.scenario.machines).filter(|(machine, _)| machine.is_started);
        let present: Vec<_> = present.map(|(machine, build)| (machine.node(), &build.labels)).collect();
        for command in self.workload.resume().into_iter().chain(self.workload.give_up(&present)) {
            self.send_undo(now, command);
        }
        let drained: Vec<NodeId> =
            self.context.query(|model| model.nodes.values().filter(|node| node.draining).map(|node| node.id).collect());
        for node in drained {
            self.send_undo(now, Command::Drain { node, on: false });
        }
        self.put(now.plus(RESUME_EVERY), TimedEvent::Undo);
    }

    /// Sends the operator command of a scenario event to a running daemon.
    fn send_command(&mut self, number: usize, command: Command) {
        if self.context.is_traced() {
            self.commands.insert(number, describe_command(&command));
        }
        self.send_to_any(&SimRandom::of(self.scenario.seed, "who is asked", number as u64), command);
    }

    /// Sends a command that undoes a change after the fault phase.
    fn send_undo(&self, now: Span, command: Command) {
        self.send_to_any(&SimRandom::of(self.scenario.seed, "who is asked later", now.micros()), command);
    }

    fn send_to_any(&self, rng: &SimRandom, command: Command) {
        let up: Vec<&SimMachine> = self.machines.iter().filter(|machine| machine.handle().is_some()).collect();
        if up.is_empty() {
            return;
        }
        let machine = *rng.pick(&up);
        let Some(handle) = machine.handle().cloned() else { return };
        let (context, source) = (self.context.clone(), machine.name.clone());
        context.log(&source, || format!("anna requests: {}", describe_command(&command)));
        self.context.executor.spawn(machine.owner(), async move {
            let reply = handle.request(Actor::Operator("anna".to_owned()), command).await;
            context.log(&source, || match reply {
                Ok(reply) => format!("reply to anna: {reply:?}"),
                Err(refused) => format!("reply to anna: {refused}"),
            });
        });
    }
}

/// Describes a command, without the whole job.
fn describe_command(command: &Command) -> String {
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
