//! A ZooKeeper server that a test starts, suspends, kills and starts again.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cronhold_store_remote::testing::{Certificates, ServerProcess, TestFolder, start_on_free_port, until};

use crate::ensemble::random;
use crate::url::ZooKeeperUrl;

/// The hint if the server is not installed.
const INSTALL: &str =
    "ZooKeeper cannot be started; install it: apt-get install libzookeeper-java libslf4j-java default-jre-headless";

/// Debian's library of the server; its manifest names the others.
const SERVER_JAR: &str = "/usr/share/java/zookeeper.jar";

/// A log that goes nowhere, and what encrypted connections need besides.
const OTHER_JARS: &str =
    "/usr/share/java/slf4j-nop.jar:/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar";

const MAIN: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

/// A server process. Dropping it kills the process and removes its folder.
#[derive(Debug)]
pub struct ZooKeeperServer {
    folder: TestFolder,
    port: u16,
    process: Option<ServerProcess>,
    certificates: Option<Certificates>,
    /// Users with their passwords, if clients log in with SASL.
    users: &'static [(&'static str, &'static str)],
    member: Option<EnsembleMember>,
}

/// The place of a server in an ensemble.
#[derive(Debug, Clone)]
pub(super) struct EnsembleMember {
    /// From 1.
    pub(super) number: usize,
    /// The lines of the configuration that name all members.
    pub(super) servers: String,
}

impl ZooKeeperServer {
    /// Starts a server.
    pub fn start() -> Self {
        Self::start_with(false, &[])
    }

    /// Starts a server that only accepts encrypted connections.
    pub fn start_encrypted() -> Self {
        Self::start_with(true, &[])
    }

    /// Starts a server whose users log in with SASL, and which accepts no other sessions.
    pub fn start_with_users(users: &'static [(&'static str, &'static str)]) -> Self {
        Self::start_with(false, users)
    }

    fn start_with(is_encrypted: bool, users: &'static [(&'static str, &'static str)]) -> Self {
        start_on_free_port(|port| {
            let folder = TestFolder::new("zookeeper");
            let certificates = is_encrypted.then(|| Certificates::create(folder.path()));
            let mut server = Self { folder, port, process: None, certificates, users, member: None };
            if server.try_start() { Ok(server) } else { Err("the server has ended".to_owned()) }
        })
    }

    /// A member of an ensemble, which is not started yet.
    pub(super) fn of_ensemble(port: u16, member: EnsembleMember) -> Self {
        let folder = TestFolder::new("zookeeper");
        std::fs::create_dir_all(folder.path().join("data")).expect("the folder is ours");
        std::fs::write(folder.path().join("data/myid"), member.number.to_string()).expect("the folder is ours");
        Self { folder, port, process: None, certificates: None, users: &[], member: Some(member) }
    }

    /// Starts the process, and does not wait until it replies.
    pub(super) fn launch(&mut self) {
        assert!(Path::new(SERVER_JAR).exists(), "{INSTALL}");
        std::fs::create_dir_all(self.data()).expect("the folder is ours");
        let config = self.folder.path().join("zoo.cfg");
        std::fs::write(&config, self.config()).expect("the folder is ours");
        let mut command = Command::new("java");
        command.args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.jmx.log4j.disable=true"]);
        if !self.users.is_empty() {
            let file = self.folder.path().join("jaas.conf");
            let users: String =
                self.users.iter().map(|(name, password)| format!(" user_{name}=\"{password}\"")).collect();
            let login = "org.apache.zookeeper.server.auth.DigestLoginModule";
            std::fs::write(&file, format!("Server {{\n  {login} required{users};\n}};\n")).expect("the folder is ours");
            command.arg(format!("-Djava.security.auth.login.config={}", file.display()));
            command.arg("-Dzookeeper.sessionRequireClientSASLAuth=true");
        }
        command.arg("-cp").arg(format!("{SERVER_JAR}:{OTHER_JARS}")).arg(MAIN).arg(&config);
        self.process = Some(ServerProcess::spawn(&mut command, INSTALL));
    }

    /// Whether it leads an ensemble; `None` if it does not reply.
    pub(super) fn is_leader(&self) -> Option<bool> {
        srvr(self.port).filter(|reply| reply.contains("Mode:")).map(|reply| reply.contains("Mode: leader"))
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server whose `host:port` a file contains, or else a new one, and the URL of a root that no other test uses.
    /// `./dev test` starts a server for all tests and writes the file.
    pub fn shared_or_new(file: &Path, params: &str) -> (Option<Self>, ZooKeeperUrl) {
        let root = format!("/test-{:016x}", random().expect("the system has random numbers"));
        let named = std::fs::read_to_string(file).unwrap_or_default();
        let shared =
            named.trim().rsplit_once(':').and_then(|(_, port)| port.parse().ok()).filter(|port| srvr(*port).is_some());
        let (server, base) = match shared {
            Some(port) => (None, format!("zk://127.0.0.1:{port}{root}")),
            None => {
                let server = Self::start();
                let base = server.url(&root);
                (Some(server), base)
            }
        };
        let url = ZooKeeperUrl::parse(&format!("{base}?{params}"), None).expect("a valid URL");
        (server, url)
    }

    /// The URL of a root.
    pub fn url(&self, root: &str) -> String {
        match &self.certificates {
            Some(files) => format!("zks://127.0.0.1:{}{root}?ca={}", self.port, files.ca.display()),
            None => format!("zk://127.0.0.1:{}{root}", self.port),
        }
    }

    /// A number that the server counts, such as `zk_packets_received`.
    pub fn count(&self, name: &str) -> u64 {
        let text = reply(self.port, "mntr").unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.expect("the server counts it")
    }

    /// Kills the process. Its files stay.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts the server on the same port and with its files. Kills it first if it is running.
    pub fn restart(&mut self) {
        self.kill();
        until("the server starts again on its port", || self.try_start().then_some(()));
    }

    /// Starts the server without its files.
    pub fn restart_empty(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.data()).expect("the folder is ours");
        self.restart();
    }

    /// Copies the files as they are now, while the server may be running.
    pub fn back_up(&self) {
        let _ = std::fs::remove_dir_all(self.backup());
        copy_folder(&self.data(), &self.backup());
    }

    /// Kills the process, and replaces its files by their copy.
    pub fn restore(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.data()).expect("the folder is ours");
        copy_folder(&self.backup(), &self.data());
    }

    /// Suspends the process: connections stay open, and it does not reply.
    pub fn suspend(&self) {
        self.process.as_ref().expect("the server runs").suspend();
    }

    /// Continues a suspended process.
    pub fn resume(&self) {
        self.process.as_ref().expect("the server runs").resume();
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn backup(&self) -> PathBuf {
        self.folder.path().join("backup")
    }

    /// Starts the process and waits until it replies; false if it has ended.
    fn try_start(&mut self) -> bool {
        self.launch();
        let (port, is_encrypted) = (self.port, self.certificates.is_some());
        let process = self.process.as_mut().expect("it was launched");
        process.wait_until_ready(|| match is_encrypted {
            true => TcpStream::connect(("127.0.0.1", port)).is_ok(),
            false => srvr(port).is_some_and(|reply| reply.contains("Mode:")),
        })
    }

    fn config(&self) -> String {
        let mut text = format!(
            "dataDir={}\ntickTime=500\nadmin.enableServer=false\nmaxClientCnxns=0\npreAllocSize=1024\n\
             4lw.commands.whitelist=srvr,ruok,mntr\n",
            self.data().display()
        );
        if !self.users.is_empty() {
            text.push_str("authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n");
        }
        if let Some(member) = &self.member {
            let _ = write!(text, "initLimit=10\nsyncLimit=4\n{}", member.servers);
        }
        match &self.certificates {
            Some(files) => {
                let combined = self.folder.path().join("combined.pem");
                let read = |path: &Path| std::fs::read_to_string(path).expect("it was just written");
                let pem = read(&files.certificate) + &read(&files.key);
                std::fs::write(&combined, pem).expect("the folder is ours");
                let (keys, trust) = (combined.display(), files.ca.display());
                let _ = write!(
                    text,
                    "secureClientPort={}\nsecureClientPortAddress=127.0.0.1\nssl.clientAuth=none\n\
                     serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
                     ssl.keyStore.location={keys}\nssl.keyStore.type=PEM\nssl.trustStore.location={trust}\n\
                     ssl.trustStore.type=PEM\n",
                    self.port
                );
            }
            None => {
                let _ = write!(text, "clientPort={}\nclientPortAddress=127.0.0.1\n", self.port);
            }
        }
        text
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the folder is ours");
    for entry in std::fs::read_dir(from).expect("the folder is ours").flatten() {
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &copy);
        } else {
            std::fs::copy(&path, &copy).expect("the folder is ours");
        }
    }
}

/// The reply to the command `srvr`; `None` without one.
fn srvr(port: u16) -> Option<String> {
    reply(port, "srvr")
}

/// The reply to a command of four letters; `None` without one.
fn reply(port: u16, command: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let limit = Some(Duration::from_secs(1));
    stream.set_read_timeout(limit).and_then(|()| stream.set_write_timeout(limit)).ok()?;
    let mut reply = String::new();
    stream.write_all(command.as_bytes()).and_then(|()| stream.read_to_string(&mut reply)).ok()?;
    Some(reply)
}
