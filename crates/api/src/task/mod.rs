//! Tasks: requests about them, and what the API returns. Values of ports and of the state are JSON texts, which keep
//! large integers and the order of keys.

mod change;
mod channel;
mod create;
mod detail;
mod port;
mod queue;

pub use change::{AdoptBody, AliasesBody, DisownBody, TaskPortsBody, TaskRunBody, TaskStateBody, TerminateBody};
pub use channel::{ChannelList, PublishBody, PublishedMessage, SubscribedChannel};
pub use create::{CreatedTask, TaskBody, TaskReference};
pub use detail::{TaskChild, TaskChildList, TaskDetail, TaskList, TaskSummary, TaskTree, TaskTreeNode};
pub use port::{
    ConnectBody, ConnectReply, PortChangeBody, PortItemList, PortItemValue, PortReadBody, PortReadReply,
    TaskPortOptions, TaskPortPlace, TaskPortSummary,
};
pub use queue::{ClassesBody, QueueReport, WorkerReport};

use cronhold_core::task::JsonText;
use serde::{Deserialize, Deserializer};

/// Reads a value that may be `null`: `null` is a value, and a missing field is `None`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JsonText>, D::Error> {
    JsonText::deserialize(deserializer).map(Some)
}

/// The default of flags that are on.
const fn on() -> bool {
    true
}
