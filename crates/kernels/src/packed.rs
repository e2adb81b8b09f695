//! A packed operand.

use crate::Form;
use crate::coded::Coded;

use memmap2::MmapMut;

/// An operand laid out as the micro-kernels of one [`Kernel`](crate::Kernel) read it.
pub struct Packed {
    memory: Memory,
    bytes: usize,
    columns: bool,
    code: Option<Coded>,
}

/// Memory aligned to a cache line, zeros at first.
enum Memory {
    Lines(Box<[Line]>),
    /// From the system, which clears it when it is written.
    Pages(MmapMut),
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// From so many bytes on, memory comes from the system, in large pages if it has them: to get each page takes
/// longer than to fill it.
const PAGES: usize = 1 << 20;

impl Memory {
    fn zeroed(bytes: usize) -> Memory {
        let lines = bytes.div_ceil(size_of::<Line>());
        if bytes >= PAGES
            && let Ok(pages) = MmapMut::map_anon(lines * size_of::<Line>())
        {
            // If the system does not know large pages, small ones will do.
            #[cfg(target_os = "linux")]
            let _ = pages.advise(memmap2::Advice::HugePage);
            return Memory::Pages(pages);
        }
        Memory::Lines(vec![Line([0; size_of::<Line>()]); lines].into())
    }

    fn bytes(&self) -> usize {
        match self {
            Memory::Lines(lines) => size_of_val(&**lines),
            Memory::Pages(pages) => pages.len(),
        }
    }

    fn as_ptr(&self) -> *const u8 {
        match self {
            Memory::Lines(lines) => lines.as_ptr().cast(),
            Memory::Pages(pages) => pages.as_ptr(),
        }
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        match self {
            Memory::Lines(lines) => lines.as_mut_ptr().cast(),
            Memory::Pages(pages) => pages.as_mut_ptr(),
        }
    }
}

impl Packed {
    /// `bytes` zeros, for the column side or the row side.
    pub(crate) fn zeroed(bytes: usize, columns: bool) -> Packed {
        Packed {
            memory: Memory::zeroed(bytes),
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
        self.memory.as_mut_ptr()
    }

    /// How many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
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
