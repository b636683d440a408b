//! The `shiftwork` command as a user runs it: real processes, a real server.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

mod bench;
mod demo;
mod enqueue;
mod main_job;
mod work;

use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Output, Stdio};

use test_servers::RedisServer;

/// The command, on this server.
fn shiftwork(server: &RedisServer) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
    command.env("SHIFTWORK_STORE", server.url()).env_remove("SHIFTWORK_NAMESPACE").env_remove("RUST_LOG");
    command.stdin(Stdio::null());
    command
}

/// A process that does not outlive its test, however the test ends.
struct Running(Child);

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended by itself, if all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the command with these arguments.
fn run(server: &RedisServer, arguments: &[&str]) -> Output {
    shiftwork(server).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn exit_code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}
