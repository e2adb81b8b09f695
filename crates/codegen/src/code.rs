//! Machine code in memory: who owns it, and the one place where it is called.

use crate::dump::KernelText;
use crate::emit::{self, RawFault};
use cranelift_jit::JITModule;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use vinelift_nest::{BoundChunks, Fault, ParallelChunks, SiteId};
use vinelift_tensor::Extent;

/// Compiled kernels. Their memory is freed with the last of them: when this is dropped.
pub struct Code {
    entries: Vec<Entry>,
    /// The memory that the entries' addresses point into.
    _memory: CodeMemory,
}

/// Why a kernel ended before all was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// An index in the data is out of range.
    Fault(Fault),
    /// It was told to stop.
    Stopped,
}

/// Where a buffer begins. Threads may share it: whatever is done with it needs a promise of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Pointer(pub *mut u8);

// SAFETY: it is an address; only unsafe code can reach what is there.
unsafe impl Send for Pointer {}
// SAFETY: a shared reference gives the address, which is a copy of plain data.
unsafe impl Sync for Pointer {}

/// One kernel.
pub(crate) struct Entry {
    /// The address of the function, a [`Kernel`].
    pub(crate) address: *const u8,
    /// Bytes of machine code.
    pub(crate) size: usize,
    /// Into which chunks it can be cut.
    pub(crate) chunks: ParallelChunks,
    /// Bytes of scratch memory that a call needs.
    pub(crate) scratch: usize,
    /// The extents that a call needs the numbers of.
    pub(crate) extents: Vec<Extent>,
    /// How long it took to compile on its thread, without linking.
    pub(crate) time: Duration,
    pub(crate) text: Option<KernelText>,
}

/// 0 when done, 1 when the fault has been filled in, 2 when it was told to stop.
type Kernel = unsafe extern "C" fn(
    buffers: *const Pointer,
    fault: *mut RawFault,
    begin: usize,
    end: usize,
    scratch: Pointer,
    numbers: *const i64,
) -> u32;

// SAFETY: after linking, the module is never touched again before it is dropped, the code it holds
// is immutable, and kernels keep all their state in registers, on the stack of the thread that
// calls, and in the buffers and scratch memory that the caller vouches for.
unsafe impl Send for Code {}
// SAFETY: a shared reference gives access to immutable code and strings only, and kernels that run at the same time
// share nothing but the buffers, which their callers vouch for.
unsafe impl Sync for Code {}

impl Code {
    /// `entries` point into `memory`.
    pub(crate) fn new(memory: CodeMemory, entries: Vec<Entry>) -> Code {
        Code {
            entries,
            _memory: memory,
        }
    }

    /// How many kernels there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of machine code of a kernel.
    ///
    /// # Panics
    ///
    /// If there is no such kernel.
    pub fn size(&self, kernel: usize) -> usize {
        self.entries[kernel].size
    }

    /// Runs a kernel; `numbers` are what its [`Code::extents`] are in this run. A fault leaves what has been written by
    /// then written.
    ///
    /// # Safety
    ///
    /// There are values of the nest's symbols at which [`Nest::bound_to`](vinelift_nest::Nest::bound_to) gives a nest,
    /// and `numbers` are what the extents are at these ([`Extent::at`]). `buffers` has one pointer for each buffer of
    /// that nest, in their order. Those of tables are ignored and may be null. Each other one is valid for reads of the
    /// buffer's length in bytes (`byte_len` of its element type), at any alignment; those of outputs and temporaries are
    /// valid for writes as well, are written by nobody else meanwhile, and overlap no other buffer.
    /// Temporaries and outputs hold initialised bytes. The strings of a string buffer are handles
    /// that are only copied and compared.
    ///
    /// # Panics
    ///
    /// If there is no such kernel, or there are not as many numbers as it has extents.
    pub unsafe fn run(
        &self,
        kernel: usize,
        buffers: &[Pointer],
        numbers: &[i64],
    ) -> Result<(), Fault> {
        let whole = 0..self.chunks(kernel, numbers).extent;
        let mut scratch = vec![0u8; self.scratch_bytes(kernel)];
        let scratch = Pointer(scratch.as_mut_ptr());
        let never = AtomicBool::new(false);
        // SAFETY: the caller vouches for the buffers, and nothing else knows of the scratch memory.
        match unsafe { self.run_chunk(kernel, buffers, numbers, whole, scratch, &never) } {
            Err(Interrupt::Fault(fault)) => Err(fault),
            Ok(()) | Err(Interrupt::Stopped) => Ok(()),
        }
    }

    /// Runs a chunk of a kernel; see [`ParallelChunks`]. Chunks that lie apart may run at the same time, with the
    /// same buffers and scratch memory of their own. Some tens of milliseconds after `stop` has become true it ends, with
    /// [`Interrupt::Stopped`] if not all is done.
    ///
    /// # Safety
    ///
    /// As for [`Code::run`]; other chunks of the same kernel may write to the buffers meanwhile. `scratch` is
    /// valid for writes of [`Code::scratch_bytes`] bytes, which hold initialised bytes, belong to no buffer and
    /// are used by nobody else meanwhile.
    ///
    /// # Panics
    ///
    /// If there is no such kernel, it has no such chunk, or there are not as many numbers as it has extents.
    pub unsafe fn run_chunk(
        &self,
        kernel: usize,
        buffers: &[Pointer],
        numbers: &[i64],
        chunk: Range<usize>,
        scratch: Pointer,
        stop: &AtomicBool,
    ) -> Result<(), Interrupt> {
        let address = self.entries[kernel].address;
        let chunks = self.chunks(kernel, numbers);
        assert!(chunks.allow(&chunk), "no chunk {chunk:?} of {chunks:?}");
        // SAFETY: the address is that of a function emitted with this very signature, in memory
        // that is executable for as long as `self` lives.
        let function: Kernel = unsafe { std::mem::transmute(address) };
        let mut fault = MaybeUninit::<RawFault>::uninit();
        // SAFETY: the field lies in the memory of `fault`.
        unsafe { (&raw mut (*fault.as_mut_ptr()).stop).write(stop) };
        let Range { start, end } = chunk;
        let (numbers, fault_at) = (numbers.as_ptr(), fault.as_mut_ptr());
        // SAFETY: a verified nest reaches only into its buffers whatever its symbols are, which the caller vouches for, as
        // for the scratch memory; there is a number for each extent; the kernel writes to `fault` within its size, and
        // reads the flag that it leads to.
        let status = unsafe { function(buffers.as_ptr(), fault_at, start, end, scratch, numbers) };
        match status {
            emit::DONE => return Ok(()),
            emit::STOPPED => return Err(Interrupt::Stopped),
            _ => {}
        }
        // SAFETY: every field before the positions is written before a kernel returns that it has faulted; the
        // positions are themselves of a type that need not be initialised.
        let raw = unsafe { fault.assume_init_ref() };
        let positions = &raw.position[..raw.rank as usize];
        Err(Interrupt::Fault(Fault {
            site: SiteId(raw.site as u32),
            // SAFETY: the kernel has written as many positions as it says.
            position: positions
                .iter()
                .map(|p| unsafe { p.assume_init() })
                .collect(),
            index: match raw.unsigned {
                0 => i128::from(raw.index as i64),
                _ => i128::from(raw.index),
            },
            extent: raw.extent as usize,
            negative: raw.negative != 0,
        }))
    }

    /// The extents whose numbers each call of the kernel needs, in order; some are products, which may be larger than
    /// extents are. None if the nest has no symbols.
    ///
    /// # Panics
    ///
    /// If there is no such kernel.
    pub fn extents(&self, kernel: usize) -> &[Extent] {
        &self.entries[kernel].extents
    }

    /// Into which chunks the kernel can be cut where its extents are these numbers.
    ///
    /// # Panics
    ///
    /// If there is no such kernel, or there are not as many numbers as it has extents.
    pub fn chunks(&self, kernel: usize, numbers: &[i64]) -> BoundChunks {
        let Entry {
            extents, chunks, ..
        } = &self.entries[kernel];
        assert_eq!(numbers.len(), extents.len(), "numbers of {extents:?}");
        let is_shared_out = |(extent, _): &(&Extent, &i64)| **extent == chunks.extent;
        let number = extents.iter().zip(numbers).find(is_shared_out);
        let number = number.map(|(_, number)| usize::try_from(*number).unwrap_or(0));
        chunks.of_extent(number.unwrap_or(chunks.extent.example()))
    }

    /// Bytes of scratch memory that each call of the kernel needs.
    ///
    /// # Panics
    ///
    /// If there is no such kernel.
    pub fn scratch_bytes(&self, kernel: usize) -> usize {
        self.entries[kernel].scratch
    }

    /// The text of the kernel at each step of its way, if [`capture_text`](crate::Options) asked for it.
    ///
    /// # Panics
    ///
    /// If there is no such kernel.
    pub fn text(&self, kernel: usize) -> Option<&KernelText> {
        self.entries[kernel].text.as_ref()
    }

    /// Bytes of machine code.
    ///
    /// # Panics
    ///
    /// If there is no such kernel.
    pub fn code_size(&self, kernel: usize) -> usize {
        self.entries[kernel].size
    }

    /// How long the kernel took to compile on one thread, with the making of its text but without linking.
    ///
    /// # Panics
    ///
    /// If there is no such kernel.
    pub fn compile_time(&self, kernel: usize) -> Duration {
        self.entries[kernel].time
    }
}

/// A module that frees its memory; by itself one leaks it, for fear of dangling function pointers.
pub(crate) struct CodeMemory(ManuallyDrop<JITModule>);

impl CodeMemory {
    pub(crate) fn new(module: JITModule) -> CodeMemory {
        CodeMemory(ManuallyDrop::new(module))
    }

    pub(crate) fn module(&mut self) -> &mut JITModule {
        &mut self.0
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: the module is taken once, here.
        let module = unsafe { ManuallyDrop::take(&mut self.0) };
        // SAFETY: the addresses in the module's memory are private to `Code`, which calls them only
        // while it is borrowed and owns this: none of them is running or will run again.
        unsafe { module.free_memory() };
    }
}
