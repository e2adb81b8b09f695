//! A packed operand.

use crate::coded::Coded;
use crate::memory::Memory;

/// In which form an operand comes to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As the strides of the contraction say.
    Plain,
    /// Packed before: see [`pack_left`](crate::PreparedContraction::pack_left).
    Packed,
    /// Packed before as it is coded: see [`pack_left_coded`](crate::PreparedContraction::pack_left_coded).
    Coded,
}

/// An operand laid out as the micro-kernels of one [`PreparedContraction`](crate::PreparedContraction) read it.
pub struct Packed {
    memory: Memory,
    bytes: usize,
    columns: bool,
    code: Option<Coded>,
}

impl Packed {
    /// `bytes` zeros, for the column side or the row side; `None` if there is no memory for them.
    pub(crate) fn zeroed(bytes: usize, columns: bool) -> Option<Packed> {
        Some(Packed {
            memory: Memory::zeroed(bytes)?,
            bytes,
            columns,
            code: None,
        })
    }

    /// `bytes` zeros for coded elements, of which `more` may be read after the last.
    pub(crate) fn coded(bytes: usize, more: usize, columns: bool, code: Coded) -> Option<Packed> {
        Some(Packed {
            bytes,
            code: Some(code),
            ..Packed::zeroed(bytes.checked_add(more)?, columns)?
        })
    }

    /// The form to plan runs for.
    pub fn form(&self) -> Form {
        match self.code {
            Some(_) => Form::Coded,
            None => Form::Packed,
        }
    }

    /// How its elements are coded, if they are.
    pub(crate) fn code(&self) -> Option<&Coded> {
        self.code.as_ref()
    }

    /// All bytes of coded elements.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: lines are bytes, of any value.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr(), self.bytes) }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr()
    }

    /// How many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// The elements, of `size` bytes each.
    ///
    /// # Panics
    /// if it is not the side that is asked for, or has another size.
    pub(crate) fn elements(&self, count: usize, size: usize, columns: bool) -> *const u8 {
        let fits = self.columns == columns && self.bytes == count * size;
        assert!(fits, "the packed operand is another kernel's");
        self.memory.as_ptr()
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packed({} bytes)", self.bytes)
    }
}
