//! Long folds along memory, as partial folds that run side by side.
//!
//! > `op_k x[k] = op_l t[l]`, where `t[l] = op_j x[j·L + l]` for `l < L`
//!
//! In a fold each point waits for the one before it. Where the points are neighbours in memory, [`lanes`] partial
//! folds run side by side, and memory is read in whole vectors. This order defines the result, for the interpreter
//! as well; sums get more accurate.
//!
//! 64 lanes are folded to 16 first, `u[l] = (t[l] op t[l+32]) op (t[l+16] op t[l+48])`, and these take in every
//! 16 of the points that are left over. 16 lanes are folded by halves: lane `l` with lane `l + 8`, then `l + 4`,
//! `l + 2`, `l + 1`; so are 8, from the second step on. The last points, fewer than those lanes, are taken in one by
//! one.
//!
//! Where `n`, the number of points, is a formula, these are `n mod L`: each of `L - 1` is taken in if it is there. The
//! number of lanes is that of the example, and a condition of the plan.
//!
//! Sums of products stay as they are: there are kernels for them. So do folds of turns, and those under which
//! something can go wrong.

mod memory;
#[cfg(test)]
mod tests;

use crate::analysis::verify;
use crate::build;
use crate::ir::{
    Axis, AxisId, Binary, BufferId, Kind, Nest, Role, Scalar, Stage, Unary, free_axes, rewrite,
    rewrite_stage, visit,
};
use memory::{Definitions, pin_all, steps_in_memory};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use vinelift_tensor::{ElementType, Extent};

/// Into how many partial folds a fold over `points` neighbours is divided, which the plan relies on from now on;
/// `None` if it is too short.
fn lanes(points: Extent) -> Option<usize> {
    let fits = |(least, _): &&(usize, usize)| Extent::from(*least).at_most(points);
    LANES.iter().find(fits).map(|(_, lanes)| *lanes)
}

/// The least points of a fold that is divided, and into how many.
const LANES: [(usize, usize); 3] = [(384, MOST_LANES), (96, FEW_LANES), (24, 8)];
const MOST_LANES: usize = 64;
const FEW_LANES: usize = 16;

/// Divides every fold that is long enough. Once `stop` is true, those that are left stay as they are.
pub fn partial_folds(nest: &mut Nest, stop: &AtomicBool) {
    let mut definitions = Definitions::default();
    for mut stage in std::mem::take(&mut nest.stages) {
        let is_stopped = stop.load(Ordering::Relaxed);
        for fold in folds(&stage).into_iter().filter(|_| !is_stopped) {
            let (first, buffers, next_axis) =
                (nest.stages.len(), nest.buffers.len(), nest.next_axis);
            let Some(fold) = Fold::of(nest, &definitions, &stage, fold) else {
                nest.next_axis = next_axis;
                continue;
            };
            let divided = fold.divide(nest, &stage);
            if nest.is_symbolic() {
                nest.adopt_symbols();
            }
            nest.stages.push(divided);
            let parts = nest.extract(first..nest.stages.len());
            let divided = nest.stages.pop();
            match divided.filter(|_| verify(&parts.nest).is_ok()) {
                Some(divided) => stage = divided,
                None => {
                    // Of numbers it may be proven.
                    pin_all(fold.extents());
                    nest.stages.truncate(first);
                    nest.truncate_buffers(buffers);
                    nest.next_axis = next_axis;
                }
            }
        }
        definitions.add(nest.stages.len(), &stage);
        nest.stages.push(stage);
    }
}

/// The folds of a stage that may be divided, whatever they read: those that stand in no other fold, have
/// no sums of products, and cannot fail.
fn folds(stage: &Stage) -> Vec<Scalar> {
    let mut found = Vec::new();
    if stage.group.is_some() || !stage.value.folds() {
        return found;
    }
    let mut seen = FxHashSet::default();
    let mut open = vec![&stage.value];
    while let Some(x) = open.pop() {
        if !seen.insert(x.address()) {
            continue;
        }
        let Kind::Reduce { op, axes, body, .. } = x.kind() else {
            open.extend(x.children());
            continue;
        };
        use Binary::{Add, And, Max, Min, Mul, Or};
        let mut fits = matches!(op, Add | Mul | Min | Max | And | Or)
            && axes.iter().all(|axis| axis.extent > 0)
            && stage.domain.iter().all(|axis| axis.extent > 0);
        visit(body, &mut |y| match y.kind() {
            Kind::Load { buffer, .. } => fits &= *buffer != stage.target,
            Kind::Wrap(_) | Kind::Reduce { .. } | Kind::Binary(Binary::Term, ..) => fits = false,
            _ => {}
        });
        if fits {
            found.push(x.clone());
        }
    }
    found
}

/// A fold to be divided.
struct Fold {
    /// As it stands in its stage.
    whole: Scalar,
    op: Binary,
    init: Scalar,
    body: Scalar,
    /// The axes of the domain that it depends on.
    outer: Vec<Axis>,
    /// Its axes that stay folded over in every part.
    around: Vec<Axis>,
    /// Its axes that are one in memory, outermost first.
    along: Vec<Axis>,
    /// How many points these have.
    points: Extent,
    lanes: usize,
}

impl Fold {
    /// `whole`, a fold in `stage`, if it runs along memory and is long enough.
    fn of(
        nest: &mut Nest,
        definitions: &Definitions,
        stage: &Stage,
        whole: Scalar,
    ) -> Option<Fold> {
        let Kind::Reduce {
            op,
            axes,
            init,
            body,
        } = whole.kind()
        else {
            return None;
        };
        lanes(product(axes))?;
        let mut around: Vec<Axis> = axes.iter().filter(|a| a.extent > 1).copied().collect();
        let first = steps_in_memory(nest, definitions, stage, &around, body)?;
        let along = around.split_off(first);
        let points = product(&along);
        if points.is_symbolic() && !around.is_empty() {
            pin_all(along.iter().map(|axis| axis.extent));
            return None;
        }
        let free = free_axes(&whole);
        let mut outer = stage.domain.clone();
        outer.retain(|a| free.contains(&a.id));
        let (op, init, body) = (*op, init.clone(), body.clone());
        Some(Fold {
            whole,
            op,
            init,
            body,
            outer,
            around,
            along,
            points,
            lanes: lanes(points)?,
        })
    }

    /// The extents of all axes.
    fn extents(&self) -> impl Iterator<Item = Extent> {
        let axes = [&self.outer, &self.around, &self.along].into_iter();
        axes.flatten().map(|axis| axis.extent)
    }

    /// Appends the stages of the parts, and gives `stage` with what is left to be done.
    fn divide(&self, nest: &mut Nest, stage: &Stage) -> Stage {
        let (op, lanes) = (self.op, self.lanes);
        let turns = self.points.quotient(lanes.into());
        let start = self.start();
        let mut parts = self.part(nest, stage, "lanes", lanes, |nest, fold, at| {
            let turn = nest.axis(turns);
            let k = Scalar::axis(turn.id) * lanes as i64 + at.lane.clone();
            fold.over(nest, turn, k, start.clone(), at)
        });
        if lanes > FEW_LANES {
            let wide = parts;
            parts = self.part(nest, stage, "folded", FEW_LANES, |nest, fold, at| {
                let lane = |k: usize| &at.lane + (k * FEW_LANES) as i64;
                let load = |k| nest.load(wide, [at.outer.clone(), vec![lane(k)]].concat());
                let four = halves((0..lanes / FEW_LANES).map(load).collect(), op);
                fold.whole_blocks(nest, four, at)
            });
        }
        let outer: Vec<Scalar> = self.outer.iter().map(|a| Scalar::axis(a.id)).collect();
        let load = |l| nest.load(parts, [outer.clone(), vec![build::index(l)]].concat());
        let last = lanes.min(FEW_LANES);
        let mut result = halves((0..last as i64).map(load).collect(), op);
        if start != self.init {
            result = Scalar::binary(op, self.init.clone(), result);
        }
        let result = self.last_points(nest, stage, last, result, outer);
        let mut stage = stage.clone();
        rewrite_stage(&mut stage, &mut |x| match x == self.whole {
            true => result.clone(),
            false => x,
        });
        stage
    }

    /// `four`, with the points of the lane in the blocks of [`FEW_LANES`] behind those of [`MOST_LANES`].
    fn whole_blocks(&self, nest: &mut Nest, four: Scalar, at: &At) -> Scalar {
        let from = self.blocks_end(self.lanes);
        let Some(points) = self.points.number() else {
            // Each block, if it is there.
            return (0..self.lanes / FEW_LANES - 1).fold(four, |so_far, block| {
                let k = &from + (block * FEW_LANES) as i64 + at.lane.clone();
                let end = &from + ((block + 1) * FEW_LANES) as i64;
                let is_there = end.le(Scalar::extent(self.points));
                let value = self.body_with(FxHashMap::default(), k, at);
                self.take_in_if(is_there, so_far, value)
            });
        };
        let more = points % self.lanes / FEW_LANES;
        if more == 0 {
            return four;
        }
        let turn = nest.axis(more);
        let k = Scalar::axis(turn.id) * FEW_LANES as i64 + at.lane.clone() + from;
        self.over(nest, turn, k, four, at)
    }

    /// `result`, with the points that are left over, fewer than `lanes`, one by one.
    fn last_points(
        &self,
        nest: &mut Nest,
        stage: &Stage,
        lanes: usize,
        result: Scalar,
        outer: Vec<Scalar>,
    ) -> Scalar {
        let from = self.blocks_end(lanes);
        if let Some(points) = self.points.number() {
            let left = points % lanes;
            if left == 0 {
                return result;
            }
            let rest = nest.axis(left);
            let k = Scalar::axis(rest.id) + from;
            let lane = build::index(0);
            return self.over(nest, rest, k, result, &At { outer, lane });
        }
        if self.points.is_multiple_of(lanes) {
            return result;
        }
        // Stored first, so that what is read there is written down once.
        let is_there = |k: Scalar| (&from + k).lt(Scalar::extent(self.points));
        let rest = self.part(nest, stage, "rest", lanes - 1, |_, fold, at| {
            let value = fold.body_with(FxHashMap::default(), &from + &at.lane, at);
            let zero = build::zero(value.ty());
            Scalar::select(is_there(at.lane.clone()), value, zero)
        });
        (0..lanes as i64 - 1).fold(result, |so_far, k| {
            let k = build::index(k);
            let at = [outer.clone(), vec![k.clone()]].concat();
            self.take_in_if(is_there(k), so_far, nest.load(rest, at))
        })
    }

    /// `is_there ? so_far op value : so_far`, where `so_far` is written once.
    fn take_in_if(&self, is_there: Scalar, so_far: Scalar, value: Scalar) -> Scalar {
        let value = Scalar::select(is_there.clone(), value, self.neutral());
        let stays = match self.op {
            Binary::Min => so_far.lt(value.clone()),
            Binary::Max => so_far.gt(value.clone()),
            _ => return Scalar::binary(self.op, so_far, value),
        };
        // No value is neutral in them if NaN is among those before.
        let is_gone = Scalar::unary(Unary::Not, is_there);
        Scalar::select(is_gone | stays, so_far, value)
    }

    /// The value that changes nothing, whatever it is taken in by; of [`Binary::Min`] and [`Binary::Max`], any.
    fn neutral(&self) -> Scalar {
        let ty = self.init.ty();
        match self.op {
            // Of 0, `-0 + 0` would be another.
            Binary::Add if ty.is_float() => build::number(-0.0, ty),
            Binary::Add | Binary::Or => build::zero(ty),
            Binary::And if ty == ElementType::Boolean => build::boolean(true),
            Binary::And => Scalar::constant(!0 >> (64 - ty.bits()), ty),
            _ => build::integer(1, ty),
        }
    }

    /// `floor(points / lanes) · lanes`
    fn blocks_end(&self, lanes: usize) -> Scalar {
        match self.points.number() {
            Some(points) => build::index((points / lanes * lanes) as i64),
            None => Scalar::extent(self.points.quotient(lanes.into())) * lanes as i64,
        }
    }

    /// The value that each partial fold starts from.
    fn start(&self) -> Scalar {
        match self.op {
            Binary::Add => build::zero(self.init.ty()),
            Binary::Mul => build::integer(1, self.init.ty()),
            // Taking it in more than once changes nothing.
            _ => self.init.clone(),
        }
    }

    /// Appends a stage that sets `count` lanes for every point of the domain.
    fn part(
        &self,
        nest: &mut Nest,
        stage: &Stage,
        name: &str,
        count: usize,
        value: impl FnOnce(&mut Nest, &Fold, &At) -> Scalar,
    ) -> BufferId {
        let outer = self.outer.iter().map(|a| a.extent);
        let shape: Vec<Extent> = outer.chain([count.into()]).collect();
        let name = format!("{}.{name}", nest.buf(stage.target).name);
        let target = nest.buffer(&name, self.body.ty(), &shape, Role::Temporary);
        nest.define(stage.layers.clone(), target, |nest, at| {
            let (outer, lane) = at.split_at(self.outer.len());
            let (outer, lane) = (outer.to_vec(), lane[0].clone());
            value(nest, self, &At { outer, lane })
        });
        target
    }

    /// `start op body op body …` over `turn`, in which the `k`-th of the neighbours is taken in.
    fn over(&self, nest: &mut Nest, turn: Axis, k: Scalar, start: Scalar, at: &At) -> Scalar {
        let mut axes = Vec::with_capacity(self.around.len() + 1);
        let mut by_axis: FxHashMap<AxisId, Scalar> = FxHashMap::default();
        for axis in &self.around {
            let fresh = nest.axis(axis.extent);
            by_axis.insert(axis.id, Scalar::axis(fresh.id));
            axes.push(fresh);
        }
        axes.push(turn);
        let body = self.body_with(by_axis, k, at);
        Scalar::reduce(self.op, axes, start, body)
    }

    /// The body for the `k`-th of the neighbours, and these values of other axes.
    fn body_with(&self, mut by_axis: FxHashMap<AxisId, Scalar>, k: Scalar, at: &At) -> Scalar {
        for (axis, index) in self.outer.iter().zip(&at.outer) {
            by_axis.insert(axis.id, index.clone());
        }
        let mut rest = k;
        for (position, axis) in self.along.iter().enumerate().rev() {
            let extent = Scalar::extent(axis.extent);
            let index = match position {
                0 => rest.clone(),
                _ => rest.rem(extent.clone()),
            };
            by_axis.insert(axis.id, index);
            rest = rest / extent;
        }
        rewrite(&self.body, &mut |x| match x.kind() {
            Kind::Axis(id) => match by_axis.get(id) {
                Some(index) => index.clone(),
                // One of a single point.
                None => build::index(0),
            },
            _ => x,
        })
    }
}

/// The points of some axes, which the plan is for alone if there is no formula for it.
fn product(axes: &[Axis]) -> Extent {
    let extents = axes.iter().map(|axis| axis.extent);
    extents.fold(1.into(), Extent::product)
}

/// Where a part is: the indices of the domain, and the lane.
struct At {
    outer: Vec<Scalar>,
    lane: Scalar,
}

/// `op` of all values, a power of two of them: the first half with the second, until one is left.
fn halves(mut values: Vec<Scalar>, op: Binary) -> Scalar {
    while values.len() > 1 {
        let second = values.split_off(values.len() / 2);
        let pairs = values.into_iter().zip(second);
        values = pairs.map(|(x, y)| Scalar::binary(op, x, y)).collect();
    }
    values.swap_remove(0)
}
