//! Opens connections: TCP, and TLS over it. Apart from the line, because it knows nothing of Redis.

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

use crate::faults;
use crate::url::{RedisUrl, Server, Way};

/// Bytes in both directions.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// An open connection, whatever it is made of.
pub(super) type Wire = Pin<Box<dyn Bytes>>;

/// Opens a connection to a server. How long that may take is the caller's matter.
pub(super) async fn open(url: &RedisUrl, server: &Server) -> Result<Wire, Fault> {
    let told = |what: &str, error: &io::Error| faults::unreached(&server.to_string(), &format!("{what} ({error})"));
    let stream = TcpStream::connect((server.host.as_str(), server.port))
        .await
        .map_err(|error| told("Redis cannot be reached", &error))?;
    stream.set_nodelay(true).map_err(|error| told("the connection cannot be set up", &error))?;
    if !url.tls {
        return Ok(Box::pin(stream));
    }
    let config = trust(url.ca.as_deref())?;
    let name = ServerName::try_from(server.host.clone())
        .map_err(|_| Fault::Broken(format!("{server}: a certificate cannot be made out for this name")))?;
    let stream = TlsConnector::from(config).connect(name, stream).await.map_err(|error| {
        let hint = if is_about_certificate(&error) { CERTIFICATE } else { hint(url) };
        told(&format!("no encrypted connection comes about; {hint}"), &error)
    })?;
    Ok(Box::pin(stream))
}

/// What to do about a certificate that is not trusted.
const CERTIFICATE: &str =
    "look whom the server's certificate is for and who has signed it, and name that authority by `ca=FILE`";

fn is_about_certificate(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

/// What to write when only one side encrypts the line.
pub(super) fn hint(url: &RedisUrl) -> &'static str {
    match (url.tls, url.way == Way::Single) {
        (true, true) => "if the server does not speak TLS on this port, write redis://",
        (true, false) => "if the servers do not speak TLS on these ports, leave out tls=true",
        (false, true) => "if the server speaks TLS on this port, write rediss://",
        (false, false) => "if the servers speak TLS on these ports, add tls=true",
    }
}

/// Whom to trust. It is read at each connection, so that a new certificate needs no restart.
fn trust(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Fault> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let told = |why: &str| Fault::Broken(format!("the certificates in {}: {why}", path.display()));
            let certificates = CertificateDer::pem_file_iter(path).map_err(|error| told(&error.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| told(&error.to_string()))?;
                roots.add(certificate).map_err(|error| told(&error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(told("there are none"));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(Fault::Broken("the system trusts no certificates; name one by `ca=FILE`".to_owned()));
            }
        }
    }
    // The provider is named, so that nothing depends on what the rest of the process has chosen.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the usual versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
