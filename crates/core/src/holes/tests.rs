//! Searches in test scenes, and in random records of many schedules.

use std::sync::Arc;

use cronhold_schedule::{Instant, ScheduleSpec};
use proptest::prelude::*;

use super::*;
use crate::ids::RunNumber;
use crate::record::{Backlog, JobState, Run, SkipSpan};
use crate::why::tests::scene::{scene, time, world};

/// An hourly schedule whose cursor is at noon of the fifth. Tests append further records.
const HOURLY: &str = "schedule spec: @every 1h\ncursor since=05T03:30 last=05T11:00 next=05T12:00\n";

/// The report about the fifth from midnight to noon.
fn report(text: &str) -> Vec<String> {
    let (known, world) = (scene(text), world());
    let holes = holes(&known, &world, time("05T00:00"), time("05T12:00"));
    holes.words(&known, &world).iter().map(ToString::to_string).collect()
}

#[test]
fn occurrences_without_a_record_are_reported() {
    const DEFECT: &str = "  hint: this is a defect of Cronhold: please report it with the output of `cronhold doctor`; \
                          `cronhold run backup` runs the job now";
    let run = |number: u32, at: &str| format!("run n={number} at={at} log=waiting@{at},success@{at}\n");
    let on = |node: u32, at: &str| format!("run n={node} target={node} at={at} log=waiting@{at}\n");
    let span = |from: &str, to: &str| format!("run n=9 at={from} to={to} count=9 log=skipped@{to} reason: missed\n");
    let backlog = |from: &str, to: &str| format!("backlog from=05T01:00 position={from} to={to} count=9\n");
    let some = run(1, "05T04:00") + &span("05T05:00", "05T07:00");
    for (about, added, expected) in [
        ("all of it", String::new(), vec!["8 occurrences from 2026-01-05 04:00 UTC to 2026-01-05 11:00 UTC."]),
        ("nothing", some.clone() + &backlog("05T08:00", "05T11:00"), vec![]),
        (
            "one at the end",
            some.clone() + &backlog("05T08:00", "05T10:00"),
            vec!["its occurrence at 2026-01-05 11:00 UTC."],
        ),
        (
            "two that are apart",
            some.clone() + &run(2, "05T09:00") + &run(3, "05T10:00"),
            vec!["its occurrence at 2026-01-05 08:00 UTC.", "its occurrence at 2026-01-05 11:00 UTC."],
        ),
        (
            "a run of another time fills no hole",
            span("05T04:00", "05T10:00") + &run(2, "05T10:59"),
            vec!["its occurrence at 2026-01-05 11:00 UTC."],
        ),
        ("a run inside a span does not end it", span("05T04:00", "05T11:00") + &run(1, "05T06:00"), vec![]),
        (
            "runs on several nodes count once",
            span("05T05:00", "05T10:00") + &[1, 2, 3].map(|node| on(node, "05T04:00")).concat(),
            vec!["its occurrence at 2026-01-05 11:00 UTC."],
        ),
        (
            "attempts count once, and spans may overlap",
            some + &run(2, "05T04:00") + &span("05T06:00", "05T11:00"),
            vec![],
        ),
    ] {
        let mut expected: Vec<String> =
            expected.into_iter().map(|what| format!("`backup` has no record of {what}")).collect();
        if !expected.is_empty() {
            expected.push(DEFECT.to_owned());
        }
        assert_eq!(report(&format!("{HOURLY}{added}")), expected, "{about}");
    }
}

#[test]
fn unchecked_parts_are_reported() {
    for (text, expected) in [
        // During a pause nothing is missing, and neither is anything before the schedule was created.
        ("schedule spec: @every 1h\ncursor since=05T03:00 next=05T04:00\npaused since=05T03:30", vec![]),
        ("schedule disabled spec: @every 1h", vec![]),
        ("schedule spec: with 1h interval\ncursor last=05T03:00 next=05T13:00", vec![]),
        ("schedule spec: @reboot\ncursor at_start", vec![]),
        ("gone\nschedule spec: @every 1h", vec![]),
        (
            "schedule name=a spec: @every 1h",
            vec!["The schedule `a` of `backup` was not checked: it has no cursor, which is a defect of Cronhold."],
        ),
        (
            "schedule name=a zone=Nowhere spec: @every 1h\ncursor next=05T12:00",
            vec!["The schedule `a` of `backup` was not checked: `timezone`: there is no time zone `Nowhere`."],
        ),
        (
            "job keep=1\nschedule name=a spec: @every 1h\ncursor next=05T12:00\nstate success=1 gone=7
             run n=8 at=05T11:00 log=waiting@05T11:00,success@05T11:00",
            vec!["The schedule `a` of `backup` was not checked before 2026-01-05 11:00 UTC: not all runs are kept."],
        ),
        (
            "job keep=0\nschedule name=a spec: @every 1h\ncursor next=05T12:00\nstate gone=1
             run n=8 at=05T11:00 log=waiting@05T11:00,failure@05T11:00 reason: exit code 1",
            vec!["The schedule `a` of `backup` was not checked before 2026-01-05 12:00 UTC: not all runs are kept."],
        ),
    ] {
        assert_eq!(report(text), expected, "{text}");
    }
}

/// By the data of the search, an occurrence may be missing that does not exist by the data of the nodes.
#[test]
fn occurrences_by_other_zone_data_are_not_reported_as_missing() {
    let hourly = |zone: &str| {
        format!("schedule name=a zone={zone} spec: 0 * * * *\ncursor since=05T03:30 last=05T11:00 next=05T12:00")
    };
    for (zone, release, found, unchecked) in [
        ("Europe/Berlin", "2026a", 1, vec![]),
        ("Europe/Berlin", "2026b", 0, vec![UncheckedReason::OtherZoneData("2026a".into())]),
        ("UTC", "2026b", 1, vec![]),
    ] {
        let world = DecisionContext { zones_version: release.into(), ..world() };
        let report = holes(&scene(&hourly(zone)), &world, time("05T00:00"), time("05T12:00"));
        assert_eq!(report.found.len(), found, "{zone} {release}");
        assert_eq!(report.unchecked.into_iter().map(|part| part.because).collect::<Vec<_>>(), unchecked);
    }
}

/// A cursor that no node advances is reported. One that is slightly late, or whose job is paused, is not.
#[test]
fn overdue_cursor_is_reported() {
    const HINT: &str = "  hint: is a node running that may run it? see `cronhold why backup`";
    let cursor = |next: &str| format!("schedule spec: @every 1h\ncursor since={next}");
    let claimed = |at: &str| format!("`backup`: no node has claimed the occurrence at {at} yet.");
    for (text, expected) in [
        (cursor("05T11:58 next=05T11:58"), vec![]),
        (cursor("05T11:57 next=05T11:57"), vec![claimed("2026-01-05 11:57 UTC"), HINT.to_owned()]),
        (
            cursor("05T04:00 next=05T04:00 wake=05T04:10"),
            vec![
                "`backup`: no node has claimed the occurrence at 2026-01-05 04:00 UTC, due at 2026-01-05 04:10 UTC, yet."
                    .to_owned(),
                HINT.to_owned(),
            ],
        ),
        (cursor("05T04:00 next=05T04:00") + "\npaused since=05T03:45", vec![]),
    ] {
        assert_eq!(report(&text), expected, "{text}");
    }
}

#[test]
fn search_is_bounded_and_can_be_continued() {
    let known = scene(
        "schedule spec: @every 1s\ncursor since=01T00:00 next=05T12:00\nschedule spec: @every 1h\ncursor of=1 next=05T12:00",
    );
    let found = holes(&known, &world(), time("01T00:00"), time("05T12:00"));
    assert_eq!(found.found.iter().map(|hole| hole.stretch.count).collect::<Vec<_>>(), [STEPS_MAX]);
    let cut: Vec<&UncheckedReason> = found.unchecked.iter().map(|unchecked| &unchecked.because).collect();
    assert_eq!(cut, [&UncheckedReason::Cut(time("02T03:46:41")), &UncheckedReason::Cut(time("01T01:00"))]);
    // The next search continues there.
    let rest = holes(&known, &world(), time("02T03:46:41"), time("02T03:46:50"));
    assert_eq!(rest.found.iter().map(|hole| hole.stretch.count).collect::<Vec<_>>(), [10]);
}

/// The outcome of some consecutive occurrences.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Runs,
    Retried,
    Span,
    Backlog,
    Lost,
}

/// Schedules with irregular occurrences because of clock changes, calendars and odd steps.
const SPECS: [&str; 6] = [
    "@every 7m",
    "*/13 * * * *",
    "CRON_TZ=Europe/Berlin 30 2 * * *",
    "CRON_TZ=Europe/Berlin */20 1-3 * * *",
    "CRON_TZ=America/St_Johns 0 0 L * *",
    "CRON_TZ=Australia/Lord_Howe 15 2 * * sun",
];

/// The records of a schedule whose occurrences have these outcomes, all occurrences, and the ranges without a record.
fn records_with_holes(
    spec: &str,
    fates: &[(Fate, usize)],
    order: u64,
) -> (KnownRecords, Vec<Instant>, Vec<CountedRange>) {
    let mut known = scene(&format!(
        "schedule spec: {spec}\ncursor\nrun n=1 at=01T00:00 log=waiting@01T00:00\n\
         run n=2 at=01T00:00 to=01T00:00 count=1 log=skipped@01T00:00 reason: missed"
    ));
    let (template, span) = (known.runs.remove(0), known.spans.remove(0));
    let job = known.job.clone().expect("a job");
    let since = Instant::parse("2026-03-28T12:00:00Z").expect("an instant");
    let spec = ScheduleSpec::parse(spec).expect("a schedule");
    let compiled = world().compile(&job.id, &spec, &job.zone).expect("a schedule");
    let total = fates.iter().map(|(_, length)| length).sum::<usize>();
    let all: Vec<Instant> = compiled.coming(since).take(total + 1).collect();
    let (mut lost, mut waiting, mut first) = (Vec::<CountedRange>::new(), Vec::new(), 0);
    let mut is_lost_before = false;
    for (fate, length) in fates {
        let part = &all[first..first + length];
        let stretch =
            CountedRange { from: part[0], to: part[length - 1], count: u32::try_from(*length).expect("small") };
        let number = |known: &KnownRecords| RunNumber((known.runs.len() + known.spans.len()) as u64 + 1);
        let mut run = |nominal, attempt| {
            let number = number(&known);
            known.runs.push(Arc::new(Run { nominal, attempt, number, ..(*template).clone() }));
        };
        match fate {
            Fate::Runs => part.iter().for_each(|at| run(*at, 1)),
            Fate::Retried => part.iter().for_each(|at| (1..=3).for_each(|attempt| run(*at, attempt))),
            Fate::Span => {
                let number = number(&known);
                known.spans.push(Arc::new(SkipSpan { range: stretch, number, ..(*span).clone() }));
            }
            Fate::Backlog => waiting.push(stretch),
            Fate::Lost => match lost.last_mut().filter(|_| is_lost_before) {
                Some(before) => {
                    *before = CountedRange { from: before.from, to: stretch.to, count: before.count + stretch.count }
                }
                None => lost.push(stretch),
            },
        }
        is_lost_before = *fate == Fate::Lost;
        first += length;
    }
    known.runs.sort_by_key(|run| (run.number.0.wrapping_mul(order | 1), run.attempt));
    known.spans.sort_by_key(|span| span.number.0.wrapping_mul(order | 1));
    let schedule = known.cursors[0].schedule.clone();
    if let Some((CountedRange { from, to, count }, later)) = waiting.split_first() {
        let (position, due, later) = (*from, Instant::EPOCH, later.to_vec());
        let backlog =
            Backlog { job: job.id.clone(), schedule, from: *from, position, to: *to, count: *count, due, later };
        known.backlogs.push(Arc::new(backlog));
    }
    let cursor = Cursor {
        since,
        last: all.get(total - 1).copied(),
        next: all.get(total).copied(),
        ..(*known.cursors[0]).clone()
    };
    known.cursors = vec![Arc::new(cursor)];
    let next_number = (known.runs.len() + known.spans.len()) as u64 + 1;
    known.state = Some(Arc::new(JobState { next_number, ..JobState::new(job.id.clone()) }));
    (known, all, lost)
}

proptest! {
    #[test]
    fn exactly_the_lost_occurrences_are_found(
        spec in proptest::sample::select(&SPECS[..]),
        fates in proptest::collection::vec(
            (proptest::sample::select(vec![Fate::Runs, Fate::Retried, Fate::Span, Fate::Backlog, Fate::Lost]), 1usize..9),
            1..12,
        ),
        order: u64,
        cut in 0usize..60,
    ) {
        let (known, all, lost) = records_with_holes(spec, &fates, order);
        let world = world();
        let (first, last) = (all[0], all[all.len() - 1]);
        let found = holes(&known, &world, first, last);
        prop_assert_eq!(&found.unchecked, &vec![]);
        let stretches: Vec<CountedRange> = found.found.iter().map(|hole| hole.stretch).collect();
        prop_assert_eq!(&stretches, &lost);

        // Two searches of disjoint ranges find as many holes together as one.
        let middle = all[cut % all.len()];
        let before = holes(&known, &world, first, just_before(middle));
        let after = holes(&known, &world, middle, last);
        let count = |holes: &[Hole]| holes.iter().map(|hole| hole.stretch.count).sum::<u32>();
        prop_assert_eq!(count(&before.found) + count(&after.found), count(&found.found));

        // `why` reports a hole for exactly the same occurrences.
        for at in &all {
            let facts = crate::why::why(&known.job.as_ref().expect("a job").id, &known, &world, last, Some(*at)).facts;
            let is_hole = facts.iter().any(|fact| {
                matches!(fact, crate::why::Fact::Occurrence { outcome: crate::why::OccurrenceOutcome::Hole, .. })
            });
            prop_assert_eq!(is_hole, lost.iter().any(|stretch| stretch.from <= *at && *at <= stretch.to), "{}", at);
        }
    }
}
