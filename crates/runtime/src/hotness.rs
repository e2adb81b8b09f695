//! How long the plans of classes run: whether a shape is worth code of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long a plan of a class has run for some shapes.
#[derive(Default)]
pub(crate) struct Hotness {
    nanoseconds: AtomicU64,
    /// The time to compile the class, which is about that of a plan for these shapes alone.
    cost: u64,
    is_hot: AtomicBool,
}

/// Shapes get code of their own only if their runs take at least one in this many nanoseconds of all that a unit's plans of classes
/// run: for many shapes of which each runs a little, code would be compiled all the time.
const LEAST_PART: u64 = 16;

/// The least time that shapes run before they get code of their own, in nanoseconds: for less, the thread that compiles it is not
/// worth its start.
const LEAST_COST: u64 = 5_000_000;

impl Hotness {
    /// Nothing has run yet; `cost` is what it took to compile the class.
    pub(crate) fn new(cost: Duration) -> Hotness {
        Hotness {
            cost: nanoseconds(cost).max(LEAST_COST),
            ..Hotness::default()
        }
    }

    /// Adds the time of a run to that of these shapes, and to that of `all` plans of classes of a unit. Returns whether the shapes
    /// have become hot by this run: they have run for as long as compiling takes, and not for too small a part of all.
    pub(crate) fn add(&self, run: Duration, all: &AtomicU64) -> bool {
        let run = nanoseconds(run);
        let own = self.nanoseconds.fetch_add(run, Ordering::Relaxed) + run;
        let all = all.fetch_add(run, Ordering::Relaxed) + run;
        let is_hot = own >= self.cost && own.saturating_mul(LEAST_PART) >= all;
        is_hot && !self.is_hot.swap(true, Ordering::Relaxed)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_long_enough_is_hot_once() {
        let (hotness, all) = (Hotness::new(Duration::from_millis(30)), AtomicU64::new(0));
        let add = || hotness.add(Duration::from_millis(10), &all);
        assert_eq!([add(), add(), add(), add()], [false, false, true, false]);
    }

    #[test]
    fn of_many_shapes_none_is_hot() {
        let all = AtomicU64::new(0);
        let shapes: Vec<Hotness> = (0..40).map(|_| Hotness::new(Duration::ZERO)).collect();
        let mut hot = 0;
        for _ in 0..100 {
            let run = |hotness: &Hotness| hotness.add(Duration::from_millis(1), &all);
            hot += shapes.iter().filter(|hotness| run(hotness)).count();
        }
        assert_eq!(hot, 0);
    }
}
