use crate::interpret::tests::map;
use half::{bf16, f16};
use vinelift_tensor::ElementType::{self, *};

/// The values of all codes of a type.
fn decoded(ty: ElementType) -> Vec<f32> {
    let codes: Vec<u64> = (0..1u64 << ty.bits()).collect();
    map([(ty, &codes)], |[x]| x.cast(F32))
        .into_iter()
        .map(|bits| f32::from_bits(bits as u32))
        .collect()
}

fn encoded(ty: ElementType, xs: &[f32]) -> Vec<u64> {
    let bits: Vec<u64> = xs.iter().map(|x| x.to_bits().into()).collect();
    map([(F32, &bits)], |[x]| x.cast(ty))
}

fn encoded_f64(ty: ElementType, xs: &[f64]) -> Vec<u64> {
    let bits: Vec<u64> = xs.iter().map(|x| x.to_bits()).collect();
    map([(F64, &bits)], |[x]| x.cast(ty))
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// `(-1)^s (1 + m) 2^(e - bias)` as the formats are specified, by arithmetic.
fn small_float(code: usize, exponent_bits: usize, mantissa_bits: usize) -> f32 {
    let bias = (1 << (exponent_bits - 1)) - 1;
    let fraction = (code & ((1 << mantissa_bits) - 1)) as f32 / (1 << mantissa_bits) as f32;
    let exponent = (code >> mantissa_bits & ((1 << exponent_bits) - 1)) as i32;
    let magnitude = match exponent {
        0 => fraction * 2f32.powi(1 - bias),
        _ => (1.0 + fraction) * 2f32.powi(exponent - bias),
    };
    if code >> (exponent_bits + mantissa_bits) == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// The nearest code by trying all, of equally near ones the even one; codes are in order.
fn nearest(values: &[f32], x: f64) -> u64 {
    let by_distance = |&a: &usize, &b: &usize| {
        let distance = |k: usize| (f64::from(values[k]) - x).abs();
        distance(a)
            .total_cmp(&distance(b))
            .then((a % 2).cmp(&(b % 2)))
    };
    (0..values.len()).min_by(by_distance).unwrap() as u64
}

fn spread() -> impl Iterator<Item = f32> {
    (0..=u32::MAX).step_by(65_521).map(f32::from_bits)
}

#[test]
fn every_code_of_f16_and_bf16_decodes() {
    for (code, got) in decoded(F16).into_iter().enumerate() {
        assert!(
            same(got, f16::from_bits(code as u16).to_f32()),
            "{code:#x} is {got}"
        );
    }
    for (code, got) in decoded(BF16).into_iter().enumerate() {
        assert!(
            same(got, bf16::from_bits(code as u16).to_f32()),
            "{code:#x} is {got}"
        );
    }
}

#[test]
fn every_code_of_f8_and_f4_decodes() {
    for (code, got) in decoded(F8E5M2).into_iter().enumerate() {
        assert!(
            same(got, f16::from_bits((code as u16) << 8).to_f32()),
            "{code:#x} is {got}"
        );
    }
    for (code, got) in decoded(F8E4M3).into_iter().enumerate() {
        let expected = if code & 0x7f == 0x7f {
            f32::NAN
        } else {
            small_float(code, 4, 3)
        };
        assert!(same(got, expected), "{code:#x} is {got}");
    }
    for (code, got) in decoded(F8E8M0).into_iter().enumerate() {
        let expected = if code == 255 {
            f32::NAN
        } else {
            2f64.powi(code as i32 - 127) as f32
        };
        assert!(same(got, expected), "{code:#x} is {got}");
    }
    assert_eq!(
        decoded(F4E2M1)[..8],
        [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    );
    assert_eq!(
        decoded(F4E2M1)[9..],
        [-0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
    );
    assert_eq!(decoded(NF4), super::NF4_VALUES);
}

#[test]
fn every_code_is_its_own_encoding() {
    for ty in [F16, BF16, F8E4M3, F8E5M2, F8E8M0, F4E2M1, NF4] {
        let values = decoded(ty);
        for ((code, got), x) in encoded(ty, &values).into_iter().enumerate().zip(&values) {
            assert!(
                got == code as u64 || x.is_nan(),
                "{ty}: {code:#x} is {x}, which becomes {got:#x}"
            );
        }
        let again = map([(ty, &encoded(ty, &values))], |[x]| x.cast(F64));
        for (x, again) in values.iter().zip(again) {
            assert!(same(*x, f64::from_bits(again) as f32), "{ty}");
        }
    }
}

#[test]
fn f16_and_bf16_round_as_half_does() {
    let near = (0..=u16::MAX).step_by(7).flat_map(|code| {
        let x = f16::from_bits(code).to_f32();
        let next = f16::from_bits(code.wrapping_add(1)).to_f32();
        let middle = (x + next) / 2.0;
        [middle, middle.next_up(), middle.next_down()]
    });
    let xs: Vec<f32> = spread()
        .chain(near)
        .chain([65519.996, 65520.0, f32::INFINITY, f32::MAX])
        .collect();
    for (x, got) in xs.iter().zip(encoded(F16, &xs)) {
        let want = f16::from_f32(*x).to_bits();
        assert_eq!(got, u64::from(want), "{x:e} becomes {got:#x}");
    }
    for (x, got) in xs.iter().zip(encoded(BF16, &xs)) {
        assert!(
            same(
                bf16::from_bits(got as u16).to_f32(),
                bf16::from_f32(*x).to_f32()
            ),
            "{x:e} becomes {got:#x}"
        );
    }
}

/// NaNs become quiet and keep their upper bits, as with the instructions of machines.
#[test]
fn nan_of_f16_is_as_with_half() {
    let codes: Vec<u64> = (0..=u16::MAX).map(u64::from).collect();
    let values = map([(F16, &codes)], |[x]| x.cast(F32));
    for (code, got) in codes.iter().zip(values) {
        let want = f16::from_bits(*code as u16).to_f32().to_bits();
        assert_eq!(got, u64::from(want), "{code:#x}");
    }
    let nans = [0x7f80_0001u32, 0xffa0_2000, 0x7fc0_0000, 0xffff_ffff].map(f32::from_bits);
    for (x, got) in nans.iter().zip(encoded(F16, &nans)) {
        assert_eq!(
            got,
            u64::from(f16::from_f32(*x).to_bits()),
            "{:#x}",
            x.to_bits()
        );
    }
}

#[test]
fn f8_and_f4_round_to_the_nearest_code() {
    let near = |values: &[f32]| -> Vec<f32> {
        let middles = values.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
        middles
            .flat_map(|m| [m, m.next_up(), m.next_down()])
            .collect()
    };
    for (ty, finite, overflow) in [(F8E4M3, 0x7e, 464.0), (F4E2M1, 0x7, f32::INFINITY)] {
        let values = decoded(ty)[..=finite].to_vec();
        let xs: Vec<f32> = near(&values)
            .into_iter()
            .chain(spread().map(f32::abs))
            .filter(|x| *x <= overflow)
            .collect();
        let negative: Vec<f32> = xs.iter().map(|x| -x).collect();
        let sign = 1 << (ty.bits() - 1);
        for ((x, got), mirrored) in xs.iter().zip(encoded(ty, &xs)).zip(encoded(ty, &negative)) {
            let x = x.min(*values.last().unwrap());
            assert_eq!(
                (got, mirrored),
                (nearest(&values, x.into()), got | sign),
                "{ty} of {x:e}"
            );
        }
    }
    let xs: Vec<f32> = spread()
        .chain(near(&decoded(NF4)))
        .filter(|x| !x.is_nan())
        .collect();
    for (x, got) in xs.iter().zip(encoded(NF4, &xs)) {
        let best = decoded_distance(nearest(&super::NF4_VALUES, x.clamp(-1.0, 1.0).into()), *x);
        assert!(
            (decoded_distance(got, *x) - best).abs() < 1e-7,
            "nf4 of {x:e} is {got}"
        );
    }
}

fn decoded_distance(code: u64, x: f32) -> f64 {
    (f64::from(super::NF4_VALUES[code as usize]) - f64::from(x.clamp(-1.0, 1.0))).abs()
}

#[test]
fn overflow_and_nan_are_as_measured() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let xs = [464.0, 464.0f32.next_up(), -500.0, inf, -inf, nan];
    assert_eq!(encoded(F8E4M3, &xs), [0x7e, 0x7f, 0xff, 0x7f, 0xff, 0x7f]);
    assert_eq!(
        encoded(F8E5M2, &[57344.0, 61439.0, 61423.0, -1e30, inf]),
        [0x7b, 0x7c, 0x7b, 0xfc, 0x7c]
    );
    assert_eq!(encoded(F8E5M2, &[nan])[0] & 0x7c, 0x7c);
    assert_ne!(encoded(F8E5M2, &[nan])[0] & 0x03, 0);
    let least = 2f32.powi(-127);
    let xs = [
        1.5,
        3.0,
        0.0,
        -7.0,
        inf,
        nan,
        1.49,
        6.01,
        f32::MAX,
        least,
        least * 1.5,
        least * 1.75,
    ];
    assert_eq!(
        encoded(F8E8M0, &xs),
        [128, 128, 0, 0, 254, 255, 127, 130, 254, 0, 0, 1]
    );
    let xs = [0.25, 0.75, 2.5, 5.0, 5.1, 1e9, inf, -inf, nan];
    assert_eq!(encoded(F4E2M1, &xs), [0, 2, 4, 6, 7, 7, 7, 15, 7]);
    assert_eq!(encoded(NF4, &[-2.0, 2.0, 0.0]), [0, 15, 7]);
}

#[test]
fn wider_numbers_round_once() {
    // Just above the middle of two f16, by less than an f32 tells.
    let middle = 1.0 + 2f64.powi(-11);
    let xs = [
        middle,
        middle.next_up(),
        middle.next_down(),
        1e300,
        -1e300,
        f64::INFINITY,
        1e-300,
    ];
    assert_eq!(
        encoded_f64(F16, &xs),
        [0x3c00, 0x3c01, 0x3c00, 0x7c00, 0xfc00, 0x7c00, 0]
    );
    assert_eq!(
        encoded_f64(F8E4M3, &[464.0, 464.0f64.next_up(), f64::NAN]),
        [0x7e, 0x7f, 0x7f]
    );
    for k in [2049u64, 2051, 65519, 65520] {
        assert_eq!(
            map([(U32, &[k])], |[x]| x.cast(F16)),
            [u64::from(f16::from_f64(k as f64).to_bits())],
            "{k}"
        );
    }
    // The middle of two bf16, and what an f64 does not tell from it.
    let middle = (1u64 << 63) + (1 << 55);
    let got = map([(U64, &[middle, middle + 1, middle - 1])], |[x]| {
        x.cast(BF16)
    });
    assert_eq!(got, [0x5f00, 0x5f01, 0x5f00]);
    let middle = -((1i64 << 62) + (1 << 54));
    let got = map(
        [(
            I64,
            &[middle as u64, (middle - 1) as u64, (middle + 1) as u64, 5],
        )],
        |[x]| x.cast(BF16),
    );
    assert_eq!(got, [0xde80, 0xde81, 0xde80, 0x40a0]);
}

#[test]
fn storage_formats_meet_by_way_of_f32() {
    let codes: Vec<u64> = (0..256).collect();
    let got = map([(F8E5M2, &codes)], |[x]| x.cast(F16));
    for (code, got) in codes.iter().zip(got) {
        assert!(same(
            f16::from_bits(got as u16).to_f32(),
            f16::from_bits((code << 8) as u16).to_f32()
        ));
    }
    let half = |x: f32| u64::from(f16::from_f32(x).to_bits());
    assert_eq!(
        map([(F16, &[half(-1.9), half(300.0)])], |[x]| x.cast(U8)),
        [255, 44]
    );
    assert_eq!(
        map([(F16, &[half(0.0), half(1e-7)])], |[x]| x.cast(Boolean)),
        [0, 1]
    );
    assert_eq!(map([(Boolean, &[0, 1])], |[x]| x.cast(F16)), [0, half(1.0)]);
    assert_eq!(map([(I4, &[0x8])], |[x]| x.cast(F16)), [half(-8.0)]);
}

/// All that are finite, what is next to 2¹⁷, and the ends.
#[test]
fn integers_become_f16_as_half_says() {
    let small = (0..70_000).chain((1 << 17) - 3..(1 << 17) + 3);
    let ends = [
        i128::from(i32::MAX),
        i128::from(u32::MAX),
        i128::from(i64::MAX),
        i128::from(u64::MAX),
    ];
    let sizes: Vec<i128> = small
        .chain(ends.into_iter().flat_map(|x| [x - 1, x, x / 3]))
        .collect();
    for ty in [I32, U32, I64, U64] {
        let is_signed = ty.is_signed_integer();
        let most = (1i128 << (ty.bits() - usize::from(is_signed))) - 1;
        let least = if is_signed { -most - 1 } else { 0 };
        let all = sizes.iter().flat_map(|x| [*x, -x, -x - 1]);
        let numbers: Vec<i128> = all.filter(|x| (least..=most).contains(x)).collect();
        let mask = u64::MAX >> (64 - ty.bits());
        let words: Vec<u64> = numbers.iter().map(|x| *x as u64 & mask).collect();
        let found = map([(ty, &words)], |[x]| x.cast(F16).bitcast(U16));
        for (x, found) in numbers.iter().zip(found) {
            let expected = f16::from_f64(*x as f64).to_bits();
            assert_eq!(found, u64::from(expected), "{ty}: {x}");
        }
    }
}
