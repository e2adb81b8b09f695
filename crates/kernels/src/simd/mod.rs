//! The micro-kernels of each instruction set.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx_vnni;
#[cfg(target_arch = "x86_64")]
mod grouped;
mod portable;
#[cfg(target_arch = "x86_64")]
mod words;

use crate::engine::Engine;
use crate::grouped_tile::floats::FloatTiles;
use crate::grouped_tile::{self, Tiles};
use crate::isa::{self, Isa};
use crate::lanes::Number;
use crate::winograd_tile::Transforms;

/// A type of sums that each instruction set has micro-kernels for.
pub(crate) trait HasEngine: Number {
    /// The engine of an instruction set that this machine has. `signed_rows` says which operand has signs
    /// where only one has.
    fn engine(isa: Isa, signed_rows: bool) -> &'static Engine<Self>;
}

impl Isa {
    /// How many elements of `f32` the narrowest vectors of its tiles have.
    pub fn least_lanes(self) -> usize {
        let narrowest = match self {
            Isa::Avx512Halves => Isa::Avx2,
            isa => isa,
        };
        <f32 as HasEngine>::engine(narrowest, false).lanes
    }
}

/// The tiles of [`GroupedProduct`](crate::GroupedProduct) for an instruction set that this machine has, and for lines of
/// `depth` `k`.
pub(crate) fn grouped_tiles(isa: Isa, depth: usize) -> &'static Tiles {
    match (isa.instructions(), depth) {
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512, 8) if isa::has_byte_products() => &avx512::grouped::HALVES,
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512, _) if isa::has_byte_products() => &avx512::grouped::BYTES,
        #[cfg(target_arch = "x86_64")]
        (Isa::AvxVnni, 8) => &avx_vnni::grouped::HALVES,
        #[cfg(target_arch = "x86_64")]
        (Isa::AvxVnni, _) => &avx_vnni::grouped::BYTES,
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512 | Isa::Avx2, 8) => &avx2::grouped::HALVES,
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512 | Isa::Avx2, _) => &avx2::grouped::BYTES,
        (_, 8) => &grouped_tile::PORTABLE_HALVES,
        _ => &grouped_tile::PORTABLE_BYTES,
    }
}

/// The tiles of rows of floats of [`GroupedProduct`](crate::GroupedProduct) for an instruction set that this machine has.
pub(crate) fn float_tiles(isa: Isa) -> &'static FloatTiles {
    match isa.instructions() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => &avx512::FLOATS,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::AvxVnni => &avx2::FLOATS,
        _ => &portable::FLOATS,
    }
}

/// The transforms of [`WinogradConvolution`](crate::WinogradConvolution) for an instruction set that this machine has.
pub(crate) fn transforms(isa: Isa) -> &'static Transforms {
    match isa.instructions() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::AvxVnni | Isa::Avx2 => &avx2::winograd::TRANSFORMS,
        _ => &portable::winograd::TRANSFORMS,
    }
}

impl HasEngine for f32 {
    fn engine(isa: Isa, _: bool) -> &'static Engine<f32> {
        match isa.instructions() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::F32,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni => &avx2::F32,
            _ => &portable::F32,
        }
    }
}

impl HasEngine for f64 {
    fn engine(isa: Isa, _: bool) -> &'static Engine<f64> {
        match isa.instructions() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::F64,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni => &avx2::F64,
            _ => &portable::F64,
        }
    }
}

impl HasEngine for i32 {
    fn engine(isa: Isa, signed_rows: bool) -> &'static Engine<i32> {
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Amx {
            return match signed_rows {
                true => &amx::I8U8,
                false => &amx::U8I8,
            };
        }
        match (isa.instructions(), signed_rows) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, true) if isa::has_byte_products() => &avx512::I8U8,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, false) if isa::has_byte_products() => &avx512::U8I8,
            #[cfg(target_arch = "x86_64")]
            (Isa::AvxVnni, true) => &avx_vnni::I8U8,
            #[cfg(target_arch = "x86_64")]
            (Isa::AvxVnni, false) => &avx_vnni::U8I8,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512 | Isa::Avx2, _) => &avx2::BYTES,
            _ => &portable::BYTES,
        }
    }
}
