//! A Redis or Valkey server process.

// Nothing of this is ever paused, and core's clock module is not for test servers.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::client::{Client, Content, Reply};
use crate::tls::Certificates;

/// The shell that holds the server: when the test process ends, however it ends, its end of the pipe closes, and the server is
/// killed.
const KEEPER: &str = r#""$@" & pid=$!; echo $pid; read -r _; kill -9 $pid; wait $pid"#;
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The system's server program.
pub(crate) fn system_server() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join("redis-server"))
        .find(|program| program.exists())
        .expect("there is no redis-server on this machine: run `cargo xtask test`, which installs it")
}

/// How to start a server.
#[derive(Debug)]
pub struct Builder {
    program: PathBuf,
    options: Vec<(String, String)>,
    password: Option<String>,
    tls: bool,
}

impl Builder {
    /// Which program to start, instead of the system's `redis-server`.
    pub fn program(mut self, program: impl AsRef<Path>) -> Self {
        self.program = program.as_ref().to_owned();
        self
    }

    /// A line of the server's configuration.
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A password for the default user.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.option("requirepass", password)
    }

    /// Serves TLS on a second port, with a certificate made for it.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Starts it and waits until it answers.
    pub fn start(self) -> RedisServer {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut server = RedisServer {
            certificates: self.tls.then(|| Certificates::make(folder.path())),
            tls_port: self.tls.then(free_port),
            port: free_port(),
            program: self.program,
            options: self.options,
            password: self.password,
            process: None,
            folder,
        };
        let mut last_output = String::new();
        // Between finding a free port and using it, somebody else may take it.
        for _ in 0..5 {
            match server.launch() {
                Ok(()) => return server,
                Err(output) => last_output = output,
            }
            server.port = free_port();
            server.tls_port = server.tls_port.map(|_| free_port());
        }
        panic!("{} does not start:\n{last_output}", server.program.display());
    }
}

/// A server that runs.
#[derive(Debug)]
pub struct RedisServer {
    program: PathBuf,
    options: Vec<(String, String)>,
    password: Option<String>,
    port: u16,
    tls_port: Option<u16>,
    certificates: Option<Certificates>,
    process: Option<Process>,
    folder: TempDir,
}

#[derive(Debug)]
struct Process {
    keeper: Child,
    server: u32,
}

impl RedisServer {
    /// The system's server, without persistence.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Options for a server.
    pub fn builder() -> Builder {
        Builder { program: system_server(), options: Vec::new(), password: None, tls: false }
    }

    /// Its URL, database 0.
    pub fn url(&self) -> String {
        match &self.password {
            Some(password) => format!("redis://:{password}@127.0.0.1:{}/0", self.port),
            None => format!("redis://127.0.0.1:{}/0", self.port),
        }
    }

    /// Its URL with TLS.
    pub fn tls_url(&self) -> String {
        format!("rediss://localhost:{}/0", self.tls_port.expect("the server was started with tls()"))
    }

    /// The certificate authority that its certificate is from, in PEM form.
    pub fn ca_certificate(&self) -> String {
        self.certificates.as_ref().expect("the server was started with tls()").authority.clone()
    }

    /// Its URL over a unix socket.
    pub fn unix_url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's process.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server runs").server
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            signal("KILL", process.server);
            drop(process.keeper.stdin.take());
            let _ = process.keeper.wait();
        }
    }

    /// Starts it again after [`RedisServer::kill`], on the same port and with the same data.
    pub fn restart(&mut self) {
        self.kill();
        let deadline = Instant::now() + START_TIMEOUT;
        while let Err(output) = self.launch() {
            assert!(Instant::now() < deadline, "the server does not start again:\n{output}");
        }
    }

    /// Stops it in its tracks (SIGSTOP): it keeps its connections and answers nothing.
    pub fn pause(&self) {
        signal("STOP", self.pid());
    }

    /// Lets it go on.
    pub fn resume(&self) {
        signal("CONT", self.pid());
    }

    /// A foreign client's connection.
    pub fn connect(&self) -> Client {
        let mut client = Client::connect(self.port).expect("the server accepts connections");
        if let Some(password) = &self.password {
            client.run(&["AUTH", password]);
        }
        client
    }

    /// Runs one command as a foreign client.
    pub fn run<A: AsRef<[u8]>>(&self, command: &[A]) -> Reply {
        self.connect().run(command)
    }

    /// Every key that begins with `prefix`, with what is in it.
    pub fn dump(&self, prefix: &str) -> BTreeMap<String, Content> {
        self.connect().dump(prefix)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// Starts the process; its output if it does not come up.
    fn launch(&mut self) -> Result<(), String> {
        let folder = self.folder.path();
        let log = folder.join("log");
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(&self.program);
        command.args([
            "--port",
            &self.port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command.args(["--daemonize", "no", "--dir"]).arg(folder);
        command.arg("--unixsocket").arg(self.socket());
        if let (Some(port), Some(certificates)) = (self.tls_port, &self.certificates) {
            command.args(["--tls-port", &port.to_string(), "--tls-auth-clients", "no"]);
            command.arg("--tls-cert-file").arg(&certificates.certificate);
            command.arg("--tls-key-file").arg(&certificates.key);
            command.arg("--tls-ca-cert-file").arg(&certificates.certificate);
        }
        for (name, value) in &self.options {
            command.arg(format!("--{name}")).arg(value);
        }
        let output = std::fs::File::create(&log).map_err(|error| error.to_string())?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        let pids = folder.join("pid");
        let pid_file = std::fs::File::create(&pids).map_err(|error| error.to_string())?;
        // The first line of the output is the server's process id, the rest is its log.
        command.stdin(Stdio::piped()).stdout(pid_file).stderr(errors);
        drop(output);
        let mut keeper = command.spawn().map_err(|error| format!("sh can't be started: {error}"))?;
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if self.answers() {
                let text = std::fs::read_to_string(&pids).unwrap_or_default();
                let server = text.lines().next().and_then(|pid| pid.parse().ok());
                let server = server.ok_or_else(|| format!("no process id in {text:?}"))?;
                self.process = Some(Process { keeper, server });
                return Ok(());
            }
            let ended = !log_shows_life(&pids) || keeper.try_wait().is_ok_and(|status| status.is_some());
            if ended || Instant::now() > deadline {
                drop(keeper.stdin.take());
                let _ = keeper.wait();
                let output = std::fs::read_to_string(&pids).unwrap_or_default();
                return Err(output + &std::fs::read_to_string(&log).unwrap_or_default());
            }
            // sleep: there is nothing to wait on but the server's port.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn answers(&self) -> bool {
        let Ok(mut client) = Client::connect(self.port) else { return false };
        if let Some(password) = &self.password {
            client.try_run(&["AUTH", password]).ok();
        }
        client.try_run(&["PING"]).is_ok_and(|reply| reply == Reply::Status("PONG".to_owned()))
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether the server has not said yet that it gives up.
fn log_shows_life(output: &Path) -> bool {
    let text = std::fs::read_to_string(output).unwrap_or_default();
    !(text.contains("Address already in use")
        || text.contains("FATAL CONFIG")
        || text.contains("Failed listening"))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be bound");
    listener.local_addr().expect("a bound socket has an address").port()
}

fn signal(name: &str, pid: u32) {
    let status =
        Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).stderr(Stdio::null()).status();
    assert!(status.is_ok(), "`kill` can't be run: {status:?}");
}
