//! The common part of the embedding bags: rows of a table, looked up by `indices` and summed by bag.
//!
//! `out[b, j..] = Σ per_sample_weights[i] * emb_table[indices[i], j..]` over the positions `i` in bag
//! `b`; the mean divides by their number, of integers truncated. A bag without positions gives row
//! `default_index`, which is not weighted, or zeros if there is none or it is -1. An index outside
//! the table is an error, also a negative one; so is a default index that is used.

use crate::error::ensure;
use crate::layout::index_map::within_extent;
use crate::{Infer, Lower, OpError, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, select, zero};
use vinelift_nest::{Binary, BufferId, Mode, Policy, Scalar};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape};

/// The reduction over the rows in a bag.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reduction {
    /// Their weighted sum.
    #[default]
    Sum,
    /// Their mean.
    Mean,
}

/// A result of `bags` rows, having checked `emb_table`, `indices` and the optional inputs.
pub(crate) fn infer(
    cx: &Infer<'_>,
    reduction: Reduction,
    bags: Dim,
) -> Result<Vec<TensorType>, OpError> {
    let numeric = |t: ElementType| t.is_integer() || t.is_float();
    let element = cx.expect("emb_table", "a numeric type", numeric)?;
    cx.expect_integer("indices")?;
    if cx.has("per_sample_weights") {
        ensure!(
            reduction == Reduction::Sum,
            "`per_sample_weights` need reduction sum, found mean"
        );
        cx.expect_same("emb_table", "per_sample_weights")?;
        ensure!(
            cx.shape("per_sample_weights")
                .intersect(cx.shape("indices"))
                .is_some(),
            "`per_sample_weights` {} must have the shape of `indices` {}",
            cx.shape("per_sample_weights"),
            cx.shape("indices")
        );
    }
    let Some(table) = cx.dims("emb_table") else {
        return Ok(vec![TensorType::new(element, PartialShape::DYNAMIC)]);
    };
    ensure!(
        !table.is_empty(),
        "`emb_table` must have rank at least 1, found []"
    );
    let mut dims = table.to_vec();
    dims[0] = bags;
    Ok(vec![TensorType::new(element, PartialShape::ranked(dims))])
}

/// Checks `default_index`, for operators that have one.
pub(crate) fn check_default(cx: &Infer<'_>) -> Result<(), OpError> {
    if !cx.has("default_index") {
        return Ok(());
    }
    cx.expect_integer("default_index")?;
    ensure!(
        cx.length("default_index").is_none_or(|n| n == 1),
        "`default_index` must hold one element, found {}",
        cx.shape("default_index")
    );
    Ok(())
}

/// Sums where position `i` of `indices` is in bag `bag[i]`, or in none if that is outside `0..bags`.
pub(crate) fn lower(cx: &mut Lower<'_>, reduction: Reduction, bag: BufferId) {
    let out = cx.output(0);
    let (ty, shape) = (cx.type_of(out), cx.extents_of(out));
    if shape.iter().any(|n| *n == 0) {
        return;
    }
    let (bags, positions) = (shape[0], cx.extents("indices")[0]);
    let wide = sum_type(ty, reduction);
    let sums = if wide == ty {
        out
    } else {
        cx.temporary("sums", wide, &shape)
    };
    cx.define(sums, |_, _| zero(wide));
    let domain = [&[positions], &shape[1..]].concat();
    cx.stage(&domain, sums, Mode::Combine(Binary::Add), |cx, p| {
        let (position, rest) = p.split_at(1);
        let b = cx.load_from(bag, position);
        // Positions in no bag are not even looked up.
        let row = select(
            within_extent(&b, bags),
            row(cx, position, rest, wide),
            zero(wide),
        );
        ([&[in_bag(cx, b, bags, position)], rest].concat(), row)
    });

    let mean = reduction == Reduction::Mean;
    if !mean && !cx.has("default_index") {
        if sums != out {
            cx.define(out, |cx, at| cx.load_from(sums, at).cast(ty));
        }
        return;
    }
    let counts = cx.temporary("counts", ElementType::I64, &[bags]);
    cx.define(counts, |_, _| index(0));
    cx.stage(
        &[positions],
        counts,
        Mode::Combine(Binary::Add),
        |cx, position| {
            let b = cx.load_from(bag, position);
            (vec![in_bag(cx, b, bags, position)], index(1))
        },
    );
    cx.define(out, |cx, at| {
        let count = cx.load_from(counts, &at[..1]);
        let sum = cx.load_from(sums, at);
        let value = if mean {
            sum / count.max(index(1)).cast(wide)
        } else {
            sum
        };
        select(
            count.gt(index(0)),
            value.cast(ty),
            default_row(cx, &at[1..]),
        )
    });
}

/// `per_sample_weights[position] * emb_table[indices[position], rest..]`, of type `wide`.
pub(crate) fn row(
    cx: &mut Lower<'_>,
    position: &[Scalar],
    rest: &[Scalar],
    wide: ElementType,
) -> Scalar {
    let extent = cx.extents("emb_table")[0];
    let compute = cx.element("emb_table").compute();
    let index = cx.index("indices", position, extent, Policy::CHECK);
    let value = cx
        .load("emb_table", &[&[index], rest].concat())
        .cast(compute);
    if !cx.has("per_sample_weights") {
        return value.cast(wide);
    }
    (value * cx.load("per_sample_weights", position).cast(compute)).cast(wide)
}

/// The type in which rows of `ty` are summed.
pub(crate) fn sum_type(ty: ElementType, reduction: Reduction) -> ElementType {
    match reduction {
        Reduction::Sum => ty.compute(),
        Reduction::Mean => super::scatter::mean_type(ty),
    }
}

/// `bag` as an index whose writes are left out where it is no bag.
fn in_bag(cx: &mut Lower<'_>, bag: Scalar, bags: Extent, position: &[Scalar]) -> Scalar {
    cx.wrap(
        bag,
        bags,
        Policy {
            negative: false,
            zero: true,
        },
        "indices",
        position,
    )
}

fn default_row(cx: &mut Lower<'_>, rest: &[Scalar]) -> Scalar {
    let none = zero(cx.element("emb_table"));
    if !cx.has("default_index") {
        return none;
    }
    let extent = cx.extents("emb_table")[0];
    let position = vec![index(0); cx.extents("default_index").len()];
    let default = cx.load_only("default_index");
    let compute = default.ty().compute();
    let given = default.cast(compute).cast(ElementType::I64).ne(index(-1));
    let index = cx.index("default_index", &position, extent, Policy::CHECK);
    select(
        given,
        cx.load("emb_table", &[&[index], rest].concat()),
        none,
    )
}
