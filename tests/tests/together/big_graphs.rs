//! Random graphs with large tensors give the same bits in every way to run them.
//!
//! The test takes seeds from 0 on for five seconds, or those of `VINELIFT_GRAPHS=100..2000`, which `.ci/run` sets.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vinelift::Core;
use vinelift_tests::big_graphs::{Choices, FAMILIES, check, grow};

/// How long the test takes, unless graphs of all families take longer.
const TIME: Duration = Duration::from_secs(5);

#[test]
fn all_ways_agree() {
    let chosen = std::env::var("VINELIFT_GRAPHS").ok();
    let chosen = chosen.map(|text| {
        range(&text).unwrap_or_else(|| panic!("VINELIFT_GRAPHS: expected 1..9, found {text}"))
    });
    let seeds = chosen.clone().unwrap_or(0..u64::MAX);
    let start = Instant::now();
    let has_time = |seed: u64| chosen.is_some() || seed < FAMILIES as u64 || start.elapsed() < TIME;
    let (next, failures) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    let done = AtomicU64::new(0);
    let core = Core::new().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) || !has_time(seed) {
                        break;
                    }
                    if let Err(text) = check(&core, &grow(&mut Choices::of_seed(seed))) {
                        let text = format!("seed {seed}, {text}");
                        eprintln!("{text}");
                        failures.lock().unwrap().push(text);
                    }
                    let count = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if count.is_multiple_of(100) {
                        eprintln!("{count} graphs in {:.0?}", start.elapsed());
                    }
                }
            });
        }
    });
    let (done, failures) = (done.into_inner(), failures.into_inner().unwrap());
    eprintln!("{done} graphs in {:.0?}", start.elapsed());
    assert!(
        failures.is_empty(),
        "{} of {done} graphs failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn range(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.split_once("..")?;
    Some(first.parse().ok()?..last.parse().ok()?)
}
