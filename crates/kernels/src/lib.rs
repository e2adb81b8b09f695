//! Contractions by SIMD micro-kernels, which loop nests cannot do at full speed.
//!
//! > `out[b, m, n] = Σ_k left[b, m, k] · right[b, k, n]`
//!
//! where each of `b`, `m`, `n` and `k` stands for any number of dims with any strides
//! ([`Contraction`]): products of matrices, convolutions and their like, without a copy of the
//! operands beforehand. A [`PreparedContraction`] is a contraction prepared for the machine, a [`TaskPartition`] says how
//! its runs are divided into tasks that the caller's threads run.
//!
//! Invariants:
//! * **Every element is the same sum.** It starts at zero and takes each `k` in row-major order of the
//!   `k` dims by one fused multiply-add. `k` is never split into partial sums: a blocked sum goes on
//!   from what is in `out`. So the bits are the same for any instruction set, tile, number of tasks
//!   and thread, and whether an operand was packed or not. (The payload of a NaN is not specified.) Sums of
//!   products of bytes are exact in any order.
//! * Nothing is read or written outside the operands. A [`PreparedContraction`] knows the largest offset it can
//!   reach, every run checks the operands against it, and lanes beyond are masked.
//! * A run allocates nothing: the plan says how much scratch memory it wants.
//! * Functions of an instruction set pass no closures to the standard library in their loops, and iterate over slices alone: a
//!   closure has the instructions of the function that it is in, which what calls it lacks, so that it may not be inlined.
//! * This is the only crate with CPU intrinsics; of ours it depends on `vinelift-tensor` alone, for memory.
//!
//! # How it works
//! A micro-kernel computes a tile of `h` rows by `n` vectors of `out` in registers: for each `k`
//! it loads `n` vectors from the *column side* and one element for each row from the *row side*. The
//! column side is the operand along whose dims `out` is contiguous. Its vectors come
//! * from packed panels: made once for a constant, in the first phase of a run if several tasks
//!   need them, or else panel by panel within the task, where they stay in the first cache;
//! * or from the operand as it is, if the elements of a vector lie close together there. Lanes
//!   between them are computed and left out when the vector is stored, so that a convolution's vectors
//!   run on over the padding between two rows of its input, or over every second element;
//! * or from lines of `k` in the operand, as the keys of attention are, if there are few rows: a tile loads as many elements of
//!   each column as a vector has lanes, and lays these squares across in registers.
//!
//! Rows come from packed panels as well, or from where they are: side by side in the operand (the pixels of a picture whose
//! channels are planes), or each at an address of its own, from which `k` takes the same steps in all of them (pixels whose
//! channels follow each other, rows of a matrix, and windows over either). They are packed where tiles have no register for the
//! address of each row (those of AVX-512 load it), where the lines of a tile's rows crowd a few sets of a cache, or where many
//! panels of columns would have the caches fetch lines that lie far apart again and again.
//!
//! Where windows reach beyond a picture whose border of zeros is known ([`Padding`]), tiles leave out the steps at which all of
//! their rows have zeros, if the weights are finite: sums stay the same.
//!
//! Some machines run an instruction of 512 bits as two halves ([`Isa::Avx512Halves`]): a multiply-add then takes as long as two of
//! 256 bits. What is left of the advantage is that there are twice the registers and half the instructions, so that a contraction
//! has tiles of 512 bits unless their last vectors are so empty that 256 bits do more.
//!
//! The sizes of the tiles are chosen so that rows and vectors divide into equal panels. Of columns that are packed once for
//! many runs panels suit many rows, so that one copy serves any number of them; tiles of few rows take several of these
//! panels at once, to have as many sums under way as the machine adds at a time. Blocks of `k`
//! keep a panel of columns in the first cache. Where a packed operand goes by once, as the weights of a
//! network do, tiles have the second cache fetch what comes next: with 30 MB of weights in turn, 24×1536 ·
//! weights 1536×384 runs at 230 GFLOP/s instead of 155, and 18×1024 · weights 1024×8210 at 235 instead of 120. So do rows that
//! come from memory: 24000×128 · weights 128×64 runs at 133 GFLOP/s with AVX2 instead of 93.
//!
//! Of bytes, a step takes words of four `k` with AVX-512 VNNI or AVX-VNNI, and of two, as numbers of 16 bits, without. As any
//! order of `k` gives the same sum, it is that of the operand in memory. Rows whose words lie there as a whole, as those of pixels
//! whose channels follow each other, are read from where they are; as numbers of 16 bits, once a task has widened the bytes of a
//! block of rows. So are runs of bytes that are not of whole words, as the nine of three pixels with three channels: their last word
//! ends with the run, and what it has again is zero on the other side. Otherwise operands are packed into words, made of vectors
//! along the channels of a pixel, or along pixels.
//! Machines that multiply matrices of bytes ([`Isa::Amx`]) have the sums of up to 32 rows by two vectors in matrix registers, where
//! a sum has 64 terms or more. A product takes a line of up to 16 words of each of 16 rows that are equally far apart, so that the
//! height of tiles suits the lines of a picture; rows that lie otherwise have vectors. Packed columns are the same for both.
//! Without products of bytes, convolutions of bytes with constant windows of 3×3 take 16 products for four results instead of 36
//! ([`WinogradConvolution`]), where there are enough channels to be worth the transforms.
//! Constant operands of 4 to 16 bits stay so when they are packed, with zero points and scales for groups of `k` ([`Coding`]):
//! tiles of one or two rows make elements of them on the way, and for more rows tasks do, a block at a time. Columns that are not
//! constant may be `f16` or `bf16`, as the keys and values that a language model keeps ([`Narrow`]): tasks make elements of them
//! as they pack them.
//!
//! Codes of 4 or 8 bits whose products are summed by groups of `k` before scales count, as [`Grouped`] says, are multiplied
//! as they are ([`GroupedProduct`]): with rows of `f32`, or with rows that were quantised to `i8` by groups, whose sums are of
//! integers. Panels of codes, with zero points and scales between them, are read from end to end, and rows where they lie. Of
//! more than two rows of `f32`, tasks make elements of codes, some groups at a time.
//!
//! # Measured
//! One thread of an AMD Zen 5 server with AVX-512 (22 November 2026; `cargo bench -p vinelift-kernels`
//! runs these and more). GFLOP/s; the peak that [`peak()`] measured beside is 257, and `gemm` is that crate,
//! version 0.19, which uses AVX2 here, as measured the day before at a peak of 265. Weights are packed before.
//!
//! | contraction | AVX-512 | AVX2 | `gemm` |
//! |---|---|---|---|
//! | 400×384 · weights 384×1536 | 232 | 120 | 125 |
//! | 128×384 · weights 384×384 | 234 | 119 | 126 |
//! | 24×1536 · weights 1536×384 | 226 | 112 | |
//! | 24×1536 · weights 1536×384 of 8 bits | 212 | 115 | |
//! | 4×1536 · weights 1536×384 | 144 | 94 | 26 |
//! | 1×1536 · weights 1536×384 (bound by memory) | 50 | 51 | 52 |
//! | 512×512 · 512×512 | 229 | 109 | 131 |
//! | 6 heads of 400×64 · 64×400 | 213 | 114 | 130 |
//! | 6 heads of 400×400 · 400×64 | 194 | 105 | 133 |
//! | convolution 64→64, 28×28, window 3×3 | 212 | 111 | |
//! | convolution 256→256, 7×7, window 3×3 | 157 | 99 | |
//! | convolution 128→512, 14×14, window 1×1 | 217 | 118 | |
//! | convolution 3→64, 112×112, window 7×7, step 2 | 182 | 94 | |
//! | 6 heads of 400×64 · 64×400, of bytes | 612 | 120 | |
//! | depthwise convolution 256, 14×14, window 5×5 | 60 | 40 | |
//! | depthwise convolution 24, 128×128, window 3×3 | 46 | 30 | |
//!
//! Of bytes, on such a server (27 November 2026), billions of operations a second:
//!
//! | contraction | AVX-512 VNNI (peak 1060) | AVX-VNNI (peak 530) | AVX2 |
//! |---|---|---|---|
//! | 400×384 · weights 384×1536 | 997 | 526 | 224 |
//! | 3136×576 · weights 576×64 | 1028 | 516 | 221 |
//!
//! Windows of 3×3 over pixels whose channels follow each other, and the same by minimal filtering (28 November 2026):
//!
//! | channels, picture | AVX-512 VNNI | AVX-VNNI | AVX2 | AVX2, filtered |
//! |---|---|---|---|---|
//! | 32, 112×112 | 1006 | 525 | 218 | 323 |
//! | 64, 56×56 | 1044 | 523 | 227 | 406 |
//! | 128, 28×28 | 1053 | 530 | 229 | 423 |
//! | 256, 14×14 | 1031 | 526 | 228 | 475 |
//! | 512, 7×7 | 1018 | 503 | 225 | 373 |
//!
//! One thread of an AMD Zen 4 server, whose vectors of 512 bits are two halves (25 November 2026), other programs beside it, the
//! shortest of many runs, GFLOP/s; the peak is 118.
//!
//! | contraction | AVX-512 | AVX-512 in halves | AVX2 |
//! |---|---|---|---|
//! | 400×256 · weights 256×64 | 103 | 115 | 112 |
//! | 400×384 · weights 384×384 | 112 | 113 | 112 |
//! | 400×1024 · weights 1024×384 | 109 | 109 | 106 |
//! | 400×4096 · weights 4096×384 | 108 | 108 | 103 |
//!
//! Rows of 896 by weights 896×4864 that come from memory, with zero points and scales for each column, of 4 bits for every 128
//! `k`, by groups: one thread of an AMD EPYC of Zen 5 with AVX-512 VNNI (30 November 2026), other machines beside it, GB/s of
//! codes. In brackets: with vectors of 256 bits, of which rows of `i8` take AVX-VNNI. Reading memory and nothing else gives 38 to
//! 43. 32 rows of `f32` run at 214 and 104 GFLOP/s, where the peaks are 263 and 134.
//!
//! | rows | weights | `f32`, in groups of 128 | `i8`, in groups of 128 | `i8`, in groups of 32 |
//! |---|---|---|---|---|
//! | 1 | of 4 bits | 28.6 (15.6) | 38.0 (36.2) | 35.4 (35.2) |
//! | 2 | | 23.3 (11.5) | 36.9 (27.9) | 35.6 (25.4) |
//! | 4 | | 8.0 (4.8) | 32.7 (21.7) | 30.0 (18.9) |
//! | 32 | | 1.7 (0.8) | 6.1 (3.1) | 4.8 (2.6) |
//! | 1 | of 8 bits | 38.7 (32.6) | 43.0 (41.1) | 42.3 (38.6) |
//! | 2 | | 33.6 (25.1) | 41.4 (37.9) | 38.9 (31.0) |
//! | 4 | | 14.1 (8.7) | 37.2 (32.1) | 36.7 (25.2) |
//! | 32 | | 3.2 (1.6) | 10.2 (5.8) | 8.5 (4.9) |

mod axes;
mod coded;
mod codes;
mod compute;
mod contraction;
mod engine;
mod geometry;
mod grouped;
mod grouped_tile;
mod groups;
mod isa;
mod lanes;
mod layout;
mod memory;
mod narrow;
mod pack;
mod packed;
mod padding;
mod partition;
mod peak;
mod points;
mod prepack;
mod prepack_coded;
mod prepared;
mod run;
mod simd;
mod tile;
mod winograd;
mod winograd_tile;
mod words;

pub use coded::{Code, Coding};
pub use contraction::{Contraction, Dim, Element, Refused};
pub use grouped::{Grouped, GroupedBuffers, GroupedDim, GroupedPartition, GroupedProduct};
pub use grouped_tile::GroupedRows;
pub use isa::Isa;
pub use layout::Layout;
pub use narrow::Narrow;
pub use packed::{Form, Packed};
pub use padding::Padding;
pub use partition::TaskPartition;
pub use peak::{Peak, peak};
pub use prepared::PreparedContraction;
pub use run::{Buffers, Operand};
pub use winograd::{WinogradBuffers, WinogradConvolution, WinogradPartition};
