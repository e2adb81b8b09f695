//! Convolutions of bytes with windows of 3 × 3 by Winograd's minimal filtering, F(2×2, 3×3).
//!
//! > `Y = Aᵀ · (Σ_c (G · g_c · Gᵀ) ⊙ (Bᵀ · d_c · B)) · A`
//!
//! The four results `Y` of a *tile*, two by two of a channel, are made of the tile's four by four pixels `d_c` of each channel and
//! of the windows `g_c` by 16 products instead of 36 (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and
//! S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016).
//!
//! With `G` doubled all numbers are integers, which fit into 16 bits, and the sums are four times the results. So these are
//! exact, as any other way of adding them is. For each of the 16 *positions* of a tile, the sum over the channels is a product of
//! matrices, tiles by channels and channels by results, which the micro-kernels of [`PreparedContraction`] for words of two numbers
//! compute. They are worth it for instruction sets that multiply no bytes.
//!
//! [`PreparedContraction`]: crate::PreparedContraction

mod convolution;
mod pack;
mod partition;
mod run;

use crate::engine::Engine;
use crate::lanes::Vector;
use crate::layout::Layout;
use crate::prepared::next_number;
use crate::simd::{self, HasEngine};
use crate::winograd_tile::{POSITIONS, Transforms};
use crate::{Contraction, Isa};
use convolution::Convolution;

pub use partition::WinogradPartition;
pub use run::WinogradBuffers;

/// A convolution whose windows are constant, prepared for Winograd's minimal filtering. It never changes, and any number of
/// threads may run it at once.
#[derive(Debug)]
pub struct WinogradConvolution {
    /// Which kernel this is: plans belong to one.
    number: u64,
    convolution: Convolution,
    engine: Micro,
    /// How many tiles are transformed at a time.
    block: usize,
    /// For the micro-kernels: where the rows of a block of tiles are, where the words of each are, and where their sums go.
    row_points: Box<[u32]>,
    row_steps: Box<[u32]>,
    row_sums: Box<[u32]>,
    vectors: Box<[Vector]>,
    name: String,
}

/// The micro-kernels and transforms of an instruction set.
#[derive(Clone, Copy)]
struct Micro {
    engine: &'static Engine<i32>,
    transforms: &'static Transforms,
    /// The vectors of a panel of columns, and the rows of the highest micro-kernel.
    vectors: usize,
    height: usize,
}

impl std::fmt::Debug for Micro {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.height, self.width())
    }
}

impl Micro {
    /// The vectors of a panel: with two, tiles have a register for the address of each row.
    const VECTORS: usize = 2;

    /// Those of an instruction set that multiplies words of two numbers; `None` for one that multiplies bytes.
    fn of(isa: Isa) -> Option<Micro> {
        let engine = <i32 as HasEngine>::engine(isa, false);
        let vectors = Micro::VECTORS.min(engine.strided.len());
        (engine.group == 2).then(|| Micro {
            engine,
            transforms: simd::transforms(isa),
            vectors,
            height: engine.strided[vectors - 1].len(),
        })
    }

    /// The columns of a panel.
    fn width(&self) -> usize {
        self.vectors * self.engine.lanes
    }
}

/// The bytes of transformed pixels that stay in the second cache while the windows go by.
const BLOCK_BYTES: usize = 256 << 10;

/// The most tiles of a block, a multiple of the height of every micro-kernel: their sums of a panel stay in the caches near to the
/// processor.
const MOST_TILES: usize = 48;

impl WinogradConvolution {
    /// Prepares a contraction for the given instructions; `None` if it is no such convolution, a result might not fit into 29
    /// bits, or the products that are saved are not worth the transforms. The windows are the right operand, or the left one.
    pub fn new(
        contraction: &Contraction,
        isa: Isa,
        windows_are_right: bool,
    ) -> Option<WinogradConvolution> {
        let engine = Micro::of(isa).filter(|_| isa.available())?;
        let convolution = Convolution::of(contraction, windows_are_right)?;
        convolution.pays().then_some(())?;
        let channels = convolution.channels;
        let tiles = BLOCK_BYTES / (POSITIONS * channels * size_of::<i16>());
        let block = tiles.max(1).next_multiple_of(engine.height).min(MOST_TILES);
        let table = |count: usize, step: usize| (0..count).map(|at| (at * step) as u32).collect();
        let lanes = engine.engine.lanes;
        let vector = |number: usize| Vector {
            from: 0,
            to: (number * lanes) as u32,
            valid: ((1u32 << lanes) - 1) as u16,
            load: lanes as u8,
            elements: lanes as u8,
        };
        Some(WinogradConvolution {
            number: next_number(),
            block,
            row_points: table(engine.height, channels),
            row_steps: table(channels / 2, 2),
            row_sums: table(engine.height, engine.width()),
            vectors: (0..engine.vectors).map(vector).collect(),
            name: format!("{} winograd {engine:?}", engine.transforms.name),
            convolution,
            engine,
        })
    }

    /// How many operations the convolution has without the transforms: two for each multiply-add.
    pub fn flops(&self) -> u64 {
        self.convolution.flops()
    }

    /// The layout of the windows when they are packed. It does not depend on the size of the picture.
    pub fn layout(&self) -> Layout {
        Layout::winograd(self.convolution.windows, self.engine.width())
    }

    /// How many elements each operand must have at least: `[image, windows, out]`.
    pub fn elements(&self) -> [usize; 3] {
        let Convolution {
            image_needed,
            out_needed,
            windows,
            ..
        } = self.convolution;
        [image_needed, windows.needed, out_needed]
    }

    /// A description in a few words: instructions, and the micro-kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many panels of columns there are.
    fn panels(&self) -> usize {
        self.convolution.results.div_ceil(self.engine.width())
    }

    /// How many words of windows a panel has for each position. Those of its positions follow each other.
    fn position_words(&self) -> usize {
        self.convolution.channels / 2 * self.engine.width()
    }
}
