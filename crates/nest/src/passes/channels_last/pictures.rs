//! Pictures: temporaries one of whose dims are channels.
//!
//! A contraction with constant weights says which dim that is: of its operand, the one that it sums over; of its result, the
//! one that only the weights have. From there it is known of other temporaries, by the axes of the stages that use both.
//! Temporaries that are known by each other change together or not at all.

use crate::analysis::{Contraction, Linear, factor, sum_of_products};
use crate::ir::{Axis, AxisId, BufferId, Kind, Nest, Role, Scalar, Stage, visit_accesses};
use petgraph::unionfind::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};

/// The least channels that a contraction sums over for whom it pays to have them last: a line of the cache has 16 floats.
const LEAST_CHANNELS: usize = 8;

/// The least channels of its result: tiles have rows of pixels and vectors of these. With less than two vectors, columns of
/// pixels fill more lanes.
const LEAST_RESULTS: usize = 16;

/// How many products a product counts where a contraction loses: with few results it gets several times slower, while it gets
/// a seventh faster where it gains.
const LOSS: i64 = 4;

/// How many products of a contraction it takes to gain what it costs to transpose an element.
const TRANSPOSED: i64 = 160;

pub(super) struct Pictures<'a> {
    nest: &'a Nest,
    constants: &'a FxHashSet<BufferId>,
    /// What each stage accesses of the temporaries whose dims may be reordered.
    accesses: Vec<Vec<Access>>,
    /// The dims of channels.
    channels: FxHashMap<BufferId, usize>,
    /// Those that change together.
    together: UnionFind<u32>,
    /// How many products contractions gain, by the buffer on whose account they do.
    gains: Vec<(BufferId, i64)>,
    /// Those whose channels cannot be told.
    unclear: FxHashSet<BufferId>,
}

/// An access to a temporary.
struct Access {
    buffer: BufferId,
    /// For each dim, the axis that its index steps along.
    along: Vec<Option<AxisId>>,
    /// For each dim, whether its index is a constant.
    fixed: Vec<bool>,
}

impl<'a> Pictures<'a> {
    pub(super) fn of(nest: &'a Nest, constants: &'a FxHashSet<BufferId>) -> Pictures<'a> {
        let movable = movable(nest, constants);
        let accesses = nest.stages.iter().map(|stage| {
            let mut accesses = Vec::new();
            visit_accesses(stage, &mut |buffer, at| {
                if movable.contains(&buffer) {
                    accesses.push(Access {
                        buffer,
                        along: at.iter().map(steps_along).collect(),
                        fixed: at.iter().map(|index| index.as_index().is_some()).collect(),
                    });
                }
            });
            accesses
        });
        let mut pictures = Pictures {
            nest,
            constants,
            accesses: accesses.collect(),
            channels: FxHashMap::default(),
            together: UnionFind::new(nest.buffers.len()),
            gains: Vec::new(),
            unclear: FxHashSet::default(),
        };
        for stage in 0..nest.stages.len() {
            pictures.learn_from_contraction(stage);
        }
        pictures.spread();
        pictures
    }

    /// The dims of the channels of those that gain by having them last.
    pub(super) fn that_pay(mut self) -> FxHashMap<BufferId, usize> {
        let accesses = self.accesses.iter().flatten();
        let is_unclear = |access: &&Access| {
            let dim = self.channels.get(&access.buffer);
            dim.is_some_and(|dim| access.along[*dim].is_none() && !access.fixed[*dim])
        };
        let unclear: Vec<BufferId> = accesses.filter(is_unclear).map(|a| a.buffer).collect();
        self.unclear.extend(unclear);
        let unclear: FxHashSet<u32> = self.unclear.iter().map(|b| self.group(*b)).collect();
        let mut gains: FxHashMap<u32, i64> = FxHashMap::default();
        let transposes = (0..self.nest.stages.len()).flat_map(|stage| self.transposes(stage));
        for (buffer, gain) in self.gains.iter().copied().chain(transposes) {
            let total = gains.entry(self.group(buffer)).or_default();
            *total = total.saturating_add(gain);
        }
        let pays = |(buffer, dim): &(BufferId, usize)| {
            let group = self.group(*buffer);
            let inner = &self.nest.buf(*buffer).shape[dim + 1..];
            inner.iter().any(|n| *n > 1)
                && !unclear.contains(&group)
                && gains.get(&group).is_some_and(|gain| *gain > 0)
        };
        let channels = self.channels.iter().map(|(buffer, dim)| (*buffer, *dim));
        channels.filter(pays).collect()
    }

    fn group(&self, buffer: BufferId) -> u32 {
        self.together.find(buffer.0)
    }

    /// Learns from a stage, if it is a contraction with constant weights, which dims of its operand and its result are
    /// channels, and what it gains.
    fn learn_from_contraction(&mut self, at: usize) -> Option<()> {
        let (nest, stage) = (self.nest, &self.nest.stages[at]);
        Contraction::of(nest, stage)?;
        let Kind::Reduce { axes, body, .. } = sum_of_products(&stage.value)?.kind() else {
            return None;
        };
        let all: Vec<Axis> = stage.domain.iter().chain(axes).copied().collect();
        let (left, right) = body.as_term()?;
        let (left, right) = (factor(nest, left, &all)?, factor(nest, right, &all)?);
        let is_known = |of: &BufferId| self.constants.contains(of);
        let (picture, weights) = match (
            is_known(&left.0.tensor.buffer),
            is_known(&right.0.tensor.buffer),
        ) {
            (false, true) => (left, right),
            (true, false) => (right, left),
            _ => return None,
        };
        let of_picture = |axis: &&Axis| picture.1.step(axis.id) > 0;
        let of_weights = |axis: &&Axis| weights.1.step(axis.id) > 0;
        let sums: Vec<&Axis> = axes.iter().filter(of_picture).collect();
        let results: Vec<&Axis> = stage
            .domain
            .iter()
            .filter(|axis| of_weights(axis) && !of_picture(axis))
            .collect();
        let channels = self.only_dim(at, picture.0.tensor.buffer, &sums);
        let result = self.only_dim(at, stage.target, &results);
        let extents = all.iter().map(|a| a.extent.example());
        let products = extents.fold(1usize, usize::saturating_mul);
        let products = i64::try_from(products).unwrap_or(i64::MAX) / (2 * LOSS);
        let width = results.iter().map(|a| a.extent.example());
        let enough = width.fold(1usize, usize::saturating_mul) >= LEAST_RESULTS;
        for (buffer, found, least) in [
            (picture.0.tensor.buffer, channels, LEAST_CHANNELS),
            (stage.target, result, LEAST_RESULTS),
        ] {
            let Some((dim, extent)) = found else { continue };
            self.assign(buffer, dim);
            let gain = match enough && extent >= least {
                true => products,
                false => -LOSS * products,
            };
            self.gains.push((buffer, gain));
        }
        Some(())
    }

    /// The dim of `buffer`, and its extent, that a stage accesses along one of these axes, if there is just one of several points.
    fn only_dim(&self, stage: usize, buffer: BufferId, axes: &[&Axis]) -> Option<(usize, usize)> {
        let mut accesses = self.accesses[stage].iter().filter(|a| a.buffer == buffer);
        let dims = accesses.next()?.along.iter().enumerate();
        let mut dims = dims.filter_map(|(dim, along)| {
            let axis = axes.iter().find(|axis| Some(axis.id) == *along)?;
            let extent = axis.extent.example();
            // Of the axes of a window, one that is as long as a line is none.
            (extent > 1 && self.nest.buf(buffer).shape[dim] == axis.extent).then_some((dim, extent))
        });
        dims.next().filter(|_| dims.next().is_none())
    }

    /// Notes a dim of channels; whether that is new.
    fn assign(&mut self, buffer: BufferId, dim: usize) -> bool {
        match self.channels.insert(buffer, dim) {
            Some(known) if known != dim => {
                self.channels.insert(buffer, known);
                self.unclear.insert(buffer);
                false
            }
            known => known.is_none(),
        }
    }

    /// Follows the axes of channels through the stages, until nothing new is found.
    fn spread(&mut self) {
        let mut is_new = true;
        while std::mem::take(&mut is_new) {
            for stage in 0..self.accesses.len() {
                for (from, to, dim) in self.links(stage) {
                    let joined = self.together.union(from.0, to.0);
                    is_new |= self.assign(to, dim) | joined;
                }
            }
        }
    }

    /// From buffers whose channels a stage goes through along an axis of its domain to those, and their dims, that it accesses
    /// along the same axis.
    fn links(&self, stage: usize) -> Vec<(BufferId, BufferId, usize)> {
        let (accesses, domain) = (&self.accesses[stage], &self.nest.stages[stage].domain);
        let known = accesses.iter().filter_map(|access| {
            let along = access.along[*self.channels.get(&access.buffer)?]?;
            domain
                .iter()
                .any(|a| a.id == along)
                .then_some((access.buffer, along))
        });
        let mut links = Vec::new();
        for (from, axis) in known {
            for to in accesses {
                let dim = to.along.iter().position(|along| *along == Some(axis));
                links.extend(dim.map(|dim| (from, to.buffer, dim)));
            }
        }
        links
    }

    /// What a stage loses that moves a picture between the layouts, as one does whose other buffers are none, on account of
    /// each picture. Contractions pack what lies apart.
    fn transposes(&self, at: usize) -> Vec<(BufferId, i64)> {
        let stage = &self.nest.stages[at];
        let lanes: Vec<(BufferId, AxisId)> = self
            .links(at)
            .iter()
            .filter_map(|(from, ..)| {
                let access = self.accesses[at].iter().find(|a| a.buffer == *from)?;
                Some((*from, access.along[*self.channels.get(from)?]?))
            })
            .collect();
        let Some(&(picture, lanes)) = lanes.first() else {
            return Vec::new();
        };
        if Contraction::of(self.nest, stage).is_some() {
            return Vec::new();
        }
        let mut apart = false;
        visit_accesses(stage, &mut |buffer, index| {
            let is_picture = self.channels.contains_key(&buffer);
            apart |= !is_picture
                && !self.constants.contains(&buffer)
                && steps_apart(stage, index, lanes);
        });
        let extents = stage.domain.iter().map(|a| a.extent.example());
        let points = extents.fold(1usize, usize::saturating_mul);
        let cost = i64::try_from(points)
            .unwrap_or(i64::MAX)
            .saturating_mul(TRANSPOSED);
        apart.then_some((picture, -cost)).into_iter().collect()
    }
}

/// Whether an access that depends on an axis steps by more than one element with it: dims further inside depend on other axes.
fn steps_apart(stage: &Stage, at: &[Scalar], axis: AxisId) -> bool {
    let depends = |index: &Scalar, on: &dyn Fn(AxisId) -> bool| {
        let mut found = false;
        crate::ir::visit(index, &mut |x| {
            found |= matches!(x.kind(), Kind::Axis(id) if on(*id))
        });
        found
    };
    let others = |id: AxisId| id != axis && stage.domain.iter().any(|a| a.id == id && a.extent > 1);
    let first = at.iter().position(|index| depends(index, &|id| id == axis));
    first.is_some_and(|first| at[first..].iter().any(|index| depends(index, &others)))
}

/// The temporaries whose dims may be reordered: of no constants, and used by stages only that take no turns and have no
/// data-dependent indices.
fn movable(nest: &Nest, constants: &FxHashSet<BufferId>) -> FxHashSet<BufferId> {
    let all = (0..nest.buffers.len() as u32).map(BufferId);
    let mut movable: FxHashSet<BufferId> = all
        .filter(|id| {
            let buffer = nest.buf(*id);
            buffer.role == Role::Temporary
                && buffer.shape.len() >= 2
                && !buffer.ty.is_packed()
                && !constants.contains(id)
        })
        .collect();
    for stage in &nest.stages {
        if stage.group.is_some() || stage.wraps() {
            visit_accesses(stage, &mut |buffer, _| {
                movable.remove(&buffer);
            });
        }
    }
    movable
}

/// The axis that an index steps along, one element for each point, if it depends on no other.
pub(super) fn steps_along(index: &Scalar) -> Option<AxisId> {
    match Linear::of(index).terms.as_slice() {
        [(atom, 1)] => match atom.kind() {
            Kind::Axis(id) => Some(*id),
            _ => None,
        },
        _ => None,
    }
}
