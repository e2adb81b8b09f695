//! `OneHot`: `out[p.., i, q..] = on_value if indices[p.., q..] == i, else off_value`, where `i` runs
//! over `depth` values at `axis`.
//!
//! Specification: OneHot-1 and -16. An index of `depth` or more gives a row of `off_value`, and so
//! does a negative one (in -1 undefined), unless `negative_indices_mode="normalize"` counts those of
//! `-depth..=-1` from the end.

use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::{Attributes, Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, select};
use vinelift_tensor::ElementType::{I32, I64};
use vinelift_tensor::{Dim, PartialShape, symbols};

/// The most classes that there is a table of.
const MOST_NARROW: usize = 4096;

pub(crate) static V1: OpDef = version(&["opset1"], |attributes| {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Axis {
        axis: i64,
    }

    let Axis { axis } = attributes.parse()?;
    Ok(Box::new(OneHot {
        axis,
        negative_indices_mode: Negative::IgnoreNegative,
    }))
});

pub(crate) static V16: OpDef = version(&["opset16"], crate::op::parse::<OneHot>);

const fn version(
    versions: &'static [&'static str],
    build: fn(&Attributes<'_>) -> Result<Box<dyn Op>, OpError>,
) -> OpDef {
    OpDef {
        name: "OneHot",
        versions,
        signature: Signature::new(&["indices", "depth", "on_value", "off_value"]),
        family: Family::Index,
        build: Build::Op(build),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OneHot {
    axis: i64,
    #[serde(default)]
    negative_indices_mode: Negative,
}

/// The meaning of a negative index.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Negative {
    /// The specification writes a hyphen, files have an underscore.
    #[default]
    #[serde(alias = "ignore-negative")]
    IgnoreNegative,
    Normalize,
}

impl Op for OneHot {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_integer("indices")?;
        let element = cx.expect_same("on_value", "off_value")?;
        for name in ["on_value", "off_value"] {
            let one = cx.length(name).is_none_or(|n| n == 1);
            ensure!(
                one,
                "`{name}` must hold one element, found {}",
                cx.shape(name)
            );
        }
        // As an extent, one that is positive at the example is so wherever the plan is used.
        let depth = match cx.formulas("depth").as_deref() {
            Some(depth) => depth.first().and_then(symbols::example),
            None => cx.integer("depth")?,
        };
        if let Some(depth) = depth {
            ensure!(depth > 0, "`depth` must be positive, found {depth}");
        }
        let Some(indices) = cx.dims("indices") else {
            return Ok(vec![TensorType::new(element, PartialShape::DYNAMIC)]);
        };
        let axis = normalize_axis(self.axis, indices.len() + 1)?;
        let mut dims = indices.to_vec();
        let depth = cx.extents("depth").and_then(|d| d.first().copied());
        dims.insert(axis, depth.unwrap_or(Dim::ANY));
        Ok(vec![TensorType::new(element, PartialShape::ranked(dims))])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let out = cx.output(0);
        let shape = cx.extents_of(out);
        let axis = normalize_axis(self.axis, shape.len()).unwrap_or_default();
        let counts_back = self.negative_indices_mode == Negative::Normalize
            && cx.element("indices").is_signed_integer();
        // Which class an index means, found once for all classes, and none with -1. Narrow numbers fill more lanes of vectors; as a
        // table, those of classes that lie along the lanes need no conversion.
        let depth = Scalar::extent(shape[axis]);
        let few = shape[axis].number().filter(|n| *n <= MOST_NARROW);
        let ty = few.map_or(I64, |_| I32);
        let numbers = few.map(|n| cx.table_of("numbers", I32, &(0..n as i64).collect::<Vec<_>>()));
        let of_indices = cx.extents("indices");
        let classes = cx.temporary("classes", ty, &of_indices);
        cx.define(classes, |cx, at| {
            let hot = cx.load("indices", at);
            let compute = hot.ty().compute();
            // A u64 too large for an i64 becomes negative, and so means no class either.
            let hot = hot.cast(compute).cast(I64);
            let class = match counts_back {
                true => select(hot.lt(index(0)), &hot + &depth, hot),
                false => hot,
            };
            let is_class = class.ge(index(0)) & class.lt(depth);
            select(is_class, class, index(-1)).cast(ty)
        });
        cx.define(out, |cx, at| {
            let mut position = at.to_vec();
            let class = position.remove(axis);
            let number = match numbers {
                Some(numbers) => cx.load_from(numbers, &[class]),
                None => class,
            };
            let matches = cx.load_from(classes, &position).eq(number);
            select(matches, cx.load_only("on_value"), cx.load_only("off_value"))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, infer, run};
    use vinelift_tensor::Tensor;

    fn inputs(indices: Tensor, depth: i32) -> [Tensor; 4] {
        [
            indices,
            i32s(&[], &[depth]),
            i32s(&[], &[1]),
            i32s(&[], &[2]),
        ]
    }

    /// The first examples of both specifications.
    #[test]
    fn rows() {
        let of = |def, mode: &[(&'static str, &'static str)], indices: &[i32]| {
            run(
                def,
                &[&[("axis", "-1")], mode].concat(),
                &inputs(i32s(&[4], indices), 3),
            )
        };
        let want = i32s(&[4, 3], &[1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 1]);
        assert_eq!(of(&V1, &[], &[0, 3, 1, 2]), want);
        assert_eq!(
            of(
                &V16,
                &[("negative_indices_mode", "normalize")],
                &[0, -5, -2, 2]
            ),
            want
        );
        let want = i32s(&[4, 3], &[1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]);
        assert_eq!(of(&V1, &[], &[0, -5, -2, 2]), want);
        for mode in ["ignore_negative", "ignore-negative"] {
            assert_eq!(
                of(&V16, &[("negative_indices_mode", mode)], &[0, -5, -2, 2]),
                want
            );
        }
    }

    /// The second example of both specifications.
    #[test]
    fn in_the_middle() {
        let [indices, depth, _, _] = inputs(i32s(&[2, 3], &[0, 3, 1, 1, 2, 4]), 3);
        let inputs = [indices, depth, f32s(&[], &[1.0]), f32s(&[], &[0.0])];
        let want = [
            1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 0., 1., 0., 0., 0., 1., 0.,
        ];
        for def in [&V1, &V16] {
            assert_eq!(run(def, &[("axis", "1")], &inputs), f32s(&[2, 3, 3], &want));
        }
    }

    /// On both sides of the number of classes from which on there is no table of them.
    #[test]
    fn many_classes() {
        for depth in [MOST_NARROW as i64, MOST_NARROW as i64 + 1] {
            let far = 1 << 32;
            let indices = [
                0,
                77,
                depth - 1,
                depth,
                -1,
                -depth,
                -depth - 1,
                far,
                far + 5,
            ];
            for (mode, counts_back) in [("normalize", true), ("ignore_negative", false)] {
                let attributes = [("axis", "-1"), ("negative_indices_mode", mode)];
                let inputs = inputs(i64s(&[indices.len()], &indices), depth as i32);
                let out = run(&V16, &attributes, &inputs);
                let found: Vec<Option<i64>> = out
                    .as_slice::<i32>()
                    .unwrap()
                    .chunks(depth as usize)
                    .map(|row| row.iter().position(|x| *x == 1).map(|class| class as i64))
                    .collect();
                let of_index = |i: i64| match i {
                    i if (0..depth).contains(&i) => Some(i),
                    i if counts_back && (-depth..0).contains(&i) => Some(i + depth),
                    _ => None,
                };
                assert_eq!(found, indices.map(of_index), "{depth}, {mode}");
                let hot = out
                    .to_i64_vec()
                    .unwrap()
                    .iter()
                    .filter(|x| **x == 1)
                    .count();
                assert_eq!(hot, found.iter().flatten().count());
            }
        }
    }

    #[test]
    fn scalars_strings_and_huge_indices() {
        let strings = |s: &[&str]| {
            Tensor::from_strings(&[s.len()], s.iter().map(|s| s.to_string()).collect()).unwrap()
        };
        let [on, off] = [strings(&["on"]), strings(&["off"])];
        let out = run(
            &V1,
            &[("axis", "0")],
            &[i64s(&[], &[1]), i64s(&[1], &[2]), on, off],
        );
        assert_eq!(out, strings(&["off", "on"]));
        let huge = Tensor::from_slice(&[1], &[u64::MAX]).unwrap();
        let attributes = [("axis", "0"), ("negative_indices_mode", "normalize")];
        assert_eq!(
            run(&V16, &attributes, &inputs(huge, 2)),
            i32s(&[2, 1], &[2, 2])
        );
    }

    #[test]
    fn values_must_fit() {
        let indices = i32s(&[2], &[0, 1]);
        let found = error(&V1, &[("axis", "2")], &inputs(indices.clone(), 3));
        assert_eq!(found, "axis 2 is out of range for rank 2");
        let found = error(&V1, &[("axis", "0")], &inputs(indices.clone(), 0));
        assert_eq!(found, "`depth` must be positive, found 0");
        let given = |value: Tensor, is_known: bool| {
            let shape = value.shape().into();
            (value.element_type(), shape, is_known.then_some(value))
        };
        let [indices, _, on, off] = inputs(indices, 3);
        let most = given(i64s(&[], &[i64::MAX]), true);
        let all = [
            given(indices.clone(), false),
            most,
            given(on, false),
            given(off, false),
        ];
        let (found, _) = infer(&V1, &[("axis", "0")], &all);
        assert_eq!(found, "i32[9223372036854775807, 2]");
        let [indices, depth, on, _] = inputs(indices, 3);
        let found = error(
            &V1,
            &[("axis", "0")],
            &[indices, depth, on, f32s(&[], &[0.0])],
        );
        assert_eq!(
            found,
            "`off_value` must be of the type of `on_value`, i32, found f32"
        );
    }
}
