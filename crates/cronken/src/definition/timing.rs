//! Reads `cron_args`: a `cronstring`, or cron fields as in APScheduler. It also finds texts that Cronken's own nodes read
//! differently, such as a job that fires on Monday there and on Sunday here.

use cronhold_jobfile::foreign::FormNote;
use cronhold_jobfile::foreign::object::{FormField, FormMistakes, optional, path};
use cronhold_schedule::cron::{CronExpr, FieldsExpr};
use cronhold_schedule::text::{did_you_mean, shortened};
use cronhold_schedule::{ScheduleSpec, Span, TextError, TimeBound, Timing};
use serde_json::{Map, Value};

use super::{CRON_ARGS, Dialect, MORE_CRON_ARGS, ReadOptions, WORDS};

/// The longest jitter, one day.
const JITTER_MAX_SECS: u64 = 86_400;

/// The fields of a `cronstring` in order.
const CRONSTRING_FIELDS: [&str; 5] = ["minute", "hour", "day", "month", "day_of_week"];

/// Reads `cron_args` once, and collects mistakes and notes.
pub(super) struct TimingReader<'a> {
    pub(super) map: &'a Map<String, Value>,
    pub(super) options: &'a ReadOptions<'a>,
    pub(super) mistakes: &'a mut FormMistakes,
    pub(super) notes: &'a mut Vec<FormNote>,
    pub(super) depends_on_dialect: &'a mut bool,
}

impl<'a> TimingReader<'a> {
    pub(super) fn read(mut self) -> Option<ScheduleSpec> {
        self.note_unknown_keys();
        match optional(self.map, CRON_ARGS, "cronstring") {
            Some(field) => self.cronstring(field),
            None => self.fields(),
        }
    }

    /// Notes unknown keys, with the field that was probably meant.
    fn note_unknown_keys(&mut self) {
        let known = || FieldsExpr::NAMES.into_iter().chain(MORE_CRON_ARGS);
        for key in self.map.keys().filter(|key| !known().any(|known| known == *key)) {
            let meant = did_you_mean(key, known()).map(|meant| format!("; did you mean `{meant}`?"));
            let message = format!("there is no such field and it has no effect{}", meant.unwrap_or_default());
            self.notes.push(FormNote { path: path(CRON_ARGS, &shortened(key)), message });
        }
    }

    fn cronstring(&mut self, field: FormField<'_>) -> Option<ScheduleSpec> {
        let text = self.mistakes.some_text(field, "such as `0 3 * * *` or @daily")?.trim();
        let beside = FieldsExpr::NAMES.into_iter().chain(MORE_CRON_ARGS);
        for key in beside.filter(|key| *key != "cronstring" && optional(self.map, CRON_ARGS, key).is_some()) {
            let message = "it has no effect beside a `cronstring`, in Cronken as well".to_owned();
            self.notes.push(FormNote { path: path(CRON_ARGS, key), message });
        }
        let expression = match WORDS.iter().find(|(word, _)| *word == text) {
            Some((_, None)) => return Some(ScheduleSpec::new(Timing::Never)),
            Some((_, Some(expression))) => expression,
            None if text.starts_with('@') => return self.unknown_word(field, text),
            None => text,
        };
        let fields: Vec<&str> = expression.split_whitespace().collect();
        if fields.len() != CRONSTRING_FIELDS.len() {
            let message = format!("a cronstring has 5 fields, this has {}", fields.len());
            let hint = "minute hour day-of-month month day-of-week; `second` and `year` are fields beside it";
            return self.mistakes.report(field.path(), message, hint);
        }
        let timing = match self.options.dialect {
            Dialect::Cronken => as_cronken(expression).map(Timing::Fields),
            Dialect::Cron | Dialect::Castle => CronExpr::parse(expression).map(Timing::Cron),
        };
        let surprises = if timing.is_ok() { surprises(expression) } else { Vec::new() };
        *self.depends_on_dialect = !surprises.is_empty();
        // By Cronken's rules there is no difference to note.
        if self.options.dialect == Dialect::Cron {
            self.notes.extend(surprises.into_iter().map(|message| FormNote { path: field.path(), message }));
        }
        self.mistakes.parsed(field.path(), timing).map(ScheduleSpec::new)
    }

    fn unknown_word<T>(&mut self, field: FormField<'_>, text: &str) -> Option<T> {
        let words = WORDS.map(|(word, _)| word);
        let hint = match did_you_mean(text, words) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => words.join(", "),
        };
        self.mistakes.report(field.path(), format!("`{}` is not a macro of Cronken", shortened(text)), &hint)
    }

    fn fields(&mut self) -> Option<ScheduleSpec> {
        let mut texts: Vec<(&str, String)> = Vec::new();
        let mut all_read = true;
        for name in FieldsExpr::NAMES {
            let Some(field) = optional(self.map, CRON_ARGS, name) else { continue };
            let text = match field.value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => {
                    self.mistakes.wrong::<()>(field, "a text or a number", "such as \"*/15\" or 14");
                    all_read = false;
                    continue;
                }
            };
            // Parses each field alone, so that a mistake in one does not hide those in the others.
            let alone = FieldsExpr::parse(&[(name, &text)]).map_err(|(_, error)| error);
            all_read &= self.mistakes.parsed(field.path(), alone).is_some();
            texts.push((name, text));
        }
        if texts.is_empty() && all_read {
            return self.mistakes.report(CRON_ARGS.to_owned(), "no time is given", &self.no_time_hint());
        }
        let timing = if all_read {
            let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
            let expr = FieldsExpr::parse(&texts).map_err(|(_, error)| error);
            self.mistakes.parsed(CRON_ARGS.to_owned(), expr).map(Timing::Fields)
        } else {
            None
        };
        self.bounds(timing)
    }

    /// A hint for `cron_args` without a time: the field that was probably meant, or all fields.
    fn no_time_hint(&self) -> String {
        let times = || FieldsExpr::NAMES.into_iter().chain(["cronstring"]);
        match self.map.keys().find_map(|key| Some((key, did_you_mean(key, times())?))) {
            Some((key, meant)) => format!("write `{meant}` for `{}`", shortened(key)),
            None => format!("write `cronstring`, or one of {}", FieldsExpr::NAMES.join(", ")),
        }
    }

    /// Adds the zone, the bounds and the jitter.
    fn bounds(&mut self, timing: Option<Timing>) -> Option<ScheduleSpec> {
        let before = self.mistakes.0.len();
        let zone = self.text_of("timezone", "such as Europe/Berlin").and_then(|(field, text)| {
            let zone = self.options.zones.get(text);
            self.mistakes.parsed(field.path(), zone).map(|zone| zone.name().to_owned())
        });
        let start = self.bound("start_date");
        // In APScheduler a date without a time means midnight at its start, also as an end.
        let end = self.bound("end_date").map(|bound| match bound {
            TimeBound::Day(day) => TimeBound::Local(day.midnight()),
            other => other,
        });
        let jitter = optional(self.map, CRON_ARGS, "jitter")
            .and_then(|field| self.mistakes.seconds(field, 0, JITTER_MAX_SECS))
            .map_or(Span::ZERO, Span::from_secs);
        let spec = ScheduleSpec { zone, start, end, jitter, ..ScheduleSpec::new(timing?) };
        if let Err(error) = spec.check() {
            let key = if error.key == "end" { "end_date" } else { error.key };
            return self.mistakes.report(path(CRON_ARGS, key), error.message, "");
        }
        (self.mistakes.0.len() == before).then_some(spec)
    }

    fn bound(&mut self, key: &'static str) -> Option<TimeBound> {
        let (field, text) = self.text_of(key, "such as 2026-03-29 18:00:00")?;
        self.mistakes.parsed(field.path(), TimeBound::parse(text))
    }

    fn text_of(&mut self, key: &'static str, hint: &str) -> Option<(FormField<'a>, &'a str)> {
        let field = optional(self.map, CRON_ARGS, key)?;
        Some((field, self.mistakes.some_text(field, hint)?))
    }
}

/// Reads a `cronstring` of five fields by the rules of Cronken's nodes.
pub(super) fn as_cronken(text: &str) -> Result<FieldsExpr, TextError> {
    let fields: Vec<(&str, &str)> = CRONSTRING_FIELDS.into_iter().zip(text.split_whitespace()).collect();
    FieldsExpr::parse(&fields).map_err(|(_, error)| error)
}

/// The differences between cron's reading of a `cronstring` of five fields and the reading of Cronken's nodes.
pub(super) fn surprises(text: &str) -> Vec<String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [_, _, day, _, weekday] = fields[..] else { return Vec::new() };
    if let Err(error) = as_cronken(text) {
        return vec![format!("Cronken itself cannot read it: {error}")];
    }
    let mut found = Vec::new();
    if has_numbers(weekday) {
        found.push(
            "weekday 0 is Sunday here, as in cron, but Monday in Cronken itself; write names such as sun or mon-fri"
                .to_owned(),
        );
    }
    if day != "*" && weekday != "*" {
        found.push(
            "a day counts when day or weekday match, as in cron, but Cronken itself wants both; use two jobs or fields"
                .to_owned(),
        );
    }
    found
}

/// Whether a weekday field names weekdays by number. The number after `/` is not a weekday, but `*/n` counts from weekday
/// 0.
fn has_numbers(weekday: &str) -> bool {
    weekday.split(',').any(|entry| {
        let values = entry.split('/').next().unwrap_or(entry);
        entry.starts_with("*/") || values.bytes().any(|byte| byte.is_ascii_digit())
    })
}
