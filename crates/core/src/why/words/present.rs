//! Sentences about the present.

use cronhold_schedule::Instant;
use cronhold_schedule::text::shortened;

use super::super::fact::{Fact, Hindrance, Prospect, Unable};
use super::super::reasons::{by, condition};
use super::super::wall::rough;
use super::{ExplanationWriter, counted, name};
use crate::record::{ActivePause, Run, ScheduleId, TriggerSet};
use crate::run::State;

/// The argument of `pause` and `resume` for all jobs.
const EVERYTHING: &str = "all";
/// What to do about a keeper that fails.
const KEEPER_ADVICE: &str = "it goes on when the keeper works again; `keeper/log` in the data directory has its log";

/// Things that a run waits for that are named; further ones are only counted.
const BLOCKERS_SHOWN: usize = 10;

impl ExplanationWriter<'_> {
    pub(super) fn present(&mut self, fact: &Fact) {
        let job = &self.why.job;
        match fact {
            Fact::NoJob => {
                self.say(format!("There is no job `{job}`."));
                self.advise("`cronhold list` shows the jobs".to_owned());
            }
            Fact::AllPaused(pause) => self.paused("Everything", EVERYTHING, pause),
            Fact::JobPaused(pause) => self.paused(&format!("`{job}`"), job.as_str(), pause),
            Fact::NoNode(node) => {
                let (at, ago) = (self.at(node.beat), self.ago(node.beat));
                self.say(format!(
                    "No node is running: the last heartbeat, from `{}`, was at {at}, {ago} ago.",
                    node.name
                ));
                self.advise("`cronhold up` starts a node; `catch_up` decides about what was missed".to_owned());
            }
            Fact::NoEligibleNode(labels) if labels.is_empty() => {
                self.say("No node starts runs: all live nodes are draining.".to_owned());
                self.advise("`cronhold nodes` shows them".to_owned());
            }
            Fact::NoEligibleNode(labels) => {
                let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
                self.say(format!("No live node may start it: it requires the labels {}.", labels.join(" and ")));
                self.advise("give a node these labels, or change `nodes` in the job".to_owned());
            }
            Fact::KeeperFails(node) => {
                let (name, why) = (&node.name, node.keeper_problem.as_deref().unwrap_or_default());
                self.say(format!("No live node can start it: the keeper of `{name}` fails ({why})."));
                self.advise(KEEPER_ADVICE.to_owned());
            }
            Fact::OnItsWay(run, hindrance) => self.on_its_way(run, hindrance.as_ref()),
            Fact::MoreOnTheirWay(more) => {
                self.say(format!("{more} more of its runs have not ended."));
                self.advise(format!("`cronhold runs {job}` shows them all"));
            }
            Fact::LastRun(run) => {
                let fate = self.fate(run);
                self.say(format!("Its last run, `{}`, {fate}.", name(run)));
            }
            Fact::CatchingUp { backlog, left } => {
                let wall = self.wall(Some(&backlog.schedule));
                let last = backlog.rest().last().map_or(backlog.to, |rest| rest.to);
                let (position, last) = (wall.at(backlog.position), wall.at(last));
                let all = backlog.later.iter().fold(backlog.count, |all, later| all.saturating_add(later.count));
                let left = left.map(|left| format!("{left} of ")).unwrap_or_default();
                let all = counted(all, "occurrence");
                self.say(format!("What was missed is being caught up: {left}{all} to go, from {position} to {last}."));
            }
            Fact::Triggers(set) => self.triggers(set),
            Fact::NoSchedule => {
                self.say(format!("`{job}` has no schedule: it runs only when it is started explicitly."));
                self.advise(format!("`cronhold run {job}` starts it"));
            }
            Fact::Schedule(schedule, prospect) => self.prospect(schedule, prospect),
            Fact::NoOccurrence(_) | Fact::Occurrence { .. } => {}
        }
    }

    /// How many triggers are pending, and the latest decision about them.
    fn triggers(&mut self, set: &TriggerSet) {
        let Some(decision) = set.last_decision() else { return };
        let pending = counted(u32::try_from(set.pending.len()).unwrap_or(u32::MAX), "trigger");
        let verb = if set.pending.len() == 1 { "is" } else { "are" };
        let at = self.at(decision.at);
        self.say(format!("{pending} {verb} pending; the latest decision, at {at}: {}.", decision.outcome));
        self.advise(format!("`cronhold triggers {}` shows them, and the decisions before", self.why.job));
    }

    fn paused(&mut self, what: &str, resume: &str, pause: &ActivePause) {
        let which = if resume == EVERYTHING { "no run" } else { "no run of it" };
        let why = if pause.why.is_empty() { String::new() } else { format!(" ({})", pause.why) };
        let since = self.at(pause.since);
        let end = pause.until.map_or_else(|| "it is resumed".to_owned(), |until| self.at(until));
        self.say(format!(
            "{what} has been paused since {since}, by {}{why}: {which} starts automatically until {end}.",
            by(&pause.by)
        ));
        self.advise(format!("`cronhold resume {resume}` ends the pause; `catch_up` decides about what was missed"));
    }

    fn on_its_way(&mut self, run: &Run, hindrance: Option<&Hindrance>) {
        let (name, fate) = (name(run), self.fate(run));
        let Some(hindrance) = hindrance else {
            let next = run
                .due
                .filter(|_| run.state == State::Waiting)
                .map(|due| format!("; nothing is known to block it, and it is checked again at {}", self.at(due)));
            return self.say(format!("`{name}` {fate}{}.", next.unwrap_or_default()));
        };
        let (why, advice) = self.hindrance(run, hindrance);
        self.say(format!("`{name}` {fate}: {why}."));
        self.advise(advice);
    }

    /// What blocks a run, and what the user can do about it.
    fn hindrance(&self, run: &Run, hindrance: &Hindrance) -> (String, String) {
        let name = name(run);
        let start = format!("`cronhold start {name}` starts it anyway");
        match hindrance {
            Hindrance::Pause => ("it does not start during the pause".to_owned(), start),
            Hindrance::Nodes => ("no live node may start it".to_owned(), "`cronhold nodes` shows the nodes".to_owned()),
            Hindrance::Target(node, unable) => {
                let node = self.node_name(*node);
                let (why, advice) = match unable {
                    Unable::Gone => ("is not running", "it is skipped when its node does not return within a minute"),
                    Unable::Draining => ("is being drained", "it starts when the drain of the node ends"),
                    Unable::Keeper => ("cannot start programs", "it starts when the keeper of the node works again"),
                    Unable::Labels => ("does not have the labels any more", "it is skipped within a minute"),
                };
                (
                    format!("only {node} may start it, which {why}"),
                    format!("{advice}; `cronhold nodes` shows the nodes"),
                )
            }
            Hindrance::Keeper(node) => {
                let why = node.keeper_problem.as_deref().unwrap_or_default();
                (format!("it waits for the keeper of `{}`, which fails ({why})", node.name), KEEPER_ADVICE.to_owned())
            }
            Hindrance::Lock(lock, holder) => {
                let holder = self.run_name(*holder);
                let advice = format!("it starts when `{holder}` ends; `cronhold stop {holder}` ends it");
                (format!("its lock `{lock}` is held by `{holder}`"), advice)
            }
            Hindrance::ForeignLock(lock, run) => {
                let runs =
                    run.as_ref().map(|run| format!(": {} runs `{}` on {}", run.system, run.job, shortened(&run.host)));
                let text = format!("its lock `{lock}` is held by a foreign node{}", runs.unwrap_or_default());
                let advice = "it starts when that run ends; `cronhold runs --peers` shows the runs of foreign nodes";
                (text, advice.to_owned())
            }
            Hindrance::Queue(before, 1) => (format!("`{}` is before it in the queue", self.run_name(*before)), start),
            Hindrance::Queue(before, count) => {
                let before = self.run_name(*before);
                (format!("{count} runs are before it in the queue, the last of them `{before}`"), start)
            }
            Hindrance::Active(run, 1) => (format!("`{}` has not ended", self.run_name(*run)), start),
            Hindrance::Active(run, count) => {
                (format!("`{}` and {} more have not ended", self.run_name(*run), count - 1), start)
            }
            // What the last check of the run has found.
            Hindrance::Conditions if !run.blockers.is_empty() => {
                let mut waits: Vec<String> =
                    run.blockers.iter().take(BLOCKERS_SHOWN).map(ToString::to_string).collect();
                let left = run.blockers.len().saturating_sub(BLOCKERS_SHOWN);
                waits.extend((left > 0).then(|| format!("{left} more")));
                (format!("it waits for {}", waits.join(", and for ")), start)
            }
            Hindrance::Conditions => {
                let job = self.known.job.as_ref();
                let conditions = job.iter().flat_map(|job| &job.job.conditions);
                let conditions = conditions.map(|required| condition(required, run, self.world));
                (format!("it needs {}", conditions.collect::<Vec<_>>().join(", and ")), start)
            }
        }
    }

    fn prospect(&mut self, id: &ScheduleId, prospect: &Prospect) {
        let schedule = self.schedule(id);
        let wall = self.wall(Some(id));
        let text = match prospect {
            Prospect::CannotAsk(error) => return self.cannot_ask(id, error),
            Prospect::NoCursor => return self.no_cursor(id),
            Prospect::Disabled => {
                self.say(format!("{schedule} is disabled."));
                return self.advise("`enabled: true` in the job enables it".to_owned());
            }
            Prospect::NotByTime => "never starts it by time".to_owned(),
            Prospect::AtStart => "starts it whenever a node starts".to_owned(),
            Prospect::AfterRun(run) => format!("counts from the end of `{}`, which has not ended", self.run_name(*run)),
            Prospect::Over(None) => "has no occurrence and never starts it".to_owned(),
            Prospect::Over(Some(last)) => format!("has no occurrence any more; the last one was at {}", wall.at(*last)),
            Prospect::Next { nominal, wake } => {
                let jitter = jitter(*nominal, *wake);
                format!("starts it next at {}{jitter}, in {}", wall.at(*nominal), self.ahead(*wake))
            }
            Prospect::Due { nominal, wake } => {
                let (at, jitter, ago) = (wall.at(*nominal), jitter(*nominal, *wake), self.ago(*wake));
                format!("was due at {at}{jitter}, {ago} ago, and no node has claimed that yet")
            }
            Prospect::Rests(nominal) => self.rests(&wall.at(*nominal), *nominal),
        };
        self.say(format!("{schedule} {text}."));
    }

    fn rests(&self, shown: &str, nominal: Instant) -> String {
        match nominal <= self.why.now {
            true => format!("rests at {shown}; what has passed since is recorded when the pause ends"),
            false => format!("would start it next at {shown}, in {}", self.ahead(nominal)),
        }
    }
}

fn jitter(nominal: Instant, wake: Instant) -> String {
    let jitter = wake.since(nominal);
    if jitter.is_zero() { String::new() } else { format!(" plus {} of jitter", rough(jitter)) }
}
