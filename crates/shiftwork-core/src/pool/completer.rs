//! Finishes that the store has not taken yet.
//!
//! A job that has ended is never forgotten because the store blinked: its finish waits here until a reply says that it
//! was taken. Whatever ends while one exchange is under way goes into the next, so the busier the pool, the larger the groups.
//!
//! A store that *refuses* a group will refuse it again. One bad finish must not hold up the others, so a refused group is
//! sent in halves until the culprit is alone; after some attempts it is given up with an alarm. Its claim then stays in the
//! store, where reconciliation finds it.

use std::collections::VecDeque;

use crate::error::Error;
use crate::store::{Claim, Finish};

/// The most finishes in one exchange.
const MAX_GROUP: usize = 1000;
/// How often a finish is refused before it is given up.
const MAX_REFUSALS: u32 = 5;

/// A finish and what has happened to it so far.
#[derive(Debug)]
pub(in crate::pool) struct Pending {
    pub(in crate::pool) finish: Finish,
    /// A call that carried it got no answer, so it may have been taken already.
    pub(in crate::pool) uncertain: bool,
    refusals: u32,
}

/// The finishes of one exchange.
#[derive(Debug, Default)]
pub(in crate::pool) struct Group {
    pub(in crate::pool) finishes: Vec<Pending>,
    /// Whether the group goes alone, because it was refused before.
    pub(in crate::pool) alone: bool,
}

/// All finishes that wait.
#[derive(Debug, Default)]
pub(in crate::pool) struct Completer {
    waiting: VecDeque<Pending>,
    refused: VecDeque<Vec<Pending>>,
}

impl Completer {
    pub(in crate::pool) fn add(&mut self, finish: Finish) {
        self.waiting.push_back(Pending { finish, uncertain: false, refusals: 0 });
    }

    pub(in crate::pool) fn len(&self) -> usize {
        self.waiting.len() + self.refused.iter().map(Vec::len).sum::<usize>()
    }

    pub(in crate::pool) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.refused.is_empty()
    }

    /// The claims whose ends wait here.
    pub(in crate::pool) fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.waiting.iter().chain(self.refused.iter().flatten()).map(|pending| &pending.finish.claim)
    }

    /// Forgets everything: the claims are not this pool's any more.
    pub(in crate::pool) fn clear(&mut self) -> usize {
        let forgotten = self.len();
        self.waiting.clear();
        self.refused.clear();
        forgotten
    }

    /// The next group to send, of so many at most.
    pub(in crate::pool) fn next_group(&mut self, most: usize) -> Group {
        match self.refused.pop_front() {
            Some(finishes) => Group { finishes, alone: true },
            None => {
                let count = self.waiting.len().min(most).min(MAX_GROUP);
                Group { finishes: self.waiting.drain(..count).collect(), alone: false }
            }
        }
    }

    /// The call that carried the group got no answer: send it again, first.
    pub(in crate::pool) fn unanswered(&mut self, mut group: Group) {
        for pending in &mut group.finishes {
            pending.uncertain = true;
        }
        if group.alone {
            self.refused.push_front(group.finishes);
        } else {
            for pending in group.finishes.into_iter().rev() {
                self.waiting.push_front(pending);
            }
        }
    }

    /// The store refused the call that carried the group: send its halves apart. Returns how many were given up.
    pub(in crate::pool) fn refused(&mut self, mut group: Group, error: &Error) -> usize {
        match group.finishes.len() {
            0 => 0,
            1 => {
                let mut pending = group.finishes.remove(0);
                pending.refusals += 1;
                if pending.refusals < MAX_REFUSALS {
                    self.refused.push_back(vec![pending]);
                    return 0;
                }
                tracing::error!(
                    target: "shiftwork",
                    queue = &*pending.finish.claim.queue,
                    job = %String::from_utf8_lossy(&pending.finish.claim.job),
                    %error,
                    "the store keeps refusing the end of this job; giving up. Its claim stays in the store: \
                     mend the cause, and the claim will be taken back and run again"
                );
                1
            }
            count => {
                let second = group.finishes.split_off(count / 2);
                self.refused.push_back(group.finishes);
                self.refused.push_back(second);
                0
            }
        }
    }
}
