//! Reconciliation: claims that the store holds in this pool's name and that nobody here knows of.
//!
//! A claim is made by a script whose reply may be lost: the connection breaks, a proxy gives up. The job is then in progress for
//! ever, for the pool lives and nobody looks at the claims of the living. So after a call that got no answer the pool
//! compares: no exchange is under way meanwhile, so what the store has beyond what is here is orphaned, and goes back to the
//! head of its queue. A second round later catches what a call that was only delayed has claimed since.

use std::collections::HashMap;
use std::time::Duration;

use crate::clock::{self, Instant};
use crate::store::Claim;

/// Rounds after a doubt.
const ROUNDS: u32 = 2;
/// Longer than a call can be under way before its connection is given up.
const BETWEEN_ROUNDS: Duration = Duration::from_secs(15);
/// How long a job whose end the store refuses is left alone before it is run again.
const AFTER_GIVING_UP: Duration = Duration::from_secs(60);

/// Whether, and when, to compare.
#[derive(Debug, Default)]
pub(in crate::pool) struct Doubt {
    rounds: u32,
    next: Option<Instant>,
    asking: bool,
}

impl Doubt {
    /// A call that may have claimed got no answer.
    pub(in crate::pool) fn raise(&mut self) {
        self.rounds = ROUNDS;
        self.next = Some(clock::now());
    }

    /// The end of a job was given up; its claim is still there.
    pub(in crate::pool) fn raise_later(&mut self) {
        if self.rounds == 0 {
            self.rounds = 1;
            self.next = Some(clock::now() + AFTER_GIVING_UP);
        }
    }

    /// When the next round is, if there is one.
    pub(in crate::pool) fn next(&self) -> Option<Instant> {
        self.next.filter(|_| !self.asking)
    }

    /// Whether a round is due, or under way: no exchange may be sent then.
    pub(in crate::pool) fn is_due(&self, at_once: bool) -> bool {
        self.asking || (self.rounds > 0 && (at_once || self.next.is_some_and(|next| next <= clock::now())))
    }

    pub(in crate::pool) fn is_asking(&self) -> bool {
        self.asking
    }

    pub(in crate::pool) fn is_settled(&self) -> bool {
        self.rounds == 0 && !self.asking
    }

    pub(in crate::pool) fn asked(&mut self) {
        self.asking = true;
    }

    /// A round has been answered, or not.
    pub(in crate::pool) fn answered(&mut self, success: bool, is_last: bool) {
        self.asking = false;
        if success {
            self.rounds = if is_last { 0 } else { self.rounds.saturating_sub(1) };
            self.next = (self.rounds > 0).then(|| clock::now() + BETWEEN_ROUNDS);
        }
    }

    /// The claims are not this pool's any more.
    pub(in crate::pool) fn clear(&mut self) {
        *self = Self { asking: self.asking, ..Self::default() };
    }
}

/// The claims of the store that are not among those `known` here; of equal ones, as many as are too many.
pub(in crate::pool) fn orphans<'a>(
    in_store: Vec<Claim>,
    known: impl Iterator<Item = &'a Claim>,
) -> Vec<Claim> {
    let mut counts: HashMap<&Claim, usize> = HashMap::new();
    for claim in known {
        *counts.entry(claim).or_default() += 1;
    }
    let mut is_orphan = |claim: &Claim| match counts.get_mut(claim) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    in_store.into_iter().filter(|claim| is_orphan(claim)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobName;

    #[test]
    fn orphans_are_what_the_store_has_beyond_what_is_known() {
        let claim = |job: &str| Claim { queue: JobName::new("a").unwrap(), job: job.as_bytes().into() };
        let in_store = ["1", "2", "2", "3", "2"].map(claim).to_vec();
        let known = ["2", "3", "4"].map(claim);
        assert_eq!(orphans(in_store, known.iter()), ["1", "2", "2"].map(claim));
    }
}
