//! Schedules as Apsis writes them: with `type`, and with `start` and `stop` beside each other.

use cronhold_core::job::{JobSchedule, StopSchedule};
use cronhold_schedule::{DailyInterval, ScheduleSpec, Span, Timing};

use super::fields::Fields;
use super::reader::{JobReader, NamedNode};
use crate::keys;

impl JobReader<'_> {
    /// `{start: SCHEDULE, stop: …}`.
    pub(super) fn apsis_pair(&mut self, item: NamedNode<'_>) -> Option<JobSchedule> {
        let fields = self.fields(item, &keys::APSIS_PAIR)?;
        let mut schedules = fields.get("start").map(|item| self.schedules(item)).unwrap_or_default();
        let schedule = schedules.pop();
        let spec = schedule.as_ref().map(|schedule| &schedule.spec);
        let stop = fields.get("stop").and_then(|item| self.stop_schedule(item, spec));
        schedule.map(|schedule| JobSchedule { stop: stop.or(schedule.stop.clone()), ..schedule })
    }

    /// `{type: daily, …}`.
    pub(super) fn apsis_typed(&mut self, item: NamedNode<'_>) -> Option<JobSchedule> {
        let fields = self.fields(item, &keys::APSIS_TYPED)?;
        let kind = self.word(fields.get("type")?, &["interval", "daily", "daily-interval", "explicit"])?;
        let timing = match kind {
            "interval" => self.apsis_interval(&fields),
            "daily" => self.apsis_daily(&fields),
            "daily-interval" => self.apsis_window(&fields),
            _ => self.needed(&fields, kind, "times").and_then(|item| self.moments(item)),
        };
        let zone = fields.get("tz").map(|item| self.zone(item));
        let calendar = fields.get("calendar").map(|item| self.calendar(item));
        let (name, args) = (self.schedule_name(&fields), self.args(&fields));
        let enabled = fields.get("enabled").and_then(|item| self.bool(item)).unwrap_or(true);
        self.only_of_kind(&fields, kind);
        let mut spec = ScheduleSpec::new(timing?);
        spec.zone = zone.flatten();
        spec.calendar = calendar.flatten();
        self.check_spec(&fields, &spec)?;
        Some(JobSchedule { name, spec, args, enabled, stop: None })
    }

    fn apsis_interval(&mut self, fields: &Fields<'_>) -> Option<Timing> {
        let interval = self.needed(fields, "interval", "interval").and_then(|item| self.some_span(item));
        let phase = fields.get("phase").and_then(|item| self.span(item)).unwrap_or(Span::ZERO);
        Some(Timing::Every { interval: interval?, phase })
    }

    fn apsis_daily(&mut self, fields: &Fields<'_>) -> Option<Timing> {
        let times = self.needed(fields, "daily", "daytime").and_then(|item| self.times(item));
        let shift = self.shift(fields);
        Some(Timing::daily(times?, shift))
    }

    fn apsis_window(&mut self, fields: &Fields<'_>) -> Option<Timing> {
        const KIND: &str = "daily-interval";
        let from = self.needed(fields, KIND, "start").and_then(|item| self.edge(item));
        let until = self.needed(fields, KIND, "stop").and_then(|item| self.edge(item));
        let interval = self.needed(fields, KIND, "interval").and_then(|item| self.some_span(item));
        Some(Timing::DailyInterval(DailyInterval { from: from?, until: until?, interval: interval? }))
    }

    /// A key that this type requires.
    fn needed<'n>(&mut self, fields: &Fields<'n>, kind: &str, name: &'static str) -> Option<NamedNode<'n>> {
        let item = fields.get(name);
        if item.is_none() {
            let mistake = self.mistake(&fields.node.span, format!("the type `{kind}` needs the key `{name}`"));
            self.report(mistake);
        }
        item
    }

    /// Reports keys that belong to another type, which would otherwise be ignored.
    fn only_of_kind(&mut self, fields: &Fields<'_>, kind: &str) {
        let kinds: [(&'static str, &[&str]); 8] = [
            ("daytime", &["daily"]),
            ("date_shift", &["daily"]),
            ("calendar_shift", &["daily"]),
            ("interval", &["interval", "daily-interval"]),
            ("phase", &["interval"]),
            ("start", &["daily-interval"]),
            ("stop", &["daily-interval"]),
            ("times", &["explicit"]),
        ];
        for (name, kinds) in kinds {
            if let (Some(item), false) = (fields.get(name), kinds.contains(&kind)) {
                let message = format!("the type `{kind}` has no key `{}`", item.name);
                self.refuse::<()>(item, message, format!("it belongs to `{}`", kinds.join("` and `")));
            }
        }
    }

    /// `{type: duration, duration: 2h}` or `{type: daytime, daytime: 18:00, tz: …}`.
    pub(super) fn apsis_stop(&mut self, item: NamedNode<'_>, spec: Option<&ScheduleSpec>) -> Option<StopSchedule> {
        let fields = self.fields(item, &keys::APSIS_STOP)?;
        match self.word(fields.get("type")?, &["duration", "daytime"])? {
            "duration" => self
                .needed(&fields, "duration", "duration")
                .and_then(|item| self.some_span(item))
                .map(StopSchedule::After),
            kind => {
                let time = self.needed(&fields, kind, "daytime").and_then(|item| self.time(item));
                if let Some(item) = fields.get("tz") {
                    let zone = self.zone(item)?;
                    if spec.is_some_and(|spec| spec.zone.as_ref() != Some(&zone)) {
                        let message = "a stop can only be in the zone of its schedule";
                        return self.refuse(item, message, "give the schedule the same `tz`");
                    }
                }
                time.map(StopSchedule::At)
            }
        }
    }
}
