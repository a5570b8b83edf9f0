//! Schedules from a command line, and arbitrary texts.

use cronhold_core::job::JobSchedule;
use cronhold_jobfile::{Mistake, Options, Style, read_job, read_schedule, render, render_line};
use proptest::prelude::*;

#[test]
fn command_line_schedules_are_read() {
    for (text, canonical) in [
        ("0 18 * * Mon-Fri", "0 18 * * 1-5"),
        ("*/5 * * * *", "*/5 * * * *"),
        ("@hourly", "0 * * * *"),
        ("@every 90s", "@every 1m30s"),
        ("with 10m interval", "with 10m interval"),
        ("continuously", "continuously"),
        ("CRON_TZ=Europe/Berlin 0 6 * * *", "CRON_TZ=Europe/Berlin 0 6 * * *"),
        ("{hour: 14, day: last}", r#"{day: "last", hour: "14"}"#),
        ("hour: 14\nday: last", r#"{day: "last", hour: "14"}"#),
        ("every: 15m", "@every 15m"),
        ("'@daily'", "0 0 * * *"),
        ("{after: 0, timezone: UTC}", "CRON_TZ=UTC continuously"),
        ("{every: 15m, phase: 5m, jitter: 90}", r#"{every: "15m", phase: "5m", jitter: "1m30s"}"#),
        ("{hour: '0-23'}", r#"{hour: "0-23"}"#),
        ("{day: '1st mon,last', week: 8, second: '*/7'}", r#"{day: "1st mon,last", week: "8", second: "*/7"}"#),
        (
            "{daily: ['18:00', '09:00', '18:00'], calendar: Mon-Fri - (Tue or x), date_shift: 1, cal_shift: -2, gap: skip}",
            r#"{daily: {times: ["09:00", "18:00"], date_shift: 1, calendar_shift: -2}, calendar: "Mon-Fri - (Tue + x)", gap: "skip"}"#,
        ),
        (
            "{daily_interval: {from: 22:00, until: {time: 02:00, date_shift: 1}, every: 10m}, start: 2026-01-01}",
            r#"{daily_interval: {from: {time: "22:00"}, until: {time: "02:00", date_shift: 1}, every: "10m"}, start: "2026-01-01"}"#,
        ),
        (
            "{at: [2026-02-01 10:00, 2026-01-01, 2026-01-01T00:00:00+01:00], fold: second}",
            r#"{at: ["2025-12-31T23:00:00Z", "2026-02-01T10:00", "2026-01-01"], fold: "second"}"#,
        ),
        ("{every: 1h, end_date: 2026-12-01}", r#"{every: "1h", end: "2026-12-01T00:00"}"#),
        ("{every: 1h, end: 2026-12-01}", r#"{every: "1h", end: "2026-12-01"}"#),
    ] {
        let schedules = schedules_in(text).expect(text);
        assert_eq!(schedules.len(), 1, "{text}");
        assert_eq!(schedules[0].spec.to_string(), canonical, "{text}");
        assert_eq!(schedules_in(canonical).as_ref(), Ok(&schedules), "{canonical}");
    }
    assert_eq!(schedules_in("[{every: 15m}, '@daily']").expect("a list").len(), 2);
    assert_eq!(schedules_in("- every: 15m\n- '@daily'").expect("a list").len(), 2);
    // Args are not checked without a job.
    assert_eq!(schedules_in("{every: 1h, args: {region: us}}").expect("a map")[0].args.len(), 1);
}

#[test]
fn schedule_mistakes_have_their_place() {
    for (text, expected) in [
        ("0 25 * * *", "schedule:1:3: hour must be 0–23, not 25"),
        ("", "schedule:1:1: expected a schedule (such as `0 18 * * Mon-Fri`"),
        ("{evry: 15m}", "schedule:1:2: a schedule has no key `evry` (did you mean `every`?)"),
        ("CRON_TZ=Berlin 0 6 * * *", "schedule:1:9: there is no time zone `Berlin` (did you mean `Europe/Berlin`?)"),
        ("{daily: 18:00, timezone: Mars}", "schedule:1:26: there is no time zone `Mars`"),
    ] {
        let mistakes = schedules_in(text).expect_err(text);
        let lines: Vec<String> = mistakes.iter().map(|mistake| render_line(mistake, text)).collect();
        assert!(lines.iter().any(|line| line.starts_with(expected)), "{text}: {lines:#?}");
    }
}

#[test]
fn mistakes_of_one_file_are_limited() {
    let schedules = "  - {every: 1h, timezone: Nowhere, colour: red}\n".repeat(10_000);
    let text = format!("program: echo\nschedule:\n{schedules}");
    assert_eq!(read_job("x.yaml", &text, &Options::default()).mistakes.len(), 100);
}

/// Pieces of YAML that make random texts resemble job files, so that they reach the readers.
const PIECES: [&str; 32] = [
    "program: ",
    "schedule: ",
    "params: ",
    "on: ",
    "conditions:\n",
    "  - ",
    "- ",
    "\n",
    "\n  ",
    "{",
    "}",
    "[",
    "]",
    ": ",
    ", ",
    "'",
    "\"",
    "|\n  ",
    ">",
    "&a ",
    "*a",
    "<<: ",
    "{{ x }}",
    "every: 15m",
    "cron: 0 6 * * *",
    "daily: 6:00",
    "after: ",
    "true",
    "retry: 3",
    "# ",
    "ä",
    "\t",
];

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in "\\PC{0,200}") {
        check(&text);
    }

    #[test]
    fn any_mix_of_yaml_pieces_is_read_without_panic(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)) {
        check(&pieces.concat());
    }
}

/// Reads a text and renders all mistakes. There must be a job exactly if there is no mistake.
fn check(text: &str) {
    let read = read_job("x.yaml", text, &Options::default());
    assert_eq!(read.job.is_some(), read.mistakes.is_empty());
    for mistake in &read.mistakes {
        assert!(text.get(mistake.at.clone()).is_some(), "{mistake:?} is outside {text:?}");
        assert!(!render(mistake, text, Style::Plain).is_empty());
    }
    let _ = read.places.get("schedule[0].every");
    for mistake in schedules_in(text).err().unwrap_or_default() {
        assert!(!render_line(&mistake, text).is_empty());
    }
}

fn schedules_in(text: &str) -> Result<Vec<JobSchedule>, Vec<Mistake>> {
    read_schedule(text, &Options::default()).map(|(schedules, _)| schedules)
}
