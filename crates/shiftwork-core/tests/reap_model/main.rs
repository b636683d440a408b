//! The protocol of recovery, step by step, in every order: an exhaustive search of a small world.
//!
//! One job type with a limit of one, two jobs, two pools that live, fall silent, die and finish late, and reapers that may stop
//! between any two steps. Each script or command is one step; so is each moment at which a pool's heartbeat becomes old. The
//! search visits every state that any order of steps can reach, and asks in each whether the invariants hold. Told to model the
//! steps of the Go library it finds that library's known faults, which shows that it can find something.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod go;
mod invariants;
mod ours;
mod search;
mod world;

use search::{finds, search};
use world::{GoReaper, POOLS, Pool, Reaper, World};

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
