//! A certificate authority of a test's own, and a server certificate signed by it.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// The PEM files of one server.
#[derive(Debug)]
pub(crate) struct Certificates {
    pub(crate) authority: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificates {
    /// Makes new keys and certificates for `localhost` and `127.0.0.1` and writes them to `folder`.
    pub(crate) fn create_in(folder: &Path) -> Certificates {
        match generated() {
            Ok((authority, certificate, key)) => Certificates {
                authority: written(folder, "ca.pem", &authority),
                certificate: written(folder, "server.pem", &certificate),
                key: written(folder, "server-key.pem", &key),
            },
            Err(error) => panic!("cannot make the test's certificates: {error}"),
        }
    }
}

/// The authority's certificate, the server's certificate, the server's key.
fn generated() -> Result<(String, String, String), rcgen::Error> {
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::new(Vec::new())?;
    // Clients refuse to trust a certificate as an authority that does not call itself one.
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate()?;
    let server = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    let certificate = server.signed_by(&key, &issuer)?;
    Ok((authority_certificate.pem(), certificate.pem(), key.serialize_pem()))
}

fn written(folder: &Path, name: &str, contents: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, contents).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    path
}
