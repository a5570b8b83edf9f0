//! One job in two places: as it stands where other programs write as well, and as we have it. What has to be asked of the
//! node and what has to be written there so that both say the same. Pure, so that every case stands in one table.
//!
//! Whoever changed something last wins, field by field: others change only what their form can say, and what they left as
//! we wrote it stays as we have it. A job that comes from a job file is changed by nobody else; pausing it is no change.
//!
//! The same text may mean something else by the rules of other nodes. When other rules hold than when a form was settled,
//! the text stays, and a job that has its time from it is read again.

use std::sync::Arc;

use cronhold_core::command::{Command, Provided};
use cronhold_core::record::{JobRecord, Source};
use cronhold_core::{Job, JobId, JobUid};
use cronhold_jobfile::foreign::cronken::{self, CronkenRead, Dialect, Options};
use cronhold_jobfile::foreign::{FieldMistake, Form, Note};
use cronhold_schedule::Timing;
use cronhold_store::{Reading, Settle, SharedForm, Standing};

/// A job as we have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ours<'a> {
    pub(super) record: &'a JobRecord,
    /// Whether it is paused, whatever its definition says.
    pub(super) is_paused: bool,
    /// Whether everything is paused. Others know no such pause: for them every job is paused then.
    pub(super) is_held: bool,
}

impl Ours<'_> {
    /// Whether others are shown that it is paused.
    pub(super) const fn shows_paused(&self) -> bool {
        self.is_paused || self.is_held
    }
}

/// What has to happen for one job.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// Asked one after the other. When one is refused the rest is left, and looked at again later.
    pub(super) commands: Vec<Command>,
    /// Written afterwards.
    pub(super) settle: Option<Settle>,
    /// What nodes of another kind have to be told, because they would not look.
    pub(super) news: Option<News>,
    /// What is wrong with the form. The job stays as it was.
    pub(super) mistakes: Vec<FieldMistake>,
    /// What may surprise about the form.
    pub(super) notes: Vec<Note>,
    /// Whether somebody has changed what only a job file can change.
    pub(super) is_overruled: bool,
    /// Whether the form means something else than before, although nobody has changed it.
    pub(super) is_reread: bool,
}

/// What nodes of another kind have to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// The job is paused.
    Paused,
    /// It goes on.
    Resumed,
    /// It is another one, or is gone.
    Changed,
}

/// What has to happen so that both places say the same. `was_removed` is whether somebody had the job removed here and
/// wants its form to stay for now. `uid` is that of the job, if it is new.
pub(super) fn reconcile(
    id: &JobId,
    form: &SharedForm,
    ours: Option<Ours<'_>>,
    was_removed: bool,
    uid: JobUid,
    options: &Options<'_>,
) -> Step {
    let Some(text) = &form.text else { return without_form(form, ours, options) };
    let read = cronken::read(text, options);
    let step = match (&read.job, ours) {
        (None, Some(ours)) if is_of_file(ours.record) => {
            Step { is_overruled: true, ..refreshed(form, ours, &read, options) }
        }
        // Nobody's work is overwritten because of a mistake in it.
        (None, _) => Step { mistakes: read.mistakes, ..Step::default() },
        (Some(job), None) => without_job(id, form, (&read, job), was_removed, uid, options),
        (Some(job), Some(ours)) if form.standing.is_settled() => {
            let is_old = form.standing != Standing::Settled(reading(options)) && was_read(ours.record, &read, options);
            if is_old { reread(form, ours, (&read, job), options) } else { refreshed(form, ours, &read, options) }
        }
        (Some(job), Some(ours)) => merged(id, form, ours, (&read, job), options),
    };
    Step { notes: read.notes, ..step }
}

/// By whose rules forms are read with these options.
pub(super) const fn reading(options: &Options<'_>) -> Reading {
    match options.dialect {
        Dialect::Cron => Reading::Ours,
        Dialect::Cronken => Reading::Theirs,
    }
}

/// There is no form. It is written, unless somebody has removed it: then the job goes too.
fn without_form(form: &SharedForm, ours: Option<Ours<'_>>, options: &Options<'_>) -> Step {
    let was_there = form.standing == Standing::Changed;
    match ours {
        None if was_there => Step { settle: settle(form, None, options), ..Step::default() },
        None => Step::default(),
        Some(Ours { record, .. }) if was_there && !is_of_file(record) => {
            let provided = Provided::As { uid: record.uid, revision: record.revision };
            let removal = Command::RemoveJob { id: record.id.clone(), source: record.source.clone(), provided };
            Step { commands: vec![removal], settle: settle(form, None, options), ..Step::default() }
        }
        Some(ours) => {
            let text = shown(&ours.record.job, ours.shows_paused(), None, options).to_string();
            let (settle, news) = (settle(form, Some(text), options), Some(News::Changed));
            Step { settle, news, is_overruled: was_there, ..Step::default() }
        }
    }
}

/// There is no job. It is made, unless it was here before and was removed here. A form of which a validation said that it
/// was wrong never was a job, though it may be one by now. One that was removed for a while stays so, and its form is
/// known, whoever has written it meanwhile.
fn without_job(
    id: &JobId,
    form: &SharedForm,
    (read, job): (&CronkenRead, &Job),
    was_removed: bool,
    uid: JobUid,
    options: &Options<'_>,
) -> Step {
    if was_removed {
        let text = form.text.clone().filter(|_| !form.standing.is_settled());
        return Step { settle: text.and_then(|text| settle(form, Some(text), options)), ..Step::default() };
    }
    if form.standing.is_settled() && read.validation_errors.is_none() {
        return Step { settle: settle(form, None, options), news: Some(News::Changed), ..Step::default() };
    }
    let (id, job, source) = (id.clone(), Arc::new(job.clone()), Source::Foreign);
    let put = Command::PutJob { id, job, source, uid, provided: Provided::New };
    let text = rewritten(form, &read.form, &cronken::without_errors(read.form.clone()));
    Step { commands: vec![put], settle: settle(form, text, options), ..Step::default() }
}

/// The form is written as our job is, where it says something else.
fn refreshed(form: &SharedForm, ours: Ours<'_>, read: &CronkenRead, options: &Options<'_>) -> Step {
    let new = shown(&ours.record.job, ours.shows_paused(), Some(&read.form), options);
    if new == read.form && form.standing == Standing::Settled(reading(options)) {
        return Step::default();
    }
    let new_text = rewritten(form, &read.form, &new);
    let news = news(read.job.as_ref(), &new, options);
    Step { settle: settle(form, new_text, options), news, ..Step::default() }
}

/// Whether our job has its time from a form that was read by other rules, by which it means something else.
fn was_read(record: &JobRecord, read: &CronkenRead, options: &Options<'_>) -> bool {
    let before = || cronken::read_form(&read.form, &options.otherwise()).job;
    let has_its_time = || before().is_some_and(|before| before.schedules == record.job.schedules);
    !is_of_file(record) && read.depends_on_dialect && has_its_time()
}

/// Other rules hold than when the form was read: the job gets the time that it says by these, and the text stays.
fn reread(form: &SharedForm, ours: Ours<'_>, (read, theirs): (&CronkenRead, &Job), options: &Options<'_>) -> Step {
    let record = ours.record;
    let job = Job { schedules: theirs.schedules.clone(), ..(*record.job).clone() };
    let new = shown(&job, ours.shows_paused(), Some(&read.form), options);
    let settle = settle(form, rewritten(form, &read.form, &new), options);
    let news = news(Some(theirs), &new, options);
    Step { commands: vec![put_again(record, job)], settle, news, is_reread: true, ..Step::default() }
}

/// Somebody has changed the form: the job becomes what it says, as far as it says something else than we would.
fn merged(
    id: &JobId,
    form: &SharedForm,
    ours: Ours<'_>,
    (read, theirs): (&CronkenRead, &Job),
    options: &Options<'_>,
) -> Step {
    let Ours { record, is_paused, is_held } = ours;
    let base = cronken::read_form(&shown(&record.job, ours.shows_paused(), None, options), options).job;
    let job = merge(&record.job, base.as_ref(), theirs);
    let is_file = is_of_file(record);
    let is_changed = job != *record.job;
    let mut commands = Vec::new();
    // While everything is paused the form says so of each job, and who leaves that as it is means nothing by it.
    if theirs.paused && !ours.shows_paused() {
        let why = "in the definition that other programs share".to_owned();
        commands.push(Command::Pause { job: Some(id.clone()), why });
    }
    if is_changed && !is_file {
        commands.push(put_again(record, job.clone()));
    }
    if !theirs.paused && is_paused {
        commands.push(Command::Resume { job: Some(id.clone()) });
    }
    let job = if is_file { &*record.job } else { &job };
    let new = shown(job, theirs.paused || is_held, Some(&read.form), options);
    let news = news(Some(theirs), &new, options);
    let settle = settle(form, rewritten(form, &read.form, &new), options);
    Step { commands, settle, news, is_overruled: is_file && is_changed, ..Step::default() }
}

/// Changes a job of ours, provided that nobody else has.
fn put_again(record: &JobRecord, job: Job) -> Command {
    let provided = Provided::As { uid: record.uid, revision: record.revision };
    let (id, job, source) = (record.id.clone(), Arc::new(job), record.source.clone());
    Command::PutJob { id, job, source, uid: record.uid, provided }
}

/// Our job with what somebody has changed of it. `base` is how the job looks in their form: what they left so, they did
/// not mean to change, and it may be all that the form can say of something richer.
fn merge(ours: &Job, base: Option<&Job>, theirs: &Job) -> Job {
    let mut job = ours.clone();
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

/// Our job in their form. There `paused` says how it is now, and not how it was meant to begin.
fn shown(job: &Job, is_paused: bool, found: Option<&Form>, options: &Options<'_>) -> Form {
    cronken::without_errors(cronken::write(&Job { paused: is_paused, ..job.clone() }, found, options).form)
}

/// The text of a form from now on: as it was spelled, where it says the same.
fn rewritten(form: &SharedForm, found: &Form, new: &Form) -> Option<String> {
    if new == found { form.text.clone() } else { Some(new.to_string()) }
}

/// Whether a job comes from a job file, which nobody else changes.
fn is_of_file(record: &JobRecord) -> bool {
    matches!(record.source, Source::Directory(_))
}

fn settle(form: &SharedForm, text: Option<String>, options: &Options<'_>) -> Option<Settle> {
    Some(Settle { name: form.name.clone(), found: form.text.clone(), text, reading: reading(options) })
}

/// What is new in a form that was written.
fn news(before: Option<&Job>, new: &Form, options: &Options<'_>) -> Option<News> {
    match (before, cronken::read_form(new, options).job) {
        (Some(before), Some(after)) if after == *before => None,
        (Some(before), Some(after)) if (Job { paused: before.paused, ..after.clone() }) == *before => {
            let is_never = after.schedules.iter().all(|schedule| schedule.spec.timing == Timing::Never);
            Some(match (after.paused, is_never) {
                (true, _) => News::Paused,
                // Told to go on with a job that is never due, Cronken's nodes lose it and can read nothing anew.
                (false, true) => News::Changed,
                (false, false) => News::Resumed,
            })
        }
        _ => Some(News::Changed),
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::job::Lock;
    use cronhold_jobfile::foreign::cronken::Dialect;
    use cronhold_schedule::{Span, Zones};
    use serde_json::{Value, json};

    use super::*;

    /// A job of ours by the names of what is special about it.
    fn job(words: &str) -> Job {
        let zones = Zones::bundled();
        let options = Options { zones: &zones, dialect: Dialect::Cron };
        let mut job = cronken::read(&form("").to_string(), &options).job.expect("a good form");
        for word in words.split_whitespace() {
            match word {
                "echo" => job.program = cronken::read(&form("echo").to_string(), &options).job.expect("good").program,
                "rich" => job.timeout = Some(Span::from_secs(60)),
                "locked" => job.lock = Lock::Job,
                _ => {}
            }
        }
        job
    }

    /// A form by the names of what is special about it.
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

    /// What is special about a form that was written.
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

    /// What a step does, in words.
    fn words(step: &Step, options: &Options<'_>) -> String {
        let mut words: Vec<String> = Vec::new();
        for command in &step.commands {
            words.push(match command {
                Command::PutJob { job, source, provided, .. } => {
                    let form = shown(job, job.paused, None, options).to_string();
                    let rich = if job.timeout.is_some() { " rich" } else { "" };
                    format!("put {}{rich} ({source}, {})", described(&form), provided_words(provided))
                }
                Command::RemoveJob { provided, .. } => format!("remove ({})", provided_words(provided)),
                Command::Pause { .. } => "pause".to_owned(),
                Command::Resume { .. } => "resume".to_owned(),
                other => panic!("{other:?}"),
            });
        }
        match &step.settle {
            None => {}
            Some(Settle { text: None, .. }) => words.push("forget".to_owned()),
            Some(Settle { found, text: Some(text), .. }) if found.as_ref() == Some(text) => {
                words.push("know".to_owned());
            }
            Some(Settle { text: Some(text), .. }) => words.push(format!("write {}", described(text))),
        }
        words.extend(step.news.map(|news| format!("tell {news:?}")));
        words.extend((!step.mistakes.is_empty()).then(|| "mistake".to_owned()));
        words.extend(step.is_overruled.then(|| "overruled".to_owned()));
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }

    fn provided_words(provided: &Provided) -> &'static str {
        match provided {
            Provided::New => "new",
            Provided::As { revision: 1, .. } => "as seen",
            other => panic!("{other:?}"),
        }
    }

    /// The form's standing, what it says, our job, and what has to happen.
    const CASES: [(&str, &str, &str, &str); 55] = [
        // Nobody knows the job yet.
        ("new", "plain", "-", "put plain (foreign, new), know"),
        ("new", "paused", "-", "put paused (foreign, new), know"),
        ("new", "wrong", "-", "mistake"),
        ("new", "-", "-", "nothing"),
        // We have a job that is not there yet.
        ("new", "-", "api", "write plain, tell Changed"),
        ("new", "-", "api is-paused", "write paused, tell Changed"),
        ("new", "-", "file", "write plain, tell Changed"),
        ("new", "-", "api rich", "write never, tell Changed"),
        // Both are there and nothing has changed.
        ("settled", "plain", "api", "nothing"),
        ("settled", "noted", "api", "nothing"),
        ("settled", "never", "api rich", "nothing"),
        ("settled", "going", "api", "nothing"),
        // Ours has changed.
        ("settled", "plain", "api echo", "write echo, tell Changed"),
        ("settled", "noted", "foreign echo", "write echo noted, tell Changed"),
        ("settled", "plain", "api is-paused", "write paused, tell Paused"),
        ("settled", "paused", "api", "write going, tell Resumed"),
        ("settled", "never paused", "api rich", "write never going, tell Changed"),
        ("settled", "plain", "api rich", "write never, tell Changed"),
        ("settled", "plain", "-", "forget, tell Changed"),
        ("settled", "plain", "removed", "nothing"),
        // A mistake that was noted there stays for whoever made it.
        ("settled", "wrong", "-", "mistake"),
        ("settled", "wrong", "api", "mistake"),
        // What was wrong once and is good now.
        ("settled", "judged", "-", "put plain (foreign, new), write plain"),
        ("changed", "judged", "-", "put plain (foreign, new), write plain"),
        ("settled", "judged", "api", "write plain"),
        // Theirs has changed.
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
        // What their form cannot say is not changed by them.
        ("changed", "never paused", "api rich", "pause, know"),
        ("changed", "never echo", "api rich", "put echo never rich (api, as seen), know"),
        ("changed", "hourly", "api rich", "put never rich (api, as seen), write never, tell Changed"),
        // Job files win, but for pauses.
        ("changed", "echo", "file", "write plain, tell Changed, overruled"),
        ("changed", "paused", "file", "pause, know"),
        ("changed", "echo paused", "file", "pause, write paused, tell Changed, overruled"),
        ("changed", "wrong", "file", "write plain, tell Changed, overruled"),
        ("changed", "-", "file", "write plain, tell Changed, overruled"),
        // While everything is paused the form of each job says that it is, and nothing is meant by leaving that so.
        ("settled", "plain", "api held", "write paused, tell Paused"),
        ("settled", "paused", "api held", "nothing"),
        ("settled", "paused", "api is-paused held", "nothing"),
        ("changed", "echo paused", "api held", "put echo (api, as seen), know"),
        ("changed", "echo", "api held", "put echo (api, as seen), write echo paused, tell Paused"),
        ("changed", "plain", "api is-paused held", "resume, write paused, tell Paused"),
        // Both are there and we have never seen theirs: it counts as a change.
        ("new", "plain", "api", "know"),
        ("new", "echo", "api", "put echo (api, as seen), know"),
        ("new", "echo", "file", "write plain, tell Changed, overruled"),
    ];

    #[test]
    fn both_places_come_to_say_the_same() {
        let zones = Zones::bundled();
        let options = Options { zones: &zones, dialect: Dialect::Cron };
        let id = JobId::parse("j").expect("an id");
        let uid = JobUid::from_bits(7);
        for (standing, text, ours, expected) in CASES {
            let standing = match standing {
                "new" => Standing::New,
                "settled" => Standing::Settled(Reading::Ours),
                _ => Standing::Changed,
            };
            let found = (text != "-").then(|| form(text.strip_prefix("plain").unwrap_or(text)).to_string());
            let shared = SharedForm { name: "j".to_owned(), text: found, standing };
            let source = match ours.split_whitespace().next() {
                Some("api") => Some(Source::Api),
                Some("foreign") => Some(Source::Foreign),
                Some("file") => Some(Source::Directory(String::new())),
                _ => None,
            };
            let record =
                source.map(|source| JobRecord::new(id.clone(), uid, Arc::new(job(ours)), "UTC".into(), source));
            let record = record.as_ref().map(|record| Ours {
                record,
                is_paused: ours.contains("is-paused"),
                is_held: ours.contains("held"),
            });
            let step = reconcile(&id, &shared, record, ours == "removed", uid, &options);
            assert_eq!(words(&step, &options), expected, "{standing:?} {text} / {ours}");
        }
    }

    /// By whose rules the form was settled, the dialect of now, the schedule there, that of our job with where it is from,
    /// and what has to happen.
    const READ_AGAIN: [(Reading, Dialect, &str, &str, &str); 12] = [
        (Reading::Ours, Dialect::Cronken, "0 0 * * 0", "foreign: 0 0 * * 0", "put monday, know"),
        (Reading::Ours, Dialect::Cronken, "0 0 13 * 5", "foreign: 0 0 13 * 5", "put saturday, know"),
        (Reading::Theirs, Dialect::Cron, "0 0 * * 0", "foreign: monday", "put 0 0 * * 0, know"),
        (Reading::Theirs, Dialect::Cron, "0 0 13 * 5", "foreign: saturday", "put 0 0 13 * 5, know"),
        // Others have written it, whosever the job is.
        (Reading::Ours, Dialect::Cronken, "0 0 * * 0", "api: 0 0 * * 0", "put monday, know"),
        // It is known to be read by these rules: our job was changed since, and is written.
        (Reading::Theirs, Dialect::Cronken, "0 0 * * 0", "foreign: 0 0 * * 0", "write 0 0 * * sun"),
        (Reading::Ours, Dialect::Cron, "0 0 * * 0", "foreign: 0 0 * * 0", "nothing"),
        // Our job was changed before the other rules held.
        (Reading::Ours, Dialect::Cronken, "0 0 * * 0", "foreign: 0 5 * * 2", "write 0 5 * * tue"),
        // It means the same to both.
        (Reading::Ours, Dialect::Cronken, "@daily", "foreign: 0 0 * * *", "know"),
        (Reading::Ours, Dialect::Cronken, "0 0 * * SUN", "api: 0 0 * * 0", "know"),
        // Others cannot read it: the job stays as it was.
        (Reading::Ours, Dialect::Cronken, "0 0 * * 7", "foreign: 0 0 * * 7", "nothing"),
        // A job file counts, whatever stands there.
        (Reading::Ours, Dialect::Cronken, "0 0 * * 0", "file: 0 0 * * 0", "write 0 0 * * sun"),
    ];

    /// A job with this schedule; by name, as others read it.
    fn scheduled(text: &str, zones: &Zones) -> Job {
        let (text, dialect) = match text {
            "monday" => ("0 0 * * 0", Dialect::Cronken),
            "saturday" => ("0 0 13 * 5", Dialect::Cronken),
            text => (text, Dialect::Cron),
        };
        let mut form = form("");
        form["cron_args"]["cronstring"] = json!(text);
        cronken::read(&form.to_string(), &Options { zones, dialect }).job.expect("a good form")
    }

    #[test]
    fn what_is_read_by_other_rules_stays_as_others_wrote_it() {
        let zones = Zones::bundled();
        let (id, uid) = (JobId::parse("j").expect("an id"), JobUid::from_bits(7));
        for (settled, dialect, text, ours, expected) in READ_AGAIN {
            let mut found = form("noted");
            found["cron_args"]["cronstring"] = json!(text);
            let text = Some(found.to_string());
            let shared = SharedForm { name: "j".to_owned(), text, standing: Standing::Settled(settled) };
            let (source, schedule) = ours.split_once(": ").expect("a source and a schedule");
            let source = match source {
                "api" => Source::Api,
                "foreign" => Source::Foreign,
                _ => Source::Directory(String::new()),
            };
            let job = Arc::new(scheduled(schedule, &zones));
            let record = JobRecord::new(id.clone(), uid, job, "UTC".into(), source);
            let ours = Ours { record: &record, is_paused: false, is_held: false };
            let step = reconcile(&id, &shared, Some(ours), false, uid, &Options { zones: &zones, dialect });
            assert_eq!(reread_words(&step, &zones), expected, "{settled:?} {dialect:?} {found} / {schedule}");
            assert_eq!(step.is_reread, expected.starts_with("put"));
            assert!(step.settle.is_none_or(|settle| settle.reading == reading(&Options { zones: &zones, dialect })));
        }
    }

    /// What a step does to the time.
    fn reread_words(step: &Step, zones: &Zones) -> String {
        let mut words = Vec::new();
        for command in &step.commands {
            let Command::PutJob { job, .. } = command else { panic!("{command:?}") };
            let names = ["monday", "saturday", "0 0 * * 0", "0 0 13 * 5"];
            let name = names.into_iter().find(|name| scheduled(name, zones) == **job);
            words.push(format!("put {}", name.expect("one of these")));
        }
        if let Some(Settle { found, text, .. }) = &step.settle {
            let written: Value = serde_json::from_str(text.as_deref().expect("it stays")).expect("JSON");
            let cronstring = written["cron_args"]["cronstring"].as_str().expect("a text");
            words.push(if found == text { "know".to_owned() } else { format!("write {cronstring}") });
        }
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }
}
