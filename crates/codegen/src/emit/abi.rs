//! The memory that a kernel shares with its caller besides its buffers.

use std::mem::MaybeUninit;
use std::sync::atomic::AtomicBool;
use vinelift_nest::MAX_RANK;

/// A [`Fault`](vinelift_nest::Fault) in plain numbers, which a kernel fills in before it returns 1; and what has it
/// return 2.
#[repr(C)]
pub(crate) struct RawFault {
    /// The flag that has the kernel end, which the caller sets.
    pub(crate) stop: *const AtomicBool,
    pub(crate) site: u64,
    pub(crate) extent: u64,
    /// The index, extended to 64 bits by its own sign.
    pub(crate) index: u64,
    /// 1 if the index is of an unsigned type.
    pub(crate) unsigned: u64,
    pub(crate) negative: u64,
    /// How many coordinates are filled in.
    pub(crate) rank: u64,
    pub(crate) position: [MaybeUninit<i64>; MAX_RANK],
}

/// The value that a kernel returns which has done all its work.
pub(crate) const DONE: u32 = 0;

/// The value that a kernel returns which has met an index out of range, and has written down which.
pub(super) const FAULTED: u32 = 1;

/// The value that a kernel returns which was told to stop.
pub(crate) const STOPPED: u32 = 2;
