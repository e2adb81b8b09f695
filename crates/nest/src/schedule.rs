//! Schedules: how a stage runs, decided apart from what it computes.
//!
//! So far: accesses become offsets into one-dimensional buffers, and neighbouring axes that only
//! ever step together become one. A contiguous copy of any rank ends up as a single loop.

use crate::linear::Linear;
use crate::nest::{Axis, BufferId, Nest, Stage};
use crate::range::Ranges;
use crate::rewrite::{rewrite_stage, visit_stage};
use crate::row_major;
use crate::scalar::{AxisId, Kind, Scalar};
use crate::simplify::{flat_offset, simplify_stage};
use rustc_hash::FxHashMap;
use vinelift_tensor::element_count;

/// Schedules every stage. Buffers that all stages can address by offset become one-dimensional.
pub fn schedule(nest: &mut Nest) {
    for stage in &mut nest.stages {
        simplify_stage(stage);
    }
    flatten_buffers(nest);
    for i in 0..nest.stages.len() {
        let mut stage = nest.stages[i].clone();
        while let Some((outer, inner)) = joinable(&stage) {
            join(nest, &mut stage, outer, inner);
        }
        simplify_stage(&mut stage);
        nest.stages[i] = stage;
    }
}

/// Turns the accesses of every buffer that no data-dependent index reaches into flat offsets. All
/// accesses of a buffer change together, or none does.
fn flatten_buffers(nest: &mut Nest) {
    let mut flat: Vec<bool> = nest
        .buffers
        .iter()
        .map(|b| b.shape.len() > 1 && element_count(&b.shape) != Some(0))
        .collect();
    for stage in &nest.stages {
        let mut ranges = ranges_of(stage);
        let mut check = |buffer: BufferId, at: &[Scalar]| {
            let flat = &mut flat[buffer.0 as usize];
            // A wrap must stay the whole index that it checks, and what is proven only by a guard on
            // one index would not be proven of the sum.
            let shape = &nest.buf(buffer).shape;
            *flat = *flat
                && !at.iter().any(|i| matches!(i.kind(), Kind::Wrap(_)))
                && at
                    .iter()
                    .zip(shape)
                    .all(|(i, &n)| ranges.of(i).is_index_of(n))
                && {
                    let offset = flat_offset(at, &row_major(shape), &mut ranges);
                    ranges
                        .of(&offset)
                        .is_index_of(element_count(shape).unwrap_or(0))
                };
        };
        check(stage.target, &stage.at);
        visit_stage(stage, &mut |x| {
            if let Kind::Load { buffer, at } = x.kind() {
                check(*buffer, at);
            }
        });
    }
    let strides: Vec<Vec<usize>> = nest.buffers.iter().map(|b| row_major(&b.shape)).collect();
    for stage in &mut nest.stages {
        let mut ranges = ranges_of(stage);
        rewrite_stage(stage, &mut |x| match x.kind() {
            Kind::Load { buffer, at } if flat[buffer.0 as usize] => {
                let offset = flat_offset(at, &strides[buffer.0 as usize], &mut ranges);
                Scalar::load(*buffer, vec![offset], x.ty())
            }
            _ => x,
        });
        if flat[stage.target.0 as usize] {
            stage.at = vec![flat_offset(
                &stage.at,
                &strides[stage.target.0 as usize],
                &mut ranges,
            )];
        }
    }
    for (buffer, _) in nest
        .buffers
        .iter_mut()
        .zip(&flat)
        .filter(|(_, flat)| **flat)
    {
        buffer.shape = vec![element_count(&buffer.shape).unwrap_or(0)];
    }
}

/// The ranges of all axes of a stage, those of folds included.
fn ranges_of(stage: &Stage) -> Ranges {
    let mut ranges = Ranges::of_stage(stage);
    visit_stage(stage, &mut |x| {
        if let Kind::Reduce { axes, .. } = x.kind() {
            ranges.bind(axes);
        }
    });
    ranges
}

/// The position of an axis of the domain whose inner neighbour can join it: in every linear form
/// the two occur as `n·outer + inner` in proportion, `n` being the inner extent, and nowhere else.
fn joinable(stage: &Stage) -> Option<(usize, usize)> {
    (1..stage.domain.len())
        .map(|inner| (inner - 1, inner))
        .find(|&(outer, inner)| {
            let (a, b) = (stage.domain[outer], stage.domain[inner]);
            let Ok(extent) = i64::try_from(b.extent) else {
                return false;
            };
            step_together(stage, a.id, b.id, extent)
        })
}

fn step_together(stage: &Stage, a: AxisId, b: AxisId, extent: i64) -> bool {
    let mut fits = true;
    // Roots of index arithmetic: every place where a whole linear form is used.
    let mut root = |x: &Scalar| {
        let form = Linear::of(x);
        let weight = |id: AxisId| {
            form.terms
                .iter()
                .find(|(atom, _)| matches!(atom.kind(), Kind::Axis(i) if *i == id))
                .map_or(0, |(_, k)| *k)
        };
        fits &= weight(b).checked_mul(extent) == Some(weight(a));
    };
    stage.at.iter().for_each(&mut root);
    root(&stage.value);
    visit_stage(stage, &mut |x| {
        // Within one linear form the parts are no roots of their own.
        if !matches!(x.kind(), Kind::Binary(..)) || x.ty() != vinelift_tensor::ElementType::I64 {
            x.children().for_each(&mut root);
        } else {
            for (atom, _) in Linear::of(x).terms {
                if !matches!(atom.kind(), Kind::Axis(_)) {
                    atom.children().for_each(&mut root);
                }
            }
        }
    });
    fits
}

/// Replaces two axes by one that runs over both.
fn join(nest: &mut Nest, stage: &mut Stage, outer: usize, inner: usize) {
    let (a, b) = (stage.domain[outer], stage.domain[inner]);
    let joined: Axis = nest.axis(a.extent.saturating_mul(b.extent));
    let (whole, extent) = (Scalar::axis(joined.id), b.extent.max(1) as i64);
    // `n·(k / n) + k % n` recombines to `k` everywhere, which `step_together` has made sure of.
    let by: FxHashMap<AxisId, Scalar> = [
        (a.id, &whole / extent),
        (b.id, whole.rem(crate::build::index(extent))),
    ]
    .into_iter()
    .collect();
    rewrite_stage(stage, &mut |x| match x.kind() {
        Kind::Axis(id) => by.get(id).cloned().unwrap_or(x),
        _ => x,
    });
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
        nest.stages
            .iter()
            .map(|s| nest.display_stage(s).to_string())
            .collect()
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
