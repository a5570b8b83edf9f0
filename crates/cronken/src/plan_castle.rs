//! Plans what a job of castle-cron needs whose definition has a mistake. Unlike Cronken's form, castle-cron's has a field
//! for it, which stops the job.

use cronhold_core::JobId;
use cronhold_core::command::Command;
use cronhold_jobfile::foreign::castle;
use cronhold_schedule::text::shortened;
use cronhold_store::SharedDefinition;

use crate::definition::{ParsedDefinition, ReadOptions};
use crate::plan::{JobPlan, LocalJob, new_text, plan_rewrite, settle};
use crate::report::mistakes_text;

/// A definition of castle-cron has a mistake: it gets `HasError`, and the job stops. If the job was resumed after that,
/// the definition is written from the record.
pub(crate) fn plan_invalid_castle(
    id: &JobId,
    shared: &SharedDefinition,
    local: Option<LocalJob<'_>>,
    read: &ParsedDefinition,
    options: &ReadOptions<'_>,
) -> JobPlan {
    let mistakes = read.mistakes.clone();
    if read.form.0.is_empty() {
        // Nothing can be added to a text that is not JSON.
        return JobPlan { mistakes, ..JobPlan::default() };
    }
    if let Some(local) = local.filter(|local| shared.standing.is_settled() && !local.is_paused) {
        return plan_rewrite(shared, local, read, options);
    }
    let why = mistakes_text(&mistakes);
    let pause = local.filter(|local| !local.is_paused).map(|_| Command::Pause {
        job: Some(id.clone()),
        why: shortened(&format!("error in its definition in /jobs: {why}")),
        until: None,
    });
    let new = castle::with_error(&read.form, &why);
    let settle = (new != read.form || !shared.standing.is_settled())
        .then(|| settle(shared, new_text(shared, &read.form, &new, options), options));
    JobPlan { commands: pause.into_iter().collect(), settle: settle.flatten(), mistakes, ..JobPlan::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cronhold_core::JobUid;
    use cronhold_core::command::Precondition;
    use cronhold_core::record::{JobRecord, JobSource};
    use cronhold_schedule::ZoneRegistry;
    use cronhold_store::{DefinitionRules, DefinitionStatus};
    use serde_json::{Value, json};

    use super::*;
    use crate::definition::{self, Dialect};
    use crate::plan::plan_job;

    const UID: &str = "00000000000000000000000000000007";

    fn form(schedule: &str, has_error: bool) -> Value {
        json!({"Name": "a", "Cmd": "x", "Args": ["y"], "HasError": has_error, "NextRuntime": "0001-01-01T00:00:00Z",
            "Schedule": schedule, "Owner": "ops"})
    }

    fn plan(found: &Value, standing: DefinitionStatus, local: Option<(&JobRecord, bool)>) -> JobPlan {
        let zones = ZoneRegistry::bundled();
        let options = ReadOptions { zones: &zones, dialect: Dialect::Castle };
        let shared = SharedDefinition { name: "a".to_owned(), text: Some(found.to_string()), standing };
        let local = local.map(|(record, is_paused)| LocalJob { record, is_paused, all_paused: false });
        let uid = JobUid::parse(UID).expect("a uid");
        plan_job(&JobId::parse("a").expect("an id"), &shared, local, false, uid, &options)
    }

    fn record(schedule: &str) -> JobRecord {
        let zones = ZoneRegistry::bundled();
        let options = ReadOptions { zones: &zones, dialect: Dialect::Castle };
        let job = definition::read(&form(schedule, false).to_string(), &options).job.expect("a valid form");
        let (id, uid) = (JobId::parse("a").expect("an id"), JobUid::parse(UID).expect("a uid"));
        JobRecord::new(id, uid, Arc::new(job), "UTC".into(), JobSource::Api)
    }

    fn written(plan: &JobPlan) -> Value {
        let text = plan.settle.as_ref().and_then(|settle| settle.text.as_deref()).expect("a text is written");
        serde_json::from_str(text).expect("it is JSON")
    }

    #[test]
    fn schedule_error_sets_has_error_and_stops_the_job() {
        let (job, wrong) = (record("0 3 * * *"), form("61 * * * *", false));
        let new = plan(&wrong, DefinitionStatus::New, None);
        assert!(new.commands.is_empty(), "a job that cannot be read is not created");
        assert_eq!((&written(&new)["HasError"], &written(&new)["Owner"]), (&json!(true), &json!("ops")));
        assert!(written(&new)[castle::NOTE].as_str().is_some_and(|note| note.contains("Schedule")), "{new:?}");
        let edited = plan(&wrong, DefinitionStatus::Changed, Some((&job, false)));
        assert!(matches!(&edited.commands[..], [Command::Pause { job: Some(_), .. }]), "{edited:?}");

        let settled = DefinitionStatus::Settled(DefinitionRules::Ours);
        let marked = written(&edited);
        let again = plan(&marked, settled, Some((&job, true)));
        assert!(again.commands.is_empty() && again.settle.is_none() && !again.mistakes.is_empty(), "{again:?}");
        let resumed = plan(&marked, settled, Some((&job, false)));
        assert_eq!(
            (&written(&resumed)["Schedule"], &written(&resumed)["HasError"]),
            (&json!("0 3 * * *"), &json!(false))
        );
    }

    #[test]
    fn definition_of_another_job_is_a_mistake() {
        let mut other = form("0 3 * * *", false);
        other["Name"] = json!("b");
        let plan = plan(&other, DefinitionStatus::New, None);
        assert!(plan.commands.is_empty() && plan.mistakes[0].path == "Name", "{plan:?}");
        assert_eq!(written(&plan)["HasError"], true);
    }

    #[test]
    fn has_error_pauses_and_its_removal_resumes() {
        let job = record("0 3 * * *");
        let stopped = plan(&form("0 3 * * *", true), DefinitionStatus::Changed, Some((&job, false)));
        assert!(matches!(&stopped.commands[..], [Command::Pause { .. }]), "{stopped:?}");
        assert_eq!(written(&stopped)["HasError"], true);
        let going = plan(&form("0 3 * * *", false), DefinitionStatus::Changed, Some((&job, true)));
        assert!(matches!(&going.commands[..], [Command::Resume { .. }]), "{going:?}");
        let deleted = plan(&form("0 3 * * *", true), DefinitionStatus::New, None);
        let [Command::PutJob { job, provided: Precondition::New, .. }] = &deleted.commands[..] else {
            panic!("{deleted:?}")
        };
        assert!(job.paused, "a new job with an error does not run");
    }

    #[test]
    fn job_that_the_form_cannot_express_is_not_paused_by_an_edit_of_another_field() {
        let mut rich = record("0 3 * * *");
        let job = cronhold_core::Job { timeout: Some(cronhold_schedule::Span::from_secs(60)), ..(*rich.job).clone() };
        rich.job = Arc::new(job);
        let mut edited = form("0 * * * *", true);
        edited["Owner"] = json!("dev");
        let plan = plan(&edited, DefinitionStatus::Changed, Some((&rich, false)));
        let [Command::PutJob { job, .. }] = &plan.commands[..] else { panic!("{plan:?}") };
        assert_eq!((job.timeout, job.schedules[0].spec.to_string()), (rich.job.timeout, "0 * * * *".to_owned()));
        assert_eq!((&written(&plan)["HasError"], &written(&plan)["Owner"]), (&json!(true), &json!("dev")));
    }
}
