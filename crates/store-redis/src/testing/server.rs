//! One server process that a test starts, kills, freezes and queries.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use cronhold_store_remote::testing::{Certificates, ServerProcess, TestFolder, start_on_free_port, until};

use super::options::ServerOptions;

/// The hint if the program is not installed.
const INSTALL: &str = "redis-server cannot be started; install it: apt-get install redis-server redis-sentinel";

/// A server process. Dropping it kills the process and removes its directory.
#[derive(Debug)]
pub struct RedisServer {
    options: ServerOptions,
    /// The program, such as `redis-server`.
    program: &'static str,
    port: u16,
    process: Option<ServerProcess>,
    /// Directory of the server's data.
    keeps: TestFolder,
    /// Directory of its configuration, log and certificates.
    around: TestFolder,
    certificates: Option<Certificates>,
}

impl RedisServer {
    /// Starts a server with default options.
    pub fn start() -> Self {
        Self::start_with(ServerOptions::default())
    }

    /// Starts a server.
    pub fn start_with(options: ServerOptions) -> Self {
        Self::start_program("redis-server", options)
    }

    pub(super) fn start_program(program: &'static str, options: ServerOptions) -> Self {
        let (keeps, around) = (TestFolder::new("redis"), TestFolder::new("redis"));
        let certificates = options.tls.then(|| Certificates::create(around.path()));
        let mut server = Self { options, program, port: 0, process: None, keeps, around, certificates };
        start_on_free_port(|port| {
            server.port = port;
            if server.try_start() { Ok(()) } else { Err(server.log()) }
        });
        server
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL, for a user with all permissions.
    pub fn url(&self) -> String {
        self.url_with("")
    }

    /// Its URL with further parameters, such as `namespace={mine}&timeout=1s`.
    pub fn url_with(&self, params: &str) -> String {
        let scheme = if self.certificates.is_some() { "rediss" } else { "redis" };
        let password = self.options.password.map(|password| format!(":{password}@")).unwrap_or_default();
        let ca = self.certificates.as_ref().map(|files| format!("ca={}", files.ca.display()));
        let params: Vec<String> = ca.into_iter().chain([params.to_owned()]).filter(|param| !param.is_empty()).collect();
        let query = if params.is_empty() { String::new() } else { format!("?{}", params.join("&")) };
        format!("{scheme}://{password}127.0.0.1:{}{query}", self.port)
    }

    /// The file of the authority that signs its certificate.
    pub fn ca(&self) -> Option<PathBuf> {
        self.certificates.as_ref().map(|files| files.ca.clone())
    }

    /// Runs `redis-cli` and returns its output.
    pub fn cli(&self, args: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        if let Some(password) = self.options.password {
            command.args(["-a", password, "--no-auth-warning"]);
        }
        if let Some(files) = &self.certificates {
            command.arg("--tls").arg("--cacert").arg(&files.ca);
        }
        let output = command.args(args).stdin(Stdio::null()).output().expect(INSTALL);
        let text = String::from_utf8_lossy(&output.stdout);
        text.strip_suffix('\n').unwrap_or(&text).to_owned()
    }

    /// Kills the process. Its files stay.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Stops the process and waits for its end.
    pub fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.terminate();
        }
    }

    /// Restarts the server on the same port and with its files. Kills it first if it is running.
    pub fn restart(&mut self) {
        self.kill();
        let port = self.port;
        until("the server starts again on its port", || {
            self.port = port;
            self.try_start().then_some(())
        });
    }

    /// Restarts the server without its files.
    pub fn restart_empty(&mut self) {
        self.kill();
        self.keeps.clear();
        self.restart();
    }

    /// Freezes the process: connections stay open, and it does not reply.
    pub fn freeze(&self) {
        self.running().suspend();
    }

    /// Continues a frozen process.
    pub fn thaw(&self) {
        self.running().resume();
    }

    fn running(&self) -> &ServerProcess {
        self.process.as_ref().expect("the server runs")
    }

    /// Starts the process and waits until it replies; false if it has ended.
    fn try_start(&mut self) -> bool {
        let config = self.around.path().join("redis.conf");
        let mut lines = self.options.lines();
        let quoted = |path: PathBuf| format!("\"{}\"", path.display());
        lines.push(format!("dir {}", quoted(self.keeps.path().to_owned())));
        lines.push(format!("logfile {}", quoted(self.around.path().join("log"))));
        match &self.certificates {
            Some(files) => {
                lines.extend(["port 0".to_owned(), format!("tls-port {}", self.port)]);
                lines.push(format!("tls-cert-file {}", quoted(files.certificate.clone())));
                lines.push(format!("tls-key-file {}", quoted(files.key.clone())));
                lines.push(format!("tls-ca-cert-file {}", quoted(files.ca.clone())));
                lines.extend(["tls-auth-clients no".to_owned(), "tls-replication yes".to_owned()]);
            }
            None => lines.push(format!("port {}", self.port)),
        }
        std::fs::write(&config, lines.join("\n") + "\n").expect("the folder is ours");
        let mut process = ServerProcess::spawn(Command::new(self.program).arg(&config), INSTALL);
        let is_ready = process.wait_until_ready(|| self.answers());
        self.process = Some(process);
        is_ready
    }

    /// Whether it replies to commands. A request for a password counts as a reply.
    fn answers(&self) -> bool {
        if self.certificates.is_some() {
            let answer = self.cli(&["PING"]);
            return answer == "PONG" || answer.contains("NOAUTH");
        }
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let limit = Some(Duration::from_secs(1));
        let _ = stream.set_read_timeout(limit).and_then(|()| stream.set_write_timeout(limit));
        let mut answer = [0; 8];
        let read = stream.write_all(b"PING\r\n").and_then(|()| stream.read(&mut answer));
        read.is_ok_and(|count| answer[..count].starts_with(b"+PONG") || answer[..count].starts_with(b"-NOAUTH"))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.around.path().join("log")).unwrap_or_default()
    }
}
