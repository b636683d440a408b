//! The suite on real servers: every flavor that this machine has.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

mod support;

use support::RedisSubject;

mod redis {
    use super::*;

    async fn subject() -> RedisSubject {
        RedisSubject::on("redis").await
    }

    shiftwork_core::conformance_tests!(subject);
}

mod redis_6_2 {
    use super::*;

    async fn subject() -> RedisSubject {
        RedisSubject::on("redis-6.2").await
    }

    shiftwork_core::conformance_tests!(subject);
}

mod valkey {
    use super::*;

    async fn subject() -> RedisSubject {
        RedisSubject::on("valkey").await
    }

    shiftwork_core::conformance_tests!(subject);
}
