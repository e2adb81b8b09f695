//! `Pad`: `out[i] = data[i - pads_begin]` in each dim; outside of `data` the fill value, the nearest
//! element (`edge`), or its mirror image, with (`symmetric`) or without (`reflect`) the edge itself.
//!
//! Specifications: Pad-1, and Pad-12, where negative pads crop. Mirroring goes no further than the
//! opposite edge.

use super::extent::{countable, grown};
use super::index_map::{extent, last, within_extent};
use crate::attrs::Attributes;
use crate::error::ensure;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use std::cmp::Ordering;
use vinelift_nest::Scalar;
use vinelift_nest::build::{index, select, zero};
use vinelift_tensor::{Dim, ElementType, Extent, Formula, PartialShape, symbols};

pub(crate) static V1: OpDef = pad(&["opset1"], Build::Op(|a| build(a, false)));
pub(crate) static V12: OpDef = pad(&["opset12"], Build::Op(|a| build(a, true)));

const fn pad(versions: &'static [&'static str], build: Build) -> OpDef {
    let names = &["data", "pads_begin", "pads_end", "pad_value"];
    let signature = Signature::new(names).optional(1);
    OpDef {
        name: "Pad",
        versions,
        signature,
        family: Family::Layout,
        build,
    }
}

#[derive(Debug)]
struct Pad {
    mode: Mode,
    crops: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Constant,
    Edge,
    Reflect,
    Symmetric,
}

fn build(attributes: &Attributes<'_>, crops: bool) -> Result<Box<dyn Op>, OpError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Attrs {
        pad_mode: Mode,
    }
    let Attrs { pad_mode } = attributes.parse()?;
    Ok(Box::new(Pad {
        mode: pad_mode,
        crops,
    }))
}

impl Op for Pad {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.element("data");
        if self.mode == Mode::Constant && cx.has("pad_value") {
            cx.expect_same("data", "pad_value")?;
            let value = cx.shape("pad_value");
            let one = value
                .dims()
                .is_none_or(|dims| dims.iter().all(|d| d.contains(1)));
            ensure!(one, "`pad_value` must hold one element, found {value}");
        }
        ensure!(
            self.mode == Mode::Constant || element != ElementType::String,
            "strings can only be padded with a constant"
        );
        let begin = cx.integers("pads_begin")?;
        let end = cx.elements("pads_end")?.map(|end| self.settled(end));
        let ends = end.iter().flatten().map(number);
        let least_end = ends.min().unwrap_or(0);
        let least_begin = begin.iter().flatten().min().copied().unwrap_or(0);
        for (name, least) in [("pads_begin", least_begin), ("pads_end", least_end)] {
            ensure!(
                self.crops || least >= 0,
                "`{name}` must be at least 0, found {least}"
            );
        }
        let shape = match (cx.dims("data"), (begin, end)) {
            (Some(dims), (Some(begin), Some(end))) => {
                let rank = dims.len();
                let found = format!("`pads_begin` {begin:?} and `pads_end` {end:?}");
                ensure!(
                    begin.len() == rank && end.len() == rank,
                    "{found} must have {rank} elements"
                );
                let dim = |(d, (&b, e))| self.dim(dims[d], b, e);
                let dims = begin
                    .iter()
                    .zip(&end)
                    .enumerate()
                    .map(dim)
                    .collect::<Result<_, _>>()?;
                countable(PartialShape::ranked(dims))?
            }
            (Some(dims), _) => PartialShape::any_of_rank(dims.len()),
            _ => cx
                .length("pads_begin")
                .map_or(PartialShape::DYNAMIC, PartialShape::any_of_rank),
        };
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shape = cx.extents("data");
        let begin = cx.integers("pads_begin").unwrap_or_default();
        let end = self.settled(cx.elements("pads_end").unwrap_or_default());
        let end: Vec<i64> = end.iter().map(number).collect();
        cx.define(cx.output(0), |cx, at| {
            let mut guard: Option<Scalar> = None;
            let mut from = Vec::with_capacity(at.len());
            for (d, i) in at.iter().enumerate() {
                let i = if begin[d] == 0 {
                    i.clone()
                } else {
                    i - begin[d]
                };
                if self.mode == Mode::Constant {
                    let low = (begin[d] > 0).then(|| i.ge(index(0)));
                    let high = (end[d] > 0).then(|| i.lt(Scalar::extent(shape[d])));
                    for condition in [low, high].into_iter().flatten() {
                        guard = Some(guard.map_or(condition.clone(), |guard| guard & condition));
                    }
                    from.push(i);
                } else {
                    from.push(self.mirrored(i, shape[d], begin[d] > 0 || end[d] > 0));
                }
            }
            match guard {
                Some(guard) => {
                    let fill = match cx.has("pad_value") {
                        true => cx.load_only("pad_value"),
                        false => zero(cx.element("data")),
                    };
                    if shape.iter().any(|n| *n == 0) {
                        fill
                    } else {
                        select(guard, cx.load("data", &from), fill)
                    }
                }
                None => cx.load("data", &from),
            }
        });
    }
}

/// The number that a pad is at the example.
fn number(pad: &Formula) -> i64 {
    symbols::example(pad).unwrap_or(i64::MIN)
}

impl Pad {
    /// Pads at the end, which keep their symbols where they are positive and filled with a constant: only the extent of the
    /// output tells them.
    fn settled(&self, end: Vec<Formula>) -> Vec<Formula> {
        let settle = |pad: Formula| {
            let is_kept = pad.as_number().is_some()
                || (self.mode == Mode::Constant
                    && symbols::compare(&pad).is_some_and(Ordering::is_gt));
            match is_kept {
                true => pad,
                false => symbols::pin(&pad).map_or(pad, Formula::number),
            }
        };
        end.into_iter().map(settle).collect()
    }

    /// The extent of a dim with its pads.
    fn dim(&self, dim: Dim, begin: i64, end: &Formula) -> Result<Dim, OpError> {
        const FAR: i64 = 1 << 62;
        if let (None, Some(n)) = (end.as_number(), dim.extent()) {
            let sum = n.formula().plus(&Formula::number(begin));
            if let Some(padded) = sum.and_then(|sum| Extent::of(sum.plus(end)?)) {
                return Ok(padded.into());
            }
        }
        let end = symbols::pin(end).unwrap_or(i64::MIN);
        ensure!(
            begin.min(end) >= -FAR,
            "pads {begin} and {end} must be at least {}",
            -FAR
        );
        let padded = grown(dim, i128::from(begin) + i128::from(end));
        let most = match (self.mode, dim.extent()) {
            (Mode::Constant, _) | (_, None) => None,
            // A dim that does not grow is asked nothing.
            _ if begin.max(end) <= 0 => None,
            (Mode::Edge, Some(n)) if n == 0 => Some(n),
            (Mode::Edge, Some(_)) => None,
            (Mode::Reflect, Some(n)) => Some(n.difference(Extent::ONE)),
            (Mode::Symmetric, Some(n)) => Some(n),
        };
        let longest = usize::try_from(begin.max(end)).unwrap_or(0);
        let mode = format!("{:?}", self.mode).to_lowercase();
        if let Some(most) = most {
            ensure!(
                Extent::from(longest).at_most(most),
                "pads {begin} and {end} of mode {mode} must be at most {} for an extent of {dim}",
                most.example()
            );
        }
        Ok(padded)
    }

    /// The index into a dim of `n` elements, for one that may lie outside if the dim `grows`.
    fn mirrored(&self, i: Scalar, n: Extent, grows: bool) -> Scalar {
        if !grows {
            return i;
        }
        let last_but = |few: i64| match n.number() {
            Some(n) => index(extent(n).saturating_mul(2) - few),
            None => Scalar::extent(n.product(2.into())) - few,
        };
        let mirrored = match self.mode {
            Mode::Reflect => {
                let i = i.max(-i.clone());
                i.min(last_but(2) - &i)
            }
            Mode::Symmetric => {
                let i = i.max(index(-1) - &i);
                i.min(last_but(1) - &i)
            }
            _ => i.clone(),
        };
        let mirrored = mirrored.max(index(0)).min(last(n));
        match n.is_symbolic() {
            true => mirrored,
            // The interior is peeled off where this holds, and copied line by line.
            false => select(within_extent(&i, n), i, mirrored),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, i64s, run};
    use vinelift_tensor::Tensor;

    fn pad(mode: &str, begin: [i64; 2], end: [i64; 2]) -> Tensor {
        let data = i32s(&[3, 4], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        run(
            &V12,
            &[("pad_mode", mode)],
            &[data, i64s(&[2], &begin), i64s(&[2], &end)],
        )
    }

    /// The first example of the specification.
    #[test]
    #[rustfmt::skip]
    fn grows() {
        let out = |mode| pad(mode, [0, 1], [2, 3]);
        assert_eq!(out("constant"), i32s(&[5, 8], &[
            0, 1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0, 9, 10, 11, 12, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ]));
        assert_eq!(out("edge"), i32s(&[5, 8], &[
            1, 1, 2, 3, 4, 4, 4, 4, 5, 5, 6, 7, 8, 8, 8, 8, 9, 9, 10, 11, 12, 12, 12, 12,
            9, 9, 10, 11, 12, 12, 12, 12, 9, 9, 10, 11, 12, 12, 12, 12,
        ]));
        assert_eq!(out("reflect"), i32s(&[5, 8], &[
            2, 1, 2, 3, 4, 3, 2, 1, 6, 5, 6, 7, 8, 7, 6, 5, 10, 9, 10, 11, 12, 11, 10, 9,
            6, 5, 6, 7, 8, 7, 6, 5, 2, 1, 2, 3, 4, 3, 2, 1,
        ]));
        assert_eq!(out("symmetric"), i32s(&[5, 8], &[
            1, 1, 2, 3, 4, 4, 3, 2, 5, 5, 6, 7, 8, 8, 7, 6, 9, 9, 10, 11, 12, 12, 11, 10,
            9, 9, 10, 11, 12, 12, 11, 10, 5, 5, 6, 7, 8, 8, 7, 6,
        ]));
    }

    /// The other examples of the specification.
    #[test]
    #[rustfmt::skip]
    fn crops() {
        for mode in ["constant", "edge", "reflect", "symmetric"] {
            assert_eq!(pad(mode, [-1, -1], [-1, -1]), i32s(&[1, 2], &[6, 7]), "{mode}");
        }
        let out = |mode| pad(mode, [2, -1], [-1, 3]);
        assert_eq!(out("constant"), i32s(&[4, 6], &[
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 0, 0, 0, 6, 7, 8, 0, 0, 0,
        ]));
        assert_eq!(out("edge"), i32s(&[4, 6], &[
            2, 3, 4, 4, 4, 4, 2, 3, 4, 4, 4, 4, 2, 3, 4, 4, 4, 4, 6, 7, 8, 8, 8, 8,
        ]));
        assert_eq!(out("reflect"), i32s(&[4, 6], &[
            10, 11, 12, 11, 10, 9, 6, 7, 8, 7, 6, 5, 2, 3, 4, 3, 2, 1, 6, 7, 8, 7, 6, 5,
        ]));
        assert_eq!(out("symmetric"), i32s(&[4, 6], &[
            6, 7, 8, 8, 7, 6, 2, 3, 4, 4, 3, 2, 2, 3, 4, 4, 3, 2, 6, 7, 8, 8, 7, 6,
        ]));
        assert_eq!(pad("constant", [-9, 0], [0, 0]), i32s(&[0, 4], &[]));
        assert_eq!(pad("constant", [-4, -5], [2, 3]), i32s(&[1, 2], &[0, 0]));
    }

    #[test]
    fn the_fill_is_data() {
        let attributes = [("pad_mode", "constant")];
        let pads = || i64s(&[1], &[1]);
        let inputs = [i32s(&[1], &[5]), pads(), pads(), i32s(&[], &[7])];
        assert_eq!(run(&V1, &attributes, &inputs), i32s(&[3], &[7, 5, 7]));
        let inputs = [i32s(&[0], &[]), pads(), pads(), i32s(&[1], &[7])];
        assert_eq!(run(&V12, &attributes, &inputs), i32s(&[2], &[7, 7]));
        let text = |s: &[&str]| {
            Tensor::from_strings(&[s.len()], s.iter().map(|s| s.to_string()).collect()).unwrap()
        };
        let out = run(&V12, &attributes, &[text(&["a"]), pads(), i64s(&[1], &[0])]);
        assert_eq!(out, text(&["", "a"]));
        let empty = run(
            &V12,
            &attributes,
            &[i32s(&[], &[3]), i64s(&[0], &[]), i64s(&[0], &[])],
        );
        assert_eq!(empty, i32s(&[], &[3]));
    }

    #[test]
    fn what_does_not_fit() {
        let message = |def, mode: &str, begin: i64, end: &[i64]| {
            let inputs = [
                i32s(&[2], &[1, 2]),
                i64s(&[1], &[begin]),
                i64s(&[end.len()], end),
            ];
            error(def, &[("pad_mode", mode)], &inputs)
        };
        let want = "pads 2 and 0 of mode reflect must be at most 1 for an extent of 2";
        assert_eq!(message(&V12, "reflect", 2, &[0]), want);
        let want = "pads 0 and 3 of mode symmetric must be at most 2 for an extent of 2";
        assert_eq!(message(&V12, "symmetric", 0, &[3]), want);
        assert_eq!(
            message(&V1, "edge", -1, &[0]),
            "`pads_begin` must be at least 0, found -1"
        );
        let want = "`pads_begin` [0] and `pads_end` [0, 0] must have 1 elements";
        assert_eq!(message(&V12, "edge", 0, &[0, 0]), want);
        let max = i64::MAX;
        let want = "an output of shape [18446744073709551615] is too large";
        assert_eq!(message(&V12, "constant", max, &[max]), want);
        let want = format!(
            "pads {} and {max} must be at least {}",
            i64::MIN,
            -1i64 << 62
        );
        assert_eq!(message(&V12, "constant", i64::MIN, &[max]), want);
        let want = format!("pads {max} and 0 of mode reflect must be at most 1 for an extent of 2");
        assert_eq!(message(&V12, "reflect", max, &[0]), want);
    }
}
