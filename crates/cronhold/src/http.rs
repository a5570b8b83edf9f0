//! The HTTP server of the daemon: the address, the authentication, and the thread that serves requests. The address is
//! bound before anything else starts, so that the daemon exits before it touches any program if the address is in use.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_api::{AdminToken, CallerRole, DaemonLocation, SOCKET};
use cronhold_cli::{CliError, UpArgs};
use cronhold_core::{NodeId, RunId};
use cronhold_engine::{MachineClock, NodeHandle};
use cronhold_server::{
    AddressFile, AppState, Authenticator, BoundListener, FeedBuffer, HttpServer, ListenError, ListenOptions,
    LocalListener, ProgramAccess,
};
use cronhold_store::Store;
use cronhold_store::lock_mutex;
use tracing::info;

use crate::chance::SystemEntropy;
use crate::clock;
use crate::daemon::VERSION;
use crate::job_files::JobFileStatus;
use crate::state_dir::StateDir;

/// A server whose address is bound, and which does not serve requests yet.
#[derive(Debug)]
pub(crate) struct BoundServer {
    listening: BoundListener,
    authenticator: Authenticator,
    wants_link: bool,
    /// The role of programs that call `cronhold`.
    programs: CallerRole,
    /// Whether the daemon has just created its token.
    is_first: bool,
}

/// What the server needs to serve requests.
pub(crate) struct ServerParts {
    pub(crate) node: NodeHandle,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn MachineClock>,
    pub(crate) status: Arc<JobFileStatus>,
    pub(crate) feed: Arc<FeedBuffer>,
    pub(crate) this: NodeId,
}

/// A server that serves requests, and the file by which commands find it.
#[derive(Debug)]
pub(crate) struct RunningServer {
    url: String,
    /// A link to the page that is to be printed.
    link: Option<String>,
    is_first: bool,
    is_ready: Arc<AtomicBool>,
    running: Mutex<Option<(HttpServer, AddressFile)>>,
}

/// The address from the command line; `None` with `--no-listen`.
pub(crate) fn listen(up: &UpArgs) -> Result<Option<ListenOptions>, CliError> {
    if up.no_listen {
        return Ok(None);
    }
    let address = ListenOptions::parse(&up.listen).map_err(|error| CliError::flag("--listen", error))?;
    if !address.ip().is_loopback() && !up.insecure_listen {
        let open = ListenError::Open(address);
        return Err(CliError::usage(format!("--listen: {open}"), open.hint()));
    }
    Ok(Some(ListenOptions { address, is_open: up.insecure_listen, hosts: up.host.clone() }))
}

impl BoundServer {
    /// Binds the address. The first start creates the token.
    pub(crate) fn bind(listen: &ListenOptions, up: &UpArgs, home: &StateDir) -> Result<Self, CliError> {
        let listening = listen.bind().map_err(|error| CliError::refused(error.to_string(), error.hint()))?;
        let token = home.path().join(AdminToken::FILE);
        let is_first = !token.exists();
        let authenticator = Authenticator::open(home.path(), Arc::new(SystemEntropy)).map_err(|error| {
            let message = format!("cannot use the token in {}: {error}", token.display());
            CliError::Refused { message, hint: None }
        })?;
        Ok(Self { listening, authenticator, wants_link: up.link, programs: up.programs, is_first })
    }

    /// Starts to serve requests, and writes the address file.
    pub(crate) fn start(self, parts: ServerParts, home: &StateDir) -> Result<RunningServer, CliError> {
        let Self { listening, authenticator, wants_link, programs, is_first } = self;
        let url = listening.url();
        // The output of a service goes into a log that others may read.
        let prints_link = wants_link || is_first && io::stdout().is_terminal();
        let link = prints_link.then(|| authenticator.link(&url, clock::now()));
        let is_ready = Arc::new(AtomicBool::new(false));
        let ServerParts { node, store, clock, status, feed, this } = parts;
        let worlds = Arc::clone(&status);
        let run_of_process = |pid| RunId::parse(&cronhold_keeper::run_of_process(pid)?.to_string()).ok();
        let programs = ProgramAccess { role: programs, run_of_process: Arc::new(run_of_process) };
        let app = AppState {
            node,
            store,
            clock,
            world: Arc::new(move || worlds.world()),
            files: status,
            feed,
            auth: authenticator,
            programs,
            this,
            is_ready: Arc::clone(&is_ready),
            version: VERSION,
        };
        let cannot = |error: io::Error| {
            let message = format!("cannot serve requests on {url}: {error}");
            CliError::refused(message, "`--no-listen` starts the daemon without API and page")
        };
        let local = LocalListener::bind(home.path()).map_err(|error| {
            let message = format!("cannot create the socket {}: {error}", home.path().join(SOCKET).display());
            CliError::refused(message, "check that the data directory is on a local file system and writable")
        })?;
        let server = HttpServer::start(listening, Some(local), Arc::new(app)).map_err(cannot)?;
        let address = DaemonLocation { url: url.clone(), pid: std::process::id(), since: clock::now() };
        let file = AddressFile::write(home.path(), &address).map_err(cannot)?;
        Ok(RunningServer { url, link, is_first, is_ready, running: Mutex::new(Some((server, file))) })
    }
}

impl RunningServer {
    /// The address of the server, as a URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Prints the link to the page, or logs at the first start how to get one. The link itself is never logged.
    pub(crate) fn show_link(&self) {
        if let Some(link) = &self.link {
            // Without a reader of standard output, `cronhold token link` prints another link.
            let _ = writeln!(io::stdout(), "Open the page with this link, which works once: {link}");
        } else if self.is_first {
            info!(event = "page_link", "`cronhold token link` prints a link that opens the page");
        }
    }

    /// Reports the node as ready from now on.
    pub(crate) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    /// Finishes the requests in progress, and stops.
    pub(crate) fn stop(&self) {
        self.is_ready.store(false, Ordering::Release);
        drop(self.take());
    }

    /// Stops without waiting for requests in progress.
    pub(crate) fn abandon(&self) {
        if let Some((server, file)) = self.take() {
            drop(file);
            // Dropping it would wait for requests in progress; its thread ends with the process.
            std::mem::forget(server);
        }
    }

    fn take(&self) -> Option<(HttpServer, AddressFile)> {
        lock_mutex(&self.running).take()
    }
}
