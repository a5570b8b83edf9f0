//! The real binary on a real Redis: nodes of ours alone and several, and nodes of Python Cronken beside them.

mod cluster;
mod company;
mod cronken;
mod healing;
mod import;
#[path = "../log_lines/mod.rs"]
mod log_lines;
mod peers;
#[path = "../processes/mod.rs"]
mod processes;
mod site;
mod store_refusals;
mod store_verbs;
mod wire;
