//! The protocol of recovery, step by step, in every order: an exhaustive search of a small world.
//!
//! One job type with a limit of one, two jobs, two pools that live, fall silent, die and finish late, and reapers that may stop
//! between any two steps. Each script or command is one step; so is each moment at which a pool's heartbeat becomes old. The
//! search visits every state that any order of steps can reach, and asks in each whether the invariants hold. Told to model the
//! steps of the Go library it finds that library's known faults, which shows that it can find something.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;

const POOLS: usize = 2;
const LIMIT: i8 = 1;

type Job = u8;

/// The store, as far as recovery is concerned, and the processes around it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    /// Waiting jobs, the next one first.
    queue: Vec<Job>,
    finished: Vec<Job>,
    lists: [Vec<Job>; POOLS],
    lock: i8,
    info: [Option<i8>; POOLS],
    registered: [bool; POOLS],
    beats: [Option<Beat>; POOLS],
    /// Our own set of pools that have beaten, which no reaper of Go touches.
    known_beats: [bool; POOLS],
    pools: [Pool; POOLS],
    reaper: Reaper,
    go_reaper: GoReaper,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Beat {
    value: u8,
    /// As old as a dead pool's.
    old: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Pool {
    alive: bool,
    go: bool,
    /// Jobs that its handlers run, whatever the store says.
    runs: Vec<Job>,
    /// Beats that it has left: keeps the world small.
    beats_left: u8,
    /// Whether it got through with a beat lately, as far as it knows: what others did to its record it can't know.
    fresh: bool,
    /// A Rust pool that was told that it had been removed: it is over under this id.
    told: bool,
}

/// A reaper of ours: what it has seen. It may stop at any time, which is the same as never going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reaper {
    None,
    Idle,
    Judged { pool: usize, witness: Witness },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Witness {
    Heartbeat(u8),
    NoHeartbeat,
    Unregistered,
}

/// A reaper of Go, which works in many steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GoReaper {
    None,
    Idle,
    Requeue(usize),
    Forget(usize),
    Clean(usize),
    Remove(usize),
    RequeueUnknown(usize),
    CleanUnknown(usize),
}

impl World {
    fn new(go_pools: bool, reaper: Reaper, go_reaper: GoReaper) -> Self {
        let pool = Pool { alive: true, go: go_pools, runs: vec![], beats_left: 2, fresh: false, told: false };
        Self {
            queue: vec![1, 2],
            finished: vec![],
            lists: [vec![], vec![]],
            lock: 0,
            info: [None; POOLS],
            registered: [false; POOLS],
            beats: [None; POOLS],
            known_beats: [false; POOLS],
            pools: [pool.clone(), pool],
            reaper,
            go_reaper,
        }
    }

    fn held(&self) -> i8 {
        self.lists.iter().map(|list| list.len() as i8).sum()
    }

    fn counted(&self) -> i8 {
        self.info.iter().flatten().sum()
    }

    /// Everything that may happen next.
    fn next(&self) -> Vec<(String, World)> {
        let mut next = Vec::new();
        for pool in 0..POOLS {
            self.pool_steps(pool, &mut next);
        }
        self.reaper_steps(&mut next);
        self.go_reaper_steps(&mut next);
        next
    }

    fn step(&self, next: &mut Vec<(String, World)>, what: String, change: impl FnOnce(&mut World)) {
        let mut world = self.clone();
        change(&mut world);
        if world != *self {
            next.push((what, world));
        }
    }

    fn pool_steps(&self, pool: usize, next: &mut Vec<(String, World)>) {
        if self.pools[pool].fresh || self.beats[pool].is_some_and(|beat| !beat.old) {
            self.step(next, format!("pool {pool} has been silent for the dead time"), |world| {
                world.beats[pool] = world.beats[pool].map(|beat| Beat { old: true, ..beat });
                world.pools[pool].fresh = false;
            });
        }
        let process = &self.pools[pool];
        if !process.alive {
            return;
        }
        self.step(next, format!("pool {pool} is killed"), |world| {
            world.pools[pool].alive = false;
            world.pools[pool].runs.clear();
        });
        if process.beats_left > 0 {
            if process.go {
                self.step(next, format!("Go pool {pool}: SADD"), |world| world.registered[pool] = true);
                self.step(next, format!("Go pool {pool}: HMSET"), |world| world.beat(pool));
            } else if !process.told {
                self.step(next, format!("pool {pool} beats"), |world| {
                    // One script: registers with the first beat, and is told later if it was removed.
                    let first =
                        !world.known_beats[pool] && world.beats[pool].is_none() && !world.registered[pool];
                    if first && world.pools[pool].beats_left == 2 {
                        world.registered[pool] = true;
                    }
                    if world.registered[pool] {
                        world.beat(pool);
                        world.known_beats[pool] = true;
                    } else {
                        world.pools[pool].told = true;
                    }
                });
            }
        }
        // A Rust pool claims nothing before it is registered, nor when it could not beat for half the dead time.
        let may_claim = process.go || (!process.told && process.fresh);
        if may_claim && process.runs.is_empty() && self.lock < LIMIT && !self.queue.is_empty() {
            self.step(next, format!("pool {pool} claims"), |world| {
                let job = world.queue.remove(0);
                world.lists[pool].push(job);
                world.lock += 1;
                *world.info[pool].get_or_insert(0) += 1;
                world.pools[pool].runs.push(job);
            });
        }
        for job in process.runs.clone() {
            self.step(next, format!("pool {pool} finishes {job}"), |world| {
                world.pools[pool].runs.retain(|running| *running != job);
                // Guarded by LREM: who does not hold it writes nothing.
                if let Some(position) = world.lists[pool].iter().position(|held| *held == job) {
                    world.lists[pool].remove(position);
                    world.lock -= 1;
                    *world.info[pool].get_or_insert(0) -= 1;
                    world.finished.push(job);
                    world.finished.sort_unstable();
                }
            });
        }
    }

    fn beat(&mut self, pool: usize) {
        // Times only go up, whatever became of the record.
        let value = 3 - self.pools[pool].beats_left;
        self.beats[pool] = Some(Beat { value, old: false });
        self.pools[pool].beats_left -= 1;
        self.pools[pool].fresh = true;
    }

    fn reaper_steps(&self, next: &mut Vec<(String, World)>) {
        match self.reaper {
            Reaper::None => {}
            Reaper::Idle => {
                for pool in 0..POOLS {
                    if let Some(witness) = self.judge(pool) {
                        self.step(next, format!("reaper judges pool {pool}: {witness:?}"), |world| {
                            world.reaper = Reaper::Judged { pool, witness };
                        });
                    }
                }
                self.step(next, "reaper repairs the count".to_owned(), World::repair);
            }
            Reaper::Judged { pool, witness } => {
                self.step(next, format!("reaper recovers one job of pool {pool}"), |world| {
                    let over = world.recover(pool, witness);
                    if over {
                        world.reaper = Reaper::Idle;
                    }
                });
                self.step(next, "reaper stops half-way, another begins".to_owned(), |world| {
                    world.reaper = Reaper::Idle;
                });
            }
        }
    }

    /// What a look and an audit see of a pool, if it is to be reaped.
    fn judge(&self, pool: usize) -> Option<Witness> {
        let beat_is_old = self.beats[pool].is_none_or(|beat| beat.old);
        match (self.registered[pool], self.beats[pool]) {
            (true, Some(beat)) if beat.old => Some(Witness::Heartbeat(beat.value)),
            // Only after it has been so for the dead time: a pool of Go that starts is between two commands.
            (true, None) if !self.pools[pool].alive => Some(Witness::NoHeartbeat),
            // A pool that has beaten lately may not have been told yet, and may still claim.
            (false, _) if self.known_beats[pool] && self.pools[pool].fresh => None,
            (false, _) if beat_is_old && self.known_beats[pool] => Some(Witness::Unregistered),
            // In two audits, fifteen seconds apart: a living pool has registered by then.
            (false, _)
                if beat_is_old
                    && !self.pools[pool].alive
                    && self.info[pool].is_some_and(|count| count > 0) =>
            {
                Some(Witness::Unregistered)
            }
            _ => None,
        }
    }

    /// The script `recover`, with a bound of one job. Whether it is over with this pool.
    fn recover(&mut self, pool: usize, witness: Witness) -> bool {
        let beat = self.beats[pool];
        let as_seen = match witness {
            Witness::Heartbeat(seen) => self.registered[pool] && beat.is_some_and(|beat| beat.value == seen),
            Witness::NoHeartbeat => self.registered[pool] && beat.is_none(),
            Witness::Unregistered => {
                let has_beaten_lately = self.known_beats[pool] && self.pools[pool].fresh;
                !self.registered[pool] && !has_beaten_lately && beat.is_none_or(|beat| beat.old)
            }
        };
        if !as_seen {
            return true;
        }
        if let Some(job) = self.lists[pool].pop() {
            self.queue.insert(0, job);
        }
        let held = self.lists[pool].len() as i8;
        self.info[pool] = (held > 0).then_some(held);
        self.lock = self.info.iter().flatten().map(|count| (*count).max(0)).sum();
        if held > 0 {
            return false;
        }
        (self.registered[pool], self.beats[pool], self.known_beats[pool]) = (false, None, false);
        true
    }

    /// The script `repair`, for the pools that the bookkeeping names.
    fn repair(&mut self) {
        for pool in 0..POOLS {
            let held = self.lists[pool].len() as i8;
            if self.info[pool].is_some_and(|count| count != held) {
                self.info[pool] = Some(held);
            }
        }
        self.lock = self.info.iter().flatten().map(|count| (*count).max(0)).sum();
    }

    fn go_reaper_steps(&self, next: &mut Vec<(String, World)>) {
        let go = |step: GoReaper| move |world: &mut World| world.go_reaper = step;
        match self.go_reaper {
            GoReaper::None => {}
            GoReaper::Idle => {
                for pool in 0..POOLS {
                    if self.registered[pool] && self.beats[pool].is_some_and(|beat| beat.old) {
                        self.step(
                            next,
                            format!("Go reaper: pool {pool} is dead"),
                            go(GoReaper::Requeue(pool)),
                        );
                    }
                    if self.registered[pool] && self.beats[pool].is_none() {
                        // A3: only its locks are cleaned.
                        self.step(
                            next,
                            format!("Go reaper: pool {pool} has no heartbeat"),
                            go(GoReaper::Clean(pool)),
                        );
                    }
                    if !self.registered[pool] && self.info[pool].is_some() {
                        let unknown = go(GoReaper::RequeueUnknown(pool));
                        self.step(next, format!("Go reaper: pool {pool} is unknown"), unknown);
                    }
                }
            }
            GoReaper::Requeue(pool) => self.go_requeue(next, pool, GoReaper::Forget(pool)),
            GoReaper::RequeueUnknown(pool) => self.go_requeue(next, pool, GoReaper::CleanUnknown(pool)),
            GoReaper::Forget(pool) => {
                self.step(next, format!("Go reaper: DEL heartbeat of {pool}"), |world| {
                    world.beats[pool] = None;
                    world.go_reaper = GoReaper::Clean(pool);
                })
            }
            GoReaper::Clean(pool) => self.go_clean(next, pool, GoReaper::Remove(pool)),
            GoReaper::CleanUnknown(pool) => self.go_clean(next, pool, GoReaper::Idle),
            GoReaper::Remove(pool) => self.step(next, format!("Go reaper: SREM {pool}"), |world| {
                world.registered[pool] = false;
                world.go_reaper = GoReaper::Idle;
            }),
        }
    }

    /// One job a call, until there is none.
    fn go_requeue(&self, next: &mut Vec<(String, World)>, pool: usize, then: GoReaper) {
        self.step(next, format!("Go reaper: requeue of {pool}"), |world| {
            if world.lists[pool].is_empty() {
                world.go_reaper = then;
                return;
            }
            let job = world.lists[pool].remove(0);
            world.queue.push(job);
            world.lock -= 1;
            *world.info[pool].get_or_insert(0) -= 1;
        });
    }

    fn go_clean(&self, next: &mut Vec<(String, World)>, pool: usize, then: GoReaper) {
        self.step(next, format!("Go reaper: clean locks of {pool}"), |world| {
            if let Some(count) = world.info[pool].take() {
                world.lock = (world.lock - count).max(0);
            }
            world.go_reaper = then;
        });
    }

    // ---- what has to hold ----

    /// Invariant 1.
    fn counts_agree(&self) -> Result<(), String> {
        let (lock, info, held) = (self.lock, self.counted(), self.held());
        if lock == info && info == held {
            Ok(())
        } else {
            Err(format!("lock {lock}, lock_info {info}, held {held}"))
        }
    }

    /// Invariant 2.
    fn each_job_is_in_one_place(&self) -> Result<(), String> {
        for job in [1, 2] {
            let lists = self.lists.iter().flatten();
            let places =
                self.queue.iter().chain(&self.finished).chain(lists).filter(|place| **place == job).count();
            if places != 1 {
                return Err(format!("job {job} is in {places} places"));
            }
        }
        Ok(())
    }

    fn limit_holds(&self) -> Result<(), String> {
        if self.held() <= LIMIT { Ok(()) } else { Err(format!("{} run at once", self.held())) }
    }

    /// When all pools are dead and our reaper has done what it can, no job is stuck and every book is at zero.
    fn ends_well(&self) -> Result<(), String> {
        let mut world = self.clone();
        for pool in 0..POOLS {
            world.pools[pool].alive = false;
            world.pools[pool].runs.clear();
            world.pools[pool].fresh = false;
            world.beats[pool] = world.beats[pool].map(|beat| Beat { old: true, ..beat });
        }
        for _ in 0..8 {
            for pool in 0..POOLS {
                if let Some(witness) = world.judge(pool) {
                    world.recover(pool, witness);
                }
            }
            world.repair();
        }
        let stuck = world.lists.iter().flatten().count();
        if stuck > 0 || world.lock != 0 || world.registered.contains(&true) {
            return Err(format!("in the end {stuck} jobs are stuck: {world:?}"));
        }
        world.each_job_is_in_one_place()
    }
}

/// Visits all reachable states. The first one that fails `check`, with the way to it.
fn search(start: World, check: impl Fn(&World) -> Result<(), String>) -> Result<usize, String> {
    let mut came_from: HashMap<World, Option<(World, String)>> = HashMap::from([(start.clone(), None)]);
    let mut open = VecDeque::from([start]);
    while let Some(world) = open.pop_front() {
        if let Err(reason) = check(&world) {
            let mut way = Vec::new();
            let mut at = &world;
            while let Some(Some((before, step))) = came_from.get(at) {
                way.push(step.clone());
                at = before;
            }
            way.reverse();
            return Err(format!("{reason}, after: {}", way.join("; ")));
        }
        for (step, next) in world.next() {
            if !came_from.contains_key(&next) {
                came_from.insert(next.clone(), Some((world.clone(), step)));
                open.push_back(next);
            }
        }
    }
    Ok(came_from.len())
}

/// That the search finds something, and what it finds.
fn finds(start: World, check: impl Fn(&World) -> Result<(), String>, fault: &str, steps: &[&str]) {
    let found = search(start, check).expect_err(&format!("{fault} is a known fault of the Go library"));
    for step in steps {
        assert!(found.contains(step), "{fault}: {step:?} is missing: {found}");
    }
}

#[test]
fn among_ourselves_every_invariant_holds_in_every_order() {
    let states = search(World::new(false, Reaper::Idle, GoReaper::None), |world| {
        world.counts_agree()?;
        world.each_job_is_in_one_place()?;
        world.limit_holds()?;
        world.ends_well()
    });
    let states = states.unwrap();
    assert!(states > 2_000, "only {states} states");
}

/// A reaper of Go can break the count for a moment. It loses no job of ours, and what it breaks is mended.
#[test]
fn beside_a_reaper_of_go_no_job_of_ours_is_lost() {
    let states = search(World::new(false, Reaper::Idle, GoReaper::Idle), |world| {
        world.each_job_is_in_one_place()?;
        world.ends_well()
    });
    let states = states.unwrap();
    assert!(states > 10_000, "only {states} states");
}

/// Pools of Go that start, die between any two commands, and are reaped by us.
#[test]
fn pools_of_go_lose_nothing_to_our_reaper() {
    let states = search(World::new(true, Reaper::Idle, GoReaper::None), |world| {
        world.each_job_is_in_one_place()?;
        world.counts_agree()?;
        world.ends_well()
    });
    let states = states.unwrap();
    assert!(states > 2_000, "only {states} states");
}

#[test]
fn the_search_finds_the_known_faults_of_the_go_library() {
    let go = || World::new(true, Reaper::None, GoReaper::Idle);
    // Nobody can find a job that is in no book: it is in a list of a pool that nobody knows.
    let lost = |world: &World| {
        let over = world.go_reaper == GoReaper::Idle && world.pools.iter().all(|pool| !pool.alive);
        let orphan = |pool: usize| {
            !world.lists[pool].is_empty() && !world.registered[pool] && world.info[pool].is_none()
        };
        if over && (0..POOLS).any(orphan) { Err("a job is lost".to_owned()) } else { Ok(()) }
    };
    finds(go(), lost, "A3", &["has no heartbeat", "clean locks", "SREM"]);
    finds(go(), World::limit_holds, "A21", &["clean locks", "claims"]);
    // A job that runs in a living pool and is there to be claimed again.
    let runs_twice = |world: &World| {
        let again = |pool: &Pool| pool.alive && pool.runs.iter().any(|job| world.queue.contains(job));
        let never_beat = |pool: usize| world.beats[pool].is_none() && world.pools[pool].beats_left == 2;
        let bad = (0..POOLS).any(|pool| again(&world.pools[pool]) && never_beat(pool));
        if bad { Err("a running job is queued again".to_owned()) } else { Ok(()) }
    };
    finds(go(), runs_twice, "A17", &["is unknown", "requeue"]);
}
