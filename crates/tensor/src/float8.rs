//! The floats of 8 and 4 bits: what their codes stand for. All of them are exact in `f32`.

use half::f16;

use crate::ElementType;

/// The value of `code`, or `None` if the type is no float of at most 8 bits.
pub fn decode(element_type: ElementType, code: u8) -> Option<f32> {
    Some(match element_type {
        ElementType::F8E4M3 => f8e4m3(code),
        ElementType::F8E5M2 => f8e5m2(code),
        ElementType::F8E8M0 => f8e8m0(code),
        ElementType::F4E2M1 => f4e2m1(code),
        ElementType::NF4 => nf4(code),
        _ => return None,
    })
}

/// Sign, 4 exponent bits biased by 7, 3 mantissa bits; no infinities, one NaN of either sign.
pub fn f8e4m3(code: u8) -> f32 {
    let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(code >> 3 & 0xf), f32::from(code & 7));
    sign * match (exponent, code & 7) {
        (0xf, 7) => f32::NAN,
        (0, _) => mantissa * power_of_two(-9),
        _ => (8.0 + mantissa) * power_of_two(exponent - 10),
    }
}

/// Sign, 5 exponent bits, 2 mantissa bits: the upper byte of an `f16`.
pub fn f8e5m2(code: u8) -> f32 {
    f16::from_bits(u16::from(code) << 8).to_f32()
}

/// A power of two, 2⁻¹²⁷ to 2¹²⁷, or NaN. No zero, no sign.
pub fn f8e8m0(code: u8) -> f32 {
    match code {
        0xff => f32::NAN,
        // Below the smallest normal f32.
        0 => f32::from_bits(1 << 22),
        _ => power_of_two(i32::from(code) - 127),
    }
}

/// Sign, 2 exponent bits, 1 mantissa bit, in the low four bits of the code.
pub const fn f4e2m1(code: u8) -> f32 {
    const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let magnitude = MAGNITUDES[(code & 7) as usize];
    if code & 8 == 0 { magnitude } else { -magnitude }
}

/// "Normal float" (QLoRA, Dettmers et al. 2023, appendix E), in the low four bits of the code.
pub const fn nf4(code: u8) -> f32 {
    const VALUES: [f32; 16] = [
        -1.0,
        -0.696_192_8,
        -0.525_073_05,
        -0.394_917_5,
        -0.284_441_38,
        -0.184_773_43,
        -0.091_050_036,
        0.0,
        0.079_580_3,
        0.160_930_2,
        0.246_112_3,
        0.337_915_24,
        0.440_709_83,
        0.562_617,
        0.722_956_84,
        1.0,
    ];
    VALUES[(code & 15) as usize]
}

/// 2 to the power of `exponent`, which must be that of a normal `f32`.
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the OCP 8-bit floating point and microscaling formats specifications.
    #[test]
    fn codes_of_the_specifications() {
        for (code, value) in [
            (0x00, 0.0),
            (0x01, 0.001_953_125),
            (0x07, 0.013_671_875),
            (0x08, 0.015_625),
            (0x38, 1.0),
            (0x7e, 448.0),
            (0xfe, -448.0),
        ] {
            assert_eq!(f8e4m3(code), value, "{code:#x}");
        }
        assert!(f8e4m3(0x7f).is_nan() && f8e4m3(0xff).is_nan() && f8e4m3(0x80).is_sign_negative());
        assert_eq!(
            [0x01, 0x3c, 0x7b, 0x7c].map(f8e5m2),
            [2f32.powi(-16), 1.0, 57344.0, f32::INFINITY]
        );
        assert!(f8e5m2(0x7d).is_nan());
        assert_eq!(
            [0, 1, 127, 254].map(f8e8m0),
            [-127, -126, 0, 127].map(|e| 2f64.powi(e) as f32)
        );
        assert!(f8e8m0(255).is_nan());
        assert_eq!([1, 7, 15].map(f4e2m1), [0.5, 6.0, -6.0]);
        assert_eq!([0, 7, 15].map(nf4), [-1.0, 0.0, 1.0]);
        assert_eq!(decode(ElementType::U8, 1), None);
    }
}
