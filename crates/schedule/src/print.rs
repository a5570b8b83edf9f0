//! A schedule's canonical text and its id. The text is a phrase if a phrase can express the schedule, otherwise a map
//! that the job file reader understands; serialization uses the same keys.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::hash::StableHash;
use crate::span::Span;
use crate::spec::{DailyInterval, DailyTiming, DayShift, ScheduleSpec, Timing, WindowEdge};

/// A value in the map form of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PrintedValue {
    Text(String),
    Number(i32),
    Flag,
    List(Vec<String>),
    Map(Vec<(&'static str, PrintedValue)>),
}

impl ScheduleSpec {
    /// The id of an unnamed schedule: a digest of its args and of everything that determines its occurrences. Position
    /// in the job, jitter and `enabled` are not included. The args are ordered by name.
    pub fn digest<'a>(&self, args: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
        let mut hash = StableHash::new();
        hash.text(&Self { jitter: Span::ZERO, ..self.clone() }.to_string());
        for (name, value) in args {
            hash.text(name);
            hash.text(value);
        }
        format!("{:016x}", hash.finish())
    }

    /// Its text as a phrase; `None` if a phrase cannot express it.
    fn phrase(&self) -> Option<String> {
        let only_zone = Self { zone: None, ..self.clone() } == Self::new(self.timing.clone());
        let phrase = match &self.timing {
            Timing::Cron(expr) => expr.to_string(),
            Timing::Every { interval, phase } if phase.is_zero() => format!("@every {interval}"),
            Timing::After { interval } if interval.is_zero() => "continuously".to_owned(),
            Timing::After { interval } => format!("with {interval} interval"),
            Timing::Triggered => "triggered".to_owned(),
            Timing::Never => "@never".to_owned(),
            Timing::Reboot => "@reboot".to_owned(),
            _ => return None,
        };
        match &self.zone {
            _ if !only_zone => None,
            None => Some(phrase),
            Some(zone) => Some(format!("CRON_TZ={zone} {phrase}")),
        }
    }

    fn entries(&self) -> Vec<(&'static str, PrintedValue)> {
        let mut entries = match &self.timing {
            Timing::Cron(expr) => vec![("cron", PrintedValue::Text(expr.to_string()))],
            Timing::Fields(fields) => {
                fields.entries().into_iter().map(|(name, text)| (name, PrintedValue::Text(text))).collect()
            }
            Timing::Every { interval, phase } if phase.is_zero() => vec![("every", span(*interval))],
            Timing::Every { interval, phase } => vec![("every", span(*interval)), ("phase", span(*phase))],
            Timing::After { interval } => vec![("after", span(*interval))],
            Timing::Daily(daily) => vec![("daily", daily_entry(daily))],
            Timing::DailyInterval(window) => vec![("daily_interval", window_entry(window))],
            Timing::At(instants) => {
                vec![("at", PrintedValue::List(instants.iter().map(ToString::to_string).collect()))]
            }
            Timing::Triggered => vec![("triggered", PrintedValue::Flag)],
            Timing::Never => vec![("never", PrintedValue::Flag)],
            Timing::Reboot => vec![("reboot", PrintedValue::Flag)],
        };
        let mut optional = |key, value: Option<String>| {
            entries.extend(value.map(|value| (key, PrintedValue::Text(value))));
        };
        optional("timezone", self.zone.clone());
        optional("start", self.start.map(|bound| bound.to_string()));
        optional("end", self.end.map(|bound| bound.to_string()));
        optional("jitter", (!self.jitter.is_zero()).then(|| self.jitter.to_string()));
        optional("calendar", self.calendar.as_ref().map(ToString::to_string));
        optional("gap", self.gap.map(|gap| gap.name().to_owned()));
        optional("fold", self.fold.map(|fold| fold.name().to_owned()));
        entries
    }
}

fn span(span: Span) -> PrintedValue {
    PrintedValue::Text(span.to_string())
}

fn daily_entry(daily: &DailyTiming) -> PrintedValue {
    let mut entries = vec![("times", PrintedValue::List(daily.times.iter().map(ToString::to_string).collect()))];
    entries.extend(shift_entries(daily.shift));
    PrintedValue::Map(entries)
}

fn window_entry(window: &DailyInterval) -> PrintedValue {
    let edge = |edge: &WindowEdge| {
        let mut entries = vec![("time", PrintedValue::Text(edge.time.to_string()))];
        entries.extend(shift_entries(edge.shift));
        PrintedValue::Map(entries)
    };
    PrintedValue::Map(vec![
        ("from", edge(&window.from)),
        ("until", edge(&window.until)),
        ("every", span(window.interval)),
    ])
}

fn shift_entries(shift: DayShift) -> impl Iterator<Item = (&'static str, PrintedValue)> {
    [("date_shift", shift.days), ("calendar_shift", shift.calendar_days)]
        .into_iter()
        .filter(|(_, days)| *days != 0)
        .map(|(key, days)| (key, PrintedValue::Number(days)))
}

impl fmt::Display for ScheduleSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.phrase() {
            Some(phrase) => f.write_str(&phrase),
            None => write_map(f, &self.entries()),
        }
    }
}

fn write_map(f: &mut fmt::Formatter<'_>, entries: &[(&str, PrintedValue)]) -> fmt::Result {
    f.write_str("{")?;
    for (index, (key, value)) in entries.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(f, "{separator}{key}: ")?;
        match value {
            // Texts of schedules contain no control characters, so Rust's escapes are valid YAML.
            PrintedValue::Text(text) => write!(f, "{text:?}")?,
            PrintedValue::Number(number) => write!(f, "{number}")?,
            PrintedValue::Flag => f.write_str("true")?,
            PrintedValue::List(texts) => write!(f, "{texts:?}")?,
            PrintedValue::Map(entries) => write_map(f, entries)?,
        }
    }
    f.write_str("}")
}

impl Serialize for ScheduleSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PrintedValue::Map(self.entries()).serialize(serializer)
    }
}

impl Serialize for PrintedValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Number(number) => serializer.serialize_i32(*number),
            Self::Flag => serializer.serialize_bool(true),
            Self::List(texts) => texts.serialize(serializer),
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}
