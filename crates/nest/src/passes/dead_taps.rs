//! Dead taps: points of a window that never see anything but padding are not summed.
//!
//! > `Σ_{k < 3} select(0 ≤ i + 24·k - 24 < 20, x[i + 24·k - 24], 0) · w[k]` for `i < 20` becomes `Σ_{k < 1} x[i + k] · w[k + 1]`
//!
//! Dilated windows on small pictures are like that. What goes are products of zero with constants, all of which must be finite:
//! with others they would be NaN. A guard over axes with symbols takes away nothing.

use crate::analysis::{self, Linear};
use crate::ir::{Axis, AxisId, Binary, BufferId, Kind, Nest, Scalar, Stage};
use crate::passes::trim_folds::{over_fewer_points, replace_folds};
use rustc_hash::FxHashMap;

/// Takes the dead taps from all sums of products. `constant` gives the bytes of a buffer that is constant.
pub fn dead_taps<'a>(nest: &mut Nest, constant: &dyn Fn(BufferId) -> Option<&'a [u8]>) {
    for mut stage in std::mem::take(&mut nest.stages) {
        if stage.selects() {
            replace_folds(nest, &mut stage, |nest, stage, fold| {
                let live = live_taps(nest, stage, fold, constant)?;
                over_fewer_points(nest, fold, &live)
            });
        }
        nest.stages.push(stage);
    }
}

/// For each axis of a sum of products, from where to where it is not dead, if it is somewhere.
fn live_taps<'a>(
    nest: &Nest,
    stage: &Stage,
    fold: &Scalar,
    constant: &dyn Fn(BufferId) -> Option<&'a [u8]>,
) -> Option<Vec<(i64, i64)>> {
    let Kind::Reduce {
        op: Binary::Add,
        axes,
        init,
        body,
    } = fold.kind()
    else {
        return None;
    };
    let (left, right) = body.as_term()?;
    let (condition, weights) = match (padded(left), padded(right)) {
        (Some(condition), None) => (condition, right),
        (None, Some(condition)) => (condition, left),
        _ => return None,
    };
    let whole: Vec<(i64, i64)> = axes.iter().map(range).collect::<Option<_>>()?;
    let mut bounds = whole.clone();
    let domain = stage
        .domain
        .iter()
        .filter_map(|a| Some((a.id, range(a)?.1)));
    let all = axes.iter().zip(&whole).map(|(a, (_, n))| (a.id, *n));
    let extents: FxHashMap<AxisId, i64> = domain.chain(all).collect();
    for form in Linear::of_conditions(vec![condition.clone()]) {
        for (axis, bounds) in axes.iter().zip(&mut bounds) {
            narrow(&form, axis.id, &extents, bounds);
        }
    }
    let is_empty = bounds.iter().any(|(low, high)| low >= high);
    let fits = init.as_const() == Some(0) && !is_empty && bounds != whole;
    (fits && are_finite(nest, weights, constant)).then_some(bounds)
}

/// The points of an axis, unless its extent has symbols.
fn range(axis: &Axis) -> Option<(i64, i64)> {
    Some((0, i64::try_from(axis.extent.number()?).ok()?))
}

/// The condition under which `x` is not zero, if it is what is there or zero.
fn padded(x: &Scalar) -> Option<&Scalar> {
    match x.kind() {
        Kind::Cast(x) => padded(x),
        Kind::Select(condition, _, no) => (no.as_const() == Some(0)).then_some(condition),
        _ => None,
    }
}

/// Takes from the bounds of an axis where `form` is negative, whatever the other axes are.
fn narrow(
    form: &Linear,
    axis: AxisId,
    extents: &FxHashMap<AxisId, i64>,
    bounds: &mut (i64, i64),
) -> Option<()> {
    let mut most = form.constant;
    let mut along = None;
    for (atom, factor) in &form.terms {
        let Kind::Axis(id) = atom.kind() else {
            return None;
        };
        if *id == axis {
            along = Some(*factor);
            continue;
        }
        let last = extents.get(id)?.checked_sub(1)?;
        most = most.checked_add(factor.checked_mul(last)?.max(0))?;
    }
    analysis::narrow(along?, most, bounds)
}

/// Whether `weights` are elements of a constant of floats, all of which are finite.
fn are_finite<'a>(
    nest: &Nest,
    weights: &Scalar,
    constant: &dyn Fn(BufferId) -> Option<&'a [u8]>,
) -> bool {
    let buffer = match weights.kind() {
        Kind::Cast(inner) => return are_finite(nest, inner, constant),
        Kind::Load { buffer, .. } => *buffer,
        _ => return false,
    };
    let ty = nest.buf(buffer).ty;
    constant(buffer).is_some_and(|numbers| analysis::are_finite(ty, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::ir::parse;
    use vinelift_tensor::ElementType::{BF16, F16, F64};

    /// Windows of three elements, 24 apart, over 20 elements of 2 channels, of which one weight is `weight`.
    fn windows(dilation: i64, weight: f32) -> String {
        let place = format!("((i + (l * {dilation})) - {dilation})");
        let text = format!(
            "input x: f32[2, 20]\ninput w: f32[2, 3]\noutput y: f32[20]\nfor i<20: y[i] = add[k<2, l<3; 0.0]\
             (term(select((({place} >= 0) & ({place} < 20)), x[k, {place}], 0.0), w[k, l]))\n"
        );
        let mut nest = parse(&text).unwrap();
        let mut weights = [1.5f32; 6];
        weights[3] = weight;
        let bytes: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
        let constant = |b: BufferId| (b == BufferId(1)).then_some(&bytes[..]);
        dead_taps(&mut nest, &constant);
        verify(&nest).unwrap();
        nest.stage_texts()[0].clone()
    }

    #[test]
    fn taps_that_see_padding_alone_go() {
        let text = "for i<20: y[i] = add[j<2, k<1; 0.0](term(x[j, i], w[j, 1]))";
        assert_eq!(windows(24, 2.0), text);
        assert_eq!(windows(20, -2.0), text);
    }

    /// One element is under the last tap, or a weight makes NaN of zero.
    #[test]
    fn others_stay() {
        assert!(windows(19, 2.0).contains("k<3"));
        assert!(windows(24, f32::INFINITY).contains("k<3"));
        assert!(windows(24, f32::NAN).contains("k<3"));
    }

    #[test]
    fn numbers_of_all_types_are_finite_or_not() {
        let of = |ty: vinelift_tensor::ElementType, bytes: &[u8]| {
            let mut nest = Nest::new();
            let w = nest.buffer("w", ty, &[1], crate::ir::Role::Input);
            let load = nest.load(w, vec![crate::build::index(0)]);
            are_finite(&nest, &load, &|_| Some(bytes))
        };
        assert!(of(F16, &0x7bff_u16.to_le_bytes()));
        assert!(!of(F16, &0xfc00_u16.to_le_bytes()));
        assert!(of(BF16, &0x7f7f_u16.to_le_bytes()));
        assert!(!of(BF16, &0x7fc0_u16.to_le_bytes()));
        assert!(of(F64, &f64::MAX.to_le_bytes()));
        assert!(!of(F64, &f64::NAN.to_le_bytes()));
        assert!(!of(vinelift_tensor::ElementType::I32, &[0; 4]));
    }
}
