//! Reads values that the schedule crate parses: spans, times, moments, zones, calendars.

use cronhold_schedule::{CalendarExpr, Span, TimeBound, TimeOfDay};

use super::reader::{JobReader, NamedNode};
use crate::yaml::YamlValue;

impl JobReader<'_> {
    /// A span of time; a bare number is seconds.
    pub(crate) fn span(&mut self, item: NamedNode<'_>) -> Option<Span> {
        match &item.node.value {
            YamlValue::Scalar(scalar) => self.parsed(item, Span::parse(&scalar.text)),
            _ => self.wrong(item, "a span of time", "15m"),
        }
    }

    /// A span of time that is not zero.
    pub(crate) fn some_span(&mut self, item: NamedNode<'_>) -> Option<Span> {
        let span = self.span(item)?;
        if span.is_zero() {
            return self.refuse(item, format!("`{}` must be longer than zero", item.name), "write for example `30s`");
        }
        Some(span)
    }

    /// A time of day.
    pub(crate) fn time(&mut self, item: NamedNode<'_>) -> Option<TimeOfDay> {
        match &item.node.value {
            YamlValue::Scalar(scalar) => self.parsed(item, TimeOfDay::parse(&scalar.text)),
            _ => self.wrong(item, "a time of day", "18:00"),
        }
    }

    /// A date, a local date and time, or an instant.
    pub(crate) fn moment(&mut self, item: NamedNode<'_>) -> Option<TimeBound> {
        match &item.node.value {
            YamlValue::Scalar(scalar) => self.parsed(item, TimeBound::parse(&scalar.text)),
            _ => self.wrong(item, "a date or an instant", "2026-03-29T01:30:00Z"),
        }
    }

    /// A zone by its IANA name, spelled as the zone data spells it.
    pub(crate) fn zone(&mut self, item: NamedNode<'_>) -> Option<String> {
        if self.is_full() {
            return None;
        }
        let text = self.text(item)?;
        let zone = self.parsed(item, self.zones.get(text))?;
        Some(zone.name().to_owned())
    }

    /// A calendar. Whether its files exist is checked when the schedule is compiled.
    pub(crate) fn calendar(&mut self, item: NamedNode<'_>) -> Option<CalendarExpr> {
        let text = self.text(item)?;
        self.parsed(item, CalendarExpr::parse(text))
    }
}
