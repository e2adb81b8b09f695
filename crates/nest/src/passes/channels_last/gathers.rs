//! Gathers: data that a stage reads in several places which other values choose, the same ones for all channels, is stored
//! with its channels last.
//!
//! > `y[c, k] = x[c, p[k]] + x[c, q[k]]` becomes `s[i, c] = x[c, i]`, `t[k, c] = s[p[k], c] + s[q[k], c]` and `y[c, k] = t[k, c]`
//!
//! Vectors of channels are loaded at once, where those of places are put together element by element. Operators that mix
//! neighbours of computed points do so: GridSample, ROIAlign.

#[cfg(test)]
mod tests;

use super::apart::{LEAST_CHANNELS, store, store_apart};
use super::pictures::steps_along;
use super::{count, moved_last, transpose};
use crate::build;
use crate::ir::{
    Axis, AxisId, BufferId, FoldBounds, Kind, Nest, Scalar, Stage, free_axes, rewrite,
    rewrite_those, visit_folds, visit_those,
};
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_tensor::Extent;

/// The most points of folds that are unrolled: the samples of a bin of ROIAlign are 2·2 or 4·4, if their number is fixed.
const MOST_UNROLLED: usize = 16;

/// How many points of a fold between bounds to expect.
const USUAL_POINTS: usize = 2;

/// Stores what stages gather with its channels last, where more is gathered than that.
pub fn gathered_channels_last(nest: &mut Nest) {
    let mut stored: FxHashMap<(BufferId, usize), BufferId> = FxHashMap::default();
    for mut stage in std::mem::take(&mut nest.stages) {
        let target = stage.target;
        if let Some(gathers) = Gathers::of(nest, &stage).filter(|g| g.pay(nest, &stage, &stored)) {
            unroll_folds(&mut stage);
            if store_guards(nest, &mut stage, gathers.channels) {
                keep_inside(nest, &mut stage, &gathers.data);
            }
            for (buffer, dim) in gathers.data {
                let known = stored.entry((buffer, dim));
                let moved = *known.or_insert_with(|| transpose(nest, &stage, buffer, dim));
                rewrite_those(&mut stage, Scalar::loads, &mut |x| match x.kind() {
                    Kind::Load { buffer: b, at } if *b == buffer => {
                        let shape = &nest.buf(buffer).shape;
                        Scalar::load(moved, moved_last(&inside(at, shape), dim), x.ty())
                    }
                    _ => x,
                });
            }
            store_apart(nest, stage, gathers.channels);
        } else {
            nest.stages.push(stage);
        }
        stored.retain(|(buffer, _), _| *buffer != target);
    }
}

/// The loads of a stage whose places other values choose, the same ones for all channels.
struct Gathers {
    /// The axis of the channels.
    channels: Axis,
    /// The data, and the dims of its channels.
    data: Vec<(BufferId, usize)>,
    /// How many elements each point reads.
    reads: usize,
}

impl Gathers {
    fn of(nest: &Nest, stage: &Stage) -> Option<Gathers> {
        let is_plain =
            !stage.at.iter().any(Scalar::loads) && !nest.buf(stage.target).ty.is_packed();
        if !stage.is_unordered() || !is_plain {
            return None;
        }
        let (_, outer) = stage.domain.split_last()?;
        outer
            .iter()
            .find_map(|axis| Gathers::along(nest, stage, *axis))
    }

    /// The gathers of a stage in which `channels` is the axis of the channels; `None` if a load that is no gather would step by
    /// more than one element with that axis.
    fn along(nest: &Nest, stage: &Stage, channels: Axis) -> Option<Gathers> {
        if channels.extent.example() < LEAST_CHANNELS {
            return None;
        }
        let mut dims: FxHashMap<BufferId, Option<usize>> = FxHashMap::default();
        let mut is_clear = true;
        let mut gathered = FxHashSet::default();
        let bounded = bounded_axes(stage);
        visit_those(&stage.value, Scalar::loads, &mut |x| {
            let Kind::Load { buffer, at } = x.kind() else {
                return;
            };
            match Place::of(at, channels.id, &bounded) {
                Place::Apart => {}
                Place::Unclear => is_clear = false,
                place => {
                    let dim = match place {
                        Place::Gathered(dim) => Some(dim),
                        _ => None,
                    };
                    is_clear &= *dims.entry(*buffer).or_insert(dim) == dim;
                    if dim.is_some() {
                        gathered.insert(x.address());
                    }
                }
            }
        });
        let data = dims
            .into_iter()
            .filter_map(|(buffer, dim)| Some((buffer, dim?)));
        let mut data: Vec<(BufferId, usize)> = data.collect();
        data.sort_unstable();
        let is_suited = |(buffer, _): &(BufferId, usize)| {
            let buffer = nest.buf(*buffer);
            !buffer.ty.is_packed() && buffer.shape.iter().all(|n| *n > 0)
        };
        let found = is_clear && !data.is_empty() && data.iter().all(is_suited);
        let points = points_of_folds(stage).filter(|_| found)?;
        let in_bounds = bounded.iter().map(|_| USUAL_POINTS);
        Some(Gathers {
            channels,
            data,
            reads: gathered
                .len()
                .saturating_mul(points)
                .saturating_mul(count(in_bounds)),
        })
    }

    /// Whether more is gathered than has to be stored before and after it, unless it is `stored` already.
    fn pay(
        &self,
        nest: &Nest,
        stage: &Stage,
        stored: &FxHashMap<(BufferId, usize), BufferId>,
    ) -> bool {
        let results = count(stage.domain.iter().map(|axis| axis.extent.example()));
        let new = self.data.iter().filter(|data| !stored.contains_key(data));
        let stores = new.fold(results, |stores, (buffer, _)| {
            let shape = &nest.buf(*buffer).shape;
            stores.saturating_add(count(shape.iter().map(|n| n.example())))
        });
        results.saturating_mul(self.reads) >= stores
    }
}

/// Where the channels are in the index of a load.
enum Place {
    /// It does not depend on them.
    Apart,
    /// In the last dim.
    Last,
    /// In this dim; the last one is chosen by other values, or is the axis of a fold between bounds.
    Gathered(usize),
    Unclear,
}

impl Place {
    fn of(at: &[Scalar], channels: AxisId, bounded: &[AxisId]) -> Place {
        let mut of_channels = at
            .iter()
            .enumerate()
            .filter(|(_, index)| free_axes(index).contains(&channels));
        match (of_channels.next(), of_channels.next()) {
            (None, _) => Place::Apart,
            (Some((dim, index)), None) if steps_along(index) == Some(channels) => {
                match at.split_last() {
                    Some((_, outer)) if outer.len() == dim => Place::Last,
                    Some((last, _))
                        if last.loads() || bounded.iter().any(|axis| last.is_axis(*axis)) =>
                    {
                        Place::Gathered(dim)
                    }
                    _ => Place::Unclear,
                }
            }
            _ => Place::Unclear,
        }
    }
}

/// The axes of the folds between bounds.
fn bounded_axes(stage: &Stage) -> Vec<AxisId> {
    let mut axes = Vec::new();
    visit_folds(stage, &mut |x| {
        axes.extend(FoldBounds::of(x).map(|bounds| bounds.axis.id));
    });
    axes
}

/// Unrolls all folds but those between bounds; [`points_of_folds`] has found that they have few points. What is gathered at each
/// point then has a guard and an index of its own, which do not change along the channels.
fn unroll_folds(stage: &mut Stage) {
    rewrite_those(stage, Scalar::folds, &mut |x| {
        let Kind::Reduce {
            op,
            axes,
            init,
            body,
        } = x.kind()
        else {
            return x;
        };
        if FoldBounds::of(&x).is_some() {
            return x;
        }
        points_of(axes).iter().fold(init.clone(), |sum, point| {
            let by_axis: FxHashMap<AxisId, &Scalar> =
                axes.iter().map(|axis| axis.id).zip(point).collect();
            let value = rewrite(body, &mut |x| match x.kind() {
                Kind::Axis(id) => by_axis.get(id).map_or(x.clone(), |value| (*value).clone()),
                _ => x,
            });
            let [a, b] = op.fold_operands(value.ty(), sum, value.clone());
            Scalar::binary(*op, a, b)
        })
    });
}

/// All points of these axes, of which the extents are numbers, in row-major order.
fn points_of(axes: &[Axis]) -> Vec<Vec<Scalar>> {
    axes.iter().fold(vec![Vec::new()], |points, axis| {
        let values = 0..axis.extent.example() as i64;
        let with = |point: &Vec<Scalar>| {
            let point = point.clone();
            values.clone().map(move |value| {
                let mut point = point.clone();
                point.push(build::index(value));
                point
            })
        };
        points.iter().flat_map(with).collect()
    })
}

/// Stores the guards of what a stage gathers, which are the same for all channels: whole vectors are read whether or not they
/// hold, by an index that is in range, and chosen afterwards. A guard that is computed where the index is would let the index go
/// out of range where it does not hold. Returns whether there are any.
fn store_guards(nest: &mut Nest, stage: &mut Stage, channels: Axis) -> bool {
    let mut outer = stage.domain.clone();
    outer.retain(|axis| axis.id != channels.id);
    let is_outer = |id: &AxisId| outer.iter().any(|axis| axis.id == *id);
    let mut guards: Vec<(Scalar, BufferId)> = Vec::new();
    let mut seen = FxHashSet::default();
    let mut open = vec![stage.value.clone()];
    while let Some(x) = open.pop() {
        if !x.selects() || !seen.insert(x.address()) {
            continue;
        }
        match x.kind() {
            Kind::Select(guard, yes, no) => {
                let is_new = !guards.iter().any(|(known, _)| known == guard);
                let is_of_data = guard.loads() && (yes.loads() || no.loads());
                if is_new && is_of_data && free_axes(guard).iter().all(is_outer) {
                    let mask = store(nest, stage, "guard", guard.clone(), &outer);
                    guards.push((guard.clone(), mask));
                }
            }
            _ => open.extend(x.children().cloned()),
        }
    }
    let at: Vec<Scalar> = outer.iter().map(|axis| Scalar::axis(axis.id)).collect();
    rewrite_those(stage, Scalar::selects, &mut |x| match x.kind() {
        Kind::Select(guard, yes, no) => match guards.iter().find(|(known, _)| known == guard) {
            Some((_, mask)) => {
                Scalar::select(nest.load(*mask, at.clone()), yes.clone(), no.clone())
            }
            None => x,
        },
        _ => x,
    });
    !guards.is_empty()
}

/// Keeps what else is loaded at places that other values choose in range, such as an operand that is the same for all channels: its
/// guard may have been stored, too.
fn keep_inside(nest: &Nest, stage: &mut Stage, data: &[(BufferId, usize)]) {
    rewrite_those(stage, Scalar::loads, &mut |x| match x.kind() {
        Kind::Load { buffer, at }
            if at.iter().any(Scalar::loads) && data.iter().all(|(b, _)| b != buffer) =>
        {
            Scalar::load(*buffer, inside(at, &nest.buf(*buffer).shape), x.ty())
        }
        _ => x,
    });
}

/// The index with each of its parts that other values choose in range, so that it may be read whether or not its guard holds.
fn inside(at: &[Scalar], shape: &[Extent]) -> Vec<Scalar> {
    let dims = at.iter().zip(shape);
    let last = |extent: &Extent| match extent.number() {
        Some(n) => build::index(n as i64 - 1),
        None => Scalar::extent(*extent) - 1,
    };
    let dims = dims.map(|(index, extent)| match index.loads() {
        true => index.max(build::index(0)).min(last(extent)),
        false => index.clone(),
    });
    dims.collect()
}

/// The product of the points of all folds of a stage but those between bounds, 1 without one; `None` if that is too many to
/// unroll, or if one is a sum of products or has an extent with symbols.
fn points_of_folds(stage: &Stage) -> Option<usize> {
    let mut points = Some(1usize);
    visit_folds(stage, &mut |x| {
        if let Kind::Reduce { axes, body, .. } = x.kind()
            && FoldBounds::of(x).is_none()
        {
            let mut extents = axes.iter().map(|axis| axis.extent.number());
            let own = extents.try_fold(1usize, |n, extent| n.checked_mul(extent?));
            let own = own.filter(|_| body.as_term().is_none());
            points = points.zip(own).and_then(|(all, own)| all.checked_mul(own));
        }
    });
    points.filter(|points| *points <= MOST_UNROLLED)
}
