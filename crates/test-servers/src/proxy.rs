//! A TCP proxy that misbehaves on command, between a client and a server of 127.0.0.1.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Passes connections on to a port of 127.0.0.1. Every fault acts on the connections that are open already, too.
///
/// A reply that is lost after the server has obeyed: `swallow_replies(true)`, the command, then `cut()`.
pub struct FaultProxy {
    port: u16,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Both ends of each open connection, by its number.
    connections: Mutex<HashMap<u64, [TcpStream; 2]>>,
    accepted: AtomicU64,
    swallowed_bytes: AtomicU64,
    delay_micros: AtomicU64,
    refuse: AtomicBool,
    swallow_replies: AtomicBool,
    swallow_pushes: AtomicBool,
    stopped: AtomicBool,
}

impl FaultProxy {
    /// Starts a proxy to this port, without faults, on a free port of its own.
    ///
    /// # Panics
    /// When this machine has no free port.
    #[track_caller]
    pub fn to(target: u16) -> FaultProxy {
        let listener = TcpListener::bind(("127.0.0.1", 0));
        let listener =
            listener.unwrap_or_else(|error| panic!("the proxy cannot listen on 127.0.0.1: {error}"));
        let port = listener.local_addr().map(|address| address.port());
        let port = port.unwrap_or_else(|error| panic!("the proxy's own port is unknown: {error}"));
        let shared = Arc::new(Shared::default());
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.accept(&listener, target)
        });
        FaultProxy { port, shared, acceptor: Some(acceptor) }
    }

    /// The proxy's port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `redis://127.0.0.1:…`, for a server without password and TLS.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Drops every open connection, now. New ones are let through.
    pub fn cut(&self) {
        for (_, ends) in self.shared.connections().drain() {
            for end in ends {
                // An error only says that this end is closed already.
                let _ = end.shutdown(Shutdown::Both);
            }
        }
    }

    /// Whether new connections are closed as soon as they are made. Open ones are left alone.
    pub fn refuse(&self, refuse: bool) {
        self.shared.refuse.store(refuse, Ordering::SeqCst);
    }

    /// Whether what the server sends is thrown away. Swallowed replies do not come back: a connection that missed
    /// one is out of step, and only good for [`FaultProxy::cut`].
    pub fn swallow_replies(&self, swallow: bool) {
        self.shared.swallow_replies.store(swallow, Ordering::SeqCst);
    }

    /// Whether what the server says unasked (RESP3 pushes) is thrown away, as a proxy that does not know of such things
    /// would. Replies come through, as long as none follows a push so closely that both arrive in one piece.
    pub fn swallow_pushes(&self, swallow: bool) {
        self.shared.swallow_pushes.store(swallow, Ordering::SeqCst);
    }

    /// Holds every piece of data from the server back for this long; zero ends it.
    pub fn delay(&self, delay: Duration) {
        let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        self.shared.delay_micros.store(micros, Ordering::SeqCst);
    }

    /// How many connections were ever made to the proxy, refused ones included.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open through the proxy.
    pub fn open(&self) -> usize {
        self.shared.connections().len()
    }

    /// How many bytes of replies were swallowed: more than zero proves that the server has obeyed.
    pub fn swallowed_bytes(&self) -> u64 {
        self.shared.swallowed_bytes.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, HashMap<u64, [TcpStream; 2]>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener, target: u16) {
        for client in listener.incoming() {
            if self.stopped.load(Ordering::SeqCst) {
                return;
            }
            let number = self.accepted.fetch_add(1, Ordering::SeqCst);
            if self.refuse.load(Ordering::SeqCst) {
                continue;
            }
            // A server that is down shows as a connection that is closed at once.
            if let Ok(client) = client
                && let Ok(server) = TcpStream::connect(("127.0.0.1", target))
            {
                let _ = self.connect(number, client, server);
            }
        }
    }

    fn connect(self: &Arc<Self>, number: u64, client: TcpStream, server: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        self.connections().insert(number, [client.try_clone()?, server.try_clone()?]);
        let (client_writer, server_writer) = (client.try_clone()?, server.try_clone()?);
        let (requests, replies) = (Arc::clone(self), Arc::clone(self));
        thread::spawn(move || {
            let _ = requests.pump(client, server_writer, |_, _| true);
            requests.close(number);
        });
        thread::spawn(move || {
            let _ = replies.pump(server, client_writer, Shared::spoil);
            replies.close(number);
        });
        Ok(())
    }

    /// Copies until either side closes; `pass` decides about each piece.
    fn pump(
        &self,
        mut from: TcpStream,
        mut to: TcpStream,
        pass: impl Fn(&Shared, &[u8]) -> bool,
    ) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        loop {
            let length = from.read(&mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            let piece = &buffer[..length];
            if pass(self, piece) {
                to.write_all(piece)?;
            }
        }
    }

    /// Whether a piece from the server is passed on, after the delay that is asked for.
    fn spoil(&self, piece: &[u8]) -> bool {
        thread::sleep(Duration::from_micros(self.delay_micros.load(Ordering::SeqCst)));
        let swallow = self.swallow_replies.load(Ordering::SeqCst)
            || (self.swallow_pushes.load(Ordering::SeqCst) && piece.first() == Some(&b'>'));
        if swallow {
            self.swallowed_bytes.fetch_add(piece.len() as u64, Ordering::SeqCst);
        }
        !swallow
    }

    fn close(&self, number: u64) {
        if let Some(ends) = self.connections().remove(&number) {
            for end in ends {
                let _ = end.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which then sees that it should stop.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        self.cut();
    }
}

impl fmt::Debug for FaultProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultProxy")
            .field("port", &self.port)
            .field("open", &self.open())
            .finish_non_exhaustive()
    }
}
