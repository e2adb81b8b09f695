//! Inputs for benchmarks.

use crate::{CompiledModel, Error, InferRequest};
use fastrand::Rng;
use vinelift_tensor::{ElementType, Shape, Tensor};

impl InferRequest {
    /// Fills every input that has none with seeded random values: floats between -1 and 1, integers
    /// between 0 and `largest`, which serve as indices.
    ///
    /// `shapes` gives the shapes of inputs whose shape is dynamic.
    pub fn fill_random(
        &mut self,
        seed: u64,
        largest: u8,
        shapes: &[Option<Shape>],
    ) -> Result<(), Error> {
        let empty = self.empty_inputs();
        self.fill(&empty, seed, largest, shapes)
    }

    /// As [`InferRequest::fill_random`], then runs the model. What is random may turn out to be an index
    /// that is out of range: then `largest` is halved from 255 down to 0. Returns the one that it took.
    pub fn infer_random(&mut self, seed: u64, shapes: &[Option<Shape>]) -> Result<u8, Error> {
        let empty = self.empty_inputs();
        let mut largest = u8::MAX;
        loop {
            self.fill(&empty, seed, largest, shapes)?;
            match self.infer() {
                Err(Error::Fault(_)) if largest > 0 && !empty.is_empty() => largest /= 2,
                done => return done.map(|()| largest),
            }
        }
    }

    fn empty_inputs(&self) -> Vec<usize> {
        (0..self.compiled_model().inputs().len())
            .filter(|k| !self.has_input(*k))
            .collect()
    }

    fn fill(
        &mut self,
        inputs: &[usize],
        seed: u64,
        largest: u8,
        shapes: &[Option<Shape>],
    ) -> Result<(), Error> {
        let compiled: CompiledModel = self.compiled_model().clone();
        let mut rng = Rng::with_seed(seed);
        for &k in inputs {
            let port = &compiled.inputs()[k];
            let given = shapes.get(k).cloned().flatten();
            let Some(shape) = given.or_else(|| port.shape.to_static()) else {
                return Err(Error::Input(format!(
                    "input '{}' has the dynamic shape {}, and none was given",
                    port.name(),
                    port.shape
                )));
            };
            let values = random(&mut rng, port.element_type, &shape, largest);
            let named = |error| Error::Input(format!("input '{}': {error}", port.name()));
            self.set_input_at(k, values.map_err(named)?)?;
        }
        Ok(())
    }
}

fn random(rng: &mut Rng, ty: ElementType, shape: &[usize], largest: u8) -> Result<Tensor, Error> {
    let mut tensor = Tensor::zeros(ty, shape)?;
    let bytes = tensor.make_mut()?;
    match ty {
        ElementType::F32 => fill(bytes, || (rng.f32() * 2.0 - 1.0).to_le_bytes()),
        ElementType::F64 => fill(bytes, || (rng.f64() * 2.0 - 1.0).to_le_bytes()),
        // Between 0.5 and 1 with either sign: a fixed exponent, random sign and mantissa.
        ElementType::F16 => fill(bytes, || (0x3800 | rng.u16(..) & 0x83FF).to_le_bytes()),
        ElementType::BF16 => fill(bytes, || (0x3F00 | rng.u16(..) & 0x807F).to_le_bytes()),
        ElementType::Boolean => fill(bytes, || [rng.u8(0..2)]),
        ElementType::I8 | ElementType::U8 => fill(bytes, || [rng.u8(0..=largest.min(127))]),
        ElementType::I16 | ElementType::U16 => {
            fill(bytes, || u16::from(rng.u8(0..=largest)).to_le_bytes())
        }
        ElementType::I32 | ElementType::U32 => {
            fill(bytes, || u32::from(rng.u8(0..=largest)).to_le_bytes())
        }
        ElementType::I64 | ElementType::U64 => {
            fill(bytes, || u64::from(rng.u8(0..=largest)).to_le_bytes())
        }
        ElementType::F8E4M3 | ElementType::F8E5M2 | ElementType::F8E8M0 => {
            fill(bytes, || [rng.u8(0x30..0x40)])
        }
        _ => fill(bytes, || [rng.u8(..)]),
    }
    Ok(tensor)
}

fn fill<const N: usize>(bytes: &mut [u8], mut next: impl FnMut() -> [u8; N]) {
    for element in bytes.as_chunks_mut::<N>().0 {
        *element = next();
    }
}
