//! Schedules: how a stage runs, decided apart from what it computes.
//!
//! * What guards a load that can read zero becomes part of its index.
//! * The middle of a domain is done apart from its borders, without the guards that only these need, and
//!   folds leave out the points that their guards do. Large windows, and all with weights, read a copy with its
//!   borders filled in.
//! * What is copied and not used any more is changed in place.
//! * Neighbouring dims that no data-dependent index reaches become one: accesses there are offsets.
//! * Neighbouring axes that only ever step together become one; a contiguous copy of any rank ends up
//!   as a single loop. So does an inner axis too short for vectors with the one around it, where the
//!   indices of the points depend on data.

use crate::groups::flatten_buffers;
use crate::interior::split_interiors;
use crate::linear::Linear;
use crate::nest::{Axis, Mode, Nest, Stage};
use crate::parallel;
use crate::range::Ranges;
use crate::reuse::reuse;
use crate::rewrite::{replace_axes, rewrite_those, visit, visit_folds, visit_stage};
use crate::scalar::{AxisId, Kind, Scalar, Wrap};
use crate::simplify::simplify_stage;
use crate::skip::skip_by_index;
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType;

/// Schedules every stage. Buffers that all stages can address by offset become one-dimensional.
pub fn schedule(nest: &mut Nest) {
    reuse(nest);
    let Nest {
        buffers, stages, ..
    } = nest;
    parallel::for_each(stages, |stage| {
        simplify_stage(stage);
        skip_by_index(buffers, stage);
    });
    split_interiors(nest);
    flatten_buffers(nest);
    parallel::for_each(&mut nest.stages, |stage| {
        while let Some((outer, inner)) = joinable(stage).or_else(|| too_short(stage)) {
            join(stage, outer, inner);
        }
        simplify_stage(stage);
    });
}

/// The ranges of all axes of a stage, those of folds included.
pub(crate) fn ranges_of(stage: &Stage) -> Ranges {
    let mut ranges = Ranges::of_stage(stage);
    visit_folds(stage, &mut |x| {
        if let Kind::Reduce { axes, .. } = x.kind() {
            ranges.bind(axes);
        }
    });
    ranges
}

/// The position of an axis of the domain whose inner neighbour can join it: in every linear form
/// the two occur as `n·outer + inner` in proportion, `n` being the inner extent, and nowhere else.
fn joinable(stage: &Stage) -> Option<(usize, usize)> {
    let pairs = first_inner(stage)..stage.domain.len();
    if pairs.is_empty() {
        return None;
    }
    let forms = match stage.wraps() {
        true => forms(&without_positions(stage)),
        false => forms(stage),
    };
    pairs
        .map(|inner| (inner - 1, inner))
        .find(|&(outer, inner)| {
            let (a, b) = (stage.domain[outer], stage.domain[inner]);
            let Ok(extent) = i64::try_from(b.extent) else {
                return false;
            };
            forms
                .iter()
                .all(|form| form.of(b.id).checked_mul(extent) == Some(form.of(a.id)))
        })
}

/// The stage without the positions of indices, which are computed only for messages.
fn without_positions(stage: &Stage) -> Stage {
    let mut stage = stage.clone();
    rewrite_those(&mut stage, Scalar::wraps, &mut |x| match x.kind() {
        Kind::Wrap(w) => Scalar::wrap(Wrap {
            position: Vec::new(),
            ..w.clone()
        }),
        _ => x,
    });
    stage
}

/// The first axis that may join the one around it: the turns that a stage takes with others stay an axis.
fn first_inner(stage: &Stage) -> usize {
    if stage.group.is_some() { 2 } else { 1 }
}

/// The two innermost axes, if the inner is too short for vectors and the points have indices of their own
/// that depend on data: where they go is not known anyway.
fn too_short(stage: &Stage) -> Option<(usize, usize)> {
    const SHORT: usize = 8;
    let inner = stage.domain.len().checked_sub(1)?;
    if inner < first_inner(stage) {
        return None;
    }
    let (a, b) = (stage.domain[inner - 1], stage.domain[inner]);
    let fits = (2..SHORT).contains(&b.extent) && a.extent > 1 && stage.mode == Mode::Set;
    if !fits || !stage.wraps() {
        return None;
    }
    let mut by_point = false;
    visit_stage(stage, &mut |x| {
        if let Kind::Wrap(w) = x.kind() {
            let of_axis = |x: &Scalar| matches!(x.kind(), Kind::Axis(id) if *id == b.id);
            visit(&w.index, &mut |x| by_point |= of_axis(x));
        }
    });
    by_point.then_some((inner - 1, inner))
}

/// How often each axis is in a linear form, if it is.
#[derive(PartialEq)]
struct Weights(Vec<(AxisId, i64)>);

impl Weights {
    fn of(&self, axis: AxisId) -> i64 {
        let known = self.0.iter().find(|(id, _)| *id == axis);
        known.map_or(0, |(_, k)| *k)
    }
}

/// The roots of index arithmetic, every place where a whole linear form is used: what is different of the
/// axes in them.
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
        // Within one linear form the parts are no roots of their own.
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

/// Replaces two axes by one that runs over both.
fn join(stage: &mut Stage, outer: usize, inner: usize) {
    let (a, b) = (stage.domain[outer], stage.domain[inner]);
    // The outer of them goes on as the one.
    let joined = Axis {
        id: a.id,
        extent: a.extent.saturating_mul(b.extent),
    };
    let (whole, extent) = (Scalar::axis(joined.id), b.extent.max(1) as i64);
    // `n·(k / n) + k % n` recombines to `k` everywhere, which `step_together` has made sure of.
    let by: FxHashMap<AxisId, Scalar> = [
        (a.id, &whole / extent),
        (b.id, whole.rem(crate::build::index(extent))),
    ]
    .into_iter()
    .collect();
    replace_axes(stage, &by);
    stage.domain.splice(outer..=inner, [joined]);
    simplify_stage(stage);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::*;
    use crate::nest::Role;
    use vinelift_tensor::ElementType::F32;

    fn scheduled(nest: &mut Nest) -> Vec<String> {
        schedule(nest);
        crate::verify(nest).unwrap();
        nest.stage_texts()
    }

    #[test]
    fn a_contiguous_map_is_one_loop() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[2, 3, 4], Role::Input);
        let y = nest.buffer("y", F32, &[6, 4], Role::Output);
        nest.define(vec![], y, |n, at| {
            n.load(x, vec![&at[0] / 3, at[0].rem(index(3)), at[1].clone()])
                .exp()
        });
        assert_eq!(scheduled(&mut nest), ["for i<24: y[i] = exp(x[i])"]);
    }

    #[test]
    fn the_middle_has_no_guards() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[80], Role::Input);
        let y = nest.buffer("y", F32, &[80], Role::Output);
        nest.define(vec![], y, |n, at| {
            let k = n.axis(3);
            let i = &at[0] + Scalar::axis(k.id) - 1;
            let guard = inside(&i, 0, 80);
            let body = select(guard, n.load(x, vec![i]), zero(F32));
            Scalar::reduce(crate::Binary::Add, vec![k], zero(F32), body)
        });
        assert_eq!(
            scheduled(&mut nest),
            [
                "for i<1: y[0] = add[j<2; 0.0](x[j])",
                "for i<1: y[79] = add[j<2; 0.0](x[(j + 78)])",
                "for i<78: y[(i + 1)] = add[j<3; 0.0](x[(i + j)])",
            ]
        );
    }

    #[test]
    fn only_what_steps_together_joins() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4, 2, 3], Role::Input);
        let y = nest.buffer("y", F32, &[2, 3, 4], Role::Output);
        nest.define(vec![], y, |n, at| {
            n.load(x, vec![at[2].clone(), at[0].clone(), at[1].clone()])
        });
        assert_eq!(
            scheduled(&mut nest),
            ["for i<6, j<4: y[((i * 4) + j)] = x[((j * 6) + i)]"]
        );
        let mut nest = Nest::new();
        let bias = nest.buffer("bias", F32, &[3], Role::Input);
        let y = nest.buffer("y", F32, &[2, 3], Role::Output);
        nest.define(vec![], y, |n, at| n.load(bias, vec![at[1].clone()]));
        assert_eq!(
            scheduled(&mut nest),
            ["for i<2, j<3: y[((i * 3) + j)] = bias[j]"]
        );
    }
}
