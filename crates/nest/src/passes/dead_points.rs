//! Dead points: elements of temporaries that nothing reads are not computed.
//!
//! > `r[i] = max(0, x[i])` for `i < 28`, read by `y[i] = r[2·i]` for `i < 14`, becomes
//! > `r[i] = max(0, x[2·i])` for `i < 14`, read by `y[i] = r[i]`
//!
//! So the stride of a 1×1 convolution moves to the stages that compute its input, up to the convolution before it. Where only one
//! row of a sequence is used, only that row is computed. Each element that is left is computed as before.

use crate::analysis::{Linear, Ranges, is_proven};
use crate::ir::{
    Axis, AxisId, BufferId, Kind, Nest, Scalar, Stage, build, extents_of_axes, replace_axes,
    rewrite_those, visit_those,
};
use crate::passes::constants::constants;
use crate::passes::simplify::simplify_stage;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use vinelift_tensor::Extent;

#[cfg(test)]
mod tests;

/// Removes the dead points of definitions, from the last to the first, so that points which only removed points read are dead,
/// too. `is_constant` says whether the contents of a buffer are known before the nest runs: definitions of such buffers alone
/// are computed once, and stay.
pub fn dead_points(nest: &mut Nest, is_constant: &dyn Fn(BufferId) -> bool) {
    let defined = defined_once(nest);
    let mut axes = extents_of_axes(nest);
    let mut readers: FxHashMap<BufferId, Readers> = FxHashMap::default();
    // Most nests have no dead points, and need not know.
    let known = OnceCell::new();
    for position in (0..nest.stages.len()).rev() {
        let stage = &nest.stages[position];
        if defined.contains(&stage.target)
            && let Some(readers) = readers.remove(&stage.target)
            && let Some(live) = live_points(nest, stage, &readers)
            // The fault of a dead point must not be lost.
            && !stage.may_fault()
            && !stage.loads().contains(&stage.target)
            && !known
                .get_or_init(|| constants(nest, is_constant))
                .contains(&stage.target)
        {
            keep(nest, position, &live, readers, &mut axes);
        }
        note_loads(nest, position, &defined, &axes, &mut readers);
    }
}

/// The temporaries that one stage defines, and no other writes.
fn defined_once(nest: &Nest) -> FxHashSet<BufferId> {
    let (mut found, mut written) = (FxHashSet::default(), FxHashSet::default());
    for stage in &nest.stages {
        match written.insert(stage.target) && stage.is_definition(nest) {
            true => found.insert(stage.target),
            false => found.remove(&stage.target),
        };
    }
    found
}

/// The stages that load a buffer.
#[derive(Default)]
struct Readers {
    positions: Vec<usize>,
    /// For each dim, the indices of all loads, if these are the same ones and may leave some out.
    indices: Vec<Option<Progression>>,
}

/// For each dim of a definition, the indices of its live points, if others are dead.
type Live = Vec<Option<Progression>>;

/// The indices `step · a + first` for `a < count`.
#[derive(Clone, Copy, PartialEq)]
struct Progression {
    step: i64,
    first: i64,
    count: Extent,
}

impl Progression {
    /// The indices that an expression takes, if it depends on at most one axis of several points, and that axis.
    fn of(
        index: &Scalar,
        axes: &FxHashMap<AxisId, Extent>,
    ) -> Option<(Progression, Option<Scalar>)> {
        let mut form = Linear::of(index);
        let extent = |atom: &Scalar| match atom.kind() {
            Kind::Axis(id) => axes.get(id).copied(),
            _ => None,
        };
        form.terms
            .retain(|(atom, _)| extent(atom).is_none_or(|n| n != 1));
        let first = form.constant;
        match form.terms.as_slice() {
            [] => {
                let (step, count) = (0, Extent::from(1));
                Some((Progression { step, first, count }, None))
            }
            [(atom, step)] if *step > 0 => {
                let (step, count) = (*step, extent(atom)?);
                Some((Progression { step, first, count }, Some(atom.clone())))
            }
            _ => None,
        }
    }

    /// `step · axis + first`
    fn at(self, axis: AxisId) -> Scalar {
        let axis = Linear::atom(&Scalar::axis(axis));
        let mut index = Linear::default().plus(&axis, self.step);
        index.constant = self.first;
        index.into_scalar()
    }

    /// Whether these are fewer indices than those of a dim, and among them.
    fn is_part_of(self, dim: Extent, nest: &Nest, axis: Axis) -> bool {
        let is_less = match (self.count.number(), dim.number()) {
            (Some(count), Some(dim)) => count < dim,
            (_, None) => self.count != dim,
            // A number of points stays a number: what has no symbols may be computed once for all shapes.
            (None, Some(_)) => false,
        };
        let mut ranges = Ranges::new().with_symbols(nest);
        let extent = self.count;
        ranges.bind(&[Axis { extent, ..axis }]);
        is_less && ranges.is_index(&self.at(axis.id), dim)
    }
}

/// Adds the loads of a stage to those known.
fn note_loads(
    nest: &Nest,
    position: usize,
    defined: &FxHashSet<BufferId>,
    axes: &FxHashMap<AxisId, Extent>,
    readers: &mut FxHashMap<BufferId, Readers>,
) {
    let stage = &nest.stages[position];
    for x in stage.at.iter().chain([&stage.value]) {
        visit_those(x, Scalar::loads, &mut |x| {
            let Kind::Load { buffer, at } = x.kind() else {
                return;
            };
            if !defined.contains(buffer) {
                return;
            }
            let dims = at.iter().zip(&nest.buf(*buffer).shape);
            let indices = dims.map(|(index, &dim)| match index.kind() {
                // All of them, as usual.
                _ if dim == 1 => None,
                Kind::Axis(id) if axes.get(id) == Some(&dim) => None,
                _ => Progression::of(index, axes).map(|(found, _)| found),
            });
            let known = readers.entry(*buffer).or_default();
            match known.positions.is_empty() {
                true => known.indices = indices.collect(),
                false => {
                    for (known, index) in known.indices.iter_mut().zip(indices) {
                        *known = known.filter(|known| Some(*known) == index);
                    }
                }
            }
            if known.positions.last() != Some(&position) {
                known.positions.push(position);
            }
        });
    }
}

/// The live points of a definition, if it has dead ones.
fn live_points(nest: &Nest, stage: &Stage, readers: &Readers) -> Option<Live> {
    let dims = stage.domain.iter().zip(&readers.indices);
    let live = dims.map(|(axis, found)| {
        let found = (*found)?;
        found.is_part_of(axis.extent, nest, *axis).then_some(found)
    });
    let live: Live = live.collect();
    live.iter().any(Option::is_some).then_some(live)
}

/// Keeps the live points of the definition at `position` alone, if what it reads then is proven to lie inside.
fn keep(
    nest: &mut Nest,
    position: usize,
    live: &Live,
    readers: Readers,
    axes: &mut FxHashMap<AxisId, Extent>,
) {
    let mut stage = nest.stages[position].clone();
    let target = stage.target;
    let mut by_axis: FxHashMap<AxisId, Scalar> = FxHashMap::default();
    for (axis, live) in stage.domain.iter_mut().zip(live) {
        let Some(live) = live else { continue };
        by_axis.insert(axis.id, live.at(axis.id));
        axis.extent = live.count;
    }
    let at = stage.at.clone();
    replace_axes(&mut stage, &by_axis);
    simplify_stage(&mut stage);
    // It still defines its target: at each point of the domain, the element of the same indices.
    stage.at = at;
    let shape: Vec<Extent> = stage.domain.iter().map(|a| a.extent).collect();
    let before = std::mem::replace(&mut nest.buffers[target.0 as usize].shape, shape);
    if !is_proven(nest, &stage) {
        nest.buffers[target.0 as usize].shape = before;
        return;
    }
    axes.extend(stage.domain.iter().map(|a| (a.id, a.extent)));
    nest.stages[position] = stage;
    for reader in readers.positions {
        renumber(&mut nest.stages[reader], target, live, axes);
    }
}

/// Puts the numbers of live points in place of the indices of all loads of `target`.
fn renumber(stage: &mut Stage, target: BufferId, live: &Live, axes: &FxHashMap<AxisId, Extent>) {
    rewrite_those(stage, Scalar::loads, &mut |x| match x.kind() {
        Kind::Load { buffer, at } if *buffer == target => {
            let dims = at.iter().zip(live);
            let at = dims.map(|(index, live)| match live {
                Some(_) => {
                    let axis = Progression::of(index, axes).and_then(|(_, axis)| axis);
                    axis.unwrap_or_else(|| build::index(0))
                }
                None => index.clone(),
            });
            Scalar::load(*buffer, at.collect(), x.ty())
        }
        _ => x,
    });
}
