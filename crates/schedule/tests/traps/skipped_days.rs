//! Zones that crossed the date line and skipped a day.

use cronhold_schedule::{GapPolicy, ScheduleSpec};

use crate::{check, check_spec, parse};

#[test]
fn apia_had_no_30_december_2011() {
    let zone = "Pacific/Apia";
    let after = "2011-12-29T12:00:00Z";
    check("30 14 * * *", zone, after, &["2011-12-29T14:30-10:00", "2011-12-31T00:00+14:00", "2011-12-31T14:30+14:00"]);
    // The skipped midnight and the one at the end of the gap are one run.
    check("0 0 * * *", zone, after, &["2011-12-31T00:00+14:00", "2012-01-01T00:00+14:00"]);
    check(
        "0 * * * *",
        zone,
        "2011-12-30T08:30:00Z",
        &["2011-12-29T23:00-10:00", "2011-12-31T00:00+14:00", "2011-12-31T01:00+14:00"],
    );
    check("*/20 1-23 30 12 *", zone, after, &["2011-12-31T00:00+14:00", "2012-12-30T01:00+14:00"]);
}

#[test]
fn weekly_run_on_the_missing_friday() {
    let after = "2011-12-23T12:00:00Z";
    let friday = parse("0 9 * * fri");
    check_spec(
        &friday,
        "Pacific/Apia",
        after,
        &["2011-12-23T09:00-10:00", "2011-12-31T00:00+14:00", "2012-01-06T09:00+14:00"],
    );
    check_spec(
        &ScheduleSpec { gap: Some(GapPolicy::Skip), ..friday },
        "Pacific/Apia",
        after,
        &["2011-12-23T09:00-10:00", "2012-01-06T09:00+14:00"],
    );
}

#[test]
fn kwajalein_had_no_21_august_1993() {
    check(
        "0 12 * * *",
        "Pacific/Kwajalein",
        "1993-08-20T12:30:00Z",
        &["1993-08-20T12:00-12:00", "1993-08-22T00:00+12:00", "1993-08-22T12:00+12:00"],
    );
}

#[test]
fn line_islands_had_no_last_day_of_1994() {
    for (zone, before, after) in [("Pacific/Enderbury", "-11:00", "+13:00"), ("Pacific/Kiritimati", "-10:00", "+14:00")]
    {
        let first = format!("1994-12-30T06:00{before}");
        let second = format!("1995-01-01T00:00{after}");
        let third = format!("1995-01-01T06:00{after}");
        check("0 6 * * *", zone, "1994-12-30T12:00:00Z", &[&first, &second, &third]);
        // The last day of the year is skipped, and the first of the next runs once.
        check("0 6 L 12 *", zone, "1994-12-30T12:00:00Z", &[&second, &format!("1995-12-31T06:00{after}")]);
        check("0 0 1 1 *", zone, "1994-12-30T12:00:00Z", &[&second, &format!("1996-01-01T00:00{after}")]);
    }
}
