//! Memory for packed operands: those of middling size lie together, so that they have large pages too.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use memmap2::{MmapMut, MmapRaw};
use vinelift_tensor::AlignedBytes;

/// Memory aligned to a cache line, of one owner; zeros at first.
pub(crate) enum Memory {
    Own(AlignedBytes),
    /// Part of a block that others have other parts of.
    Part(Arc<MmapRaw>, Range<usize>),
}

/// The sizes that are placed in a shared block: smaller ones are not worth it, and larger ones have large pages by
/// themselves.
const SHARED: Range<usize> = 128 << 10..4 << 20;

/// The bytes of a block.
const BLOCK: usize = 16 << 20;

/// The block that parts are taken from, as long as any of them is in use, and where it is free.
static LAST: Mutex<(Weak<MmapRaw>, usize)> = Mutex::new((Weak::new(), 0));

impl Memory {
    /// `bytes` zeros; `None` if there is no memory for them.
    pub(crate) fn zeroed(bytes: usize) -> Option<Memory> {
        if let Some((block, part)) = SHARED.contains(&bytes).then(|| part(bytes)).flatten() {
            return Some(Memory::Part(block, part));
        }
        AlignedBytes::zeros(bytes).ok().map(Memory::Own)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Memory::Own(bytes) => bytes.as_slice().len(),
            Memory::Part(_, part) => part.len(),
        }
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        match self {
            Memory::Own(bytes) => bytes.as_slice().as_ptr(),
            Memory::Part(block, part) => block.as_ptr().wrapping_add(part.start),
        }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        match self {
            Memory::Own(bytes) => bytes.as_mut_slice().as_mut_ptr(),
            Memory::Part(block, part) => block.as_mut_ptr().wrapping_add(part.start),
        }
    }
}

/// A part of a block that nobody had before.
fn part(bytes: usize) -> Option<(Arc<MmapRaw>, Range<usize>)> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let (block, free) = &mut *last;
    if let Some(block) = block.upgrade()
        && block.len() - *free >= bytes
    {
        let start = *free;
        *free += bytes.next_multiple_of(64);
        return Some((block, start..start + bytes));
    }
    let pages = MmapMut::map_anon(BLOCK).ok()?;
    // If the system does not know large pages, small ones will do.
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::HugePage);
    let new = Arc::new(MmapRaw::from(pages));
    *last = (Arc::downgrade(&new), bytes.next_multiple_of(64));
    Some((new, 0..bytes))
}

/// The elements of an operand, of `size` bytes each.
///
/// # Panics
/// if there are fewer than `needed`.
pub(crate) fn elements(bytes: &[u8], needed: usize, size: usize) -> *const u8 {
    let needed = needed * size;
    assert!(
        bytes.len() >= needed,
        "an operand has {} bytes of {needed}",
        bytes.len()
    );
    bytes.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a part are read and written through its owner alone.
    #[test]
    fn parts_are_aligned_zeros_that_do_not_overlap() {
        let sizes = [
            1,
            SHARED.start,
            SHARED.start + 1,
            SHARED.end - 1,
            SHARED.end,
        ];
        let mut all: Vec<Memory> = Vec::new();
        for bytes in sizes.into_iter().cycle().take(40) {
            let mut memory = Memory::zeroed(bytes).unwrap();
            assert_eq!(memory.len(), bytes);
            assert_eq!(memory.as_ptr().addr() % 64, 0);
            // SAFETY: `Memory::zeroed` has allocated this many bytes, and `memory` is borrowed by nobody else.
            let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr(), bytes) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(all.len() as u8 + 1);
            all.push(memory);
        }
        for (k, memory) in all.iter().enumerate() {
            // SAFETY: `Memory::zeroed` has allocated `len` bytes and set them, and nobody writes them meanwhile.
            let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr(), memory.len()) };
            assert!(bytes.iter().all(|byte| *byte == k as u8 + 1));
        }
    }
}
