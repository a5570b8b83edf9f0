//! Stores around other stores: those that watch, delay or spoil what goes to a store that works. A wrapper says only
//! what it does differently; all else goes on to the store inside.

use std::fmt;

use cronhold_core::RunId;
use cronhold_core::record::{Key, LockName, Node, Stored};
use cronhold_schedule::Instant;

use crate::{
    Chunk, Committed, Fault, Health, Hint, Obligation, Page, Pending, Query, Refusal, Shared, Store, Unit, Writer,
};

/// Writes the trait and its way to being a store from one list of the port's methods.
macro_rules! wrapper {
    ($(fn $name:ident $(<$life:lifetime>)? (&$($self_life:lifetime)? self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        /// A store around another one. Every method goes on to the store inside unless the wrapper has its own.
        pub trait Wrapper: Send + Sync + fmt::Debug {
            /// The store inside.
            fn inside(&self) -> &dyn Store;

            $(
                /// As the port says.
                fn $name $(<$life>)? (&$($self_life)? self $(, $argument: $type)*) -> $answer {
                    self.inside().$name($($argument),*)
                }
            )*
        }

        impl<W: Wrapper> Store for W {
            $(
                fn $name $(<$life>)? (&$($self_life)? self $(, $argument: $type)*) -> $answer {
                    Wrapper::$name(self $(, $argument)*)
                }
            )*
        }
    };
}

wrapper! {
    fn enroll(&self) -> Pending<'_, Result<Writer, Fault>>;
    fn is_shared(&self) -> bool;
    fn load<'a>(&'a self, keys: &'a [Key]) -> Pending<'a, Result<Vec<Option<Stored>>, Fault>>;
    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<Committed, Refusal>>>;
    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>>;
    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>>;
    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>>;
    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>>;
    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>>;
    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>>;
    fn beat<'a>(&'a self, node: &'a Node, locks: &'a [(LockName, RunId)]) -> Pending<'a, Result<Vec<LockName>, Fault>>;
    fn hints(&self) -> Pending<'_, Vec<Hint>>;
    fn time(&self) -> Pending<'_, Result<Instant, Fault>>;
    fn health(&self) -> Pending<'_, Health>;
    fn shared(&self) -> Option<&dyn Shared>;
}
