//! Where a tensor's elements are kept.

use std::sync::Arc;

use bytemuck::Zeroable;
use bytes::Bytes;

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
pub(crate) struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
}

/// The widest vector register, and a cache line.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

const LINE: usize = 64;

impl Storage {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Storage::Owned(owned) => owned.as_slice(),
            Storage::Shared(bytes) => bytes,
            Storage::Foreign(memory) => (**memory).as_ref(),
            Storage::Strings(_) => &[],
        }
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
    pub(crate) fn zeros(len: usize) -> Result<AlignedBytes, TensorError> {
        let count = len.div_ceil(LINE);
        let mut lines = Vec::new();
        lines
            .try_reserve_exact(count)
            .map_err(|_| TensorError::OutOfMemory { bytes: len })?;
        lines.resize(count, Line::zeroed());
        Ok(AlignedBytes { lines, len })
    }

    pub(crate) fn copy_of(bytes: &[u8]) -> Result<AlignedBytes, TensorError> {
        let mut copy = AlignedBytes::zeros(bytes.len())?;
        copy.as_mut_slice().copy_from_slice(bytes);
        Ok(copy)
    }

    fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}
