//! How the store stands, so that it is said once. A store that is healed after it has lost something takes beats and
//! refuses commits, and a node calls it back and away in turns; whoever reads the log wants to know when it began and when
//! it is over.

use cronhold_engine::News;
use cronhold_store::Fault;

/// What was said of the store last.
#[derive(Debug, Default)]
pub(super) enum Standing {
    /// Nothing is wrong with it.
    #[default]
    Well,
    /// It is away, for this reason.
    Away(String),
    /// It is being healed.
    Healing,
}

impl Standing {
    /// What there is to be said of the store after some news.
    pub(super) fn hear(&mut self, news: &News<'_>) -> Option<String> {
        match (news, &*self) {
            (News::StoreAway(Fault::Recovering(_)), Self::Healing) => None,
            (News::StoreAway(fault @ Fault::Recovering(_)), _) => {
                *self = Self::Healing;
                Some(fault.to_string())
            }
            (News::StoreAway(fault), before) => {
                let why = fault.to_string();
                let is_known = matches!(before, Self::Away(said) if *said == why);
                let words = (!is_known).then(|| format!("{why}; nothing starts until it works again"));
                *self = Self::Away(why);
                words
            }
            (News::StoreBack, Self::Away(_)) => {
                *self = Self::Well;
                Some("the store works again".to_owned())
            }
            (News::Committed { .. } | News::Ready { .. }, _) => self.commits(),
            _ => None,
        }
    }

    /// What there is to be said when something was committed: a store commits only when it is healed.
    pub(super) fn commits(&mut self) -> Option<String> {
        let is_healed = matches!(self, Self::Healing);
        is_healed.then(|| {
            *self = Self::Well;
            "the store is healed, and takes commits again".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::NodeId;
    use cronhold_core::command::Stamp;
    use cronhold_core::decision::Done;
    use cronhold_core::record::{Actor, Owner};
    use cronhold_schedule::Instant;

    use super::*;

    #[test]
    fn each_change_is_said_once() {
        let owner = Owner { node: NodeId::from_bits(1), incarnation: 1 };
        let stamp = Stamp { at: Instant::EPOCH, actor: Actor::Schedule, owner };
        let done = Done::default();
        let committed = || News::Committed { stamp: &stamp, done: &done };
        let [one, two] = ["46s", "45s"].map(|rest| Fault::Recovering(format!("h:1: {rest}")));
        let [gone, full] = [Fault::Away("h:1".to_owned()), Fault::ReadOnly("no room".to_owned())];
        let began = one.to_string();
        let mut standing = Standing::default();
        for (news, expected) in [
            (committed(), None),
            (News::StoreAway(&gone), Some("the store is unavailable: h:1; nothing starts until it works again")),
            (News::StoreAway(&gone), None),
            (News::StoreAway(&full), Some("the store rejects writes: no room; nothing starts until it works again")),
            (News::StoreBack, Some("the store works again")),
            (News::StoreAway(&one), Some(began.as_str())),
            (News::StoreBack, None),
            (News::StoreAway(&two), None),
            (News::StoreBack, None),
            (committed(), Some("the store is healed, and takes commits again")),
            (committed(), None),
            (News::StoreAway(&one), Some(began.as_str())),
            (News::StoreAway(&gone), Some("the store is unavailable: h:1; nothing starts until it works again")),
        ] {
            assert_eq!(standing.hear(&news).as_deref(), expected, "{news:?}");
        }
    }
}
