//! A minimal HTTP client: one request per connection, and the whole response.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::daemon::Sandbox;

/// The API of a daemon.
pub(crate) struct Api {
    address: String,
    token: String,
}

impl Api {
    /// Reads the address and the token from the data directory, as the command line does.
    pub(crate) fn of(sandbox: &Sandbox) -> Self {
        let address = fs::read(sandbox.path("home/address")).expect("it listens");
        let address: Value = serde_json::from_slice(&address).expect("JSON");
        let url = address["url"].as_str().expect("a URL");
        let token = fs::read_to_string(sandbox.path("home/token")).expect("a token");
        Self { address: url.trim_start_matches("http://").to_owned(), token: token.trim().to_owned() }
    }

    pub(crate) fn get(&self, path: &str) -> String {
        self.send("GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> String {
        self.send("POST", path, body)
    }

    pub(crate) fn put(&self, path: &str, body: &str) -> String {
        self.send("PUT", path, body)
    }

    pub(crate) fn delete(&self, path: &str) -> String {
        self.send("DELETE", path, "")
    }

    /// The body of the error response to a request that must be refused.
    pub(crate) fn refused(&self, method: &str, path: &str) -> String {
        let (head, response) = self.exchange(method, path, "");
        assert!(head.starts_with("HTTP/1.1 4"), "{method} {path}: {head}\n{response}");
        response
    }

    /// The body of a response that must be successful.
    fn send(&self, method: &str, path: &str, body: &str) -> String {
        let (head, response) = self.exchange(method, path, body);
        assert!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {head}\n{response}");
        response
    }

    /// The head of the response to a request; `None` if the daemon does not respond, because it is killed.
    pub(crate) fn try_post(&self, path: &str, body: &str) -> Option<String> {
        let authorization = format!("Authorization: Bearer {}\r\n", self.token);
        let (head, _) = try_request(&self.address, &authorization, "POST", path, body)?;
        Some(head)
    }

    /// The head and the body of a response.
    pub(crate) fn exchange(&self, method: &str, path: &str, body: &str) -> (String, String) {
        request(&self.address, &format!("Authorization: Bearer {}\r\n", self.token), method, path, body)
    }
}

/// Sends a request, and returns the head and the body of the response.
pub(crate) fn request(address: &str, headers: &str, method: &str, path: &str, body: &str) -> (String, String) {
    try_request(address, headers, method, path, body).expect("a response")
}

fn try_request(address: &str, headers: &str, method: &str, path: &str, body: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{headers}{kind}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}
