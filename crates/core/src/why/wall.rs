//! Times for users: in the job's zone, followed by UTC.

use cronhold_schedule::{Instant, Span, TimeOfDay, WallTime, Zone};

use super::known_records::KnownRecords;
use crate::record::ScheduleId;
use crate::world::DecisionContext;

/// The zone in which an explanation shows times.
#[derive(Debug, Clone)]
pub(crate) struct ExplanationClock(Zone);

impl ExplanationClock {
    /// The zone of a schedule; that of the job if there is no schedule, and UTC if there is no job.
    pub(crate) fn of(schedule: Option<&ScheduleId>, known: &KnownRecords, world: &DecisionContext) -> Self {
        let Some(job) = &known.job else { return Self(Zone::utc()) };
        let written = schedule.and_then(|id| job.schedule(id)).and_then(|schedule| schedule.spec.zone.as_deref());
        let zone = world.zones.get(written.unwrap_or(&job.zone)).or_else(|_| world.zones.get(&job.zone));
        Self(zone.unwrap_or_else(|_| Zone::utc()))
    }

    /// A time as `2026-01-05 03:00 Europe/Berlin (02:00 UTC)`, truncated to seconds.
    pub(crate) fn at(&self, at: Instant) -> String {
        let utc = WallTime(at.secs());
        let local = self.0.local(at.secs());
        let there = date_and_time(local);
        match self.0.name() {
            "UTC" => format!("{there} UTC"),
            zone if local.day() == utc.day() => format!("{there} {zone} ({} UTC)", time(utc)),
            zone => format!("{there} {zone} ({} UTC)", date_and_time(utc)),
        }
    }

    /// A time in a log, as `2026-01-05 03:00:00.002 +01:00`.
    pub(super) fn stamp(&self, at: Instant) -> String {
        let offset = self.0.offset_at(at.secs());
        let local = self.0.local(at.secs());
        let millis = at.millis().rem_euclid(1_000);
        let sign = if offset < 0 { '-' } else { '+' };
        let minutes = offset.unsigned_abs() / 60;
        let clock = TimeOfDay(local.second_of_day()).with_seconds();
        format!("{} {clock}.{millis:03} {sign}{:02}:{:02}", local.day(), minutes / 60, minutes % 60)
    }
}

/// A span truncated to the precision that matters: whole minutes for days, whole seconds for minutes.
pub(super) fn rough(span: Span) -> Span {
    const MINUTE: u64 = 60;
    match span.secs() {
        0 => Span::from_millis(span.millis()),
        secs if secs >= 24 * 60 * MINUTE => Span::from_secs(secs - secs % MINUTE),
        secs => Span::from_secs(secs),
    }
}

fn date_and_time(local: WallTime) -> String {
    format!("{} {}", local.day(), time(local))
}

fn time(local: WallTime) -> String {
    TimeOfDay(local.second_of_day()).to_string()
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::ZoneRegistry;

    use super::*;

    #[test]
    fn times_show_the_zone_and_utc() {
        let zones = ZoneRegistry::bundled();
        for (zone, at, expected, stamp) in [
            ("UTC", "2026-01-05T02:00:00Z", "2026-01-05 02:00 UTC", "2026-01-05 02:00:00.000 +00:00"),
            (
                "Europe/Berlin",
                "2026-01-05T02:00:09.0025Z",
                "2026-01-05 03:00:09 Europe/Berlin (02:00:09 UTC)",
                "2026-01-05 03:00:09.002 +01:00",
            ),
            // The date differs between the zone and UTC.
            (
                "America/St_Johns",
                "2026-01-05T02:00:00Z",
                "2026-01-04 22:30 America/St_Johns (2026-01-05 02:00 UTC)",
                "2026-01-04 22:30:00.000 -03:30",
            ),
            // The local time is repeated by a clock change; UTC distinguishes the two.
            (
                "Europe/Berlin",
                "2026-10-25T01:30:00Z",
                "2026-10-25 02:30 Europe/Berlin (01:30 UTC)",
                "2026-10-25 02:30:00.000 +01:00",
            ),
        ] {
            let wall = ExplanationClock(zones.get(zone).expect(zone));
            let at = Instant::parse(at).expect(at);
            assert_eq!((wall.at(at).as_str(), wall.stamp(at).as_str()), (expected, stamp));
        }
    }

    #[test]
    fn spans_are_truncated_by_their_length() {
        for (micros, expected) in [
            (0, "0s"),
            (400, "0s"),
            (2_500, "2ms"),
            (1_999_999, "1s"),
            (3_723_000_000, "1h2m3s"),
            (90_061_000_000, "1d1h1m"),
        ] {
            assert_eq!(rough(Span::from_micros(micros)).to_string(), expected);
        }
    }
}
