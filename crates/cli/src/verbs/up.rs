//! `cronhold up`: options of the daemon. The binary starts it, because only the binary knows all crates.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use cronhold_api::CallerRole;
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

use crate::{CliError, LogArgs};

/// Maximum number of labels of a node. Every node reads the labels of all others.
const LABELS_MAX: usize = 32;
/// Maximum length of a label in bytes.
const LABEL_MAX: usize = 64;

/// Start the daemon, which runs jobs when they are due
#[derive(Debug, Args)]
#[command(after_help = "\
The daemon runs until it receives SIGTERM or SIGINT (Ctrl-C); a second signal ends it immediately.
Nothing is lost either way: programs continue, and the next daemon adopts unfinished runs.

This version runs programs of the kinds shell, exec and noop.

Examples:
  cronhold up --jobs jobs/
  cronhold up --jobs jobs/ --data /var/lib/cronhold --timezone Europe/Berlin
  cronhold up --jobs ops=/etc/ops/jobs --jobs web=/srv/web/jobs --listen 127.0.0.1:8080
  cronhold up --jobs jobs/ --label gpu --label rack-7
  cronhold up --jobs jobs/ --defaults /etc/cronhold/defaults.yaml
  cronhold up --store sqlite:/var/lib/cronhold/cronhold.db --quiet
  cronhold up --jobs jobs/ --log-format json --log info,cronhold_server=debug
  cronhold up --store redis://127.0.0.1 --jobs jobs/

Put a URL with a password into CRONHOLD_STORE: other users of the machine can read the command line.")]
pub struct UpArgs {
    /// Data directory, created if it does not exist [default: $CRONHOLD_DATA, $XDG_DATA_HOME/cronhold, or
    /// ~/.local/share/cronhold]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Directory of job files, which the daemon watches; repeatable. With a prefix, the names of its jobs and calendars
    /// start with `PREFIX/` [default: only stored jobs]
    #[arg(long, value_name = "[PREFIX=]DIR")]
    pub jobs: Vec<String>,
    /// File with actions of all jobs, such as a mail after each failure, in the form of a `defaults.yaml`; read at the
    /// start [default: $CRONHOLD_DEFAULTS]
    #[arg(long, value_name = "FILE")]
    pub defaults: Option<PathBuf>,
    /// Address of the API and the web page
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:2766")]
    pub listen: String,
    /// Allow --listen on an address that other machines can reach, without encryption
    #[arg(long)]
    pub insecure_listen: bool,
    /// Additional host name that requests may use, such as the name of a proxy; repeatable
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Disable the API and the web page; commands cannot reach the daemon then
    #[arg(long, conflicts_with_all = ["listen", "insecure_listen", "host", "link"])]
    pub no_listen: bool,
    /// Print a link that opens the web page once; the first start in a terminal always does
    #[arg(long)]
    pub link: bool,
    /// URL of the store, such as redis://127.0.0.1 to share it with other nodes [default: $CRONHOLD_STORE, or
    /// sqlite:DIR/cronhold.db in the directory of --data]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Start even if the store is configured to evict data
    #[arg(long)]
    pub accept_loss: bool,
    /// Name of this node, in which `%h` is the host and `%p` the process id [default: the host name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Label of this node, which jobs can require with `nodes`; repeatable
    #[arg(long, value_name = "LABEL")]
    pub label: Vec<String>,
    /// Daemon variable that programs inherit, such as `AWS_*`; repeatable
    #[arg(long, value_name = "VARIABLE")]
    pub pass_env: Vec<String>,
    /// Total size of stored outputs, such as 50GiB, beyond which the oldest are deleted; on a shared store, the smallest
    /// of all nodes counts [default: 10GiB, or 256MiB on a store that nodes share]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub outputs_max: Option<u64>,
    /// Role of programs that call `cronhold`: `none`, `viewer`, `operator` (may run, stop and pause jobs, but not change
    /// them) or `admin`
    #[arg(long, value_name = "ROLE", default_value = "operator", value_parser = parse_role)]
    pub programs: CallerRole,
    /// Start even if another running node has the same name
    #[arg(long)]
    pub force: bool,
    /// Time zone of schedules without one
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

impl UpArgs {
    /// The labels of the node, after checking their number and form.
    pub fn labels(&self) -> Result<BTreeSet<String>, CliError> {
        let labels: BTreeSet<String> = self.label.iter().cloned().collect();
        if labels.len() > LABELS_MAX {
            let message = format!("--label: a node can have at most {LABELS_MAX} labels, not {}", labels.len());
            return Err(CliError::usage(message, "remove labels that no job requires"));
        }
        let wrong = labels.iter().find_map(|label| Some((label, what_is_wrong(label)?)));
        match wrong {
            Some((label, wrong)) => {
                let message = format!("--label: invalid label `{}`: {wrong}", shortened(label));
                Err(CliError::usage(message, "write a word, such as `--label gpu`"))
            }
            None => Ok(labels),
        }
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
    let readable = |error: TextError| match error.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message,
    };
    cronhold_jobfile::parse_size(text).map_err(readable)
}

fn parse_role(name: &str) -> Result<CallerRole, String> {
    CallerRole::parse(name).ok_or_else(|| "a role is none, viewer, operator or admin".to_owned())
}

fn what_is_wrong(label: &str) -> Option<String> {
    if label.is_empty() {
        return Some("it is empty".to_owned());
    }
    if label.len() > LABEL_MAX {
        return Some(format!("it has {} bytes; the limit is {LABEL_MAX}", label.len()));
    }
    let has_gap = label.contains(|sign: char| sign.is_whitespace() || sign.is_control());
    has_gap.then(|| "it contains whitespace or a control character".to_owned())
}
