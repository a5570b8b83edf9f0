//! A keeper in a process of its own, and a daemon that is connected to it. Tests leave no processes behind: at the end
//! the keeper is killed, and another one ends what it left.
#![expect(clippy::disallowed_methods, reason = "tests wait for real processes, within bounds of real time")]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cronhold_keeper::frames::{Inbox, encode};
use cronhold_keeper::{
    FromKeeper, ListedProgram, OutputLimits, PROTOCOL, PROTOCOL_OLDEST, ProcessLimits, ProgramEnd, ProgramLaunch,
    RunKey, ToKeeper,
};

/// Timeout of every wait in tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Microseconds.
pub(crate) const SECOND: u64 = 1_000_000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A data directory with a keeper.
pub(crate) struct Keeper {
    pub(crate) data: PathBuf,
    pub(crate) process: Child,
}

/// A daemon that is connected.
pub(crate) struct Daemon {
    pub(crate) stream: UnixStream,
    inbox: Inbox,
    /// Received messages that the test has not taken yet.
    received: VecDeque<FromKeeper>,
    /// The warnings of the keeper's hello.
    pub(crate) warnings: Vec<String>,
    /// The programs that the keeper listed.
    pub(crate) listed: Vec<ListedProgram>,
}

/// The keeper's binary for tests.
pub(crate) fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/keeper_process")
}

pub(crate) fn keeper_command(data: &Path, idle: Duration, journal_max: u64) -> Command {
    let mut command = Command::new(binary());
    command.args(["keeper", data.to_str().unwrap(), &idle.as_millis().to_string(), &journal_max.to_string()]);
    let log = std::fs::OpenOptions::new().create(true).append(true).open(data.join("log")).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command
}

impl Keeper {
    pub(crate) fn start() -> Self {
        Self::start_with(PATIENCE, 64 << 20)
    }

    pub(crate) fn start_with(idle: Duration, journal_max: u64) -> Self {
        let name = format!("keeper-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // A long path, on which the socket must not depend.
        let data = std::env::temp_dir().join(name).join("d".repeat(120));
        std::fs::create_dir_all(&data).unwrap();
        let process = keeper_command(&data, idle, journal_max).spawn().unwrap();
        Self { data, process }
    }

    /// Kills the keeper and starts another one.
    pub(crate) fn replace(&mut self) {
        self.kill();
        self.process = keeper_command(&self.data, PATIENCE, 64 << 20).spawn().unwrap();
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.data.join("keeper")
    }

    pub(crate) fn output(&self, run: RunKey) -> PathBuf {
        self.folder().join("outputs").join(run.to_string())
    }

    pub(crate) fn read_output(&self, run: RunKey) -> String {
        String::from_utf8(std::fs::read(self.output(run)).unwrap()).unwrap()
    }

    /// Waits until a program has written this line.
    pub(crate) fn wait_for(&self, run: RunKey, line: &str) {
        until(line, || self.read_output(run).lines().any(|other| other == line).then_some(()));
    }

    pub(crate) fn connect(&self) -> UnixStream {
        let stream = until("the keeper listens", || {
            let folder = std::fs::File::open(self.folder()).ok()?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&folder);
            UnixStream::connect(format!("/proc/self/fd/{number}/socket")).ok()
        });
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn daemon(&self) -> Daemon {
        Daemon::hello(self.connect(), PROTOCOL, PROTOCOL_OLDEST)
    }

    /// Waits until the keeper has ended by itself.
    pub(crate) fn wait(&mut self) -> bool {
        until("the keeper ends", || self.process.try_wait().unwrap()).success()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.kill();
        let mut last = keeper_command(&self.data, Duration::ZERO, 64 << 20).spawn().unwrap();
        last.wait().unwrap();
        if std::thread::panicking() {
            eprintln!("log: {}", std::fs::read_to_string(self.data.join("log")).unwrap_or_default());
        }
        let _ = std::fs::remove_dir_all(self.data.parent().unwrap());
    }
}

impl Daemon {
    pub(crate) fn hello(stream: UnixStream, protocol: u32, oldest: u32) -> Self {
        let mut daemon = Self {
            stream,
            inbox: Inbox::default(),
            received: VecDeque::new(),
            warnings: Vec::new(),
            listed: Vec::new(),
        };
        daemon.send(&ToKeeper::Hello { protocol, oldest, version: "test".to_owned() });
        let hello = daemon.receive().expect("a hello");
        let FromKeeper::Hello { warnings, .. } = hello else { panic!("no hello: {hello:?}") };
        daemon.warnings = warnings;
        while let Some(message) = daemon.receive() {
            let FromKeeper::Listed { programs, is_last } = message else { panic!("no list: {message:?}") };
            daemon.listed.extend(programs);
            if is_last {
                break;
            }
        }
        daemon
    }

    pub(crate) fn send(&mut self, message: &ToKeeper) {
        let mut bytes = Vec::new();
        encode(message, &mut bytes).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    pub(crate) fn launch(&mut self, launch: &ProgramLaunch) -> RunKey {
        self.send(&ToKeeper::Launch(Box::new(launch.clone())));
        launch.run
    }

    /// Starts a shell command and waits for it to run.
    pub(crate) fn start(&mut self, script: &str) -> (RunKey, u32) {
        let run = self.launch(&shell(script));
        (run, self.started(run))
    }

    /// The next message; `None` at the end of the connection.
    pub(crate) fn receive(&mut self) -> Option<FromKeeper> {
        let mut bytes = vec![0; 65_536];
        loop {
            if let Some(message) = self.inbox.next().unwrap() {
                return Some(message);
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(length) => self.inbox.push(&bytes[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no message: {error}"),
            }
        }
    }

    /// Waits for a message of this kind.
    pub(crate) fn find<T>(&mut self, pick: impl Fn(&FromKeeper) -> Option<T>) -> T {
        if let Some(at) = self.received.iter().position(|message| pick(message).is_some()) {
            return self.received.remove(at).and_then(|message| pick(&message)).unwrap();
        }
        loop {
            let message = self.receive().expect("the connection stays");
            match pick(&message) {
                Some(found) => return found,
                None => self.received.push_back(message),
            }
        }
    }

    /// Sends a ping, and returns why the keeper could start nothing.
    pub(crate) fn ping(&mut self) -> Option<String> {
        self.send(&ToKeeper::Ping);
        self.find(|message| match message {
            FromKeeper::Pong { problem } => Some(problem.clone()),
            _ => None,
        })
    }

    pub(crate) fn started(&mut self, wanted: RunKey) -> u32 {
        self.find(|message| match message {
            FromKeeper::Started { run, pid } if *run == wanted => Some(*pid),
            FromKeeper::Refused { run, why } if *run == wanted => panic!("refused: {why}"),
            _ => None,
        })
    }

    pub(crate) fn refused(&mut self, wanted: RunKey) -> String {
        self.find(|message| match message {
            FromKeeper::Refused { run, why } if *run == wanted => Some(why.clone()),
            FromKeeper::Ended { run, .. } if *run == wanted => panic!("it was not refused, it ended"),
            _ => None,
        })
    }

    /// Whether an end came while the test waited for something else.
    pub(crate) fn has_received_end(&self, wanted: RunKey) -> bool {
        self.received.iter().any(|message| matches!(message, FromKeeper::Ended { run, .. } if *run == wanted))
    }

    pub(crate) fn ended(&mut self, wanted: RunKey) -> ProgramEnd {
        self.find(|message| match message {
            FromKeeper::Ended { run, end } if *run == wanted => Some(*end),
            FromKeeper::Refused { run, why } if *run == wanted => panic!("refused: {why}"),
            _ => None,
        })
    }
}

/// A run that is unique on this machine.
pub(crate) fn new_run() -> RunKey {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    RunKey(u128::from_le_bytes(bytes))
}

pub(crate) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(time.tv_sec).unwrap() * SECOND + u64::try_from(time.tv_nsec).unwrap() / 1_000
}

pub(crate) fn launch(argv: &[&str]) -> ProgramLaunch {
    ProgramLaunch {
        run: new_run(),
        argv: argv.iter().map(|&text| text.to_owned()).collect(),
        env: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
        cwd: None,
        umask: None,
        user: None,
        stdin: None,
        file: None,
        nice: None,
        io_priority: None,
        separate_stderr: false,
        limits: ProcessLimits::default(),
        output: OutputLimits::default(),
        launch_by: now() + 600 * SECOND,
        kill_at: None,
        stop_signal: 15,
        stop_grace: 600 * SECOND,
    }
}

pub(crate) fn shell(script: &str) -> ProgramLaunch {
    launch(&["/bin/sh", "-c", script])
}

/// Polls until there is a result.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < give_up, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The number that a program writes into a file.
pub(crate) fn read_pid(path: &Path) -> u32 {
    until("a pid in a file", || std::fs::read_to_string(path).ok()?.strip_suffix('\n')?.parse().ok())
}

/// Kills a process that a test kept alive on purpose, or that is to die in a test.
pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
