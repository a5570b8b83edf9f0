//! Delivers actions: webhooks and mails on threads of their own, with a limit for all of them and for each receiver. A
//! receiver that hangs holds its own share of the threads and no more. Commands are processes of the keeper, and the
//! runner has them.

mod email;
mod pool;
mod webhook;

use std::sync::Arc;

use cronhold_core::command::DeliveryResult;
use cronhold_core::record::{ActionId, ActionRecord, ResolvedAction};

pub use email::{MailSettings, MailSettingsError};
pub(crate) use pool::{DeliveryPool, ReportFn};

use crate::host_env::HostEnv;
use crate::http::HttpClient;

/// Sends webhooks and mails. One attempt blocks the calling thread.
#[derive(Debug)]
pub(crate) struct Sender {
    host_env: HostEnv,
    mail: MailSettings,
    http: Arc<HttpClient>,
}

/// The result of an attempt.
#[derive(Debug)]
pub(crate) struct DeliveryReport {
    pub(crate) action: ActionId,
    pub(crate) attempt: u32,
    pub(crate) result: DeliveryResult,
}

impl Sender {
    pub(crate) fn new(host_env: HostEnv, mail: MailSettings, http: Arc<HttpClient>) -> Self {
        Self { host_env, mail, http }
    }

    /// What shares a limit: the server of a webhook, or the mail server.
    fn receiver(&self, action: &ActionRecord) -> String {
        match &action.work {
            ResolvedAction::Email { .. } => "mail".to_owned(),
            work => work.target(),
        }
    }

    /// Makes one attempt.
    fn send(&self, action: &Arc<ActionRecord>) -> DeliveryResult {
        let sent = match &action.work {
            ResolvedAction::Webhook(webhook) => webhook::send(&self.http, webhook, action.id, &self.host_env),
            ResolvedAction::Email { to, subject, body } => self.mail.send(action.id, to, subject, body),
            ResolvedAction::Run { .. }
            | ResolvedAction::Command(_)
            | ResolvedAction::Publish { .. }
            | ResolvedAction::Invalid(_) => Err("actions of this kind are not sent".to_owned()),
        };
        sent.map_or_else(DeliveryResult::Failed, |()| DeliveryResult::Delivered)
    }
}
