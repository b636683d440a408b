//! Who waits in this process, and what wakes them.

use std::ops::{BitOr, BitOrAssign};
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// What a transaction changed that somebody may wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// A claim may succeed that did not before.
    pub(crate) work: bool,
    /// Something was put into the scheduled or the retry set.
    pub(crate) due: bool,
}

impl Changed {
    pub(crate) const WORK: Self = Self { work: true, due: false };
    pub(crate) const DUE: Self = Self { work: false, due: true };
    pub(crate) const ANYTHING: Self = Self { work: true, due: true };
}

impl BitOr for Changed {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { work: self.work | other.work, due: self.due | other.due }
    }
}

impl BitOrAssign for Changed {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// Counters of changes: a waiter can tell whether it missed one.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    work: watch::Sender<u64>,
    due: watch::Sender<u64>,
    waiters: AtomicUsize,
}

impl Changes {
    /// Wakes those who wait for what changed.
    pub(crate) fn announce(&self, changed: Changed) {
        if changed.work {
            self.work.send_modify(|count| *count += 1);
        }
        if changed.due {
            self.due.send_modify(|count| *count += 1);
        }
    }

    /// Joins the waiters for one kind of change.
    pub(crate) fn wait_for(&self, changed: Changed) -> Waiter<'_> {
        self.waiters.fetch_add(1, Ordering::Relaxed);
        let counter = if changed.work { self.work.subscribe() } else { self.due.subscribe() };
        Waiter { changes: self, counter }
    }

    pub(crate) fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }
}

/// One who waits.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    changes: &'a Changes,
    counter: watch::Receiver<u64>,
}

impl Waiter<'_> {
    /// From here on changes count.
    pub(crate) fn begin(&mut self) {
        self.counter.borrow_and_update();
    }

    /// Sleeps until something has changed since [`Waiter::begin`].
    pub(crate) async fn changed(&mut self) {
        // The sender lives as long as `changes`, so this can't fail.
        let _ = self.counter.changed().await;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.changes.waiters.fetch_sub(1, Ordering::Relaxed);
    }
}
