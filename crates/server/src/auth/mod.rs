//! Authentication: by the admin token, or by the session of a browser that signed in with a one-time link. A session is
//! signed with the token, so it survives a restart of the daemon and ends when the token is renewed.
//!
//! The page keeps its session in the storage of its origin and sends it in a header. It is not a cookie, because
//! browsers send cookies to every port of a host, and other users of the machine can listen on other ports.

mod codes;
mod sign;
mod token;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use cronhold_api::PageSession;
use cronhold_engine::EntropySource;
use cronhold_schedule::{Instant, Span};
use cronhold_store::lock_mutex;
use tokio::sync::watch;

use codes::OneTimeCodes;

/// How long a session is valid.
const SESSION: Span = Span::from_secs(30 * 24 * 60 * 60);
/// Prefix of the signed text, so that no other signature can be used as a session.
const SESSION_PURPOSE: &str = "session until ";

/// Checks tokens and sessions.
pub struct Authenticator {
    /// The file of the token; `None` if the token is only in memory.
    path: Option<PathBuf>,
    entropy: Arc<dyn EntropySource>,
    keys: Mutex<SigningKeys>,
    /// How often the token was renewed. Responses that are still being sent end when it changes.
    renewals: watch::Sender<u64>,
}

struct SigningKeys {
    token: String,
    codes: OneTimeCodes,
}

impl Authenticator {
    /// Loads the token of a data directory, and creates one if there is none.
    pub fn open(folder: &Path, entropy: Arc<dyn EntropySource>) -> io::Result<Self> {
        let path = folder.join(cronhold_api::AdminToken::FILE);
        let token = token::kept_or_new(&path, &*entropy)?;
        Ok(Self::new(Some(path), entropy, token))
    }

    /// Creates a token that is only in memory, and returns it.
    pub fn private(entropy: Arc<dyn EntropySource>) -> (Self, String) {
        let token = token::make(&*entropy);
        (Self::new(None, entropy, token.clone()), token)
    }

    fn new(path: Option<PathBuf>, entropy: Arc<dyn EntropySource>, token: String) -> Self {
        let keys = Mutex::new(SigningKeys { token, codes: OneTimeCodes::default() });
        Self { path, entropy, keys, renewals: watch::Sender::new(0) }
    }

    /// Changes when the token is renewed, with which all credentials become invalid.
    pub(crate) fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.subscribe()
    }

    /// Creates a link with which a browser can sign in once, for a short time. The code is in the fragment, which
    /// browsers do not send, so that only the page uses it up.
    pub fn link(&self, base: &str, now: Instant) -> String {
        format!("{base}/enter#{}", self.code(now))
    }

    fn code(&self, now: Instant) -> String {
        let code = format!("{:032x}", self.entropy.bits());
        self.keys().codes.add(code.clone(), now);
        code
    }

    /// Whether a text is the token. Takes the same time for all texts of one length.
    pub(crate) fn is_token(&self, given: &str) -> bool {
        sign::is_same(given.as_bytes(), self.keys().token.as_bytes())
    }

    /// Uses up a code and returns a session; `None` if the code is invalid.
    pub(crate) fn enter(&self, code: &str, now: Instant) -> Option<PageSession> {
        let mut keys = self.keys();
        if !keys.codes.take(code, now) {
            return None;
        }
        let until = now.plus(SESSION).secs();
        let session = format!("{until}.{}", signature(&keys.token, until));
        Some(PageSession { session, expires: Instant::from_secs(until) })
    }

    /// Whether a text is a valid session that has not expired.
    pub(crate) fn is_session(&self, given: &str, now: Instant) -> bool {
        let Some((until, signed)) = given.split_once('.') else { return false };
        let Ok(until) = until.parse::<i64>() else { return false };
        now.secs() < until && sign::is_same(signed.as_bytes(), signature(&self.keys().token, until).as_bytes())
    }

    /// Replaces the token. The old one, all sessions and all codes become invalid.
    pub(crate) fn renew(&self) -> io::Result<String> {
        let token = token::make(&*self.entropy);
        // Locked until the file is written, so that the file has the token of the later of two renewals.
        let mut keys = self.keys();
        if let Some(path) = &self.path {
            token::write(path, &token)?;
        }
        *keys = SigningKeys { token: token.clone(), codes: OneTimeCodes::default() };
        self.renewals.send_modify(|count| *count += 1);
        Ok(token)
    }

    fn keys(&self) -> MutexGuard<'_, SigningKeys> {
        lock_mutex(&self.keys)
    }
}

fn signature(token: &str, until: i64) -> String {
    sign::hex(&sign::hmac(token.as_bytes(), format!("{SESSION_PURPOSE}{until}").as_bytes()))
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "Authenticator({})", path.display()),
            None => f.write_str("Authenticator"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FixedEntropy, ServerScratchDir};

    const NOW: Instant = Instant::from_secs(1_800_000_000);

    fn open(scratch: &ServerScratchDir) -> Authenticator {
        Authenticator::open(scratch.path(), Arc::new(FixedEntropy::default())).expect("a token")
    }

    #[test]
    fn session_survives_restart_and_ends_with_its_token() {
        let scratch = ServerScratchDir::new("auth");
        let first = open(&scratch);
        let code = first.code(NOW);
        let session = first.enter(&code, NOW).expect("a session");
        assert!(first.enter(&code, NOW).is_none(), "a code is valid once");
        assert!(first.is_session(&session.session, NOW));
        assert!(!first.is_session(&session.session, NOW.plus(SESSION)), "the session expires");

        let restarted = open(&scratch);
        assert!(restarted.is_session(&session.session, NOW), "the session survives a restart");
        let old = std::fs::read_to_string(scratch.path().join("token")).expect("there").trim().to_owned();
        assert!(restarted.is_token(&old));
        let code = restarted.code(NOW);
        let new = restarted.renew().expect("written");
        assert!(restarted.is_token(&new) && !restarted.is_token(&old));
        assert!(!restarted.is_session(&session.session, NOW), "a new token ends the session");
        assert!(restarted.enter(&code, NOW).is_none(), "a new token ends codes");
        assert!(open(&scratch).is_token(&new), "the file has the new token");
    }

    #[test]
    fn private_token_is_only_in_memory() {
        let entropy = Arc::new(FixedEntropy::default());
        let (one, token) = Authenticator::private(Arc::clone(&entropy) as _);
        let (other, _) = Authenticator::private(entropy);
        assert!(one.is_token(&token) && !other.is_token(&token));
        let renewed = one.renew().expect("no file is needed");
        assert!(one.is_token(&renewed) && !one.is_token(&token));
    }

    #[test]
    fn forged_sessions_are_rejected() {
        let scratch = ServerScratchDir::new("auth-forged");
        let authenticator = open(&scratch);
        let session = authenticator.enter(&authenticator.code(NOW), NOW).expect("a session").session;
        let (until, signed) = session.split_once('.').expect("two parts");
        let later = format!("{}.{signed}", until.parse::<i64>().expect("a number") + 1);
        for forged in ["", ".", until, &later, &format!("{until}."), &format!("{until}.{}", &signed[1..]), &signed[..4]]
        {
            assert!(!authenticator.is_session(forged, NOW), "{forged}");
        }
        for not_the_token in ["", "0", &session, &"0".repeat(64)] {
            assert!(!authenticator.is_token(not_the_token), "{not_the_token}");
        }
    }
}
