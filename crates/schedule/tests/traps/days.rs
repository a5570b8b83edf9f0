//! Which days an expression means: ends of months, working days, the n-th weekday, leap days, days of both kinds.

use cronhold_schedule::cron::FieldsExpr;
use cronhold_schedule::{ScheduleSpec, Timing};

use crate::{check, check_dates, check_none, check_spec, parse};

fn fields(fields: &[(&str, &str)]) -> ScheduleSpec {
    ScheduleSpec::new(Timing::Fields(FieldsExpr::parse(fields).unwrap_or_else(|error| panic!("{fields:?}: {error:?}"))))
}

#[test]
fn leap_days() {
    check_dates("0 0 29 2 *", "2026-01-01", "2028-02-29 2032-02-29 2036-02-29");
    check_dates("0 0 29 2 *", "1970-01-01", "1972-02-29 1976-02-29");
    // 2000 was a leap year, 2100 is not.
    check_dates("0 0 29 2 *", "1996-03-01", "2000-02-29 2004-02-29");
    check_dates("0 0 29 2 *", "2092-03-01", "2096-02-29");
    check_none("0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z");
    check_dates("0 0 L 2 *", "2027-01-01", "2027-02-28 2028-02-29 2029-02-28");
}

#[test]
fn leap_days_on_a_monday() {
    let monday = fields(&[("month", "2"), ("day", "29"), ("day_of_week", "mon")]);
    check_spec(&monday, "UTC", "2026-01-01T00:00:00Z", &["2044-02-29T00:00+00:00", "2072-02-29T00:00+00:00"]);
    // In an expression either day field is enough.
    check_dates("0 0 29 2 1", "2028-02-20", "2028-02-21 2028-02-28 2028-02-29 2029-02-05");
}

#[test]
fn last_day_of_december() {
    check_dates("0 0 L * *", "2026-11-30", "2026-12-31 2027-01-31 2027-02-28 2027-03-31 2027-04-30");
    check_dates("0 0 L 12 *", "2026-12-31", "2027-12-31");
    check("59 23 L * *", "UTC", "2026-12-31T23:59:00Z", &["2027-01-31T23:59+00:00"]);
}

#[test]
fn days_before_the_last() {
    check_dates("0 0 L-3 * *", "2026-01-01", "2026-01-28 2026-02-25 2026-03-28 2026-04-27");
    // Only months of 31 days have a day that is 30 before the last.
    check_dates("0 0 L-30 * *", "2026-01-31", "2026-03-01 2026-05-01 2026-07-01");
}

#[test]
fn working_day_nearest_to_the_31st() {
    // Months without a 31st have no occurrence. 31 January 2026 is a Saturday, 31 May a Sunday at the end of its month.
    check_dates(
        "0 0 31W * *",
        "2026-01-01",
        "2026-01-30 2026-03-31 2026-05-29 2026-07-31 2026-08-31 2026-10-30 2026-12-31 2027-01-29",
    );
}

#[test]
fn working_day_nearest_to_the_1st_stays_in_its_month() {
    // 1 February and 1 March 2026 are Sundays, 1 August is a Saturday.
    check_dates(
        "0 0 1W * *",
        "2026-01-01",
        "2026-02-02 2026-03-02 2026-04-01 2026-05-01 2026-06-01 2026-07-01 2026-08-03",
    );
}

#[test]
fn working_day_nearest_to_the_15th() {
    // 15 February and 15 March 2026 are Sundays, 15 August is a Saturday.
    check_dates("0 0 15W 2,3,8 *", "2026-01-01", "2026-02-16 2026-03-16 2026-08-14");
}

#[test]
fn last_working_day() {
    check_dates("0 0 LW * *", "2026-01-01", "2026-01-30 2026-02-27 2026-03-31 2026-04-30 2026-05-29 2026-06-30");
}

#[test]
fn fifth_friday() {
    check_dates("0 0 * * 5#5", "2026-01-01", "2026-01-30 2026-05-29 2026-07-31 2026-10-30 2027-01-29");
    check_dates("0 0 * 2 5#5", "2026-01-01", "2036-02-29 2064-02-29 2092-02-29");
}

#[test]
fn last_friday() {
    check_dates("0 0 * * 5L", "2026-01-01", "2026-01-30 2026-02-27 2026-03-27 2026-04-24");
    check_dates("0 0 * * friL", "2026-01-01", "2026-01-30 2026-02-27");
}

#[test]
fn step_of_days_with_a_weekday_means_either() {
    // 9 and 23 March 2026 are odd Mondays, 2 and 16 March even ones.
    check_dates(
        "0 0 */2 * 1",
        "2026-03-01",
        "2026-03-02 2026-03-03 2026-03-05 2026-03-07 2026-03-09 2026-03-11 2026-03-13 2026-03-15 2026-03-16 2026-03-17",
    );
    check_dates("0 0 13 * fri", "2026-02-01", "2026-02-06 2026-02-13 2026-02-20 2026-02-27 2026-03-06 2026-03-13");
    // `*` and `?` do not restrict.
    check_dates("0 0 13 * ?", "2026-02-01", "2026-02-13 2026-03-13");
    check_dates("0 0 ? * fri", "2026-02-01", "2026-02-06 2026-02-13");
    // Named fields must all match.
    let friday_13 = fields(&[("day", "13"), ("day_of_week", "fri")]);
    check_spec(
        &friday_13,
        "UTC",
        "2026-01-01T00:00:00Z",
        &["2026-02-13T00:00+00:00", "2026-03-13T00:00+00:00", "2026-11-13T00:00+00:00"],
    );
}

#[test]
fn sixth_field_is_a_year() {
    check_dates("0 0 1 1 * 2030", "2026-01-01", "2030-01-01");
    check_none("0 0 1 1 * 2030", "UTC", "2030-01-01T00:00:00Z");
    check_none("0 0 1 1 * 2025", "UTC", "2026-01-01T00:00:00Z");
    check_dates("0 0 1 1 * */10", "2026-01-01", "2030-01-01 2040-01-01");
}

#[test]
fn first_of_seven_fields_is_the_second() {
    check(
        "30 0 12 * * * 2026",
        "UTC",
        "2026-12-30T12:00:00Z",
        &["2026-12-30T12:00:30+00:00", "2026-12-31T12:00:30+00:00"],
    );
    check_none("30 0 12 * * * 2026", "UTC", "2026-12-31T12:00:30Z");
    check(
        "*/20 * * * * * *",
        "UTC",
        "2026-12-31T23:59:30Z",
        &["2026-12-31T23:59:40+00:00", "2027-01-01T00:00+00:00", "2027-01-01T00:00:20+00:00"],
    );
}

#[test]
fn sunday_has_two_numbers() {
    for text in ["0 0 * * 0", "0 0 * * 7", "0 0 * * sun", "0 0 * * Sunday", "0 0 * * 7-7"] {
        check_dates(text, "2026-03-01", "2026-03-08 2026-03-15");
        assert_eq!(parse(text), parse("0 0 * * 0"), "{text}");
    }
    check_dates("0 0 * * 5-7", "2026-03-01", "2026-03-06 2026-03-07 2026-03-08 2026-03-13");
    check_dates("0 0 * * 7#1", "2026-03-01", "2026-04-05 2026-05-03");
}

#[test]
fn weekday_range_wraps_around_the_week() {
    check_dates("0 0 * * fri-mon", "2026-02-28", "2026-03-01 2026-03-02 2026-03-06 2026-03-07 2026-03-08 2026-03-09");
    check_dates("0 0 * * 6-1", "2026-03-02", "2026-03-07 2026-03-08 2026-03-09");
}

#[test]
fn weeks_of_a_year() {
    // 2026 has 53 ISO weeks, and its last ends in 2027.
    let week_53 = fields(&[("week", "53"), ("day_of_week", "mon,sun")]);
    check_spec(
        &week_53,
        "UTC",
        "2026-01-01T00:00:00Z",
        &["2026-12-28T00:00+00:00", "2027-01-03T00:00+00:00", "2032-12-27T00:00+00:00"],
    );
}

#[test]
fn impossible_dates_have_no_occurrence() {
    for text in ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31W 2 *", "0 0 29 2 * 2026-2027"] {
        check_none(text, "UTC", "2026-01-01T00:00:00Z");
        check_none(text, "Europe/Berlin", "1970-01-01T00:00:00Z");
    }
}
