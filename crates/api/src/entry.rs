//! How one comes in: where a daemon is to be found, the token, and links to its page.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a daemon is to be found, as it leaves it in its data directory while it listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// Where it listens, such as `http://127.0.0.1:2766`.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// Since when.
    pub since: Instant,
}

impl Address {
    /// The name of the file.
    pub const FILE: &str = "address";
}

/// A link that opens the page once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// Where to go.
    pub url: String,
}

/// The admin token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// What to send as `Authorization: Bearer`.
    pub token: String,
}

impl Token {
    /// The name of the file in the data directory that holds it.
    pub const FILE: &str = "token";
}
