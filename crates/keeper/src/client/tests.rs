//! The client against keepers that are played by the test.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Bell, Client, Heard, Party, Setup};
use crate::frames::{Inbox, encode};
use crate::protocol::{FromKeeper, PROTOCOL, PROTOCOL_OLDEST, RunKey, ToKeeper};

/// What has not come after this time never comes.
const NEVER: Duration = Duration::from_secs(30);

/// Notes what it hears, and says what it is told to.
struct Notes {
    heard: Mutex<Sender<Heard>>,
    to_say: Mutex<Vec<ToKeeper>>,
}

impl Party for Notes {
    fn next(&self) -> Option<ToKeeper> {
        self.to_say.lock().expect("no panic").pop()
    }

    fn hear(&self, news: Heard) {
        let _ = self.heard.lock().expect("no panic").send(news);
    }
}

/// A client that looks for its keeper in a directory of its own.
struct Stage {
    data: PathBuf,
    notes: Arc<Notes>,
    heard: Receiver<Heard>,
    bell: Bell,
    client: Option<Client>,
}

impl Stage {
    fn new(name: &str) -> Self {
        let data = std::env::temp_dir().join(format!("cronhold-client-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(data.join("keeper")).expect("a directory");
        let (sender, heard) = channel();
        let notes = Arc::new(Notes { heard: Mutex::new(sender), to_say: Mutex::default() });
        Self { data, notes, heard, bell: Bell::new().expect("a bell"), client: None }
    }

    fn keeper(&self) -> UnixListener {
        UnixListener::bind(self.data.join("keeper/socket")).expect("a socket")
    }

    fn start(&mut self, program: &str) {
        let setup = Setup {
            data: self.data.clone(),
            program: PathBuf::from(program),
            version: "2.0".to_owned(),
            log_args: Vec::new(),
        };
        let client = Client::start(setup, &self.bell, Arc::clone(&self.notes) as _);
        self.client = Some(client.expect("a thread"));
    }

    fn heard(&self) -> Heard {
        self.heard.recv_timeout(NEVER).expect("it is heard")
    }

    fn away(&self) -> String {
        match self.heard() {
            Heard::Away(why) => why,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(self.client.take());
        let _ = fs::remove_dir_all(&self.data);
    }
}

fn read(stream: &mut UnixStream) -> ToKeeper {
    let mut inbox = Inbox::default();
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte).expect("the client says something");
        inbox.push(&byte);
        if let Some(message) = inbox.next().expect("a message") {
            return message;
        }
    }
}

fn say(stream: &mut UnixStream, message: &FromKeeper) {
    let mut bytes = Vec::new();
    encode(message, &mut bytes).expect("short");
    stream.write_all(&bytes).expect("the client listens");
}

fn hello(oldest: u32, protocol: u32) -> FromKeeper {
    FromKeeper::Hello { protocol, oldest, version: "9.1".to_owned(), pid: 77, warnings: vec!["it is cold".to_owned()] }
}

fn connected() -> Heard {
    Heard::Connected { version: "9.1".to_owned(), pid: 77, warnings: vec!["it is cold".to_owned()] }
}

#[test]
fn carries_messages_both_ways_and_calls_again() {
    let mut stage = Stage::new("both-ways");
    let keeper = stage.keeper();
    stage.start("/bin/false");
    for round in 0..3 {
        let (mut stream, _) = keeper.accept().expect("a call");
        let greeting = ToKeeper::Hello {
            protocol: PROTOCOL,
            oldest: PROTOCOL_OLDEST,
            version: "2.0".to_owned(),
            log_args: Vec::new(),
        };
        assert_eq!(read(&mut stream), greeting);
        say(&mut stream, &hello(PROTOCOL_OLDEST, PROTOCOL + 5));
        assert_eq!(stage.heard(), connected());
        let list = FromKeeper::Listed { programs: Vec::new(), is_last: true };
        say(&mut stream, &list);
        assert_eq!(stage.heard(), Heard::Said(list));
        let message = ToKeeper::Signal { run: RunKey(round), signal: 15 };
        stage.notes.to_say.lock().expect("no panic").push(message.clone());
        stage.bell.ring();
        assert_eq!(read(&mut stream), message);
        // What it says last is heard before its end is.
        let started = FromKeeper::Started { run: RunKey(round), pid: 5 };
        say(&mut stream, &started);
        drop(stream);
        assert_eq!(stage.heard(), Heard::Said(started));
        assert_eq!(stage.away(), "has closed the line");
    }
}

/// Nothing else comes that could wake the client, and nobody rings.
#[test]
fn hears_a_list_that_comes_with_the_greeting() {
    let mut stage = Stage::new("at-once");
    let keeper = stage.keeper();
    stage.start("/bin/false");
    let (mut stream, _) = keeper.accept().expect("a call");
    read(&mut stream);
    let list = FromKeeper::Listed { programs: Vec::new(), is_last: true };
    let mut bytes = Vec::new();
    encode(&hello(PROTOCOL_OLDEST, PROTOCOL), &mut bytes).expect("short");
    encode(&list, &mut bytes).expect("short");
    stream.write_all(&bytes).expect("the client listens");
    assert_eq!(stage.heard(), connected());
    assert_eq!(stage.heard(), Heard::Said(list));
}

#[test]
fn keepers_that_cannot_be_talked_to() {
    let mut stage = Stage::new("strangers");
    let keeper = stage.keeper();
    stage.start("/bin/false");
    let strange = [
        (Some(hello(PROTOCOL + 1, PROTOCOL + 3)), "that runs here (version 9.1, pid 77) speaks protocol"),
        (Some(FromKeeper::Started { run: RunKey(1), pid: 1 }), "began with something other than a hello"),
        (None, "closed the line instead of an answer"),
    ];
    for (answer, words) in strange {
        let (mut stream, _) = keeper.accept().expect("a call");
        read(&mut stream);
        answer.iter().for_each(|answer| say(&mut stream, answer));
        drop(stream);
        let why = stage.away();
        assert!(why.contains(words), "{why}");
    }
    let (mut stream, _) = keeper.accept().expect("a call");
    read(&mut stream);
    stream.write_all(b"220 mail.example.org ESMTP\r\n").expect("the client listens");
    let why = stage.away();
    assert!(why.starts_with("does not speak as one: "), "{why}");
}

#[test]
fn starts_one_when_nobody_answers() {
    let mut stage = Stage::new("starts");
    // A keeper that is gone has left its socket.
    drop(stage.keeper());
    let script = stage.data.join("script");
    fs::write(&script, "#!/bin/sh\necho \"called as: $*\"\necho 'error: no room' >&2\nexit 3\n").expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("ours");
    stage.start(script.to_str().expect("text"));
    let why = stage.away();
    assert!(why.starts_with("ended at its start (exit status: 3); its last words in "), "{why}");
    assert!(why.ends_with("/keeper/log: error: no room"), "{why}");
    let log = fs::read_to_string(stage.data.join("keeper/log")).expect("a log");
    let called = format!("called as: keeper --data {}\n", stage.data.display());
    assert!(log.starts_with(&called), "{log}");
}

#[test]
fn a_keeper_that_cannot_write_its_last_words_is_not_given_those_of_another() {
    let mut stage = Stage::new("silent");
    let log = stage.data.join("keeper/log");
    fs::write(&log, "error: of an earlier one\n").expect("written");
    stage.start("/bin/false");
    assert_eq!(stage.away(), "ended at its start (exit status: 1)");
    // As on a disk that is full.
    let mut stage = Stage::new("full");
    let log = stage.data.join("keeper/log");
    std::os::unix::fs::symlink("/dev/full", &log).expect("a link");
    stage.start("/bin/false");
    let why = stage.away();
    assert!(why.starts_with("ended at its start (exit status: 1); it could not say why, because "), "{why}");
    assert!(why.ends_with("/keeper/log cannot be written: No space left on device (os error 28)"), "{why}");
}

#[test]
fn there_may_be_no_program_at_all() {
    let mut stage = Stage::new("no-program");
    stage.start("/no/such/program");
    assert_eq!(stage.away(), "could not be started: No such file or directory (os error 2)");
}
