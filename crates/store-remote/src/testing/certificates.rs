//! Certificates for servers that use TLS, created by `openssl` for each test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files in PEM form.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// The certificate of the authority.
    pub ca: PathBuf,
    /// The certificate of the server.
    pub certificate: PathBuf,
    /// The key of the server's certificate, without a password.
    pub key: PathBuf,
}

impl Certificates {
    /// Creates an authority and a certificate for `localhost` and `127.0.0.1`.
    pub fn create(folder: &Path) -> Self {
        let file = |name: &str| folder.join(name);
        let (ca, ca_key) = (file("ca.pem"), file("ca.key"));
        let (certificate, key, request) = (file("server.pem"), file("server.key"), file("server.csr"));
        let names = file("names");
        std::fs::write(&names, "subjectAltName=DNS:localhost,IP:127.0.0.1\n").expect("the folder is ours");
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        openssl(|command| {
            command.args(["req", "-x509", "-days", "2", "-subj", "/CN=A test authority"]).args(curve);
            command.arg("-keyout").arg(&ca_key).arg("-out").arg(&ca);
        });
        openssl(|command| {
            command.args(["req", "-subj", "/CN=localhost"]).args(curve);
            command.arg("-keyout").arg(&key).arg("-out").arg(&request);
        });
        openssl(|command| {
            command.args(["x509", "-req", "-days", "2", "-CAcreateserial", "-in"]).arg(&request);
            command.arg("-CA").arg(&ca).arg("-CAkey").arg(&ca_key).arg("-extfile").arg(&names);
            command.arg("-out").arg(&certificate);
        });
        Self { ca, certificate, key }
    }
}

fn openssl(with: impl FnOnce(&mut Command)) {
    let mut command = Command::new("openssl");
    with(&mut command);
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| {
        panic!("openssl cannot be started ({error}); install it: apt-get install openssl");
    });
    assert!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
}
