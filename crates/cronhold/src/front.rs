//! The way in for everybody else: the address that is listened on, who may come in, and the server that answers. Listening
//! comes before anything is started, so that an address that is taken costs nothing.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cronhold_api::{Address, Token};
use cronhold_cli::{Failure, UpArgs};
use cronhold_core::NodeId;
use cronhold_engine::{Clock, Handle};
use cronhold_server::{AddressFile, App, Door, Feed, Listen, ListenError, Listening, Server};
use cronhold_store::Store;

use crate::chance::SystemEntropy;
use crate::clock;
use crate::home::Home;
use crate::job_files::Shelf;
use crate::outside::VERSION;

/// Somebody listens, and does not answer yet.
#[derive(Debug)]
pub(crate) struct Front {
    listening: Listening,
    door: Door,
    /// Whether a link to the page is wanted.
    wants_link: bool,
}

/// What answers are made from.
pub(crate) struct Known {
    pub(crate) node: Handle,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) this: NodeId,
}

/// A server that answers, and the file by which it is found.
#[derive(Debug)]
pub(crate) struct Face {
    url: String,
    link: Option<String>,
    is_ready: Arc<AtomicBool>,
    answering: Mutex<Option<(Server, AddressFile)>>,
}

/// Where to listen; nowhere, if that is wanted.
pub(crate) fn listen(up: &UpArgs) -> Result<Option<Listen>, Failure> {
    if up.no_listen {
        return Ok(None);
    }
    let address = Listen::parse(&up.listen).map_err(|error| Failure::flag("--listen", error))?;
    if !address.ip().is_loopback() && !up.insecure_listen {
        let open = ListenError::Open(address);
        return Err(Failure::usage(format!("--listen: {open}"), open.hint()));
    }
    Ok(Some(Listen { address, is_open: up.insecure_listen, hosts: up.host.clone() }))
}

impl Front {
    /// Begins to listen. The first start makes the token, and then a link is wanted anyway.
    pub(crate) fn open(listen: &Listen, wants_link: bool, home: &Home) -> Result<Self, Failure> {
        let listening = listen.bind().map_err(|error| Failure::refused(error.to_string(), error.hint()))?;
        let token = home.path().join(Token::FILE);
        let is_first = !token.exists();
        let door = Door::open(home.path(), Arc::new(SystemEntropy)).map_err(|error| {
            let message = format!("the token in {} cannot be used: {error}", token.display());
            Failure::Refused { message, hint: None }
        })?;
        Ok(Self { listening, door, wants_link: wants_link || is_first })
    }

    /// Begins to answer, and leaves word where.
    pub(crate) fn answer(self, known: Known, home: &Home) -> Result<Face, Failure> {
        let Self { listening, door, wants_link } = self;
        let url = listening.url();
        let link = wants_link.then(|| format!("{url}/enter?once={}", door.code(clock::now())));
        let is_ready = Arc::new(AtomicBool::new(false));
        let Known { node, store, clock, shelf, feed, this } = known;
        let worlds = Arc::clone(&shelf);
        let app = App {
            node,
            store,
            clock,
            world: Arc::new(move || worlds.world()),
            files: shelf,
            feed,
            door,
            this,
            is_ready: Arc::clone(&is_ready),
            version: VERSION,
        };
        let cannot = |error: io::Error| {
            let message = format!("nobody can be answered on {url}: {error}");
            Failure::refused(message, "`--no-listen` starts the daemon without API and page")
        };
        let server = Server::start(listening, Arc::new(app)).map_err(cannot)?;
        let address = Address { url: url.clone(), pid: std::process::id(), since: clock::now() };
        let file = AddressFile::write(home.path(), &address).map_err(cannot)?;
        Ok(Face { url, link, is_ready, answering: Mutex::new(Some((server, file))) })
    }
}

impl Face {
    /// Where it answers.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A link that opens the page once, if one is wanted.
    pub(crate) fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }

    /// Says that the node has taken up everything.
    pub(crate) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    /// Answers who was heard already, and stops.
    pub(crate) fn stop(&self) {
        self.is_ready.store(false, Ordering::Release);
        drop(self.take());
    }

    /// Stops without waiting for anybody.
    pub(crate) fn abandon(&self) {
        if let Some((server, file)) = self.take() {
            drop(file);
            // It would wait for those who are being answered; its thread ends with the process.
            std::mem::forget(server);
        }
    }

    fn take(&self) -> Option<(Server, AddressFile)> {
        self.answering.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
