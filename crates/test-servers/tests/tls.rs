//! A real TLS handshake with a server whose certificate was made for the test.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};
use test_servers::RedisServer;

/// What PING answers over TLS to a client that knows `name` and trusts `roots`.
fn ping(server: &RedisServer, name: &'static str, roots: RootCertStore) -> std::io::Result<String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let mut connection =
        ClientConnection::new(Arc::new(config), ServerName::try_from(name).unwrap()).unwrap();
    let mut socket = TcpStream::connect(("127.0.0.1", server.port()))?;
    let mut stream = Stream::new(&mut connection, &mut socket);
    stream.write_all(b"PING\r\n")?;
    let mut reply = [0; 7];
    stream.read_exact(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

fn trusted(server: &RedisServer) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(server.ca_pem().unwrap()).unwrap()).unwrap();
    roots
}

#[test]
fn a_client_that_trusts_the_authority_is_served() {
    let mut server = RedisServer::builder().tls().start();
    assert_eq!(server.url(), format!("rediss://127.0.0.1:{}", server.port()));
    for name in ["localhost", "127.0.0.1"] {
        assert_eq!(ping(&server, name, trusted(&server)).unwrap(), "+PONG\r\n");
    }
    server.restart();
    assert_eq!(ping(&server, "localhost", trusted(&server)).unwrap(), "+PONG\r\n");
    assert_eq!(server.run(&["PING"]).text(), "PONG", "the test's own client still gets in");
}

#[test]
fn a_client_that_does_not_trust_the_authority_is_not_fooled() {
    let server = RedisServer::builder().tls().start();
    let other = RedisServer::builder().tls().start();
    let error = ping(&server, "localhost", trusted(&other)).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let error = ping(&server, "example.com", trusted(&server)).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}
