//! One connection to one server, from the handshake until it fails. A connection never recovers: the manager opens a
//! new one.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cronhold_store::Fault;
use cronhold_store::lock_mutex;
use cronhold_store_remote::ConnectError;
use cronhold_store_remote::faults::{unconfirmed, unreachable};
use cronhold_store_remote::url::{ServerAddress, UrlCredentials};
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisError, Value};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::script::Script;
use super::transport;
use crate::url::{RedisUrl, Topology};
use crate::{faults, server_check};

/// Requests that may wait to be written to the socket. A caller waits for each, so more would be an overload.
const PENDING_REQUESTS_MAX: usize = 1024;

/// The task that reads from and writes to the socket.
type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Which credentials of the URL a connection uses.
#[derive(Clone, Copy)]
pub(super) enum LoginKind {
    /// For a server that holds records.
    DataServer,
    Sentinel,
}

/// One connection to one server.
pub(super) struct Connection {
    pub(super) server: ServerAddress,
    /// The id of the server process, which is new after each restart; empty if the user may not run INFO. It is read
    /// before the connection is used, so that no request can reach another process than this one.
    pub(super) server_id: String,
    connection: MultiplexedConnection,
    driver: AbortHandle,
    is_closed: Arc<AtomicBool>,
    /// Hashes of the scripts that were loaded over this connection.
    loaded_scripts: Mutex<BTreeSet<&'static str>>,
    timeout: Duration,
}

impl Connection {
    /// Connects, logs in and waits for the first reply.
    pub(super) async fn open(url: &RedisUrl, server: &ServerAddress, login: LoginKind) -> Result<Self, ConnectError> {
        let limit = url.settings.timeout;
        let opened = timeout(limit, async {
            let stream = transport::open(url, server).await?;
            let config = AsyncConnectionConfig::new()
                .set_response_timeout(None)
                .set_connection_timeout(None)
                .set_pipeline_buffer_size(PENDING_REQUESTS_MAX);
            let info = login_of(url, login);
            let set_up = MultiplexedConnection::new_with_config(&info, stream, config).await;
            let (connection, driver) = set_up.map_err(|error| login_error(url, server, login, &error))?;
            let driver: Driver = Box::pin(driver);
            let mut connection = Self::start(server, connection, driver, limit);
            // The kernel accepts connections for a process that is stopped. Only a reply shows that the server is
            // alive.
            let mut info = redis::cmd("INFO");
            info.arg("server");
            let replies = connection.request(vec![redis::cmd("PING"), info]).await;
            let replies = replies.map_err(|fault| ConnectError::from(fault).with_hint(transport::tls_hint(url)))?;
            let mut replies = replies.into_iter();
            if let Some(Value::ServerError(error)) = replies.next() {
                return Err(login_error(url, server, login, &error.into()));
            }
            connection.server_id = replies.next().and_then(|info| server_check::run_id(&info)).unwrap_or_default();
            Ok(connection)
        });
        opened.await.unwrap_or_else(|_| Err(no_reply(url, server)))
    }

    fn start(server: &ServerAddress, connection: MultiplexedConnection, driver: Driver, timeout: Duration) -> Self {
        let is_closed = Arc::new(AtomicBool::new(false));
        let flag = is_closed.clone();
        let driver = tokio::spawn(async move {
            driver.await;
            flag.store(true, Ordering::Release);
        });
        Self {
            server: server.clone(),
            server_id: String::new(),
            connection,
            driver: driver.abort_handle(),
            is_closed,
            loaded_scripts: Mutex::default(),
            timeout,
        }
    }

    /// Whether the connection is known to be unusable.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Closes the connection. Pending requests fail without a reply.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.driver.abort();
    }

    /// Sends commands as one pipeline. Errors of single commands are among the replies.
    pub(super) async fn request(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, Fault> {
        let count = commands.len();
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::with_capacity(count);
        for command in commands {
            pipeline.add_command(command);
        }
        let mut connection = self.connection.clone();
        let fail = |why: &str| {
            self.close();
            Err(unconfirmed(&self.server, why))
        };
        match timeout(self.timeout, connection.send_packed_commands(&pipeline, 0, count)).await {
            Ok(Ok(replies)) if replies.len() == count => {
                if replies.iter().any(is_from_wrong_server) {
                    self.close();
                }
                Ok(replies)
            }
            Ok(Ok(replies)) => fail(&format!("Redis sent {} replies to {count} commands", replies.len())),
            Ok(Err(error)) => fail(&format!("the connection broke before the reply arrived ({error})")),
            Err(_) => fail(&format!("no reply within {:?}", self.timeout)),
        }
    }

    /// Whether a script was loaded over this connection.
    pub(super) fn has_script(&self, script: &'static Script) -> bool {
        lock_mutex(&self.loaded_scripts).contains(script.sha())
    }

    /// Remembers that a script was loaded over this connection.
    pub(super) fn mark_script_loaded(&self, script: &'static Script) {
        lock_mutex(&self.loaded_scripts).insert(script.sha());
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Opens a connection that subscribes to channels.
pub(super) async fn open_pubsub(url: &RedisUrl, server: &ServerAddress) -> Result<PubSub, ConnectError> {
    let limit = url.settings.timeout;
    let opened = timeout(limit, async {
        let stream = transport::open(url, server).await?;
        let set_up = PubSub::new(&login_of(url, LoginKind::DataServer), stream).await;
        set_up.map_err(|error| login_error(url, server, LoginKind::DataServer, &error))
    });
    opened.await.map_err(|_| no_reply(url, server))?
}

fn login_of(url: &RedisUrl, login: LoginKind) -> RedisConnectionInfo {
    let (UrlCredentials { user, password }, db) = match (login, &url.topology) {
        (LoginKind::Sentinel, Topology::Sentinel { login, .. }) => (login, 0),
        _ => (&url.credentials, url.db),
    };
    let mut info = RedisConnectionInfo::default().set_db(i64::from(db)).set_skip_set_lib_name();
    if let Some(user) = user {
        info = info.set_username(user);
    }
    // A user without a password has an empty one. Without any password the client ignores the user.
    let password = password.as_deref().or(user.as_ref().map(|_| ""));
    if let Some(password) = password {
        info = info.set_password(password);
    }
    info
}

fn is_from_wrong_server(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if faults::is_wrong_server(error))
}

/// The error of a server that rejects the connection. What only a person can correct is not transient.
fn login_error(url: &RedisUrl, server: &ServerAddress, login: LoginKind, error: &RedisError) -> ConnectError {
    let message = |what: &str| format!("{server}: {what} ({error})");
    let text = error.to_string();
    let is_about_password = matches!(error.code(), Some("WRONGPASS" | "NOAUTH"))
        || error.kind() == redis::ErrorKind::AuthenticationFailed
        || text.contains(NO_PASSWORD);
    let fault = match (error.code(), login) {
        _ if is_about_password && matches!(login, LoginKind::Sentinel) => Fault::Permanent(message(SENTINEL_PASSWORD)),
        _ if is_about_password => Fault::Permanent(message(faults::WRONG_PASSWORD)),
        (Some("NOPERM"), _) => Fault::Permanent(message(faults::NO_PERMISSION)),
        _ if text.contains(NO_DATABASE) => Fault::Permanent(message(WRONG_DATABASE)),
        (Some("LOADING"), _) => Fault::Unavailable(message(faults::LOADING)),
        _ => Fault::Unavailable(message("Redis rejects the connection")),
    };
    let is_transient = fault.is_transient();
    let error_without_code = error.code().is_none() && is_transient;
    let connect_error = ConnectError::from(fault);
    // Without an error code the peer did not speak the Redis protocol, or closed the connection.
    if error_without_code { connect_error.with_hint(transport::tls_hint(url)) } else { connect_error }
}

/// Texts of the server and of the client library, for which there is no error code.
const NO_PASSWORD: &str = "Authentication required";
const NO_DATABASE: &str = "refused to switch database";

const SENTINEL_PASSWORD: &str =
    "the Sentinel rejects the user or the password; check sentinel_user and sentinel_password in the URL";
const WRONG_DATABASE: &str = "cannot select the database of the URL; check the number at the end of its path, which must be \
                              below the `databases` setting of the server";

fn no_reply(url: &RedisUrl, server: &ServerAddress) -> ConnectError {
    let why = format!("no reply within {:?}", url.settings.timeout);
    ConnectError::from(unreachable(server, &why)).with_hint(transport::tls_hint(url))
}
