//! Memory of our own and of programs, as the bytes that runs read and write.

use crate::status::{Failure, Result, Status};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

/// Where the memory of a program starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address(pub(super) *mut u8);

// SAFETY: it is only a number here. Whoever reads what it points at says why that may be done.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

/// Zeroed memory, aligned for the widest loads.
#[derive(Debug)]
pub(super) struct Block {
    /// The start of the allocation; `start` is its first aligned byte.
    allocated: NonNull<u8>,
    pub(super) start: NonNull<u8>,
    pub(super) len: usize,
}

/// Keeps the memory of a tensor.
#[derive(Debug)]
pub(crate) struct Memory(
    #[expect(dead_code, reason = "it is there to be dropped")] pub(super) Arc<Block>,
);

const ALIGNMENT: usize = 64;

// SAFETY: a block is memory that nothing but its owner frees; what it holds are plain bytes.
unsafe impl Send for Block {}
// SAFETY: as above. It is read and written through raw pointers, by whom the contract of the C API
// keeps apart.
unsafe impl Sync for Block {}

impl Block {
    pub(super) fn new(len: usize) -> Result<Arc<Block>> {
        let fail = || {
            let text = format!("out of memory: cannot allocate {len} bytes");
            Failure::new(Status::GeneralError, text)
        };
        let layout = Block::layout(len).ok_or_else(fail)?;
        // SAFETY: the size is not 0.
        let allocated = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(fail)?;
        let skipped = allocated.align_offset(ALIGNMENT);
        Ok(Arc::new(Block {
            allocated,
            // SAFETY: `skipped` is less than `ALIGNMENT`, and the layout has that many bytes more than `len`.
            start: unsafe { allocated.add(skipped) },
            len,
        }))
    }

    /// With room to align the start. The system is not asked for that: it would write all of the memory
    /// to zero it.
    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.checked_add(ALIGNMENT)?, 1).ok()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(layout) = Block::layout(self.len) {
            // SAFETY: it was allocated with this layout, and this is its only owner.
            unsafe { dealloc(self.allocated.as_ptr(), layout) }
        }
    }
}

/// Bytes for the time of a run.
pub(super) struct View {
    pub(super) address: Address,
    pub(super) len: usize,
    /// Keeps the memory, where it is our own.
    pub(super) block: Option<Arc<Block>>,
}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: these are `len` bytes of a block that this holds, or of the memory of a program,
        // which by the contract of the API stays while a tensor of it is in use. Nothing writes them
        // during a run, by the same contract; between runs there is no slice of them.
        unsafe { std::slice::from_raw_parts(self.address.0, self.len) }
    }
}

impl AsMut<[u8]> for View {
    fn as_mut(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as above; and while a run writes it, nothing else uses it, by the same contract. The run
        // itself reads it nowhere else: see `Buffer::lend`.
        unsafe { std::slice::from_raw_parts_mut(self.address.0, self.len) }
    }
}
