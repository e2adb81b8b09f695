//! The element types of IR version 11.

use std::fmt;
use std::str::FromStr;

/// An element type of the IR, named as the IR's attributes spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// `boolean`: one byte, 0 or 1.
    Boolean,
    /// `u1`: eight to a byte, the first element in the highest bit.
    U1,
    /// `u2`: four to a byte, the first element in the lowest bits.
    U2,
    /// `u3`: eight in three bytes.
    U3,
    /// `u4`: two to a byte, the first element in the low nibble.
    U4,
    /// `u6`: four in three bytes.
    U6,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// `i4`: two's complement, two to a byte, the first element in the low nibble.
    I4,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// IEEE 754 half precision.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// OCP 8-bit float, 4 exponent and 3 mantissa bits, no infinities.
    F8E4M3,
    /// OCP 8-bit float, 5 exponent and 2 mantissa bits.
    F8E5M2,
    /// OCP 8-bit power-of-two scale, no sign.
    F8E8M0,
    /// OCP 4-bit float, 2 exponent and 1 mantissa bit; packed as `u4`.
    F4E2M1,
    /// 4-bit "normal float": an index into 16 fixed values; packed as `u4`.
    NF4,
    /// A UTF-8 string.
    String,
}

use ElementType::*;

impl ElementType {
    /// Every element type, in the order of the enum.
    pub const ALL: [ElementType; 25] = [
        Boolean, U1, U2, U3, U4, U6, U8, U16, U32, U64, I4, I8, I16, I32, I64, F16, BF16, F32, F64,
        F8E4M3, F8E5M2, F8E8M0, F4E2M1, NF4, String,
    ];

    /// The name in attributes (`element_type="f32"`).
    pub const fn name(self) -> &'static str {
        match self {
            Boolean => "boolean",
            U1 => "u1",
            U2 => "u2",
            U3 => "u3",
            U4 => "u4",
            U6 => "u6",
            U8 => "u8",
            U16 => "u16",
            U32 => "u32",
            U64 => "u64",
            I4 => "i4",
            I8 => "i8",
            I16 => "i16",
            I32 => "i32",
            I64 => "i64",
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
            F8E4M3 => "f8e4m3",
            F8E5M2 => "f8e5m2",
            F8E8M0 => "f8e8m0",
            F4E2M1 => "f4e2m1",
            NF4 => "nf4",
            String => "string",
        }
    }

    /// The name on a port (`precision="FP32"`).
    pub const fn precision(self) -> &'static str {
        match self {
            Boolean => "BOOL",
            U1 => "BIN",
            U2 => "U2",
            U3 => "U3",
            U4 => "U4",
            U6 => "U6",
            U8 => "U8",
            U16 => "U16",
            U32 => "U32",
            U64 => "U64",
            I4 => "I4",
            I8 => "I8",
            I16 => "I16",
            I32 => "I32",
            I64 => "I64",
            F16 => "FP16",
            BF16 => "BF16",
            F32 => "FP32",
            F64 => "FP64",
            F8E4M3 => "F8E4M3",
            F8E5M2 => "F8E5M2",
            F8E8M0 => "F8E8M0",
            F4E2M1 => "F4E2M1",
            NF4 => "NF4",
            String => "STRING",
        }
    }

    /// The type that a port's `precision` names, if any.
    pub fn from_precision(precision: &str) -> Option<ElementType> {
        ElementType::ALL
            .into_iter()
            .find(|t| t.precision() == precision)
    }

    /// Bits of one element; 64 for `string`, whose elements are handles while a model runs.
    pub const fn bits(self) -> usize {
        match self {
            U1 => 1,
            U2 => 2,
            U3 => 3,
            U4 | I4 | F4E2M1 | NF4 => 4,
            U6 => 6,
            Boolean | U8 | I8 | F8E4M3 | F8E5M2 | F8E8M0 => 8,
            U16 | I16 | F16 | BF16 => 16,
            U32 | I32 | F32 => 32,
            U64 | I64 | F64 | String => 64,
        }
    }

    /// Bytes that `count` packed elements take, or `None` if that overflows.
    ///
    /// `u3` and `u6` come in groups of three bytes; other types below a byte round up to one.
    pub const fn byte_len(self, count: usize) -> Option<usize> {
        match self {
            U3 => count.div_ceil(8).checked_mul(3),
            U6 => count.div_ceil(4).checked_mul(3),
            _ => match self.bits() {
                bits @ 8.. => count.checked_mul(bits / 8),
                bits => Some(count.div_ceil(8 / bits)),
            },
        }
    }

    /// Whether several elements share a byte.
    pub const fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// Any float, storage formats included.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            F16 | BF16 | F32 | F64 | F8E4M3 | F8E5M2 | F8E8M0 | F4E2M1 | NF4
        )
    }

    /// Any integer, signed or not; `boolean` is none.
    pub const fn is_integer(self) -> bool {
        self.is_signed_integer() || self.is_unsigned_integer()
    }

    /// `i4` … `i64`.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, I4 | I8 | I16 | I32 | I64)
    }

    /// `u1` … `u64`.
    pub const fn is_unsigned_integer(self) -> bool {
        matches!(self, U1 | U2 | U3 | U4 | U6 | U8 | U16 | U32 | U64)
    }

    /// Whether arithmetic is defined on the type itself. The others are storage formats: they are
    /// converted to [`ElementType::compute`] first, and moved as plain bits.
    pub const fn is_arithmetic(self) -> bool {
        matches!(
            self,
            Boolean | U8 | U16 | U32 | U64 | I8 | I16 | I32 | I64 | F32 | F64
        )
    }

    /// The type in which arithmetic on this one is done; `string` has none and stays itself.
    pub const fn compute(self) -> ElementType {
        match self {
            U1 | U2 | U3 | U4 | U6 => U8,
            I4 => I8,
            F16 | BF16 | F8E4M3 | F8E5M2 | F8E8M0 | F4E2M1 | NF4 => F32,
            other => other,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ElementType {
    type Err = UnknownElementType;

    fn from_str(name: &str) -> Result<ElementType, UnknownElementType> {
        ElementType::ALL
            .into_iter()
            .find(|t| t.name() == name)
            .ok_or_else(|| UnknownElementType(name.to_owned()))
    }
}

/// A name that is no element type.
#[derive(Debug, thiserror::Error)]
#[error("unknown element type `{0}`")]
pub struct UnknownElementType(std::string::String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for t in ElementType::ALL {
            assert_eq!(t.name().parse::<ElementType>().unwrap(), t);
            assert_eq!(ElementType::from_precision(t.precision()), Some(t));
        }
        assert_eq!(
            "f33".parse::<ElementType>().unwrap_err().to_string(),
            "unknown element type `f33`"
        );
    }

    #[test]
    fn packed_lengths_round_up_to_their_groups() {
        for (t, count, bytes) in [
            (U1, 9, 2),
            (U2, 5, 2),
            (U3, 1, 3),
            (U3, 9, 6),
            (I4, 3, 2),
            (U6, 5, 6),
            (F32, 3, 12),
        ] {
            assert_eq!(t.byte_len(count), Some(bytes), "{count} of {t}");
        }
        assert_eq!(F64.byte_len(usize::MAX / 4), None);
    }
}
