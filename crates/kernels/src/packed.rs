//! A packed operand.

use crate::coded::Coded;
use crate::grouped_tile::{GroupedCodes, Shape};
use crate::memory::Memory;

/// In which form an operand comes to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As the strides of the contraction say.
    Plain,
    /// Packed before: see [`pack_left`](crate::PreparedContraction::pack_left).
    Packed,
    /// Packed before as it is coded: see [`pack_left_coded`](crate::PreparedContraction::pack_left_coded), and
    /// [`GroupedProduct::pack`](crate::GroupedProduct::pack).
    Coded,
}

/// An operand laid out as the micro-kernels of one [`PreparedContraction`](crate::PreparedContraction) or
/// [`GroupedProduct`](crate::GroupedProduct) read it.
pub struct Packed {
    memory: Memory,
    bytes: usize,
    columns: bool,
    content: Content,
}

/// The contents of a packed operand.
enum Content {
    /// Elements or words.
    Elements,
    /// Codes of which elements are made.
    Coded(Coded),
    /// Codes that are multiplied as they are.
    Grouped(GroupedCodes),
    /// Windows, transformed.
    Transformed,
}

impl Packed {
    /// `bytes` zeros, for the column side or the row side; `None` if there is no memory for them.
    pub(crate) fn zeroed(bytes: usize, columns: bool) -> Option<Packed> {
        Some(Packed {
            memory: Memory::zeroed(bytes)?,
            bytes,
            columns,
            content: Content::Elements,
        })
    }

    /// `bytes` zeros for coded elements, of which `more` may be read after the last.
    pub(crate) fn coded(bytes: usize, more: usize, columns: bool, code: Coded) -> Option<Packed> {
        Some(Packed {
            bytes,
            content: Content::Coded(code),
            ..Packed::zeroed(bytes.checked_add(more)?, columns)?
        })
    }

    /// Zeros for the columns of a [`GroupedProduct`](crate::GroupedProduct).
    pub(crate) fn grouped(codes: GroupedCodes) -> Option<Packed> {
        Some(Packed {
            content: Content::Grouped(codes),
            ..Packed::zeroed(codes.bytes(), true)?
        })
    }

    /// `bytes` zeros for the windows of a [`WinogradConvolution`](crate::WinogradConvolution).
    pub(crate) fn transformed(bytes: usize) -> Option<Packed> {
        Some(Packed {
            content: Content::Transformed,
            ..Packed::zeroed(bytes, true)?
        })
    }

    /// The form to plan runs for.
    pub fn form(&self) -> Form {
        match self.content {
            Content::Coded(_) | Content::Grouped(_) => Form::Coded,
            Content::Elements | Content::Transformed => Form::Packed,
        }
    }

    /// How its elements are coded, if they are.
    pub(crate) fn code(&self) -> Option<&Coded> {
        match &self.content {
            Content::Coded(code) => Some(code),
            Content::Elements | Content::Grouped(_) | Content::Transformed => None,
        }
    }

    /// How the columns of a [`GroupedProduct`](crate::GroupedProduct) of this shape are packed.
    ///
    /// # Panics
    /// if it is packed for another kernel.
    pub(crate) fn grouped_codes(&self, shape: &Shape) -> &GroupedCodes {
        match &self.content {
            Content::Grouped(codes) if codes.shape == *shape => codes,
            _ => panic!("the packed operand is another kernel's"),
        }
    }

    /// The words of the windows of a [`WinogradConvolution`](crate::WinogradConvolution).
    ///
    /// # Panics
    /// if it is packed for another kernel.
    pub(crate) fn transformed_words(&self, count: usize) -> *const i32 {
        let fits =
            matches!(self.content, Content::Transformed) && self.bytes == count * size_of::<i32>();
        assert!(fits, "the packed operand is another kernel's");
        self.as_ptr().cast()
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.memory.as_ptr()
    }

    /// All bytes of codes.
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
        let is_other = matches!(self.content, Content::Grouped(_) | Content::Transformed);
        let fits = !is_other && self.columns == columns && self.bytes == count * size;
        assert!(fits, "the packed operand is another kernel's");
        self.as_ptr()
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packed({} bytes)", self.bytes)
    }
}
