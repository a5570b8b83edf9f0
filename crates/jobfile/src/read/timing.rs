//! Reads the kinds of schedules in our own form, each under its key.

use cronhold_schedule::cron::FieldsExpr;
use cronhold_schedule::{DailyInterval, DayShift, ScheduleSpec, Span, Timing, WindowEdge};

use super::fields::Fields;
use super::reader::{JobReader, NamedNode};
use crate::keys;
use crate::yaml::YamlValue;

impl JobReader<'_> {
    /// The kind of a schedule, with the zone and the calendar inside it.
    pub(super) fn timing(&mut self, fields: &Fields<'_>) -> Option<ScheduleSpec> {
        let (kind, item) = fields.kind()?;
        let timing = match kind {
            "cron" => return self.schedule_text(item),
            "every" => {
                let phase = fields.get("phase").and_then(|item| self.span(item)).unwrap_or(Span::ZERO);
                Timing::Every { interval: self.some_span(item)?, phase }
            }
            "after" => Timing::After { interval: self.span(item)? },
            "daily" => return self.daily(item, fields),
            "daily_interval" => return self.daily_interval(item),
            "at" => self.moments(item)?,
            "triggered" => self.only_true(item).map(|()| Timing::Triggered)?,
            "never" => self.only_true(item).map(|()| Timing::Never)?,
            "reboot" => self.only_true(item).map(|()| Timing::Reboot)?,
            _ => self.cron_fields(fields)?,
        };
        Some(ScheduleSpec::new(timing))
    }

    /// Explicit instants, one or a list.
    pub(super) fn moments(&mut self, item: NamedNode<'_>) -> Option<Timing> {
        let nodes = self.one_or_some(item, "[2026-03-29T01:30:00Z]")?;
        let moments: Vec<_> = nodes.iter().filter_map(|node| self.moment(item.item(node))).collect();
        (moments.len() == nodes.len()).then(|| Timing::at(moments))
    }

    fn cron_fields(&mut self, fields: &Fields<'_>) -> Option<Timing> {
        let given: Vec<NamedNode<'_>> = FieldsExpr::NAMES.iter().filter_map(|name| fields.get(name)).collect();
        let texts: Vec<(&str, &str)> = given.iter().filter_map(|item| Some((item.name, self.value(*item)?))).collect();
        if texts.len() < given.len() {
            return None;
        }
        match FieldsExpr::parse(&texts) {
            Ok(expr) => Some(Timing::Fields(expr)),
            Err((index, error)) => self.parsed(given[index.min(given.len() - 1)], Err(error)),
        }
    }

    /// Times of day, or a map with them; the shifts may be inside the map or beside `daily`.
    fn daily(&mut self, item: NamedNode<'_>, beside: &Fields<'_>) -> Option<ScheduleSpec> {
        let shift_beside = self.shift(beside);
        if !matches!(item.node.value, YamlValue::Map(_)) {
            let times = self.times(item)?;
            return Some(ScheduleSpec::new(Timing::daily(times, shift_beside)));
        }
        let fields = self.fields(item, &keys::DAILY)?;
        let times = fields.get("times").and_then(|item| self.times(item));
        let inside = fields.get("date_shift").or(fields.get("calendar_shift")).is_some();
        let shift = if inside { self.shift(&fields) } else { shift_beside };
        let spec = ScheduleSpec::new(Timing::daily(times?, shift));
        self.zone_and_calendar(&fields, spec)
    }

    /// Times of day, one or a list.
    pub(super) fn times(&mut self, item: NamedNode<'_>) -> Option<Vec<cronhold_schedule::TimeOfDay>> {
        let nodes = self.one_or_some(item, "[\"08:00\", \"18:00\"]")?;
        let times: Vec<_> = nodes.iter().filter_map(|node| self.time(item.item(node))).collect();
        (times.len() == nodes.len()).then_some(times)
    }

    fn daily_interval(&mut self, item: NamedNode<'_>) -> Option<ScheduleSpec> {
        let fields = self.fields(item, &keys::DAILY_INTERVAL)?;
        let from = fields.get("from").and_then(|item| self.edge(item));
        let until = fields.get("until").and_then(|item| self.edge(item));
        let interval = fields.get("every").and_then(|item| self.some_span(item));
        let window = DailyInterval { from: from?, until: until?, interval: interval? };
        self.zone_and_calendar(&fields, ScheduleSpec::new(Timing::DailyInterval(window)))
    }

    pub(super) fn edge(&mut self, item: NamedNode<'_>) -> Option<WindowEdge> {
        if !matches!(item.node.value, YamlValue::Map(_)) {
            return Some(WindowEdge { time: self.time(item)?, shift: DayShift::default() });
        }
        let fields = self.fields(item, &keys::EDGE)?;
        let time = fields.get("time").and_then(|item| self.time(item));
        let shift = self.shift(&fields);
        Some(WindowEdge { time: time?, shift })
    }

    pub(super) fn shift(&mut self, fields: &Fields<'_>) -> DayShift {
        let mut days = |name| {
            let days = fields.get(name).and_then(|item| self.whole(item, -366, 366)).unwrap_or(0);
            i32::try_from(days).unwrap_or(0)
        };
        DayShift { calendar_days: days("calendar_shift"), days: days("date_shift") }
    }

    fn zone_and_calendar(&mut self, fields: &Fields<'_>, mut spec: ScheduleSpec) -> Option<ScheduleSpec> {
        if let Some(item) = fields.get("timezone") {
            spec.zone = Some(self.zone(item)?);
        }
        if let Some(item) = fields.get("calendar") {
            spec.calendar = Some(self.calendar(item)?);
        }
        Some(spec)
    }
}
