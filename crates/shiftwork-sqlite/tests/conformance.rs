//! The suite on a file and in memory.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

mod support;

use support::SqliteSubject;

mod file {
    use super::*;

    async fn subject() -> SqliteSubject {
        SqliteSubject::on_disk().await
    }

    shiftwork_core::conformance_tests!(subject);
}

mod memory {
    use super::*;

    async fn subject() -> SqliteSubject {
        SqliteSubject::in_memory().await
    }

    shiftwork_core::conformance_tests!(subject);
}
