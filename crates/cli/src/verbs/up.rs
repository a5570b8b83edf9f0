//! `cronhold up`: what the daemon is told. The binary starts it, because only the binary puts everything together.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use cronhold_schedule::text::shortened;

use crate::{Failure, LogArgs};

/// Labels that a node can have. Every node reads those of all others.
const LABELS_MAX: usize = 32;
/// Longest label in bytes.
const LABEL_MAX: usize = 64;

/// Start the daemon: run jobs when they are due
#[derive(Debug, Args)]
#[command(after_help = "\
The daemon runs until it gets SIGTERM or SIGINT (Ctrl-C); a second one ends it at once. Either way
nothing is lost: programs go on, and at its next start it takes up what was not over.

This version runs programs of the kinds shell, exec and noop; a run with any other ends in error.

Examples:
  cronhold up --jobs jobs/
  cronhold up --jobs jobs/ --data /var/lib/cronhold --timezone Europe/Berlin
  cronhold up --jobs ops=/etc/ops/jobs --jobs web=/srv/web/jobs --listen 127.0.0.1:8080
  cronhold up --jobs jobs/ --label gpu --label rack-7
  cronhold up --store sqlite:/var/lib/cronhold/cronhold.db --quiet
  cronhold up --jobs jobs/ --log-format json --log info,cronhold_server=debug
  cronhold up --store redis://127.0.0.1 --jobs jobs/

A URL with a password is better given in CRONHOLD_STORE than on the command line, which others on
the machine can read.")]
pub struct Up {
    /// Directory of the daemon's own files; made if it is not there [default: $CRONHOLD_DATA,
    /// $XDG_DATA_HOME/cronhold, or ~/.local/share/cronhold]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Directory of job files, which is watched: a job follows its file, and goes with it. With a prefix, all that is in
    /// it has `PREFIX/` before its name. May be given several times; without it, the daemon runs the jobs that are stored
    #[arg(long, value_name = "[PREFIX=]DIR")]
    pub jobs: Vec<String>,
    /// Address for the API and the page
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:2766")]
    pub listen: String,
    /// Allow an address of --listen that other machines can reach; what is said there is not encrypted
    #[arg(long)]
    pub insecure_listen: bool,
    /// Name by which browsers may ask for the page, such as that of a proxy; may be given several times
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Listen nowhere: no API, no page, and no command that talks to the daemon
    #[arg(long, conflicts_with_all = ["listen", "insecure_listen", "host", "link"])]
    pub no_listen: bool,
    /// Print a link that opens the page once; the first start always does
    #[arg(long)]
    pub link: bool,
    /// Where jobs and runs are kept, such as redis://127.0.0.1, which nodes can share [default: $CRONHOLD_STORE, or
    /// sqlite:DIR/cronhold.db in the directory of --data]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Start also on a store that is set up to throw away what it should keep
    #[arg(long)]
    pub accept_loss: bool,
    /// What people call this node [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Label of this node, which jobs can ask for with `nodes`; may be given several times
    #[arg(long, value_name = "LABEL")]
    pub label: Vec<String>,
    /// Start even when another node that is there has the name of this one
    #[arg(long)]
    pub force: bool,
    /// Zone of schedules that name none
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub timezone: String,
    /// Log only warnings and errors; short for --log warn
    #[arg(short, long, conflicts_with_all = ["verbose", "log"])]
    pub quiet: bool,
    /// Log each state of each run, each change of a job, and each request; short for --log debug
    #[arg(short, long, conflicts_with = "log")]
    pub verbose: bool,
    /// What is logged, and in which form.
    #[command(flatten)]
    pub log: LogArgs,
}

impl Up {
    /// The labels of the node.
    pub fn labels(&self) -> Result<BTreeSet<String>, Failure> {
        let labels: BTreeSet<String> = self.label.iter().cloned().collect();
        if labels.len() > LABELS_MAX {
            let message =
                format!("--label: a node can have at most {LABELS_MAX} labels, and these are {}", labels.len());
            return Err(Failure::usage(message, "leave out those that no job asks for"));
        }
        let wrong = labels.iter().find_map(|label| Some((label, what_is_wrong(label)?)));
        match wrong {
            Some((label, wrong)) => {
                let message = format!("--label: `{}` cannot be a label: {wrong}", shortened(label));
                Err(Failure::usage(message, "write a word, such as `--label gpu`"))
            }
            None => Ok(labels),
        }
    }
}

fn what_is_wrong(label: &str) -> Option<String> {
    if label.is_empty() {
        return Some("it is empty".to_owned());
    }
    if label.len() > LABEL_MAX {
        return Some(format!("it has {} bytes, and {LABEL_MAX} are possible", label.len()));
    }
    let has_gap = label.contains(|sign: char| sign.is_whitespace() || sign.is_control());
    has_gap.then(|| "it has a blank or a control character".to_owned())
}
