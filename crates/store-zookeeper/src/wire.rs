//! One session with the ensemble. Only this file sends anything with the client library: transactions, reads, syncs and
//! watches, each with a deadline. `faults.rs` maps the library's errors, and `tls.rs` makes its options.

use std::time::Duration;

use cronhold_schedule::Instant;
use cronhold_store::Fault;
use tokio::time::timeout;
use zookeeper_client::{
    Acls, AddWatchMode, Client, CreateMode, Error, EventType, MultiReadResult, MultiWriteError, MultiWriteResult,
    PersistentWatcher, SaslOptions, SessionState, Stat,
};

use crate::url::{AuthScheme, ZooKeeperUrl};
use crate::{faults, tls};

/// Bytes of the paths of one read, at most. Servers accept about a million unless they are configured otherwise.
const READ_BYTES_MAX: usize = 700_000;

/// Bytes of an operation of a transaction besides its path and its data: the version and the rights.
pub(crate) const WRITE_OPERATION_BYTES: usize = 80;

/// Bytes of a read besides its path.
const READ_OPERATION_BYTES: usize = 14;

/// A znode as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Znode {
    pub(crate) data: Vec<u8>,
    pub(crate) stat: ZnodeStat,
}

/// What the server knows about a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ZnodeStat {
    /// How often the data was set.
    pub(crate) version: i32,
    /// When the data was last set, by the clock of the leader at that time.
    pub(crate) modified: Instant,
    /// The transaction that last set the data. Its upper half counts leaders.
    pub(crate) zxid: i64,
}

/// One operation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ZnodeWrite {
    /// The znode must have this data version.
    Check { path: String, version: i32 },
    /// The znode must not exist.
    Create { path: String, data: Vec<u8>, is_ephemeral: bool },
    /// The znode must have this data version, or only exist.
    Set { path: String, data: Vec<u8>, version: Option<i32> },
    /// The znode must have this data version, or only exist.
    Delete { path: String, version: Option<i32> },
}

impl ZnodeWrite {
    /// Bytes of the operation in a transaction, at most.
    pub(crate) fn bytes(&self) -> usize {
        let (path, data) = match self {
            Self::Check { path, .. } | Self::Delete { path, .. } => (path, 0),
            Self::Create { path, data, .. } | Self::Set { path, data, .. } => (path, data.len()),
        };
        path.len() + data + WRITE_OPERATION_BYTES
    }
}

/// Why a transaction has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriteFailure {
    /// An operation was refused, so that none took effect.
    Refused(WriteRefusal),
    Fault(Fault),
}

/// An operation that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteRefusal {
    /// The place of the operation in its transaction.
    pub(crate) index: usize,
    pub(crate) reason: WriteRefusalReason,
}

/// Why an operation was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteRefusalReason {
    /// The znode has another data version.
    Version,
    /// The znode or its parent does not exist.
    Missing,
    /// The znode exists already.
    Exists,
    /// The znode has children.
    NotEmpty,
}

/// What a watch reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WatchReport {
    /// A znode was created, changed or deleted.
    Changed(String),
    /// The connection was lost.
    Interrupted,
    /// The session has a connection again, or is over. The watch reports nothing more: servers do not report what happened
    /// meanwhile, and the client library never sets the watch again. Its request to do so leaves out persistent watches,
    /// because `resend_watches` of version 0.11.2 always sends the form of the request that has no place for them.
    Ended,
}

/// A session. Its connection moves to another server when it is lost; the session ends only if that takes too long.
pub(crate) struct ZooKeeperSession {
    client: Client,
    servers: String,
    deadline: Duration,
    is_private: bool,
    /// Bytes of the paths of one read. A larger request would end the connection.
    read_bytes_max: usize,
}

/// A watch on a znode and everything below it.
#[derive(Debug)]
pub(crate) struct TreeWatch(PersistentWatcher);

impl ZooKeeperSession {
    /// Connects to one of the servers.
    pub(crate) async fn connect(url: &ZooKeeperUrl) -> Result<Self, Fault> {
        let deadline = url.settings().timeout;
        let mut connector = Client::connector().with_session_timeout(deadline).with_fail_eagerly();
        if let Some((user, password)) = url.credentials() {
            connector = match url.settings().auth {
                AuthScheme::Digest => connector.with_auth("digest", format!("{user}:{password}").as_bytes()),
                AuthScheme::Sasl => connector.with_sasl(SaslOptions::digest_md5(user.to_owned(), password.to_owned())),
            };
        }
        let servers = url.server_list();
        let connected = match url.tls() {
            Some(files) => timeout(deadline, connector.with_tls(tls::options(files)?).secure_connect(&servers)).await,
            None => timeout(deadline, connector.connect(&servers)).await,
        };
        let client = match connected {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(faults::of_connect(&servers, &error)),
            Err(_) => return Err(faults::unreachable(&servers, "no server replies")),
        };
        let read_bytes_max = url.request_bytes_max().min(READ_BYTES_MAX);
        Ok(Self { client, servers, deadline, is_private: url.credentials().is_some(), read_bytes_max })
    }

    /// Whether the session can still be used, now or after a reconnect.
    pub(crate) fn is_alive(&self) -> bool {
        !self.client.state().is_terminated()
    }

    /// Waits until the session has a connection. Nothing is sent without one, because the client would send it later,
    /// when the caller has given up.
    async fn connected(&self) -> Result<(), Fault> {
        let is_connected = |state: SessionState| state == SessionState::SyncConnected;
        if is_connected(self.client.state()) {
            return Ok(());
        }
        let mut states = self.client.state_watcher();
        let wait = async {
            loop {
                let state = states.state();
                if is_connected(state) || state.is_terminated() {
                    return state;
                }
                states.changed().await;
            }
        };
        match timeout(self.deadline, wait).await {
            Ok(state) if is_connected(state) => Ok(()),
            Ok(SessionState::AuthFailed) => Err(faults::unauthorized(&self.servers)),
            Ok(_) => Err(faults::unreachable(&self.servers, "the session has ended")),
            Err(_) => Err(faults::unreachable(&self.servers, "no server of the ensemble can be reached")),
        }
    }

    /// Sends a transaction, and returns its result later. Transactions take effect in the order of the calls.
    pub(crate) async fn submit<'s>(
        &'s self,
        writes: &[ZnodeWrite],
    ) -> Result<impl Future<Output = Result<Vec<Option<ZnodeStat>>, WriteFailure>> + Send + use<'s>, Fault> {
        self.connected().await?;
        let acls = if self.is_private { Acls::creator_all() } else { Acls::anyone_all() };
        let mut writer = self.client.new_multi_writer();
        for write in writes {
            let added = match write {
                ZnodeWrite::Check { path, version } => writer.add_check_version(path, *version),
                ZnodeWrite::Create { path, data, is_ephemeral } => {
                    let mode = if *is_ephemeral { CreateMode::Ephemeral } else { CreateMode::Persistent };
                    writer.add_create(path, data, &mode.with_acls(acls))
                }
                ZnodeWrite::Set { path, data, version } => writer.add_set_data(path, data, *version),
                ZnodeWrite::Delete { path, version } => writer.add_delete(path, *version),
            };
            added.map_err(|error| Fault::Permanent(format!("{}: {error}", self.servers)))?;
        }
        let reply = writer.commit();
        let (servers, deadline) = (&self.servers, self.deadline);
        Ok(async move {
            match timeout(deadline, reply).await {
                Ok(Ok(results)) => Ok(results.iter().map(stat_of_result).collect()),
                Ok(Err(error)) => Err(write_failure(servers, &error)),
                Err(_) => Err(WriteFailure::Fault(faults::unconfirmed(servers, "no reply"))),
            }
        })
    }

    /// Sends a transaction and waits for its result: the new state of each znode that was set.
    pub(crate) async fn write(&self, writes: &[ZnodeWrite]) -> Result<Vec<Option<ZnodeStat>>, WriteFailure> {
        self.submit(writes).await.map_err(WriteFailure::Fault)?.await
    }

    /// Sets the data of an existing znode, and returns its new state.
    pub(crate) async fn set(&self, path: &str, data: &[u8]) -> Result<ZnodeStat, Fault> {
        self.connected().await?;
        match timeout(self.deadline, self.client.set_data(path, data, None)).await {
            Ok(Ok(stat)) => Ok(ZnodeStat::of(&stat)),
            Ok(Err(error)) => Err(faults::of_write(&self.servers, &error)),
            Err(_) => Err(faults::unconfirmed(&self.servers, "no reply")),
        }
    }

    /// Reads znodes; `None` for those that do not exist. They are one snapshot unless their paths are too large for one
    /// request. With `is_latest`, it has everything that was written before the call.
    pub(crate) async fn read(&self, paths: &[String], is_latest: bool) -> Result<Vec<Option<Znode>>, Fault> {
        let mut znodes = Vec::with_capacity(paths.len());
        for paths in by_size(paths, self.read_bytes_max) {
            znodes.extend(self.read_part(paths, is_latest).await?);
        }
        Ok(znodes)
    }

    async fn read_part(&self, paths: &[String], is_latest: bool) -> Result<Vec<Option<Znode>>, Fault> {
        self.connected().await?;
        let unusable = |error: Error| faults::of_read(&self.servers, &error);
        let sync = is_latest.then(|| self.client.sync("/"));
        let mut reader = self.client.new_multi_reader();
        paths.iter().try_for_each(|path| reader.add_get_data(path)).map_err(unusable)?;
        let reply = reader.commit();
        let both = async {
            if let Some(sync) = sync {
                sync.await?;
            }
            reply.await
        };
        let results = self.in_time(both).await?.map_err(unusable)?;
        results
            .into_iter()
            .map(|result| match result {
                MultiReadResult::Data { data, stat } => Ok(Some(Znode { data, stat: ZnodeStat::of(&stat) })),
                MultiReadResult::Error { err: Error::NoNode } => Ok(None),
                MultiReadResult::Error { err } => Err(unusable(err)),
                _ => Err(faults::unexpected(&self.servers, "a list of children instead of data")),
            })
            .collect()
    }

    /// The names of the children of each znode, in any order; none for a znode that does not exist.
    pub(crate) async fn children(&self, paths: &[String]) -> Result<Vec<Vec<String>>, Fault> {
        Ok(self.find_children(paths).await?.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// The names of the children of each znode, in any order; `None` for a znode that does not exist.
    pub(crate) async fn find_children(&self, paths: &[String]) -> Result<Vec<Option<Vec<String>>>, Fault> {
        let mut found = Vec::with_capacity(paths.len());
        for paths in by_size(paths, self.read_bytes_max) {
            found.extend(self.find_children_part(paths).await?);
        }
        Ok(found)
    }

    async fn find_children_part(&self, paths: &[String]) -> Result<Vec<Option<Vec<String>>>, Fault> {
        self.connected().await?;
        let unusable = |error: Error| faults::of_read(&self.servers, &error);
        let mut reader = self.client.new_multi_reader();
        paths.iter().try_for_each(|path| reader.add_get_children(path)).map_err(unusable)?;
        let results = self.in_time(reader.commit()).await?.map_err(unusable)?;
        results
            .into_iter()
            .map(|result| match result {
                MultiReadResult::Children { children } => Ok(Some(children)),
                MultiReadResult::Error { err: Error::NoNode } => Ok(None),
                MultiReadResult::Error { err } => Err(unusable(err)),
                _ => Err(faults::unexpected(&self.servers, "data instead of a list of children")),
            })
            .collect()
    }

    /// The id of the session, which owns its ephemeral znodes.
    pub(crate) fn id(&self) -> i64 {
        self.client.session_id().0
    }

    /// The session that owns an ephemeral znode, and 0 for another znode; `None` if the znode does not exist.
    pub(crate) async fn owner(&self, path: &str) -> Result<Option<i64>, Fault> {
        self.connected().await?;
        let stat = self.in_time(self.client.check_stat(path)).await?;
        Ok(stat.map_err(|error| faults::of_read(&self.servers, &error))?.map(|stat| stat.ephemeral_owner))
    }

    /// Creates an ephemeral znode whose name is the prefix and a number that increases. Returns its path.
    pub(crate) async fn create_numbered(&self, prefix: &str) -> Result<String, Fault> {
        self.connected().await?;
        let acls = if self.is_private { Acls::creator_all() } else { Acls::anyone_all() };
        let options = CreateMode::EphemeralSequential.with_acls(acls);
        match timeout(self.deadline, self.client.create(prefix, b"", &options)).await {
            Ok(Ok((_, number))) => Ok(format!("{prefix}{number}")),
            Ok(Err(error)) => Err(faults::of_write(&self.servers, &error)),
            Err(_) => Err(faults::unconfirmed(&self.servers, "no reply")),
        }
    }

    /// Waits until the server has everything that was written before the call. Changes until then were reported to the
    /// watches of the session.
    pub(crate) async fn sync(&self) -> Result<(), Fault> {
        self.connected().await?;
        self.in_time(self.client.sync("/")).await?.map_err(|error| faults::of_read(&self.servers, &error))
    }

    /// Watches a znode and everything below it.
    pub(crate) async fn watch(&self, path: &str) -> Result<TreeWatch, Fault> {
        self.connected().await?;
        let watch = self.client.watch(path, AddWatchMode::PersistentRecursive);
        self.in_time(watch).await?.map(TreeWatch).map_err(|error| faults::of_read(&self.servers, &error))
    }

    async fn in_time<T>(&self, request: impl Future<Output = T>) -> Result<T, Fault> {
        timeout(self.deadline, request).await.map_err(|_| faults::unreachable(&self.servers, "no reply"))
    }
}

impl TreeWatch {
    /// The next report. It can be dropped without losing one. It must not be called after [`WatchReport::Ended`].
    pub(crate) async fn next(&mut self) -> WatchReport {
        loop {
            let event = self.0.changed().await;
            return match (event.event_type, event.session_state) {
                (EventType::Session, SessionState::Disconnected) => WatchReport::Interrupted,
                (EventType::Session, _) => WatchReport::Ended,
                // A recursive watch reports each child itself.
                (EventType::NodeChildrenChanged, _) => continue,
                _ => WatchReport::Changed(event.path),
            };
        }
    }
}

impl ZnodeStat {
    fn of(stat: &Stat) -> Self {
        Self { version: stat.version, modified: Instant::from_millis(stat.mtime), zxid: stat.mzxid }
    }

    /// The number of the leader that wrote the data.
    pub(crate) const fn leader(&self) -> i64 {
        self.zxid >> 32
    }
}

/// Splits paths into parts that fit into one read each.
fn by_size(paths: &[String], most: usize) -> impl Iterator<Item = &[String]> {
    let mut rest = paths;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |path: &&String| {
            bytes += path.len() + READ_OPERATION_BYTES;
            bytes <= most
        };
        // A path of a store is far smaller than a request.
        let count = rest.iter().take_while(fits).count().max(1).min(rest.len());
        let (part, others) = rest.split_at(count);
        rest = others;
        (!part.is_empty()).then_some(part)
    })
}

/// The new state of a znode that was set. Old servers report a wrong one for a created znode.
fn stat_of_result(result: &MultiWriteResult) -> Option<ZnodeStat> {
    match result {
        MultiWriteResult::SetData { stat } => Some(ZnodeStat::of(stat)),
        _ => None,
    }
}

fn write_failure(servers: &str, error: &MultiWriteError) -> WriteFailure {
    let (index, source) = match error {
        MultiWriteError::OperationFailed { index, source } => (*index, source),
        MultiWriteError::RequestFailed { source } => (0, source),
    };
    let reason = match source {
        Error::BadVersion => WriteRefusalReason::Version,
        Error::NoNode => WriteRefusalReason::Missing,
        Error::NodeExists => WriteRefusalReason::Exists,
        Error::NotEmpty => WriteRefusalReason::NotEmpty,
        other => return WriteFailure::Fault(faults::of_write(servers, other)),
    };
    WriteFailure::Refused(WriteRefusal { index, reason })
}

impl std::fmt::Debug for ZooKeeperSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ZooKeeperSession({})", self.servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_split_by_the_size_of_their_paths() {
        let paths: Vec<String> = ["a", "bb", "ccc", "dddd", "e"].map(|path| path.repeat(10)).to_vec();
        let split = |most: usize| by_size(&paths, most).map(<[String]>::len).collect::<Vec<_>>();
        assert_eq!(split(READ_BYTES_MAX), [5]);
        assert_eq!(split(24 + 34), [2, 1, 1, 1]);
        assert_eq!(split(54 + 24), [2, 1, 2]);
        assert_eq!(split(1), [1, 1, 1, 1, 1]);
        assert_eq!(by_size(&[], 100).count(), 0);
    }
}
