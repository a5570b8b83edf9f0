//! `cronhold token`: the admin token of the daemon, and links to its web page.

use std::io::Write;

use clap::{Args, Subcommand};
use cronhold_api::{AdminToken, PageLink};

use crate::remote::{self, RemoteDaemon};
use crate::render::{self, OutputFormat};
use crate::{CliError, CliSession, ExitStatus};

/// Show or renew the daemon's token, or create a link to its web page
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// Operation
    #[command(subcommand)]
    verb: TokenVerb,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table", global = true)]
    output: OutputFormat,
}

/// Operations on the token.
#[derive(Debug, Subcommand)]
enum TokenVerb {
    /// Print the token, for CRONHOLD_TOKEN on another machine; the daemon need not be running
    Show,
    /// Print a link that opens the web page in a browser, once
    Link,
    /// Create a new token and invalidate the old one and all browser sessions
    Renew,
}

impl TokenArgs {
    pub(crate) fn run(&self, session: &CliSession<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        remote::needs_daemon(session, "`cronhold token` needs a daemon")?;
        match self.verb {
            TokenVerb::Show => self.token(remote::token(session)?, out),
            TokenVerb::Link => {
                let remote = RemoteDaemon::find(session)?;
                let url = remote.client.link().map_err(|error| remote.failure(error))?;
                match self.output.encoding() {
                    Some(encoding) => encoding.write(&PageLink { url }, out)?,
                    None => render::line(&url, out)?,
                }
                Ok(ExitStatus::Done)
            }
            TokenVerb::Renew => {
                let remote = RemoteDaemon::find(session)?;
                self.token(remote.client.renew_token().map_err(|error| remote.failure(error))?, out)
            }
        }
    }

    fn token(&self, token: String, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        match self.output.encoding() {
            Some(encoding) => encoding.write(&AdminToken { token }, out)?,
            None => render::line(&token, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
