//! A certificate authority and a certificate for `localhost`, made for one test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files with a server's certificate and key, and the authority that signed it.
#[derive(Debug, Clone)]
pub(crate) struct Certificates {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// In PEM form.
    pub(crate) authority: String,
}

impl Certificates {
    /// Makes them in `folder` with the `openssl` program.
    pub(crate) fn make(folder: &Path) -> Self {
        let path = |name: &str| folder.join(name);
        let file = |name: &str| path(name).display().to_string();
        let new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let (authority_key, authority) = (file("authority.key"), file("authority.crt"));
        let mut make_authority = vec!["req", "-x509", "-subj", "/CN=Shiftwork tests", "-days", "2"];
        make_authority.extend(new_key);
        make_authority.extend(["-keyout", &authority_key, "-out", &authority]);
        openssl(&make_authority);
        let (key, certificate) = (file("server.key"), file("server.crt"));
        let mut make_certificate = vec!["req", "-x509", "-subj", "/CN=localhost", "-days", "2"];
        make_certificate.extend(new_key);
        make_certificate.extend(["-CA", &authority, "-CAkey", &authority_key]);
        make_certificate.extend(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
        make_certificate.extend(["-addext", "basicConstraints=critical,CA:FALSE"]);
        make_certificate.extend(["-keyout", &key, "-out", &certificate]);
        openssl(&make_certificate);
        let authority = std::fs::read_to_string(authority).expect("openssl has written the authority");
        Self { certificate: path("server.crt"), key: path("server.key"), authority }
    }
}

fn openssl(arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).stdin(Stdio::null()).output();
    let output = output.expect("the openssl program is there: run `cargo xtask test`, which installs it");
    assert!(output.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
