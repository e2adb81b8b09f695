//! Work that recurses as deep as a model is, on a stack that is large enough.

use crate::status::{Failure, Result, Status, caught, from_panic};
use std::sync::Once;
use std::thread;

/// Deep models recurse: more than a system gives the threads of a program.
const STACK: usize = 64 << 20;
/// Of the threads that compile, which recurse into one kernel at a time.
const COMPILER_STACK: usize = 16 << 20;

/// Runs `work` on a thread with a large stack, and waits for it.
pub(crate) fn with_large_stack<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("vinelift".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, || caught(work));
        let thread = thread.map_err(cannot_start)?;
        thread
            .join()
            .unwrap_or_else(|panic| Err(from_panic(&*panic)))
    })
}

/// Starts a thread with a large stack, which nobody waits for.
pub(crate) fn start(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name("vinelift".to_owned());
    let thread = thread.stack_size(STACK).spawn(work);
    thread.map(drop).map_err(cannot_start)
}

fn cannot_start(error: std::io::Error) -> Failure {
    let text = format!("cannot start a thread: {error}");
    Failure::new(Status::GeneralError, text)
}

/// Gives the threads that compile a stack that is large enough.
pub(crate) fn prepare_compiler_threads() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let threads = rayon::ThreadPoolBuilder::new().stack_size(COMPILER_STACK);
        // They are there already where this library is part of a program that has started them.
        let _ = threads.build_global();
    });
}
