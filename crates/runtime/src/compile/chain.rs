//! Chains: a contraction, code that uses its results, and maybe a contraction of what that makes, as the two products of
//! attention with the softmax between them.
//!
//! Each task of the first goes through all of them with its rows while they are in the cache. What lies between them
//! is no larger then than what one task of each thread uses, so the memory of attention is linear in the
//! length of a text, and sums that code makes other results of never leave the cache. So do rows of a contraction that code
//! before it makes ([`producer`](crate::compile::producer)). The values and the order of all operations are those of the kernels
//! one after the other.

use std::ops::{Range, RangeInclusive};
use vinelift_nest::{Buffer, BufferId, Role};

/// The most buffers of code in a chain.
pub(crate) const MOST_BUFFERS: usize = 32;

/// The other steps of a chain, as its first step knows them.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// The temporaries that each thread has a part of.
    pub(crate) windows: Vec<Window>,
    /// The bytes of all parts for one thread.
    pub(crate) worker_bytes: usize,
    /// The floating-point operations of the other contraction, if there is one.
    pub(crate) flops: u64,
}

/// The results of a contraction that no kernel but the code after it uses.
#[derive(Clone, Copy)]
pub(crate) struct OwnResults {
    pub(crate) buffer: BufferId,
    /// The bytes of an element.
    pub(crate) size: usize,
}

/// A temporary of which only the elements of one task have memory, for each thread.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) buffer: BufferId,
    /// Where it begins in the memory of a thread.
    pub(crate) offset: usize,
    /// The bytes of the buffer before it, for each task.
    pub(crate) before: Vec<usize>,
    /// The bytes that it has room for.
    pub(crate) bytes: usize,
    /// The stages of a task from the first to the last that use it.
    live: RangeInclusive<usize>,
}

/// The stages of a task that use what all of them may use.
pub(crate) const ALL_STAGES: RangeInclusive<usize> = 0..=usize::MAX;

/// The bytes of an element of a buffer, if it may have a window: if it is a temporary of whole bytes.
pub(crate) fn window_element(buffer: &Buffer) -> Option<usize> {
    let fits = buffer.role == Role::Temporary && !buffer.ty.is_packed();
    fits.then_some(buffer.ty.bits() / 8)
}

/// Windows start at a multiple of this, and kernels may load a vector that begins in one: two lines of the cache.
const ALIGNMENT: usize = 128;

impl Chain {
    /// Adds a temporary of which the tasks use these elements of `size` bytes, in the stages `live`. It lies where one lay that is
    /// not used any more, if that had the same rows.
    pub(crate) fn add(
        &mut self,
        buffer: BufferId,
        size: usize,
        used: &[Range<usize>],
        live: RangeInclusive<usize>,
    ) -> Option<()> {
        let most = used.iter().map(Range::len).max()?.checked_mul(size)?;
        let before = used.iter().map(|used| used.start.checked_mul(size));
        let before = before.collect::<Option<Vec<usize>>>()?;
        let offset = match self.free_room((most, &before), &live) {
            Some(offset) => offset,
            None => {
                let room = most.checked_add(ALIGNMENT)?;
                let room = room.checked_next_multiple_of(ALIGNMENT)?;
                let offset = self.worker_bytes;
                self.worker_bytes = offset.checked_add(room)?;
                offset
            }
        };
        self.windows.push(Window {
            buffer,
            offset,
            before,
            bytes: most,
            live,
        });
        Some(())
    }

    /// Where a window of as many bytes begins, if all that begin there are of other stages. Tasks run their stages on a few rows at
    /// a time, so each row must have the same place in all of these windows: so it has if all tasks begin at the same places.
    fn free_room(
        &self,
        (bytes, before): (usize, &[usize]),
        live: &RangeInclusive<usize>,
    ) -> Option<usize> {
        let is_apart = |a: &RangeInclusive<usize>| a.end() < live.start() || live.end() < a.start();
        let has_same_rows = |other: &Window| other.bytes == bytes && other.before == before;
        let is_free = |offset: usize| {
            let mut there = self.windows.iter().filter(|w| w.offset == offset);
            there.all(|window| has_same_rows(window) && is_apart(&window.live))
        };
        let mut offsets = self.windows.iter().map(|window| window.offset);
        offsets.find(|offset| is_free(*offset))
    }

    /// The window of a buffer, if it has one.
    pub(crate) fn window(&self, buffer: BufferId) -> Option<&Window> {
        self.windows.iter().find(|window| window.buffer == buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_different_stages_share_their_place() {
        let mut chain = Chain::default();
        let mut add = |buffer, used: [Range<usize>; 2], live| {
            chain.add(BufferId(buffer), 4, &used, live).unwrap();
            chain.window(BufferId(buffer)).unwrap().offset
        };
        let whole = || [0..100, 100..190];
        let first = add(0, whole(), 0..=1);
        let second = add(1, whole(), 1..=3);
        assert_ne!(first, second);
        assert_eq!(add(2, whole(), 2..=4), first);
        // Others are used in the same stages, are not as large, or have other rows.
        assert!(![first, second].contains(&add(3, whole(), 3..=3)));
        assert!(![first, second].contains(&add(4, [0..50, 50..95], 5..=5)));
        assert!(![first, second].contains(&add(5, [0..100, 50..140], 5..=5)));
        assert_eq!(add(6, whole(), 4..=5), second);
    }
}
