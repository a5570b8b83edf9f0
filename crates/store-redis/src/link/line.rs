//! One connection to one server, from its opening until it is noticed to be of no use any more. A line never comes back:
//! the link opens another.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cronhold_store::Fault;
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisError, Value};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::script::Script;
use super::wire;
use crate::faults;
use crate::url::{RedisUrl, Server, Way};

/// So many requests may wait to be written. Each is awaited by somebody, so that more would be a flood.
const WAITING_MAX: usize = 1024;

/// What moves bytes on a connection until it breaks.
type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Who asks, and for what.
#[derive(Clone, Copy)]
pub(super) enum Login {
    /// A server that holds records.
    Records,
    /// A Sentinel.
    Sentinel,
}

/// One connection to one server.
pub(super) struct Line {
    pub(super) server: Server,
    /// When it was opened.
    pub(super) since: Instant,
    connection: MultiplexedConnection,
    driver: AbortHandle,
    is_closed: Arc<AtomicBool>,
    /// The hashes of the scripts that this server was told.
    told: Mutex<BTreeSet<&'static str>>,
    timeout: Duration,
}

impl Line {
    /// Opens a connection and introduces itself.
    pub(super) async fn open(url: &RedisUrl, server: &Server, login: Login) -> Result<Self, Fault> {
        let limit = url.settings.timeout;
        let opened = timeout(limit, async {
            let wire = wire::open(url, server).await?;
            let config = AsyncConnectionConfig::new()
                .set_response_timeout(None)
                .set_connection_timeout(None)
                .set_pipeline_buffer_size(WAITING_MAX);
            let info = introduction(url, login);
            let set_up = MultiplexedConnection::new_with_config(&info, wire, config).await;
            let (connection, driver) = set_up.map_err(|error| refused(url, server, login, &error))?;
            let driver: Driver = Box::pin(driver);
            let line = Self::drive(server, connection, driver, limit);
            // The kernel takes connections for a server that is stopped. Only an answer shows that somebody is there.
            let answer = line.ask(vec![redis::cmd("PING")]).await.map_err(|fault| with_hint(url, fault))?.pop();
            match answer {
                Some(Value::ServerError(error)) => Err(refused(url, server, login, &error.into())),
                _ => Ok(line),
            }
        });
        // Nothing was asked of it yet: without an answer, nothing has happened.
        opened.await.unwrap_or_else(|_| Err(silent(url, server))).map_err(faults::as_unsent)
    }

    /// Lets the bytes move.
    fn drive(server: &Server, connection: MultiplexedConnection, driver: Driver, timeout: Duration) -> Self {
        let is_closed = Arc::new(AtomicBool::new(false));
        let flag = is_closed.clone();
        let driver = tokio::spawn(async move {
            driver.await;
            flag.store(true, Ordering::Release);
        });
        Self {
            server: server.clone(),
            since: Instant::now(),
            connection,
            driver: driver.abort_handle(),
            is_closed,
            told: Mutex::default(),
            timeout,
        }
    }

    /// Whether it is known to be of no use any more.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Ends it. Whoever still waits for an answer gets none.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.driver.abort();
    }

    /// Sends commands in one go. Errors of single commands are among the answers.
    pub(super) async fn ask(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, Fault> {
        let count = commands.len();
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::with_capacity(count);
        for command in commands {
            pipeline.add_command(command);
        }
        let mut connection = self.connection.clone();
        let unanswered = |why: &str| {
            self.close();
            Err(faults::unanswered(&self.server.to_string(), why))
        };
        match timeout(self.timeout, connection.send_packed_commands(&pipeline, 0, count)).await {
            Ok(Ok(answers)) if answers.len() == count => {
                if answers.iter().any(is_of_wrong_server) {
                    self.close();
                }
                Ok(answers)
            }
            Ok(Ok(_)) => unanswered("Redis answered something else than was asked"),
            Ok(Err(error)) => unanswered(&format!("the connection broke before the answer came ({error})")),
            Err(_) => unanswered(&format!("no answer came for {:?}", self.timeout)),
        }
    }

    /// Whether this server was told a script.
    pub(super) fn knows(&self, script: &'static Script) -> bool {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).contains(script.sha())
    }

    /// Remembers that this server was told a script.
    pub(super) fn has_told(&self, script: &'static Script) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(script.sha());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Opens a connection for messages of channels.
pub(super) async fn open_channels(url: &RedisUrl, server: &Server) -> Result<PubSub, Fault> {
    let limit = url.settings.timeout;
    let opened = timeout(limit, async {
        let wire = wire::open(url, server).await?;
        let set_up = PubSub::new(&introduction(url, Login::Records), wire).await;
        set_up.map_err(|error| refused(url, server, Login::Records, &error))
    });
    opened.await.map_err(|_| silent(url, server))?
}

fn introduction(url: &RedisUrl, login: Login) -> RedisConnectionInfo {
    let (user, password, db) = match (login, &url.way) {
        (Login::Sentinel, Way::Sentinel { user, password, .. }) => (user, password, 0),
        _ => (&url.user, &url.password, url.db),
    };
    let mut info = RedisConnectionInfo::default().set_db(i64::from(db)).set_skip_set_lib_name();
    if let Some(user) = user {
        info = info.set_username(user);
    }
    // A user without a password has an empty one; without any, the user would be ignored.
    let password = password.as_deref().or(user.as_ref().map(|_| ""));
    if let Some(password) = password {
        info = info.set_password(password);
    }
    info
}

fn is_of_wrong_server(answer: &Value) -> bool {
    matches!(answer, Value::ServerError(error) if faults::is_wrong_server(error))
}

/// What a server means that does not take the connection. What only a person can put right is no passing fault.
fn refused(url: &RedisUrl, server: &Server, login: Login, error: &RedisError) -> Fault {
    let told = |what: &str| format!("{server}: {what} ({error})");
    let text = error.to_string();
    let is_about_password = matches!(error.code(), Some("WRONGPASS" | "NOAUTH"))
        || error.kind() == redis::ErrorKind::AuthenticationFailed
        || text.contains(NO_PASSWORD);
    match (error.code(), login) {
        _ if is_about_password && matches!(login, Login::Sentinel) => Fault::Broken(told(SENTINEL_PASSWORD)),
        _ if is_about_password => Fault::Broken(told(faults::PASSWORD)),
        (Some("NOPERM"), _) => Fault::Broken(told(faults::RIGHTS)),
        _ if text.contains(NO_DATABASE) => Fault::Broken(told(DATABASE)),
        (Some("LOADING"), _) => Fault::Away(told("Redis is still reading its data")),
        (Some(_), _) => Fault::Away(told("Redis does not take the connection")),
        // What it said is none of Redis' words, or it said nothing.
        (None, _) => with_hint(url, Fault::Away(told("Redis does not take the connection"))),
    }
}

/// What the servers and the client say of a line whose password is missing, and of a database that there is not.
const NO_PASSWORD: &str = "Authentication required";
const NO_DATABASE: &str = "refused to switch database";

const SENTINEL_PASSWORD: &str =
    "the Sentinel does not accept the user or the password; look at sentinel_user and sentinel_password in the URL";
const DATABASE: &str = "the database of the URL cannot be chosen; look at the number at the end of its path, which must be \
                        below the `databases` of the server";

fn silent(url: &RedisUrl, server: &Server) -> Fault {
    let why = format!("nobody answers there within {:?}", url.settings.timeout);
    with_hint(url, faults::unreached(&server.to_string(), &why))
}

/// A line that comes to nothing may be one that only one side encrypts.
fn with_hint(url: &RedisUrl, fault: Fault) -> Fault {
    match fault {
        Fault::Away(why) | Fault::Unknown(why) => Fault::Away(format!("{why}; {}", wire::hint(url))),
        other => other,
    }
}

/// The same without that, for servers that have answered before: they are only away.
pub(super) fn without_hint(url: &RedisUrl, fault: Fault) -> Fault {
    match fault {
        Fault::Away(why) => Fault::Away(why.replace(&format!("; {}", wire::hint(url)), "")),
        other => other,
    }
}
