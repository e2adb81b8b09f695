//! A packed operand.

/// An operand laid out as the micro-kernels of one [`Kernel`](crate::Kernel) read it.
pub struct Packed {
    lines: Box<[Line]>,
    bytes: usize,
    columns: bool,
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
        }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    /// How many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }

    /// The elements.
    ///
    /// # Panics
    /// if it is not the side that is asked for, or has another size.
    pub(crate) fn elements<T>(&self, count: usize, columns: bool) -> *const T {
        let fits = self.columns == columns && self.bytes == count * size_of::<T>();
        assert!(fits, "the packed operand is another kernel's");
        self.lines.as_ptr().cast()
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packed({} bytes)", self.bytes)
    }
}
