//! `ScaledDotProductAttention`: `out[b.., l, v] = Σ_s w[b.., l, s] · value[b.., s, v]` where `w` is the
//! softmax over `s` of `scale · Σ_e query[b.., l, e] · key[b.., s, e] + bias[b.., l, s]`.
//!
//! `scale` is `1 / √E` unless given. `bias` is 0, or the mask, which adds 0 and `-inf` if it is boolean,
//! or with `causal`, which ignores the mask, `-inf` where `s > l`. A row that is masked from end to
//! end is NaN by that formula. Where texts are padded to one length such rows are those of the padding,
//! and the next layer's keys and values would spread their NaN to all others. So in a model that keeps
//! state a boolean mask adds the lowest finite number: other rows are the same, and such a row is
//! the mean of the values, as on OpenVINO's CPU device, which is NaN without state, too.
//!
//! Specification: ScaledDotProductAttention-13. All batch dims, and `L` and `S` of the mask, broadcast;
//! a mask of any rank does, a scalar in particular. The specification has no `sink`; as in OpenVINO
//! it is one more score per row, with which the softmax is taken and which then is left out.

use super::softmax;
use crate::elementwise::{Broadcast, read, widened};
use crate::error::ensure;
use crate::layout::extent::countable;
use crate::layout::index_map::extent_float;
use crate::op::parse;
use crate::reduction::lowest_finite;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, lowest, number, select, zero};
use vinelift_nest::{Binary, BufferId, Scalar};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "ScaledDotProductAttention",
    versions: &["opset13"],
    signature: Signature::new(&["query", "key", "value", "attention_mask", "scale", "sink"])
        .optional(3),
    family: Family::Compose,
    build: Build::Op(parse::<ScaledDotProductAttention>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScaledDotProductAttention {
    causal: bool,
}

impl Op for ScaledDotProductAttention {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("query", "a float type", |t| t.is_float())?;
        for name in ["key", "value"] {
            cx.expect_same("query", name)?;
        }
        for name in ["query", "key", "value"] {
            let rank = cx.shape(name).rank();
            ensure!(
                rank.is_none_or(|r| r >= 3),
                "`{name}` must have rank at least 3, found {}",
                cx.shape(name)
            );
        }
        if self.has_mask(cx.has("attention_mask")) {
            let expected = format!("boolean or of the type of `query`, {element}");
            cx.expect("attention_mask", &expected, |t| {
                t == ElementType::Boolean || t == element
            })?;
        }
        if cx.has("scale") {
            cx.expect_same("query", "scale")?;
            let one = cx.dims("scale").is_none_or(|dims| match dims {
                [] => true,
                [n] => n.contains(1),
                _ => false,
            });
            ensure!(
                one,
                "`scale` must hold one element, found {}",
                cx.shape("scale")
            );
        }
        Ok(vec![TensorType::new(element, self.shape(cx)?)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let ty = cx.element("query");
        let wide = ty.compute();
        let depth = cx.extents("query").last().copied().unwrap_or(0.into());
        let shape = self.scores(cx);
        let columns = shape[shape.len() - 1];

        let products = cx.temporary("products", wide, &shape);
        cx.define(products, |cx, at| {
            let (l, s) = (&at[at.len() - 2], &at[at.len() - 1]);
            let batch = &at[..at.len() - 2];
            cx.sum_of_products(&[depth], wide, |cx, e| {
                let place = |i: &Scalar| [batch, &[i.clone(), e[0].clone()]].concat();
                let query = stretched(cx, cx.input("query"), &place(l));
                (query, stretched(cx, cx.input("key"), &place(s)))
            })
        });
        let scale = (!cx.has("scale")).then(|| scale_of_depth(cx, depth));
        let scores = cx.temporary("scores", wide, &shape);
        cx.define(scores, |cx, at| {
            let scale = scale.unwrap_or_else(|| widened(cx.load_only("scale")));
            let score = cx.load_from(products, at) * scale;
            match self.bias(cx, at, wide) {
                Some(bias) => score + bias,
                None => score,
            }
        });
        let weights = shares(cx, scores, &shape);
        cx.define(cx.output(0), |cx, at| {
            let (batch, last) = at.split_at(at.len() - 2);
            let sum = cx.sum_of_products(&[columns], wide, |cx, s| {
                let weight = [batch, &[last[0].clone(), s[0].clone()]].concat();
                let value = [batch, &[s[0].clone(), last[1].clone()]].concat();
                let weight = stretched(cx, weights, &weight);
                (weight, stretched(cx, cx.input("value"), &value))
            });
            sum.cast(ty)
        });
    }
}

/// `1 / √depth`. Where the depth has symbols it is computed as its number is, in `f64`, and once.
fn scale_of_depth(cx: &mut Lower<'_>, depth: Extent) -> Scalar {
    let wide = cx.element("query").compute();
    if let Some(depth) = depth.number() {
        return number(1.0 / (depth as f64).sqrt(), wide);
    }
    let scale = cx.temporary("scale", wide, &[1]);
    cx.define(scale, |_, _| {
        let root = extent_float(depth, ElementType::F64).sqrt();
        (number(1.0, ElementType::F64) / root).cast(wide)
    });
    cx.load_from(scale, &[index(0)])
}

/// The weights of the values: the softmax of each row of `scores`, of which the sink is one more column if there is one.
fn shares(cx: &mut Lower<'_>, scores: BufferId, shape: &[Extent]) -> BufferId {
    let wide = cx.element("query").compute();
    let (row, columns) = (&shape[..shape.len() - 1], shape[shape.len() - 1]);
    let sink = |cx: &Lower<'_>, row: &[Scalar]| {
        let at = [row, &[index(0)]].concat();
        cx.has("sink").then(|| stretched(cx, cx.input("sink"), &at))
    };
    let largest = cx.temporary("largest", wide, row);
    cx.define(largest, |cx, row| {
        let start = sink(cx, row).unwrap_or(lowest(wide));
        cx.reduce(Binary::Max, &[columns], start, |cx, s| {
            cx.load_from(scores, &[row, s].concat())
        })
    });
    let powers = cx.temporary("powers", wide, shape);
    cx.define(powers, |cx, at| {
        let largest = cx.load_from(largest, &at[..at.len() - 1]);
        softmax::power(cx.load_from(scores, at), largest)
    });
    let factor = cx.temporary("factor", wide, row);
    cx.define(factor, |cx, row| {
        let start = match sink(cx, row) {
            Some(sink) => softmax::power(sink, cx.load_from(largest, row)),
            None => zero(wide),
        };
        softmax::factor(cx.reduce(Binary::Add, &[columns], start, |cx, s| {
            cx.load_from(powers, &[row, s].concat())
        }))
    });
    let weights = cx.temporary("weights", wide, shape);
    cx.define(weights, |cx, at| {
        cx.load_from(powers, at) * cx.load_from(factor, &at[..at.len() - 1])
    });
    weights
}

impl ScaledDotProductAttention {
    fn has_mask(&self, given: bool) -> bool {
        given && !self.causal
    }

    /// The mask's addend for the score at `at`.
    fn bias(&self, cx: &Lower<'_>, at: &[Scalar], wide: ElementType) -> Option<Scalar> {
        let shown = zero(wide);
        if self.causal {
            let (l, s) = (&at[at.len() - 2], &at[at.len() - 1]);
            return Some(select(s.gt(l.clone()), lowest(wide), shown));
        }
        if !cx.has("attention_mask") {
            return None;
        }
        let mask = stretched(cx, cx.input("attention_mask"), at);
        Some(match mask.ty() {
            ElementType::Boolean if cx.has_state() => {
                select(mask, shown, number(lowest_finite(wide), wide))
            }
            ElementType::Boolean => select(mask, shown, lowest(wide)),
            _ => mask,
        })
    }

    /// The shape of the scores.
    fn scores(&self, cx: &Lower<'_>) -> Vec<Extent> {
        let (query, key) = (cx.extents("query"), cx.extents("key"));
        let fixed = |shape: &[Extent]| shape.iter().map(|&n| n.into()).collect::<Vec<Dim>>();
        let mut parts = vec![rows(&fixed(&query)), columns(&fixed(&key))];
        if self.has_mask(cx.has("attention_mask")) {
            parts.push(PartialShape::from(&cx.extents("attention_mask")[..]));
        }
        if cx.has("sink") {
            parts.push(PartialShape::from(&cx.extents("sink")[..]));
        }
        let joined = parts
            .into_iter()
            .reduce(|a, b| a.broadcast(&b).unwrap_or(a));
        joined.and_then(|s| s.to_extents()).unwrap_or_default()
    }

    /// The shape of the output; an error unless the inputs fit together.
    fn shape(&self, cx: &Infer<'_>) -> Result<PartialShape, OpError> {
        let (query, key, value) = (cx.dims("query"), cx.dims("key"), cx.dims("value"));
        let last = |dims: Option<&[Dim]>, k: usize| dims.map_or(Dim::ANY, |d| d[d.len() - k]);
        let both = |a: &str, b: &str| format!("`{a}` {} and `{b}` {}", cx.shape(a), cx.shape(b));
        ensure!(
            last(query, 1).intersect(last(key, 1)).is_some(),
            "{} must have the same last dim",
            both("query", "key")
        );
        let of = |dims: Option<&[Dim]>, part: fn(&[Dim]) -> PartialShape| {
            dims.map_or(PartialShape::DYNAMIC, part)
        };
        let mut scores = of(query, rows);
        let mut join = |name: &str, other: &PartialShape| match scores.broadcast(other) {
            Some(joined) => {
                scores = joined;
                Ok(())
            }
            None => Err(OpError::Shape(format!(
                "`{name}` {} must broadcast to the scores {scores}",
                cx.shape(name)
            ))),
        };
        join("key", &of(key, columns))?;
        if self.has_mask(cx.has("attention_mask")) {
            join("attention_mask", cx.shape("attention_mask"))?;
        }
        if cx.has("sink") {
            cx.expect_same("query", "sink")?;
            let one = cx
                .dims("sink")
                .is_none_or(|d| d.last().is_none_or(|n| n.contains(1)));
            ensure!(one, "the last dim of `sink` {} must be 1", cx.shape("sink"));
            join("sink", cx.shape("sink"))?;
        }
        let columns = last(scores.dims(), 1);
        ensure!(
            columns.intersect(last(value, 2)).is_some(),
            "`value` {} must have as many rows as the scores {scores} have columns",
            cx.shape("value")
        );
        // The value broadcasts along the rows of the scores, whose columns make place for its own.
        let out = of(scores.dims(), rows).broadcast(&of(value, values));
        let out = out.ok_or_else(|| {
            let value = cx.shape("value");
            OpError::Shape(format!(
                "the batch dims of `value` {value} and of the scores {scores} must broadcast together"
            ))
        })?;
        countable(out)
    }
}

/// `[b.., n, m]` as `[b.., n, 1]`.
fn rows(dims: &[Dim]) -> PartialShape {
    let mut dims = dims.to_vec();
    if let Some(last) = dims.last_mut() {
        *last = Dim::fixed(1);
    }
    PartialShape::ranked(dims)
}

/// `[b.., n, m]` as `[b.., 1, n]`: the shape of what is transposed and multiplied.
fn columns(dims: &[Dim]) -> PartialShape {
    let mut dims = dims.to_vec();
    if let [.., n, m] = &mut dims[..] {
        (*n, *m) = (Dim::fixed(1), *n);
    }
    PartialShape::ranked(dims)
}

/// `[b.., n, m]` as `[b.., 1, m]`.
fn values(dims: &[Dim]) -> PartialShape {
    let mut dims = dims.to_vec();
    if let [.., n, _] = &mut dims[..] {
        *n = Dim::fixed(1);
    }
    PartialShape::ranked(dims)
}

/// `buffer[at]`, its last dims aligned with those of `at` and stretched.
fn stretched(cx: &Lower<'_>, buffer: BufferId, at: &[Scalar]) -> Scalar {
    widened(read(cx, Broadcast::NUMPY.alignment(false), buffer, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Class, error, f32s, infer, run};
    use vinelift_tensor::Tensor;

    const FREE: &[(&str, &str)] = &[("causal", "false")];
    const CAUSAL: &[(&str, &str)] = &[("causal", "true")];

    /// Scores are the logarithms of small integers, so that weights are simple fractions.
    fn logarithms() -> [Tensor; 3] {
        let query = f32s(&[1, 2, 1], &[1.0, 1.0]);
        let key = f32s(&[1, 2, 1], &[0.0, 3f32.ln()]);
        let value = f32s(&[1, 2, 2], &[4.0, 8.0, 12.0, 0.0]);
        [query, key, value]
    }

    fn near(found: &Tensor, want: &[f64]) {
        let values = found.to_f64_vec().unwrap();
        assert_eq!(values.len(), want.len(), "{found}");
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5 || a.is_nan() && b.is_nan();
        assert!(values.iter().zip(want).all(close), "{values:?}");
    }

    /// By the formula of the specification: the weights are 1/4 and 3/4.
    #[test]
    fn masks_of_every_kind() {
        let of = |attributes, more: &[Tensor]| {
            run(&DEF, attributes, &[&logarithms()[..], more].concat())
        };
        near(&of(FREE, &[]), &[10.0, 2.0, 10.0, 2.0]);
        near(&of(CAUSAL, &[]), &[4.0, 8.0, 10.0, 2.0]);
        let bools = |shape: &[usize], b: &[bool]| Tensor::from_bools(shape, b).unwrap();
        near(&of(FREE, &[bools(&[], &[true])]), &[10.0, 2.0, 10.0, 2.0]);
        near(
            &of(FREE, &[bools(&[2], &[true, false])]),
            &[4.0, 8.0, 4.0, 8.0],
        );
        let mask = bools(&[2, 1], &[false, true]);
        near(
            &of(FREE, std::slice::from_ref(&mask)),
            &[f64::NAN, f64::NAN, 10.0, 2.0],
        );
        near(&of(CAUSAL, &[mask]), &[4.0, 8.0, 10.0, 2.0]);
        let mask = f32s(&[1, 1, 1, 2], &[3f32.ln(), 0.0]);
        let out = of(FREE, &[mask]);
        assert_eq!(out.shape(), [1, 1, 2, 2]);
        near(&out, &[8.0, 4.0, 8.0, 4.0]);
    }

    /// By the formula of the specification; a sink of ln 4 halves the weights.
    #[test]
    fn scale_and_sink() {
        let none = f32s(&[], &[0.0]);
        let of = |scale: Tensor, sink: &[Tensor]| {
            let more = [&[none.clone(), scale], sink].concat();
            run(&DEF, FREE, &[&logarithms()[..], &more].concat())
        };
        near(&of(f32s(&[1], &[0.0]), &[]), &[8.0, 4.0, 8.0, 4.0]);
        let sink = f32s(&[1, 1, 1], &[4f32.ln()]);
        near(&of(f32s(&[], &[1.0]), &[sink]), &[5.0, 1.0, 5.0, 1.0]);
    }

    #[test]
    fn batch_dims_stretch_and_any_dim_may_be_empty() {
        let zeros = |shape: &[usize]| Tensor::zeros(ElementType::F16, shape).unwrap();
        let of = |q: &[usize], k: &[usize], v: &[usize]| {
            run(&DEF, FREE, &[zeros(q), zeros(k), zeros(v)])
        };
        assert_eq!(
            of(&[4, 1, 2, 3], &[5, 6, 3], &[7, 1, 1, 6, 8]).shape(),
            [7, 4, 5, 2, 8]
        );
        assert_eq!(of(&[1, 2, 3], &[1, 0, 3], &[1, 0, 1]), zeros(&[1, 2, 1]));
        assert_eq!(of(&[0, 2, 3], &[1, 4, 3], &[1, 4, 1]).shape(), [0, 2, 1]);
    }

    #[test]
    fn shapes_must_fit() {
        let zeros = |shape: &[usize]| f32s(shape, &vec![0.0; shape.iter().product()]);
        let of = |shapes: &[&[usize]]| {
            let inputs: Vec<Tensor> = shapes.iter().map(|s| zeros(s)).collect();
            error(&DEF, FREE, &inputs)
        };
        let message = "`query` must have rank at least 3, found [2, 3]";
        assert_eq!(of(&[&[2, 3], &[1, 2, 3], &[1, 2, 3]]), message);
        let message = "`query` [1, 2, 3] and `key` [1, 2, 1] must have the same last dim";
        assert_eq!(of(&[&[1, 2, 3], &[1, 2, 1], &[1, 2, 3]]), message);
        let message = "`key` [3, 2, 1] must broadcast to the scores [2, 2, 1]";
        assert_eq!(of(&[&[2, 2, 1], &[3, 2, 1], &[1, 2, 1]]), message);
        let message =
            "`value` [1, 3, 1] must have as many rows as the scores [2, 2, 2] have columns";
        assert_eq!(of(&[&[2, 2, 1], &[1, 2, 1], &[1, 3, 1]]), message);
        let message = "the batch dims of `value` [3, 2, 1] and of the scores [2, 2, 2] must \
                       broadcast together";
        assert_eq!(of(&[&[2, 2, 1], &[1, 2, 1], &[3, 2, 1]]), message);
        let three = [1, 1, 1];
        let message = "`scale` must hold one element, found [2]";
        assert_eq!(of(&[&three, &three, &three, &[], &[2]]), message);
    }

    #[test]
    fn partial_shapes() {
        let of = |shapes: [PartialShape; 4]| {
            let inputs = shapes.map(|s| (ElementType::F32, s, None));
            infer(&DEF, FREE, &inputs).0
        };
        let (any, n) = (Dim::ANY, Dim::fixed);
        let ranked = |dims: &[Dim]| PartialShape::ranked(dims.to_vec());
        let query = ranked(&[n(2), any, n(8), any]);
        let key = ranked(&[n(1), any, any, n(64)]);
        let value = ranked(&[any, n(6), any, n(80)]);
        let mask = ranked(&[any, n(1), any, any]);
        let found = of([query, key.clone(), value.clone(), mask.clone()]);
        assert_eq!(found, "f32[2, 6, 8, 80]");
        let found = of([PartialShape::DYNAMIC, key, value, mask]);
        assert_eq!(found, "f32[...]");
    }

    /// All extents are symbols: the scale of the depth has the bits that its number gives.
    #[test]
    fn a_class_of_shapes() {
        let class = Class::new(&DEF, CAUSAL, &[2, 3, 5, 7, 4], |s| {
            let [b, l, e, n, v] = [s[0], s[1], s[2], s[3], s[4]];
            let shapes = [vec![b, l, e], vec![b, n, e], vec![b, n, v]];
            shapes.map(|shape| (ElementType::F32, shape, None)).to_vec()
        });
        for sizes in [[2, 3, 5, 7, 4], [3, 2, 6, 4, 2], [2, 6, 48, 5, 3]] {
            let [b, l, e, n, v] = sizes;
            let inputs = [[b, l, e], [b, n, e], [b, n, v]].map(|shape| {
                let count = shape.iter().product::<usize>();
                let values = (0..count).map(|k| ((k * k) as f32).sin());
                f32s(&shape, &values.collect::<Vec<_>>())
            });
            let found = class.run(&sizes, &inputs).unwrap();
            assert_eq!(found, [run(&DEF, CAUSAL, &inputs)], "{sizes:?}");
        }
    }
}
