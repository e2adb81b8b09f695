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
//! Sums of products stay as they are: there are kernels for them. So do folds of turns, and those under which
//! something can go wrong.

mod memory;
#[cfg(test)]
mod tests;

use crate::analysis::verify;
use crate::build;
use crate::ir::{
    Axis, AxisId, Binary, BufferId, Kind, Nest, Role, Scalar, Stage, free_axes, rewrite,
    rewrite_stage, visit,
};
use memory::{Definitions, steps_in_memory};
use rustc_hash::{FxHashMap, FxHashSet};

/// Into how many partial folds a fold over `points` neighbours is divided; `None` if it is too short.
fn lanes(points: usize) -> Option<usize> {
    match points {
        0..24 => None,
        24..96 => Some(8),
        96..256 => Some(FEW_LANES),
        _ => Some(MOST_LANES),
    }
}

const MOST_LANES: usize = 64;
const FEW_LANES: usize = 16;

/// Divides every fold that is long enough.
pub fn partial_folds(nest: &mut Nest) {
    let mut definitions = Definitions::default();
    for mut stage in std::mem::take(&mut nest.stages) {
        for fold in folds(&stage) {
            let (first, buffers, next_axis) =
                (nest.stages.len(), nest.buffers.len(), nest.next_axis);
            let Some(fold) = Fold::of(nest, &definitions, &stage, fold) else {
                nest.next_axis = next_axis;
                continue;
            };
            let divided = fold.divide(nest, &stage);
            nest.stages.push(divided);
            let parts = nest.extract(first..nest.stages.len());
            let divided = nest.stages.pop();
            match divided.filter(|_| verify(&parts.nest).is_ok()) {
                Some(divided) => stage = divided,
                None => {
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
    points: usize,
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
        let points = axes.iter().map(|a| a.extent.example());
        lanes(points.fold(1usize, usize::saturating_mul))?;
        let mut around: Vec<Axis> = axes.iter().filter(|a| a.extent > 1).copied().collect();
        let first = steps_in_memory(nest, definitions, stage, &around, body)?;
        let along = around.split_off(first);
        let mut points = along.iter().map(|a| a.extent.example());
        let points = points.try_fold(1usize, usize::checked_mul)?;
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

    /// Appends the stages of the parts, and gives `stage` with what is left to be done.
    fn divide(&self, nest: &mut Nest, stage: &Stage) -> Stage {
        let (op, lanes) = (self.op, self.lanes);
        let (turns, mut left) = (self.points / lanes, self.points % lanes);
        let start = self.start();
        let mut parts = self.part(nest, stage, "lanes", lanes, |nest, fold, at| {
            let turn = nest.axis(turns);
            let k = Scalar::axis(turn.id) * lanes as i64 + at.lane.clone();
            fold.over(nest, turn, k, start.clone(), at)
        });
        if lanes > FEW_LANES {
            let wide = parts;
            let more = left / FEW_LANES;
            let from = (self.points - left) as i64;
            left %= FEW_LANES;
            parts = self.part(nest, stage, "folded", FEW_LANES, |nest, fold, at| {
                let lane = |k: usize| &at.lane + (k * FEW_LANES) as i64;
                let load = |k| nest.load(wide, [at.outer.clone(), vec![lane(k)]].concat());
                let four = halves((0..lanes / FEW_LANES).map(load).collect(), op);
                if more == 0 {
                    return four;
                }
                let turn = nest.axis(more);
                let k = Scalar::axis(turn.id) * FEW_LANES as i64 + at.lane.clone() + from;
                fold.over(nest, turn, k, four, at)
            });
        }
        let outer: Vec<Scalar> = self.outer.iter().map(|a| Scalar::axis(a.id)).collect();
        let load = |l| nest.load(parts, [outer.clone(), vec![build::index(l)]].concat());
        let last = lanes.min(FEW_LANES) as i64;
        let mut result = halves((0..last).map(load).collect(), op);
        if start != self.init {
            result = Scalar::binary(op, self.init.clone(), result);
        }
        if left > 0 {
            let rest = nest.axis(left);
            let k = Scalar::axis(rest.id) + (self.points - left) as i64;
            let lane = build::index(0);
            result = self.over(nest, rest, k, result, &At { outer, lane });
        }
        let mut stage = stage.clone();
        rewrite_stage(&mut stage, &mut |x| match x == self.whole {
            true => result.clone(),
            false => x,
        });
        stage
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
        let shape: Vec<usize> = self
            .outer
            .iter()
            .map(|a| a.extent.example())
            .chain([count])
            .collect();
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
        let mut by_axis: FxHashMap<AxisId, Scalar> = FxHashMap::default();
        for (axis, index) in self.outer.iter().zip(&at.outer) {
            by_axis.insert(axis.id, index.clone());
        }
        let mut axes = Vec::with_capacity(self.around.len() + 1);
        for axis in &self.around {
            let fresh = nest.axis(axis.extent);
            by_axis.insert(axis.id, Scalar::axis(fresh.id));
            axes.push(fresh);
        }
        axes.push(turn);
        let mut rest = k;
        for (position, axis) in self.along.iter().enumerate().rev() {
            let extent = axis.extent.example() as i64;
            let index = match position {
                0 => rest.clone(),
                _ => rest.rem(build::index(extent)),
            };
            by_axis.insert(axis.id, index);
            rest = rest / extent;
        }
        let body = rewrite(&self.body, &mut |x| match x.kind() {
            Kind::Axis(id) => match by_axis.get(id) {
                Some(index) => index.clone(),
                // One of a single point.
                None => build::index(0),
            },
            _ => x,
        });
        Scalar::reduce(self.op, axes, start, body)
    }
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
