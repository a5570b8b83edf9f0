//! Reads schedules: a text, a map or a list of them. Keys that all kinds share are read here, the kinds in `timing`, the
//! forms of Apsis in `apsis`.

use std::collections::BTreeMap;

use cronhold_core::NameMap;
use cronhold_core::job::{JobSchedule, StopSchedule};
use cronhold_core::record::ScheduleId;
use cronhold_schedule::{FoldPolicy, GapPolicy, ScheduleSpec, TimeBound, Timing};

use super::fields::Fields;
use super::reader::{JobReader, NamedNode};
use super::{names, quoted};
use crate::keys;
use crate::yaml::{YamlNode, YamlValue};

impl JobReader<'_> {
    /// One schedule or a list of them. Ids must be unique, because a cursor belongs to an id.
    pub(crate) fn schedules(&mut self, item: NamedNode<'_>) -> Vec<JobSchedule> {
        let nodes = match &item.node.value {
            YamlValue::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(item.node),
        };
        let mut seen: BTreeMap<String, &YamlNode> = BTreeMap::new();
        let mut schedules = Vec::new();
        for node in nodes {
            let Some(schedule) = self.schedule(item.item(node)) else { continue };
            let id = schedule.id();
            if let Some(first) = seen.get(&id) {
                let (message, hint) = match &schedule.name {
                    Some(name) => (format!("two schedules have the name {}", quoted(name)), "rename one of them"),
                    None => ("two schedules are the same".to_owned(), "remove one, or give it other args or a `name`"),
                };
                let mistake = self.mistake(&node.span, message).hint(hint);
                let first = self.mistake(&first.span, "").at;
                self.report(mistake.related(first, "first here"));
            }
            seen.entry(id).or_insert(node);
            schedules.push(schedule);
        }
        schedules
    }

    fn schedule(&mut self, item: NamedNode<'_>) -> Option<JobSchedule> {
        match &item.node.value {
            YamlValue::Scalar(_) => {
                let spec = self.schedule_text(item)?;
                Some(JobSchedule { name: None, spec, args: NameMap::new(), enabled: true, stop: None })
            }
            YamlValue::Map(_) if item.node.get("type").is_some() => self.apsis_typed(item),
            YamlValue::Map(_)
                if item.node.get("start").is_some_and(|start| matches!(start.value, YamlValue::Map(_))) =>
            {
                self.apsis_pair(item)
            }
            YamlValue::Map(_) => self.own_schedule(item),
            _ => self.wrong(item, "a schedule", "{cron: \"0 18 * * Mon-Fri\"}"),
        }
    }

    /// A schedule as one text: cron, an @-word or a phrase.
    pub(crate) fn schedule_text(&mut self, item: NamedNode<'_>) -> Option<ScheduleSpec> {
        let text = self.value(item)?;
        let mut spec = self.parsed(item, ScheduleSpec::parse(text))?;
        if let Some(zone) = spec.zone.take()
            && !self.is_full()
        {
            let by = ScheduleSpec::zone_place(text).start;
            let zone = self.zones.get(&zone).map_err(|error| error.shifted(by));
            spec.zone = Some(self.parsed(item, zone)?.name().to_owned());
        }
        Some(spec)
    }

    fn own_schedule(&mut self, item: NamedNode<'_>) -> Option<JobSchedule> {
        let fields = self.fields(item, &keys::SCHEDULE)?;
        let timing = self.timing(&fields);
        let has_timing = timing.is_some();
        // The other keys are read even if the kind is wrong, to report their mistakes.
        let spec = self.shared(&fields, timing.unwrap_or(ScheduleSpec::new(Timing::Never))).filter(|_| has_timing);
        let schedule = JobSchedule {
            name: self.schedule_name(&fields),
            args: self.args(&fields),
            enabled: fields.get("enabled").and_then(|item| self.bool(item)).unwrap_or(true),
            stop: fields.get("stop").and_then(|item| self.stop_schedule(item, spec.as_ref())),
            spec: spec?,
        };
        self.check_spec(&fields, &schedule.spec)?;
        Some(schedule)
    }

    /// Zone, bounds, jitter, calendar and clock change policies.
    fn shared(&mut self, fields: &Fields<'_>, mut spec: ScheduleSpec) -> Option<ScheduleSpec> {
        if let Some(item) = fields.get("timezone") {
            self.once(item, spec.zone.is_some())?;
            spec.zone = Some(self.zone(item)?);
        }
        if let Some(item) = fields.get("calendar") {
            self.once(item, spec.calendar.is_some())?;
            spec.calendar = Some(self.calendar(item)?);
        }
        for (key, kind) in [("phase", "every"), ("date_shift", "daily"), ("calendar_shift", "daily")] {
            if let Some(item) = fields.get(key)
                && fields.get(kind).is_none()
            {
                let message = format!("`{key}` is only allowed with `{kind}`");
                return self.refuse(item, message, "leave it out");
            }
        }
        spec.start = fields.get("start").and_then(|item| self.moment(item));
        spec.end = fields.get("end").and_then(|item| match self.moment(item)? {
            // In APScheduler, `end_date` means the first moment of a date.
            TimeBound::Day(day) if item.name == "end_date" => Some(TimeBound::Local(day.midnight())),
            bound => Some(bound),
        });
        spec.jitter = fields.get("jitter").and_then(|item| self.span(item)).unwrap_or_default();
        spec.gap = fields.get("gap").and_then(|item| GapPolicy::parse(self.word(item, &GapPolicy::NAMES)?).ok());
        spec.fold = fields.get("fold").and_then(|item| FoldPolicy::parse(self.word(item, &FoldPolicy::NAMES)?).ok());
        Some(spec)
    }

    /// Reports a key that is given both inside a kind and beside it.
    fn once(&mut self, item: NamedNode<'_>, given: bool) -> Option<()> {
        if given {
            let message = format!("`{}` is given twice, here and inside the kind of schedule", item.name);
            return self.refuse(item, message, "keep one of them");
        }
        Some(())
    }

    /// Checks that involve several keys, such as a phase longer than its interval.
    pub(crate) fn check_spec(&mut self, fields: &Fields<'_>, spec: &ScheduleSpec) -> Option<()> {
        let Err(error) = spec.check() else { return Some(()) };
        let entry = fields.node.entries().iter().find(|entry| entry.key == error.key);
        let at = entry.map_or(&fields.node.span, |entry| &entry.value.span);
        let mistake = self.mistake(at, error.message);
        self.report(mistake);
        None
    }

    pub(crate) fn schedule_name(&mut self, fields: &Fields<'_>) -> Option<String> {
        let item = fields.get("name")?;
        let name = self.text(item)?;
        if name.is_empty() || name.len() > ScheduleId::MAX {
            let message =
                format!("the name of a schedule has 1 to {} bytes, and this one has {}", ScheduleId::MAX, name.len());
            return self.refuse(item, message, "write a short one, such as `name: nightly`");
        }
        Some(name.to_owned())
    }

    pub(crate) fn args(&mut self, fields: &Fields<'_>) -> NameMap<String> {
        let Some(item) = fields.get("args") else { return NameMap::new() };
        let entries = self.names(item, names::param, "{region: us}").unwrap_or_default();
        let value =
            |entry| Some((NamedNode::entry(entry).name.to_owned(), self.value(NamedNode::entry(entry))?.to_owned()));
        entries.iter().filter_map(value).collect()
    }

    /// When the runs of a schedule are stopped, in our form or with `type`.
    pub(crate) fn stop_schedule(&mut self, item: NamedNode<'_>, spec: Option<&ScheduleSpec>) -> Option<StopSchedule> {
        if item.node.get("type").is_some() {
            return self.apsis_stop(item, spec);
        }
        (keys::STOP_SCHEDULE_MAP.read)(self, item)
    }
}
