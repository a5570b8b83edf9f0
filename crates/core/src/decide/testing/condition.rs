//! Conditions in scripts: `after JOB [k=v …] [in STATE,…] [within=1h] [must_exist]`, `max_running N [same_args]
//! [pool=P]`, `skip_duplicate`, `window FROM UNTIL [ZONE] [calendar=C]`, `file PATH`, `http URL`, `command WORD`, `plugin PATH`, `any A | B`,
//! `all A | B`, `not A`; each may end with `timeout=5m`, `skip` and `poll=10s`.

use std::collections::BTreeMap;

use cronhold_schedule::{CalendarExpr, Span, TimeOfDay};

use crate::job::{Condition, HttpProgram, PluginCall, Probe, Requirement, TimeoutOutcome};
use crate::record::PoolName;
use crate::run::State;
use crate::template::Template;

/// Parses a condition.
pub(super) fn condition(text: &str) -> Condition {
    let (kind, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let group = || rest.split(" | ").map(condition).collect();
    let plain = Condition::new;
    match kind {
        "any" => return plain(Requirement::Any(group())),
        "all" => return plain(Requirement::All(group())),
        "not" => return plain(Requirement::Not(Box::new(condition(rest)))),
        _ => {}
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let span = |name: &str| value(name).map(|text| Span::parse(text).expect("a span"));
    let requires = match kind {
        "after" => after(&words, span("within")),
        "max_running" => Requirement::MaxRunning {
            count: words[0].parse().expect("a number"),
            same_args: words.contains(&"same_args"),
            pool: value("pool").map(|pool| PoolName::parse(pool).expect("a name")),
        },
        "skip_duplicate" => Requirement::SkipDuplicate { states: Requirement::DUPLICATE_STATES_DEFAULT.to_vec() },
        "window" => Requirement::Window {
            from: TimeOfDay::parse(words[0]).expect("a time"),
            until: TimeOfDay::parse(words[1]).expect("a time"),
            zone: words.get(2).filter(|word| !word.contains('=')).map(|zone| (*zone).to_owned()),
            calendar: value("calendar").map(|days| CalendarExpr::parse(days).expect("a calendar")),
        },
        "file" => Requirement::Probe(Probe::File(template(words[0]))),
        "http" => Requirement::Probe(Probe::Http(Box::new(HttpProgram::new(template(words[0]))))),
        "command" => Requirement::Probe(Probe::Command(template(words[0]))),
        "plugin" => {
            let call = PluginCall { command: words[0].to_owned(), settings: BTreeMap::new() };
            Requirement::Probe(Probe::Plugin(Box::new(call)))
        }
        _ => panic!("`{text}` is not a condition"),
    };
    let on_timeout = if words.contains(&"skip") { TimeoutOutcome::Skip } else { TimeoutOutcome::Error };
    let poll = span("poll").unwrap_or(Condition::POLL_DEFAULT);
    Condition { timeout: span("timeout"), poll, requires, on_timeout }
}

fn after(words: &[&str], within: Option<Span>) -> Requirement {
    const OWN: [&str; 3] = ["within", "timeout", "poll"];
    let pairs = words.iter().filter_map(|word| word.split_once('=')).filter(|(name, _)| !OWN.contains(name));
    let args: BTreeMap<String, Template> = pairs.map(|(name, value)| (name.to_owned(), template(value))).collect();
    let states = words.iter().position(|word| *word == "in").map_or("success", |place| words[place + 1]);
    let states = states.split(',').map(|state| State::parse(state).expect("a state")).collect();
    Requirement::After { job: template(words[0]), args, states, within, must_exist: words.contains(&"must_exist") }
}

/// A template without spaces, so that it is one word: `{{x}}`.
fn template(text: &str) -> Template {
    Template::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
