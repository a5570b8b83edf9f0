//! An HTTP service for tests: it keeps every request, and replies as the test says, or badly. Each test binary includes
//! this file as a module.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request that was read completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Headers by lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What the service does with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServiceReply {
    /// Replies with a status, headers (each line with its end) and a body.
    Status(u16, String, Vec<u8>),
    /// Promises more of a body than it sends.
    Truncate,
    /// Closes the connection without a reply.
    Close,
    /// Keeps the connection open and never replies.
    Hang,
}

/// A service on a port of its own. Its threads end with the test process.
pub(crate) struct TestService {
    pub(crate) port: u16,
    shared: Arc<ServiceShared>,
}

struct ServiceShared {
    react: Box<dyn Fn(&ServiceRequest) -> ServiceReply + Send + Sync>,
    requests: Mutex<Vec<ServiceRequest>>,
    /// Requests without a reply whose connection the client has closed.
    abandoned: AtomicUsize,
}

impl ServiceReply {
    /// A success with this body.
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::Status(200, String::new(), body.into())
    }

    /// A reply with this status and no body.
    pub(crate) fn status(status: u16) -> Self {
        Self::Status(status, String::new(), Vec::new())
    }
}

impl ServiceRequest {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The run that sent it.
    pub(crate) fn key(&self) -> &str {
        self.header("idempotency-key")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl TestService {
    /// Starts a service. Requests that were received before are kept when `react` is called.
    pub(crate) fn start(react: impl Fn(&ServiceRequest) -> ServiceReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (requests, abandoned) = (Mutex::default(), AtomicUsize::new(0));
        let shared = Arc::new(ServiceShared { react: Box::new(react), requests, abandoned });
        let server = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = Arc::clone(&server);
                thread::spawn(move || server.serve(stream));
            }
        });
        Self { port, shared }
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests for a path so far, in their order.
    pub(crate) fn requests(&self, path: &str) -> Vec<ServiceRequest> {
        let all = self.shared.requests.lock().expect("no thread panics with it");
        all.iter().filter(|request| request.path == path).cloned().collect()
    }

    /// How many requests without a reply the client has given up.
    pub(crate) fn abandoned(&self) -> usize {
        self.shared.abandoned.load(Ordering::SeqCst)
    }
}

impl ServiceShared {
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let request = read_request(&mut reader)?;
        self.requests.lock().expect("no thread panics with it").push(request.clone());
        match (self.react)(&request) {
            ServiceReply::Status(status, headers, body) => {
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n");
                stream.write_all(head.as_bytes()).ok()?;
                stream.write_all(if request.method == "HEAD" { b"" } else { &body }).ok()
            }
            ServiceReply::Truncate => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\nready").ok(),
            ServiceReply::Close => None,
            ServiceReply::Hang => {
                let _ = reader.read_to_end(&mut Vec::new());
                self.abandoned.fetch_add(1, Ordering::SeqCst);
                None
            }
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<ServiceRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        // The sender may have been killed in the middle of its request.
        if reader.read_line(&mut header).ok()? == 0 {
            return None;
        }
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(ServiceRequest { method, path, headers, body })
}

/// A small service of remote tasks: `POST /tasks` starts one, and the same one for the same idempotency key;
/// `GET /tasks/N` shows its state; `POST /tasks/N/cancel` cancels it.
pub(crate) struct TaskService {
    pub(crate) service: TestService,
    tasks: Arc<Mutex<TaskTable>>,
}

#[derive(Default)]
struct TaskTable {
    /// The states of the tasks, by their number less one.
    states: Vec<String>,
    /// The task of each idempotency key.
    keys: BTreeMap<String, usize>,
    /// Whether the replies to starts are withheld.
    withholds_starts: bool,
}

impl TaskService {
    pub(crate) fn start() -> Self {
        let tasks: Arc<Mutex<TaskTable>> = Arc::default();
        let shared = Arc::clone(&tasks);
        let react = move |request: &ServiceRequest| shared.lock().expect("no thread panics with it").react(request);
        Self { service: TestService::start(react), tasks }
    }

    /// A job file with a program that runs a task, without other keys.
    pub(crate) fn program(&self) -> String {
        let url = self.service.url("/tasks");
        format!(
            "program:\n  remote:\n    start: {{url: '{url}', method: POST, body: '{{\"run\": \"{{{{ run_id }}}}\"}}'}}\n    poll: '{url}/{{{{ task.id }}}}'\n    cancel: {{url: '{url}/{{{{ task.id }}}}/cancel', method: POST}}\n    every: 100ms\n    success: answer.state == 'DONE'\n    failure: answer.state == 'FAILED' or answer.state == 'CANCELLED'\n"
        )
    }

    /// The number of tasks that were started.
    pub(crate) fn count(&self) -> usize {
        self.table().states.len()
    }

    /// Sets the state of a task.
    pub(crate) fn set(&self, task: usize, state: &str) {
        self.table().states[task - 1] = state.to_owned();
    }

    pub(crate) fn state(&self, task: usize) -> String {
        self.table().states[task - 1].clone()
    }

    /// How often a task was polled.
    pub(crate) fn polls(&self, task: usize) -> usize {
        self.service.requests(&format!("/tasks/{task}")).len()
    }

    /// Lets the service start tasks without replying, or reply again.
    pub(crate) fn withhold_starts(&self, withholds: bool) {
        self.table().withholds_starts = withholds;
    }

    fn table(&self) -> std::sync::MutexGuard<'_, TaskTable> {
        self.tasks.lock().expect("no thread panics with it")
    }
}

impl TaskTable {
    fn react(&mut self, request: &ServiceRequest) -> ServiceReply {
        let show = |id: usize, state: &str| ServiceReply::ok(format!("{{\"id\": {id}, \"state\": \"{state}\"}}"));
        let rest = request.path.strip_prefix("/tasks").unwrap_or_default();
        if rest.is_empty() {
            let next = self.states.len() + 1;
            let id = *self.keys.entry(request.key().to_owned()).or_insert(next);
            if id == next {
                self.states.push("RUNNING".to_owned());
            }
            return if self.withholds_starts { ServiceReply::Hang } else { show(id, "NEW") };
        }
        let (id, verb) = rest[1..].split_once('/').unwrap_or((&rest[1..], ""));
        let Some(state) = id.parse::<usize>().ok().and_then(|id| self.states.get_mut(id - 1)) else {
            return ServiceReply::status(404);
        };
        if verb == "cancel" {
            "CANCELLED".clone_into(state);
        }
        show(id.parse().expect("it is a number"), state)
    }
}
