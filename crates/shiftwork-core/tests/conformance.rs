//! The memory store passes the suite, too: it is the reference.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

use shiftwork_core::MemoryStore;
use shiftwork_core::conformance::MemorySubject;

async fn subject() -> MemorySubject {
    MemorySubject(MemoryStore::new())
}

shiftwork_core::conformance_tests!(subject);
