//! Whether nodes of Cronken run the same jobs. The namespace stores this, so that one URL is enough to set it: a URL
//! with `peers` sets or clears it, and a URL without takes it over.

use std::sync::atomic::{AtomicBool, Ordering};

use super::projection;
use crate::url::{OutputKeyType, UrlSettings};

/// The stored word if they do.
const CRONKEN: &str = "cronken";

/// The word that clears it.
const NONE: &str = "none";

/// Whether there are peers, and the settings that depend on it.
#[derive(Debug)]
pub(crate) struct PeerFlag {
    /// The value in the URL.
    in_url: Option<bool>,
    /// The last value that was read from the namespace.
    has_peers: AtomicBool,
    /// Whether this process has enrolled.
    is_enrolled: AtomicBool,
    /// The settings for the projection scripts, without and with peers.
    settings: [String; 2],
}

impl PeerFlag {
    pub(crate) fn new(settings: &UrlSettings) -> Self {
        // Cronken's nodes only know lists.
        let with_peers = UrlSettings { output: OutputKeyType::List, ..settings.clone() };
        Self {
            in_url: settings.peers,
            has_peers: AtomicBool::new(settings.peers == Some(true)),
            is_enrolled: AtomicBool::new(false),
            settings: [projection::script_settings(settings), projection::script_settings(&with_peers)],
        }
    }

    /// Whether nodes of Cronken run the same jobs.
    pub(crate) fn has_peers(&self) -> bool {
        self.has_peers.load(Ordering::Relaxed)
    }

    /// The settings for the projection scripts.
    pub(crate) fn projection_settings(&self) -> &str {
        &self.settings[usize::from(self.has_peers())]
    }

    /// The word that an enrolling writer stores; empty to leave it unchanged.
    pub(crate) fn enroll_arg(&self) -> &'static str {
        match self.in_url {
            Some(true) => CRONKEN,
            Some(false) => NONE,
            None => "",
        }
    }

    /// The word to restore in a namespace that has lost it.
    pub(crate) fn known_word(&self) -> &'static str {
        if self.has_peers() { CRONKEN } else { "" }
    }

    /// The word was read, perhaps before this process enrolled. What its URL says may not be stored yet, so only the
    /// presence of peers counts.
    pub(crate) fn observe_before_enrollment(&self, word: &str) {
        if word == CRONKEN && !self.is_enrolled() {
            self.has_peers.store(true, Ordering::Relaxed);
        }
    }

    /// Whether this process has enrolled. From then on the namespace has the value of its URL.
    pub(crate) fn is_enrolled(&self) -> bool {
        self.is_enrolled.load(Ordering::Relaxed)
    }

    /// The flag was read by a request that was sent after this process had enrolled, or before.
    pub(crate) fn observe_flag(&self, has_peers: bool, was_enrolled: bool) {
        match (was_enrolled, has_peers) {
            (true, _) => self.set(has_peers),
            (false, true) => self.observe_before_enrollment(CRONKEN),
            (false, false) => {}
        }
    }

    /// The word was read together with definitions. Such reads do not detect a rollback, in which the word may be lost
    /// until it is restored, so only the presence of peers counts.
    pub(crate) fn observe_definitions(&self, word: &str, was_enrolled: bool) {
        if word == CRONKEN {
            self.observe_flag(true, was_enrolled);
        }
    }

    /// This process has enrolled, and the namespace has this value.
    pub(crate) fn record_enrollment(&self, has_peers: bool) {
        self.is_enrolled.store(true, Ordering::Relaxed);
        self.set(has_peers);
    }

    fn set(&self, has_peers: bool) {
        self.has_peers.store(has_peers, Ordering::Relaxed);
    }

    /// A warning if the value was taken over from the namespace and not from the URL.
    pub(crate) fn warning(&self) -> Option<String> {
        let is_taken_over = self.has_peers() && self.in_url != Some(true);
        is_taken_over.then(|| {
            "nodes of Cronken run the same jobs in this namespace, so `peers=cronken` applies although the URL does not \
             have it"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(in_url: Option<bool>) -> PeerFlag {
        PeerFlag::new(&UrlSettings { peers: in_url, ..UrlSettings::default() })
    }

    #[test]
    fn namespace_decides_after_enrollment_and_url_before() {
        let silent = peers(None);
        assert!(!silent.has_peers() && silent.projection_settings().starts_with("zset"));
        silent.observe_before_enrollment(CRONKEN);
        assert!(silent.has_peers() && silent.projection_settings().starts_with("list"));
        silent.record_enrollment(true);
        assert!(silent.warning().is_some_and(|words| words.contains("URL")));
        silent.set(false);
        assert_eq!((silent.has_peers(), silent.warning()), (false, None));
        let willing = peers(Some(true));
        willing.observe_before_enrollment("");
        assert!(willing.has_peers(), "the namespace has it only after a writer has enrolled");
        willing.record_enrollment(true);
        assert_eq!(willing.warning(), None);
    }

    /// A node reads before it enrolls, and replies may arrive late.
    #[test]
    fn reply_from_before_enrollment_does_not_clear_the_value_of_the_url() {
        let willing = peers(Some(true));
        willing.observe_flag(false, false);
        assert!(willing.has_peers());
        willing.record_enrollment(true);
        willing.observe_flag(false, false);
        assert!(willing.has_peers());
    }

    #[test]
    fn enrolled_process_follows_heartbeat_replies() {
        let late = peers(None);
        late.record_enrollment(false);
        late.observe_before_enrollment(CRONKEN);
        assert_eq!((late.has_peers(), late.warning()), (false, None));
        late.observe_flag(true, true);
        assert!(late.has_peers());
        late.observe_flag(false, true);
        assert!(!late.has_peers());
        late.set(true);
        assert!(late.has_peers() && late.warning().is_some_and(|words| words.contains("URL")));
    }
}
