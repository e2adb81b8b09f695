//! Collapse: neighbouring axes of a domain are merged into one loop.
//!
//! > `for i<m, j<n: y[i·n + j] = x[i·n + j]` becomes `for k<m·n: y[k] = x[k]`

use crate::analysis::Linear;
use crate::ir::{
    Axis, AxisId, Kind, Mode, Scalar, Stage, Wrap, replace_axes, rewrite_those, visit, visit_stage,
};
use crate::passes::simplify::simplify_stage;
use rustc_hash::FxHashMap;
use vinelift_tensor::{ElementType, Extent};

/// An axis of fewer points is too short for vectors.
pub(super) const SHORT_AXIS: usize = 8;

/// Collapses neighbouring axes of a stage's domain wherever they can be, and simplifies the stage.
pub(crate) fn collapse_axes(stage: &mut Stage) {
    let mut axes = joinable(stage).or_else(|| too_short(stage));
    if axes.is_none() {
        simplify_stage(stage);
    }
    while let Some((outer, inner)) = axes {
        join(stage, outer, inner);
        axes = joinable(stage).or_else(|| too_short(stage));
    }
}

/// The positions of the first and the last of the outermost neighbours that can be one: in every linear form
/// each two of them occur as `n·outer + inner` in proportion, `n` being the inner extent, and nowhere else.
fn joinable(stage: &Stage) -> Option<(usize, usize)> {
    let pairs = stage.first_inner() + 1..stage.domain.len();
    if pairs.is_empty() {
        return None;
    }
    let forms = match stage.wraps() {
        true => forms(&without_positions(stage)),
        false => forms(stage),
    };
    let is_one = |inner: &usize| {
        let (a, b) = (stage.domain[inner - 1], stage.domain[*inner]);
        let extent = b.extent.number().and_then(|n| i64::try_from(n).ok());
        extent.is_some_and(|extent| {
            let is_step = |form: &Weights| form.of(b.id).checked_mul(extent) == Some(form.of(a.id));
            forms.iter().all(is_step)
        })
    };
    let fits = |outer: &usize, inner: &usize| all_joined(&stage.domain[*outer..=*inner]).is_some();
    let mut inner = pairs
        .filter(is_one)
        .filter(|inner| fits(&(inner - 1), inner));
    let first = inner.next()?;
    let last = (first + 1..stage.domain.len())
        .take_while(|inner| is_one(inner) && fits(&(first - 1), inner))
        .last();
    Some((first - 1, last.unwrap_or(first)))
}

/// The two innermost axes, if the inner is too short for vectors and the points have indices of their own
/// that depend on data: where they go is not known anyway.
fn too_short(stage: &Stage) -> Option<(usize, usize)> {
    let inner = stage.domain.len().checked_sub(1)?;
    if inner <= stage.first_inner() {
        return None;
    }
    let (a, b) = (stage.domain[inner - 1], stage.domain[inner]);
    let is_short = b
        .extent
        .number()
        .is_some_and(|n| (2..SHORT_AXIS).contains(&n));
    let fits = is_short && a.extent > 1 && stage.mode == Mode::Set && joined(a, b).is_some();
    if !fits || !stage.wraps() {
        return None;
    }
    let mut by_point = false;
    visit_stage(stage, &mut |x| {
        if let Kind::Wrap(w) = x.kind() {
            let of_axis = |x: &Scalar| x.is_axis(b.id);
            visit(&w.index, &mut |x| by_point |= of_axis(x));
        }
    });
    by_point.then_some((inner - 1, inner))
}

/// The stage without the positions of indices, which are computed only for messages.
fn without_positions(stage: &Stage) -> Stage {
    let mut stage = stage.clone();
    rewrite_those(&mut stage, Scalar::wraps, &mut |x| match x.kind() {
        Kind::Wrap(w) => Scalar::wrap(Wrap {
            position: Vec::new(),
            ..Wrap::clone(w)
        }),
        _ => x,
    });
    stage
}

/// The axes of a linear form, with their coefficients.
#[derive(PartialEq)]
struct Weights(Vec<(AxisId, i64)>);

impl Weights {
    fn of(&self, axis: AxisId) -> i64 {
        let known = self.0.iter().find(|(id, _)| *id == axis);
        known.map_or(0, |(_, k)| *k)
    }
}

/// The coefficients of the axes in all linear forms of a stage, each different combination once. A linear form here is whole index
/// arithmetic, not a part of a larger sum.
fn forms(stage: &Stage) -> Vec<Weights> {
    let mut forms: Vec<Weights> = Vec::new();
    let mut root = |x: &Scalar| {
        if x.ty() != ElementType::I64 || x.as_const().is_some() {
            return;
        }
        let weight = |(atom, k): &(Scalar, i64)| match atom.kind() {
            Kind::Axis(id) => Some((*id, *k)),
            _ => None,
        };
        let form = Weights(Linear::of(x).terms.iter().filter_map(weight).collect());
        if !form.0.is_empty() && !forms.contains(&form) {
            forms.push(form);
        }
    };
    stage.at.iter().for_each(&mut root);
    root(&stage.value);
    visit_stage(stage, &mut |x| {
        // The summands of a linear form are no forms of their own.
        if !matches!(x.kind(), Kind::Binary(..)) || x.ty() != ElementType::I64 {
            x.children().for_each(&mut root);
        } else {
            for (atom, _) in Linear::of(x).terms {
                if !matches!(atom.kind(), Kind::Axis(_)) {
                    atom.children().for_each(&mut root);
                }
            }
        }
    });
    forms
}

/// One axis that runs over both, of which `b` has a number of points; `None` if there is no formula for its extent.
fn joined(a: Axis, b: Axis) -> Option<Axis> {
    let extent = match (a.extent.number(), b.extent.number()) {
        (Some(outer), Some(inner)) => outer.saturating_mul(inner).into(),
        _ => a.extent.times(b.extent)?,
    };
    let fits = !extent.is_symbolic() || Extent::may_be(extent.example());
    // The outer of them goes on as the one.
    fits.then_some(Axis { id: a.id, extent })
}

/// One axis that runs over all of these, of which those after the first have a number of points.
fn all_joined(axes: &[Axis]) -> Option<Axis> {
    let (first, rest) = axes.split_first()?;
    rest.iter().try_fold(*first, |all, axis| joined(all, *axis))
}

/// Replaces neighbouring axes by one that runs over all of them.
fn join(stage: &mut Stage, outer: usize, inner: usize) {
    let axes = &stage.domain[outer..=inner];
    let Some(joined) = all_joined(axes) else {
        return;
    };
    // `n·(k / n) + k % n` recombines to `k` everywhere, as `joinable` has checked.
    let mut by: FxHashMap<AxisId, Scalar> = FxHashMap::default();
    let mut points = 1i64;
    for (position, axis) in axes.iter().enumerate().rev() {
        let quotient = match points {
            1 => Scalar::axis(joined.id),
            _ => Scalar::axis(joined.id) / points,
        };
        let extent = axis.extent.example().max(1) as i64;
        let place = match position {
            0 => quotient,
            _ => quotient.rem(crate::build::index(extent)),
        };
        by.insert(axis.id, place);
        points = points.saturating_mul(extent);
    }
    replace_axes(stage, &by);
    stage.domain.splice(outer..=inner, [joined]);
    simplify_stage(stage);
}
