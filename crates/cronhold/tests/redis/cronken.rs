//! Nodes of Python Cronken beside ours on one Redis, in one namespace. Nobody here wrote Cronken, and it knows nothing of
//! us: what it reads, writes and sends is its own.

mod events;
mod forms;
mod once;
mod python;
mod reaper;
mod scene;
mod sight;
mod theirs;
