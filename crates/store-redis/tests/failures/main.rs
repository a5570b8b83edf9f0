//! Failures of real servers that other stores do not have: what the store returns while a server is full, replaced or
//! rolled back, and that it recovers. `troubles` has those that every store on servers has.

mod cluster;
mod refusals;
mod restarts;
mod rollbacks;
mod sentinel;
mod store_client;
mod tls;
