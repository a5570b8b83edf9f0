//! Plans what one job needs so that its shared definition and its record say the same: commands for the node, and an
//! update of the definition. Pure, so that one table can test every case.
//!
//! The latest change wins, field by field. Cronken can change only the fields that its form has; a field that it left as
//! Cronhold wrote it keeps the value of the record. Only its job file can change a job that comes from one, but anyone can
//! pause it.
//!
//! Cronken's nodes read some cron texts by other rules than cron. If other rules apply than when a definition was last
//! settled, its text stays, and a job that has its schedule from that text is read again.

use std::sync::Arc;

use cronhold_core::command::{Command, Precondition};
use cronhold_core::record::{JobRecord, JobSource};
use cronhold_core::{Job, JobId, JobUid};
use cronhold_jobfile::foreign::{FieldMistake, ForeignForm, FormNote};
use cronhold_schedule::Timing;
use cronhold_store::{DefinitionRules, DefinitionStatus, DefinitionUpdate, SharedDefinition};

use crate::definition::{self, Dialect, ParsedDefinition, ReadOptions};
use crate::plan_castle::plan_invalid_castle;

/// A job as this store has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalJob<'a> {
    pub(crate) record: &'a JobRecord,
    /// Whether the job is paused now, regardless of its definition.
    pub(crate) is_paused: bool,
    /// Whether everything is paused. Cronken has no such pause, so every definition then has its job paused.
    pub(crate) all_paused: bool,
}

impl LocalJob<'_> {
    /// Whether the definition has to show the job as paused.
    pub(crate) const fn shows_paused(&self) -> bool {
        self.is_paused || self.all_paused
    }
}

/// What one job needs.
#[derive(Debug, Default)]
pub(crate) struct JobPlan {
    /// Commands for the node, in order. If the node refuses one, the rest is not sent and the job is planned again later.
    pub(crate) commands: Vec<Command>,
    /// The update of the definition, after the commands.
    pub(crate) settle: Option<DefinitionUpdate>,
    /// What Cronken's nodes have to be notified of. They read definitions only when an event requests it.
    pub(crate) notification: Option<PeerNotification>,
    /// Mistakes in the definition. If there are any, the job stays as it was.
    pub(crate) mistakes: Vec<FieldMistake>,
    /// What may surprise the writer of the definition.
    pub(crate) notes: Vec<FormNote>,
    /// Whether the definition was changed although the job comes from a job file.
    pub(crate) is_overruled: bool,
    /// Whether the unchanged text of the definition means different times by the rules that apply now.
    pub(crate) is_reread: bool,
}

/// What Cronken's nodes have to be notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerNotification {
    /// The job was paused.
    Paused,
    /// The pause of the job ended.
    Resumed,
    /// The definition was changed or removed.
    Changed,
}

/// Plans what one job needs. `was_removed` is whether a `remove` event has removed the job, so that its definition stays
/// without a job. `uid` is the uid of the job if it is created.
pub(crate) fn plan_job(
    id: &JobId,
    shared: &SharedDefinition,
    local: Option<LocalJob<'_>>,
    was_removed: bool,
    uid: JobUid,
    options: &ReadOptions<'_>,
) -> JobPlan {
    let Some(text) = &shared.text else { return plan_missing_definition(shared, local, options) };
    let read = definition::read_of(id, text, options);
    let plan = match (&read.job, local) {
        (None, Some(local)) if is_from_file(local.record) => {
            JobPlan { is_overruled: true, ..plan_rewrite(shared, local, &read, options) }
        }
        (None, local) if options.dialect == Dialect::Castle => plan_invalid_castle(id, shared, local, &read, options),
        // A definition with a mistake is not overwritten: its writer has to see it to fix it.
        (None, _) => JobPlan { mistakes: read.mistakes, ..JobPlan::default() },
        (Some(job), None) => plan_missing_job(id, shared, (&read, job), was_removed, uid, options),
        (Some(job), Some(local)) if shared.standing.is_settled() => {
            let is_old = shared.standing != DefinitionStatus::Settled(rules(options))
                && has_time_from_text(local.record, &read, options);
            if is_old {
                plan_reread(shared, local, (&read, job), options)
            } else {
                plan_rewrite(shared, local, &read, options)
            }
        }
        (Some(job), Some(local)) => plan_merge(id, shared, local, (&read, job), options),
    };
    JobPlan { notes: read.notes, ..plan }
}

/// By whose rules definitions are read with these options.
pub(crate) const fn rules(options: &ReadOptions<'_>) -> DefinitionRules {
    match options.dialect {
        Dialect::Cron | Dialect::Castle => DefinitionRules::Ours,
        Dialect::Cronken => DefinitionRules::Theirs,
    }
}

/// The job has no definition. It is written, unless another program has removed it: then the job is removed too.
fn plan_missing_definition(
    shared: &SharedDefinition,
    local: Option<LocalJob<'_>>,
    options: &ReadOptions<'_>,
) -> JobPlan {
    let was_there = shared.standing == DefinitionStatus::Changed;
    match local {
        None if was_there => JobPlan { settle: settle(shared, None, options), ..JobPlan::default() },
        None => JobPlan::default(),
        Some(LocalJob { record, .. }) if was_there && !is_from_file(record) => {
            let provided = Precondition::As { uid: record.uid, revision: record.revision };
            let removal = Command::RemoveJob { id: record.id.clone(), source: record.source.clone(), provided };
            JobPlan { commands: vec![removal], settle: settle(shared, None, options), ..JobPlan::default() }
        }
        Some(local) => {
            let form = definition_of(&local.record.id, &local.record.job, local.shows_paused(), None, options);
            let text = definition::to_text(&form, options);
            let (settle, notification) = (settle(shared, Some(text), options), Some(PeerNotification::Changed));
            JobPlan { settle, notification, is_overruled: was_there, ..JobPlan::default() }
        }
    }
}

/// The definition has no job. The job is created, unless it existed before and was removed here: then the definition is
/// removed too. A definition that a validation has marked as invalid never had a job, but may be valid now. If a `remove`
/// event has removed the job, it stays removed and the definition counts as settled, even if it has changed.
fn plan_missing_job(
    id: &JobId,
    shared: &SharedDefinition,
    (read, job): (&ParsedDefinition, &Job),
    was_removed: bool,
    uid: JobUid,
    options: &ReadOptions<'_>,
) -> JobPlan {
    if was_removed {
        let text = shared.text.clone().filter(|_| !shared.standing.is_settled());
        return JobPlan { settle: text.and_then(|text| settle(shared, Some(text), options)), ..JobPlan::default() };
    }
    if shared.standing.is_settled() && read.validation_errors.is_none() {
        return JobPlan {
            settle: settle(shared, None, options),
            notification: Some(PeerNotification::Changed),
            ..JobPlan::default()
        };
    }
    let (id, job, source) = (id.clone(), Arc::new(job.clone()), JobSource::Foreign);
    let put = Command::PutJob { id, job, source, uid, provided: Precondition::New };
    let text = new_text(shared, &read.form, &definition::without_errors(read.form.clone()), options);
    JobPlan { commands: vec![put], settle: settle(shared, text, options), ..JobPlan::default() }
}

/// The record has changed, or nothing has: writes the definition from the record where they differ.
pub(crate) fn plan_rewrite(
    shared: &SharedDefinition,
    local: LocalJob<'_>,
    read: &ParsedDefinition,
    options: &ReadOptions<'_>,
) -> JobPlan {
    let new = definition_of(&local.record.id, &local.record.job, local.shows_paused(), Some(&read.form), options);
    if new == read.form && shared.standing == DefinitionStatus::Settled(rules(options)) {
        return JobPlan::default();
    }
    let text = new_text(shared, &read.form, &new, options);
    let notification = notification_for(read.job.as_ref(), &new, options);
    JobPlan { settle: settle(shared, text, options), notification, ..JobPlan::default() }
}

/// Whether the job has its schedule from this text, read by the other rules, and the text means something else by these.
fn has_time_from_text(record: &JobRecord, read: &ParsedDefinition, options: &ReadOptions<'_>) -> bool {
    let before = || definition::read_form(&read.form, &options.with_other_dialect()).job;
    let has_its_time = || before().is_some_and(|before| before.schedules == record.job.schedules);
    !is_from_file(record) && read.depends_on_dialect && has_its_time()
}

/// Other rules apply than when the definition was read: the job gets the schedule that the text means by these rules, and
/// the text stays.
fn plan_reread(
    shared: &SharedDefinition,
    local: LocalJob<'_>,
    (read, theirs): (&ParsedDefinition, &Job),
    options: &ReadOptions<'_>,
) -> JobPlan {
    let record = local.record;
    let job = Job { schedules: theirs.schedules.clone(), ..(*record.job).clone() };
    let new = definition_of(&record.id, &job, local.shows_paused(), Some(&read.form), options);
    let settle = settle(shared, new_text(shared, &read.form, &new, options), options);
    let notification = notification_for(Some(theirs), &new, options);
    JobPlan { commands: vec![change_job(record, job)], settle, notification, is_reread: true, ..JobPlan::default() }
}

/// Another program has changed the definition: the job takes over every field in which it differs from what Cronhold
/// would write.
fn plan_merge(
    id: &JobId,
    shared: &SharedDefinition,
    local: LocalJob<'_>,
    (read, theirs): (&ParsedDefinition, &Job),
    options: &ReadOptions<'_>,
) -> JobPlan {
    let LocalJob { record, is_paused, all_paused } = local;
    let base = definition_of(&record.id, &record.job, local.shows_paused(), None, options);
    let base = definition::read_form(&base, options).job;
    let job = merge(&record.job, base.as_ref(), theirs);
    let is_file = is_from_file(record);
    let is_changed = job != *record.job;
    let mut commands = Vec::new();
    // While everything is paused, every definition has `paused`, and a writer that keeps it does not pause the job.
    // A form that cannot express the job may show it as paused.
    let is_new_pause = theirs.paused && base.as_ref().is_none_or(|base| !base.paused) && !local.shows_paused();
    if is_new_pause {
        let why = "paused in its shared definition".to_owned();
        commands.push(Command::Pause { job: Some(id.clone()), why, until: None });
    }
    if is_changed && !is_file {
        commands.push(change_job(record, job.clone()));
    }
    if !theirs.paused && is_paused {
        commands.push(Command::Resume { job: Some(id.clone()) });
    }
    let job = if is_file { &*record.job } else { &job };
    let shows_paused = is_new_pause || (theirs.paused && is_paused) || all_paused;
    let new = definition_of(&record.id, job, shows_paused, Some(&read.form), options);
    let notification = notification_for(Some(theirs), &new, options);
    let settle = settle(shared, new_text(shared, &read.form, &new, options), options);
    JobPlan { commands, settle, notification, is_overruled: is_file && is_changed, ..JobPlan::default() }
}

/// Changes the job, unless its record has changed since it was read.
fn change_job(record: &JobRecord, job: Job) -> Command {
    let provided = Precondition::As { uid: record.uid, revision: record.revision };
    let (id, job, source) = (record.id.clone(), Arc::new(job), record.source.clone());
    Command::PutJob { id, job, source, uid: record.uid, provided }
}

/// The job with the fields that another program has changed. `base` is the job as Cronken's form shows it: a field that is
/// still the same there was not changed, even where the form can show only a part of it.
fn merge(local: &Job, base: Option<&Job>, theirs: &Job) -> Job {
    let mut job = local.clone();
    if base.is_none_or(|base| base.schedules != theirs.schedules) {
        job.schedules.clone_from(&theirs.schedules);
    }
    if base.is_none_or(|base| base.program != theirs.program) {
        job.program.clone_from(&theirs.program);
    }
    if base.is_none_or(|base| base.lock != theirs.lock) {
        job.lock.clone_from(&theirs.lock);
    }
    if base.is_none_or(|base| base.ttl != theirs.ttl) {
        job.ttl = theirs.ttl;
    }
    job
}

/// The job of a record in the foreign form. There `paused` is the present state, while in a job it is the initial one.
fn definition_of(
    id: &JobId,
    job: &Job,
    is_paused: bool,
    found: Option<&ForeignForm>,
    options: &ReadOptions<'_>,
) -> ForeignForm {
    definition::write_valid(id, &Job { paused: is_paused, ..job.clone() }, found, options)
}

/// The new text of a definition. If it means the same as before, its spelling stays.
pub(crate) fn new_text(
    shared: &SharedDefinition,
    found: &ForeignForm,
    new: &ForeignForm,
    options: &ReadOptions<'_>,
) -> Option<String> {
    if new == found { shared.text.clone() } else { Some(definition::to_text(new, options)) }
}

/// Whether a job comes from a job file, which alone can change it.
fn is_from_file(record: &JobRecord) -> bool {
    matches!(record.source, JobSource::Directory(_))
}

pub(crate) fn settle(
    shared: &SharedDefinition,
    text: Option<String>,
    options: &ReadOptions<'_>,
) -> Option<DefinitionUpdate> {
    Some(DefinitionUpdate { name: shared.name.clone(), found: shared.text.clone(), text, reading: rules(options) })
}

/// What Cronken's nodes have to be notified of after a definition was written; nothing, if it means the same to them.
fn notification_for(before: Option<&Job>, new: &ForeignForm, options: &ReadOptions<'_>) -> Option<PeerNotification> {
    match (before, definition::read_form(new, options).job) {
        (Some(before), Some(after)) if after == *before => None,
        (Some(before), Some(after)) if (Job { paused: before.paused, ..after.clone() }) == *before => {
            let is_never = after.schedules.iter().all(|schedule| schedule.spec.timing == Timing::Never);
            Some(match (after.paused, is_never) {
                (true, _) => PeerNotification::Paused,
                // A Cronken node that gets `resume` for a job that is never due drops it and cannot reload it.
                (false, true) => PeerNotification::Changed,
                (false, false) => PeerNotification::Resumed,
            })
        }
        _ => Some(PeerNotification::Changed),
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::job::LockPolicy;
    use cronhold_schedule::{Span, ZoneRegistry};
    use serde_json::{Value, json};

    use super::*;

    /// A job with these deviations from the plain one.
    fn job(words: &str) -> Job {
        let zones = ZoneRegistry::bundled();
        let options = ReadOptions { zones: &zones, dialect: Dialect::Cron };
        let mut job = definition::read(&form("").to_string(), &options).job.expect("a good form");
        for word in words.split_whitespace() {
            match word {
                "echo" => {
                    job.program = definition::read(&form("echo").to_string(), &options).job.expect("good").program;
                }
                "rich" => job.timeout = Some(Span::from_secs(60)),
                "locked" => job.lock = LockPolicy::Job,
                _ => {}
            }
        }
        job
    }

    /// A definition with these deviations from the plain one.
    fn form(words: &str) -> Value {
        let mut form =
            json!({"cron_args": {"cronstring": "0 3 * * *"}, "job_args": {"cmd": "true", "lock": false, "ttl": 10}});
        for word in words.split_whitespace() {
            match word {
                "echo" => form["job_args"]["cmd"] = json!("echo"),
                "locked" => form["job_args"]["lock"] = json!(true),
                "hourly" => form["cron_args"] = json!({"cronstring": "0 * * * *"}),
                "never" => form["cron_args"] = json!({"cronstring": "@never"}),
                "paused" => form["job_state"] = json!({"paused": true}),
                "going" => form["job_state"] = json!({"paused": false}),
                "noted" => form["note"] = json!("theirs"),
                "wrong" => form["cron_args"] = json!({"cronstring": "nonsense"}),
                "judged" => form["job_state"] = json!({"validation_errors": "wrong"}),
                other => panic!("{other}"),
            }
        }
        form
    }

    /// The deviations of a definition that was written.
    fn described(text: &str) -> String {
        let written: Value = serde_json::from_str(text).expect("JSON");
        let all = ["echo", "locked", "hourly", "never", "paused", "going", "noted", "wrong"];
        for count in 0_u32..1 << all.len() {
            let words: Vec<&str> =
                all.iter().enumerate().filter(|(at, _)| count >> at & 1 == 1).map(|(_, word)| *word).collect();
            let words = words.join(" ");
            if form(&words) == written {
                return if words.is_empty() { "plain".to_owned() } else { words };
            }
        }
        panic!("{text}")
    }

    /// A plan in words.
    fn words(plan: &JobPlan, options: &ReadOptions<'_>) -> String {
        let mut words: Vec<String> = Vec::new();
        for command in &plan.commands {
            words.push(match command {
                Command::PutJob { id, job, source, provided, .. } => {
                    let form = definition_of(id, job, job.paused, None, options).to_string();
                    let rich = if job.timeout.is_some() { " rich" } else { "" };
                    format!("put {}{rich} ({source}, {})", described(&form), provided_words(provided))
                }
                Command::RemoveJob { provided, .. } => format!("remove ({})", provided_words(provided)),
                Command::Pause { .. } => "pause".to_owned(),
                Command::Resume { .. } => "resume".to_owned(),
                other => panic!("{other:?}"),
            });
        }
        match &plan.settle {
            None => {}
            Some(DefinitionUpdate { text: None, .. }) => words.push("forget".to_owned()),
            Some(DefinitionUpdate { found, text: Some(text), .. }) if found.as_ref() == Some(text) => {
                words.push("know".to_owned());
            }
            Some(DefinitionUpdate { text: Some(text), .. }) => words.push(format!("write {}", described(text))),
        }
        words.extend(plan.notification.map(|notification| format!("notify {notification:?}")));
        words.extend((!plan.mistakes.is_empty()).then(|| "mistake".to_owned()));
        words.extend(plan.is_overruled.then(|| "overruled".to_owned()));
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }

    fn provided_words(provided: &Precondition) -> &'static str {
        match provided {
            Precondition::New => "new",
            Precondition::As { revision: 1, .. } => "as seen",
            other => panic!("{other:?}"),
        }
    }

    /// The status of the definition, its deviations, the job's source and deviations, and the expected plan.
    const CASES: [(&str, &str, &str, &str); 55] = [
        // The definition is new.
        ("new", "plain", "-", "put plain (foreign, new), know"),
        ("new", "paused", "-", "put paused (foreign, new), know"),
        ("new", "wrong", "-", "mistake"),
        ("new", "-", "-", "nothing"),
        // The job is new.
        ("new", "-", "api", "write plain, notify Changed"),
        ("new", "-", "api is-paused", "write paused, notify Changed"),
        ("new", "-", "file", "write plain, notify Changed"),
        ("new", "-", "api rich", "write never, notify Changed"),
        // Nothing has changed.
        ("settled", "plain", "api", "nothing"),
        ("settled", "noted", "api", "nothing"),
        ("settled", "never", "api rich", "nothing"),
        ("settled", "going", "api", "nothing"),
        // The record has changed.
        ("settled", "plain", "api echo", "write echo, notify Changed"),
        ("settled", "noted", "foreign echo", "write echo noted, notify Changed"),
        ("settled", "plain", "api is-paused", "write paused, notify Paused"),
        ("settled", "paused", "api", "write going, notify Resumed"),
        ("settled", "never paused", "api rich", "write never going, notify Changed"),
        ("settled", "plain", "api rich", "write never, notify Changed"),
        ("settled", "plain", "-", "forget, notify Changed"),
        ("settled", "plain", "removed", "nothing"),
        // A definition that is marked as invalid stays for its writer to fix.
        ("settled", "wrong", "-", "mistake"),
        ("settled", "wrong", "api", "mistake"),
        // A definition that was marked as invalid and is valid now.
        ("settled", "judged", "-", "put plain (foreign, new), write plain"),
        ("changed", "judged", "-", "put plain (foreign, new), write plain"),
        ("settled", "judged", "api", "write plain"),
        // The definition has changed.
        ("changed", "echo", "api", "put echo (api, as seen), know"),
        ("changed", "hourly noted", "foreign", "put hourly (foreign, as seen), know"),
        ("changed", "locked", "api echo", "put locked (api, as seen), know"),
        ("changed", "paused", "api", "pause, know"),
        ("changed", "echo paused", "api", "pause, put echo (api, as seen), know"),
        ("changed", "plain", "api is-paused", "resume, know"),
        ("changed", "paused", "api is-paused", "know"),
        ("changed", "noted", "api", "know"),
        ("changed", "wrong", "api", "mistake"),
        ("changed", "plain", "removed", "know"),
        ("changed", "-", "api", "remove (as seen), forget"),
        ("changed", "-", "foreign", "remove (as seen), forget"),
        ("changed", "-", "-", "forget"),
        // Fields that Cronken's form cannot express keep their values.
        ("changed", "never paused", "api rich", "pause, know"),
        ("changed", "never echo", "api rich", "put echo never rich (api, as seen), know"),
        ("changed", "hourly", "api rich", "put never rich (api, as seen), write never, notify Changed"),
        // Job files win, except for pauses.
        ("changed", "echo", "file", "write plain, notify Changed, overruled"),
        ("changed", "paused", "file", "pause, know"),
        ("changed", "echo paused", "file", "pause, write paused, notify Changed, overruled"),
        ("changed", "wrong", "file", "write plain, notify Changed, overruled"),
        ("changed", "-", "file", "write plain, notify Changed, overruled"),
        // While everything is paused, every definition has `paused`, and keeping it does not pause the job.
        ("settled", "plain", "api held", "write paused, notify Paused"),
        ("settled", "paused", "api held", "nothing"),
        ("settled", "paused", "api is-paused held", "nothing"),
        ("changed", "echo paused", "api held", "put echo (api, as seen), know"),
        ("changed", "echo", "api held", "put echo (api, as seen), write echo paused, notify Paused"),
        ("changed", "plain", "api is-paused held", "resume, write paused, notify Paused"),
        // Both exist and the definition was never settled: it counts as a change.
        ("new", "plain", "api", "know"),
        ("new", "echo", "api", "put echo (api, as seen), know"),
        ("new", "echo", "file", "write plain, notify Changed, overruled"),
    ];

    #[test]
    fn plan_makes_definition_and_record_agree() {
        let zones = ZoneRegistry::bundled();
        let options = ReadOptions { zones: &zones, dialect: Dialect::Cron };
        let id = JobId::parse("j").expect("an id");
        let uid = JobUid::from_bits(7);
        for (standing, text, ours, expected) in CASES {
            let standing = match standing {
                "new" => DefinitionStatus::New,
                "settled" => DefinitionStatus::Settled(DefinitionRules::Ours),
                _ => DefinitionStatus::Changed,
            };
            let found = (text != "-").then(|| form(text.strip_prefix("plain").unwrap_or(text)).to_string());
            let shared = SharedDefinition { name: "j".to_owned(), text: found, standing };
            let source = match ours.split_whitespace().next() {
                Some("api") => Some(JobSource::Api),
                Some("foreign") => Some(JobSource::Foreign),
                Some("file") => Some(JobSource::Directory(String::new())),
                _ => None,
            };
            let record =
                source.map(|source| JobRecord::new(id.clone(), uid, Arc::new(job(ours)), "UTC".into(), source));
            let record = record.as_ref().map(|record| LocalJob {
                record,
                is_paused: ours.contains("is-paused"),
                all_paused: ours.contains("held"),
            });
            let plan = plan_job(&id, &shared, record, ours == "removed", uid, &options);
            assert_eq!(words(&plan, &options), expected, "{standing:?} {text} / {ours}");
        }
    }

    /// The rules by which the definition was settled, the present dialect, the text of the schedule, the job's source and
    /// schedule, and the expected plan.
    const READ_AGAIN: [(DefinitionRules, Dialect, &str, &str, &str); 12] = [
        (DefinitionRules::Ours, Dialect::Cronken, "0 0 * * 0", "foreign: 0 0 * * 0", "put monday, know"),
        (DefinitionRules::Ours, Dialect::Cronken, "0 0 13 * 5", "foreign: 0 0 13 * 5", "put saturday, know"),
        (DefinitionRules::Theirs, Dialect::Cron, "0 0 * * 0", "foreign: monday", "put 0 0 * * 0, know"),
        (DefinitionRules::Theirs, Dialect::Cron, "0 0 13 * 5", "foreign: saturday", "put 0 0 13 * 5, know"),
        // Cronken has written the text, whatever the source of the job.
        (DefinitionRules::Ours, Dialect::Cronken, "0 0 * * 0", "api: 0 0 * * 0", "put monday, know"),
        // The text was read by these rules, so the record has changed since and is written.
        (DefinitionRules::Theirs, Dialect::Cronken, "0 0 * * 0", "foreign: 0 0 * * 0", "write 0 0 * * sun"),
        (DefinitionRules::Ours, Dialect::Cron, "0 0 * * 0", "foreign: 0 0 * * 0", "nothing"),
        // The record was changed before the other rules applied.
        (DefinitionRules::Ours, Dialect::Cronken, "0 0 * * 0", "foreign: 0 5 * * 2", "write 0 5 * * tue"),
        // The text means the same by both rules.
        (DefinitionRules::Ours, Dialect::Cronken, "@daily", "foreign: 0 0 * * *", "know"),
        (DefinitionRules::Ours, Dialect::Cronken, "0 0 * * SUN", "api: 0 0 * * 0", "know"),
        // Cronken cannot read the text: the job stays as it was.
        (DefinitionRules::Ours, Dialect::Cronken, "0 0 * * 7", "foreign: 0 0 * * 7", "nothing"),
        // A job file wins over the definition.
        (DefinitionRules::Ours, Dialect::Cronken, "0 0 * * 0", "file: 0 0 * * 0", "write 0 0 * * sun"),
    ];

    /// A job with this schedule; a weekday's name stands for the text that Cronken reads as that day.
    fn scheduled(text: &str, zones: &ZoneRegistry) -> Job {
        let (text, dialect) = match text {
            "monday" => ("0 0 * * 0", Dialect::Cronken),
            "saturday" => ("0 0 13 * 5", Dialect::Cronken),
            text => (text, Dialect::Cron),
        };
        let mut form = form("");
        form["cron_args"]["cronstring"] = json!(text);
        definition::read(&form.to_string(), &ReadOptions { zones, dialect }).job.expect("a good form")
    }

    #[test]
    fn definition_read_by_other_rules_keeps_its_text() {
        let zones = ZoneRegistry::bundled();
        let (id, uid) = (JobId::parse("j").expect("an id"), JobUid::from_bits(7));
        for (settled, dialect, text, ours, expected) in READ_AGAIN {
            let mut found = form("noted");
            found["cron_args"]["cronstring"] = json!(text);
            let text = Some(found.to_string());
            let shared = SharedDefinition { name: "j".to_owned(), text, standing: DefinitionStatus::Settled(settled) };
            let (source, schedule) = ours.split_once(": ").expect("a source and a schedule");
            let source = match source {
                "api" => JobSource::Api,
                "foreign" => JobSource::Foreign,
                _ => JobSource::Directory(String::new()),
            };
            let job = Arc::new(scheduled(schedule, &zones));
            let record = JobRecord::new(id.clone(), uid, job, "UTC".into(), source);
            let ours = LocalJob { record: &record, is_paused: false, all_paused: false };
            let plan = plan_job(&id, &shared, Some(ours), false, uid, &ReadOptions { zones: &zones, dialect });
            assert_eq!(reread_words(&plan, &zones), expected, "{settled:?} {dialect:?} {found} / {schedule}");
            assert_eq!(plan.is_reread, expected.starts_with("put"));
            assert!(plan.settle.is_none_or(|settle| settle.reading == rules(&ReadOptions { zones: &zones, dialect })));
        }
    }

    /// What a plan does to the schedule.
    fn reread_words(plan: &JobPlan, zones: &ZoneRegistry) -> String {
        let mut words = Vec::new();
        for command in &plan.commands {
            let Command::PutJob { job, .. } = command else { panic!("{command:?}") };
            let names = ["monday", "saturday", "0 0 * * 0", "0 0 13 * 5"];
            let name = names.into_iter().find(|name| scheduled(name, zones) == **job);
            words.push(format!("put {}", name.expect("one of these")));
        }
        if let Some(DefinitionUpdate { found, text, .. }) = &plan.settle {
            let written: Value = serde_json::from_str(text.as_deref().expect("it stays")).expect("JSON");
            let cronstring = written["cron_args"]["cronstring"].as_str().expect("a text");
            words.push(if found == text { "know".to_owned() } else { format!("write {cronstring}") });
        }
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }
}
