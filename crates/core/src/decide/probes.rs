//! Checks of the outside: conditions `file`, `http`, `command` and `plugin`. A decision that needs an answer marks the check as asked, in
//! the unit in which the run goes on waiting; the effect follows from the stored run. The answer comes back as a command
//! of its own, which stores it and checks the run again in the same unit.

use super::bind;
use super::bind_request::resolve_request;
use super::draft::UnitDraft;
use super::wake;
use crate::command::ProbeResult;
use crate::decision::{CommandReply, DecidedUnit};
use crate::ids::RunId;
use crate::job::Probe;
use crate::plugin::PluginKind;
use crate::record::{CommandLine, JobRecord, ProbeAnswer, ProbeLease, ProbeState, ResolvedProbe, ResolvedProcess, Run};
use crate::run::State;
use crate::template::Template;
use crate::view::{DecisionView, Halt};
use crate::world::DecisionContext;

/// Resolves a check for a run.
pub(super) fn resolve(
    probe: &Probe,
    run: &Run,
    job: &JobRecord,
    world: &DecisionContext,
) -> Result<ResolvedProbe, String> {
    let names = std::cell::LazyCell::new(|| bind::bindings(run, world));
    let bind = |template: &Template| match template.is_literal() {
        true => Ok(template.text().to_owned()),
        false => template.bind(&names),
    };
    match probe {
        Probe::File(path) => {
            let path = bind(path).map_err(|error| format!("`file`: {error}"))?;
            match path.contains('\0') {
                true => Err("`file`: the path contains a zero byte".to_owned()),
                false => Ok(ResolvedProbe::File(path)),
            }
        }
        Probe::Command(line) => {
            let explain = |error| format!("`command`: {error}");
            let command = CommandLine::Shell { text: bind(line).map_err(explain)?, shell: job.job.shell.clone() };
            let mut process = bind::process(&job.job, command, &bind).map_err(explain)?;
            process.success_codes = vec![0];
            Ok(ResolvedProbe::Command(Box::new(process)))
        }
        Probe::Plugin(call) => {
            let process = bind::plugin(call, PluginKind::Condition, &job.job, run, &bind);
            // What it writes is not kept.
            let process =
                process.map(|process| ResolvedProcess { separate_stderr: false, success_codes: vec![0], ..process });
            process
                .map(|process| ResolvedProbe::Command(Box::new(process)))
                .map_err(|error| format!("`plugin`: {error}"))
        }
        Probe::Http(http) => {
            let request = resolve_request(http, &bind).and_then(|request| request.check().map(|()| request));
            request.map(|request| ResolvedProbe::Http(Box::new(request))).map_err(|error| format!("`http`: {error}"))
        }
    }
}

/// Marks checks as asked by this node. Checks that the run has not asked for long make room if there are too many.
pub(super) fn ask(draft: &UnitDraft<'_>, run: &mut Run, wanted: Vec<ResolvedProbe>) {
    for probe in wanted {
        let attempt = run.probes.iter().map(|known| known.attempt).max().unwrap_or(0).saturating_add(1);
        let lease = ProbeLease { owner: draft.view.stamp.owner, until: ProbeState::lease_end(&probe, draft.at()) };
        let mut state = match run.probes.iter().position(|known| known.probe == probe) {
            Some(place) => run.probes.remove(place),
            None => ProbeState::new(probe),
        };
        (state.attempt, state.asked) = (attempt, Some(lease));
        if run.probes.len() >= ProbeState::MAX {
            run.probes.remove(0);
        }
        run.probes.push(state);
    }
}

/// Stores the answer to an attempt, and checks the run. An answer to an attempt that has ended changes nothing: the
/// run has ended or started, or another attempt has begun.
pub(super) fn report(
    view: &DecisionView<'_>,
    id: RunId,
    attempt: u32,
    result: &ProbeResult,
) -> Result<DecidedUnit, Halt> {
    let unchanged = || DecidedUnit { answer: CommandReply::Unchanged, ..DecidedUnit::default() };
    let Some(run) = view.run(id).filter(|run| run.state == State::Waiting) else { return Ok(unchanged()) };
    let me = view.stamp.owner;
    let is_asked = |known: &ProbeState| known.attempt == attempt && known.asked.is_some_and(|lease| lease.owner == me);
    let Some(place) = run.probes.iter().position(is_asked) else { return Ok(unchanged()) };
    let mut answered = (*run).clone();
    let known = &mut answered.probes[place];
    let mut message = result.message.clone();
    let end = (0..=ProbeState::MESSAGE_MAX).rev().find(|end| message.is_char_boundary(*end));
    message.truncate(end.unwrap_or(0));
    known.asked = None;
    known.answer = Some(ProbeAnswer { at: view.stamp.at, node: me.node, holds: result.holds, message });
    wake::check_answered(view, answered)
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn run_starts_with_the_answer_that_it_waits_for() {
        play(
            "00:00 put j overlap allow; needs file /ready poll=10s
                job r1
            00:01 run j
                #1 00:01 waiting, asks 1 the file `/ready`, → #1
            00:01 wake #1
                (wake #1 00:01:25), unchanged
            00:01:01 answer #1 1 no does not exist
                #1 00:01 waiting
            00:01:02 wake #1
                (wake #1 00:01:11), unchanged
            00:01:11 wake #1
                #1 00:01 waiting, asks 2 the file `/ready`
            00:01:11 answer #1 1 yes
                unchanged
            00:01:12 answer #1 2 yes
                #1 00:01 starting
            00:01:13 answer #1 2 yes
                unchanged",
        );
    }

    /// The lease of the attempt ends, and the attempt with it.
    #[test]
    fn attempt_without_an_answer_is_repeated() {
        play(
            "00:00 put j overlap allow; needs command check poll=10s
                job r1
            00:01 run j
                #1 00:01 waiting, asks 1 success of `check`, → #1
            00:02:14 wake #1
                (wake #1 00:02:15), unchanged
            00:02:15 wake #1
                #1 00:01 waiting, asks 2 success of `check`
            00:02:16 answer #1 1 yes
                unchanged",
        );
    }

    /// What records can answer is checked first, and every condition again before the start.
    #[test]
    fn outside_is_asked_only_while_everything_else_holds() {
        play(
            "00:00 put up overlap allow
                job r1
            00:00 put j overlap allow; needs file /a poll=10s; needs after up within=1m; needs file /b poll=10s
                job r1
            00:01 run j
                j#1 00:01 waiting, → #1
            00:02 run up
                up#1 00:02 starting, → #1
            00:02 ended up#1 yes
                up#1 00:02 success
            00:02 wake j#1
                j#1 00:01 waiting, asks 1 the file `/a`, asks 2 the file `/b`
            00:02:01 answer j#1 1 yes
                j#1 00:01 waiting
            00:02:02 answer j#1 2 no
                j#1 00:01 waiting
            00:02:12 wake j#1
                j#1 00:01 waiting, asks 3 the file `/a`, asks 4 the file `/b`
            00:02:13 answer j#1 3 yes
                j#1 00:01 waiting
            00:03:05 answer j#1 4 yes
                j#1 00:01 waiting",
        );
    }

    #[test]
    fn not_and_any_wait_for_an_answer() {
        play(
            "00:00 put j overlap allow; needs not file /stop poll=10s
                job r1
            00:00 put k overlap allow; needs any file /a poll=10s | file /b poll=10s
                job r1
            00:01 run j
                j#1 00:01 waiting, asks 1 the file `/stop`, → #1
            00:01:01 answer j#1 1 no
                j#1 00:01 starting
            00:02 run j
                j#2 00:02 waiting, asks 1 the file `/stop`, → #2
            00:02:01 answer j#2 1 yes
                j#2 00:02 waiting
            00:02:11 wake j#2
                j#2 00:02 waiting, asks 2 the file `/stop`
            00:03 run k
                k#1 00:03 waiting, asks 1 the file `/a`, asks 2 the file `/b`, → #1
            00:03:01 answer k#1 1 no
                k#1 00:03 waiting
            00:03:02 answer k#1 2 yes
                k#1 00:03 starting",
        );
    }

    #[test]
    fn start_and_skip_do_not_wait_for_a_check() {
        play(
            "00:00 put j overlap allow; needs file /ready poll=10s
                job r1
            00:01 run j
                #1 00:01 waiting, asks 1 the file `/ready`, → #1
            00:01:01 start #1
                #1 00:01 starting
            00:01:02 answer #1 1 no does not exist
                unchanged
            00:02 run j
                #2 00:02 waiting, asks 1 the file `/ready`, → #2
            00:02:01 skip #2
                #2 00:02 skipped: by operator
            00:02:02 answer #2 1 yes
                unchanged",
        );
    }

    /// A response is the same for all nodes; a file may be on one of them.
    #[test]
    fn request_is_asked_with_its_own_timeout() {
        play(
            "00:00 put j overlap allow; needs http https://a.example/up poll=10s
                job r1
            00:01 run j
                #1 00:01 waiting, asks 1 an expected response from `https://a.example`, → #1
            00:01 wake #1
                (wake #1 00:02:15), unchanged
            00:01:01 answer #1 1 no status 503
                #1 00:01 waiting
            00:01:11 wake #1
                #1 00:01 waiting, asks 2 an expected response from `https://a.example`
            00:01:12 answer #1 2 yes
                #1 00:01 starting",
        );
    }

    #[test]
    fn plugin_is_asked_with_its_settings() {
        play(
            "00:00 put j overlap allow; needs plugin /opt/free-space poll=10s
                job r1
            00:01 run j
                #1 00:01 waiting, asks 1 the plug-in `free-space`, → #1
            00:01:01 answer #1 1 no 3 GB free
                #1 00:01 waiting
            00:01:11 wake #1
                #1 00:01 waiting, asks 2 the plug-in `free-space`
            00:01:12 answer #1 2 yes
                #1 00:01 starting",
        );
    }

    #[test]
    fn timeout_of_a_condition_can_skip_the_run() {
        play(
            "00:00 put j overlap allow; needs file /ready poll=10s timeout=20s
                job r1
            00:00 put k overlap allow; needs file /ready poll=10s timeout=20s skip
                job r1
            00:01 run j
                j#1 00:01 waiting, asks 1 the file `/ready`, → #1
            00:01:01 run k
                k#1 00:01:01 waiting, asks 1 the file `/ready`, → #1
            00:01:20 wake j#1
                j#1 00:01 error: condition: `file: /ready` did not hold within 20s
            00:01:21 wake k#1
                k#1 00:01:01 skipped: condition: `file: /ready` did not hold within 20s",
        );
    }
}
