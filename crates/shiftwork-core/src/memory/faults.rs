//! Faults that a test injects into a [`MemoryStore`](super::MemoryStore).

use std::collections::{BTreeMap, VecDeque};

use crate::error::Error;

/// A verb of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // Each is the verb of the same name in `Store`, which documents it.
pub enum Verb {
    Push,
    Exchange,
    Start,
    Release,
    Promote,
    Beat,
    Leave,
    OwnClaims,
    Backlog,
    Wait,
    Observe,
    Look,
    Held,
    Recover,
    Audit,
    NoteUnknown,
    Repair,
    ReaperLock,
    Tick,
    LastTicks,
    Watch,
}

impl Verb {
    /// Whether it may change something that somebody waits for: work, or an earlier due time.
    pub(super) fn makes_work(self) -> bool {
        matches!(
            self,
            Self::Push
                | Self::Exchange
                | Self::Release
                | Self::Promote
                | Self::Beat
                | Self::Recover
                | Self::Tick
        )
    }
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The store is out of reach: the call takes no effect.
    Unavailable,
    /// The call takes effect, but its reply is lost.
    LostReply,
    /// The store answers and refuses: the call takes no effect, and trying again would not help.
    Rejected,
}

impl Fault {
    /// The error of a call that takes no effect.
    pub(super) fn before(self, verb: Verb) -> Option<Error> {
        match self {
            Self::Unavailable => Some(unavailable(verb)),
            Self::Rejected => Some(Error::rejected(format!("the store refused {verb:?}"), "injected fault")),
            Self::LostReply => None,
        }
    }

    /// The error of a call that took effect.
    pub(super) fn after(self, verb: Verb) -> Option<Error> {
        (self == Self::LostReply).then(|| unavailable(verb))
    }
}

pub(super) fn unavailable(verb: Verb) -> Error {
    Error::unavailable(format!("the store did not answer {verb:?}"), "injected fault")
}

/// Faults that wait for their calls.
#[derive(Debug, Default)]
pub(super) struct Faults {
    down: bool,
    waiting: BTreeMap<Verb, VecDeque<Fault>>,
    calls: BTreeMap<Verb, usize>,
}

impl Faults {
    pub(super) fn push(&mut self, verb: Verb, fault: Fault) {
        self.waiting.entry(verb).or_default().push_back(fault);
    }

    pub(super) fn calls(&self, verb: Verb) -> usize {
        self.calls.get(&verb).copied().unwrap_or(0)
    }

    pub(super) fn set_outage(&mut self, down: bool) {
        self.down = down;
    }

    pub(super) fn outage(&self) -> Option<Fault> {
        self.down.then_some(Fault::Unavailable)
    }

    /// The fault of a call that happens now.
    pub(super) fn take(&mut self, verb: Verb) -> Option<Fault> {
        *self.calls.entry(verb).or_default() += 1;
        self.outage().or_else(|| self.waiting.get_mut(&verb)?.pop_front())
    }
}
