//! The part of the store that castle-cron's clients use too, as the port describes it. castle-cron has no events and
//! keeps no runs.

use std::future::{pending, ready};
use std::sync::Arc;

use cronhold_core::NodeId;
use cronhold_store::{
    DefinitionUpdate, Fault, ForeignSystem, NodeListChange, NodeRegistration, Pending, SharedDefinition, SharedEvent,
    SharedRun, SharedStore,
};

use crate::store::ZooKeeperStore;

impl SharedStore for ZooKeeperStore {
    fn system(&self) -> ForeignSystem {
        ForeignSystem::CastleCron
    }

    /// castle-cron's own servers cannot share a root with Cronhold, because they write Go's gob.
    fn has_foreign_nodes(&self) -> bool {
        false
    }

    fn events(&self) -> Pending<'_, Vec<SharedEvent>> {
        Box::pin(pending())
    }

    fn send<'a>(&'a self, _event: &'a str) -> Pending<'a, Result<(), Fault>> {
        Box::pin(ready(Ok(())))
    }

    fn forms<'a>(&'a self, names: Option<&'a [String]>) -> Pending<'a, Result<Vec<SharedDefinition>, Fault>> {
        let (castle, names) = (self.castle(), names.map(<[String]>::to_vec));
        self.run_read(async move { castle.read_definitions(names.as_deref()).await })
    }

    fn settle<'a>(&'a self, forms: &'a [DefinitionUpdate]) -> Pending<'a, Result<Vec<bool>, Fault>> {
        let (castle, forms) = (self.castle(), forms.to_vec());
        self.run_read(async move { castle.settle_definitions(&forms).await })
    }

    fn foreign_runs<'a>(&'a self, _job: Option<&'a str>, _limit: usize) -> Pending<'a, Result<Vec<SharedRun>, Fault>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn definition_changes(&self) -> Pending<'_, Vec<String>> {
        let castle = self.castle();
        Box::pin(async move { castle.definition_changes().await })
    }

    fn register_node<'a>(
        &'a self,
        name: &'a str,
        node: NodeId,
        is_forced: bool,
    ) -> Pending<'a, Result<NodeRegistration, Fault>> {
        let (castle, name) = (self.castle(), name.to_owned());
        self.run_read(async move {
            let registration = castle.register_server(&name, node, is_forced).await?;
            if registration == NodeRegistration::Registered {
                Arc::clone(&castle).start(&tokio::runtime::Handle::current());
            }
            Ok(registration)
        })
    }

    fn unregister_node(&self) -> Pending<'_, Result<(), Fault>> {
        let castle = self.castle();
        self.run_read(async move { castle.unregister_server().await })
    }

    fn node_list_changes(&self) -> Pending<'_, NodeListChange> {
        let castle = self.castle();
        Box::pin(async move { castle.server_changes().await })
    }

    fn publish_times(&self) -> Pending<'_, Result<(), Fault>> {
        let castle = self.castle();
        self.run_read(async move { castle.publish_all_times().await })
    }
}
