//! The memory store passes the suite, too: it is the reference.

use shiftwork_core::MemoryStore;
use shiftwork_core::conformance::MemorySubject;

async fn subject() -> MemorySubject {
    MemorySubject(MemoryStore::new())
}

shiftwork_core::conformance_tests!(subject);
