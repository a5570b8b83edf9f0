//! Real ZooKeeper servers for tests, alone and as an ensemble, and an editor of znodes.

mod editor;
mod ensemble;
mod server;

pub use editor::ZnodeEditor;
pub use ensemble::ZooKeeperEnsemble;
pub use server::ZooKeeperServer;
