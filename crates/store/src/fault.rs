//! The world failed. A fault says whether trying again helps, and whether what was asked may have happened.

/// The store could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is away or overloaded: nothing happened, and trying again helps.
    #[error("the store is away: {0}")]
    Away(String),
    /// It does not take writes now, such as when its disk is full or read-only: nothing happened, and trying again
    /// helps when that is over.
    #[error("the store takes no writes: {0}")]
    ReadOnly(String),
    /// Nobody knows whether it happened. Only reading tells.
    #[error("the store did not say whether it was done: {0}")]
    Unknown(String),
    /// What it holds cannot be read, or it refuses for good: trying again does not help.
    #[error("the store is broken: {0}")]
    Broken(String),
}

impl Fault {
    /// What a store says that has lost something and brings it back, before how long that takes. Until then it is away for
    /// commits, and can be read.
    pub const HEALING: &'static str = "the store has come back with less than was known";

    /// Whether the store is away because it is being healed.
    pub fn is_healing(&self) -> bool {
        matches!(self, Self::Away(why) if why.contains(Self::HEALING))
    }

    /// Whether trying again can help.
    pub const fn is_passing(&self) -> bool {
        !matches!(self, Self::Broken(_))
    }
}
