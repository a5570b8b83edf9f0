//! A table of coming runs.

use std::io::{self, Write};

use cronhold_api::ComingList;
use cronhold_schedule::Span;

use super::{LocalTimeFormat, TextTable, counted};

/// Maximum length of a schedule's id in the table; JSON has all of it.
const SCHEDULE_MAX: usize = 24;

/// Prints the table, or that nothing is coming.
pub(crate) fn table(
    coming: &ComingList,
    window: Span,
    clock: &LocalTimeFormat,
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if coming.items.is_empty() {
        return writeln!(out, "nothing is due within {window}");
    }
    let mut table = TextTable::new(&["DUE", "JOB", "SCHEDULE", "NOMINAL"]);
    for item in &coming.items {
        let schedule = match (&item.schedule, &item.run) {
            (Some(schedule), _) => super::TableCell::from(schedule.clone()).cut(SCHEDULE_MAX),
            (None, _) => "(by hand)".into(),
        };
        // With jitter the two differ.
        let nominal = if item.nominal == item.due { String::new() } else { clock.at(item.nominal) };
        table.row([clock.both(item.due).into(), item.job.clone().into(), schedule, nominal.into()]);
    }
    table.write(colours, out)?;
    out.flush()
}

/// Notes that the list is not complete.
pub(crate) fn note(coming: &ComingList, err: &mut dyn Write) -> io::Result<()> {
    match coming.cut {
        true => writeln!(err, "only the first {} are shown; there are more", counted(coming.items.len(), "run")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::jobs::tests::clock;
    use super::*;

    #[test]
    fn coming_runs_are_listed_with_their_nominal_time_if_it_differs() {
        let coming = json!({"cut": true, "items": [
            {"job": "backup", "nominal": "2026-11-16T12:05:00Z", "due": "2026-11-16T12:05:00Z", "schedule": "nightly",
                "run": null},
            {"job": "reports/prices", "nominal": "2026-11-16T12:10:00Z", "due": "2026-11-16T12:13:20.5Z",
                "schedule": "0 18 * * Mon-Fri America/New_York", "run": null},
            {"job": "import", "nominal": "2026-11-16T13:00:00Z", "due": "2026-11-16T13:00:00Z", "schedule": null,
                "run": "0199"},
        ]});
        let coming: ComingList = serde_json::from_value(coming).expect("a list");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        table(&coming, Span::from_secs(3_600), &clock(), false, &mut out).expect("written");
        note(&coming, &mut err).expect("written");
        let none = ComingList { items: Vec::new(), cut: false };
        table(&none, Span::from_secs(3_600), &clock(), false, &mut out).expect("written");
        out.extend(err);
        insta::assert_snapshot!(String::from_utf8(out).expect("text"));
    }
}
