//! `cronhold run`: a run of a job that someone wants, now or later.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;
use cronhold_api::RunBody;
use cronhold_schedule::text::shortened;

use crate::remote::Remote;
use crate::render::{self, Shown};
use crate::when::{self, Direction};
use crate::{Exit, Failure, follow};

/// Run a job now, or at a time
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold run backup
  cronhold run reports/prices region=eu date=2026-11-16 --wait
  cronhold run backup --at 18:30
  cronhold run import --key order-4711

With --wait, what the run writes goes to standard output and how it ended to standard error; the
exit code is 0 when it succeeded and 1 otherwise. Ctrl-C ends the waiting, not the run.")]
pub(crate) struct Run {
    /// The job
    #[arg(value_name = "JOB")]
    job: String,
    /// Args of the run, one by one
    #[arg(value_name = "NAME=VALUE")]
    args: Vec<String>,
    /// When it is to run: a time such as 18:30 or 2026-11-16T18:30:00Z, or a span from now such as 2h
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Wait until it is over, and show what it writes
    #[arg(long)]
    wait: bool,
    /// Whatever asks twice with one key gets one run: the one that was made the first time
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

impl Run {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        let wall = self.shown.wall(remote.session)?;
        let at = self.at.as_deref().map(|at| when::read(at, Direction::Ahead, &wall)).transpose();
        let at = at.map_err(|error| Failure::flag("--at", error))?;
        let body = RunBody { args: args(&self.args)?, at };
        let made = remote.client.make_run(&self.job, &body, self.key.as_deref());
        let made = made.map_err(|error| remote.failure_about(&self.job, error))?;
        let run = follow::named(remote, &made.id)?;
        if self.wait {
            return follow::to_end(remote, &run, &self.shown, out, err);
        }
        render::run::answer(&run, &self.shown, &wall, remote.session.colours, out)?;
        Ok(follow::acceptance(&run))
    }
}

/// The args of a run as they are typed, each with its name.
fn args(typed: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut args = BTreeMap::new();
    for text in typed {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let message = format!("`{}` is not an arg of a run", shortened(text));
            return Err(Failure::usage(message, "write its name and value, such as region=eu"));
        };
        if args.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::usage(format!("the arg `{name}` is given twice"), "give it once"));
        }
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(typed: &[&str]) -> Result<String, String> {
        let typed: Vec<String> = typed.iter().map(|text| (*text).to_owned()).collect();
        match args(&typed) {
            Ok(args) => Ok(format!("{args:?}")),
            Err(Failure::Usage { message, .. }) => Err(message),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn args_have_names() {
        for (typed, expected) in [
            (&["b=2", "a=1"][..], Ok(r#"{"a": "1", "b": "2"}"#)),
            (&["q=a=b", "none="], Ok(r#"{"none": "", "q": "a=b"}"#)),
            (&["a"], Err("`a` is not an arg of a run")),
            (&["=1"], Err("`=1` is not an arg of a run")),
            (&["a=1", "a=2"], Err("the arg `a` is given twice")),
        ] {
            assert_eq!(read(typed), expected.map(str::to_owned).map_err(str::to_owned), "{typed:?}");
        }
    }
}
