//! Contractions of which one operand is kept in codes of few bits.

use super::plain::points;
use crate::problems::lengths;
use vinelift_kernels::{Code, Coding, Contraction, Form, Isa, Operand, PreparedContraction};
use vinelift_tensor::{ElementType, float8};
use zerocopy::IntoBytes;

/// All codes, with the bits of each.
pub(super) const CODES: [(Code, usize); 10] = [
    (Code::I8, 8),
    (Code::U8, 8),
    (Code::F16, 16),
    (Code::BF16, 16),
    (Code::I4, 4),
    (Code::U4, 4),
    (Code::NF4, 4),
    (Code::F4E2M1, 4),
    (Code::F8E4M3, 8),
    (Code::F8E5M2, 8),
];

/// The value of all elements of `out` before a run, which those that the contraction does not write keep.
const UNWRITTEN: f32 = 7.0;

/// Runs the contraction with one operand in numbers that are coded, and then the other, and compares with
/// the elements that these numbers stand for.
pub(super) fn check_coded(contraction: &Contraction, (code, bits): (Code, usize), seed: u64) {
    let [left, right, _] = lengths(contraction);
    let mut random = fastrand::Rng::with_seed(seed);
    let plain: Vec<f32> = (0..left.max(right)).map(|_| random.f32() - 0.5).collect();
    let coded: Vec<u8> = (0..(left.max(right) * bits).div_ceil(8))
        .map(|_| random.u8(..))
        .collect();
    let k: usize = contraction.k.iter().map(|dim| dim.extent).product();
    let group = group(code, k, seed);
    let groups = k.div_ceil(group.max(1)).max(1);
    for of_left in [true, false] {
        let own = if of_left {
            &contraction.m
        } else {
            &contraction.n
        };
        let count = own.iter().map(|dim| dim.extent).product::<usize>() * groups;
        // Integers as zero points, and scales of 16 bits, make elements that need no rounding.
        let mut factors = |is_exact: bool, exact: fn(f32) -> f32| -> Vec<f32> {
            let factor = |x: f32| if is_exact { exact(x) } else { x };
            (0..count).map(|_| factor(random.f32() * 3.0)).collect()
        };
        let zero =
            (!seed.is_multiple_of(3)).then(|| factors(seed & 1 == 0, |x| (x * 85.0).round()));
        let scale = (!seed.is_multiple_of(5))
            .then(|| factors(seed & 6 != 0, |x| half::f16::from_f32(x).to_f32()));
        let operands = Operands {
            of_left,
            coding: Coding {
                code,
                group,
                zero,
                scale,
            },
            bits,
            coded: &coded,
            plain: &plain,
        };
        operands.check(contraction);
    }
}

/// A coded operand and a plain one.
struct Operands<'a> {
    /// Whether the left operand is the coded one.
    of_left: bool,
    coding: Coding,
    /// Of each code.
    bits: usize,
    coded: &'a [u8],
    plain: &'a [f32],
}

impl Operands<'_> {
    /// Compares all kernels for the contraction with the loop that defines it.
    fn check(&self, contraction: &Contraction) {
        let expected = self.naive(contraction);
        let coded_form = match self.of_left {
            true => [Form::Coded, Form::Plain],
            false => [Form::Plain, Form::Coded],
        };
        let isas = Isa::ALL.into_iter();
        let isas = isas.filter(|isa| isa.available());
        for (isa, forms) in isas.flat_map(|isa| [(isa, coded_form), (isa, [Form::Plain; 2])]) {
            let kernel = PreparedContraction::with_forms(contraction, isa, forms).unwrap();
            let packed = match self.of_left {
                true => kernel.pack_left_coded(self.coded, &self.coding),
                false => kernel.pack_right_coded(self.coded, &self.coding),
            };
            // Factors are for `m` or `n` alone.
            let Some(packed) = packed else { continue };
            let plain = (Form::Plain, Operand::Plain(self.plain.as_bytes()));
            let packed = (packed.form(), Operand::Packed(&packed));
            let [left, right] = match self.of_left {
                true => [packed, plain],
                false => [plain, packed],
            };
            for tasks in [1, 3] {
                let plan = kernel.plan(left.0, right.0, tasks);
                let mut result = vec![UNWRITTEN; expected.len()];
                let mut scratch = vec![0xffu8; plan.shared_bytes() + plan.worker_bytes()];
                let bytes = result.as_mut_bytes();
                kernel.run(&plan, left.1, right.1, bytes, &mut scratch);
                let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                let wrong = (0..result.len()).find(|&at| !same(result[at], expected[at]));
                assert_eq!(
                    wrong.map(|at| (at, result[at], expected[at])),
                    None,
                    "{} in {tasks} tasks, {:?}, of {contraction:?}",
                    plan.name(),
                    self.coding.code
                );
            }
        }
    }

    /// The loop of the definition.
    fn naive(&self, contraction: &Contraction) -> Vec<f32> {
        let [.., out] = lengths(contraction);
        let (own, other) = match self.of_left {
            true => (&contraction.m, &contraction.n),
            false => (&contraction.n, &contraction.m),
        };
        let (own, other, ks) = (points(own), points(other), points(&contraction.k));
        let side = usize::from(!self.of_left);
        let mut expected = vec![UNWRITTEN; out];
        if other.is_empty() {
            // Nothing is computed, and the coded operand may have no elements.
            return expected;
        }
        for b in points(&contraction.batch) {
            for (at, p) in own.iter().enumerate() {
                let factor = |of: &Option<Vec<f32>>, k: usize, without: f32| {
                    let own = |of: &Vec<f32>| of[k / self.coding.group * own.len() + at];
                    of.as_ref().map_or(without, own)
                };
                let elements = ks.iter().enumerate().map(|(at_k, k)| {
                    let zero = factor(&self.coding.zero, at_k, 0.0);
                    let scale = factor(&self.coding.scale, at_k, 1.0);
                    (self.number(b[side] + p[side] + k[side]) - zero) * scale
                });
                let elements: Vec<f32> = elements.collect();
                for q in &other {
                    let start = b[1 - side] + q[1 - side];
                    let products = elements.iter().zip(&ks);
                    expected[b[2] + p[2] + q[2]] = products.fold(0.0f32, |sum, (element, k)| {
                        element.mul_add(self.plain[start + k[1 - side]], sum)
                    });
                }
            }
        }
        expected
    }

    /// The number that the code at this place stands for.
    fn number(&self, at: usize) -> f32 {
        let byte = |at: usize| u16::from(self.coded[at]);
        let bits = match self.bits {
            4 => byte(at / 2) >> (at % 2 * 4) & 15,
            8 => byte(at),
            _ => byte(2 * at) | byte(2 * at + 1) << 8,
        };
        number(self.coding.code, bits)
    }
}

/// The number that a code of this many bits stands for, by the crates for it.
fn number(code: Code, bits: u16) -> f32 {
    let byte = bits as u8;
    let decoded = |ty| float8::decode(ty, byte).unwrap();
    match code {
        Code::I8 => f32::from(byte as i8),
        Code::U8 | Code::U4 => f32::from(byte),
        Code::F16 => half::f16::from_bits(bits).to_f32(),
        Code::BF16 => half::bf16::from_bits(bits).to_f32(),
        Code::I4 => f32::from((byte << 4) as i8 >> 4),
        Code::NF4 => decoded(ElementType::NF4),
        Code::F4E2M1 => decoded(ElementType::F4E2M1),
        Code::F8E4M3 => decoded(ElementType::F8E4M3),
        Code::F8E5M2 => decoded(ElementType::F8E5M2),
    }
}

/// A number of `k` that share factors: all, or a divisor of them.
fn group(code: Code, k: usize, seed: u64) -> usize {
    let is_whole = |group: &usize| k.is_multiple_of(*group) && group.is_multiple_of(step(code));
    let divisors: Vec<usize> = (1..k).filter(is_whole).collect();
    match divisors.len() {
        0 => k,
        count if seed.is_multiple_of(2) => divisors[seed as usize / 2 % count],
        _ => k,
    }
}

/// How many `k` a byte of codes has.
fn step(code: Code) -> usize {
    match code {
        Code::I4 | Code::U4 | Code::NF4 | Code::F4E2M1 => 2,
        _ => 1,
    }
}
