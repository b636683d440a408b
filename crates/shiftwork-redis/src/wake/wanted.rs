//! What a caller waits for, in terms of keys.

use shiftwork_core::clock::Instant;
use shiftwork_core::store::WaitFor;

use super::cache::{Answer, Ask, Cache, Question};
use crate::keys::Keys;

/// What a caller waits for.
#[derive(Debug)]
pub(super) enum Wanted {
    /// A job in one of the queues that may be claimed.
    Work(Vec<Queue>),
    /// A member of one of the due sets.
    Due([Question; 2]),
}

/// What says whether a queue has something to give.
#[derive(Debug)]
pub(super) struct Queue {
    length: Question,
    paused: Question,
    max_concurrency: Question,
    lock: Question,
}

/// What follows from what is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It has come.
    Here,
    /// These have to be asked first.
    Ask(Vec<Question>),
    /// It has not. There is something to ask from the given moment on.
    NotYet(Option<Instant>),
}

impl Wanted {
    pub(super) fn new(wait: &WaitFor, keys: &Keys) -> Self {
        let question = |key, ask| Question { key, ask };
        match wait {
            WaitFor::Work { queues } => Self::Work(
                queues
                    .iter()
                    .map(|queue| Queue {
                        length: question(keys.jobs(queue), Ask::Length),
                        paused: question(keys.paused(queue), Ask::Exists),
                        max_concurrency: question(keys.max_concurrency(queue), Ask::Number),
                        lock: question(keys.lock(queue), Ask::Number),
                    })
                    .collect(),
            ),
            WaitFor::EarlierDue { than } => {
                Self::Due([keys.scheduled(), keys.retry()].map(|set| question(set, Ask::DueBefore(*than))))
            }
        }
    }

    /// The keys that it is first of all about.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        let (queues, sets) = match self {
            Self::Work(queues) => (&queues[..], &[][..]),
            Self::Due(sets) => (&[][..], &sets[..]),
        };
        queues.iter().map(|queue| &*queue.length.key).chain(sets.iter().map(|set| &*set.key))
    }

    /// What follows from what is known now.
    pub(super) fn verdict(&self, cache: &Cache, now: Instant) -> Verdict {
        let mut open = Open { cache, now, ask: Vec::new(), not_before: None };
        let here = match self {
            Self::Work(queues) => queues.iter().any(|queue| queue.has_work(&mut open)),
            Self::Due(sets) => sets.iter().any(|set| open.answer(set).is_some_and(|count| count > 0)),
        };
        match (here, open.ask) {
            (true, _) => Verdict::Here,
            (false, ask) if ask.is_empty() => Verdict::NotYet(open.not_before),
            (false, ask) => Verdict::Ask(ask),
        }
    }
}

impl Queue {
    /// Whether it is known that a claim may succeed. Whatever has to change for that is read, and so will be reported: the
    /// length always, and while there are jobs the rest.
    fn has_work(&self, open: &mut Open<'_>) -> bool {
        let known = |question| match open.cache.answer(question, open.now) {
            Answer::Known(value) => Some(value),
            _ => None,
        };
        let is_full = |max: Option<i64>, lock: Option<i64>| {
            max.zip(lock).is_some_and(|(max, lock)| max > 0 && lock >= max)
        };
        // As long as it gives nothing, its length does not matter.
        if known(&self.paused) == Some(1) || is_full(known(&self.max_concurrency), known(&self.lock)) {
            return false;
        }
        if open.answer(&self.length).is_none_or(|length| length == 0) {
            return false;
        }
        let state = [&self.paused, &self.max_concurrency, &self.lock].map(|question| open.answer(question));
        let [Some(paused), Some(max), Some(lock)] = state else { return false };
        paused == 0 && !is_full(Some(max), Some(lock))
    }
}

/// Looks up answers, and collects the questions that have none.
struct Open<'a> {
    cache: &'a Cache,
    now: Instant,
    ask: Vec<Question>,
    not_before: Option<Instant>,
}

impl Open<'_> {
    fn answer(&mut self, question: &Question) -> Option<i64> {
        match self.cache.answer(question, self.now) {
            Answer::Known(value) => return Some(value),
            Answer::Unknown => self.ask.push(question.clone()),
            Answer::NotBefore(at) => {
                self.not_before = Some(self.not_before.map_or(at, |earlier| earlier.min(at)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_core::clock;
    use shiftwork_core::job::JobName;

    struct World {
        cache: Cache,
        wanted: Wanted,
    }

    impl World {
        fn new(queues: &[&str]) -> Self {
            let queues = queues.iter().map(|name| JobName::new(*name).unwrap()).collect();
            let wanted = Wanted::new(&WaitFor::Work { queues }, &Keys::new("n"));
            Self { cache: Cache::default(), wanted }
        }

        /// Answers what is asked until there is a verdict. Keys that are not named hold nothing.
        fn settle(&mut self, values: &[(&str, i64)]) -> (Vec<String>, bool) {
            let mut asked = Vec::new();
            loop {
                match self.wanted.verdict(&self.cache, clock::now()) {
                    Verdict::Here => return (asked, true),
                    Verdict::NotYet(_) => return (asked, false),
                    Verdict::Ask(questions) => {
                        let reading = self.cache.reading(&questions);
                        let value =
                            |key: &str| values.iter().find(|(name, _)| *name == key).map_or(0, |pair| pair.1);
                        let answers: Vec<_> = questions.iter().map(|question| value(&question.key)).collect();
                        self.cache.read(reading, &questions, &answers);
                        asked.extend(questions.into_iter().map(|question| question.key));
                    }
                }
            }
        }

        fn change(&mut self, key: &str) {
            assert!(self.cache.changed(key, clock::now(), 0.0), "{key} was never read");
        }
    }

    #[test]
    fn idle_queues_are_asked_for_their_length_once() {
        let mut world = World::new(&["a", "b"]);
        assert_eq!(world.settle(&[]), (vec!["n:jobs:a".into(), "n:jobs:b".into()], false));
        assert_eq!(world.settle(&[]), (vec![], false));
        world.change("n:jobs:b");
        assert_eq!(world.settle(&[]), (vec!["n:jobs:b".into()], false), "only what was reported");
        world.change("n:jobs:a");
        assert!(world.settle(&[("n:jobs:a", 1)]).1);
    }

    #[test]
    fn a_pause_that_ends_is_noticed_and_pushes_to_a_paused_queue_are_not() {
        let mut world = World::new(&["a"]);
        let paused = [("n:jobs:a", 4), ("n:jobs:a:paused", 1)];
        assert!(!world.settle(&paused).1);
        world.change("n:jobs:a");
        assert_eq!(world.settle(&paused), (vec![], false));
        world.change("n:jobs:a:paused");
        assert!(world.settle(&[("n:jobs:a", 5)]).1);
    }

    #[test]
    fn room_and_a_raised_limit_are_noticed() {
        let full = [("n:jobs:a", 4), ("n:jobs:a:max_concurrency", 2), ("n:jobs:a:lock", 2)];
        let mut world = World::new(&["a"]);
        assert!(!world.settle(&full).1);
        world.change("n:jobs:a:lock");
        assert!(world.settle(&[full[0], full[1], ("n:jobs:a:lock", 1)]).1);
        let mut world = World::new(&["a"]);
        assert!(!world.settle(&full).1);
        world.change("n:jobs:a:max_concurrency");
        assert!(world.settle(&[full[0], ("n:jobs:a:max_concurrency", 3), full[2]]).1);
    }
}
