//! The only place that reads time.
//!
//! Two clocks exist. *Local* time is tokio's monotonic clock ([`Instant`]), which tests can pause. *Store* time is
//! the wall clock of the store, the same for all pools; every reply of a store carries it, and [`StoreClock`] carries it
//! on between replies, so that no hot path has to ask for it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
pub use tokio::time::Instant;

/// Local monotonic time.
pub fn now() -> Instant {
    Instant::now()
}

/// This machine's wall-clock time. Only stores without a server of their own take their time from here.
#[allow(clippy::disallowed_methods)]
pub fn wall_now() -> Timestamp {
    Timestamp::now()
}

/// The store's time, carried on by the local monotonic clock since the store's last reply.
#[derive(Debug, Default)]
pub struct StoreClock {
    last: Mutex<Option<(Instant, Timestamp)>>,
}

impl StoreClock {
    /// A clock that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over the time of a reply to a call sent at `sent`.
    ///
    /// The moment of sending counts, not that of the reply: the estimate then runs at most one round trip ahead of the
    /// store and never behind it, so "in five seconds" is never early.
    pub fn observe(&self, sent: Instant, store_time: Timestamp) {
        *self.lock() = Some((sent, store_time));
    }

    /// The store's time now; `None` before the first reply.
    pub fn now(&self) -> Option<Timestamp> {
        let (sent, store_time) = (*self.lock())?;
        let elapsed = now().saturating_duration_since(sent);
        Some(add(store_time, elapsed))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Timestamp)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `time + duration`, held at the end of representable time (the year 9999).
pub fn add(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// A duration as scores have it: its whole seconds.
pub fn whole_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

/// The first whole second at or after `time`, in seconds since the epoch: scores are whole seconds, and a job
/// must not run before its time.
pub fn ceil_seconds(time: Timestamp) -> i64 {
    let whole = time.as_second();
    if time.subsec_nanosecond() > 0 { whole + 1 } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceil_seconds_rounds_up_on_both_sides_of_the_epoch() {
        let at = |ms| ceil_seconds(Timestamp::from_millisecond(ms).unwrap());
        assert_eq!([at(0), at(1), at(999), at(1000), at(-1), at(-1000), at(-1001)], [0, 1, 1, 1, 0, -1, -1]);
    }

    #[tokio::test(start_paused = true)]
    async fn store_clock_runs_on_between_replies() {
        let clock = StoreClock::new();
        assert_eq!(clock.now(), None);
        let sent = now();
        tokio::time::advance(Duration::from_secs(2)).await;
        clock.observe(sent, Timestamp::from_second(100).unwrap());
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(clock.now(), Some(Timestamp::from_second(105).unwrap()));
    }
}
