//! `Roll`: `out[.., i, ..] = data[.., (i - shift) mod extent, ..]` in some dims.
//!
//! Specification: Roll-7. A single `shift` goes for all `axes`; the shifts of an axis named several
//! times add up.

use super::index_map::extent;
use crate::error::ensure;
use crate::infer::dim_of_axis;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::index;
use vinelift_tensor::Extent;

pub(crate) static DEF: OpDef = OpDef {
    name: "Roll",
    versions: &["opset7"],
    signature: Signature::new(&["data", "shift", "axes"]),
    family: Family::Layout,
    build: Build::Op(parse::<Roll>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Roll {}

impl Op for Roll {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let (shift, axes) = (cx.integers("shift")?, cx.integers("axes")?);
        if let (Some(shift), Some(axes), Some(rank)) = (shift, axes, cx.shape("data").rank()) {
            totals(&shift, &axes, rank)?;
        }
        Ok(vec![cx.input("data").clone()])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents("data");
        let (shift, axes) = (cx.integers("shift"), cx.integers("axes"));
        let totals = totals(
            &shift.unwrap_or_default(),
            &axes.unwrap_or_default(),
            shape.len(),
        );
        let totals = totals.unwrap_or_default();
        cx.define(cx.output(0), |cx, at| {
            let place = |(d, i): (usize, &Scalar)| match back(totals[d], shape[d]) {
                Some(back) => (i + &back).rem(Scalar::extent(shape[d])),
                None => i.clone(),
            };
            let from: Vec<Scalar> = at.iter().enumerate().map(place).collect();
            cx.load("data", &from)
        });
    }
}

/// How far back in a dim of extent `n` an element comes from that is moved by `total`: `-total` modulo `n`, `None` if
/// that is 0.
fn back(total: i128, n: Extent) -> Option<Scalar> {
    if total == 0 {
        return None;
    }
    let least = usize::try_from(total.unsigned_abs())
        .ok()?
        .saturating_add(1);
    if n.is_symbolic() && Extent::from(least).at_most(n) {
        return Some(match i64::try_from(total).ok()? {
            total @ 1.. => Scalar::extent(n) - total,
            total => index(-total),
        });
    }
    let back = (-total).checked_rem_euclid(i128::from(extent(n.pin())))?;
    (back != 0).then(|| index(back as i64))
}

/// The shift of each dim.
fn totals(shift: &[i64], axes: &[i64], rank: usize) -> Result<Vec<i128>, OpError> {
    ensure!(
        shift.len() == axes.len() || shift.len() == 1,
        "`shift` {shift:?} must hold one element or as many as `axes` {axes:?}"
    );
    let mut totals = vec![0i128; rank];
    for (k, &axis) in axes.iter().enumerate() {
        if let Some(dim) = dim_of_axis(axis, rank)? {
            totals[dim] += i128::from(shift[k.min(shift.len() - 1)]);
        }
    }
    Ok(totals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};

    fn roll(shift: &[i64], axes: &[i64]) -> Vec<i64> {
        let x = i32s(&[4, 3], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        let inputs = [x, i64s(&[shift.len()], shift), i64s(&[axes.len()], axes)];
        run(&DEF, &[], &inputs).to_i64_vec().unwrap()
    }

    /// The examples of the specification.
    #[test]
    fn of_the_specification() {
        assert_eq!(roll(&[1], &[0]), [10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(
            roll(&[-1, 2], &[0, 1]),
            [5, 6, 4, 8, 9, 7, 11, 12, 10, 2, 3, 1]
        );
        assert_eq!(
            roll(&[1, 2, 1], &[0, 1, 0]),
            [8, 9, 7, 11, 12, 10, 2, 3, 1, 5, 6, 4]
        );
    }

    #[test]
    fn single_whole_and_extreme_shifts() {
        assert_eq!(
            roll(&[1], &[0, -1]),
            [12, 10, 11, 3, 1, 2, 6, 4, 5, 9, 7, 8]
        );
        assert_eq!(roll(&[4, i64::MIN, i64::MIN], &[0, 0, 0]), roll(&[0], &[0]));
        let out = run(
            &DEF,
            &[],
            &[i32s(&[0], &[]), i64s(&[], &[3]), i64s(&[], &[0])],
        );
        assert_eq!(out, i32s(&[0], &[]));
        let scalar = [i32s(&[], &[5]), i64s(&[1], &[2]), i64s(&[1], &[-1])];
        assert_eq!(run(&DEF, &[], &scalar), i32s(&[], &[5]));
    }

    #[test]
    fn shifts_match_axes() {
        let inputs = [i32s(&[2], &[0; 2]), i64s(&[2], &[1, 2]), i64s(&[1], &[0])];
        let message = "`shift` [1, 2] must hold one element or as many as `axes` [0]";
        assert_eq!(error(&DEF, &[], &inputs), message);
    }
}
