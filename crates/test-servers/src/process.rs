//! One child process that cannot outlive the test: a shell stands guard between the two.
//!
//! The shell waits on a pipe that only the test process holds. However that process ends, by SIGKILL too, the pipe
//! closes, and the shell kills the server and deletes its folder. (`PR_SET_PDEATHSIG` would watch the *thread* that
//! started the server, which ends with each test.) The server in turn holds the shell's output pipe, so the end of
//! that pipe reports the server's death without polling.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Arguments: the folder, the log file, then the server's command line.
///
/// Signals for the whole process group (Ctrl-C) are ignored here, or the guard would be gone before the server.
const GUARD: &str = r#"
trap '' INT TERM HUP
folder=$1 log=$2; shift 2
"$@" 3>&1 >>"$log" 2>&1 &
server=$!
echo $server
exec >/dev/null
read -r word || word=orphaned
kill -KILL $server 2>/dev/null
wait $server
if [ "$word" = orphaned ]; then rm -rf "$folder"; fi
"#;

/// A running server and its guard.
#[derive(Debug)]
pub(crate) struct Process {
    guard: Child,
    leash: Option<ChildStdin>,
    /// Behind a lock only so that tests can share the server between threads.
    deaths: Mutex<Receiver<()>>,
    pid: u32,
}

impl Process {
    /// Starts `binary` with `arguments`, its output appended to `log`. The caller has to check that it stays alive.
    pub(crate) fn start(binary: &Path, arguments: &[&Path], folder: &Path, log: &Path) -> Process {
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .args([folder, log, binary])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run `sh`: {error}"));
        let leash = guard.stdin.take();
        let mut output = BufReader::new(guard.stdout.take().expect("stdout was asked to be a pipe"));
        let mut line = String::new();
        let read = output.read_line(&mut line);
        let Ok(pid) = line.trim().parse() else {
            panic!("the shell that guards {} gave no process id: {read:?}, {line:?}", binary.display())
        };
        let (sender, deaths) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            // Ends when the last holder of the pipe is gone: the server, or a child that it forked to write a file.
            let _ = output.read_to_end(&mut Vec::new());
            drop(sender);
        });
        Process { guard, leash, deaths: Mutex::new(deaths), pid }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the process to end, for at most `time`. Whether it ended.
    pub(crate) fn died_within(&self, time: Duration) -> bool {
        let deaths = self.deaths.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(deaths.recv_timeout(time), Err(RecvTimeoutError::Disconnected))
    }

    /// Whether the process runs. A killed one does not, even if a child that it forked still writes a file.
    pub(crate) fn is_alive(&self) -> bool {
        self.leash.is_some() && !self.died_within(Duration::ZERO)
    }

    /// Sends a signal, by its name without `SIG`.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.pid)]).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot send SIG{name} to process {}", self.pid);
    }

    /// Kills the process with SIGKILL, and returns once it is gone and its ports are free. Its folder stays.
    pub(crate) fn kill(&mut self) {
        if let Some(mut leash) = self.leash.take() {
            // A guard that is gone already has nothing left to be told.
            let _ = leash.write_all(b"keep\n");
        }
        let _ = self.guard.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
