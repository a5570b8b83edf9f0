//! Resolves what a run takes from its job when it is created: everything that may depend on args and time is bound
//! once, here.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use cronhold_schedule::text::shortened;
use cronhold_schedule::{FoldPolicy, GapPolicy, Instant, Span, TextError, WallTime};

use super::bind_request::resolve_request;
use super::bind_task;
use crate::job::{EnvValue, Job, OnLost, PluginCall, Program, RemoteProgram, StderrPolicy, StdinSource, StopSchedule};
use crate::plugin::{PluginKind, start_message};
use crate::policy;
use crate::record::{
    CommandLine, EnvText, ExecutionPolicy, JobRecord, ResolvedHttp, ResolvedProcess, ResolvedProgram, ResolvedRemote,
    Run, ScheduleId, StdinText,
};
use crate::remote::run_bindings;
use crate::template::{Bindings, Template};
use crate::world::DecisionContext;

/// The largest size of the arguments and the environment that a job gives to a process, in bytes. Linux allows about
/// twice that, but they are stored with every run.
pub(super) const PROCESS_TEXT_MAX: usize = 1024 * 1024;

/// Resolves the program of a run.
pub(super) fn work(job: &JobRecord, run: &Run, world: &DecisionContext) -> Result<ResolvedProgram, TextError> {
    let names = LazyCell::new(|| bindings(run, world));
    let bind = |template: &Template| match template.is_literal() {
        true => Ok(template.text().to_owned()),
        false => template.bind(&names),
    };
    let command = match &job.job.program {
        Program::Shell(text) => CommandLine::Shell { text: bind(text)?, shell: job.job.shell.clone() },
        Program::Exec(words) => CommandLine::Exec(words.iter().map(bind).collect::<Result<_, _>>()?),
        Program::Noop { duration } => return Ok(ResolvedProgram::Noop(*duration)),
        Program::Http(http) => {
            let request = resolve_request(http, &bind)?;
            request.check()?;
            let is_repeatable = job.job.on_lost == OnLost::Retry;
            return Ok(ResolvedProgram::Http(Box::new(ResolvedHttp { request, is_repeatable })));
        }
        Program::Remote(program) => return remote(program, job.job.on_lost, &bind),
        Program::Task(task) => return bind_task::resolve(task, &bind).map(Box::new).map(ResolvedProgram::Task),
        Program::Plugin(call) => {
            let process = plugin(call, PluginKind::Program, &job.job, run, &bind)?;
            return Ok(ResolvedProgram::Process(Box::new(process)));
        }
    };
    let stdin = match job.job.stdin.as_deref() {
        Some(StdinSource::Text(text)) => Some(StdinText::Text(bind(text)?)),
        Some(StdinSource::File(path)) => Some(StdinText::File(bind(path)?)),
        None => None,
    };
    let separate_stderr = job.job.stderr == StderrPolicy::Separate;
    let process = ResolvedProcess { stdin, separate_stderr, ..process(&job.job, command, &bind)? };
    fits(&process)?;
    Ok(ResolvedProgram::Process(Box::new(process)))
}

/// Resolves a plug-in with its message. It has no other standard input.
pub(super) fn plugin(
    call: &PluginCall,
    kind: PluginKind,
    job: &Job,
    run: &Run,
    bind: &dyn Fn(&Template) -> Result<String, TextError>,
) -> Result<ResolvedProcess, TextError> {
    let settings = call.settings.iter().map(|(name, value)| Ok((name.clone(), bind(value)?)));
    let settings = settings.collect::<Result<BTreeMap<_, _>, TextError>>()?;
    let process = ResolvedProcess {
        stdin: Some(StdinText::Text(start_message(kind, run, &settings))),
        plugin: Some(kind),
        separate_stderr: job.stderr == StderrPolicy::Separate,
        ..process(job, CommandLine::Exec(vec![call.command.clone()]), bind)?
    };
    fits(&process).map(|()| process)
}

/// Resolves a remote task. The requests about the task are resolved when it has started.
fn remote(
    program: &RemoteProgram,
    on_lost: OnLost,
    bind: &dyn Fn(&Template) -> Result<String, TextError>,
) -> Result<ResolvedProgram, TextError> {
    let RemoteProgram { start, poll, every, success, failure, cancel } = program;
    let keep = |template: &Template| Ok(escaped(template));
    let start = resolve_request(start, bind)?;
    start.check()?;
    Ok(ResolvedProgram::Remote(Box::new(ResolvedRemote {
        start,
        poll: resolve_request(poll, &keep)?,
        cancel: cancel.as_ref().map(|cancel| resolve_request(cancel, &keep)).transpose()?,
        every: *every,
        success: success.text().to_owned(),
        failure: failure.text().to_owned(),
        is_repeatable: on_lost == OnLost::Retry,
    })))
}

/// The text of a template, which parses back into the same template.
fn escaped(template: &Template) -> String {
    let text = template.text();
    let is_live = Template::parse(text).map_or(true, |parsed| !parsed.is_literal());
    if template.is_literal() && is_live { format!("{{% raw %}}{text}{{% endraw %}}") } else { text.to_owned() }
}

/// Resolves a process with all settings of the job but those of its standard streams.
pub(super) fn process(
    job: &Job,
    command: CommandLine,
    bind: &dyn Fn(&Template) -> Result<String, TextError>,
) -> Result<ResolvedProcess, TextError> {
    let value = |value: &EnvValue| match value {
        EnvValue::Text(template) => bind(template).map(EnvText::Text),
        EnvValue::File(path) => Ok(EnvText::File(path.clone())),
        EnvValue::Env(name) => Ok(EnvText::Env(name.clone())),
    };
    let env = job.env.iter().map(|(name, from)| Ok((name.clone(), value(from)?))).collect::<Result<_, TextError>>()?;
    let process = ResolvedProcess {
        command,
        env,
        cwd: job.cwd.as_ref().map(bind).transpose()?,
        user: job.user.clone(),
        umask: job.umask,
        stdin: None,
        plugin: None,
        separate_stderr: false,
        nice: job.nice,
        ionice: job.ionice,
        success_codes: job.success_codes.clone(),
        limits: job.limits.as_deref().copied().unwrap_or_default(),
    };
    fits(&process).map(|()| process)
}

/// Checks the arguments and the environment of a process: their size, and that they contain no zero byte.
fn fits(process: &ResolvedProcess) -> Result<(), TextError> {
    let words: Vec<&str> = match &process.command {
        CommandLine::Shell { text, shell } => {
            [Some(text), shell.as_ref()].into_iter().flatten().map(|word| &word[..]).collect()
        }
        CommandLine::Exec(words) => words.iter().map(|word| &word[..]).collect(),
    };
    let env = process.env.iter().flat_map(|(name, value)| match value {
        EnvText::Text(text) | EnvText::File(text) | EnvText::Env(text) => [name.as_str(), text.as_str()],
    });
    let (stdin, path) = match &process.stdin {
        Some(StdinText::Text(text)) => (text.len(), None),
        Some(StdinText::File(path)) => (0, Some(path.as_str())),
        None => (0, None),
    };
    let mut bytes = stdin;
    for text in words.into_iter().chain(env).chain(process.cwd.as_deref()).chain(path) {
        if text.contains('\0') {
            let message = format!("`{}` contains a zero byte", shortened(text).replace('\0', "\\0"));
            return Err(TextError::new(0..text.len(), message).hint("remove it; a program cannot receive one"));
        }
        bytes += text.len() + 1;
    }
    if bytes > PROCESS_TEXT_MAX {
        let message = format!(
            "command, environment and standard input have {bytes} bytes; at most {PROCESS_TEXT_MAX} are allowed"
        );
        return Err(TextError::new(0..0, message).hint("pass large values in a file"));
    }
    Ok(())
}

/// Resolves the timeout, the stop time and the stop policy of a run.
pub(super) fn terms(
    job: &JobRecord,
    schedule: Option<&ScheduleId>,
    nominal: Instant,
    world: &DecisionContext,
) -> ExecutionPolicy {
    let stop = schedule.and_then(|id| job.schedule(id)).and_then(|schedule| {
        schedule.stop.as_ref().and_then(|stop| match stop {
            StopSchedule::After(span) => Some(nominal.plus(*span)),
            StopSchedule::At(time) => {
                let zone = job.compile(schedule, world).ok()?.zone().clone();
                let local = zone.local(nominal.secs());
                let today = local.day();
                let candidates = [today, today.plus(1), today.plus(2)].into_iter().flat_map(|day| {
                    let at = WallTime(day.midnight().0 + i64::from(time.0));
                    zone.instants(at, GapPolicy::Next, FoldPolicy::First).collect::<Vec<_>>()
                });
                candidates.map(Instant::from_secs).find(|at| *at > nominal)
            }
        })
    });
    ExecutionPolicy {
        timeout: job.job.timeout,
        stop_at: stop,
        signal: job.job.stop.signal,
        grace: job.job.stop.grace,
        lease: lease(&job.job, world),
    }
}

/// How long a run's program may go on without a heartbeat of its node. There is a limit only if other nodes share the
/// store.
pub(super) fn lease(job: &Job, world: &DecisionContext) -> Option<Span> {
    if world.is_shared { policy::lease::lease(job, world.lease) } else { None }
}

/// The values that templates of a run can refer to.
pub(crate) fn bindings(run: &Run, world: &DecisionContext) -> Bindings {
    run_bindings(run, world.bindings())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::args::Args;
    use crate::decide::testing::{DecisionBench, START, job_id};
    use crate::ids::{JobUid, RunId, RunNumber};
    use crate::job::{Feature, IoPriority, Param, ResourceLimits, job_with};
    use crate::name_map::NameMap;
    use crate::record::JobSource;

    fn template(text: &str) -> Template {
        Template::parse(text).expect(text)
    }

    /// The work of a run with `day` as its arg.
    fn bound(job: Job, day: &str) -> Result<ResolvedProgram, TextError> {
        let uid = JobUid::from_bits(1);
        let params = NameMap::from([("day".to_owned(), Param::default())]);
        let given = BTreeMap::from([("day".to_owned(), day.to_owned())]);
        let args = Args::bind(&params, &given, &BTreeMap::new()).expect("an arg");
        let id = RunId::from_key(START, "a run");
        let run = Run { args, attempt: 2, ..Run::blank(id, RunNumber(1), job_id("j"), uid, START) };
        let record = JobRecord::new(job_id("j"), uid, Arc::new(job), "UTC".into(), JobSource::Api);
        work(&record, &run, &DecisionBench::new().world)
    }

    fn process(job: Job, day: &str) -> ResolvedProcess {
        match bound(job, day) {
            Ok(ResolvedProgram::Process(process)) => *process,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn process_takes_all_settings_of_the_job() {
        let mut job = Job::new(Program::Shell(template("load {{ day }}")));
        let limits = ResourceLimits { memory: Some(1 << 30), ..ResourceLimits::default() };
        job.shell = Some("/bin/zsh".to_owned());
        job.env = NameMap::from([
            ("DAY".to_owned(), EnvValue::Text(template("{{ day }}, attempt {{ attempt }}"))),
            ("KEY".to_owned(), EnvValue::File("/etc/{{ day }}".to_owned())),
            ("PROXY".to_owned(), EnvValue::Env("HTTPS_PROXY".to_owned())),
        ]);
        job.cwd = Some(template("/srv/{{ day }}"));
        (job.user, job.umask, job.success_codes) = (Some("prices".to_owned()), Some(0o027), vec![0, 3]);
        job.stdin = Some(Box::new(StdinSource::Text(template("{{ day }}\n"))));
        (job.nice, job.ionice, job.stderr) = (Some(19), Some(IoPriority::Idle), StderrPolicy::Separate);
        job.limits = Some(Box::new(limits));
        let expected = ResolvedProcess {
            command: CommandLine::Shell { text: "load monday".to_owned(), shell: Some("/bin/zsh".to_owned()) },
            env: BTreeMap::from([
                ("DAY".to_owned(), EnvText::Text("monday, attempt 2".to_owned())),
                // Secrets are stored as references, and a reference is not a template.
                ("KEY".to_owned(), EnvText::File("/etc/{{ day }}".to_owned())),
                ("PROXY".to_owned(), EnvText::Env("HTTPS_PROXY".to_owned())),
            ]),
            cwd: Some("/srv/monday".to_owned()),
            user: Some("prices".to_owned()),
            umask: Some(0o027),
            stdin: Some(StdinText::Text("monday\n".to_owned())),
            plugin: None,
            separate_stderr: true,
            nice: Some(19),
            ionice: Some(IoPriority::Idle),
            success_codes: vec![0, 3],
            limits,
        };
        assert_eq!(process(job, "monday"), expected);
    }

    #[test]
    fn each_word_of_a_command_is_bound_on_its_own() {
        let job = Job::new(Program::Exec(["load", "{{ day }}", "a b"].map(template).to_vec()));
        let words = ["load", "two words", "a b"].map(str::to_owned).to_vec();
        assert_eq!(process(job, "two words"), ResolvedProcess::plain(CommandLine::Exec(words)));
    }

    #[test]
    fn arguments_that_exec_cannot_take_are_rejected() {
        let long = "x".repeat(60 * 1024);
        let wrong = |job: Job, day: &str| bound(job, day).expect_err("no process").to_string();
        let exec = |count: usize| Job::new(Program::Exec(vec![template(&long); count]));
        assert_eq!(process(exec(17), "monday").success_codes, [0]);
        assert_eq!(
            wrong(exec(18), "monday"),
            "command, environment and standard input have 1105938 bytes; at most 1048576 are allowed (pass large values in a file)"
        );
        let mut job = exec(10);
        job.env = (0..8).map(|number| (format!("V{number}"), EnvValue::Text(template(&long)))).collect();
        assert!(wrong(job, "monday").starts_with("command, environment and standard input have 1105"));
        for place in 0..3 {
            let mut job = Job::new(Program::Shell(template(["true", "{{ day }}"][usize::from(place == 0)])));
            job.cwd = (place == 1).then(|| template("{{ day }}"));
            job.env.extend((place == 2).then(|| ("V".to_owned(), EnvValue::Text(template("{{ day }}")))));
            assert_eq!(wrong(job, "a\0b"), "`a\\0b` contains a zero byte (remove it; a program cannot receive one)");
        }
        let mut job = exec(1);
        job.cwd = Some(template("{{ night }}"));
        assert!(wrong(job, "monday").contains("night"));
    }

    /// A program kind that the reader of job files accepts can be started; any other fails with the name of its kind.
    #[test]
    fn a_program_has_work_exactly_if_its_feature_is_supported() {
        for feature in Feature::ALL {
            let job = job_with(feature);
            let Some(of_program) = Feature::of_program(&job.program) else { continue };
            let work = bound(job, "monday").expect("nothing to bind");
            assert_eq!(
                of_program.is_supported(),
                !matches!(work, ResolvedProgram::Unsupported(_)),
                "{feature:?}: {work:?}"
            );
        }
        for program in [
            Program::Shell(template("true")),
            Program::Exec(vec![template("true")]),
            Program::Noop { duration: Span::ZERO },
        ] {
            assert_eq!(Feature::of_program(&program), None);
            let work = bound(Job::new(program), "monday").expect("nothing to bind");
            assert!(!matches!(work, ResolvedProgram::Unsupported(_)), "{work:?}");
        }
    }

    #[test]
    fn noop_and_unsupported_programs_have_no_process() {
        let mut job = Job::new(Program::Noop { duration: Span::from_secs(5) });
        job.cwd = Some(template("{{ night }}"));
        assert_eq!(bound(job, "monday"), Ok(ResolvedProgram::Noop(Span::from_secs(5))));
    }
}
