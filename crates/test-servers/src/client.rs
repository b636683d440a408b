//! A client of Redis that knows nothing of any driver: what a Go service or a person at a prompt would send.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A reply in the second version of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    Nil,
    /// A number.
    Int(i64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A short text such as OK.
    Status(String),
    /// An error's text.
    Error(String),
    /// A list.
    List(Vec<Reply>),
}

impl Reply {
    /// The number, or 0 for nothing.
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            Self::Nil => 0,
            other => other.text().parse().unwrap_or_else(|_| panic!("{other:?} is not a number")),
        }
    }

    /// The text.
    pub fn text(&self) -> String {
        match self {
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Status(text) | Self::Error(text) => text.clone(),
            Self::Int(number) => number.to_string(),
            other => panic!("{other:?} is not a text"),
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            other => panic!("{other:?} is not bytes"),
        }
    }

    /// The items; none for nothing.
    pub fn list(self) -> Vec<Reply> {
        match self {
            Self::List(items) => items,
            Self::Nil => Vec::new(),
            other => panic!("{other:?} is not a list"),
        }
    }
}

/// What is in a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A string.
    String(Vec<u8>),
    /// A list from its left end to its right one.
    List(Vec<Vec<u8>>),
    /// A set.
    Set(Vec<String>),
    /// A sorted set: member and score.
    SortedSet(Vec<(Vec<u8>, String)>),
    /// A hash.
    Hash(BTreeMap<String, String>),
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects to a server on this machine.
    pub fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Runs a command.
    pub fn run<A: AsRef<[u8]>>(&mut self, command: &[A]) -> Reply {
        self.try_run(command).expect("the server answers")
    }

    /// Runs a command; an error if the server is gone.
    pub fn try_run<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<Reply> {
        let mut request = format!("*{}\r\n", command.len()).into_bytes();
        for argument in command {
            let argument = argument.as_ref();
            request.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            request.extend_from_slice(argument);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&request)?;
        self.read()
    }

    /// Every key that begins with `prefix`, with what is in it.
    pub fn dump(&mut self, prefix: &str) -> BTreeMap<String, Content> {
        let pattern: String =
            prefix.chars().flat_map(|c| if "[]*?\\".contains(c) { vec!['\\', c] } else { vec![c] }).collect();
        let keys = self.run(&["KEYS", &format!("{pattern}*")]).list();
        keys.iter().map(|key| (key.text(), self.content(&key.text()))).collect()
    }

    fn content(&mut self, key: &str) -> Content {
        let texts = |reply: Reply| reply.list().iter().map(Reply::text).collect::<Vec<_>>();
        match self.run(&["TYPE", key]).text().as_str() {
            "string" => Content::String(self.run(&["GET", key]).bytes()),
            "list" => {
                Content::List(self.run(&["LRANGE", key, "0", "-1"]).list().iter().map(Reply::bytes).collect())
            }
            "set" => {
                let mut members = texts(self.run(&["SMEMBERS", key]));
                members.sort();
                Content::Set(members)
            }
            "zset" => {
                let flat = self.run(&["ZRANGE", key, "0", "-1", "WITHSCORES"]).list();
                Content::SortedSet(flat.chunks(2).map(|pair| (pair[0].bytes(), pair[1].text())).collect())
            }
            "hash" => {
                let flat = texts(self.run(&["HGETALL", key]));
                Content::Hash(flat.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
            }
            other => panic!("key {key} has the unexpected type {other}"),
        }
    }

    fn read(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().map_err(|_| io::Error::other(line.to_owned()));
        Ok(match kind {
            "+" => Reply::Status(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Int(number()?),
            "$" => match usize::try_from(number()?) {
                Ok(length) => {
                    let mut bytes = vec![0; length + 2];
                    self.stream.read_exact(&mut bytes)?;
                    bytes.truncate(length);
                    Reply::Bytes(bytes)
                }
                Err(_) => Reply::Nil,
            },
            "*" => match usize::try_from(number()?) {
                Ok(length) => Reply::List((0..length).map(|_| self.read()).collect::<io::Result<_>>()?),
                Err(_) => Reply::Nil,
            },
            _ => return Err(io::Error::other(line.to_owned())),
        })
    }
}
