//! Whether nodes of Cronken run the same jobs. It is a fact of the namespace and is kept there, so that nobody has to be
//! told by a URL what others know already: a URL sets it or clears it, and without a word it is taken over.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::projection;
use crate::url::{OutputForm, Settings};

/// What the namespace says when they do.
pub(crate) const CRONKEN: &str = "cronken";

/// What a URL says when they do no more.
const NONE: &str = "none";

/// What is known of them, and what follows from it.
#[derive(Debug)]
pub(crate) struct Peers {
    /// What the URL says, if it says anything.
    said: Option<bool>,
    /// What the namespace said last.
    are_there: AtomicBool,
    /// Whether this process has enrolled.
    is_enrolled: AtomicBool,
    /// What scripts are told of the settings: without them and with them.
    settings: [String; 2],
}

impl Peers {
    pub(crate) fn new(settings: &Settings) -> Self {
        // Their code has lists alone.
        let beside = Settings { output: OutputForm::List, ..settings.clone() };
        Self {
            said: settings.peers,
            are_there: AtomicBool::new(settings.peers == Some(true)),
            is_enrolled: AtomicBool::new(false),
            settings: [projection::settings(settings), projection::settings(&beside)],
        }
    }

    /// Whether they run the same jobs.
    pub(crate) fn are_there(&self) -> bool {
        self.are_there.load(Ordering::Relaxed)
    }

    /// What the scripts are told of the settings.
    pub(crate) fn shown_settings(&self) -> &str {
        &self.settings[usize::from(self.are_there())]
    }

    /// What a writer that enrolls has the namespace say; nothing, when that is left as it is.
    pub(crate) fn wanted(&self) -> &'static str {
        match self.said {
            Some(true) => CRONKEN,
            Some(false) => NONE,
            None => "",
        }
    }

    /// What a store is told that has lost what it knew.
    pub(crate) fn known(&self) -> &'static str {
        if self.are_there() { CRONKEN } else { "" }
    }

    /// Somebody looked before this process has enrolled. What the URL says may not be there yet.
    pub(crate) fn saw(&self, word: &str) {
        if word == CRONKEN && !self.is_enrolled() {
            self.are_there.store(true, Ordering::Relaxed);
        }
    }

    /// Whether this process has enrolled, so that the namespace knows what its URL says.
    pub(crate) fn is_enrolled(&self) -> bool {
        self.is_enrolled.load(Ordering::Relaxed)
    }

    /// What the namespace says to whoever asked it after this process had enrolled, or before.
    pub(crate) fn answered(&self, word: &str, was_enrolled: bool) {
        if was_enrolled { self.learn(word == CRONKEN) } else { self.saw(word) }
    }

    /// What the namespace says to whoever reads definitions. Only beats know whether it is the store that it was: one that
    /// went back may have forgotten its peers, and is told of them again.
    pub(crate) fn overheard(&self, word: &str, was_enrolled: bool) {
        if word == CRONKEN {
            self.answered(word, was_enrolled);
        }
    }

    /// What the namespace says when this process enrolls.
    pub(crate) fn enrolled(&self, are_there: bool) {
        self.is_enrolled.store(true, Ordering::Relaxed);
        self.learn(are_there);
    }

    fn learn(&self, are_there: bool) {
        self.are_there.store(are_there, Ordering::Relaxed);
    }

    /// What whoever runs a node should know.
    pub(crate) fn warning(&self) -> Option<String> {
        let is_taken_over = self.are_there() && self.said != Some(true);
        is_taken_over.then(|| {
            "nodes of Cronken run the same jobs in this namespace, so that `peers=cronken` holds here too, although the URL \
             does not say it"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(said: Option<bool>) -> Peers {
        Peers::new(&Settings { peers: said, ..Settings::default() })
    }

    #[test]
    fn what_the_namespace_says_counts_and_the_url_is_asked_first() {
        let silent = peers(None);
        assert!(!silent.are_there() && silent.shown_settings().starts_with("zset"));
        silent.saw(CRONKEN);
        assert!(silent.are_there() && silent.shown_settings().starts_with("list"));
        silent.enrolled(true);
        assert!(silent.warning().is_some_and(|words| words.contains("URL")));
        silent.learn(false);
        assert_eq!((silent.are_there(), silent.warning()), (false, None));
        let willing = peers(Some(true));
        willing.saw("");
        assert!(willing.are_there(), "it is not written there before a writer enrolls");
        willing.enrolled(true);
        assert_eq!(willing.warning(), None);
    }

    /// A node beats and looks before it enrolls, and answers may be heard late.
    #[test]
    fn what_was_answered_before_it_enrolled_does_not_take_back_what_the_url_says() {
        let willing = peers(Some(true));
        willing.answered("", false);
        assert!(willing.are_there());
        willing.enrolled(true);
        willing.answered("", false);
        assert!(willing.are_there());
    }

    #[test]
    fn who_has_enrolled_hears_it_by_beats_and_by_asking() {
        let late = peers(None);
        late.enrolled(false);
        late.saw(CRONKEN);
        assert_eq!((late.are_there(), late.warning()), (false, None));
        late.answered(CRONKEN, true);
        assert!(late.are_there());
        late.answered("", true);
        assert!(!late.are_there());
        late.learn(true);
        assert!(late.are_there() && late.warning().is_some_and(|words| words.contains("URL")));
    }
}
