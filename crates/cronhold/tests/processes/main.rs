//! Tests of the program runner between node and keeper, with a real keeper and real programs. The test takes the place
//! of the node, so that it can use what a node on its own store never uses, such as leases.

mod leases;
#[path = "mod.rs"]
mod processes;
