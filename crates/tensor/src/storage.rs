//! Where a tensor's elements are kept.

use std::sync::Arc;

use bytes::Bytes;
use memmap2::MmapMut;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::TensorError;

/// Clones share the elements; the first write to a shared one copies them.
#[derive(Clone)]
pub(crate) enum Storage {
    /// Aligned to 64 bytes, so that kernels may use the widest vector loads.
    Owned(Arc<AlignedBytes>),
    /// Part of a file, at any alignment.
    Shared(Bytes),
    /// Memory of someone else that can be written, at any alignment.
    Foreign(Arc<dyn Memory>),
    Strings(Arc<Vec<String>>),
}

/// Memory that a tensor can be made of, to be read and written in place.
pub trait Memory: AsRef<[u8]> + AsMut<[u8]> + Send + Sync {}

impl<T: AsRef<[u8]> + AsMut<[u8]> + Send + Sync> Memory for T {}

/// Bytes whose first is aligned to 64.
pub struct AlignedBytes {
    memory: Zeros,
    len: usize,
}

/// Memory that was zeros at first.
enum Zeros {
    Lines(Vec<Line>),
    /// From the system, which clears each page when it is first used.
    Pages(MmapMut),
}

/// The widest vector register, and a cache line.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

const LINE: usize = 64;

/// From this many bytes on, memory comes from the system, in large pages if it has them: to get small ones takes
/// longer than to fill them.
const PAGES: usize = 1 << 20;

impl Storage {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Storage::Owned(owned) => owned.as_slice(),
            Storage::Shared(bytes) => bytes,
            Storage::Foreign(memory) => (**memory).as_ref(),
            Storage::Strings(_) => &[],
        }
    }

    /// Whether these bytes were allocated here, and have one user.
    pub(crate) fn is_unshared(&self) -> bool {
        matches!(self, Storage::Owned(owned) if Arc::strong_count(owned) == 1)
    }

    /// The bytes, of which there is no other user: they are copied if there was.
    pub(crate) fn bytes_mut(&mut self) -> Result<&mut [u8], TensorError> {
        let shared = match self {
            Storage::Owned(owned) => Arc::get_mut(owned).is_none(),
            Storage::Foreign(memory) => Arc::get_mut(memory).is_none(),
            Storage::Shared(_) => true,
            Storage::Strings(_) => return Ok(&mut []),
        };
        if shared {
            *self = Storage::Owned(Arc::new(AlignedBytes::copy_of(self.bytes())?));
        }
        match self {
            Storage::Owned(owned) => {
                Ok(Arc::get_mut(owned).map_or(&mut [], AlignedBytes::as_mut_slice))
            }
            Storage::Foreign(memory) => {
                Ok(Arc::get_mut(memory).map_or(&mut [], |memory| memory.as_mut()))
            }
            Storage::Shared(_) | Storage::Strings(_) => Ok(&mut []),
        }
    }
}

impl AlignedBytes {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Result<AlignedBytes, TensorError> {
        let out_of_memory = || TensorError::OutOfMemory { bytes: len };
        let memory = match len {
            PAGES.. => Zeros::Pages(pages(len).ok_or_else(out_of_memory)?),
            _ => {
                let count = len.div_ceil(LINE);
                let mut lines = Vec::new();
                let reserved = lines.try_reserve_exact(count);
                reserved.map_err(|_| out_of_memory())?;
                lines.resize(count, Line::new_zeroed());
                Zeros::Lines(lines)
            }
        };
        Ok(AlignedBytes { memory, len })
    }

    pub(crate) fn copy_of(bytes: &[u8]) -> Result<AlignedBytes, TensorError> {
        let mut copy = AlignedBytes::zeros(bytes.len())?;
        copy.as_mut_slice().copy_from_slice(bytes);
        Ok(copy)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.memory {
            Zeros::Lines(lines) => &lines.as_bytes()[..self.len],
            Zeros::Pages(pages) => &pages[..self.len],
        }
    }

    /// The bytes, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Zeros::Lines(lines) => &mut lines.as_mut_bytes()[..self.len],
            Zeros::Pages(pages) => &mut pages[..self.len],
        }
    }
}

fn pages(len: usize) -> Option<MmapMut> {
    // Nothing larger can be told from an offset that is negative.
    isize::try_from(len).ok()?;
    let pages = MmapMut::map_anon(len).ok()?;
    // If the system does not know large pages, small ones will do.
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::HugePage);
    Some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_zeros_of_any_length() {
        for len in [0, 1, LINE, PAGES - 1, PAGES, PAGES + 1, 3 * PAGES] {
            let mut bytes = AlignedBytes::zeros(len).unwrap();
            assert_eq!(bytes.as_slice().len(), len);
            assert!(bytes.as_slice().iter().all(|byte| *byte == 0));
            assert_eq!(bytes.as_slice().as_ptr().addr() % LINE, 0);
            bytes.as_mut_slice().fill(7);
            assert!(bytes.as_slice().iter().all(|byte| *byte == 7));
        }
        let most = [isize::MAX as usize, usize::MAX];
        assert!(most.iter().all(|len| AlignedBytes::zeros(*len).is_err()));
    }
}
