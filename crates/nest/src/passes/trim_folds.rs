//! Trimming: a fold loses the points at which its guard fails.
//!
//! > `max[k<3; -inf](select(k - 1 >= 0, x[k - 1], -inf))` is `max[k<2; -inf](x[k])`
//!
//! Where the guard fails, the fold takes in a neutral element, which must change nothing: `0` in a sum that starts from
//! `0`, the lowest number in a `max` that starts from it, and the highest in a `min`.

use crate::analysis;
use crate::analysis::Linear;
use crate::ir::{
    Axis, AxisId, GuardedFold, Kind, Nest, Scalar, Stage, rewrite, substitute, visit_folds,
};
use crate::passes::simplify::simplify_stage;
use rustc_hash::FxHashMap;

/// Leaves out what the guards of a stage's folds leave out.
pub(crate) fn trim_folds(nest: &mut Nest, stage: &mut Stage) {
    replace_folds(nest, stage, |nest, _, fold| trim(nest, fold));
}

/// Puts what `fewer` makes of a fold of the stage, if it makes something, in the fold's place.
pub(super) fn replace_folds(
    nest: &mut Nest,
    stage: &mut Stage,
    fewer: impl Fn(&mut Nest, &Stage, &Scalar) -> Option<Scalar>,
) {
    let mut replaced: Vec<(Scalar, Scalar)> = Vec::new();
    visit_folds(stage, &mut |x| {
        replaced.extend(fewer(nest, stage, x).map(|fold| (x.clone(), fold)));
    });
    for (whole, fold) in &replaced {
        substitute(stage, whole, fold);
    }
    if !replaced.is_empty() {
        simplify_stage(stage);
    }
}

/// The fold over fewer points, if there are any that it can do without.
fn trim(nest: &mut Nest, fold: &Scalar) -> Option<Scalar> {
    let GuardedFold { axes, guard, value } = GuardedFold::of(fold)?;
    if guard.folds() || value.folds() {
        return None;
    }
    let bounds = bounds_of(guard, axes)?;
    let whole = |(axis, (low, high)): (&Axis, &(i64, i64))| {
        *low == 0 && *high == axis.extent.example() as i64
    };
    let is_empty = bounds.iter().any(|(low, high)| low >= high);
    if is_empty || axes.iter().zip(&bounds).all(whole) {
        return None;
    }
    over_fewer_points(nest, fold, &bounds)
}

/// The fold over the points that lie within `bounds`, from where to where for each of its axes.
pub(super) fn over_fewer_points(
    nest: &mut Nest,
    fold: &Scalar,
    bounds: &[(i64, i64)],
) -> Option<Scalar> {
    let Kind::Reduce {
        op,
        axes,
        init,
        body,
    } = fold.kind()
    else {
        return None;
    };
    let mut by_axis: FxHashMap<AxisId, Scalar> = FxHashMap::default();
    let mut fewer = Vec::with_capacity(axes.len());
    for (axis, (low, high)) in axes.iter().zip(bounds) {
        let new = nest.axis(usize::try_from(high - low).ok()?);
        by_axis.insert(axis.id, Scalar::axis(new.id) + *low);
        fewer.push(new);
    }
    let body = rewrite(body, &mut |x| match x.kind() {
        Kind::Axis(id) => by_axis.get(id).cloned().unwrap_or(x),
        _ => x,
    });
    Some(Scalar::reduce(*op, fewer, init.clone(), body))
}

/// For each axis, from where to where `condition` may hold; `None` if an axis has symbols.
fn bounds_of(condition: &Scalar, axes: &[Axis]) -> Option<Vec<(i64, i64)>> {
    let mut bounds: Vec<(i64, i64)> = Vec::with_capacity(axes.len());
    for axis in axes {
        bounds.push((0, i64::try_from(axis.extent.number()?).ok()?));
    }
    for form in Linear::of_conditions(vec![condition.clone()]) {
        narrow(&form, axes, &mut bounds);
    }
    Some(bounds)
}

/// Takes in that `form` is not negative, if that says something about one of the axes alone.
fn narrow(form: &Linear, axes: &[Axis], bounds: &mut [(i64, i64)]) -> Option<()> {
    let [(atom, factor)] = &form.terms[..] else {
        return None;
    };
    let Kind::Axis(id) = atom.kind() else {
        return None;
    };
    let position = axes.iter().position(|axis| axis.id == *id)?;
    analysis::narrow(*factor, form.constant, &mut bounds[position])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::build::*;
    use crate::ir::{Binary, Role};
    use vinelift_tensor::ElementType::F32;

    fn trimmed(op: Binary, neutral: Scalar, shift: i64) -> String {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[3], Role::Input);
        let y = nest.buffer("y", F32, &[1], Role::Output);
        nest.define(vec![], y, |n, _| {
            let k = n.axis(3);
            let i = Scalar::axis(k.id) + shift;
            let body = select(inside(&i, 0, 3), n.load(x, vec![i]), neutral.clone());
            Scalar::reduce(op, vec![k], neutral, body)
        });
        let mut stage = nest.stages.remove(0);
        trim_folds(&mut nest, &mut stage);
        nest.stages.push(stage);
        verify(&nest).unwrap();
        nest.display_stage(&nest.stages[0]).to_string()
    }

    #[test]
    fn what_a_guard_leaves_out_is_no_point() {
        let text = trimmed(Binary::Max, lowest(F32), -1);
        assert_eq!(text, "for i<1: y[0] = max[j<2; -inf](x[j])");
        let text = trimmed(Binary::Max, lowest(F32), 1);
        assert_eq!(text, "for i<1: y[0] = max[j<2; -inf](x[(j + 1)])");
        let text = trimmed(Binary::Add, zero(F32), 1);
        assert_eq!(text, "for i<1: y[0] = add[j<2; 0.0](x[(j + 1)])");
        let text = trimmed(Binary::Add, number(1.0, F32), 1);
        assert!(text.contains("select"), "{text}");
    }
}
