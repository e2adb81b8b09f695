//! Pictures: temporaries one of whose dims are channels.
//!
//! A contraction with constant weights says which dim that is: of its operand, the one that it sums over; of its result, the
//! one that only the weights have. From there it is known of other temporaries, by the axes of the stages that use both.
//! Temporaries that are known by each other change together or not at all.

use super::count;
use crate::analysis::{Contraction, Linear, Numbered, factor, sum_of_products, sums};
use crate::ir::{
    Axis, AxisId, Binary, BufferId, Kind, Nest, Scalar, Stage, extents_of_axes, free_axes,
    visit_accesses,
};
use crate::passes::rearrangeable::rearrangeable;
use petgraph::unionfind::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_tensor::Extent;

/// The least channels that a contraction sums over for channels last to pay: half of a line of the cache.
const LEAST_CHANNELS: usize = 8;

/// The least results of a contraction for a pixel for channels last to pay. Tiles then have rows of pixels and vectors of results;
/// with less than two vectors of these, tiles with vectors of pixels fill more lanes.
const LEAST_RESULTS: usize = 16;

/// The weight of a product of a contraction that gets slower, against 1 for one that gets faster: with few results
/// contractions, as the first of a network, get several times slower, with more of them up to a seventh faster.
const LOSS: i64 = 8;

/// The number of products of bytes that gain as much as one product of floats.
const OF_BYTES: i64 = 16;

/// The number of products of a contraction that gain as much time as it takes to transpose an element.
const TRANSPOSED: i64 = 160;

/// With channels last, a product takes 1/`GAINED` of its time less where all lanes of vectors are results. Where lanes are empty,
/// its time grows as the filled part shrinks.
const GAINED: f64 = 20.0;

/// The number of products, with all lanes filled, that gain as much as one result that the next kernel finds in the cache.
const OF_RESULT: f64 = 240.0;

/// The number of products of a contraction that gain as much time as a point of sums that keep channels apart, as those of a
/// padded depthwise convolution: vectors of channels need no others at the ends of lines.
const OF_WINDOW: i64 = 8;

pub(super) struct Pictures<'a> {
    nest: &'a Nest,
    constants: &'a FxHashSet<BufferId>,
    /// The lanes of a vector of results of contractions.
    lanes: usize,
    /// For each stage, its accesses to temporaries whose dims may be reordered.
    accesses: Vec<Vec<Access>>,
    /// For each stage, whether it is a contraction.
    contracts: Vec<bool>,
    /// The dim of the channels of each temporary that has some.
    channels: FxHashMap<BufferId, usize>,
    /// The groups of temporaries that change together.
    together: UnionFind<u32>,
    /// How many products a contraction gains by the layout of a buffer.
    gains: Vec<(BufferId, i64)>,
    /// The temporaries of which stages say different things.
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
    pub(super) fn of(
        nest: &'a Nest,
        constants: &'a FxHashSet<BufferId>,
        lanes: usize,
    ) -> Pictures<'a> {
        let mut movable = rearrangeable(nest);
        movable.retain(|id| !nest.buf(*id).ty.is_packed() && !constants.contains(id));
        let extents = extents_of_axes(nest);
        let of_stage = |stage: &Stage| Contraction::of(nest, stage).is_some();
        let contracts: Vec<bool> = nest.stages.iter().map(of_stage).collect();
        let accesses = nest.stages.iter().zip(&contracts);
        let accesses =
            accesses.map(|(stage, contracts)| accesses_of(stage, *contracts, &movable, &extents));
        let mut pictures = Pictures {
            nest,
            constants,
            lanes,
            accesses: accesses.collect(),
            contracts,
            channels: FxHashMap::default(),
            together: UnionFind::new(nest.buffers.len()),
            gains: Vec::new(),
            unclear: FxHashSet::default(),
        };
        for at in 0..nest.stages.len() {
            if pictures.contracts[at] {
                pictures.learn_from_contraction(at);
            }
        }
        pictures.spread();
        pictures
    }

    /// For each temporary that gains by having its channels last: their dim.
    pub(super) fn that_pay(mut self) -> FxHashMap<BufferId, usize> {
        let accesses = self.accesses.iter().flatten();
        let is_unclear = |access: &&Access| {
            let dim = self.channels.get(&access.buffer);
            let is_apart = |dim: usize| access.along[dim].is_none() && !access.fixed[dim];
            dim.is_some_and(|dim| is_apart(*dim) && !self.are_last(access.buffer, *dim))
        };
        let unclear: Vec<BufferId> = accesses.filter(is_unclear).map(|a| a.buffer).collect();
        self.unclear.extend(unclear);
        let unclear: FxHashSet<u32> = self.unclear.iter().map(|b| self.group(*b)).collect();
        let mut gains: FxHashMap<u32, i64> = FxHashMap::default();
        let stages = 0..self.nest.stages.len();
        let transposes = stages.clone().filter_map(|stage| self.transpose(stage));
        let folds = stages.clone().filter_map(|stage| self.fold(stage));
        let windows = stages.filter_map(|stage| self.window(stage));
        let contractions = self.gains.iter().copied();
        for (buffer, gain) in contractions.chain(transposes).chain(folds).chain(windows) {
            let total = gains.entry(self.group(buffer)).or_default();
            *total = total.saturating_add(gain);
        }
        let pays = |(buffer, dim): &(BufferId, usize)| {
            let group = self.group(*buffer);
            !self.are_last(*buffer, *dim)
                && !unclear.contains(&group)
                && gains.get(&group).is_some_and(|gain| *gain > 0)
        };
        let channels = self.channels.iter().map(|(buffer, dim)| (*buffer, *dim));
        channels.filter(pays).collect()
    }

    /// Whether the channels of a buffer, its dim `dim`, are last as it is.
    fn are_last(&self, buffer: BufferId, dim: usize) -> bool {
        let inner = &self.nest.buf(buffer).shape[dim + 1..];
        !inner.iter().any(|n| *n > 1)
    }

    fn group(&self, buffer: BufferId) -> u32 {
        self.together.find(buffer.0)
    }

    /// Learns from a contraction, if its weights are constant, which dims of its operand and its result are channels, and
    /// what it gains.
    fn learn_from_contraction(&mut self, at: usize) -> Option<()> {
        let (nest, stage) = (self.nest, &self.nest.stages[at]);
        let Kind::Reduce { axes, body, .. } = sum_of_products(&stage.value)?.kind() else {
            return None;
        };
        let all: Vec<Axis> = stage.domain.iter().chain(axes).copied().collect();
        let (left, right) = body.as_term()?;
        let numbered = Numbered::example(nest);
        let (left, right) = (
            factor(numbered, left, &all)?,
            factor(numbered, right, &all)?,
        );
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
        let products = signed(points(&all)) / LOSS;
        let width = points(results);
        let enough = width >= LEAST_RESULTS;
        let folded = points(axes);
        // Bytes are packed into words of several channels, which takes less where these lie beside each other.
        let is_byte = nest.buf(picture.0.tensor.buffer).ty.bits() == 8;
        for (buffer, found, least) in [
            (picture.0.tensor.buffer, channels, LEAST_CHANNELS),
            (stage.target, result, LEAST_RESULTS),
        ] {
            let Some((dim, extent)) = found else { continue };
            self.assign(buffer, dim);
            let gain = match enough && extent >= least {
                true if is_byte => products / OF_BYTES,
                false if is_byte => continue,
                true => (products as f64 * self.share_that_gains(width, folded)) as i64,
                false => -LOSS * products,
            };
            self.gains.push((buffer, gain));
        }
        Some(())
    }

    /// The share of its products, at most 1, by which a contraction of floats gains whose results for a pixel fill vectors of
    /// [`lanes`](Pictures::lanes) in part; negative if it loses.
    fn share_that_gains(&self, width: usize, folded: usize) -> f64 {
        let fill = width as f64 / width.next_multiple_of(self.lanes) as f64;
        let share = GAINED - (GAINED - 1.0) / fill + OF_RESULT / folded as f64;
        share.min(1.0)
    }

    /// The dim of `buffer` that a stage goes through from end to end along one of these axes, and its extent, if there is just
    /// one such dim of several points.
    fn only_dim(&self, stage: usize, buffer: BufferId, axes: &[&Axis]) -> Option<(usize, usize)> {
        let mut accesses = self.accesses[stage].iter().filter(|a| a.buffer == buffer);
        let dims = accesses.next()?.along.iter().enumerate();
        let mut dims = dims.filter_map(|(dim, along)| {
            let axis = axes.iter().find(|axis| Some(axis.id) == *along)?;
            let extent = axis.extent.example();
            // An axis of a window is shorter than the dim that the window slides along.
            (extent > 1 && self.nest.buf(buffer).shape[dim] == axis.extent).then_some((dim, extent))
        });
        dims.next().filter(|_| dims.next().is_none())
    }

    /// Notes the dim of a buffer's channels; whether the buffer had none.
    fn assign(&mut self, buffer: BufferId, dim: usize) -> bool {
        let known = self.channels.get(&buffer);
        let is_new = known.is_none();
        if known.is_some_and(|known| *known != dim) {
            self.unclear.insert(buffer);
        }
        self.channels.entry(buffer).or_insert(dim);
        is_new
    }

    /// Follows the axes of channels through the stages, from the buffers whose channels are known to others.
    fn spread(&mut self) {
        let mut users: FxHashMap<BufferId, Vec<(usize, usize)>> = FxHashMap::default();
        for (stage, accesses) in self.accesses.iter().enumerate() {
            for (number, access) in accesses.iter().enumerate() {
                users
                    .entry(access.buffer)
                    .or_default()
                    .push((stage, number));
            }
        }
        let mut open: Vec<BufferId> = self.channels.keys().copied().collect();
        open.sort_unstable();
        // A buffer whose channels a stage goes through along an axis: with it those of the others there are known.
        let mut met: FxHashMap<(usize, AxisId), BufferId> = FxHashMap::default();
        while let Some(from) = open.pop() {
            for &(stage, number) in users.get(&from).into_iter().flatten() {
                let access = &self.accesses[stage][number];
                let Some(axis) = self.channel_axis(stage, access) else {
                    continue;
                };
                if let Some(first) = met.insert((stage, axis), from) {
                    self.together.union(from.0, first.0);
                    continue;
                }
                for (to, dim) in self.accessed_along(stage, axis) {
                    self.together.union(from.0, to.0);
                    if self.assign(to, dim) {
                        open.push(to);
                    }
                }
            }
        }
    }

    /// The axis of a stage's domain along which an access goes through channels, if these are known.
    fn channel_axis(&self, stage: usize, access: &Access) -> Option<AxisId> {
        let along = access.along[*self.channels.get(&access.buffer)?]?;
        let mut domain = self.nest.stages[stage].domain.iter();
        domain.any(|axis| axis.id == along).then_some(along)
    }

    /// The buffers, and their dims, that a stage accesses along an axis.
    fn accessed_along(&self, stage: usize, axis: AxisId) -> Vec<(BufferId, usize)> {
        let dim = |access: &Access| access.along.iter().position(|a| *a == Some(axis));
        let accesses = self.accesses[stage].iter();
        accesses
            .filter_map(|access| Some((access.buffer, dim(access)?)))
            .collect()
    }

    /// The picture that a stage folds over as a whole, and the products that this costs: vectors of the fold are of pixels.
    fn fold(&self, at: usize) -> Option<(BufferId, i64)> {
        if self.contracts[at] {
            return None;
        }
        let domain = &self.nest.stages[at].domain;
        let folds = |access: &&Access| {
            let dim = self.channels.get(&access.buffer);
            let is_folded = dim.is_some_and(|dim| access.along[*dim].is_some());
            let is_outer = |axis: AxisId| domain.iter().any(|a| a.id == axis && a.extent > 1);
            is_folded && !access.along.iter().flatten().any(|axis| is_outer(*axis))
        };
        let picture = self.accesses[at].iter().find(folds)?.buffer;
        let shape = self.nest.buf(picture).shape.iter();
        let elements = signed(count(shape.map(|n| n.example())));
        Some((picture, -elements.saturating_mul(TRANSPOSED)))
    }

    /// The picture that a stage sums up products of for each channel, and the products that vectors of channels gain there.
    fn window(&self, at: usize) -> Option<(BufferId, i64)> {
        let stage = &self.nest.stages[at];
        if self.contracts[at] || sums(stage).is_empty() {
            return None;
        }
        let has_channels = |access: &&Access| self.channel_axis(at, access).is_some();
        let picture = self.accesses[at].iter().find(has_channels)?.buffer;
        let points = signed(points(&stage.domain));
        Some((picture, points.saturating_mul(OF_WINDOW)))
    }

    /// The picture that a stage copies to or from a buffer whose channels are not last, and the products that this costs: its
    /// accesses to that buffer are apart from lane to lane. Contractions lose nothing: they pack elements that lie apart.
    fn transpose(&self, at: usize) -> Option<(BufferId, i64)> {
        if self.contracts[at] {
            return None;
        }
        let stage = &self.nest.stages[at];
        let mut accesses = self.accesses[at].iter();
        let (picture, lanes) =
            accesses.find_map(|access| Some((access.buffer, self.channel_axis(at, access)?)))?;
        let mut is_apart = false;
        visit_accesses(stage, &mut |buffer, index| {
            is_apart |= !self.channels.contains_key(&buffer)
                && !self.constants.contains(&buffer)
                && steps_apart(stage, index, lanes);
        });
        let points = signed(points(&stage.domain));
        is_apart.then_some((picture, -points.saturating_mul(TRANSPOSED)))
    }
}

/// How many points axes have together.
fn points<'a>(axes: impl IntoIterator<Item = &'a Axis>) -> usize {
    count(axes.into_iter().map(|axis| axis.extent.example()))
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The accesses of a stage to the buffers that are `movable`. Those of contractions, and to what a stage writes, have no channels
/// in blocks: the groups of a convolution are blocks, too, and vectors get shorter if only these are last.
fn accesses_of(
    stage: &Stage,
    contracts: bool,
    movable: &FxHashSet<BufferId>,
    extents: &FxHashMap<AxisId, Extent>,
) -> Vec<Access> {
    let mut accesses = Vec::new();
    visit_accesses(stage, &mut |buffer, at| {
        if !movable.contains(&buffer) {
            return;
        }
        let along = |index: &Scalar| match contracts || buffer == stage.target {
            true => steps_along(index),
            false => steps_in_blocks(index, extents),
        };
        accesses.push(Access {
            buffer,
            along: at.iter().map(along).collect(),
            fixed: at.iter().map(|index| index.as_index().is_some()).collect(),
        });
    });
    accesses
}

/// Whether an access that depends on an axis steps by more than one element with it: dims further inside depend on other axes.
pub(super) fn steps_apart(stage: &Stage, at: &[Scalar], axis: AxisId) -> bool {
    let mut of_dims = at
        .iter()
        .map(free_axes)
        .skip_while(|axes| !axes.contains(&axis));
    let is_other = |a: &Axis| a.id != axis && a.extent > 1;
    of_dims.any(|axes| {
        let mut domain = stage.domain.iter();
        domain.any(|a| is_other(a) && axes.contains(&a.id))
    })
}

/// The axis that an index steps along, one element for each point, in a block that others choose: `c` of
/// `288 · (2 · (i mod 2) + j mod 2) + c`, as DepthToSpace reads channels.
fn steps_in_blocks(index: &Scalar, extents: &FxHashMap<AxisId, Extent>) -> Option<AxisId> {
    let linear = Linear::of(index);
    let mut steps = linear.terms.iter().filter(|(_, step)| *step == 1);
    let (Some((atom, _)), None) = (steps.next(), steps.next()) else {
        return None;
    };
    let along = axis_of(atom)?;
    let block = extents.get(&along)?.example() as i64;
    let chooses = |(atom, step): &(Scalar, i64)| match atom.kind() {
        Kind::Axis(_) => *step == 1 || block > 0 && step % block == 0,
        Kind::Binary(Binary::Div | Binary::Rem, ..) => true,
        _ => false,
    };
    linear.terms.iter().all(chooses).then_some(along)
}

fn axis_of(atom: &Scalar) -> Option<AxisId> {
    match atom.kind() {
        Kind::Axis(id) => Some(*id),
        _ => None,
    }
}

/// The axis that an index steps along, one element for each point, if it depends on no other.
pub(super) fn steps_along(index: &Scalar) -> Option<AxisId> {
    match Linear::of(index).terms.as_slice() {
        [(atom, 1)] => axis_of(atom),
        _ => None,
    }
}
