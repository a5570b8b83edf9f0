//! Sends a webhook: one HTTP request with an idempotency key and, if the action names a secret, a signature.

use cronhold_core::hmac::{hex, hmac_sha256};
use cronhold_core::job::ActionKind;
use cronhold_core::policy::delivery::attempt_timeout;
use cronhold_core::record::{ActionId, ResolvedWebhook};

use crate::host_env::HostEnv;
use crate::http::{CancelToken, HttpClient, HttpRequest, KEY_HEADER, TlsChoice};

/// The header with the signature of the body.
const SIGNATURE_HEADER: &str = "X-Cronhold-Signature";
/// Bytes of a response that are read, so that an endless one ends.
const RESPONSE_MAX: u64 = 64 * 1024;

/// Sends the request. It has failed unless the receiver replies with a status from 200 to 299 and a complete response: one
/// that breaks off may come from a proxy that has not reached the receiver.
pub(super) fn send(
    client: &HttpClient,
    webhook: &ResolvedWebhook,
    id: ActionId,
    host_env: &HostEnv,
) -> Result<(), String> {
    let request = signed_request(webhook, id, host_env)?;
    let reply = client.send(request, &CancelToken::default()).map_err(|error| error.to_string())?;
    match reply.status {
        200..=299 => Ok(()),
        status => Err(format!("the server replied with status {status}")),
    }
}

/// The request with the idempotency key and the signature. Redirects are not followed: a redirected POST would lose its
/// body.
fn signed_request(webhook: &ResolvedWebhook, id: ActionId, host_env: &HostEnv) -> Result<HttpRequest, String> {
    let mut headers: Vec<(String, String)> =
        webhook.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    headers.push((KEY_HEADER.to_owned(), id.to_string()));
    if let Some(source) = &webhook.secret {
        let secret = host_env.secret(source).map_err(|error| error.to_string())?;
        let signature = hex(&hmac_sha256(secret.as_bytes(), webhook.body.as_bytes()));
        headers.push((SIGNATURE_HEADER.to_owned(), format!("sha256={signature}")));
    }
    Ok(HttpRequest {
        method: webhook.method.clone(),
        url: webhook.url.clone(),
        headers,
        secrets: Vec::new(),
        body: webhook.body.clone().into_bytes(),
        redirects: 0,
        timeout: attempt_timeout(ActionKind::Webhook),
        tls: TlsChoice::default(),
        kept: 0,
        read_max: RESPONSE_MAX,
    })
}
