//! A blocking RESP2 client of a few lines: commands go out as arrays of bulk strings, replies come back as [`Reply`].
//!
//! It is deliberately no Redis driver: what a test learns through it does not depend on the driver under test.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::Reply;

/// No reply in a test takes this long, so a test that waits longer fails instead of hanging. The exception are
/// blocking commands with a longer time of their own.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

trait Connection: Read + Write + Send {}
impl<T: Read + Write + Send> Connection for T {}

/// One connection. Commands run in order; a reply is read before the next command goes out.
pub struct Client {
    connection: BufReader<Box<dyn Connection>>,
}

impl Client {
    /// Connects by TCP, for instance to a [`FaultProxy`](crate::FaultProxy): `Client::tcp(("127.0.0.1", port))`.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn tcp(address: impl ToSocketAddrs) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Client { connection: BufReader::new(Box::new(stream)) })
    }

    /// Connects to a Unix socket.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn unix(path: &Path) -> io::Result<Client> {
        Client::unix_within(path, REPLY_TIMEOUT)
    }

    /// As [`Client::unix`], giving up on each reply after `timeout`.
    pub(crate) fn unix_within(path: &Path, timeout: Duration) -> io::Result<Client> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Client { connection: BufReader::new(Box::new(stream)) })
    }

    /// Runs one command; the first argument is its name. An error reply is returned as [`Reply::Error`].
    ///
    /// # Panics
    /// When the connection fails, or the reply takes longer than 30 s.
    #[track_caller]
    pub fn run(&mut self, command: &[impl AsRef<[u8]>]) -> Reply {
        match self.try_run(command) {
            Ok(reply) => reply,
            Err(error) => panic!("the connection failed during {}: {error}", shown(command)),
        }
    }

    /// As [`Client::run`], for tests that expect the connection to fail.
    ///
    /// # Errors
    /// When the connection fails, or the reply takes longer than 30 s.
    pub fn try_run(&mut self, command: &[impl AsRef<[u8]>]) -> io::Result<Reply> {
        let mut request = format!("*{}\r\n", command.len()).into_bytes();
        for argument in command {
            let argument = argument.as_ref();
            request.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            request.extend_from_slice(argument);
            request.extend_from_slice(b"\r\n");
        }
        self.connection.get_mut().write_all(&request)?;
        self.read_reply()
    }

    fn read_reply(&mut self) -> io::Result<Reply> {
        let line = self.read_line()?;
        let Some((kind, rest)) = line.split_at_checked(1) else { return Err(malformed(&line)) };
        match kind {
            "+" => Ok(Reply::Status(rest.to_owned())),
            "-" => Ok(Reply::Error(rest.to_owned())),
            ":" => Ok(Reply::Int(rest.parse().map_err(|_| malformed(&line))?)),
            "$" | "*" if rest == "-1" => Ok(Reply::Nil),
            "$" => {
                let length: usize = rest.parse().map_err(|_| malformed(&line))?;
                let mut bytes = vec![0; length + 2];
                self.connection.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Ok(Reply::Bytes(bytes))
            }
            "*" => {
                let length: usize = rest.parse().map_err(|_| malformed(&line))?;
                let items: io::Result<Vec<Reply>> = (0..length).map(|_| self.read_reply()).collect();
                items.map(Reply::List)
            }
            _ => Err(malformed(&line)),
        }
    }

    fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.connection.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        line.truncate(line.trim_end_matches(['\r', '\n']).len());
        Ok(line)
    }
}

fn malformed(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{line:?} is not RESP2"))
}

fn shown(command: &[impl AsRef<[u8]>]) -> String {
    command.iter().map(|argument| argument.as_ref().escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
