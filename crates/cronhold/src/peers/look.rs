//! A look at jobs in both places, and what is done so that both say the same: the node is asked for what others have
//! changed, and forms are written for what we have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use cronhold_api::FileMistake;
use cronhold_cli::counted;
use cronhold_core::command::{Command, Provided};
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Actor, Key, Source};
use cronhold_core::{JobId, JobUid, RunId};
use cronhold_engine::{Entropy, Handle, Refused};
use cronhold_jobfile::foreign::cronken::{self, Dialect};
use cronhold_jobfile::foreign::{FieldMistake, Form, Note};
use cronhold_schedule::{Instant, Zones};
use cronhold_server::{MistakeAt, sent_event};
use cronhold_store::{Fault, Reading, Settle, Shared, Standing, Store};
use tokio::task::{JoinSet, yield_now};

use super::reconcile::{News, Ours, Step, reading, reconcile};
use super::sight::{Scope, Sight, removed_lock};
use crate::chance::SystemEntropy;
use crate::log::Weight;

/// Where mistakes in definitions are shown, in place of a file.
const SHARED_JOBS: &str = "shared jobs";
/// Jobs that the node is asked for at once.
const ASKED_MAX: usize = 512;
/// After so many forms whoever waits for the same thread has a turn.
const FORMS_A_TURN: usize = 50;
/// More pauses than this are told as one change.
const PAUSES_TOLD_MAX: usize = 100;
/// More ids than this are not written out.
const SHOWN_MAX: usize = 5;

/// Looks again and again, and remembers what was so already.
#[derive(Debug)]
pub(super) struct Looker {
    store: Arc<dyn Store>,
    node: Handle,
    zones: Arc<Zones>,
    /// Jobs that were the same in both places, by what was compared.
    agreed: BTreeMap<JobId, Agreed>,
    /// What is wrong with forms now.
    mistakes: BTreeMap<JobId, Vec<FieldMistake>>,
    /// What was said of names, forms and jobs, so that it is said once.
    told: BTreeMap<String, u64>,
    /// Whether all of our jobs were gone the last time.
    was_empty: bool,
    /// Whether it looks again and again, and has a log; a command looks once, and tells who gave it.
    follows: bool,
    /// Whether nodes of another kind ran the same jobs at the last look.
    pub(super) had_company: bool,
}

/// What was compared when both places said the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Agreed {
    text: u64,
    uid: JobUid,
    revision: u32,
    is_paused: bool,
}

/// What nodes of another kind know already.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    /// Jobs of which they have heard what has changed.
    pub(super) jobs: BTreeSet<JobId>,
    /// They have heard, or will, that everything is paused or goes on.
    pub(super) pauses: bool,
    /// Everything goes on, which they have not heard.
    pub(super) has_resumed: bool,
}

/// What came of a look.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// What is to be said.
    pub(super) lines: Vec<(Weight, String)>,
    /// What may surprise about definitions.
    pub(super) notes: Vec<String>,
    /// Whether something could not be done now and may be done a little later.
    pub(super) again: bool,
    changed: Vec<JobId>,
    removed: Vec<JobId>,
    written: usize,
}

impl Looker {
    pub(super) fn new(store: Arc<dyn Store>, node: Handle, zones: Arc<Zones>) -> Self {
        Self {
            store,
            node,
            zones,
            agreed: BTreeMap::new(),
            mistakes: BTreeMap::new(),
            told: BTreeMap::new(),
            was_empty: false,
            follows: true,
            had_company: false,
        }
    }

    /// For a command, which leaves it to nodes to read forms again by other rules: they have a log to say so.
    pub(super) fn of_command(self) -> Self {
        Self { follows: false, ..self }
    }

    /// Looks. `anew` is whether jobs come back that somebody had removed here. Nodes of another kind are told of what was
    /// written, but for what they have heard of themselves.
    pub(super) async fn look(&mut self, scope: &Scope, anew: bool, quiet: &Quiet) -> Result<Looked, Fault> {
        let store = Arc::clone(&self.store);
        let Some(shared) = store.shared() else { return Ok(Looked::default()) };
        let mut looked = Looked::default();
        let mut sight = Sight::read(&*store, shared, scope).await?;
        self.tell_strange(&sight, &mut looked);
        if *scope == Scope::All {
            self.mistakes.retain(|id, _| sight.forms.contains_key(id));
            self.guard(&mut sight, &mut looked);
        }
        let returning = if anew { sight.let_return() } else { BTreeSet::new() };
        self.had_company = shared.has_foreign_nodes();
        let mut steps = self.steps(&sight, self.had_company, &mut looked).await;
        if *scope == Scope::All {
            self.confirm_removals(&mut steps, shared).await?;
        } else {
            // A removal is looked at together with all other jobs.
            let before = steps.len();
            steps.retain(|(_, step)| !removes(step));
            looked.again |= steps.len() < before;
        }
        let done = self.ask_all(steps, &mut looked).await;
        match self.conclude(done, &returning, shared, quiet, &mut looked).await {
            // What was done is said all the same, and the rest is done by the next look.
            Err(fault) if fault.is_passing() && self.follows => looked.again = true,
            concluded => concluded?,
        }
        looked.conclude();
        Ok(looked)
    }

    /// Makes known what was done.
    async fn conclude(
        &mut self,
        done: Vec<(JobId, Step)>,
        returning: &BTreeSet<JobId>,
        shared: &dyn Shared,
        quiet: &Quiet,
        looked: &mut Looked,
    ) -> Result<(), Fault> {
        self.undo_late(&done, returning).await?;
        for id in done.iter().map(|(id, _)| id).filter(|id| returning.contains(*id)) {
            // They are no longer removed for a while only, whoever has removed them.
            self.ask(Command::LetGo { lock: removed_lock(id), holder: removed_holder() }).await.ok();
        }
        self.settle(done, shared, quiet, looked).await?;
        if quiet.has_resumed && shared.has_foreign_nodes() {
            // Told to resume everything they would go on with jobs that are paused by themselves, and lose those that are
            // never due. Definitions say all of it.
            shared.send(&sent_event("reload", "")).await?;
        }
        Ok(())
    }

    /// What is wrong with definitions now, for people who ask for jobs.
    pub(super) fn mistakes(&self) -> Vec<MistakeAt> {
        let all = self.mistakes.iter().flat_map(|(id, mistakes)| mistakes.iter().map(move |mistake| (id, mistake)));
        let at = |(id, mistake): (&JobId, &FieldMistake)| {
            let path = if mistake.path.is_empty() { String::new() } else { format!("{}: ", mistake.path) };
            let message = format!("{path}{}", mistake.message);
            let (file, hint) = (SHARED_JOBS.to_owned(), mistake.hint.clone());
            // It is one line, and places in it are named and not counted.
            MistakeAt { job: Some(id.clone()), mistake: FileMistake { file, line: 1, column: 1, message, hint } }
        };
        all.map(at).collect()
    }

    /// Notes in forms what is wrong with them, as a validation does. Answers with how many.
    pub(super) async fn validate(&mut self, names: &[String]) -> Result<usize, Fault> {
        let store = Arc::clone(&self.store);
        let Some(shared) = store.shared() else { return Ok(0) };
        let forms = shared.forms(Some(names).filter(|names| !names.is_empty())).await?;
        let options = options(&self.zones, shared.has_foreign_nodes());
        let noted = forms.into_iter().filter_map(|form| {
            let text = form.text?;
            let read = cronken::read(&text, &options);
            let errors = all_mistakes(&read.mistakes);
            let with = Form::parse(&text).ok().filter(|_| read.job.is_none());
            let with = with.and_then(|form| cronken::with_errors(&form, &errors))?;
            Some(Settle {
                name: form.name,
                found: Some(text),
                text: Some(with.to_string()),
                reading: reading(&options),
            })
        });
        let noted: Vec<Settle> = noted.collect();
        if noted.is_empty() {
            return Ok(0);
        }
        Ok(shared.settle(&noted).await?.into_iter().filter(|is_noted| *is_noted).count())
    }

    /// Losses of everything at once are taken for what they are.
    fn guard(&mut self, sight: &mut Sight, looked: &mut Looked) {
        let kept = sight.keep_when_all_forms_are_gone();
        if kept > 0 {
            let words = format!(
                "the definitions of all {kept} shared jobs are gone at once; the jobs are kept and written again \
                 (`cronhold del` removes jobs)"
            );
            looked.lines.push((Weight::Trouble, words));
        }
        let is_empty = sight.has_lost_all_jobs();
        if is_empty && self.was_empty {
            let words = "all jobs are gone at once while their shared definitions are there; they are made again";
            looked.lines.push((Weight::Trouble, words.to_owned()));
            sight.take_for_new();
        } else if is_empty {
            // Somebody may be about to remove the definitions too.
            sight.forms.clear();
        }
        self.was_empty = is_empty;
    }

    async fn steps(&mut self, sight: &Sight, has_foreign: bool, looked: &mut Looked) -> Vec<(JobId, Step)> {
        let mut steps = Vec::new();
        let zones = Arc::clone(&self.zones);
        let options = options(&zones, has_foreign);
        let settled = Standing::Settled(reading(&options));
        for (count, (id, form)) in sight.forms.iter().enumerate() {
            if count % FORMS_A_TURN == FORMS_A_TURN - 1 {
                yield_now().await;
            }
            let record = sight.jobs.get(id);
            let (is_paused, is_held) = (sight.paused.contains(id), sight.is_held);
            let now = record.zip(form.text.as_ref()).filter(|_| form.standing == settled);
            let now = now.map(|(record, text)| Agreed {
                text: digest(text),
                uid: record.uid,
                revision: record.revision,
                is_paused: is_paused || is_held,
            });
            if now.is_some() && self.agreed.get(id) == now.as_ref() {
                continue;
            }
            let ours = record.map(|record| Ours { record, is_paused, is_held });
            let (uid, was_removed) = (JobUid::from_bits(SystemEntropy.bits()), sight.removed.contains(id));
            let mut step = reconcile(id, form, ours, was_removed, uid, &options);
            if step.is_reread && !self.follows {
                // What was changed here is shown, and the time stays until somebody reads it again.
                step = reconcile(id, form, ours, was_removed, uid, &options.otherwise());
            }
            self.tell_step(id, form.text.as_deref().unwrap_or_default(), record.is_some(), &step, looked);
            match (now, step.is_nothing()) {
                (Some(now), true) => drop(self.agreed.insert(id.clone(), now)),
                _ => drop(self.agreed.remove(id)),
            }
            if !step.is_nothing() {
                steps.push((id.clone(), step));
            }
        }
        steps
    }

    /// Forms that are gone are looked at once more before their jobs go.
    async fn confirm_removals(&self, steps: &mut Vec<(JobId, Step)>, shared: &dyn Shared) -> Result<(), Fault> {
        let names: Vec<String> = steps.iter().filter(|(_, step)| removes(step)).map(|(id, _)| id.to_string()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let forms = shared.forms(Some(&names)).await?;
        let gone = forms.into_iter().filter(|form| form.text.is_none() && form.standing == Standing::Changed);
        let gone: BTreeSet<String> = gone.map(|form| form.name).collect();
        steps.retain(|(id, step)| !removes(step) || gone.contains(id.as_str()));
        Ok(())
    }

    /// Asks the node for everything. Answers with the steps that can be settled.
    async fn ask_all(&mut self, steps: Vec<(JobId, Step)>, looked: &mut Looked) -> Vec<(JobId, Step)> {
        let (mut done, waiting): (Vec<_>, Vec<_>) = steps.into_iter().partition(|(_, step)| step.commands.is_empty());
        let mut waiting = waiting.into_iter();
        let mut asked = JoinSet::new();
        loop {
            while asked.len() < ASKED_MAX
                && let Some((id, step)) = waiting.next()
            {
                let node = self.node.clone();
                asked.spawn(async move {
                    let answer = carry_out(&node, &step.commands).await;
                    (id, step, answer)
                });
            }
            match asked.join_next().await {
                Some(Ok((id, step, Ok(())))) => {
                    looked.note(&id, &step);
                    done.push((id, step));
                }
                Some(Ok((id, step, Err(refused)))) => self.tell_refused(&id, &step, &refused, looked),
                // Nothing aborts these tasks, and a panic in one is a bug that was told already.
                Some(Err(_)) => {}
                None => return done,
            }
        }
    }

    /// A job that an event had removed while it was about to be made goes again. Whoever removes marks it first, so that
    /// whoever makes it too late sees the mark afterwards.
    async fn undo_late(&self, done: &[(JobId, Step)], returning: &BTreeSet<JobId>) -> Result<(), Fault> {
        let made = done.iter().filter(|(id, step)| makes(step) && !returning.contains(id));
        let made: Vec<&JobId> = made.map(|(id, _)| id).collect();
        let keys: Vec<Key> = made.iter().map(|id| Key::Lock(removed_lock(id))).collect();
        for (made, keys) in made.chunks(ASKED_MAX).zip(keys.chunks(ASKED_MAX)) {
            let marks = self.store.load(keys).await?;
            for (id, _) in made.iter().zip(marks).filter(|(_, mark)| mark.is_some()) {
                let (id, source, provided) = ((*id).clone(), Source::Foreign, Provided::Any);
                self.ask(Command::RemoveJob { id, source, provided }).await.ok();
            }
        }
        Ok(())
    }

    async fn settle(
        &mut self,
        steps: Vec<(JobId, Step)>,
        shared: &dyn Shared,
        quiet: &Quiet,
        looked: &mut Looked,
    ) -> Result<(), Fault> {
        let (news, settles): (Vec<_>, Vec<_>) =
            steps.into_iter().filter_map(|(id, step)| Some(((id, step.news), step.settle?))).unzip();
        if settles.is_empty() {
            return Ok(());
        }
        let settled = shared.settle(&settles).await?;
        looked.again |= settled.contains(&false);
        let changed = settles.iter().zip(&settled).filter(|(settle, is_done)| **is_done && settle.found != settle.text);
        looked.written = changed.count();
        if shared.has_foreign_nodes() {
            let news = news.into_iter().zip(settled).filter(|((id, _), is_done)| *is_done && !quiet.jobs.contains(id));
            let news = news.filter_map(|((id, news), _)| Some((id, news?)));
            let news = news.filter(|(_, news)| !quiet.pauses || *news == News::Changed);
            tell_others(shared, news.collect()).await?;
        }
        Ok(())
    }

    async fn ask(&self, command: Command) -> Result<(), Refused> {
        self.node.ask(actor(), command).await.map(drop)
    }

    fn tell_strange(&mut self, sight: &Sight, looked: &mut Looked) {
        for (name, why) in &sight.strange {
            self.tell_once(format!("name {name}"), why, looked, || {
                let shown = cronhold_schedule::text::shortened(name).replace(char::is_control, "?");
                format!("shared job `{shown}` is left alone: {}", why.replace(char::is_control, "?"))
            });
        }
    }

    fn tell_step(&mut self, id: &JobId, text: &str, is_there: bool, step: &Step, looked: &mut Looked) {
        self.mistakes.remove(id);
        if !step.mistakes.is_empty() {
            self.mistakes.insert(id.clone(), step.mistakes.clone());
            let stays = if is_there { "the job stays as it was" } else { "it is not run" };
            let mistakes = all_mistakes(&step.mistakes);
            self.tell_once(format!("form {id}"), text, looked, || {
                format!("mistake: shared job {id}: {mistakes}; {stays}")
            });
        } else if self.told.remove(&format!("form {id}")).is_some() {
            looked.lines.push((Weight::Usual, format!("shared job {id}: nothing is wrong with it any more")));
        }
        self.tell_notes(id, &step.notes, looked);
        if step.is_overruled {
            let words =
                format!("shared job {id} was changed by another program; its job file counts, and is written again");
            looked.lines.push((Weight::Usual, words));
        }
    }

    /// Says what may surprise about a form, unless that was said of it already.
    fn tell_notes(&mut self, id: &JobId, notes: &[Note], looked: &mut Looked) {
        let line = |note: &Note| format!("note: shared job {id}: {note}").replace(char::is_control, "?");
        let lines: Vec<String> = notes.iter().map(line).collect();
        let (about, now) = (format!("notes {id}"), (!lines.is_empty()).then(|| digest(&lines.concat())));
        let before = match now {
            Some(now) => self.told.insert(about, now),
            None => self.told.remove(&about),
        };
        if before != now {
            looked.notes.extend(lines);
        }
    }

    fn tell_refused(&mut self, id: &JobId, step: &Step, refused: &Refused, looked: &mut Looked) {
        match refused {
            Refused::Rejected(Rejection::JobThere(_) | Rejection::JobChanged { .. })
            | Refused::Busy
            | Refused::Late => {
                looked.again = true;
            }
            Refused::Stopping => {}
            Refused::Failed(fault) if fault.is_passing() => looked.again = true,
            Refused::Rejected(_) | Refused::Failed(_) => {
                let text = step.settle.as_ref().and_then(|settle| settle.found.clone()).unwrap_or_default();
                let words = format!("shared job {id}: {refused}");
                self.tell_once(format!("refused {id}"), &text, looked, || words);
            }
        }
    }

    fn tell_once(&mut self, about: String, text: &str, looked: &mut Looked, words: impl FnOnce() -> String) {
        if self.told.insert(about, digest(text)) != Some(digest(text)) {
            looked.lines.push((Weight::Trouble, words()));
        }
    }
}

impl Looked {
    fn note(&mut self, id: &JobId, step: &Step) {
        let ids = if removes(step) { &mut self.removed } else { &mut self.changed };
        ids.push(id.clone());
        if step.is_reread {
            self.lines.push((Weight::Trouble, reread_words(id, step)));
        }
    }

    fn conclude(&mut self) {
        let parts = [("new or changed", &self.changed), ("removed", &self.removed)];
        let parts = parts.iter().filter(|(_, ids)| !ids.is_empty());
        let mut parts: Vec<String> =
            parts.map(|(what, ids)| format!("{} {what} ({})", ids.len(), shown(ids))).collect();
        if !parts.is_empty() {
            let words = format!("jobs shared with other programs: {}", parts.join(", "));
            self.lines.push((Weight::Usual, words));
            parts.clear();
        }
        if self.written > 0 {
            let words = format!("{} written for other programs", counted(self.written, "definition"));
            self.lines.push((Weight::Detail, words));
        }
    }
}

impl Step {
    fn is_nothing(&self) -> bool {
        self.commands.is_empty() && self.settle.is_none()
    }
}

/// In whose name jobs are removed for a while: everybody's, because whoever reads everything again ends it.
pub(super) fn removed_holder() -> RunId {
    RunId::from_key(Instant::EPOCH, "removed until everything is read again")
}

/// How forms are read in this place.
pub(super) fn options(zones: &Zones, has_foreign: bool) -> cronken::Options<'_> {
    let dialect = if has_foreign { Dialect::Cronken } else { Dialect::Cron };
    cronken::Options { zones, dialect }
}

/// All mistakes in one line.
pub(super) fn all_mistakes(mistakes: &[FieldMistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Asks for one thing after the other. What is so already is done.
async fn carry_out(node: &Handle, commands: &[Command]) -> Result<(), Refused> {
    for command in commands {
        match node.ask(actor(), command.clone()).await {
            Ok(_) => {}
            Err(Refused::Rejected(rejection)) if rejection.is_so_already() => {}
            Err(Refused::Rejected(Rejection::NoJob(_))) if matches!(command, Command::RemoveJob { .. }) => {}
            Err(refused) => return Err(refused),
        }
    }
    Ok(())
}

/// What is said of a form that means something else than before, although nobody has changed it.
fn reread_words(id: &JobId, step: &Step) -> String {
    let is_theirs = step.settle.as_ref().is_some_and(|settle| settle.reading == Reading::Theirs);
    let rules = if is_theirs { "Cronken's nodes read it" } else { "cron does" };
    let jobs = step.commands.iter().filter_map(|command| match command {
        Command::PutJob { job, .. } => Some(job),
        _ => None,
    });
    let times: Vec<String> =
        jobs.flat_map(|job| &job.schedules).map(|schedule| schedule.spec.words(id.as_str())).collect();
    format!("shared job {id} is read as {rules} from now on, and means another time: {}", times.join("; "))
}

/// Nodes of another kind look at definitions only when they are told to.
async fn tell_others(shared: &dyn Shared, news: Vec<(JobId, News)>) -> Result<(), Fault> {
    let is_short = news.len() <= PAUSES_TOLD_MAX;
    let (pauses, others): (Vec<_>, Vec<_>) = news.into_iter().partition(|(_, news)| is_short && *news != News::Changed);
    for (id, news) in pauses {
        let action = if news == News::Paused { "pause" } else { "resume" };
        shared.send(&sent_event(action, id.as_str())).await?;
    }
    if !others.is_empty() {
        shared.send(&sent_event("reload", "")).await?;
    }
    Ok(())
}

fn actor() -> Actor {
    Actor::ForeignDefinition
}

fn makes(step: &Step) -> bool {
    step.commands.iter().any(|command| matches!(command, Command::PutJob { provided: Provided::New, .. }))
}

fn removes(step: &Step) -> bool {
    matches!(step.commands[..], [Command::RemoveJob { .. }])
}

fn shown(ids: &[JobId]) -> String {
    let mut parts: Vec<String> = ids.iter().take(SHOWN_MAX).map(JobId::to_string).collect();
    if ids.len() > SHOWN_MAX {
        parts.push(format!("{} more", ids.len() - SHOWN_MAX));
    }
    parts.join(", ")
}

/// Stands for a text: that two have the same is not worth thinking of.
fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
