//! Which instruction set there is.

use std::fmt;

/// The instruction set a kernel uses. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// Arrays and `mul_add`, for any machine; the compiler makes vectors of them where the target
    /// has a fused multiply-add.
    Portable,
    /// 256-bit vectors of x86-64: AVX2, F16C, FMA and BMI.
    Avx2,
    /// 512-bit vectors of x86-64: AVX-512 F, BW, DQ and VL, and what `Avx2` needs.
    Avx512,
}

impl Isa {
    /// The best instruction set of this machine.
    pub fn best() -> Isa {
        [Isa::Avx512, Isa::Avx2]
            .into_iter()
            .find(|isa| isa.available())
            .unwrap_or(Isa::Portable)
    }

    /// Whether its tiles read rows where they lie, so that pixels need no packing where their channels lie beside each other.
    ///
    /// Tiles of AVX-512 mostly have more rows than there are registers for their addresses, and the portable ones copy
    /// rows anyway.
    pub fn reads_rows_in_place(self) -> bool {
        self == Isa::Avx2
    }

    /// Whether this machine has it.
    pub fn available(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("f16c")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => false,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        })
    }
}
