//! What the store answers when its server is away, silent, full, replaced or has forgotten, and that work goes on by
//! itself afterwards. All of it on real servers.

mod away;
mod cluster;
mod forgotten;
mod hand;
mod sentinel;
mod tls;
