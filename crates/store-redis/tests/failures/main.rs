//! Failures of real servers: what the store returns while a server is unreachable, silent, full, replaced or rolled
//! back, and that it recovers.

mod cluster;
mod restarts;
mod rollbacks;
mod sentinel;
mod store_client;
mod tls;
mod unreachable;
