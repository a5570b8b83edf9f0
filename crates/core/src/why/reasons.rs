//! Reasons, actors and conditions as text: the part of a sentence after "because" or "by".

use std::collections::BTreeMap;

use cronhold_schedule::text::shortened;

use crate::args::Args;
use crate::decide::run_bindings;
use crate::job::{Condition, Probe, Requirement};
use crate::record::{Actor, Run};
use crate::run::Reason;
use crate::template::Template;
use crate::world::DecisionContext;

/// The deepest nesting of conditions that is shown.
const DEPTH_MAX: u32 = 4;

/// A reason after "because".
pub(super) fn because(reason: &Reason, world: &DecisionContext) -> String {
    let fixed = match reason {
        Reason::Overlap => "another run of the job was active and its `overlap` is `skip`",
        Reason::QueueFull => "the queue of the job was full",
        Reason::Replaced => "a newer run was due and its `overlap` is `replace`",
        Reason::Paused => "the job or everything was paused",
        Reason::ClaimedBefore => {
            "it was claimed before the clock was set back; its run is no longer kept, and it does not start twice"
        }
        Reason::Missed => "no node was running to start it, and `catch_up` did not select it",
        Reason::Calendar => "its day is not in the calendar",
        Reason::Duplicate => "another run with the same args was waiting or active",
        Reason::Lock if world.has_foreign => "another run, on one of our nodes or on a foreign node, held its lock",
        Reason::Lock => "another run held its lock",
        Reason::NoEligibleNode => "no live node was allowed to run it",
        Reason::JobRemoved => "the job was removed",
        Reason::ScheduleRemoved => "its schedule was removed or disabled",
        Reason::ByOperator(why) if why.is_empty() => "an operator decided so",
        Reason::ByOperator(why) => return format!("an operator decided so: {why}"),
        Reason::RanElsewhere { system, host } => return format!("{system} ran it on {host}"),
        Reason::ExitCode(code) => return format!("its program ended with exit code {code}"),
        Reason::Signal(signal) => return format!("something outside of Cronhold ended its program with {signal}"),
        Reason::Status(code) => return format!("the server responded with status {code}"),
        Reason::UnexpectedResponse(what) => return format!("the server's response was not the expected one: {what}"),
        Reason::NoResponse(what) => return format!("there was no complete response: {what}"),
        Reason::Said(what) => return format!("it reported: {what}"),
        Reason::Plugin(what) => return format!("its plug-in reported an error or broke its protocol: {what}"),
        Reason::Stopped => "it was stopped",
        Reason::Killed => "it was killed",
        Reason::Timeout => "it exceeded its timeout",
        Reason::Condition(what) => return format!("a condition did not hold in time or could not be checked: {what}"),
        Reason::Unbound(what) => return format!("its args or templates could not be bound: {what}"),
        Reason::NotLaunched(what) => return format!("its program could not be started: {what}"),
        Reason::StartUnknown => {
            "its node was lost while it was being started, and it is unknown whether its program ran"
        }
        Reason::NodeLost => "its node sent no more heartbeats while it ran, and its result was unknown",
        Reason::KeeperLost => "the keeper of its program was lost, and its result is unknown",
        Reason::LockLost => "its lock could not be renewed, and another run could have taken it",
    };
    fixed.to_owned()
}

/// An actor after "by".
pub(super) fn by(actor: &Actor) -> String {
    let fixed = match actor {
        Actor::Schedule => "its schedule",
        Actor::CatchUp => "catch-up",
        Actor::Retry => "its retry policy",
        Actor::Queue => "the queue",
        Actor::Limit => "its time limit",
        Actor::Action => "an action of another run",
        Actor::Channel => "a message",
        Actor::Program => "its program",
        Actor::Recovery => "its node after a restart",
        Actor::Watchdog => "the watchdog",
        Actor::Retention => "retention",
        Actor::JobFiles => "the job files",
        Actor::ForeignEvent => "an event of a foreign system",
        Actor::ForeignDefinition => "the definition that a foreign system shares",
        Actor::Operator(name) if name.is_empty() => "an unnamed operator",
        Actor::Operator(name) => name,
    };
    fixed.to_owned()
}

/// What a condition of a run requires.
pub(super) fn condition(condition: &Condition, run: &Run, world: &DecisionContext) -> String {
    required(&condition.requires, run, world, DEPTH_MAX)
}

/// The args that a run of another job needs, after a comma: those that the condition names, and those of the waiting
/// run, of which only the other job's params count.
fn needed_args(named: &BTreeMap<String, Template>, run: &Run, world: &DecisionContext) -> String {
    let bindings = run_bindings(run, world);
    let bound = |template: &Template| template.bind(&bindings).unwrap_or_else(|_| template.text().to_owned());
    let named: Args = named.iter().map(|(name, template)| (name.clone(), bound(template))).collect();
    let own = run.args.iter().filter(|(name, _)| !named.iter().any(|(given, _)| given == *name));
    let own: Args = own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    match (named.is_empty(), own.is_empty()) {
        (true, true) => String::new(),
        (false, true) => format!(", with {named}"),
        (true, false) => format!(", with {own} as far as it has these params"),
        (false, false) => format!(", with {named}, and {own} as far as it has these params"),
    }
}

fn required(requirement: &Requirement, run: &Run, world: &DecisionContext, depth: u32) -> String {
    let nested = |conditions: &[Condition], word: &str| match depth.checked_sub(1) {
        Some(depth) => {
            let parts: Vec<String> = conditions.iter().map(|one| required(&one.requires, run, world, depth)).collect();
            format!("({})", parts.join(word))
        }
        None => "…".to_owned(),
    };
    match requirement {
        Requirement::After { job, args, states, .. } => {
            let states: Vec<&str> = states.iter().map(|state| state.name()).collect();
            let args = needed_args(args, run, world);
            format!("a run of `{}` that ended in {}{args}", shortened(job.text()), states.join(" or "))
        }
        Requirement::MaxRunning { count, pool: Some(pool), .. } => {
            format!("fewer than {count} runs in the pool `{pool}`")
        }
        Requirement::MaxRunning { count, same_args: true, .. } => format!("fewer than {count} runs with the same args"),
        Requirement::MaxRunning { count, .. } => format!("fewer than {count} runs of the job"),
        Requirement::SkipDuplicate { .. } => "no other run with the same args".to_owned(),
        Requirement::Probe(Probe::File(path)) => format!("the file `{}`", shortened(path.text())),
        Requirement::Probe(Probe::Http(request)) => {
            format!("a successful response from `{}`", shortened(request.url.text()))
        }
        Requirement::Probe(Probe::Command(command)) => format!("success of `{}`", shortened(command.text())),
        Requirement::Probe(Probe::Plugin(call)) => format!("the plug-in `{}`", shortened(&call.command)),
        Requirement::Window { from, until, calendar: None, .. } => format!("a time between {from} and {until}"),
        Requirement::Window { from, until, calendar: Some(days), .. } => {
            format!("a time between {from} and {until} on a day of `{days}`")
        }
        Requirement::All(conditions) => nested(conditions, " and "),
        Requirement::Any(conditions) => nested(conditions, " or "),
        Requirement::Not(one) => format!("not {}", nested(std::slice::from_ref(one), "")),
    }
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::{Instant, TimeOfDay};

    use super::*;
    use crate::ids::{JobId, JobUid, RunId, RunNumber};
    use crate::job::{HttpProgram, PluginCall};
    use crate::record::PoolName;
    use crate::run::State;
    use crate::why::tests::scene::world;

    fn wanted(requires: Requirement) -> Condition {
        Condition::new(requires)
    }

    #[test]
    fn conditions_are_described_by_what_they_require() {
        let text = Template::literal;
        let after = |states| Requirement::After {
            job: text("feeds/us"),
            args: Default::default(),
            states,
            within: None,
            must_exist: false,
        };
        let running = |same_args, pool| Requirement::MaxRunning { count: 2, same_args, pool };
        let file = || wanted(Requirement::Probe(Probe::File(text("/ready"))));
        let plugin = PluginCall { command: "free-space".to_owned(), settings: Default::default() };
        let http = Probe::Http(Box::new(HttpProgram::new(text("http://a.example/"))));
        let window =
            Requirement::Window { from: TimeOfDay(8 * 3600), until: TimeOfDay(18 * 3600), zone: None, calendar: None };
        let deep = (0..9).fold(file(), |inner, _| wanted(Requirement::Not(Box::new(inner))));
        for (requires, expected) in [
            (after(vec![State::Success]), "a run of `feeds/us` that ended in success"),
            (after(vec![State::Success, State::Failure]), "a run of `feeds/us` that ended in success or failure"),
            (running(false, None), "fewer than 2 runs of the job"),
            (running(true, None), "fewer than 2 runs with the same args"),
            (running(false, PoolName::parse("db").ok()), "fewer than 2 runs in the pool `db`"),
            (Requirement::SkipDuplicate { states: Vec::new() }, "no other run with the same args"),
            (Requirement::Probe(http), "a successful response from `http://a.example/`"),
            (Requirement::Probe(Probe::Command(text("test -e x"))), "success of `test -e x`"),
            (Requirement::Probe(Probe::Plugin(Box::new(plugin))), "the plug-in `free-space`"),
            (window, "a time between 08:00 and 18:00"),
            (Requirement::All(vec![file(), file()]), "(the file `/ready` and the file `/ready`)"),
            (Requirement::Any(vec![file(), file()]), "(the file `/ready` or the file `/ready`)"),
            (Requirement::Not(Box::new(file())), "not (the file `/ready`)"),
            (deep.requires, "not (not (not (not (not …))))"),
        ] {
            assert_eq!(condition(&wanted(requires), &run(&[]), &world()), expected);
        }
    }

    /// A run for another date does not count, so the date is named.
    #[test]
    fn condition_on_another_job_names_its_args() {
        let requires = |args: &[(&str, &str)]| {
            let template = |text: &str| Template::parse(text).expect("a template");
            let args = args.iter().map(|(name, text)| ((*name).to_owned(), template(text))).collect();
            let job = Template::literal("dump");
            wanted(Requirement::After { job, args, states: vec![State::Success], within: None, must_exist: false })
        };
        let today = run(&[("date", "2026-11-16")]);
        for (named, of, expected) in [
            (&[][..], &run(&[]), ""),
            (&[], &today, ", with date=2026-11-16 as far as it has these params"),
            (&[("date", "{{ date }}")], &today, ", with date=2026-11-16"),
            (
                &[("day", "{{ date }}")],
                &today,
                ", with day=2026-11-16, and date=2026-11-16 as far as it has these params",
            ),
        ] {
            let expected = format!("a run of `dump` that ended in success{expected}");
            assert_eq!(condition(&requires(named), of, &world()), expected);
        }
    }

    fn run(args: &[(&str, &str)]) -> Run {
        let args = args.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (id, job) = (RunId::from_random(Instant::EPOCH, [0; 10]), JobId::parse("j").expect("a name"));
        Run { args, ..Run::blank(id, RunNumber(1), job, JobUid::from_bits(1), Instant::EPOCH) }
    }

    /// Every reason is the end of a sentence, so it starts in lower case and has no full stop.
    #[test]
    fn reasons_fit_into_a_sentence() {
        let world = world();
        for text in [
            "overlap",
            "queue full",
            "replaced",
            "paused",
            "missed",
            "calendar",
            "duplicate",
            "lock",
            "no eligible node",
            "job removed",
            "by operator",
            "exit code 3",
            "signal SIGSEGV",
            "status 503",
            "stopped",
            "killed",
            "timeout",
            "start unknown",
            "node lost",
            "keeper lost",
            "lock lost",
        ] {
            let because = because(&Reason::parse(text).expect(text), &world);
            let is_clause = because.starts_with(char::is_lowercase) && !because.ends_with('.') && because.len() > 12;
            assert!(is_clause, "{text}: {because}");
        }
        assert_eq!(because(&Reason::ByOperator("wrong day".to_owned()), &world), "an operator decided so: wrong day");
        let shared = DecisionContext { has_foreign: true, ..world };
        assert_eq!(
            because(&Reason::Lock, &shared),
            "another run, on one of our nodes or on a foreign node, held its lock"
        );
        assert_eq!(by(&Actor::Operator("anna".to_owned())), "anna");
        assert_eq!(by(&Actor::Operator(String::new())), "an unnamed operator");
        let ran = Reason::RanElsewhere { system: "Elsewhere".to_owned(), host: "web-1".to_owned() };
        assert_eq!(because(&ran, &shared), "Elsewhere ran it on web-1");
    }
}
