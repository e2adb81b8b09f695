//! The common part of the embedding bags: rows of a table, looked up by `indices` and summed by bag.
//!
//! `out[b, j..] = Σ per_sample_weights[i] * emb_table[indices[i], j..]` over the positions `i` in bag
//! `b`; the mean divides by their number, of integers truncated. A bag without positions gives row
//! `default_index`, which is not weighted, or zeros if there is none or it is -1. An index outside
//! the table is an error, also a negative one; so is a default index that is used.

use crate::error::ensure;
use crate::layout::index_map::{last, within_extent};
use crate::region::counted::between;
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

    if reduction == Reduction::Sum && !cx.has("default_index") {
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
        let default = default_index(cx);
        result(cx, reduction, (count, sum), default, &at[1..])
    });
}

/// Sums where bag `b` is of the positions `starts[b] .. starts[b + 1]` of `indices`, and these come one after the other.
pub(crate) fn lower_ranges(cx: &mut Lower<'_>, reduction: Reduction, starts: BufferId) {
    let out = cx.output(0);
    if cx.extents_of(out).iter().any(|n| *n == 0) {
        return;
    }
    let wide = sum_type(cx.type_of(out), reduction);
    let (positions, extent) = (cx.extents("indices")[0], cx.extents("emb_table")[0]);
    // Checked before they are used, so that the rows of a bag are summed side by side.
    let rows = cx.temporary("rows", ElementType::I64, &[positions]);
    cx.define(rows, |cx, p| {
        let first = cx.load_from(starts, &[index(0)]);
        let row = cx.index("indices", p, extent, Policy::CHECK);
        // Positions in no bag are not even looked up.
        select(p[0].ge(first), row, index(0))
    });
    let defaults = cx.has("default_index").then(|| {
        let bags = cx.extents_of(out)[0];
        let defaults = cx.temporary("defaults", ElementType::I64, &[bags]);
        cx.define(defaults, |cx, b| {
            let [begin, end] = bag(cx, starts, &b[0]);
            let is_used = end.le(begin) & has_default(cx);
            let default = default_index(cx).unwrap_or_else(|| index(0));
            select(is_used, default, index(0))
        });
        defaults
    });
    // Clamped to be known to be inside; of a table without rows none has been found.
    let row_of = |cx: &mut Lower<'_>, rows: BufferId, at: &[Scalar]| match extent == 0 {
        true => cx.wrap(index(0), extent, Policy::CHECK, "indices", at),
        false => cx.load_from(rows, at).max(index(0)).min(last(extent)),
    };
    cx.define(out, |cx, at| {
        let [begin, end] = bag(cx, starts, &at[0]);
        let bounds = [begin.clone(), end.clone()];
        let sum = between(cx, Binary::Add, bounds, positions, &zero(wide), |cx, p| {
            let position = std::slice::from_ref(p);
            let row = row_of(cx, rows, position);
            weighted(cx, position, &[&[row], &at[1..]].concat(), wide)
        });
        let default = defaults.map(|defaults| row_of(cx, defaults, &at[..1]));
        result(cx, reduction, (end - begin, sum), default, &at[1..])
    });
}

/// The positions where bag `b` begins and ends.
fn bag(cx: &Lower<'_>, starts: BufferId, b: &Scalar) -> [Scalar; 2] {
    [b.clone(), b + 1].map(|b| cx.load_from(starts, &[b]))
}

/// The element `rest` of a bag of `count` rows whose sum is `sum`: if there are none, that of row `default`.
fn result(
    cx: &Lower<'_>,
    reduction: Reduction,
    (count, sum): (Scalar, Scalar),
    default: Option<Scalar>,
    rest: &[Scalar],
) -> Scalar {
    let (ty, wide) = (cx.element("emb_table"), sum.ty());
    let value = match (reduction, &default) {
        (Reduction::Sum, None) => return sum.cast(ty),
        (Reduction::Sum, _) => sum,
        (Reduction::Mean, _) => sum / count.clone().max(index(1)).cast(wide),
    };
    let default = default.map(|row| {
        let row = cx.load("emb_table", &[&[row], rest].concat());
        select(has_default(cx), row, zero(ty))
    });
    select(
        count.gt(index(0)),
        value.cast(ty),
        default.unwrap_or_else(|| zero(ty)),
    )
}

/// `per_sample_weights[position] * emb_table[indices[position], rest..]`, of type `wide`.
pub(crate) fn row(
    cx: &mut Lower<'_>,
    position: &[Scalar],
    rest: &[Scalar],
    wide: ElementType,
) -> Scalar {
    let extent = cx.extents("emb_table")[0];
    let index = cx.index("indices", position, extent, Policy::CHECK);
    weighted(cx, position, &[&[index], rest].concat(), wide)
}

/// `per_sample_weights[position] * emb_table[at]`, of type `wide`.
fn weighted(cx: &mut Lower<'_>, position: &[Scalar], at: &[Scalar], wide: ElementType) -> Scalar {
    let compute = cx.element("emb_table").compute();
    let value = cx.load("emb_table", at).cast(compute);
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

/// The row that bags without positions give, to be asked for only where there are such.
fn default_index(cx: &mut Lower<'_>) -> Option<Scalar> {
    if !cx.has("default_index") {
        return None;
    }
    let position = vec![index(0); cx.extents("default_index").len()];
    let extent = cx.extents("emb_table")[0];
    Some(cx.index("default_index", &position, extent, Policy::CHECK))
}

/// Whether that is a row.
fn has_default(cx: &Lower<'_>) -> Scalar {
    let default = cx.load_only("default_index");
    let compute = default.ty().compute();
    default.cast(compute).cast(ElementType::I64).ne(index(-1))
}
