//! Which instruction set there is.

use std::fmt;
#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// The instruction set a kernel uses. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// Arrays and `mul_add`, for any machine; the compiler makes vectors of them where the target
    /// has a fused multiply-add.
    Portable,
    /// 256-bit vectors of x86-64: AVX2, F16C, FMA and BMI.
    Avx2,
    /// `Avx2` and products of bytes: AVX-VNNI.
    AvxVnni,
    /// 512-bit vectors of x86-64: AVX-512 F, BW, DQ and VL, and what `Avx2` needs.
    Avx512,
    /// `Avx512` on machines that run an instruction of 512 bits as two halves, so that it does as much in a cycle as `Avx2`
    /// does: tiles are of either, whichever leaves fewer lanes empty. Any machine that has `Avx512` has it.
    Avx512Halves,
    /// `Avx512` and products of matrices of bytes: AMX. All else is as with `Avx512`.
    Amx,
}

impl Isa {
    /// All of them.
    pub const ALL: [Isa; 6] = [
        Isa::Portable,
        Isa::Avx2,
        Isa::AvxVnni,
        Isa::Avx512,
        Isa::Avx512Halves,
        Isa::Amx,
    ];

    /// The instruction set with which this machine runs contractions fastest.
    pub fn fastest() -> Isa {
        match Isa::best() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if *HOST_RUNS_HALVES => Isa::Avx512Halves,
            Isa::Avx512 if Isa::Amx.available() => Isa::Amx,
            best => best,
        }
    }

    /// The instructions of vectors, however the machine runs them.
    pub fn instructions(self) -> Isa {
        match self {
            Isa::Avx512Halves | Isa::Amx => Isa::Avx512,
            isa => isa,
        }
    }

    /// How many vectors the machine loads, and how many it multiplies and adds, in a cycle.
    pub(crate) fn vectors_per_cycle(self) -> f64 {
        match self {
            Isa::Avx512Halves => 1.0,
            _ => 2.0,
        }
    }

    /// The best instruction set of vectors of this machine.
    pub fn best() -> Isa {
        match Isa::Avx512.available() {
            true => Isa::Avx512,
            false => Isa::best_of_256_bits(),
        }
    }

    /// The best instruction set of this machine without vectors of more than 256 bits.
    pub fn best_of_256_bits() -> Isa {
        [Isa::AvxVnni, Isa::Avx2]
            .into_iter()
            .find(|isa| isa.available())
            .unwrap_or(Isa::Portable)
    }

    /// Whether its tiles read rows where they lie, so that pixels need no packing where their channels lie beside each other.
    /// The portable ones copy rows anyway.
    pub fn reads_rows_in_place(self) -> bool {
        self != Isa::Portable
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
            Isa::AvxVnni => Isa::Avx2.available() && is_x86_feature_detected!("avxvnni"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Halves => {
                Isa::Avx2.available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => *HOST_HAS_MATRICES,
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::AvxVnni | Isa::Avx512 | Isa::Avx512Halves | Isa::Amx => false,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::AvxVnni => "avx-vnni",
            Isa::Avx512 | Isa::Avx512Halves => "avx512",
            Isa::Amx => "amx",
        })
    }
}

/// Whether this machine multiplies bytes in vectors of 512 bits (AVX512-VNNI).
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_byte_products() -> bool {
    is_x86_feature_detected!("avx512vnni")
}

/// Who made a processor, and of which family it is, as CPUID says.
#[cfg(target_arch = "x86_64")]
struct Processor {
    vendor: [u8; 12],
    family: u32,
}

/// Whether this machine [runs halves](Processor::runs_halves). Virtual machines leave the guest for each CPUID, which takes
/// tens of microseconds, so it is asked once.
#[cfg(target_arch = "x86_64")]
static HOST_RUNS_HALVES: LazyLock<bool> = LazyLock::new(|| Processor::of_host().runs_halves());

/// Whether this machine has [`Isa::Amx`], and lets this process use it.
#[cfg(target_arch = "x86_64")]
static HOST_HAS_MATRICES: LazyLock<bool> = LazyLock::new(|| {
    Isa::Avx512.available()
        && has_byte_products()
        && has_matrix_instructions()
        && may_use_matrix_registers()
});

/// Whether CPUID has the bits of AMX-TILE and AMX-INT8.
#[cfg(target_arch = "x86_64")]
fn has_matrix_instructions() -> bool {
    use std::arch::x86_64::__cpuid_count;
    const TILE: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    #[allow(unused_unsafe, reason = "safe from Rust 1.94 on")]
    // SAFETY: every x86-64 has the instruction, and every one with AVX-512 this leaf.
    let features = unsafe { __cpuid_count(7, 0) }.edx;
    features & (TILE | INT8) == TILE | INT8
}

/// Asks the system for the matrix registers, which it has to save when it changes threads: Linux gives them to a process that
/// asks for them. It may refuse, for one if a thread's alternative signal stack has no room for them.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn may_use_matrix_registers() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call has no pointers, and changes nothing but what this process may do.
    let refused = unsafe {
        libc::syscall(
            libc::SYS_arch_prctl,
            ARCH_REQ_XCOMP_PERM,
            XFEATURE_XTILEDATA,
        )
    };
    refused == 0
}

/// Other systems are not asked.
#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn may_use_matrix_registers() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
impl Processor {
    fn of_host() -> Processor {
        use std::arch::x86_64::__cpuid;
        #[allow(unused_unsafe, reason = "safe from Rust 1.94 on")]
        // SAFETY: every x86-64 has the instruction, and these two leaves.
        let (name, signature) = unsafe { (__cpuid(0), __cpuid(1).eax) };
        let mut vendor = [0; 12];
        for (to, part) in vendor.chunks_mut(4).zip([name.ebx, name.edx, name.ecx]) {
            to.copy_from_slice(&part.to_le_bytes());
        }
        Processor {
            vendor,
            family: family(signature),
        }
    }

    /// Whether it runs instructions of 512 bits, if it has them, as two halves: AMD's Zen 4, the only ones of their family
    /// with AVX-512. The family after it has units of 512 bits, as those of Intel have.
    fn runs_halves(&self) -> bool {
        /// Zen 3 and Zen 4.
        const FAMILY: u32 = 0x19;
        self.vendor == *b"AuthenticAMD" && self.family == FAMILY
    }
}

/// The family that a processor's signature says.
#[cfg(target_arch = "x86_64")]
fn family(signature: u32) -> u32 {
    let (base, extended) = (signature >> 8 & 0xf, signature >> 20 & 0xff);
    match base {
        0xf => base + extended,
        _ => base,
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn some_processors_run_halves() {
        let runs_halves = |vendor: &[u8; 12], signature| {
            let (vendor, family) = (*vendor, family(signature));
            Processor { vendor, family }.runs_halves()
        };
        // EPYC 9004 and Ryzen 7000; EPYC 9005; Xeons of Ice Lake and Sapphire Rapids.
        assert!(runs_halves(b"AuthenticAMD", 0xa10f11));
        assert!(runs_halves(b"AuthenticAMD", 0xa60f12));
        assert!(!runs_halves(b"AuthenticAMD", 0xb00f21));
        assert!(!runs_halves(b"GenuineIntel", 0x606a6));
        assert!(!runs_halves(b"GenuineIntel", 0x806f8));
        assert!(!runs_halves(b"GenuineIntel", 0xa10f11));
    }

    #[test]
    fn the_fastest_has_the_best_instructions() {
        assert_eq!(Isa::fastest().instructions(), Isa::best());
        assert!(Isa::fastest().available());
    }
}
