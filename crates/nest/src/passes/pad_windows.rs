//! Padding: a fold over a window that reaches beyond its operand reads a copy with the borders filled in.
//!
//! > `y[i] = max_k select(0 <= i + k - 2 < n, x[i + k - 2], -inf)` is `max_k t[i + k]`, where
//! > `t[j] = select(0 <= j - 2 < n, x[j - 2], -inf)`
//!
//! Without the copy, vectors cover only the interior of a row, and the columns at its borders are computed one by
//! one. With it they cover whole rows. So it is with the borders around the interior where vectors lie along channels, if they are
//! wide or most of the picture, or if extents with symbols do not say where they begin. A stage reads a copy where storing the
//! copy is less work than those points; sums of products always do.

use crate::build::zero;
use crate::ir::{
    Axis, AxisId, Kind, Nest, Scalar, Stage, computes_with, free_axes, substitute, visit_folds,
};
use crate::passes::operand::Operand;

/// From where to where an axis of the domain runs; `None` if its extent has symbols: then over all its points.
pub(super) type Part = Option<(i64, i64)>;

/// Borders of at most this many points along their axis are peeled point by point: where the axis has one value, trimming knows
/// at which points of a fold the guard fails.
pub(super) const MOST_PEELED_SINGLY: i64 = 3;

/// Whether an interior is less than what is around it along an axis.
pub(super) fn is_small(axis: Axis, (low, high): (i64, i64)) -> bool {
    high - low < axis.extent.example() as i64 / 2
}

/// The stage that stores the copy, and the one that reads it, if that pays for the only fold of a stage. `inside` is the box of the
/// domain in which all guards hold.
pub(crate) fn padded(nest: &mut Nest, stage: &Stage, inside: &[Part]) -> Option<(Stage, Stage)> {
    match &folds(stage)[..] {
        [fold] => padded_fold(nest, stage, fold, inside),
        _ => None,
    }
}

/// The same for the first fold for which it pays.
pub(crate) fn padded_first(
    nest: &mut Nest,
    stage: &Stage,
    inside: &[Part],
) -> Option<(Stage, Stage)> {
    let folds = folds(stage);
    folds
        .iter()
        .find_map(|fold| padded_fold(nest, stage, fold, inside))
}

/// The folds of a stage.
fn folds(stage: &Stage) -> Vec<Scalar> {
    let mut folds = Vec::new();
    visit_folds(stage, &mut |x| {
        if matches!(x.kind(), Kind::Reduce { .. }) {
            folds.push(x.clone());
        }
    });
    folds
}

/// The stage that stores the guarded operand of `fold`, and the one that reads it there.
fn padded_fold(
    nest: &mut Nest,
    stage: &Stage,
    fold: &Scalar,
    inside: &[Part],
) -> Option<(Stage, Stage)> {
    let innermost = stage.domain.iter().rposition(|a| a.extent > 1)?;
    let columns = stage.domain[innermost];
    let Kind::Reduce { axes, body, .. } = fold.kind() else {
        return None;
    };
    // The operand that is read with guards, and its factor.
    let is_guarded = |x: &Scalar| matches!(x.kind(), Kind::Select(..));
    let (body, factor) = match body.as_term() {
        Some((a, b)) if is_guarded(a) => (a, Some(b)),
        Some((a, b)) if is_guarded(b) => (b, Some(a)),
        _ if is_guarded(body) => (body, None),
        _ => return None,
    };
    let is_open = inside[innermost].is_none();
    let asks_about_points = || stage.domain.iter().any(|axis| guards(body, axis.id));
    if computes_with(&stage.value, &[columns.id], Some(body)) || is_open && !asks_about_points() {
        return None;
    }
    let turns = axes.iter().map(|a| a.extent.example());
    let guarded = guarded_points(&stage.domain, inside, innermost, body);
    let one_by_one = turns.fold(guarded, usize::saturating_mul);
    let other = factor.cloned().unwrap_or_else(|| zero(body.ty()));
    let operand = Operand::of(body, &other, &stage.domain, axes);
    // A point by itself takes about as long as a vector of the copy. Points of products cannot be left out: whole
    // rows at the edges would have guards.
    if factor.is_none() && one_by_one < operand.elements() / 10 {
        return None;
    }
    let name = format!("{}.padded", nest.buf(stage.target).name);
    let (stored, load) = operand.store(nest, &name, stage, body)?;
    let mut whole = stage.clone();
    substitute(&mut whole, body, &load);
    Some((stored, whole))
}

/// How many points of a domain are computed one by one without a copy, as borders around the interior `inside`, whose guards
/// stay: all, if the guard of `body` asks about an axis that is not peeled.
fn guarded_points(domain: &[Axis], inside: &[Part], innermost: usize, body: &Scalar) -> usize {
    let extents = domain.iter().map(|axis| axis.extent.example());
    let all = extents.fold(1, usize::saturating_mul);
    let mut guarded = 0usize;
    for (d, (axis, part)) in domain.iter().zip(inside).enumerate() {
        let (Some((low, high)), Some(extent)) = (*part, axis.extent.number()) else {
            if guards(body, axis.id) {
                return all;
            }
            continue;
        };
        if is_small(*axis, (low, high)) {
            return all;
        }
        for border in [low, extent as i64 - high] {
            if d == innermost || border > MOST_PEELED_SINGLY {
                guarded = guarded.saturating_add(all / extent * border as usize);
            }
        }
    }
    guarded
}

/// Whether the guard of `body` asks where an axis is, and about nothing that a run computes.
fn guards(body: &Scalar, axis: AxisId) -> bool {
    match body.kind() {
        Kind::Select(condition, ..) => !condition.loads() && free_axes(condition).contains(&axis),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::build::*;
    use crate::ir::{Binary, Role};
    use crate::passes::schedule::schedule;
    use vinelift_tensor::ElementType::F32;
    use vinelift_tensor::{Extent, Formula, Symbol};

    /// `y[i, j] = max_{k, l} x[i + k - pad, j + l - pad]`
    fn window(extent: usize, kernel: usize) -> Vec<String> {
        let mut nest = Nest::new();
        let pad = (kernel / 2) as i64;
        let x = nest.buffer("x", F32, &[extent, extent], Role::Input);
        let y = nest.buffer("y", F32, &[extent, extent], Role::Output);
        nest.define(vec![], y, |n, at| {
            let axes = n.axes(&[kernel, kernel]);
            let place = |d: usize| &at[d] + Scalar::axis(axes[d].id) - pad;
            let (i, j) = (place(0), place(1));
            let n_ = extent as i64;
            let guard = inside(&i, 0, n_) & inside(&j, 0, n_);
            let body = select(guard, n.load(x, vec![i, j]), lowest(F32));
            Scalar::reduce(Binary::Max, axes, lowest(F32), body)
        });
        schedule(&mut nest);
        verify(&nest).unwrap();
        nest.stage_texts()
    }

    #[test]
    fn a_large_window_reads_a_copy() {
        let stages = window(20, 5);
        let last = stages.last().unwrap();
        assert_eq!(
            last,
            "for i<20, j<20: y[((i * 20) + j)] = max[k<5, l<5; -inf](y.padded[((((i * 24) + (k * 24)) + j) + l)])"
        );
        // The middle of the copy is a copy of rows.
        let middle = "for i<20, j<20: y.padded[(((i * 24) + j) + 50)] = x[((i * 20) + j)]";
        assert!(stages.iter().any(|s| s == middle), "{stages:#?}");
        // Even if no point has its whole window inside.
        let last = window(6, 13).pop().unwrap();
        assert!(
            last.starts_with("for i<6, j<6: y") && last.contains("padded"),
            "{last}"
        );
    }

    /// `y[c, i, j] = Σ_{k, l} x[c, i + k - 1, j + l - 1] · w[c, k, l]`
    #[test]
    fn a_sum_of_products_does_as_well() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[2, 20, 20], Role::Input);
        let w = nest.buffer("w", F32, &[2, 3, 3], Role::Input);
        let y = nest.buffer("y", F32, &[2, 20, 20], Role::Output);
        nest.define(vec![], y, |n, at| {
            let axes = n.axes(&[3, 3]);
            let tap = |d: usize| Scalar::axis(axes[d].id);
            let (i, j) = (&at[1] + tap(0) - 1, &at[2] + tap(1) - 1);
            let guard = inside(&i, 0, 20) & inside(&j, 0, 20);
            let x = select(guard, n.load(x, vec![at[0].clone(), i, j]), zero(F32));
            let w = n.load(w, vec![at[0].clone(), tap(0), tap(1)]);
            Scalar::reduce(
                Binary::Add,
                axes,
                zero(F32),
                Scalar::binary(Binary::Term, x, w),
            )
        });
        schedule(&mut nest);
        verify(&nest).unwrap();
        let last = nest.display_stage(nest.stages.last().unwrap()).to_string();
        assert_eq!(
            last,
            "for i<2, j<20, k<20: y[(((i * 400) + (j * 20)) + k)] = add[l<3, m<3; 0.0](term(y.padded[(((((i * 484) + (j * 22)) + (l * 22)) + k) + m)], w[(((i * 9) + (l * 3)) + m)]))"
        );
    }

    /// `y[i, j, c] = max_{k, l} x[i + k - pad, j + l - pad, c]`, where vectors lie along channels: borders of few columns do not
    /// need it, where it is known which these are.
    #[test]
    fn wide_borders_around_channels_do_as_well() {
        let window = |extent: Extent, kernel: usize| {
            let mut nest = Nest::new();
            let shape = [extent, extent, 16.into()];
            let x = nest.buffer("x", F32, &shape, Role::Input);
            let y = nest.buffer("y", F32, &shape, Role::Output);
            nest.define(vec![], y, |n, at| {
                let axes = n.axes(&[kernel, kernel]);
                let place = |d: usize| &at[d] + Scalar::axis(axes[d].id) - (kernel / 2) as i64;
                let (i, j) = (place(0), place(1));
                let within = |i: &Scalar| i.ge(index(0)) & i.lt(Scalar::extent(extent));
                let guard = within(&i) & within(&j);
                let x = n.load(x, vec![i, j, at[2].clone()]);
                Scalar::reduce(
                    Binary::Max,
                    axes,
                    lowest(F32),
                    select(guard, x, lowest(F32)),
                )
            });
            nest.adopt_symbols();
            schedule(&mut nest);
            verify(&nest).unwrap();
            let stages = nest.stage_texts();
            let selects = |stage: &String| stage.contains("max") && stage.contains("select");
            (stages.len(), stages.iter().any(selects))
        };
        assert_eq!(window(20.into(), 9), (6, false));
        assert_eq!(window(20.into(), 13), (6, false));
        assert!(!window(20.into(), 5).1);
        let any = Extent::new(Formula::symbol(Symbol::new(0).unwrap()), 20);
        assert_eq!(window(any, 3), (3, false));
    }

    /// `y[i, j] = Σ_k x[i + k - 1, j] · w[k]`, where it is not known where the border is, and vectors lie along `j`.
    #[test]
    fn lines_of_any_number_and_length() {
        let mut nest = Nest::new();
        let extent = |number| Extent::new(Formula::symbol(Symbol::new(number).unwrap()), 20);
        let shape = [extent(0), extent(1)];
        let x = nest.buffer("x", F32, &shape, Role::Input);
        let w = nest.buffer("w", F32, &[3], Role::Input);
        let y = nest.buffer("y", F32, &shape, Role::Output);
        nest.define(vec![], y, |n, at| {
            let axes = n.axes(&[3]);
            let tap = Scalar::axis(axes[0].id);
            let i = &at[0] + tap.clone() - 1;
            let guard = i.ge(index(0)) & i.lt(Scalar::extent(shape[0]));
            let x = select(guard, n.load(x, vec![i, at[1].clone()]), zero(F32));
            let term = Scalar::binary(Binary::Term, x, n.load(w, vec![tap]));
            Scalar::reduce(Binary::Add, axes, zero(F32), term)
        });
        nest.adopt_symbols();
        schedule(&mut nest);
        verify(&nest).unwrap();
        let last = nest.stage_texts().pop().unwrap();
        let expected = "for i<s0, j<s1: y[i, j] = add[k<3; 0.0](term(y.padded[(i + k), j], w[k]))";
        assert_eq!(last, expected);
    }

    #[test]
    fn a_small_one_does_not() {
        let stages = window(300, 3);
        assert!(!stages.iter().any(|s| s.contains("padded")), "{stages:#?}");
    }
}
