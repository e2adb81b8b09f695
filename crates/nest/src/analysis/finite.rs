//! Finite numbers.

use vinelift_tensor::ElementType::{self, BF16, F16, F32, F64};

/// Whether all of these numbers are floats that are neither infinite nor NaN.
pub fn are_finite(ty: ElementType, numbers: &[u8]) -> bool {
    // The bits of the exponent are not all ones.
    match ty {
        F64 => all(numbers, |x| {
            u64::from_le_bytes(x) & (0x7ff << 52) != 0x7ff << 52
        }),
        F32 => all(numbers, |x| {
            u32::from_le_bytes(x) & (0xff << 23) != 0xff << 23
        }),
        BF16 => all(numbers, |x| {
            u16::from_le_bytes(x) & (0xff << 7) != 0xff << 7
        }),
        F16 => all(numbers, |x| {
            u16::from_le_bytes(x) & (0x1f << 10) != 0x1f << 10
        }),
        _ => false,
    }
}

/// Whether all numbers of `N` bytes are so. Those of a block are looked at without a branch, which vectors do.
fn all<const N: usize>(numbers: &[u8], is_so: impl Fn([u8; N]) -> bool) -> bool {
    const BLOCK: usize = 1024;
    let (numbers, _) = numbers.as_chunks::<N>();
    let mut blocks = numbers.chunks(BLOCK);
    blocks.all(|block| block.iter().fold(true, |all, x| all & is_so(*x)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_each_type() {
        let found = |ty, bits: u64| {
            let bytes = bits.to_le_bytes();
            let mut numbers = vec![0; 8 * 3000];
            numbers[8 * 2999..].copy_from_slice(&bytes);
            are_finite(ty, &numbers)
        };
        // The largest number, infinity, and a NaN.
        let f32s = [f32::MAX, f32::INFINITY, f32::NAN].map(|x| found(F32, x.to_bits().into()));
        assert_eq!(f32s, [true, false, false]);
        let f64s = [f64::MAX, f64::NEG_INFINITY, f64::NAN].map(|x| found(F64, x.to_bits()));
        assert_eq!(f64s, [true, false, false]);
        let f16s = [0x7bff, 0xfc00, 0x7c01].map(|bits| found(F16, bits));
        assert_eq!(f16s, [true, false, false]);
        let bf16s = [0x7f7f, 0x7f80, 0xff81].map(|bits| found(BF16, bits));
        assert_eq!(bf16s, [true, false, false]);
        assert!(!found(ElementType::I32, 0));
    }
}
