//! Periodic jobs in the state of a [`MemoryStore`](super::MemoryStore).

use super::state::State;
use crate::clock::whole_seconds;
use crate::store::Tick;

/// How long it is remembered that a tick was picked up, in seconds.
const PICKED_UP_TTL: i64 = 86_400;

impl State {
    pub(super) fn tick(&mut self, tick: &Tick, now: i64) -> bool {
        if tick.at <= now && !tick.late {
            return false;
        }
        self.ticks.retain(|_, until| *until > now);
        let id = tick.id();
        if self.ticks.contains_key(&id) {
            return false;
        }
        let remember = whole_seconds(tick.remember);
        self.ticks.insert(id, tick.at.max(now).saturating_add(remember));
        let last = self.last_ticks.entry(tick.schedule.clone()).or_insert(tick.at);
        *last = tick.at.max(*last);
        self.known.insert(tick.queue.clone());
        self.scheduled.insert(tick.at, tick.job.clone());
        true
    }

    pub(super) fn last_ticks(&self, schedules: &[String]) -> Vec<Option<i64>> {
        schedules.iter().map(|schedule| self.last_ticks.get(schedule).copied()).collect()
    }

    pub(super) fn watch(&mut self, done: &[String], asked: &[String], now: i64) -> Vec<bool> {
        self.picked_up.retain(|_, until| *until > now);
        for id in done {
            self.picked_up.insert(id.clone(), now.saturating_add(PICKED_UP_TTL));
        }
        asked.iter().map(|id| self.picked_up.contains_key(id)).collect()
    }
}
