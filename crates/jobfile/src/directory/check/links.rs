//! Checks the references of a job against the outlines of other jobs: whether the jobs exist, and the args that are given
//! to them.

use cronhold_core::{Job, JobId};
use cronhold_schedule::text::{did_you_mean, shortened};

use super::super::outline::{JobLink, JobOutline, LinkArg, ParamOutline, param};
use super::own::references;
use super::{JobIndex, KnownJob, LinkFindings, MistakeList};
use crate::mistake::Mistake;
use crate::read::{JobPlaces, form_error};

/// Checks the references of a job.
pub(in crate::directory) fn check_links(
    outline: &JobOutline,
    file: &str,
    places: &JobPlaces,
    jobs: &JobIndex<'_>,
) -> LinkFindings {
    let mut list = MistakeList::new(file, places);
    let mut unknown = Vec::new();
    for link in &outline.links {
        let at = || places.get(&format!("{}.job", link.path));
        match (jobs.find(&link.job), &link.when) {
            (KnownJob::Outline(target), _) => check_link_args(link, &outline.params, &target.params, &mut list),
            (KnownJob::Unknown, _) => {}
            (KnownJob::Missing, Some(when)) => {
                let hint = format!("this is its id when {when}; add the job, or remove the choice");
                list.report(at(), format!("there is no job `{}`", link.job), Some(hint));
            }
            (KnownJob::Missing, None) => report_unknown(&link.job, at(), &mut list, &mut unknown),
        }
    }
    LinkFindings { mistakes: list.found, unknown }
}

/// Unknown jobs in a job that has mistakes of its own. Nothing else is checked in a draft, because it would repeat those
/// mistakes.
pub(in crate::directory) fn check_draft(
    draft: &Job,
    file: &str,
    places: &JobPlaces,
    jobs: &JobIndex<'_>,
) -> LinkFindings {
    let mut list = MistakeList::new(file, places);
    let mut unknown = Vec::new();
    for reference in references(draft).iter().filter(|reference| reference.job.is_literal()) {
        let Ok(id) = JobId::parse(reference.job.text()) else { continue };
        if matches!(jobs.find(&id), KnownJob::Missing) {
            report_unknown(&id, places.get(&format!("{}.job", reference.path)), &mut list, &mut unknown);
        }
    }
    LinkFindings { mistakes: list.found, unknown }
}

fn report_unknown(
    id: &JobId,
    at: std::ops::Range<usize>,
    list: &mut MistakeList<'_>,
    unknown: &mut Vec<(usize, String)>,
) {
    let index = list.push(Mistake::new(list.file, at, format!("there is no job `{id}`")));
    unknown.extend(index.map(|index| (index, id.to_string())));
}

/// Checks the args of a reference: each is a param with an allowed value, and no required param is missing.
fn check_link_args(link: &JobLink, own: &[ParamOutline], target: &[ParamOutline], list: &mut MistakeList<'_>) {
    let given = GivenArgs { path: &link.path, args: &link.args, job: &link.job, params: target };
    let mistyped = check_args(&given, list);
    for ParamOutline { name, .. } in target.iter().filter(|param| param.is_required) {
        let is_given = link.args.iter().any(|arg| arg.name == *name) || param(own, name).is_some();
        if !is_given && mistyped != Some(&**name) {
            let message = format!("the job `{}` needs a value for its param `{name}`", link.job);
            let hint = format!("write `args: {{{name}: …}}`; only params that this job has too are taken over");
            list.report(list.places.get(&link.path), message, Some(hint));
        }
    }
}

/// Args that are given to a job.
pub(super) struct GivenArgs<'a> {
    /// Path of the reference or trigger.
    pub(super) path: &'a str,
    pub(super) args: &'a [LinkArg],
    /// The job that gets them, and its params.
    pub(super) job: &'a JobId,
    pub(super) params: &'a [ParamOutline],
}

/// Checks the given args. Returns a mistyped param, so that it is not reported as missing as well.
pub(super) fn check_args<'a>(given: &GivenArgs<'a>, list: &mut MistakeList<'_>) -> Option<&'a str> {
    let GivenArgs { job, params, .. } = given;
    let mut mistyped = None;
    for LinkArg { name, literal } in given.args {
        let path = format!("{}.args.{name}", given.path);
        let Some(param) = param(params, name) else {
            let at = list.places.key(&path).unwrap_or_else(|| list.places.get(&path));
            let meant = did_you_mean(name, params.iter().map(|param| &*param.name));
            mistyped = meant.or(mistyped);
            let hint = match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if params.is_empty() => "it has no params".to_owned(),
                None => {
                    let names: Vec<&str> = params.iter().map(|param| &*param.name).collect();
                    format!("its params are {}", names.join(", "))
                }
            };
            list.report(at, format!("the job `{job}` has no param `{}`", shortened(name)), Some(hint));
            continue;
        };
        if let Some(text) = literal
            && !param.choices.is_empty()
            && !param.choices.contains(text)
        {
            let message = format!("`{}` is not one of the choices of `{name}` in `{job}`", shortened(text));
            let hint = format!("choices are {}", param.choices.join(", "));
            list.report(list.places.get(&path), message, Some(hint));
        } else if let Some(text) = literal
            && let Some(message) = form_error(name, &param.form(), text)
        {
            list.report(list.places.get(&path), format!("{message} of `{job}`"), None);
        }
    }
    mistyped
}
