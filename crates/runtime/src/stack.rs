//! Room for work that recurses as deep as a model is.

use crate::Error;
use memmap2::MmapOptions;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Enough for the deepest model. It is only asked for: the system gives what is touched.
const STACK: usize = 64 << 20;
/// Enough for a run whose plans are there: sub-graphs nest, but not deep, and native code is flat.
const ENOUGH: usize = 512 << 10;

/// Runs `work` on this thread with a stack of its own, as the stack of a program's thread or coroutine may be small.
///
/// # Errors
/// Those of `work`, or that there is no memory for the stack.
pub fn with_large_stack<T, E: From<Error>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let missing = || {
        let text = format!("out of memory: a stack of {} MiB", STACK >> 20);
        Error::Fault(text)
    };
    // `stacker::grow` panics if there is no memory, so a mapping of that size is tried first. Only where another thread takes the memory
    // in between does the panic below happen.
    let try_out = MmapOptions::new().len(STACK + (1 << 20)).map_anon();
    drop(try_out.map_err(|_| missing())?);
    let mut is_there = false;
    let grown = || {
        stacker::grow(STACK, || {
            is_there = true;
            work()
        })
    };
    match catch_unwind(AssertUnwindSafe(grown)) {
        Ok(result) => result,
        Err(panic) if is_there => resume_unwind(panic),
        Err(_) => Err(missing().into()),
    }
}

/// Runs `work` where it is, or as [`with_large_stack`] does if this thread has little room left.
///
/// # Errors
/// As [`with_large_stack`].
pub fn with_room<T, E: From<Error>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    match stacker::remaining_stack() {
        Some(left) if left >= ENOUGH => work(),
        _ => with_large_stack(work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// Uses more than a kilobyte of stack for each of `depth`.
    fn recurse(depth: usize) -> usize {
        let used = black_box([depth; 128]);
        match depth {
            0 => 0,
            _ => recurse(depth - 1) + used[depth % 128] / depth,
        }
    }

    #[test]
    fn small_threads_have_room() {
        const DEPTH: usize = 10_000;
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        let run = || {
            let large = with_large_stack(|| Ok::<_, Error>(recurse(DEPTH))).unwrap();
            (large, with_room(|| Ok::<_, Error>(recurse(DEPTH))).unwrap())
        };
        assert_eq!(thread.spawn(run).unwrap().join().unwrap(), (DEPTH, DEPTH));
    }

    #[test]
    fn panics_pass() {
        let run = || with_large_stack(|| -> Result<(), Error> { panic!("told to") });
        let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"told to"));
    }
}
