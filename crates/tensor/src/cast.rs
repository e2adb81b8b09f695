//! Elements in another type.

use crate::{Element, ElementType, Tensor, TensorError};
use half::{bf16, f16};

impl Tensor {
    /// The same elements in another type. Floats are rounded to the nearest that there is; integers must be whole and in
    /// range; what is not zero becomes true.
    ///
    /// # Errors
    /// If an element has no counterpart, and for types below a byte, of 8-bit floats or of strings.
    pub fn cast(&self, to: ElementType) -> Result<Tensor, TensorError> {
        use ElementType::*;
        if self.element_type() == to {
            return Ok(self.clone());
        }
        match to {
            Boolean => {
                let bools: Vec<bool> = self.to_f64_vec()?.into_iter().map(|x| x != 0.0).collect();
                Tensor::from_bools(self.shape(), &bools)
            }
            F64 => self.of_floats(Some),
            F32 => self.of_floats(|x| fits(x, x as f32, (x as f32).into())),
            F16 => self.of_floats(|x| fits(x, f16::from_f64(x), f16::from_f64(x).into())),
            BF16 => self.of_floats(|x| fits(x, bf16::from_f64(x), bf16::from_f64(x).into())),
            I8 => self.of_integers::<i8>(),
            I16 => self.of_integers::<i16>(),
            I32 => self.of_integers::<i32>(),
            I64 => self.of_integers::<i64>(),
            U8 => self.of_integers::<u8>(),
            U16 => self.of_integers::<u16>(),
            U32 => self.of_integers::<u32>(),
            U64 => self.of_integers::<u64>(),
            _ => Err(TensorError::ElementType {
                expected: "of at least a byte, no 8-bit float and no string",
                found: to,
            }),
        }
    }

    fn of_floats<T: Element>(
        &self,
        cast: impl Fn(f64) -> Option<T>,
    ) -> Result<Tensor, TensorError> {
        let cast = |x: f64| cast(x).ok_or_else(|| self.no_counterpart(x.to_string(), T::TYPE));
        let elements = self.to_f64_vec()?.into_iter().map(cast);
        Tensor::from_slice(self.shape(), &elements.collect::<Result<Vec<T>, _>>()?)
    }

    fn of_integers<T: Element + TryFrom<i128>>(&self) -> Result<Tensor, TensorError> {
        let integers: Vec<i128> = match self.element_type().is_float() {
            true => {
                let whole = |x: f64| match x.fract() == 0.0 {
                    // A value out of range becomes the largest there is, which no type holds.
                    true => Ok(x as i128),
                    false => Err(self.no_counterpart(x.to_string(), T::TYPE)),
                };
                let elements = self.to_f64_vec()?.into_iter();
                elements.map(whole).collect::<Result<_, _>>()?
            }
            false => self.to_i128_vec()?,
        };
        let cast =
            |x: i128| T::try_from(x).map_err(|_| self.no_counterpart(x.to_string(), T::TYPE));
        let elements = integers.into_iter().map(cast);
        Tensor::from_slice(self.shape(), &elements.collect::<Result<Vec<T>, _>>()?)
    }

    fn no_counterpart(&self, value: String, to: ElementType) -> TensorError {
        TensorError::Cast {
            value,
            from: self.element_type(),
            to,
        }
    }
}

/// `cast`, which is `as_f64`, unless only one of it and `x` is finite.
fn fits<T>(x: f64, cast: T, as_f64: f64) -> Option<T> {
    (x.is_finite() == as_f64.is_finite()).then_some(cast)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ElementType::*;

    #[test]
    fn elements_keep_their_value_or_are_refused() {
        let of = |x: &[f64]| Tensor::from_slice(&[x.len()], x).unwrap();
        let cast = |x: &[f64], to| of(x).cast(to).map(|t| t.to_f64_vec().unwrap());
        assert_eq!(cast(&[0.1, -2.0], F32).unwrap(), [0.1f32.into(), -2.0]);
        assert_eq!(cast(&[1.0, 65504.0], F16).unwrap(), [1.0, 65504.0]);
        assert_eq!(cast(&[-128.0, 127.0], I8).unwrap(), [-128.0, 127.0]);
        assert_eq!(cast(&[0.0, 0.5], Boolean).unwrap(), [0.0, 1.0]);
        assert!(cast(&[f64::NAN], F32).unwrap()[0].is_nan());
        let error = |x, to| cast(&[x], to).unwrap_err().to_string();
        assert_eq!(error(1.5, I32), "1.5 of type f64 is no i32");
        assert_eq!(error(256.0, U8), "256 of type f64 is no u8");
        assert_eq!(error(1e39, F32), format!("{} of type f64 is no f32", 1e39));
        assert!(error(f64::NAN, I64).starts_with("NaN of type f64"));
        assert!(error(1e300, U64).ends_with(" of type f64 is no u64"));
        assert!(cast(&[1.0], U4).is_err() && cast(&[1.0], String).is_err());
        let large = Tensor::from_slice(&[1], &[u64::MAX]).unwrap();
        assert!(large.cast(I64).is_err());
        let small = Tensor::from_slice(&[1], &[-1i8]).unwrap();
        assert_eq!(small.cast(I64).unwrap().to_i64_vec().unwrap(), [-1]);
        assert!(small.cast(U32).is_err());
    }
}
