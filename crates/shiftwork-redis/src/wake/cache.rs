//! What the server has said of keys, for as long as it has not said that they changed.
//!
//! Client-side caching in the server's sense: a key that was read on a tracked connection is reported once when it changes,
//! and then no more until it is read again. So what was read and has not been reported still holds.

use std::collections::HashMap;
use std::time::Duration;

use shiftwork_core::clock::Instant;

/// The longest a reported key is left alone before it is read again.
const LONGEST_REST: Duration = Duration::from_millis(64);
/// Different questions about one key whose answers are kept.
const MOST_ANSWERS: usize = 8;

/// What is asked of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// How long a list is.
    Length,
    /// Whether the key is there.
    Exists,
    /// The number that it holds.
    Number,
    /// How many members of a sorted set are due before this second; all, if none is given.
    DueBefore(Option<i64>),
}

/// A key, and what is asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) key: String,
    pub(super) ask: Ask,
}

/// What is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// This, until the key is reported.
    Known(i64),
    /// Nothing; ask.
    Unknown,
    /// It was reported, and so often for nothing that it is not worth asking before then.
    NotBefore(Instant),
}

/// The number of one reading. An answer counts if its key was not reported since the reading began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reading(u64);

#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: HashMap<String, Entry>,
    readings: u64,
}

/// What is known of one key.
#[derive(Debug, Default)]
struct Entry {
    /// None since it was reported.
    answers: Vec<Asked>,
    /// It was reported and not read since.
    is_reported: bool,
    /// How often it was reported since that last brought work.
    fruitless: u32,
    /// Since it was reported last: not worth asking before then.
    rest_until: Option<Instant>,
}

/// A question that was asked since the key was reported.
#[derive(Debug)]
struct Asked {
    ask: Ask,
    /// The first reading that asked it.
    since: Reading,
    value: Option<i64>,
}

impl Cache {
    /// What is known of a key.
    pub(super) fn answer(&self, question: &Question, now: Instant) -> Answer {
        let Some(entry) = self.entries.get(&question.key) else { return Answer::Unknown };
        let asked = entry.answers.iter().find(|asked| asked.ask == question.ask);
        match (asked.and_then(|asked| asked.value), entry.rest_until) {
            (Some(value), _) => Answer::Known(value),
            (None, Some(rest_until)) if rest_until > now => Answer::NotBefore(rest_until),
            _ => Answer::Unknown,
        }
    }

    /// These are about to be read.
    pub(super) fn reading(&mut self, questions: &[Question]) -> Reading {
        self.readings += 1;
        let reading = Reading(self.readings);
        for Question { key, ask } in questions {
            if !self.entries.contains_key(key) {
                self.entries.insert(key.clone(), Entry::default());
            }
            let Some(entry) = self.entries.get_mut(key) else { continue };
            entry.is_reported = false;
            if entry.answers.iter().all(|asked| asked.ask != *ask) {
                if entry.answers.len() == MOST_ANSWERS {
                    entry.answers.remove(0);
                }
                entry.answers.push(Asked { ask: *ask, since: reading, value: None });
            }
        }
        reading
    }

    /// They were read.
    pub(super) fn read(&mut self, reading: Reading, questions: &[Question], values: &[i64]) {
        for (question, value) in questions.iter().zip(values) {
            let entry = self.entries.get_mut(&question.key);
            let asked =
                entry.and_then(|entry| entry.answers.iter_mut().find(|asked| asked.ask == question.ask));
            if let Some(asked) = asked
                && asked.since <= reading
            {
                asked.value = Some(*value);
            }
        }
    }

    /// The server reports that a key has changed. `draw`, from `[0, 1)`, spreads those that hear of it at the same time: the
    /// more often a key was reported for nothing (others were faster), the longer it may be left alone.
    ///
    /// Returns whether anybody has asked for the key.
    pub(super) fn changed(&mut self, key: &str, now: Instant, draw: f64) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let longest = match entry.fruitless {
            0 => Duration::ZERO,
            times => Duration::from_millis(1 << (times - 1).min(6)).min(LONGEST_REST),
        };
        entry.fruitless = entry.fruitless.saturating_add(1);
        entry.rest_until = Some(now + longest.mul_f64(draw));
        entry.answers.clear();
        entry.is_reported = true;
        true
    }

    /// Whether the key was reported for the first time since it last brought work: most likely it does again.
    pub(super) fn is_promising(&self, key: &str) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.is_reported && entry.fruitless == 1)
    }

    /// The key brought work.
    pub(super) fn bore_fruit(&mut self, key: &str) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.fruitless = 0;
        }
    }

    /// A number that is not 0 has to be read again.
    pub(super) fn forget(&mut self, key: &str) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.answers.retain(|asked| asked.value == Some(0));
        }
    }

    /// All keys have changed.
    pub(super) fn all_changed(&mut self, now: Instant) {
        let keys: Vec<_> = self.entries.keys().cloned().collect();
        for key in keys {
            self.changed(&key, now, 0.0);
        }
    }

    /// Nothing is tracked any more.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_core::clock;

    fn length(key: &str) -> Question {
        Question { key: key.to_owned(), ask: Ask::Length }
    }

    #[test]
    fn an_answer_holds_until_its_key_is_reported() {
        let (mut cache, now) = (Cache::default(), clock::now());
        assert_eq!(cache.answer(&length("a"), now), Answer::Unknown);
        let questions = [length("a"), length("b")];
        let reading = cache.reading(&questions);
        assert_eq!(cache.answer(&length("a"), now), Answer::Unknown);
        cache.read(reading, &questions, &[0, 3]);
        assert_eq!(cache.answer(&length("a"), now), Answer::Known(0));
        assert_eq!(cache.answer(&length("b"), now), Answer::Known(3));
        assert!(cache.changed("a", now, 0.9) && !cache.changed("c", now, 0.9));
        assert_eq!(cache.answer(&length("a"), now), Answer::Unknown);
        assert_eq!(cache.answer(&length("b"), now), Answer::Known(3));
    }

    #[test]
    fn a_report_that_overtakes_its_answer_wins() {
        let (mut cache, now) = (Cache::default(), clock::now());
        let first = cache.reading(&[length("a")]);
        cache.changed("a", now, 0.0);
        cache.read(first, &[length("a")], &[0]);
        assert_eq!(cache.answer(&length("a"), now), Answer::Unknown);
        // An answer of an older reading does not count either.
        let second = cache.reading(&[length("a")]);
        cache.read(first, &[length("a")], &[0]);
        assert_eq!(cache.answer(&length("a"), now), Answer::Unknown);
        cache.read(second, &[length("a")], &[1]);
        assert_eq!(cache.answer(&length("a"), now), Answer::Known(1));
    }

    #[test]
    fn two_who_read_at_the_same_time_do_not_keep_each_other_from_it() {
        let (mut cache, now) = (Cache::default(), clock::now());
        let first = cache.reading(&[length("a")]);
        cache.reading(&[length("a")]);
        cache.read(first, &[length("a")], &[2]);
        assert_eq!(cache.answer(&length("a"), now), Answer::Known(2));
    }

    #[test]
    fn another_question_about_a_key_has_no_answer_yet() {
        let (mut cache, now) = (Cache::default(), clock::now());
        let due = |than| Question { key: "retry".to_owned(), ask: Ask::DueBefore(than) };
        let reading = cache.reading(&[due(None)]);
        cache.read(reading, &[due(None)], &[1]);
        assert_eq!(cache.answer(&due(None), now), Answer::Known(1));
        assert_eq!(cache.answer(&due(Some(5)), now), Answer::Unknown);
        for than in 0..20 {
            let reading = cache.reading(&[due(Some(than))]);
            cache.read(reading, &[due(Some(than))], &[than]);
            assert_eq!(cache.answer(&due(Some(than)), now), Answer::Known(than));
        }
        assert_eq!(cache.entries["retry"].answers.len(), MOST_ANSWERS);
    }

    #[test]
    fn what_is_reported_for_nothing_is_left_alone_ever_longer_but_not_long() {
        let (mut cache, now) = (Cache::default(), clock::now());
        let reading = cache.reading(&[length("a")]);
        cache.read(reading, &[length("a")], &[0]);
        let mut rests = Vec::new();
        for _ in 0..10 {
            cache.changed("a", now, 0.5);
            rests.push(match cache.answer(&length("a"), now) {
                Answer::NotBefore(at) => (at - now).as_micros(),
                _ => 0,
            });
        }
        assert_eq!(rests, [0, 500, 1000, 2000, 4000, 8000, 16000, 32000, 32000, 32000]);
        assert!(!cache.is_promising("a"));
        cache.bore_fruit("a");
        cache.changed("a", now, 0.5);
        assert!(cache.is_promising("a"));
        assert_eq!(cache.answer(&length("a"), now), Answer::Unknown);
    }
}
