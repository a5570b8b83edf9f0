//! `cronhold up`: the options of the daemon. The binary starts it, because only the binary has all parts of it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use cronhold_schedule::text::shortened;

use crate::{Failure, LogArgs};

/// Most labels of a node. Every node loads the labels of all others.
const LABELS_MAX: usize = 32;
/// Longest label in bytes.
const LABEL_MAX: usize = 64;

/// Start the daemon: run jobs when they are due
#[derive(Debug, Args)]
#[command(after_help = "\
The daemon runs until it receives SIGTERM or SIGINT (Ctrl-C); a second one ends it at once. Either
way nothing is lost: programs continue, and the next start takes over unfinished runs. SIGHUP
reloads the job files.

This version runs programs of the kinds shell, exec and noop; a run with any other ends in error.

Examples:
  cronhold up --jobs jobs/
  cronhold up --jobs jobs/ --data /var/lib/cronhold --timezone Europe/Berlin
  cronhold up --jobs ops=/etc/ops/jobs --jobs web=/srv/web/jobs --listen 127.0.0.1:8080
  cronhold up --jobs jobs/ --label gpu --label rack-7
  cronhold up --store sqlite:/var/lib/cronhold/cronhold.db --quiet
  cronhold up --jobs jobs/ --log-format json --log info,cronhold_server=debug
  cronhold up --store redis://127.0.0.1 --jobs jobs/

Put a URL with a password into CRONHOLD_STORE, because other users of the machine can read the
command line.")]
pub struct Up {
    /// Data directory of the daemon; created if it does not exist [default: $CRONHOLD_DATA,
    /// $XDG_DATA_HOME/cronhold, or ~/.local/share/cronhold]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Directory of job files. The daemon watches it: jobs are added, changed and removed with their files. With a prefix,
    /// the names of all its jobs begin with `PREFIX/`. Can be repeated; without it, the daemon runs the stored jobs
    #[arg(long, value_name = "[PREFIX=]DIR")]
    pub jobs: Vec<String>,
    /// Address of the API and the page
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:2766")]
    pub listen: String,
    /// Allow --listen with an address that other machines can reach, although HTTP is not encrypted
    #[arg(long)]
    pub insecure_listen: bool,
    /// Additional host name under which browsers reach the page, such as that of a proxy; can be repeated
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Do not listen: no API, no page, and no commands that need the daemon
    #[arg(long, conflicts_with_all = ["listen", "insecure_listen", "host", "link"])]
    pub no_listen: bool,
    /// Log a link that opens the page once; the first start always does
    #[arg(long)]
    pub link: bool,
    /// Store of jobs and runs, such as redis://127.0.0.1, which several nodes can share [default: $CRONHOLD_STORE, or
    /// sqlite:DIR/cronhold.db in the data directory]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Accept a store that is configured to discard data
    #[arg(long)]
    pub accept_loss: bool,
    /// Name of this node [default: the host name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Label of this node, which jobs can require with `nodes`; can be repeated
    #[arg(long, value_name = "LABEL")]
    pub label: Vec<String>,
    /// Start even if another live node has the same name
    #[arg(long)]
    pub force: bool,
    /// Time zone of schedules that do not name one
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
            let message = format!("--label: a node can have at most {LABELS_MAX} labels, not {}", labels.len());
            return Err(Failure::usage(message, "remove labels that no job requires"));
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
