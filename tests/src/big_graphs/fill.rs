//! The numbers in inputs and constants, as recipes: a graph is small however large its tensors are.

use half::{bf16, f16};
use vinelift::{ElementType, Tensor};

/// How a tensor is filled.
#[derive(Clone, Debug)]
pub(crate) enum Fill {
    /// With numbers about 0, of this magnitude.
    Numbers(f64),
    /// As [`Fill::Numbers`], some of them zeros of either sign, tiny, large or, if so, NaN.
    Special { nan: bool },
    /// With integers of `low..=high`.
    Integers { low: i64, high: i64 },
    /// With numbers of `low..=high` which point at something: `bad` inputs have others here and there.
    Indices { low: i64, high: i64 },
    /// With these.
    Exactly(Vec<f64>),
}

impl Fill {
    /// A tensor of this type and shape, always the same for a seed.
    pub(crate) fn tensor(&self, ty: ElementType, shape: &[usize], seed: u64) -> Tensor {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = shape.iter().product();
        let number = |k: usize| match self {
            Fill::Numbers(scale) => scale * wave(&mut random),
            Fill::Special { nan } => match random.u32(..3000) {
                0..3 => -0.0,
                3..6 => 1e-40,
                6..9 => 3e9,
                9..12 => -300.0,
                12 if *nan => f64::NAN,
                _ => wave(&mut random),
            },
            Fill::Integers { low, high } | Fill::Indices { low, high } => {
                random.i64(*low..=*high) as f64
            }
            Fill::Exactly(numbers) => numbers[k % numbers.len()],
        };
        let bytes = encode(ty, (0..count).map(number));
        Tensor::from_bytes(ty, shape, bytes).expect("as many bytes as the shape has")
    }

    /// `tensor` with a few indices out of range.
    pub(crate) fn spoil(&self, tensor: &Tensor, seed: u64) -> Tensor {
        let Fill::Indices { low, high } = self else {
            return tensor.clone();
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = tensor.bytes().to_vec();
        let width = bytes.len() / tensor.element_count();
        let extent = *high + 1;
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..tensor.element_count());
            let choices = [
                extent,
                extent + 5,
                low.min(&-extent) - 1,
                i64::from(i32::MAX),
                i64::from(i32::MIN),
            ];
            let bad = choices[random.usize(..choices.len())].to_le_bytes();
            bytes[at * width..][..width].copy_from_slice(&bad[..width]);
        }
        Tensor::from_bytes(tensor.element_type(), tensor.shape(), bytes).expect("the same length")
    }
}

/// A number between -2 and 2, more often near 0.
fn wave(random: &mut fastrand::Rng) -> f64 {
    2.0 * (random.f64() - random.f64())
}

fn encode(ty: ElementType, numbers: impl Iterator<Item = f64>) -> Vec<u8> {
    use ElementType::{BF16, Boolean, F16, F32, F64, I4, I8, I16, I32, I64, U4, U8};
    match ty {
        F32 => numbers.flat_map(|x| (x as f32).to_le_bytes()).collect(),
        F64 => numbers.flat_map(f64::to_le_bytes).collect(),
        F16 => numbers
            .flat_map(|x| f16::from_f64(x).to_le_bytes())
            .collect(),
        BF16 => numbers
            .flat_map(|x| bf16::from_f64(x).to_le_bytes())
            .collect(),
        I64 => numbers.flat_map(|x| (x as i64).to_le_bytes()).collect(),
        I32 => numbers.flat_map(|x| (x as i32).to_le_bytes()).collect(),
        I16 => numbers.flat_map(|x| (x as i16).to_le_bytes()).collect(),
        I8 => numbers.map(|x| (x as i8).to_le_bytes()[0]).collect(),
        U8 => numbers.map(|x| x as u8).collect(),
        Boolean => numbers.map(|x| u8::from(x > 0.0)).collect(),
        // Two to a byte, the first in the low half.
        U4 | I4 => {
            let numbers: Vec<u8> = numbers.map(|x| (x as i64 & 15) as u8).collect();
            numbers
                .chunks(2)
                .map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4)
                .collect()
        }
        other => unreachable!("no graph has {other}"),
    }
}
