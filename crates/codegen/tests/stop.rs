//! Kernels of any length end soon after they are told to.

mod common;

use common::{COMPILER, site, widths};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vinelift_codegen::{Interrupt, Options, Pointer};
use vinelift_nest::{Binary, Mode, Nest, Policy, Role, Scalar, build::*, partial_folds, schedule};
use vinelift_tensor::ElementType::{F32, I64};

/// More than anything gets through in a test.
const MANY: usize = 1_000_000_000_000;

/// `y = Σ_k x[0]`
fn sum() -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[8], Role::Input);
    let y = nest.buffer("y", F32, &[1], Role::Output);
    nest.define(vec![], y, |nest, _| {
        let k = nest.axis(MANY);
        let body = nest.load(x, vec![Scalar::axis(k.id).rem(index(8))]);
        Scalar::reduce(Binary::Add, vec![k], zero(F32), body)
    });
    nest
}

/// `y[j] = Σ_k exp(x[j])`
fn sums() -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[100], Role::Input);
    let y = nest.buffer("y", F32, &[100], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let k = nest.axis(MANY / 100);
        let shifted = nest.load(x, at.to_vec()) * Scalar::axis(k.id).cast(F32);
        Scalar::reduce(Binary::Add, vec![k], zero(F32), shifted.exp())
    });
    nest
}

/// `y[wrap(i % 5)] += x[0]` for each `i`, the index read from memory.
fn scatter() -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[8], Role::Input);
    let indices = nest.buffer("indices", I64, &[4], Role::Input);
    let y = nest.buffer("y", F32, &[5], Role::Output);
    let site = site(&mut nest);
    nest.define(vec![], y, |nest, at| {
        let position = vec![at[0].rem(index(4))];
        let found = nest.load(indices, position.clone());
        let row = nest.wrap(found, 5, Policy::WRAP, site, position);
        let value = nest.load(x, vec![index(0)]);
        Scalar::select(row.lt(index(9)), value, zero(F32))
    });
    let stage = &mut nest.stages[0];
    stage.domain[0].extent = MANY.into();
    stage.at = vec![Scalar::axis(stage.domain[0].id).rem(index(5))];
    stage.mode = Mode::Combine(Binary::Add);
    nest
}

#[test]
fn a_kernel_ends_soon_after_it_is_told_to() {
    for (name, mut nest) in [("sum", sum()), ("sums", sums()), ("scatter", scatter())] {
        partial_folds(&mut nest, &|_| false, &AtomicBool::new(false));
        schedule(&mut nest);
        vinelift_nest::verify(&nest).unwrap();
        for vectors in widths() {
            let options = Options {
                vectors,
                ..Options::default()
            };
            let code = COMPILER.compile(&[&nest], &options).unwrap();
            let bytes = |b: &vinelift_nest::Buffer| vec![0u8; b.byte_len().unwrap()];
            let mut memory: Vec<Vec<u8>> = nest.buffers.iter().map(bytes).collect();
            let pointers: Vec<Pointer> =
                memory.iter_mut().map(|m| Pointer(m.as_mut_ptr())).collect();
            let mut scratch = vec![0u8; code.scratch_bytes(0)];
            let scratch = Pointer(scratch.as_mut_ptr());
            let whole = 0..code.chunks(0, &[]).extent;
            let time_to_stop = || {
                let stop = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    let teller = scope.spawn(|| {
                        std::thread::sleep(Duration::from_millis(150));
                        stop.store(true, Ordering::Relaxed);
                        Instant::now()
                    });
                    let (whole, scratch) = (whole.clone(), Pointer(scratch.0));
                    // SAFETY: one pointer for each buffer, to as many bytes as it takes, and all of the scratch memory.
                    let ended = unsafe { code.run_chunk(0, &pointers, &[], whole, scratch, &stop) };
                    let end = Instant::now();
                    assert_eq!(ended, Err(Interrupt::Stopped), "{name}, {vectors:?}");
                    end.saturating_duration_since(teller.join().unwrap())
                })
            };
            // Twice what is promised, and three times: the machine may be busy for a while.
            let is_soon = (0..3).any(|_| time_to_stop() < Duration::from_millis(200));
            assert!(is_soon, "{name}, {vectors:?}");
        }
    }
}
