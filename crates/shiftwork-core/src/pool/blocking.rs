//! Threads for handlers that block: the pool's own, as many as it has slots.
//!
//! Not the user's runtime's blocking threads: those also resolve host names and read files, and a pool full of slow
//! jobs would take them all.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime that is used for its blocking threads only, made when the first blocking handler runs.
#[derive(Debug)]
pub(crate) struct BlockingThreads {
    limit: usize,
    runtime: OnceLock<Runtime>,
}

impl BlockingThreads {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, runtime: OnceLock::new() }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.runtime
            .get_or_init(|| {
                Builder::new_current_thread()
                    .max_blocking_threads(self.limit)
                    .thread_name("shiftwork-blocking")
                    .build()
                    .expect("a current-thread runtime without drivers asks nothing of the system")
            })
            .handle()
            .clone()
    }
}

impl Drop for BlockingThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting here would hang on a handler that never returns, and may not be done inside another runtime.
            runtime.shutdown_background();
        }
    }
}
