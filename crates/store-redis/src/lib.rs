//! The store on Redis. What Cronken's document describes is kept in its keys, to the letter, so that its clients go on
//! working; our own records stand beside them, below `cronhold:` in the same namespace and the same hash slot.

mod beat;
mod codec;
mod commit;
mod faults;
mod foreign;
mod foreign_runs;
mod heal;
mod hints;
mod inner;
mod keys;
mod link;
mod listing;
mod load;
mod order;
mod outputs;
mod peers;
mod projection;
mod shared;
mod start;
mod store;
mod tend;
#[cfg(feature = "testing")]
pub mod testing;
mod url;

pub use store::{OpenError, Options, RedisStore};
pub use url::RedisUrl;
