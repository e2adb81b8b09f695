//! The machine's peak, measured.

use std::time::{Duration, Instant};

use crate::Isa;
use crate::simd::HasEngine;
use crate::tile::CHAINS;

/// The peak of one thread of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Peak {
    /// Floating-point operations in a second on `f32`, two for each multiply-add.
    pub f32_flops: f64,
    /// The same on `f64`.
    pub f64_flops: f64,
    /// Operations in a second on bytes whose products are summed up as `i32`, two for each product.
    pub byte_ops: f64,
    /// Bytes read and written in a second by a copy that no cache holds.
    pub bytes: f64,
}

/// Measures the peak of this machine with its best instructions, in some 35 ms, most of which the
/// memory takes.
pub fn peak() -> Peak {
    Peak {
        f32_flops: flops::<f32>(),
        f64_flops: flops::<f64>(),
        byte_ops: flops::<i32>(),
        bytes: bandwidth(),
    }
}

fn flops<T: HasEngine>() -> f64 {
    let engine = T::engine(Isa::fastest(), false);
    // Without such instructions a step is a hundred times slower: look how long a few take.
    let time = |steps| {
        let start = Instant::now();
        // SAFETY: the engine is of this machine.
        std::hint::black_box(unsafe { (engine.chains)(steps) });
        start.elapsed().max(Duration::from_nanos(1))
    };
    let mut steps = 100;
    while time(steps) < Duration::from_micros(200) {
        steps *= 2;
    }
    let best = (0..8).map(|_| time(steps)).min().unwrap_or(Duration::MAX);
    (2 * CHAINS * engine.lanes * engine.group * steps) as f64 / best.as_secs_f64()
}

fn bandwidth() -> f64 {
    const BYTES: usize = 32 << 20;
    let from = vec![1u8; BYTES];
    let mut to = vec![2u8; BYTES];
    let copy = |_| {
        let start = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        start.elapsed().max(Duration::from_nanos(1))
    };
    let best = (0..4).map(copy).min().unwrap_or(Duration::MAX);
    (2 * BYTES) as f64 / best.as_secs_f64()
}
