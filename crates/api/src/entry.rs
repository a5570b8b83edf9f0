//! Access to a daemon: its address file, the token, and links to the web page.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Content of the file `address`, which a daemon keeps in its data directory while it listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonLocation {
    /// Base URL, such as `http://127.0.0.1:2766`.
    pub url: String,
    /// Process id of the daemon.
    pub pid: u32,
    /// When the daemon began to listen.
    pub since: Instant,
}

impl DaemonLocation {
    /// Name of the file in the data directory.
    pub const FILE: &str = "address";
}

/// Name of the socket in the data directory, for processes of the daemon's user and of root.
pub const SOCKET: &str = "socket";

/// A link that opens the web page once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PageLink {
    /// URL with a one-time code; it expires after 15 minutes.
    pub url: String,
}

/// Exchanges the code of a link for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignInBody {
    /// The one-time code: the part of the link after `#`.
    pub code: String,
}

/// A session of the web page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PageSession {
    /// Value for the header `Authorization: Bearer`. It ends with the admin token, and cannot create links or tokens.
    pub session: String,
    /// When the session expires.
    #[schema(value_type = String, format = DateTime)]
    pub expires: Instant,
}

/// The admin token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdminToken {
    /// Value for the header `Authorization: Bearer`.
    pub token: String,
}

impl AdminToken {
    /// Name of the token file in the data directory.
    pub const FILE: &str = "token";
}
