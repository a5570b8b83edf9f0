//! `cronhold token`: what the daemon knows its user by.

use std::io::Write;

use clap::{Args, Subcommand};
use cronhold_api::{Link, Token as Shown};

use crate::remote::{self, Remote};
use crate::render::{self, Format};
use crate::{Exit, Failure, Session};

/// Show or renew the token that the daemon asks for, or make a link to its page
#[derive(Debug, Args)]
pub(crate) struct Token {
    /// What is to be done
    #[command(subcommand)]
    verb: TokenVerb,
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", default_value = "table", global = true)]
    output: Format,
}

/// What can be done with the token.
#[derive(Debug, Subcommand)]
enum TokenVerb {
    /// Print the token, for CRONHOLD_TOKEN on another machine; no daemon needs to run
    Show,
    /// Print a link that opens the daemon's page in a browser, once
    Link,
    /// Make another token; the one before, and all who came in with it, are good no more
    Renew,
}

impl Token {
    pub(crate) fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Exit, Failure> {
        remote::needs_daemon(session, "a token is what a daemon asks for")?;
        match self.verb {
            TokenVerb::Show => self.token(remote::token(session)?, out),
            TokenVerb::Link => {
                let remote = Remote::find(session)?;
                let url = remote.client.link().map_err(|error| remote.failure(error))?;
                match self.output.encoding() {
                    Some(encoding) => encoding.write(&Link { url }, out)?,
                    None => render::line(&url, out)?,
                }
                Ok(Exit::Done)
            }
            TokenVerb::Renew => {
                let remote = Remote::find(session)?;
                self.token(remote.client.renew_token().map_err(|error| remote.failure(error))?, out)
            }
        }
    }

    fn token(&self, token: String, out: &mut dyn Write) -> Result<Exit, Failure> {
        match self.output.encoding() {
            Some(encoding) => encoding.write(&Shown { token }, out)?,
            None => render::line(&token, out)?,
        }
        Ok(Exit::Done)
    }
}
