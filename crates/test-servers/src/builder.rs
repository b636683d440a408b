//! How a server is asked for: its program, settings, password and certificates.

use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use crate::RedisServer;

/// Settings of a server that is not started yet; from [`RedisServer::builder`].
#[derive(Debug, Clone, Default)]
pub struct RedisServerBuilder {
    pub(crate) binary: Option<PathBuf>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) password: Option<String>,
    pub(crate) tls: bool,
}

impl RedisServerBuilder {
    /// The program to run; `redis-server` on the `PATH` when not set.
    #[must_use]
    pub fn binary(mut self, path: impl AsRef<Path>) -> Self {
        self.binary = Some(path.as_ref().to_owned());
        self
    }

    /// Adds a line to the configuration file, such as `("appendonly", "yes")` or `("save", "60 1")`.
    #[must_use]
    pub fn arg(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Requires this password from every client.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Serves TLS only on the TCP port, with a certificate for `localhost` and `127.0.0.1` that is signed by an
    /// authority of its own ([`RedisServer::ca_pem`]). The Unix socket stays plain.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Panics
    /// When the program is missing, does not start, or does not answer within 10 s; with its output.
    #[track_caller]
    pub fn start(self) -> RedisServer {
        RedisServer::start_with(self)
    }

    /// The program, made absolute so that its place does not depend on the current folder.
    #[track_caller]
    pub(crate) fn found_binary(&self) -> PathBuf {
        let wanted = self.binary.clone().unwrap_or_else(|| PathBuf::from("redis-server"));
        match find_program(&wanted) {
            Some(found) => found,
            None => panic!("there is no `{}`: run `cargo xtask test`, which installs it", wanted.display()),
        }
    }
}

/// Looks a bare name up on the `PATH`; any other path is only checked.
pub(crate) fn find_program(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// A port that is free now. Not one of those that the system hands out to outgoing connections (from 32768 on): while a
/// server restarts, some client of another test would be given its port, and keep it.
#[track_caller]
pub(crate) fn free_port() -> u16 {
    for _ in 0..1000 {
        // A hasher's random seed is the randomness that std has.
        let random = RandomState::new().hash_one(std::process::id());
        let port = 10_000 + u16::try_from(random % 22_000).expect("the remainder is small");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port between 10000 and 32000 is free");
}
