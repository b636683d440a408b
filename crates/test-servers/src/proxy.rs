//! A bad network: a proxy between a client and a server that loses, delays and cuts on demand.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A proxy to a port of this machine.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    refuse: AtomicBool,
    swallow_replies: AtomicBool,
    delay_micros: AtomicU64,
    streams: Mutex<Vec<TcpStream>>,
    closed: AtomicBool,
}

impl FaultProxy {
    /// Starts a proxy to `target`.
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be bound");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let state = Arc::new(State::default());
        let shared = state.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.closed.load(Ordering::SeqCst) {
                    return;
                }
                if shared.refuse.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                let (client_copy, server_copy) = (copy(&client), copy(&server));
                shared.streams().extend([copy(&client), copy(&server)]);
                let (up, down) = (shared.clone(), shared.clone());
                thread::spawn(move || up.pump(client, server, false));
                thread::spawn(move || down.pump(server_copy, client_copy, true));
            }
        });
        Self { port, state }
    }

    /// The proxy's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a Redis server behind it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        for stream in self.state.streams().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Whether new connections are closed at once.
    pub fn refuse(&self, refuse: bool) {
        self.state.refuse.store(refuse, Ordering::SeqCst);
    }

    /// Whether replies are lost on the way; what is sent arrives.
    pub fn swallow_replies(&self, swallow: bool) {
        self.state.swallow_replies.store(swallow, Ordering::SeqCst);
    }

    /// Adds this to the time that each piece takes, each way.
    pub fn delay(&self, delay: Duration) {
        self.state.delay_micros.store(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the listener, so that it sees that it is closed.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream, is_reply: bool) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let delay = self.delay_micros.load(Ordering::SeqCst);
            if delay > 0 {
                // sleep: it is the network's latency.
                thread::sleep(Duration::from_micros(delay));
            }
            if is_reply && self.swallow_replies.load(Ordering::SeqCst) {
                continue;
            }
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

fn copy(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a socket can be shared")
}
