//! `ScatterUpdate`: a copy of `data` with `out[p.., indices[i..], q..] = updates[p.., i.., q..]`,
//! where `p` runs over the dims of `data` before `axis` and `q` over those after it.
//!
//! Specification: ScatterUpdate-3. A negative index or one out of range is an error; of several
//! updates of one element the last in row-major order stays.

use super::scatter::{Fold, scatter};
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Policy;
use vinelift_tensor::PartialShape;

pub(crate) static DEF: OpDef = OpDef {
    name: "ScatterUpdate",
    versions: &["opset3"],
    signature: Signature::new(&["data", "indices", "updates", "axis"]),
    family: Family::Index,
    build: Build::Op(parse::<ScatterUpdate>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScatterUpdate {}

impl Op for ScatterUpdate {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_integer("indices")?;
        let element = cx.expect_same("data", "updates")?;
        let axis = cx.integer("axis")?;
        if let (Some(data), Some(indices)) = (cx.dims("data"), cx.dims("indices")) {
            let rank = data.len();
            ensure!(rank > 0, "`data` must have rank at least 1, found []");
            cx.expect_rank("updates", rank - 1 + indices.len())?;
            if let Some(axis) = axis {
                let axis = normalize_axis(axis, rank)?;
                let mut dims = data.to_vec();
                dims.splice(axis..=axis, indices.iter().copied());
                let expected = PartialShape::ranked(dims);
                ensure!(
                    cx.shape("updates").intersect(&expected).is_some(),
                    "`updates` {} must have shape {expected}, for `data` {} and `indices` {} along axis {axis}",
                    cx.shape("updates"),
                    cx.shape("data"),
                    cx.shape("indices")
                );
            }
        }
        Ok(vec![TensorType::new(element, cx.shape("data").clone())])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let extents = cx.extents("data");
        let axis = cx.integer("axis").unwrap_or_default();
        let axis = normalize_axis(axis, extents.len()).unwrap_or_default();
        let after = axis + cx.extents("indices").len();
        let domain = cx.extents("updates");
        scatter(
            cx,
            Fold::Replace,
            &domain,
            |cx, p| {
                let index = cx.index("indices", &p[axis..after], extents[axis], Policy::CHECK);
                [&p[..axis], &[index], &p[after..]].concat()
            },
            |cx, p| cx.load("updates", p),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i32s, i64s, run, run_all};

    /// Example 2 of the specification.
    #[test]
    fn along_the_second_axis() {
        let data = [
            -1., 1., -1., 3., 4., -1., 6., -1., 8., 9., -1., 11., 1., 13., 14.,
        ];
        let updates = f32s(&[3, 2], &[1., 1., 1., 1., 1., 2.]);
        let inputs = [
            f32s(&[3, 5], &data),
            i32s(&[2], &[0, 2]),
            updates,
            i32s(&[1], &[1]),
        ];
        let want = [
            1., 1., 1., 3., 4., 1., 6., 1., 8., 9., 1., 11., 2., 13., 14.,
        ];
        assert_eq!(run(&DEF, &[], &inputs), f32s(&[3, 5], &want));
    }

    #[test]
    fn the_last_update_wins() {
        let inputs = [
            i32s(&[3], &[1, 2, 3]),
            i64s(&[2, 2], &[2, 0, 2, 2]),
            i32s(&[2, 2], &[7, 8, 9, 6]),
            i64s(&[], &[-1]),
        ];
        assert_eq!(run(&DEF, &[], &inputs), i32s(&[3], &[8, 2, 6]));
    }

    #[test]
    fn a_scalar_index_and_no_index() {
        let data = i32s(&[2, 2], &[1, 2, 3, 4]);
        let inputs = [
            data.clone(),
            i32s(&[], &[1]),
            i32s(&[2], &[8, 9]),
            i64s(&[], &[1]),
        ];
        assert_eq!(run(&DEF, &[], &inputs), i32s(&[2, 2], &[1, 8, 3, 9]));
        let inputs = [
            data.clone(),
            i32s(&[0], &[]),
            i32s(&[0, 2], &[]),
            i64s(&[], &[0]),
        ];
        assert_eq!(run(&DEF, &[], &inputs), data);
    }

    #[test]
    fn negative_and_out_of_range() {
        let data = i32s(&[3], &[1, 2, 3]);
        let inputs = |at: i32| {
            [
                data.clone(),
                i32s(&[2], &[1, at]),
                i32s(&[2], &[8, 9]),
                i64s(&[], &[0]),
            ]
        };
        let message = "layer 'op' (ScatterUpdate, opset3): `indices`[1] is -1, expected 0..=2";
        assert_eq!(error(&DEF, &[], &inputs(-1)), message);
        let message = "layer 'op' (ScatterUpdate, opset3): `indices`[1] is 3, expected 0..=2";
        assert_eq!(error(&DEF, &[], &inputs(3)), message);
        let left_out = run_all(&DEF, &[], &inputs(3), IndexPolicy::Zero).unwrap();
        assert_eq!(left_out, [i32s(&[3], &[1, 8, 3])]);
    }

    #[test]
    fn shapes_must_fit() {
        let data = i32s(&[2, 3], &[0; 6]);
        let inputs = [
            data.clone(),
            i32s(&[2], &[0; 2]),
            i32s(&[2, 3], &[0; 6]),
            i64s(&[], &[1]),
        ];
        let message = "`updates` [2, 3] must have shape [2, 2], for `data` [2, 3] and `indices` [2] along axis 1";
        assert_eq!(error(&DEF, &[], &inputs), message);
        let inputs = [
            data,
            i32s(&[], &[0]),
            i32s(&[1, 2], &[0; 2]),
            i64s(&[], &[1]),
        ];
        assert_eq!(
            error(&DEF, &[], &inputs),
            "`updates` must have rank 1, found [1, 2]"
        );
    }
}
