//! Other programs that share the store: Cronken's clients and nodes. They write definitions of jobs and send events to
//! everybody; what they do counts here, and what is done here is shown to them in their form.
//!
//! In reading order: `reconcile` is what has to happen to one job; `sight` is what there is of all jobs; `look` does what
//! has to happen; `bell` is who asks for a look; `control` acts on events; `follow` is the thread that does all of it.

mod bell;
mod control;
mod follow;
mod look;
mod reconcile;
mod sight;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use cronhold_engine::Handle;
use cronhold_schedule::Zones;
use cronhold_store::{Fault, Store};

pub use bell::Bell;
pub use follow::Peers;

/// Looks at all jobs once, for whoever works on a store without a daemon. Answers with what is worth knowing.
pub async fn agree(store: Arc<dyn Store>, node: Handle, zones: Arc<Zones>) -> Result<Vec<String>, Fault> {
    let mut looker = look::Looker::new(store, node, zones).of_command();
    let looked = looker.look(&sight::Scope::All, false, &look::Quiet::default()).await?;
    let worth = looked.lines.into_iter().filter(|(weight, _)| *weight >= crate::log::Weight::Usual);
    Ok(worth.map(|(_, words)| words).collect())
}
