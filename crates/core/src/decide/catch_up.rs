//! A backlog is worked, one occurrence after the other and beside the live schedule. It gives way to everything else:
//! as long as its next run could not start at once, it waits.

use std::sync::Arc;

use cronhold_schedule::{Instant, Span};

use super::draft::Draft;
use super::motion;
use super::skips::{self, Part};
use super::timetable::Timetable;
use crate::decision::{Answer, Done, Effect};
use crate::ids::JobId;
use crate::job::{CatchUpPolicy, QUEUE_LIMIT_DEFAULT};
use crate::policy::catch_up::Stretch;
use crate::policy::overlap::Admission;
use crate::record::{Actor, Backlog, JobState, Key, Record, ScheduleId};
use crate::run::Reason;
use crate::view::{Halt, View};

/// A backlog that something in its own job holds up is looked at again after this time.
const GIVE_WAY: Span = Span::from_secs(1);
/// A backlog that waits for a person or for another node is looked at again after this time.
const LOOK_AGAIN: Span = Span::from_secs(60);

/// Decides about the next occurrence of a backlog.
pub(super) fn decide(view: &View<'_>, id: &JobId, schedule: &ScheduleId) -> Result<Done, Halt> {
    let key = Key::Backlog(id.clone(), schedule.clone());
    view.need([Key::Job(id.clone()), Key::JobState(id.clone()), key.clone(), Key::Pause])?;
    let at = |at| Effect::CatchUp { job: id.clone(), schedule: schedule.clone(), at };
    let only = |effect| Done { effects: vec![effect], ..Done::default() };
    let Some(backlog) = view.backlog(id, schedule)? else { return Ok(only(at(None))) };
    let now = view.stamp.at;
    let look_again = || only(at(Some(now.plus(LOOK_AGAIN))));
    let job = view.job(id)?;
    let Some((job, definition)) = job.as_ref().and_then(|job| Some((job, job.schedule(schedule)?))) else {
        // Whoever removed the schedule has recorded what was left of it.
        let mut draft = Draft::new(view);
        draft.delete(key);
        return draft.done(Answer::Done);
    };
    let mut state = (*view.job_state(id)?).clone();
    let Ok(table) = Timetable::new(job, schedule, definition, view.world) else { return Ok(look_again()) };
    if state.pauses.is_paused() || view.pauses()?.is_paused() {
        return Ok(look_again());
    }
    let mut draft = Draft::new(view);
    if !view.world.is_eligible(&job.job.nodes) {
        if backlog.position.plus(job.job.catch_up.within) > now {
            return Ok(look_again());
        }
        give_up(&mut draft, &mut state, &table, &[first_of(&backlog)], &Reason::NoEligibleNode)?;
        draft.put_state(state);
        write(&mut draft, promote((*backlog).clone()), key);
        return draft.done(Answer::Done);
    }
    if !start(&mut draft, &mut state, &table, backlog.position)? {
        return Ok(only(at(Some(now.plus(GIVE_WAY)))));
    }
    draft.put_state(state);
    write(&mut draft, advance((*backlog).clone(), &table, now), key);
    draft.done(Answer::Done)
}

/// Adds a stretch to what is caught up. Answers whether everything has its place; something older may have had to go.
pub(super) fn add(
    draft: &mut Draft<'_>,
    state: &mut JobState,
    table: &Timetable<'_>,
    stretch: Stretch,
) -> Result<bool, Halt> {
    let Stretch { from, to, count } = stretch;
    let (job, schedule, due) = (table.job.id.clone(), table.id.clone(), draft.at());
    let new = Backlog { job, schedule, from, position: from, to, count, due, later: Vec::new() };
    let mut is_all = true;
    let backlog = match draft.view.backlog(&table.job.id, table.id)? {
        None => new,
        // Only the newest is wanted, and this is newer.
        Some(old) if table.job.job.catch_up.policy == CatchUpPolicy::Last => {
            let rest: Vec<Stretch> = old.rest().collect();
            give_up(draft, state, table, &rest, &Reason::Missed)?;
            is_all = false;
            new
        }
        Some(old) => {
            let mut all = (*old).clone();
            let (last_to, last_count) = match all.later.last_mut() {
                Some(last) => (&mut last.to, &mut last.count),
                None => (&mut all.to, &mut all.count),
            };
            if table.next(*last_to) == Some(from) {
                *last_to = to;
                *last_count = last_count.saturating_add(count);
            } else {
                all.later.push(stretch);
            }
            if all.later.len() > Backlog::LATER_MAX {
                give_up(draft, state, table, &[first_of(&all)], &Reason::Missed)?;
                all = promote(all).expect("there are later stretches");
                is_all = false;
            }
            all
        }
    };
    draft.put(Record::Backlog(Arc::new(backlog)));
    Ok(is_all)
}

/// Records that what is left of a backlog is not caught up.
pub(super) fn give_up(
    draft: &mut Draft<'_>,
    state: &mut JobState,
    table: &Timetable<'_>,
    rest: &[Stretch],
    reason: &Reason,
) -> Result<(), Halt> {
    let counted = rest.iter().map(|stretch| table.stretch(stretch.from, stretch.to));
    let parts: Vec<Part> = counted.map(|stretch| Part { stretch, reason: reason.clone() }).collect();
    draft.view.need(skips::needs(table, None, &parts))?;
    // What lies between two stretches has other outcomes, so none of them goes on with the one before.
    parts.into_iter().try_for_each(|part| skips::record(draft, state, &mut None, table, part))
}

/// Starts the run of an occurrence, if nothing is in its way. One that is there already is passed over.
fn start(draft: &mut Draft<'_>, state: &mut JobState, table: &Timetable<'_>, nominal: Instant) -> Result<bool, Halt> {
    let id = table.run_id(nominal);
    if draft.view.is_known(&Key::Run(id)) {
        return Ok(true);
    }
    let mut run = table.bear(draft, state, nominal, Actor::CatchUp)?;
    if !run.state.is_finished() {
        let admission = motion::admission(draft, &run, state, table.job, true)?;
        let is_crowded = u32::try_from(state.queue.len()).unwrap_or(u32::MAX) >= QUEUE_LIMIT_DEFAULT;
        if admission != Admission::Start || is_crowded {
            return Ok(false);
        }
        run = motion::admit_run(draft, run, state, table.job, admission)?;
    }
    draft.put_run(run);
    Ok(true)
}

/// The backlog after its next occurrence was dealt with; nothing, when that was the last.
fn advance(mut backlog: Backlog, table: &Timetable<'_>, now: Instant) -> Option<Backlog> {
    backlog.due = now;
    match table.next(backlog.position).filter(|next| *next <= backlog.to) {
        Some(next) => {
            backlog.position = next;
            Some(backlog)
        }
        None => promote(backlog),
    }
}

/// The backlog without its first stretch; nothing, when it has no other.
fn promote(mut backlog: Backlog) -> Option<Backlog> {
    if backlog.later.is_empty() {
        return None;
    }
    let Stretch { from, to, count } = backlog.later.remove(0);
    Some(Backlog { from, position: from, to, count, ..backlog })
}

fn first_of(backlog: &Backlog) -> Stretch {
    Stretch { from: backlog.position, to: backlog.to, count: backlog.count }
}

fn write(draft: &mut Draft<'_>, backlog: Option<Backlog>, key: Key) {
    match backlog {
        Some(backlog) => draft.put(Record::Backlog(Arc::new(backlog))),
        None => draft.delete(key),
    }
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    /// With overlap `skip` a backlog is worked one after the other instead of being skipped.
    #[test]
    fn gives_way() {
        play(
            "
            00:00 put j @every 10m; catch_up all
                next 00:10, job r1
            00:35 due
                next 00:40, backlog 00:10–00:30 of 3
            00:35 catch up
                #1 00:10 starting, backlog 00:20–00:30 of 3
            00:35 catch up
                (catch up 00:35:01)
            00:36 ended #1 yes
                #1 00:10 success
            00:36 catch up
                #2 00:20 starting, backlog 00:30–00:30 of 3
            00:37 ended #2 yes
                #2 00:20 success
            00:40 due
                #3 00:40 starting, next 00:50
            00:41 catch up
                (catch up 00:41:01)
            00:42 ended #3 yes
                #3 00:40 success
            00:42 catch up
                #4 00:30 starting, backlog gone
            00:43 catch up
            ",
        );
    }

    #[test]
    fn all_at_once_when_they_may_overlap() {
        play(
            "
            00:00 put j @every 10m; catch_up all; overlap allow
                next 00:10, job r1
            00:35 due
                next 00:40, backlog 00:10–00:30 of 3
            00:35 catch up
                #1 00:10 starting, backlog 00:20–00:30 of 3
            00:35 catch up
                #2 00:20 starting, backlog 00:30–00:30 of 3
            00:35 catch up
                #3 00:30 starting, backlog gone
            ",
        );
    }

    #[test]
    fn waits_for_a_lock_and_for_a_pause() {
        play(
            "
            00:00 put j @every 10m; catch_up all; overlap allow; lock
                next 00:10, job r1
            00:15 due
                next 00:20, backlog 00:10–00:10 of 1
            00:20 due
                #1 00:20 starting, next 00:30
            00:20 catch up
                (catch up 00:20:01)
            00:21 ended #1 yes
                #1 00:20 success
            00:21 pause all
                everything paused
            00:21 catch up
                (catch up 00:22)
            00:22 resume all
                everything resumed
            00:22 catch up
                #2 00:10 starting, backlog gone
            ",
        );
    }

    /// What lies between two outages has its outcomes and is not caught up once more.
    #[test]
    fn outages_one_after_the_other() {
        play(
            "
            00:00 put j @every 10m; catch_up all 3h
                next 00:10, job r1
            00:25 due
                next 00:30, backlog 00:10–00:20 of 2
            00:45 due
                next 00:50, backlog 00:10–00:40 of 4
            00:50 due
                #1 00:50 starting, next 01:00
            00:51 ended #1 yes
                #1 00:50 success
            01:15 due
                next 01:20, backlog 00:10–00:40 of 4 and 01:00–01:10 of 2
            01:16 catch up
                #2 00:10 starting, backlog 00:20–00:40 of 4 and 01:00–01:10 of 2
            01:17 remove j
                #3 00:20–00:40 ×3 skipped: job removed, #4 01:00–01:10 ×2 skipped: job removed, gone, backlog gone, job gone, (wake #2 01:17)
            ",
        );
    }

    /// There is an end to it: the oldest is given up.
    #[test]
    fn too_many_outages() {
        let mut script = String::from("00:00 put j @every 10m; catch_up all 90h; overlap allow\nnext 00:10, job r1\n");
        let mut rest = Vec::new();
        for hour in 0..17 {
            let late = format!("{hour:02}:10–{hour:02}:50 of 5");
            rest.push(late);
            let backlog = format!("backlog {}", rest.join(" and "));
            let next = hour + 1;
            script += &format!("{hour:02}:55 due\nnext {next:02}:00, {backlog}\n");
            script += &format!("{next:02}:00 due\n#{next} {next:02}:00 starting, next {next:02}:10\n");
        }
        rest.remove(0);
        rest.push("17:10–17:20 of 2".to_owned());
        let backlog = format!("backlog {}", rest.join(" and "));
        script += &format!(
            "17:30:30 due
            #18 00:10–00:50 ×5 skipped: missed, next 17:30, {backlog}
            #19 17:30 starting, next 17:40"
        );
        play(&script);
    }

    #[test]
    fn goes_on_with_the_next_stretch() {
        play(
            "
            00:00 put j @every 10m; catch_up all 3h; overlap allow
                next 00:10, job r1
            00:15 due
                next 00:20, backlog 00:10–00:10 of 1
            00:20 due
                #1 00:20 starting, next 00:30
            00:35 due
                next 00:40, backlog 00:10–00:10 of 1 and 00:30–00:30 of 1
            00:36 catch up
                #2 00:10 starting, backlog 00:30–00:30 of 1
            00:36 catch up
                #3 00:30 starting, backlog gone
            ",
        );
    }

    /// Who wants only the newest does not want an older one beside it.
    #[test]
    fn the_newest_takes_the_place_of_an_older_one() {
        play(
            "
            00:00 put j @every 10m; catch_up last
                next 00:10, job r1
            00:15 due
                next 00:20, backlog 00:10–00:10 of 1
            00:35 due
                #1 00:20 skipped: missed, #2 00:10 skipped: missed, next 00:40, backlog 00:30–00:30 of 1
            ",
        );
    }

    #[test]
    fn args_that_do_not_fit() {
        play(
            "
            00:00 put j @every 10m; param region; catch_up all
                next 00:10, job r1
            00:15 due
                next 00:20, backlog 00:10–00:10 of 1
            00:15 catch up
                #1 00:10 error: not bound: the param `region` needs a value, backlog gone
            ",
        );
    }
}
