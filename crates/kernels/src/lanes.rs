//! One register of lanes, whatever the machine calls it, and the types of the lanes.

/// The type of sums, and of what the micro-kernels read: elements of the operands, or words that hold
/// those of several `k` where these are bytes.
pub(crate) trait Number: Copy + 'static {
    /// An element of the operands.
    type Item: Copy;

    const ZERO: Self;
}

impl Number for f32 {
    type Item = f32;

    const ZERO: f32 = 0.0;
}

impl Number for f64 {
    type Item = f64;

    const ZERO: f64 = 0.0;
}

/// Sums of products of bytes.
impl Number for i32 {
    type Item = u8;

    const ZERO: i32 = 0;
}

/// A register of `LANES` elements, at most 16. Pointers need no alignment.
///
/// # Safety
/// of every function: the machine has the instructions, and the lanes that are read or written lie
/// in memory that may be read or written: all of them for `load` and `store`, the first `lanes` of
/// them for `load_first` and `store_first`, every second of twice as many less one for `load_every_second`.
pub(crate) trait Simd {
    type T: Number;
    type V: Copy;
    const LANES: usize;
    /// The bytes of what offsets of the row side count, where tiles read it where it is: elements of the operand or, if these
    /// are bytes that are widened first, what becomes of one.
    const ROW_BYTES: usize = size_of::<Self::T>();
    /// How many registers there are.
    const REGISTERS: usize = 16;
    /// Whether fetching takes time from the multiply-adds: these are several instructions each.
    const FETCHES_TAKE_TIME: bool = false;

    unsafe fn zero() -> Self::V;
    unsafe fn splat(from: *const Self::T) -> Self::V;
    unsafe fn load(from: *const Self::T) -> Self::V;
    unsafe fn store(to: *mut Self::T, v: Self::V);
    /// Has the second cache fetch what is at `from`, which need not be an element.
    #[inline(always)]
    unsafe fn fetch(_from: *const Self::T) {}
    /// Has the first cache fetch what is at `from`, which need not be an element.
    #[inline(always)]
    unsafe fn fetch_first(_from: *const Self::T) {}
    /// The lanes after the first `lanes` are zero.
    unsafe fn load_first(from: *const Self::T, lanes: usize) -> Self::V;
    unsafe fn store_first(to: *mut Self::T, v: Self::V, lanes: usize);
    /// Elements two apart; those between them may be read.
    #[inline(always)]
    unsafe fn load_every_second(from: *const Self::T) -> Self::V {
        let mut lanes = [Self::T::ZERO; 16];
        for (lane, element) in lanes.iter_mut().enumerate().take(Self::LANES) {
            // SAFETY: the caller may read it.
            *element = unsafe { from.add(2 * lane).read_unaligned() };
        }
        // SAFETY: there are at most 16.
        unsafe { Self::load(lanes.as_ptr()) }
    }
    /// Moves the lanes whose bit is set in `valid` to the front.
    unsafe fn compress(v: Self::V, valid: u16) -> Self::V;
    /// Moves the front lanes to those whose bit is set in `valid`.
    unsafe fn expand(v: Self::V, valid: u16) -> Self::V;
    /// `a · b + c`, rounded once; of words, the sum of the products of what they hold, `a` being of the
    /// row side.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Has nothing be loaded before these vectors are there: what is loaded earlier needs registers for longer.
    #[inline(always)]
    unsafe fn in_turn(_vectors: &mut [Self::V]) {}
}

/// Where a vector's lanes are: in the column side from `from` on, of which the first `load` lanes may
/// be read; of those the ones with a bit in `valid` are elements of `out`, one after another from
/// `to` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Vector {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) valid: u16,
    pub(crate) load: u8,
    /// How many bits `valid` has.
    pub(crate) elements: u8,
}
