//! Breadth first, so that the way to a fault is a shortest one.

use std::collections::{HashMap, VecDeque};

use super::world::World;

/// Visits all reachable states. The first one that fails `check`, with the way to it.
pub(crate) fn search(start: World, check: impl Fn(&World) -> Result<(), String>) -> Result<usize, String> {
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
pub(crate) fn finds(start: World, check: impl Fn(&World) -> Result<(), String>, fault: &str, steps: &[&str]) {
    let found = search(start, check).expect_err(&format!("{fault} is a known fault of the Go library"));
    for step in steps {
        assert!(found.contains(step), "{fault}: {step:?} is missing: {found}");
    }
}
