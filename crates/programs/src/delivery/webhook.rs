//! Sends a webhook: one HTTP request with an idempotency key and, if the action names a secret, a signature.

use std::error::Error as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cronhold_core::hmac::{hex, hmac_sha256};
use cronhold_core::job::ActionKind;
use cronhold_core::policy::delivery::attempt_timeout;
use cronhold_core::record::{ActionId, ResolvedWebhook};
use ureq::http::Request;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::host_env::HostEnv;

/// The header with the action's id. Receivers recognise an attempt that they have seen by it.
const KEY_HEADER: &str = "Idempotency-Key";
/// The header with the signature of the body.
const SIGNATURE_HEADER: &str = "X-Cronhold-Signature";
/// Bytes of a response that are read, so that an endless one ends.
const RESPONSE_MAX: u64 = 64 * 1024;

/// Sends webhooks. The client and the certificate authorities of the system are set up with the first one.
#[derive(Debug, Default)]
pub(super) struct WebhookClient(OnceLock<ureq::Agent>);

impl WebhookClient {
    /// Sends the request. It has failed unless the receiver replies with a status from 200 to 299 and a complete response.
    pub(super) fn send(&self, webhook: &ResolvedWebhook, id: ActionId, host_env: &HostEnv) -> Result<(), String> {
        let request = signed_request(webhook, id, host_env)?;
        let response = self.0.get_or_init(agent).run(request).map_err(|error| explain(&error))?;
        let status = response.status();
        // A response that breaks off may come from a proxy that has not reached the receiver.
        let read = response.into_body().into_with_config().limit(RESPONSE_MAX).read_to_vec();
        match read {
            _ if !status.is_success() => Err(format!("the server replied with status {status}")),
            Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => Ok(()),
            Err(error) => Err(format!("the response broke off: {}", explain(&error))),
        }
    }
}

/// The request with the idempotency key and the signature.
fn signed_request<'w>(
    webhook: &'w ResolvedWebhook,
    id: ActionId,
    host_env: &HostEnv,
) -> Result<Request<&'w [u8]>, String> {
    let mut request = Request::builder().method(webhook.method.as_str()).uri(&webhook.url);
    for (name, value) in &webhook.headers {
        request = request.header(name, value);
    }
    request = request.header(KEY_HEADER, id.to_string());
    if let Some(source) = &webhook.secret {
        let secret = host_env.secret(source).map_err(|error| error.to_string())?;
        let signature = hex(&hmac_sha256(secret.as_bytes(), webhook.body.as_bytes()));
        request = request.header(SIGNATURE_HEADER, format!("sha256={signature}"));
    }
    request.body(webhook.body.as_bytes()).map_err(|error| error.to_string())
}

/// The client. Connections are not reused: a receiver may have closed one, and there are few requests. Certificate files
/// that cannot be read are left out; without any authority no server is trusted.
fn agent() -> ureq::Agent {
    let found = rustls_native_certs::load_native_certs().certs;
    let roots: Vec<Certificate<'static>> =
        found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(provider)
        .build();
    let timeout = Duration::from_micros(attempt_timeout(ActionKind::Webhook).micros());
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        // A redirected POST would lose its body.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .proxy(None)
        .user_agent("cronhold")
        .allow_non_standard_methods(true)
        .tls_config(tls)
        .build();
    ureq::Agent::new_with_config(config)
}

/// The message of an error with its causes.
fn explain(error: &ureq::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}
