//! How a batch of claims is shared among queues: systematic sampling, the same arithmetic in every store.
//!
//! Go workers each draw one queue at a time, with a chance in proportion to its priority among those that have jobs. A
//! batch has to come out the same in the long run, and may well come out closer to proportion in each batch. So the
//! weights are laid end to end on a line, and `limit` points are set on it at equal distances, beginning at a random
//! place (`draw`): a queue gets as many jobs as points fall on its stretch. The expectation is exactly its share, and no
//! batch is off by more than one job. What a queue cannot give (too few jobs, no room below its limit) is shared among
//! the others in the same way.
//!
//! The Redis script does the same sums in Lua. Both use IEEE doubles and nothing but `+ - * / ceil floor`, so the same
//! `draw` gives the same batch in every store, which is what lets the model test compare them.

/// How many jobs a queue could give now.
pub fn claimable(waiting: usize, running: usize, paused: bool, max_concurrency: Option<u32>) -> usize {
    if paused {
        return 0;
    }
    let room = match max_concurrency {
        None | Some(0) => usize::MAX,
        Some(limit) => (limit as usize).saturating_sub(running),
    };
    waiting.min(room)
}

/// A queue as seen at the moment of claiming.
#[derive(Debug, Clone, Copy)]
pub struct Available {
    /// Its weight, at least 1.
    pub weight: u32,
    /// How many jobs it could give now.
    pub jobs: usize,
}

/// How many jobs to take from each queue, in the order of `available`; `limit` in total, or all there are.
pub fn allot(available: &[Available], limit: usize, draw: f64) -> Vec<usize> {
    let mut taken = vec![0; available.len()];
    let mut left = limit;
    let mut draw = draw;
    while left > 0 {
        let total: f64 = open(available, &taken).map(|index| f64::from(available[index].weight)).sum();
        if total == 0.0 {
            break;
        }
        let points = left;
        let mut line = 0.0;
        let mut below = 0;
        for index in open(available, &taken).collect::<Vec<_>>() {
            line += f64::from(available[index].weight);
            // Points below the end of this stretch; the last stretch ends at the last point whatever rounding says.
            let upto = if line >= total {
                points
            } else {
                ((line * points as f64 / total) - draw).ceil().max(0.0) as usize
            };
            let share = (upto - below).min(available[index].jobs - taken[index]);
            below = upto;
            taken[index] += share;
            left -= share;
        }
        draw = next_draw(draw);
    }
    taken
}

/// Queues that can still give a job.
fn open<'a>(available: &'a [Available], taken: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
    (0..available.len()).filter(|&index| available[index].jobs > taken[index])
}

/// Another number in `[0, 1)` for the next round: what the first round left over depends on its draw, so the same draw
/// again would favour some queues.
fn next_draw(draw: f64) -> f64 {
    let scattered = draw * 9973.0 + 0.5;
    scattered - scattered.floor()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn queues(weights_and_jobs: &[(u32, usize)]) -> Vec<Available> {
        weights_and_jobs.iter().map(|&(weight, jobs)| Available { weight, jobs }).collect()
    }

    #[test]
    fn a_batch_is_shared_in_proportion() {
        assert_eq!(allot(&queues(&[(1, 99), (2, 99), (7, 99)]), 10, 0.3), [1, 2, 7]);
        assert_eq!(allot(&queues(&[(1, 99), (2, 99), (7, 0)]), 9, 0.3), [3, 6, 0]);
        assert_eq!(allot(&queues(&[(1, 99), (2, 99), (7, 1)]), 10, 0.0).iter().sum::<usize>(), 10);
    }

    #[test]
    fn single_jobs_follow_the_weights_in_the_long_run() {
        let mut counts = [0u32; 3];
        let rounds = 100_000;
        for round in 0..rounds {
            let draw = (round as f64 + 0.5) / f64::from(rounds);
            for (count, taken) in counts.iter_mut().zip(allot(&queues(&[(1, 9), (3, 9), (6, 9)]), 1, draw)) {
                *count += taken as u32;
            }
        }
        assert_eq!(counts, [10_000, 30_000, 60_000]);
    }

    #[test]
    fn what_one_queue_cannot_give_goes_to_the_others_in_proportion() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut counts = [0usize; 4];
        for _ in 0..100_000 {
            // Slots for 3; the heaviest queue has one job only, so mostly two are left for weights 1, 2 and 3.
            for (count, taken) in
                counts.iter_mut().zip(allot(&queues(&[(1, 9), (2, 9), (94, 1), (3, 9)]), 3, random.f64()))
            {
                *count += taken;
            }
        }
        let others = (counts[0] + counts[1] + counts[3]) as f64;
        for (index, expected) in [(0, 1.0 / 6.0), (1, 2.0 / 6.0), (3, 3.0 / 6.0)] {
            let share = counts[index] as f64 / others;
            assert!((share - expected).abs() < 0.01, "queue {index} got {share:.3} instead of {expected:.3}");
        }
    }

    proptest! {
        #[test]
        fn takes_all_it_can_and_never_too_much(
            queues in prop::collection::vec((1u32..=100_000, 0usize..50), 0..20),
            limit in 0usize..200,
            draw in 0.0f64..1.0,
        ) {
            let queues = self::queues(&queues);
            let taken = allot(&queues, limit, draw);
            let there: usize = queues.iter().map(|queue| queue.jobs).sum();
            prop_assert_eq!(taken.iter().sum::<usize>(), limit.min(there));
            for (queue, taken) in queues.iter().zip(&taken) {
                prop_assert!(*taken <= queue.jobs);
            }
        }

        #[test]
        fn no_batch_is_off_by_more_than_one_job(
            weights in prop::collection::vec(1u32..=1000, 1..12),
            limit in 1usize..100,
            draw in 0.0f64..1.0,
        ) {
            let queues: Vec<_> = weights.iter().map(|&weight| Available { weight, jobs: limit }).collect();
            let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
            for (weight, taken) in weights.iter().zip(allot(&queues, limit, draw)) {
                let exact = f64::from(*weight) / total * limit as f64;
                prop_assert!((taken as f64 - exact).abs() < 1.0 + 1e-9, "{} jobs instead of {}", taken, exact);
            }
        }
    }
}
