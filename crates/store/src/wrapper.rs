//! Stores that wrap another store, to observe, delay or fail its requests. A wrapper implements only what it changes;
//! all other methods forward to the inner store.

use std::sync::Arc;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey, RecordKind, StoredRecord};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;

use crate::tasks::TaskStore;
use crate::{
    Chunk, DefinitionPage, Fault, Hint, Obligation, OutputSizes, Page, Pending, Query, SharedStore, Store,
    StoreHealthReport, StoreLimits, Unit, UnitReceipt, UnitRefusal, WalkPage, WalkPlace, WriterId,
};

/// Generates the trait of wrappers, and its implementation of the wrapped port, from one list of methods.
macro_rules! wrapper {
    (trait $wrapper:ident: $port:ident; $(fn $name:ident $(<$life:lifetime>)? (&$($self_life:lifetime)? self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        /// A store that wraps another one. Every method forwards to the inner store unless the wrapper overrides it.
        pub trait $wrapper: Send + Sync + std::fmt::Debug {
            /// The inner store.
            fn inside(&self) -> &dyn $port;

            $(
                #[doc = concat!("See the method of the same name of [`", stringify!($port), "`].")]
                fn $name $(<$life>)? (&$($self_life)? self $(, $argument: $type)*) -> $answer {
                    self.inside().$name($($argument),*)
                }
            )*
        }

        impl<W: $wrapper> $port for W {
            $(
                fn $name $(<$life>)? (&$($self_life)? self $(, $argument: $type)*) -> $answer {
                    $wrapper::$name(self $(, $argument)*)
                }
            )*
        }
    };
}

pub(crate) use wrapper;

wrapper! {
    trait Wrapper: Store;
    fn enroll(&self) -> Pending<'_, Result<WriterId, Fault>>;
    fn is_shared(&self) -> bool;
    fn limits(&self) -> StoreLimits;
    fn record_size(&self, record: &Record) -> u64;
    fn unit_size(&self, changes: &[RecordChange]) -> u64;
    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>>;
    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>>;
    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>>;
    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>>;
    fn walk<'a>(&'a self, kind: RecordKind, from: Option<&'a WalkPlace>, limit: usize) -> Pending<'a, Result<WalkPage, Fault>>;
    fn definitions<'a>(&'a self, after: Option<&'a JobId>, limit: usize) -> Pending<'a, Result<DefinitionPage, Fault>>;
    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>>;
    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>>;
    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>>;
    fn output_sizes<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<OutputSizes, Fault>>;
    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>>;
    fn expire_locks(&self, before: Instant) -> Pending<'_, Result<(), Fault>>;
    fn beat<'a>(&'a self, node: &'a NodeRecord, locks: &'a [(LockName, RunId)]) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>>;
    fn seal<'a>(&'a self, reason: &'a str) -> Pending<'a, Result<(), Fault>>;
    fn unseal(&self) -> Pending<'_, Result<(), Fault>>;
    fn hints(&self) -> Pending<'_, Vec<Hint>>;
    fn time(&self) -> Pending<'_, Result<Instant, Fault>>;
    fn health(&self) -> Pending<'_, StoreHealthReport>;
    fn shared(&self) -> Option<&dyn SharedStore>;
    fn task_store(&self) -> Option<Arc<dyn TaskStore>>;
}
