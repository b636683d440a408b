//! From settings to a server that answers: the configuration file, the start, the wait.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::certificates::Certificates;
use crate::process::Process;
use crate::{Client, RedisServerBuilder, Reply};

/// A starting server answers within milliseconds; this bound is for a machine under heavy load.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two looks at a starting server.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Why a start failed: only a lost port is worth another try.
pub(crate) enum StartError {
    PortTaken,
    Failed(String),
}

/// Writes `redis.conf`. The caller's own settings come last, so they win.
pub(crate) fn write_configuration(
    folder: &Path,
    settings: &RedisServerBuilder,
    certificates: Option<&Certificates>,
    port: u16,
) {
    let mut lines = format!(
        "bind 127.0.0.1\nunixsocket {}\ndir {}\nsave \"\"\nappendonly no\n",
        quoted(&socket_in(folder).display().to_string()),
        quoted(&folder.display().to_string()),
    );
    let mut add =
        |name: &str, value: &str| writeln!(lines, "{name} {value}").expect("strings take every write");
    match certificates {
        None => add("port", &port.to_string()),
        Some(files) => {
            add("port", "0");
            add("tls-port", &port.to_string());
            add("tls-auth-clients", "no");
            add("tls-ca-cert-file", &quoted(&files.authority.display().to_string()));
            add("tls-cert-file", &quoted(&files.certificate.display().to_string()));
            add("tls-key-file", &quoted(&files.key.display().to_string()));
        }
    }
    if let Some(password) = &settings.password {
        add("requirepass", &quoted(password));
    }
    for (name, value) in &settings.settings {
        add(name, if value.is_empty() { "\"\"" } else { value });
    }
    let path = configuration_in(folder);
    fs::write(&path, lines).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

/// Starts the server on the configuration in `folder` and waits until it answers.
///
/// The answer is awaited on the Unix socket, because nobody else can listen in our own folder, while a TCP port may
/// belong to another process by now. The server opens its TCP port before the socket, and ends when it cannot.
pub(crate) fn launch(binary: &Path, folder: &Path, password: Option<&str>) -> Result<Process, StartError> {
    // What a killed server left: connecting to it would only be refused, but a look at it should mean something.
    let _ = fs::remove_file(socket_in(folder));
    let log_start = read_log(folder).len();
    let configuration = configuration_in(folder);
    let process = Process::start(binary, &[&configuration], folder, &log_path(folder));
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        if process.died_within(LOOK_INTERVAL) {
            let log = read_log(folder).split_off(log_start);
            if log.contains("Address already in use") || log.contains("Failed listening on port") {
                return Err(StartError::PortTaken);
            }
            return Err(StartError::Failed(format!("{} ended at its start:\n{log}", binary.display())));
        }
        if answers(folder, password) {
            return Ok(process);
        }
        if Instant::now() > deadline {
            let log = read_log(folder).split_off(log_start);
            return Err(StartError::Failed(format!(
                "{} did not answer within {START_TIMEOUT:?}:\n{log}",
                binary.display()
            )));
        }
    }
}

/// Connects and logs in on the Unix socket in `folder`.
pub(crate) fn log_in(socket: &Path, password: Option<&str>) -> io::Result<Client> {
    let mut client = Client::unix(socket)?;
    if let Some(password) = password
        && let Reply::Error(message) = client.try_run(&["AUTH", password])?
    {
        return Err(io::Error::other(message));
    }
    Ok(client)
}

/// Whether the server answers PING: a server that still loads its data answers with an error.
fn answers(folder: &Path, password: Option<&str>) -> bool {
    let ping = || -> io::Result<Reply> {
        let mut client = Client::unix_within(&socket_in(folder), START_TIMEOUT)?;
        if let Some(password) = password {
            client.try_run(&["AUTH", password])?;
        }
        client.try_run(&["PING"])
    };
    ping().is_ok_and(|reply| reply == Reply::Status("PONG".to_owned()))
}

pub(crate) fn socket_in(folder: &Path) -> PathBuf {
    folder.join("redis.sock")
}

fn configuration_in(folder: &Path) -> PathBuf {
    folder.join("redis.conf")
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("server.log")
}

pub(crate) fn read_log(folder: &Path) -> String {
    // Missing before the first start.
    String::from_utf8_lossy(&fs::read(log_path(folder)).unwrap_or_default()).into_owned()
}

/// A value of the configuration file that may hold spaces, quotes and bytes beyond ASCII.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}
