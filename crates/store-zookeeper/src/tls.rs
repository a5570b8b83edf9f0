//! Options for encrypted connections: the authority that signs the servers' certificates, and a certificate of the client
//! if the servers require one.

use std::path::Path;

use cronhold_store::Fault;
use zookeeper_client::TlsOptions;

use crate::url::TlsFiles;

/// Reads the files. They are read for each session, so that renewed certificates are used.
pub(crate) fn options(files: &TlsFiles) -> Result<TlsOptions, Fault> {
    let TlsFiles { ca, identity } = files;
    let options = TlsOptions::new().with_pem_ca(&read(ca)?).map_err(|error| invalid(ca, &error))?;
    let Some((certificate, key)) = identity else { return Ok(options) };
    let (pem, key_pem) = (read(certificate)?, read(key)?);
    options.with_pem_identity(&pem, &key_pem).map_err(|error| invalid(certificate, &error))
}

fn read(path: &Path) -> Result<String, Fault> {
    std::fs::read_to_string(path)
        .map_err(|error| Fault::Permanent(format!("cannot read the certificate file {}: {error}", path.display())))
}

fn invalid(path: &Path, error: &zookeeper_client::Error) -> Fault {
    Fault::Permanent(format!("cannot use the certificate file {}: {error}; it must be in PEM form", path.display()))
}
