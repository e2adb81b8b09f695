//! `SegmentMax`: `out[s, j..] = max data[i, j..]` over the positions `i` with `segment_ids[i] = s`.
//!
//! Specification: SegmentMax-16. A segment without positions is zero, or the lowest finite value with
//! `fill_mode="lowest"`. Without `num_segments` there are as many as the largest id asks for. Ids of
//! `num_segments` or more are left out, negative ones are an error; they need not be sorted.

use super::segments;
use crate::error::ensure;
use crate::op::parse;
use crate::reduction::max_of_nothing;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{boolean, lowest, select, zero};
use vinelift_nest::{Binary, Mode, Policy, Scalar};
use vinelift_tensor::{Dim, ElementType, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "SegmentMax",
    versions: &["opset16"],
    signature: Signature::new(&["data", "segment_ids", "num_segments"]).optional(1),
    family: Family::Index,
    build: Build::Op(parse::<SegmentMax>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SegmentMax {
    fill_mode: Fill,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Fill {
    Zero,
    Lowest,
}

impl Op for SegmentMax {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a numeric type", |t| t.is_integer() || t.is_float())?;
        cx.expect_integer("segment_ids")?;
        cx.expect_rank("segment_ids", 1)?;
        let segments = if cx.has("num_segments") {
            segments::count(cx)?
        } else {
            largest(cx)?
        };
        let Some(data) = cx.dims("data") else {
            return Ok(vec![TensorType::new(element, PartialShape::DYNAMIC)]);
        };
        ensure!(
            !data.is_empty(),
            "`data` must have rank at least 1, found []"
        );
        let ids = cx.dims("segment_ids").map_or(Dim::ANY, |d| d[0]);
        ensure!(
            data[0].intersect(ids).is_some(),
            "`data` {} and `segment_ids` {} must have the same first dim",
            cx.shape("data"),
            cx.shape("segment_ids")
        );
        let mut dims = data.to_vec();
        dims[0] = segments;
        Ok(vec![TensorType::new(element, PartialShape::ranked(dims))])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let out = cx.output(0);
        let (ty, shape) = (cx.type_of(out), cx.extents_of(out));
        if shape.iter().any(|n| *n == 0) {
            return;
        }
        let segment = segments::of_positions(cx, shape[0]);
        let target = |cx: &mut Lower<'_>, position: &[Scalar]| {
            let id = cx.load_from(segment, position);
            // Leaves out the writes to the segment after the last.
            let policy = Policy {
                negative: false,
                zero: true,
            };
            cx.wrap(id, shape[0], policy, "segment_ids", position)
        };
        let found = cx.temporary("found", ElementType::Boolean, &shape[..1]);
        cx.define(found, |_, _| boolean(false));
        let positions = cx.extents("segment_ids");
        cx.stage(&positions, found, Mode::Set, |cx, i| {
            (vec![target(cx, i)], boolean(true))
        });

        let wide = ty.compute();
        let most = if wide == ty {
            out
        } else {
            cx.temporary("most", wide, &shape)
        };
        cx.define(most, |_, _| lowest(wide));
        let domain = cx.extents("data");
        cx.stage(&domain, most, Mode::Combine(Binary::Max), |cx, p| {
            let at = [&[target(cx, &p[..1])], &p[1..]].concat();
            (at, cx.load("data", p).cast(wide))
        });
        let fill = match self.fill_mode {
            Fill::Zero => zero(wide),
            Fill::Lowest => max_of_nothing(ty),
        };
        cx.define(out, |cx, at| {
            let most = cx.load_from(most, at);
            select(cx.load_from(found, &at[..1]), most, fill).cast(ty)
        });
    }
}

/// One more than the largest segment id.
fn largest(cx: &Infer<'_>) -> Result<Dim, OpError> {
    let Some(ids) = cx.integers_up_to(usize::MAX, "segment_ids")? else {
        return Ok(Dim::ANY);
    };
    let largest = ids.into_iter().max().unwrap_or(-1);
    ensure!(
        largest < i64::MAX,
        "`segment_ids` holds {largest}, which is too large"
    );
    Ok(Dim::fixed((largest.max(-1) + 1) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, infer, run};
    use vinelift_tensor::Tensor;

    const ZERO: &[(&str, &str)] = &[("fill_mode", "zero")];
    const LOWEST: &[(&str, &str)] = &[("fill_mode", "LOWEST")];

    /// The segments of the description in the specification.
    #[test]
    fn segments() {
        let data = i32s(&[8], &[-3, -1, -2, 4, 5, 6, -7, -8]);
        let ids = i32s(&[8], &[0, 0, 0, 1, 1, 3, 5, 5]);
        let want = i32s(&[6], &[-1, 5, 0, 6, 0, -7]);
        assert_eq!(run(&DEF, ZERO, &[data.clone(), ids.clone()]), want);
        let out = run(&DEF, LOWEST, &[data, ids, i64s(&[], &[4])]);
        assert_eq!(out, i32s(&[4], &[-1, 5, i32::MIN, 6]));
    }

    #[test]
    fn an_empty_segment_is_finite_and_a_full_one_need_not_be() {
        let data = f32s(&[1, 2], &[f32::NEG_INFINITY, 1.0]);
        let out = run(&DEF, LOWEST, &[data, i32s(&[1], &[1]), i32s(&[1], &[2])]);
        assert_eq!(
            out,
            f32s(&[2, 2], &[f32::MIN, f32::MIN, f32::NEG_INFINITY, 1.0])
        );
        for (ty, least) in [
            (ElementType::F16, -65504.0),
            (ElementType::F8E4M3, -448.0),
            (ElementType::F8E5M2, -57344.0),
            (ElementType::F4E2M1, -6.0),
            (ElementType::I4, -8.0),
            (ElementType::U4, 0.0),
        ] {
            let data = Tensor::zeros(ty, &[0]).unwrap();
            let out = run(&DEF, LOWEST, &[data, i32s(&[0], &[]), i32s(&[], &[1])]);
            assert_eq!(out.to_f64_vec().unwrap(), [least], "{ty}");
        }
    }

    #[test]
    fn shapes_and_ids_must_fit() {
        let data = i32s(&[2, 1], &[1, 2]);
        let found = error(&DEF, ZERO, &[data.clone(), i32s(&[3], &[0; 3])]);
        assert_eq!(
            found,
            "`data` [2, 1] and `segment_ids` [3] must have the same first dim"
        );
        let found = error(&DEF, ZERO, &[data.clone(), i32s(&[2], &[-1, 0])]);
        let message = "layer 'op' (SegmentMax, opset16): `segment_ids`[0] is -1, expected 0..=1";
        assert_eq!(found, message);
        let found = error(
            &DEF,
            ZERO,
            &[data, i32s(&[2], &[0, 0]), i32s(&[2], &[1, 1])],
        );
        assert_eq!(found, "`num_segments` must hold one element, found 2");
    }

    #[test]
    fn the_number_of_segments_may_come_from_the_ids() {
        let data = (ElementType::F32, PartialShape::any_of_rank(2), None);
        let ids = |value| (ElementType::I32, PartialShape::any_of_rank(1), value);
        let known = infer(
            &DEF,
            ZERO,
            &[data.clone(), ids(Some(i32s(&[3], &[0, 2, 2])))],
        );
        assert_eq!(known, ("f32[3, ?]".to_owned(), vec![]));
        let unknown = infer(&DEF, ZERO, &[data.clone(), ids(None)]);
        assert_eq!(unknown, ("f32[?, ?]".to_owned(), vec![1]));
        let count = (
            ElementType::I32,
            PartialShape::ranked(vec![]),
            Some(i32s(&[], &[4])),
        );
        let given = infer(&DEF, ZERO, &[data, ids(None), count]);
        assert_eq!(given, ("f32[4, ?]".to_owned(), vec![]));
    }
}
