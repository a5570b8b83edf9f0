//! Stores that wrap another store, to observe, delay or fail its requests. A wrapper implements only what it changes;
//! all other methods forward to the inner store.

use std::fmt;

use cronhold_core::record::{LockName, NodeRecord, RecordKey, StoredRecord};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;

use crate::{
    Chunk, DefinitionPage, Fault, Hint, Obligation, OutputSizes, Page, Pending, Query, SharedStore, Store,
    StoreHealthReport, Unit, UnitReceipt, UnitRefusal, WriterId,
};

/// Generates the trait and its `Store` implementation from one list of methods.
macro_rules! wrapper {
    ($(fn $name:ident $(<$life:lifetime>)? (&$($self_life:lifetime)? self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        /// A store that wraps another one. Every method forwards to the inner store unless the wrapper overrides it.
        pub trait Wrapper: Send + Sync + fmt::Debug {
            /// The inner store.
            fn inside(&self) -> &dyn Store;

            $(
                /// See the method of the same name of [`Store`].
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
    fn enroll(&self) -> Pending<'_, Result<WriterId, Fault>>;
    fn is_shared(&self) -> bool;
    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>>;
    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>>;
    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>>;
    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>>;
    fn definitions<'a>(&'a self, after: Option<&'a JobId>, limit: usize) -> Pending<'a, Result<DefinitionPage, Fault>>;
    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>>;
    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>>;
    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>>;
    fn output_sizes<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<OutputSizes, Fault>>;
    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>>;
    fn expire_locks(&self, before: Instant) -> Pending<'_, Result<(), Fault>>;
    fn beat<'a>(&'a self, node: &'a NodeRecord, locks: &'a [(LockName, RunId)]) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>>;
    fn hints(&self) -> Pending<'_, Vec<Hint>>;
    fn time(&self) -> Pending<'_, Result<Instant, Fault>>;
    fn health(&self) -> Pending<'_, StoreHealthReport>;
    fn shared(&self) -> Option<&dyn SharedStore>;
}
