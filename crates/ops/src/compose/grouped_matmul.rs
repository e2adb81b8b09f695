//! `GroupedMatMul`: a matrix product for each group of tokens. By the ranks of the inputs,
//! `out[t, n] = Σ_k a[t, k] · b[g(t), k, n]` (2 and 3), `out[g, m, n] = Σ_k a[g, m, k] · b[g, k, n]` (3
//! and 3), or `out[g, k, n] = Σ a[k, t] · b[t, n]` over the tokens `t` with `g(t) = g` (2 and 2), where
//! `g(t)` is the first group whose offset is beyond `t`.
//!
//! Specification: GroupedMatMul-17. Tokens beyond the last offset belong to no group: their rows are
//! zero. The specification has the dim summed over before the columns of `b`, OpenVINO's shapes have it
//! last. Taken is the one that fits, if both do that of the specification.

use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::countable;
use crate::layout::index_map::last;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, select, zero};
use vinelift_nest::{Binary, BufferId, Mode, Policy, Scalar};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "GroupedMatMul",
    versions: &["opset17"],
    signature: Signature::new(&["mat_a", "mat_b", "offsets"]).optional(1),
    family: Family::Compose,
    build: Build::Op(parse::<GroupedMatMul>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupedMatMul {}

impl Op for GroupedMatMul {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("mat_a", "a numeric type", |t| {
            t.is_integer() || t.is_float()
        })?;
        cx.expect_same("mat_a", "mat_b")?;
        if cx.has("offsets") {
            cx.expect_index("offsets")?;
            cx.expect_rank("offsets", 1)?;
        }
        let (Some(a), Some(b)) = (cx.dims("mat_a"), cx.dims("mat_b")) else {
            return Ok(vec![TensorType::new(element, PartialShape::DYNAMIC)]);
        };
        let both = || {
            format!(
                "`mat_a` {} and `mat_b` {}",
                cx.shape("mat_a"),
                cx.shape("mat_b")
            )
        };
        let grouped = a.len() == 2;
        ensure!(
            matches!((a.len(), b.len()), (2, 3) | (3, 3) | (2, 2)),
            "{} must have ranks 2 and 3, 3 and 3, or 2 and 2",
            both()
        );
        ensure!(
            cx.has("offsets") == grouped,
            "{} {} `offsets`",
            both(),
            if grouped { "need" } else { "do without" }
        );
        let groups = match grouped {
            true => cx.dims("offsets").map_or(Dim::ANY, |d| d[0]),
            false => a[0],
        };
        let groups = match b.len() {
            3 => groups.intersect(b[0]),
            _ => Some(groups),
        };
        let columns = columns(a[a.len() - 1], b[b.len() - 2], b[b.len() - 1]);
        let (Some(groups), Some(columns)) = (groups, columns) else {
            let what = match columns {
                Some(_) => "number of groups",
                None => "dim summed over",
            };
            return Err(OpError::Shape(format!(
                "{} must agree in the {what}",
                both()
            )));
        };
        let dims = match (a.len(), b.len()) {
            (2, 3) => vec![a[0], columns],
            (3, 3) => vec![groups, a[1], columns],
            _ => vec![groups, a[0], columns],
        };
        let shape = countable(PartialShape::ranked(dims))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (a, b) = (cx.extents("mat_a"), cx.extents("mat_b"));
        let depth = a[a.len() - 1];
        let out = cx.output(0);
        let ty = cx.type_of(out);
        let wide = ty.compute();
        // `b` without its groups at row `k` and column `n`.
        let transposed = !b[b.len() - 2].same(depth);
        let cell = |k: &Scalar, n: &Scalar| match transposed {
            false => [k.clone(), n.clone()],
            true => [n.clone(), k.clone()],
        };
        let product = |cx: &mut Lower<'_>, row: &[Scalar], group: &Scalar, n: &Scalar| {
            cx.sum_of_products(&[depth], wide, |cx, k| {
                let b = [std::slice::from_ref(group), &cell(&k[0], n)].concat();
                let a = cx.load("mat_a", &[row, k].concat());
                (widened(a), widened(cx.load("mat_b", &b)))
            })
        };
        match (a.len(), b.len()) {
            (3, 3) => cx.define(out, |cx, at| product(cx, &at[..2], &at[0], &at[2]).cast(ty)),
            (2, 3) if b[0] == 0 => cx.define(out, |_, _| zero(ty)),
            (2, 3) => {
                let groups = groups_of_tokens(cx, a[0]);
                let last = last(b[0]);
                cx.define(out, |cx, at| {
                    let group = cx.load_from(groups, &at[..1]);
                    let clamped = group.min(last.clone()).max(index(0));
                    let product = product(cx, &at[..1], &clamped, &at[1]);
                    select(group.le(last), product, zero(wide)).cast(ty)
                });
            }
            _ => sums_of_tokens(cx, cell),
        }
    }
}

/// For each group, the sum over its tokens of their rows of `mat_a` times those of `mat_b`, of which `cell` gives the place.
fn sums_of_tokens(cx: &mut Lower<'_>, cell: impl Fn(&Scalar, &Scalar) -> [Scalar; 2]) {
    let depth = cx.extents("mat_a")[1];
    let out = cx.output(0);
    let ty = cx.type_of(out);
    let wide = ty.compute();
    let groups = groups_of_tokens(cx, depth);
    let shape = cx.extents_of(out);
    let sums = if wide == ty {
        out
    } else {
        cx.temporary("sums", wide, &shape)
    };
    cx.define(sums, |_, _| zero(wide));
    let domain = [depth, shape[1], shape[2]];
    cx.stage(&domain, sums, Mode::Combine(Binary::Add), |cx, p| {
        let (t, k, n) = (&p[0], &p[1], &p[2]);
        let group = cx.load_from(groups, &p[..1]);
        // Leaves out the tokens that belong to no group.
        let policy = Policy {
            negative: false,
            zero: true,
        };
        let group = cx.wrap(group, shape[0], policy, "offsets", &[]);
        let a = widened(cx.load("mat_a", &[k.clone(), t.clone()]));
        let b = widened(cx.load("mat_b", &cell(t, n)));
        (vec![group, k.clone(), n.clone()], a * b)
    });
    if sums != out {
        cx.define(out, |cx, at| cx.load_from(sums, at).cast(ty));
    }
}

/// The number of columns of `b`, whose last dims are `first` and `second`; `None` if neither fits the
/// dim summed over.
fn columns(depth: Dim, first: Dim, second: Dim) -> Option<Dim> {
    // Then nothing is asked of the other dim.
    if let Some((depth, first)) = depth.extent().zip(first.extent())
        && depth.same(first)
    {
        return Some(second);
    }
    let fits = |dim: Dim| depth.intersect(dim).is_some();
    match (fits(first), fits(second)) {
        (true, false) => Some(second),
        (false, true) => Some(first),
        (true, true) => Some(Dim::between(
            first.min().min(second.min()),
            first.max().zip(second.max()).map(|(a, b)| a.max(b)),
        )),
        (false, false) => None,
    }
}

/// A temporary with the group of each token: the number of offsets that are not beyond it.
fn groups_of_tokens(cx: &mut Lower<'_>, tokens: Extent) -> BufferId {
    let count = cx.extents("offsets");
    let groups = cx.temporary("groups", ElementType::I64, &[tokens]);
    cx.define(groups, |cx, t| {
        cx.reduce(Binary::Add, &count, index(0), |cx, i| {
            let end = cx.load("offsets", i).cast(ElementType::I64);
            select(end.le(t[0].clone()), index(1), index(0))
        })
    });
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Class, error, i32s, i64s, infer, run};
    use vinelift_tensor::Tensor;

    fn counting(shape: &[usize]) -> Tensor {
        let n: usize = shape.iter().product();
        i32s(shape, &(0..n as i32).collect::<Vec<_>>())
    }

    /// Values of NumPy, by the formula of the specification.
    #[test]
    fn tokens_with_the_matrix_of_their_group() {
        let (a, b) = (counting(&[4, 2]), counting(&[3, 2, 1]));
        let of = |offsets: &[i64]| run(&DEF, &[], &[a.clone(), b.clone(), i64s(&[3], offsets)]);
        assert_eq!(of(&[1, 1, 4]), i32s(&[4, 1], &[1, 23, 41, 59]));
        assert_eq!(of(&[2, 3, 3]), i32s(&[4, 1], &[1, 3, 23, 0]));
        let transposed = b.reshaped(&[3, 1, 2]).unwrap();
        let inputs = [a.clone(), transposed, i64s(&[3], &[1, 1, 4])];
        assert_eq!(run(&DEF, &[], &inputs), i32s(&[4, 1], &[1, 23, 41, 59]));
        let inputs = [a, counting(&[0, 2, 1]), i64s(&[0], &[])];
        assert_eq!(run(&DEF, &[], &inputs), i32s(&[4, 1], &[0; 4]));
    }

    /// Values of NumPy, by the formula of the specification.
    #[test]
    fn groups_of_one_size() {
        let (a, b) = (counting(&[2, 1, 2]), counting(&[2, 2, 2]));
        let want = i32s(&[2, 1, 2], &[2, 3, 26, 31]);
        assert_eq!(run(&DEF, &[], &[a, b]), want);
    }

    /// Values of NumPy, by the formula of the specification.
    #[test]
    fn sums_over_the_tokens_of_a_group() {
        let (a, b) = (counting(&[2, 3]), counting(&[3, 1]));
        let inputs = [a, b, i32s(&[3], &[2, 2, 3])];
        let want = i32s(&[3, 2, 1], &[1, 4, 0, 0, 4, 10]);
        assert_eq!(run(&DEF, &[], &inputs), want);
        let half = Tensor::zeros(ElementType::F16, &[2, 3]).unwrap();
        let inputs = [
            half.clone(),
            half.reshaped(&[3, 2]).unwrap(),
            i32s(&[1], &[3]),
        ];
        assert_eq!(run(&DEF, &[], &inputs).shape(), [1, 2, 2]);
    }

    #[test]
    fn what_does_not_fit() {
        let of = |a: &[usize], b: &[usize], offsets: Option<usize>| {
            let mut inputs = vec![counting(a), counting(b)];
            inputs.extend(offsets.map(|n| counting(&[n])));
            error(&DEF, &[], &inputs)
        };
        let message = "`mat_a` [2, 3] and `mat_b` [1, 4, 5] must agree in the dim summed over";
        assert_eq!(of(&[2, 3], &[1, 4, 5], Some(1)), message);
        let message = "`mat_a` [2, 3] and `mat_b` [1, 3, 5] must agree in the number of groups";
        assert_eq!(of(&[2, 3], &[1, 3, 5], Some(2)), message);
        let message = "`mat_a` [2, 3] and `mat_b` [1, 3, 5] need `offsets`";
        assert_eq!(of(&[2, 3], &[1, 3, 5], None), message);
        let message = "`mat_a` [1, 2, 3] and `mat_b` [1, 3, 5] do without `offsets`";
        assert_eq!(of(&[1, 2, 3], &[1, 3, 5], Some(1)), message);
        let message = "`mat_a` [2] and `mat_b` [2] must have ranks 2 and 3, 3 and 3, or 2 and 2";
        assert_eq!(of(&[2], &[2], None), message);
    }

    #[test]
    fn partial_shapes() {
        let of = |a: &[Dim], b: &[Dim]| {
            let ranked = |d: &[Dim]| PartialShape::ranked(d.to_vec());
            let offsets = (ElementType::I64, ranked(&[Dim::fixed(4)]), None);
            let float = |d: &[Dim]| (ElementType::F32, ranked(d), None);
            infer(&DEF, &[], &[float(a), float(b), offsets]).0
        };
        let n = Dim::fixed;
        assert_eq!(of(&[Dim::ANY, n(8)], &[n(4), n(8), n(5)]), "f32[?, 5]");
        assert_eq!(of(&[Dim::ANY, n(5)], &[Dim::ANY, n(8), n(5)]), "f32[?, 8]");
        assert_eq!(of(&[n(2), Dim::ANY], &[n(4), n(8), n(5)]), "f32[2, 5..8]");
        assert_eq!(of(&[n(2), Dim::ANY], &[Dim::ANY, n(7)]), "f32[4, 2, ?]");
    }

    /// Values of NumPy, by the formula of the specification; more tokens are of the same class.
    #[test]
    fn a_class_of_tokens() {
        let class = Class::new(&DEF, &[], &[4, 3, 2, 5], |s| {
            let int = |dims: Vec<Extent>| (ElementType::I32, dims, None);
            let offsets = (ElementType::I64, vec![s[1]], None);
            vec![int(vec![s[0], s[2]]), int(vec![s[1], s[2], s[3]]), offsets]
        });
        for [tokens, groups, depth, columns] in [[4, 3, 2, 5], [9, 2, 3, 7], [2, 4, 6, 2]] {
            let ends: Vec<i64> = (1..=groups as i64).map(|k| 2 * k).collect();
            let inputs = [
                counting(&[tokens, depth]),
                counting(&[groups, depth, columns]),
                i64s(&[groups], &ends),
            ];
            let found = class.run(&[tokens, groups, depth, columns], &inputs);
            let cell = |at: usize| {
                let (t, n) = (at / columns, at % columns);
                let terms = (0..depth).map(|k| {
                    let group = t / 2;
                    (t * depth + k) * ((group * depth + k) * columns + n)
                });
                match t / 2 < groups {
                    true => terms.sum::<usize>() as i32,
                    false => 0,
                }
            };
            let want: Vec<i32> = (0..tokens * columns).map(cell).collect();
            assert_eq!(found, Some(vec![i32s(&[tokens, columns], &want)]));
        }
    }
}
