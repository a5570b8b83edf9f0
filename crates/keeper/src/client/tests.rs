//! The client against keepers that the test simulates.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{ClientOptions, ConnectionError, KeeperClient, KeeperDelegate, KeeperEvent, LastLogLine, Wakeup};
use crate::frames::{Inbox, encode};
use crate::protocol::{FromKeeper, PROTOCOL, PROTOCOL_OLDEST, RunKey, ToKeeper};

/// Timeout for every event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(30);

type IsConnectionError = fn(&ConnectionError) -> bool;

/// Records events, and sends what the test puts into its outbox.
struct Recorder {
    events: Mutex<Sender<KeeperEvent>>,
    outbox: Mutex<Vec<ToKeeper>>,
}

impl KeeperDelegate for Recorder {
    fn next_message(&self) -> Option<ToKeeper> {
        self.outbox.lock().expect("no panic").pop()
    }

    fn on_event(&self, event: KeeperEvent) {
        let _ = self.events.lock().expect("no panic").send(event);
    }
}

/// A client whose keeper has a separate directory.
struct ClientRig {
    data: PathBuf,
    recorder: Arc<Recorder>,
    events: Receiver<KeeperEvent>,
    wakeup: Wakeup,
    client: Option<KeeperClient>,
}

impl ClientRig {
    fn new(name: &str) -> Self {
        let data = std::env::temp_dir().join(format!("cronhold-client-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(data.join("keeper")).expect("a directory");
        let (sender, events) = channel();
        let recorder = Arc::new(Recorder { events: Mutex::new(sender), outbox: Mutex::default() });
        Self { data, recorder, events, wakeup: Wakeup::new().expect("a descriptor"), client: None }
    }

    fn keeper(&self) -> UnixListener {
        UnixListener::bind(self.data.join("keeper/socket")).expect("a socket")
    }

    fn start(&mut self, program: &str) {
        let (data, program) = (self.data.clone(), PathBuf::from(program));
        let options = ClientOptions { data, program, version: "2.0".to_owned(), log_args: Vec::new(), env: Vec::new() };
        let client = KeeperClient::start(options, &self.wakeup, Arc::clone(&self.recorder) as _);
        self.client = Some(client.expect("a thread"));
    }

    fn event(&self) -> KeeperEvent {
        self.events.recv_timeout(EVENT_TIMEOUT).expect("an event")
    }

    fn expect_connected(&self) {
        match self.event() {
            KeeperEvent::Connected { version, pid: 77, warnings } => {
                assert_eq!((version.as_str(), warnings.len()), ("9.1", 1));
            }
            other => panic!("{other:?}"),
        }
    }

    fn received(&self) -> FromKeeper {
        match self.event() {
            KeeperEvent::Received(message) => message,
            other => panic!("{other:?}"),
        }
    }

    fn disconnected(&self) -> ConnectionError {
        match self.event() {
            KeeperEvent::Disconnected(error) => error,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for ClientRig {
    fn drop(&mut self) {
        drop(self.client.take());
        let _ = fs::remove_dir_all(&self.data);
    }
}

fn read(stream: &mut UnixStream) -> ToKeeper {
    let mut inbox = Inbox::default();
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte).expect("the client sends something");
        inbox.push(&byte);
        match inbox.next().expect("a message") {
            // It comes whenever the test is slow.
            Some(ToKeeper::Ping) | None => {}
            Some(message) => return message,
        }
    }
}

fn send(stream: &mut UnixStream, message: &FromKeeper) {
    let mut bytes = Vec::new();
    encode(message, &mut bytes).expect("short");
    stream.write_all(&bytes).expect("the client listens");
}

fn hello(oldest: u32, protocol: u32) -> FromKeeper {
    FromKeeper::Hello { protocol, oldest, version: "9.1".to_owned(), pid: 77, warnings: vec!["it is cold".to_owned()] }
}

#[test]
fn messages_pass_both_ways_and_client_reconnects_after_close() {
    let mut rig = ClientRig::new("both-ways");
    let keeper = rig.keeper();
    rig.start("/bin/false");
    for round in 0..3 {
        let (mut stream, _) = keeper.accept().expect("a call");
        let greeting = ToKeeper::Hello { protocol: PROTOCOL, oldest: PROTOCOL_OLDEST, version: "2.0".to_owned() };
        assert_eq!(read(&mut stream), greeting);
        send(&mut stream, &hello(PROTOCOL_OLDEST, PROTOCOL + 5));
        rig.expect_connected();
        let list = FromKeeper::Listed { programs: Vec::new(), is_last: true };
        send(&mut stream, &list);
        assert_eq!(rig.received(), list);
        let message = ToKeeper::Signal { run: RunKey(round), signal: 15 };
        rig.recorder.outbox.lock().expect("no panic").push(message.clone());
        rig.wakeup.notify();
        assert_eq!(read(&mut stream), message);
        // Its last message is handled before the close.
        let started = FromKeeper::Started { run: RunKey(round), pid: 5 };
        send(&mut stream, &started);
        drop(stream);
        assert_eq!(rig.received(), started);
        assert!(matches!(rig.disconnected(), ConnectionError::Closed));
    }
}

/// No later message could wake the client.
#[test]
fn list_that_comes_with_the_hello_is_received() {
    let mut rig = ClientRig::new("at-once");
    let keeper = rig.keeper();
    rig.start("/bin/false");
    let (mut stream, _) = keeper.accept().expect("a call");
    read(&mut stream);
    let list = FromKeeper::Listed { programs: Vec::new(), is_last: true };
    let mut bytes = Vec::new();
    encode(&hello(PROTOCOL_OLDEST, PROTOCOL), &mut bytes).expect("short");
    encode(&list, &mut bytes).expect("short");
    stream.write_all(&bytes).expect("the client listens");
    rig.expect_connected();
    assert_eq!(rig.received(), list);
}

#[test]
fn keeper_that_does_not_speak_the_protocol_is_reported_with_its_reason() {
    let mut rig = ClientRig::new("strangers");
    let keeper = rig.keeper();
    rig.start("/bin/false");
    let is_other: IsConnectionError = |error| matches!(error, ConnectionError::OtherProtocol { pid: 77, .. });
    let is_not_hello: IsConnectionError = |error| matches!(error, ConnectionError::NotAHello);
    let is_closed: IsConnectionError = |error| matches!(error, ConnectionError::ClosedBeforeHello);
    let strange: [(Option<FromKeeper>, IsConnectionError); 3] = [
        (Some(hello(PROTOCOL + 1, PROTOCOL + 3)), is_other),
        (Some(FromKeeper::Started { run: RunKey(1), pid: 1 }), is_not_hello),
        (None, is_closed),
    ];
    for (answer, is_expected) in strange {
        let (mut stream, _) = keeper.accept().expect("a call");
        read(&mut stream);
        answer.iter().for_each(|answer| send(&mut stream, answer));
        drop(stream);
        let error = rig.disconnected();
        assert!(is_expected(&error), "{error:?}");
    }
    let (mut stream, _) = keeper.accept().expect("a call");
    read(&mut stream);
    stream.write_all(b"220 mail.example.org ESMTP\r\n").expect("the client listens");
    assert!(matches!(rig.disconnected(), ConnectionError::InvalidHello(_)));
}

#[test]
fn keeper_that_exits_at_startup_is_reported_with_the_last_line_of_its_log() {
    let mut rig = ClientRig::new("starts");
    // A dead keeper left its socket behind.
    drop(rig.keeper());
    let script = rig.data.join("script");
    fs::write(&script, "#!/bin/sh\necho \"called as: $*\"\necho 'error: no room' >&2\nexit 3\n").expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("ours");
    rig.start(script.to_str().expect("text"));
    let ConnectionError::EndedAtStart { status, log: LastLogLine::Line { path, line } } = rig.disconnected() else {
        panic!("it exited");
    };
    assert_eq!((status.code(), line.as_str()), (Some(3), "error: no room"));
    assert_eq!(path, rig.data.join("keeper/log"));
    let log = fs::read_to_string(rig.data.join("keeper/log")).expect("a log");
    let called = format!("called as: keeper --data {}\n", rig.data.display());
    assert!(log.starts_with(&called), "{log}");
}

#[test]
fn keeper_that_logs_nothing_is_not_blamed_with_an_earlier_line() {
    let mut rig = ClientRig::new("silent");
    let log = rig.data.join("keeper/log");
    fs::write(&log, "error: of an earlier one\n").expect("written");
    rig.start("/bin/false");
    assert!(matches!(rig.disconnected(), ConnectionError::EndedAtStart { log: LastLogLine::None, .. }));
    // As on a full disk.
    let mut rig = ClientRig::new("full");
    let log = rig.data.join("keeper/log");
    std::os::unix::fs::symlink("/dev/full", &log).expect("a link");
    rig.start("/bin/false");
    let ConnectionError::EndedAtStart { log: LastLogLine::Unwritable { error, .. }, .. } = rig.disconnected() else {
        panic!("it exited");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn missing_keeper_program_is_reported() {
    let mut rig = ClientRig::new("no-program");
    rig.start("/no/such/program");
    assert!(matches!(rig.disconnected(), ConnectionError::Start(_)));
}
