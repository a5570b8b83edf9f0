//! What the daemon has between its node and the keeper, with a real keeper and real programs, and the test in the place
//! of the node: so it can give what no node on a store of its own gives, such as leases.

mod leases;
#[path = "mod.rs"]
mod processes;
