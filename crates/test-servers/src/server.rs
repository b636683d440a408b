//! A running Redis or Valkey server: where it listens, and what a test can do to it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::builder::free_port;
use crate::certificates::Certificates;
use crate::launch::{self, StartError, launch};
use crate::process::Process;
use crate::{Client, RedisServerBuilder, Reply};

/// How often a lost race for a port is tried again.
const PORT_ATTEMPTS: u32 = 10;

/// A server of its own for one test, on a free port of 127.0.0.1 and on a Unix socket. Dropping it kills it and
/// deletes its data; so does the end of the test process, whichever way it ends.
///
/// Nothing is persisted unless asked for with [`RedisServerBuilder::arg`].
#[derive(Debug)]
pub struct RedisServer {
    // Before the folder: fields drop in this order, and the process must be gone when the folder is deleted.
    process: Process,
    folder: TempDir,
    binary: PathBuf,
    settings: RedisServerBuilder,
    certificates: Option<Certificates>,
    port: u16,
}

impl RedisServer {
    /// Starts `redis-server` from the `PATH` with the plainest settings.
    ///
    /// # Panics
    /// As [`RedisServerBuilder::start`].
    #[track_caller]
    pub fn start() -> RedisServer {
        RedisServer::builder().start()
    }

    /// Settings to start a server with.
    pub fn builder() -> RedisServerBuilder {
        RedisServerBuilder::default()
    }

    #[track_caller]
    pub(crate) fn start_with(settings: RedisServerBuilder) -> RedisServer {
        let binary = settings.found_binary();
        let folder = tempfile::Builder::new().prefix("redis-").tempdir();
        let folder = folder.unwrap_or_else(|error| panic!("cannot create a temporary folder: {error}"));
        let certificates = settings.tls.then(|| Certificates::create_in(folder.path()));
        for _ in 0..PORT_ATTEMPTS {
            let port = free_port();
            launch::write_configuration(folder.path(), &settings, certificates.as_ref(), port);
            match launch(&binary, folder.path(), settings.password.as_deref()) {
                Ok(process) => return RedisServer { process, folder, binary, settings, certificates, port },
                Err(StartError::PortTaken) => {}
                Err(StartError::Failed(reason)) => panic!("{reason}"),
            }
        }
        panic!("lost {PORT_ATTEMPTS} free ports in a row to other processes");
    }

    /// The URL with its scheme (`rediss` with TLS) and password.
    pub fn url(&self) -> String {
        let scheme = if self.settings.tls { "rediss" } else { "redis" };
        let user = match &self.settings.password {
            Some(password) => format!(":{}@", percent_encoded(password)),
            None => String::new(),
        };
        format!("{scheme}://{user}127.0.0.1:{}", self.port)
    }

    /// The URL of the database with this number.
    pub fn url_with_db(&self, database: u32) -> String {
        format!("{}/{database}", self.url())
    }

    /// The URL of the Unix socket, `redis+unix:///…`, with the password as `?pass=`.
    pub fn unix_url(&self) -> String {
        let pass = match &self.settings.password {
            Some(password) => format!("?pass={}", percent_encoded(password)),
            None => String::new(),
        };
        format!("redis+unix://{}{pass}", self.socket().display())
    }

    /// The Unix socket.
    pub fn socket(&self) -> PathBuf {
        launch::socket_in(self.folder.path())
    }

    /// The port on 127.0.0.1; it stays the same over [`RedisServer::restart`].
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's process; another one after [`RedisServer::restart`].
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The certificate (PEM) of the authority that signed the server's; only with [`RedisServerBuilder::tls`].
    pub fn ca_pem(&self) -> Option<&Path> {
        self.certificates.as_ref().map(|certificates| certificates.authority.as_path())
    }

    /// What the server wrote to its log since its first start.
    pub fn log(&self) -> String {
        launch::read_log(self.folder.path())
    }

    /// Kills the server with SIGKILL, and returns when it is gone. Its data stays for [`RedisServer::restart`].
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Kills the server, if it still runs, and starts it on the same port and data; returns when it answers.
    /// What the server had not persisted is lost, as in a crash.
    ///
    /// # Panics
    /// When the server does not come back within 10 s; with its output.
    #[track_caller]
    pub fn restart(&mut self) {
        self.process.kill();
        for _ in 0..PORT_ATTEMPTS {
            match launch(&self.binary, self.folder.path(), self.settings.password.as_deref()) {
                Ok(process) => {
                    self.process = process;
                    return;
                }
                // Somebody may only have looked whether it is free.
                Err(StartError::PortTaken) => {}
                Err(StartError::Failed(reason)) => panic!("{reason}"),
            }
        }
        panic!("another process took port {} during the restart", self.port)
    }

    /// Freezes the server with SIGSTOP: connections stay open, nothing is answered.
    pub fn pause(&self) {
        self.process.signal("STOP");
    }

    /// Ends [`RedisServer::pause`].
    pub fn resume(&self) {
        self.process.signal("CONT");
    }

    /// Whether the server's process runs (a paused one does).
    pub fn is_running(&self) -> bool {
        self.process.is_alive()
    }

    /// Opens a connection (by the Unix socket, which is plain even with TLS), logged in, on database 0.
    ///
    /// # Panics
    /// When the server does not run.
    #[track_caller]
    pub fn connect(&self) -> Client {
        match launch::log_in(&self.socket(), self.settings.password.as_deref()) {
            Ok(client) => client,
            Err(error) => panic!("cannot connect to the server on port {}: {error}", self.port),
        }
    }

    /// Runs one command on a connection of its own; see [`Client::run`].
    ///
    /// # Panics
    /// When the server does not run.
    #[track_caller]
    pub fn run(&self, command: &[impl AsRef<[u8]>]) -> Reply {
        self.connect().run(command)
    }
}

/// Everything but letters, digits and `-._~` as `%XX`, as the user part and the query of a URL need it.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
