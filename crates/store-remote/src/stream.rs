//! Byte streams to a server: TCP, and TLS over it.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use cronhold_store::Fault;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::url::ServerAddress;
use crate::{ConnectError, faults};

/// A bidirectional byte stream.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// An open stream, plain or encrypted.
pub type BoxedStream = Pin<Box<dyn ByteStream>>;

/// How streams to the servers of a store are opened.
#[derive(Debug, Clone, Copy)]
pub struct StreamOptions<'a> {
    /// The name of the server's software, for messages.
    pub system: &'static str,
    /// Whether streams are encrypted.
    pub tls: bool,
    /// The authority that signs the servers' certificates; `None` for those that the system trusts.
    pub ca: Option<&'a Path>,
    /// What to change in the URL if only one side uses TLS.
    pub tls_hint: &'static str,
}

/// Opens a stream to a server. The caller applies the timeout.
pub async fn open_stream(server: &ServerAddress, options: StreamOptions<'_>) -> Result<BoxedStream, ConnectError> {
    let fail =
        |what: &str, error: &io::Error| ConnectError::from(faults::unreachable(server, &format!("{what} ({error})")));
    let stream = TcpStream::connect((server.host.as_str(), server.port))
        .await
        .map_err(|error| fail(&format!("cannot connect to {}", options.system), &error))?;
    stream.set_nodelay(true).map_err(|error| fail("cannot set up the connection", &error))?;
    if !options.tls {
        return Ok(Box::pin(stream));
    }
    let config = tls_config(options.ca)?;
    let name = ServerName::try_from(server.host.clone())
        .map_err(|_| Fault::Permanent(format!("{server}: the host is not a valid name for a certificate")))?;
    let stream = TlsConnector::from(config).connect(name, stream).await.map_err(|error| {
        if is_about_certificate(&error) {
            fail(&format!("TLS handshake failed; {CHECK_CERTIFICATE}"), &error)
        } else {
            fail("TLS handshake failed", &error).with_hint(options.tls_hint)
        }
    })?;
    Ok(Box::pin(stream))
}

/// What to do about a certificate that is not trusted.
const CHECK_CERTIFICATE: &str = "check the name in the server's certificate and the authority that signed it, and set that \
                                 authority with `ca=FILE`";

fn is_about_certificate(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

/// A configuration that trusts the authority in a file, or those that the system trusts. The files are read for each
/// connection, so that a new certificate does not need a restart.
pub fn tls_config(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Fault> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let fail = |why: &str| Fault::Permanent(format!("cannot read certificates from {}: {why}", path.display()));
            let certificates = CertificateDer::pem_file_iter(path).map_err(|error| fail(&error.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| fail(&error.to_string()))?;
                roots.add(certificate).map_err(|error| fail(&error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(fail("the file has none"));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(Fault::Permanent(
                    "the system has no trusted certificates; set one with `ca=FILE`".to_owned(),
                ));
            }
        }
    }
    // The provider is explicit, so that this does not depend on the default of the process.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    const PLAIN: StreamOptions<'_> = StreamOptions {
        system: "the store",
        tls: false,
        ca: None,
        tls_hint: "if the server does not use TLS, remove it",
    };

    fn listener() -> (TcpListener, ServerAddress) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        (listener, ServerAddress { host: "127.0.0.1".to_owned(), port })
    }

    async fn fault(server: &ServerAddress, options: StreamOptions<'_>) -> Fault {
        match open_stream(server, options).await {
            Ok(_) => panic!("the stream was opened"),
            Err(error) => error.into_fault(false),
        }
    }

    #[tokio::test]
    async fn unreachable_server_is_named() {
        let (listener, server) = listener();
        assert!(open_stream(&server, PLAIN).await.is_ok());
        drop(listener);
        let fault = fault(&server, PLAIN).await;
        let expected = format!("{server}: cannot connect to the store");
        assert!(matches!(&fault, Fault::Unavailable(why) if why.starts_with(&expected)), "{fault}");
    }

    #[tokio::test]
    async fn server_without_tls_is_reported_with_a_hint() {
        let (listener, server) = listener();
        let closing = thread::spawn(move || drop(listener.accept().expect("a connection")));
        let fault = fault(&server, StreamOptions { tls: true, ..PLAIN }).await;
        closing.join().expect("it accepts one connection");
        assert!(matches!(&fault, Fault::Unavailable(why) if why.ends_with(PLAIN.tls_hint)), "{fault}");
    }

    #[test]
    fn file_without_an_authority_is_permanent() {
        let empty = std::env::temp_dir().join(format!("cronhold-no-authority-{}", std::process::id()));
        std::fs::write(&empty, "no certificate\n").expect("a file in the folder for everybody");
        let faults = [Path::new("/nowhere.pem"), &empty].map(|path| tls_config(Some(path)).map(drop));
        std::fs::remove_file(&empty).expect("the file is ours");
        let [missing, without] = faults.map(|result| result.expect_err("there is no certificate"));
        assert!(matches!(&missing, Fault::Permanent(why) if why.contains("/nowhere.pem")), "{missing}");
        assert!(matches!(&without, Fault::Permanent(why) if why.ends_with("the file has none")), "{without}");
    }
}
