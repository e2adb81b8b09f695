//! `NonZero`: the positions of the elements that are not zero, in row-major order:
//! `out[d, k]` is the index of the `k`-th of them along dim `d`.
//!
//! Specification: NonZero-3. A scalar that is not zero has the position of no dims: `[0, 1]`. NaN is not
//! zero, -0 is.

use crate::attrs::{element_type, index_type};
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) static DEF: OpDef = OpDef {
    name: "NonZero",
    versions: &["opset3"],
    signature: Signature::new(&["data"]),
    family: Family::Native,
    build: Build::Native(parse_native::<NonZero>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NonZero {
    #[serde(default = "crate::attrs::i64_type", deserialize_with = "element_type")]
    output_type: ElementType,
}

impl Native for NonZero {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect("data", "a numeric type or boolean", |t| {
            t != ElementType::String
        })?;
        index_type("output_type", self.output_type)?;
        let data = cx.dims("data");
        let rank = data.map_or(Dim::ANY, |d| Dim::fixed(d.len()));
        let most = data.map_or(Dim::ANY, |d| {
            d.iter().copied().fold(Dim::fixed(1), Dim::mul)
        });
        let shape = PartialShape::ranked(vec![rank, most.up_to()]);
        Ok(vec![TensorType::new(self.output_type, shape)])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let data = cx.input("data");
        let found = data.non_zero()?;
        let shape = [data.shape().len(), found.len()];
        let mut out = Tensor::zeros(self.output_type, &shape)?;
        match self.output_type {
            ElementType::I32 => {
                put_indices(data.shape(), &found, out.as_mut_slice()?, |i| i as i32);
            }
            _ => put_indices(data.shape(), &found, out.as_mut_slice()?, |i| i as i64),
        }
        Ok(vec![out])
    }
}

/// Puts the indices of flat positions, which ascend, along the dims of `shape` into rows of `out`, one for each dim.
fn put_indices<T: Copy>(
    shape: &[usize],
    positions: &[usize],
    out: &mut [T],
    index: impl Fn(usize) -> T,
) {
    let Some((&width, outer)) = shape.split_last() else {
        return;
    };
    let count = positions.len();
    let (outer_out, last_out) = out.split_at_mut(outer.len() * count);
    // Those in the same row of the last dim differ in their last index alone.
    let mut done = 0;
    while let Some(position) = positions.get(done) {
        let row = position / width;
        let (start, end) = (row * width, (row + 1) * width);
        let first = done;
        while let Some(&position) = positions.get(done)
            && position < end
        {
            last_out[done] = index(position - start);
            done += 1;
        }
        let mut rest = row;
        for (extent, out) in outer.iter().zip(outer_out.chunks_exact_mut(count)).rev() {
            out[first..done].fill(index(rest % extent));
            rest /= extent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{f32s, i32s, i64s, infer, run};

    /// The example of the specification, and NumPy's `nonzero` for the others here and below.
    #[test]
    fn positions_in_row_major_order() {
        let data = i32s(&[3, 3], &[3, 0, 0, 0, 4, 0, 5, 6, 0]);
        let want = i64s(&[2, 4], &[0, 1, 2, 2, 0, 1, 0, 1]);
        assert_eq!(run(&DEF, &[], &[data]), want);
        let data = f32s(&[3], &[-0.0, f32::NAN, 1e-45]);
        let attributes = [("output_type", "i32")];
        assert_eq!(run(&DEF, &attributes, &[data]), i32s(&[1, 2], &[1, 2]));
        assert_eq!(run(&DEF, &[], &[i32s(&[], &[1])]), i64s(&[0, 1], &[]));
        assert_eq!(run(&DEF, &[], &[i32s(&[0, 2], &[])]), i64s(&[2, 0], &[]));
    }

    #[test]
    fn several_rows_and_dims() {
        let data = i32s(&[2, 3, 2], &[0, 1, 0, 0, 2, 3, 0, 0, 4, 0, 5, 6]);
        let want = [0, 0, 0, 1, 1, 1, 0, 2, 2, 1, 2, 2, 1, 0, 1, 0, 0, 1];
        assert_eq!(run(&DEF, &[], &[data]), i64s(&[3, 6], &want));
    }

    #[test]
    fn at_most_as_many_as_there_are_elements() {
        let data = PartialShape::ranked(vec![Dim::fixed(2), Dim::fixed(3)]);
        let found = infer(&DEF, &[], &[(ElementType::F16, data, None)]);
        assert_eq!(found, ("i64[2, 0..6]".to_owned(), vec![]));
    }
}
