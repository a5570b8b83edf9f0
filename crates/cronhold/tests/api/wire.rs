//! A raw connection, so that tests can send what no client would send, and see every byte of the response.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The timeout for a response.
const NEVER: Duration = Duration::from_secs(90);

/// A raw TCP connection to the daemon.
pub(crate) struct Wire(BufReader<TcpStream>);

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Wire {
    pub(crate) fn to(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the daemon listens");
        stream.set_read_timeout(Some(NEVER)).expect("a timeout");
        Self(BufReader::new(stream))
    }

    /// Sends bytes. Ignores errors, because the server may close the connection early.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.0.get_mut().write_all(bytes);
    }

    /// Closes the sending side of the connection.
    pub(crate) fn finish(&mut self) {
        let _ = self.0.get_mut().shutdown(Shutdown::Write);
    }

    /// Reads a response with any kind of body length.
    #[track_caller]
    pub(crate) fn reply(&mut self) -> Reply {
        self.try_reply().expect("a response")
    }

    /// Reads a response; `None` if the connection is closed without one.
    #[track_caller]
    pub(crate) fn try_reply(&mut self) -> Option<Reply> {
        let mut reply = self.try_head()?;
        if reply.status == 204 || reply.status == 304 {
            return Some(reply);
        }
        if reply.header("transfer-encoding") == Some("chunked") {
            while let Some(piece) = self.piece() {
                reply.body.extend(piece);
            }
        } else if let Some(length) = reply.header("content-length") {
            reply.body.resize(length.parse().expect("a number"), 0);
            self.0.read_exact(&mut reply.body).expect("the announced length");
        } else {
            self.0.read_to_end(&mut reply.body).expect("the rest");
        }
        Some(reply)
    }

    /// Reads the head of a response whose body is read in chunks.
    #[track_caller]
    pub(crate) fn head(&mut self) -> Reply {
        self.try_head().expect("a response")
    }

    #[track_caller]
    fn try_head(&mut self) -> Option<Reply> {
        let line = self.line()?;
        let (version, status) = line.split_once(' ').unwrap_or_else(|| panic!("not a response: {line}"));
        assert!(version == "HTTP/1.1" || version == "HTTP/1.0", "{line}");
        let status = status[..3].parse().unwrap_or_else(|_| panic!("not a status: {line}"));
        let mut headers = Vec::new();
        while let Some(line) = self.line().filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("not a header: {line}"));
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Some(Reply { status, headers, body: Vec::new() })
    }

    /// The next chunk of a chunked body; `None` at its end.
    #[track_caller]
    pub(crate) fn piece(&mut self) -> Option<Vec<u8>> {
        let line = self.line().expect("another chunk");
        let length = usize::from_str_radix(&line, 16).unwrap_or_else(|_| panic!("not a length: {line}"));
        let mut piece = vec![0; length];
        self.0.read_exact(&mut piece).expect("the announced length");
        assert_eq!(self.line().as_deref(), Some(""), "a chunk ends with a line end");
        (length > 0).then_some(piece)
    }

    /// A line without its line end; `None` if the server has closed the connection.
    #[track_caller]
    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        match self.0.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => Some(String::from_utf8(line).expect("a text").trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("cannot read the response: {error}"),
        }
    }

    /// Asserts that the server closes the connection in the middle of a chunked body.
    #[track_caller]
    pub(crate) fn assert_cut(&mut self) {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("cannot read the response: {error}"),
            _ => assert!(!rest.ends_with(b"0\r\n\r\n"), "the body has a regular end"),
        }
    }

    /// Asserts that the server closes the connection without sending anything else.
    #[track_caller]
    pub(crate) fn assert_over(&mut self) {
        assert_eq!(self.line(), None);
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Asserts that the response is a problem document with this status and code.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem: Value = serde_json::from_slice(&self.body).expect("JSON");
        assert_eq!((&problem["status"], &problem["code"]), (&status.into(), &code.into()), "{problem}");
        assert!(!problem["title"].as_str().expect("a title").is_empty());
        assert!(!problem["detail"].as_str().expect("a sentence").is_empty());
        problem
    }
}
