//! Whether a tensor is the one expected.

use vinelift::{ElementType, Tensor};

/// How far numbers may differ: `|got - want| <= atol + rtol * |want|`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    pub(crate) relative: f64,
    pub(crate) absolute: f64,
    /// Whether NaN equals NaN.
    pub(crate) nan_equal: bool,
}

impl Tolerance {
    fn allows(self, got: f64, want: f64) -> bool {
        if got.is_nan() || want.is_nan() {
            return self.nan_equal && got.is_nan() && want.is_nan();
        }
        // An infinite `want` would allow anything.
        let finite = got.is_finite() && want.is_finite();
        got == want || finite && (got - want).abs() <= self.absolute + self.relative * want.abs()
    }
}

/// A text with the first element that differs and the number of those that do; `None` if all are equal.
pub(crate) fn difference(got: &Tensor, want: &Tensor, tolerance: Tolerance) -> Option<String> {
    if got.element_type() != want.element_type() || got.shape() != want.shape() {
        return Some(format!(
            "is {}{:?}, expected {}{:?}",
            got.element_type(),
            got.shape(),
            want.element_type(),
            want.shape()
        ));
    }
    let count = got.element_count();
    let differs: Vec<usize> = match (got.strings(), want.strings()) {
        (Some(got), Some(want)) => (0..count).filter(|k| got.get(*k) != want.get(*k)).collect(),
        _ => match numbers_that_differ(got, want, tolerance) {
            Ok(differs) => differs,
            Err(error) => return Some(error.to_string()),
        },
    };
    let &first = differs.first()?;
    let text = |t: &Tensor| t.first_values(first + 1).pop().unwrap_or_default();
    Some(format!(
        "element {:?} is {}, expected {} ({} of {count} differ)",
        coordinates(first, got.shape()),
        text(got),
        text(want),
        differs.len()
    ))
}

fn numbers_that_differ(
    got: &Tensor,
    want: &Tensor,
    tolerance: Tolerance,
) -> Result<Vec<usize>, vinelift::TensorError> {
    let ty = got.element_type();
    if ty.is_float() {
        let (got, want) = (got.to_f64_vec()?, want.to_f64_vec()?);
        let pairs = got.iter().zip(&want).enumerate();
        return Ok(pairs
            .filter(|(_, (g, w))| !tolerance.allows(**g, **w))
            .map(|(k, _)| k)
            .collect());
    }
    if ty == ElementType::U64 {
        let (got, want) = (got.as_slice::<u64>()?, want.as_slice::<u64>()?);
        return Ok((0..got.len()).filter(|k| got[*k] != want[*k]).collect());
    }
    let (got, want) = (got.to_i64_vec()?, want.to_i64_vec()?);
    Ok((0..got.len()).filter(|k| got[*k] != want[*k]).collect())
}

fn coordinates(mut element: usize, shape: &[usize]) -> Vec<usize> {
    let mut coordinates = vec![0; shape.len()];
    for (coordinate, extent) in coordinates.iter_mut().zip(shape).rev() {
        *coordinate = element % extent;
        element /= extent;
    }
    coordinates
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOSE: Tolerance = Tolerance {
        relative: 0.1,
        absolute: 0.0,
        nan_equal: true,
    };

    fn floats(got: [f32; 4], want: [f32; 4]) -> Option<String> {
        let tensor = |values: &[f32]| Tensor::from_slice(&[2, 2], values).unwrap();
        difference(&tensor(&got), &tensor(&want), LOOSE)
    }

    #[test]
    fn floats_may_differ_a_little() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(floats([1.0, nan, inf, -0.0], [1.05, nan, inf, 0.0]), None);
        let text = "element [1, 0] is 3.0, expected inf (2 of 4 differ)";
        assert_eq!(
            floats([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, inf, nan]).unwrap(),
            text
        );
        let text = "element [0, 1] is inf, expected -inf (1 of 4 differ)";
        assert_eq!(
            floats([1.0, inf, 3.0, 4.0], [1.0, -inf, 3.0, 4.0]).unwrap(),
            text
        );
    }

    #[test]
    fn all_else_may_not() {
        let of = |values: &[u64]| Tensor::from_slice(&[2], values).unwrap();
        let text =
            "element [1] is 18446744073709551615, expected 18446744073709551614 (1 of 2 differ)";
        assert_eq!(
            difference(&of(&[0, u64::MAX]), &of(&[0, u64::MAX - 1]), LOOSE).unwrap(),
            text
        );
        // The unused bits of the last byte do not count.
        let i4 = |byte: u8| Tensor::from_bytes(ElementType::I4, &[1], [byte]).unwrap();
        assert_eq!(difference(&i4(0x1f), &i4(0x2f), LOOSE), None);
        let strings = |s: &str| Tensor::from_strings(&[], vec![s.to_owned()]).unwrap();
        let text = "element [] is \"a\", expected \"b\" (1 of 1 differ)";
        assert_eq!(
            difference(&strings("a"), &strings("b"), LOOSE).unwrap(),
            text
        );
        assert_eq!(
            difference(&i4(0), &of(&[0, 0]), LOOSE).unwrap(),
            "is i4[1], expected u64[2]"
        );
    }
}
