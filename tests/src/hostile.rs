//! Tensors with values that nobody expects.

use crate::Random;
use vinelift::{Element, ElementType, Port, Tensor};

/// A tensor for the port, of `shape` if one is given. Else it is one that fits; dims that are open are 0 to 3.
pub fn tensor(port: &Port, shape: Option<&[usize]>, random: &mut Random) -> Tensor {
    fn of<T: Element>(shape: &[usize], mut value: impl FnMut() -> T) -> Tensor {
        let count = shape.iter().product();
        let values: Vec<T> = (0..count).map(|_| value()).collect();
        Tensor::from_slice(shape, &values).unwrap()
    }
    let shape: Vec<usize> = match (shape, port.shape.dims()) {
        (Some(shape), _) => shape.to_vec(),
        (None, Some(dims)) => dims
            .iter()
            .map(|d| d.get().unwrap_or_else(|| d.min() + random.below(4)))
            .collect(),
        (None, None) => (0..random.below(4)).map(|_| random.below(4)).collect(),
    };
    // Mostly small, so that what looks like an index or a count often is one.
    let integers = [
        0,
        1,
        2,
        3,
        -1,
        -2,
        5,
        i64::MAX,
        i64::MIN,
        1 << 31,
        -(1 << 31),
        1 << 40,
    ];
    let usual = if random.below(3) == 0 {
        integers.len()
    } else {
        4
    };
    let floats = [
        0.0,
        1.0,
        -1.0,
        0.5,
        2.5,
        -0.0,
        1e-45,
        3e38,
        -3e38,
        1e300,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e10,
    ];
    let common = if random.below(2) == 0 {
        floats.len()
    } else {
        5
    };
    let mut integer = || random.of(&integers[..usual]);
    let shape = &shape[..];
    match port.element_type {
        ElementType::Boolean => {
            let count = shape.iter().product();
            let values: Vec<bool> = (0..count).map(|_| integer() & 1 == 1).collect();
            Tensor::from_bools(shape, &values).unwrap()
        }
        ElementType::I8 => of(shape, || integer() as i8),
        ElementType::I16 => of(shape, || integer() as i16),
        ElementType::I32 => of(shape, || integer() as i32),
        ElementType::I64 => of(shape, integer),
        ElementType::U8 => of(shape, || integer() as u8),
        ElementType::U16 => of(shape, || integer() as u16),
        ElementType::U32 => of(shape, || integer() as u32),
        ElementType::U64 => of(shape, || integer() as u64),
        ElementType::F32 => of(shape, || random.of(&floats[..common]) as f32),
        ElementType::F64 => of(shape, || random.of(&floats[..common])),
        ElementType::String => {
            let count = shape.iter().product();
            let texts = (0..count).map(|_| random.of(&["", "a", "é", "long text"]).to_owned());
            Tensor::from_strings(shape, texts.collect()).unwrap()
        }
        other => Tensor::zeros(other, shape).unwrap(),
    }
}
