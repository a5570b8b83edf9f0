//! Prints the result of `cronhold bench`: a table, and sentences that say what the figures mean.

use std::io::{self, Write};

use super::{TextTable, lines};
use crate::bench_report::{BenchFigure, BenchReport};

/// Milliseconds of a durable write below which no medium is durable.
const FSYNC_IMPLAUSIBLE: f64 = 0.02;
/// Milliseconds of a durable write from which on every start is noticeably late.
const FSYNC_SLOW: f64 = 5.0;
/// Milliseconds of a round trip from which on every start is noticeably late.
const ROUND_TRIP_SLOW: f64 = 5.0;
/// Milliseconds from which on timers are too late.
const TIMER_SLOW: f64 = 5.0;
/// The part of a claim from which on something is its limit.
const LIMIT_PART: f64 = 0.5;
/// Warnings of the store that are printed.
const WARNINGS_MAX: usize = 2;
const SECONDS_A_DAY: f64 = 86_400.0;

/// Prints a table of all figures, and the sentences.
pub(crate) fn report(report: &BenchReport, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut table = TextTable::new(&["WHAT", "VALUE", "UNIT"]);
    let values: Vec<String> = report.figures().map(|(_, value)| number(value)).collect();
    let width = values.iter().map(String::len).max().unwrap_or(0);
    for ((figure, _), value) in report.figures().zip(&values) {
        table.row([figure.label().into(), format!("{value:>width$}").into(), figure.unit().into()]);
    }
    table.write(colours, out)?;
    writeln!(out)?;
    writeln!(
        out,
        "Measured with {} in the scratch directory {}. Nothing of it is left.",
        report.store, report.directory
    )?;
    lines(&sentences(report).join("\n"), out)
}

/// What the machine and the store are good for.
fn sentences(report: &BenchReport) -> Vec<String> {
    let value = |figure| report.value(figure);
    let mut sentences = Vec::new();
    sentences.extend(capacity(report).into_iter().flatten());
    if let (Some(fsync), Some(claim)) = (value(BenchFigure::FsyncMedian), value(BenchFigure::ClaimMedian)) {
        sentences.push(disk(fsync, claim));
    }
    if let (Some(trip), Some(claim)) = (value(BenchFigure::RoundTripMedian), value(BenchFigure::ClaimMedian)) {
        sentences.push(connection(trip, claim));
    }
    if let Some(late) = value(BenchFigure::TimerLateP99).filter(|late| *late >= TIMER_SLOW) {
        let late = number(late);
        sentences.push(format!(
            "One timer in a hundred is {late} ms late: the machine is busy, or it is a virtual machine that does not get \
             its processors in time. Nothing can start more punctually than that."
        ));
    }
    sentences.extend(report.warnings.iter().take(WARNINGS_MAX).map(|warning| format!("The store warns: {warning}.")));
    sentences
}

/// How many runs the machine does, and how late they start.
fn capacity(report: &BenchReport) -> Option<[String; 3]> {
    let processes = report.value(BenchFigure::ProcessRunsPerSecond)?;
    let claimed = number(report.value(BenchFigure::DueAtOnceP99)?);
    let median = number(report.value(BenchFigure::ProcessStartLateMedian)?);
    let p99 = number(report.value(BenchFigure::ProcessStartLateP99)?);
    let (a_second, a_day) = (count(processes), count(processes * SECONDS_A_DAY));
    Some([
        format!("This machine runs up to {a_second} short programs a second, each fully recorded: {a_day} a day."),
        format!(
            "Up to {a_second} jobs that are due in the same second start within that second; if 1,000 jobs are due at \
             one instant, 99 % of them are claimed within {claimed} ms."
        ),
        format!("A program starts {median} ms after it is due (median), and 99 of 100 start within {p99} ms."),
    ])
}

/// Whether the disk is the limit of a claim.
fn disk(fsync: f64, claim: f64) -> String {
    let (write, whole) = (number(fsync), number(claim));
    if fsync < FSYNC_IMPLAUSIBLE {
        format!(
            "The disk confirms a durable write in {write} ms, which is implausibly fast: it probably confirms writes \
             before they are durable, so that a power failure can lose recorded runs."
        )
    } else if fsync >= FSYNC_SLOW {
        format!(
            "The disk is slow: a durable write takes {write} ms, and every start waits for at least one. A disk with a \
             faster fsync makes starts more punctual."
        )
    } else if fsync >= claim * LIMIT_PART {
        format!("The disk's fsync is the limit of a single claim: it takes {write} ms of {whole} ms.")
    } else {
        format!("The disk's fsync is not the limit of a single claim: it takes {write} ms of {whole} ms.")
    }
}

/// Whether the connection to the server is the limit of a claim.
fn connection(trip: f64, claim: f64) -> String {
    let (round_trip, whole) = (number(trip), number(claim));
    if trip >= ROUND_TRIP_SLOW {
        format!(
            "The connection to the store is slow: a round trip takes {round_trip} ms, and every start waits for at least one. A server nearby \
             makes starts more punctual."
        )
    } else if trip >= claim * LIMIT_PART {
        format!(
            "The connection to the store is the limit of a single claim: a round trip takes {round_trip} ms of {whole} ms."
        )
    } else {
        format!(
            "The connection to the store is not the limit of a single claim: a round trip takes {round_trip} ms of {whole} ms."
        )
    }
}

/// A measured value with about three digits.
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => grouped(&format!("{value:.0}")),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}

/// A count, rounded down to two digits, in words if it is large.
fn count(value: f64) -> String {
    if value >= 1e6 {
        return format!("{} million", count(value / 1e6));
    }
    let step = 10_f64.powf((value.max(1.0).log10().floor() - 1.0).max(0.0));
    grouped(&format!("{:.0}", (value / step).floor() * step))
}

/// Digits with a comma before every group of three.
fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(first: &[(BenchFigure, f64)]) -> BenchReport {
        let mut report = BenchReport::new("SQLite", "/var/lib/cronhold/cronhold-bench-812-1fb77352");
        first.iter().for_each(|(figure, value)| report.set(*figure, *value));
        for (figure, value) in [
            (BenchFigure::TimerLateMedian, 0.131),
            (BenchFigure::TimerLateP99, 0.512),
            (BenchFigure::SpawnPerSecond, 2_312.4),
            (BenchFigure::ClaimMedian, 0.642),
            (BenchFigure::ClaimP99, 1.85),
            (BenchFigure::RequestedRunsPerSecond, 21_873.0),
            (BenchFigure::ScheduledRunsPerSecond, 20_456.0),
            (BenchFigure::DueAtOnceMedian, 12.44),
            (BenchFigure::DueAtOnceP99, 22.61),
            (BenchFigure::ProcessRunsPerSecond, 1_487.0),
            (BenchFigure::ProcessRunsOfSpawn, 64.3),
            (BenchFigure::ProcessStartLateMedian, 1.21),
            (BenchFigure::ProcessStartLateP99, 4.07),
        ] {
            report.set(figure, value);
        }
        report
    }

    #[test]
    fn report_has_a_table_and_sentences() {
        let fsync =
            [(BenchFigure::FsyncPerSecond, 4_812.3), (BenchFigure::FsyncMedian, 0.198), (BenchFigure::FsyncP99, 0.61)];
        let mut out = Vec::new();
        report(&sample(&fsync), false, &mut out).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"));
    }

    #[test]
    fn sentences_depend_on_disk_connection_and_timers() {
        let with = |figure, value| sentences(&sample(&[(figure, value)])).join("\n");
        for (figure, value, expected) in [
            (BenchFigure::FsyncMedian, 0.003, "implausibly fast"),
            (BenchFigure::FsyncMedian, 0.1, "fsync is not the limit"),
            (BenchFigure::FsyncMedian, 0.5, "fsync is the limit"),
            (BenchFigure::FsyncMedian, 12.0, "The disk is slow"),
            (BenchFigure::RoundTripMedian, 0.05, "is not the limit"),
            (BenchFigure::RoundTripMedian, 0.4, "is the limit"),
            (BenchFigure::RoundTripMedian, 30.0, "connection to the store is slow"),
            (BenchFigure::TimerLateP99, 9.0, "One timer in a hundred is 9.00 ms late"),
        ] {
            let text = with(figure, value);
            assert!(text.contains(expected), "{figure:?} {value}: {text}");
        }
        let mut warned = sample(&[]);
        warned.set_warnings(vec!["Redis has no persistence".to_owned(); 5]);
        assert_eq!(sentences(&warned).iter().filter(|text| text.contains("no persistence")).count(), WARNINGS_MAX);
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.003_14, 0.131, 1.214, 64.3, 1_487.4, 21_873.0].map(number);
        assert_eq!(texts, ["0.0000", "0.0031", "0.13", "1.21", "64.3", "1,487", "21,873"]);
        let texts = [0.4, 7.9, 64.3, 187.0, 1_487.0, 21_873.0, 999_999.0, 1_290_000.0, 128e6].map(count);
        assert_eq!(texts, ["0", "7", "64", "180", "1,400", "21,000", "990,000", "1 million", "120 million"]);
    }
}
