//! Byte streams to a server: TCP, and TLS over it. This file does not depend on the Redis protocol.

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

use super::connect_error::ConnectError;
use crate::faults;
use crate::url::{RedisUrl, ServerAddress, Topology};

/// A bidirectional byte stream.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// An open stream, plain or encrypted.
pub(super) type BoxedStream = Pin<Box<dyn ByteStream>>;

/// Opens a stream to a server. The caller applies the timeout.
pub(super) async fn open(url: &RedisUrl, server: &ServerAddress) -> Result<BoxedStream, ConnectError> {
    let fail = |what: &str, error: &io::Error| {
        ConnectError::from(faults::unreachable(&server.to_string(), &format!("{what} ({error})")))
    };
    let stream = TcpStream::connect((server.host.as_str(), server.port))
        .await
        .map_err(|error| fail("cannot connect to Redis", &error))?;
    stream.set_nodelay(true).map_err(|error| fail("cannot set up the connection", &error))?;
    if !url.tls {
        return Ok(Box::pin(stream));
    }
    let config = tls_config(url.ca.as_deref())?;
    let name = ServerName::try_from(server.host.clone())
        .map_err(|_| Fault::Permanent(format!("{server}: the host is not a valid name for a certificate")))?;
    let stream = TlsConnector::from(config).connect(name, stream).await.map_err(|error| {
        if is_about_certificate(&error) {
            fail(&format!("TLS handshake failed; {CHECK_CERTIFICATE}"), &error)
        } else {
            fail("TLS handshake failed", &error).with_hint(tls_hint(url))
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

/// What to change in the URL if only one side uses TLS.
pub(super) fn tls_hint(url: &RedisUrl) -> &'static str {
    match (url.tls, url.topology == Topology::Single) {
        (true, true) => "if the server does not use TLS on this port, write redis://",
        (true, false) => "if the servers do not use TLS on these ports, remove tls=true",
        (false, true) => "if the server uses TLS on this port, write rediss://",
        (false, false) => "if the servers use TLS on these ports, add tls=true",
    }
}

/// The trusted authorities. They are read for each connection, so that a new certificate does not need a restart.
fn tls_config(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Fault> {
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
