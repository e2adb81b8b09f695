//! A packed operand.

use crate::Form;
use crate::coded::Coded;

/// An operand laid out as the micro-kernels of one [`Kernel`](crate::Kernel) read it.
pub struct Packed {
    lines: Box<[Line]>,
    bytes: usize,
    columns: bool,
    code: Option<Coded>,
}

/// Memory aligned to a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Packed {
    /// `bytes` zeros, for the column side or the row side.
    pub(crate) fn zeroed(bytes: usize, columns: bool) -> Packed {
        Packed {
            lines: vec![Line([0; 64]); bytes.div_ceil(64)].into(),
            bytes,
            columns,
            code: None,
        }
    }

    /// `bytes` zeros for coded elements, of which `more` may be read after the last.
    pub(crate) fn coded(bytes: usize, more: usize, columns: bool, code: Coded) -> Packed {
        Packed {
            bytes,
            code: Some(code),
            ..Packed::zeroed(bytes + more, columns)
        }
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
        self.lines.as_mut_ptr().cast()
    }

    /// How many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }

    /// The elements, of `size` bytes each.
    ///
    /// # Panics
    /// if it is not the side that is asked for, or has another size.
    pub(crate) fn elements(&self, count: usize, size: usize, columns: bool) -> *const u8 {
        let fits = self.columns == columns && self.bytes == count * size;
        assert!(fits, "the packed operand is another kernel's");
        self.lines.as_ptr().cast()
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packed({} bytes)", self.bytes)
    }
}
