//! The accumulators of a long fold: partial folds side by side, one for each lane, and their combination.

use super::contiguous::{Definitions, steps_in_memory};
use crate::build;
use crate::ir::{
    Axis, AxisId, Binary, BufferId, Kind, Nest, Role, Scalar, Stage, free_axes, rewrite, substitute,
};
use rustc_hash::FxHashMap;
use std::ops::Range;
use vinelift_tensor::{ElementType, Extent};

/// Into how many partial folds a fold over `points` neighbours is divided, which the plan relies on from now on;
/// `None` if it is too short.
fn lanes(points: Extent) -> Option<usize> {
    let fits = |(least, _): &&(usize, usize)| Extent::from(*least).at_most(points);
    LANES.iter().find(fits).map(|(_, lanes)| *lanes)
}

/// The least points of a fold that is divided, and into how many.
const LANES: [(usize, usize); 2] = [(384, MOST_LANES), (24, FEW_LANES)];
const MOST_LANES: usize = 64;
const FEW_LANES: usize = 8;

/// Into how many parts [`MOST_LANES`] are folded first.
const FOLDED_LANES: usize = 16;

/// A fold to be divided.
pub(super) struct Fold {
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
    pub(super) fn of(
        nest: &mut Nest,
        definitions: &Definitions<'_>,
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
    pub(super) fn extents(&self) -> impl Iterator<Item = Extent> {
        let axes = [&self.outer, &self.around, &self.along].into_iter();
        axes.flatten().map(|axis| axis.extent)
    }

    /// Appends the stages of the parts, and gives `stage` with what is left to be done.
    pub(super) fn divide(&self, nest: &mut Nest, stage: &Stage) -> Stage {
        let (op, lanes) = (self.op, self.lanes);
        let turns = self.points.quotient(lanes.into());
        let start = self.start();
        let parts = self.part(nest, stage, "lanes", lanes, |nest, fold, at| {
            let turn = nest.axis(turns);
            let k = Scalar::axis(turn.id) * lanes as i64 + at.lane.clone();
            let start = rewritten(&start, &fold.indices(at));
            fold.over(nest, Some(turn), k, start, at)
        });
        let value = |nest: &mut Nest, at: At| match lanes > FOLDED_LANES {
            true => {
                let four = (0..lanes / FOLDED_LANES).map(|k| {
                    let first = k * FOLDED_LANES;
                    let at = at.with(&at.lane + first as i64);
                    self.lane(nest, parts, at, first..first + FOLDED_LANES)
                });
                halves(four.collect(), op)
            }
            false => {
                let lane = at
                    .lane
                    .as_index()
                    .and_then(|lane| usize::try_from(lane).ok());
                let among = lane.map_or(0..lanes, |lane| lane..lane + 1);
                self.lane(nest, parts, at, among)
            }
        };
        let last = lanes.min(FOLDED_LANES);
        let outer = self.outer.iter().map(|a| Scalar::axis(a.id)).collect();
        let all = At {
            outer,
            lane: build::index(0),
        };
        // Where lanes ask for their point, they do so in vectors.
        let is_stage = lanes > FOLDED_LANES || self.left().is_none();
        let folded = is_stage.then(|| {
            self.part(nest, stage, "folded", last, |nest, _, at| {
                value(nest, at.with(at.lane.clone()))
            })
        });
        let of_lane = |lane: i64| {
            let at = all.with(build::index(lane));
            match folded {
                Some(folded) => nest.load(folded, at.position()),
                None => value(nest, at),
            }
        };
        let mut result = halves((0..last as i64).map(of_lane).collect(), op);
        if start != self.init {
            let ty = result.ty();
            let [a, b] = op.fold_operands(ty, self.init.clone(), result);
            result = Scalar::binary(op, a, b);
        }
        let mut stage = stage.clone();
        substitute(&mut stage, &self.whole, &result);
        stage
    }

    /// How many points are left over, if that is known.
    fn left(&self) -> Option<usize> {
        match self.points.number() {
            Some(points) => Some(points % self.lanes),
            None => self.points.is_multiple_of(self.lanes).then_some(0),
        }
    }

    /// The value of a lane in the range `among`: its element of `parts`, combined with its point among those that fill no whole
    /// round of lanes, if it has one.
    fn lane(&self, nest: &mut Nest, parts: BufferId, at: At, among: Range<usize>) -> Scalar {
        let so_far = nest.load(parts, at.position());
        let end = self.lanes as i64;
        let is_its_own = match self.left().map(|left| self.lanes - left) {
            Some(first) if among.end <= first => return so_far,
            Some(first) if among.start >= first => None,
            first => {
                let numbers = lane_numbers(nest, number_type(self.body.ty()));
                let lane = nest.load(numbers, vec![at.lane.clone()]);
                let first = match first {
                    Some(first) => build::integer(first as i64, lane.ty()),
                    None => {
                        let first = self.blocks_end() + end - Scalar::extent(self.points);
                        first.cast(lane.ty())
                    }
                };
                Some(lane.ge(first))
            }
        };
        let k = Scalar::extent(self.points) - end + at.lane.clone();
        let taken = match self.around.is_empty() {
            true => {
                let value = self.body_with(self.indices(&at), k);
                let [a, b] = (self.op).fold_operands(value.ty(), so_far.clone(), value);
                Scalar::binary(self.op, a, b)
            }
            false => self.over(nest, None, k, so_far.clone(), &at),
        };
        match is_its_own {
            Some(is_its_own) => Scalar::select(is_its_own, taken, so_far),
            None => taken,
        }
    }

    /// `floor(points / lanes) · lanes`
    fn blocks_end(&self) -> Scalar {
        Scalar::extent(self.points.quotient(self.lanes.into())) * self.lanes as i64
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

    /// `start op body op body …` over `turn`, if there is one, in which the `k`-th of the neighbours is taken in.
    fn over(
        &self,
        nest: &mut Nest,
        turn: Option<Axis>,
        k: Scalar,
        start: Scalar,
        at: &At,
    ) -> Scalar {
        let mut axes = Vec::with_capacity(self.around.len() + 1);
        let mut by_axis = self.indices(at);
        for axis in &self.around {
            let fresh = nest.axis(axis.extent);
            by_axis.insert(axis.id, Scalar::axis(fresh.id));
            axes.push(fresh);
        }
        axes.extend(turn);
        let body = self.body_with(by_axis, k);
        Scalar::reduce(self.op, axes, start, body)
    }

    /// The indices that the axes of the domain have in a part.
    fn indices(&self, at: &At) -> FxHashMap<AxisId, Scalar> {
        let outer = self.outer.iter().zip(&at.outer);
        outer
            .map(|(axis, index)| (axis.id, index.clone()))
            .collect()
    }

    /// The body for the `k`-th of the neighbours, and these values of other axes.
    fn body_with(&self, mut by_axis: FxHashMap<AxisId, Scalar>, k: Scalar) -> Scalar {
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
        rewritten(&self.body, &by_axis)
    }
}

/// `x` with indices in place of its axes.
fn rewritten(x: &Scalar, by_axis: &FxHashMap<AxisId, Scalar>) -> Scalar {
    rewrite(x, &mut |x| match x.kind() {
        Kind::Axis(id) => match by_axis.get(id) {
            Some(index) => index.clone(),
            // One of a single point.
            None => build::index(0),
        },
        _ => x,
    })
}

/// The points of some axes, which the plan is for alone if there is no formula for it.
fn product(axes: &[Axis]) -> Extent {
    let extents = axes.iter().map(|axis| axis.extent);
    extents.fold(1.into(), Extent::product)
}

/// The type of numbers that are compared in as many lanes as there are of values of type `ty`.
fn number_type(ty: ElementType) -> ElementType {
    use ElementType::{F32, F64, I32, I64};
    match ty {
        F64 | I32 | I64 => ty,
        _ => F32,
    }
}

/// The table of the numbers of lanes, for code that compares many at a time.
fn lane_numbers(nest: &mut Nest, ty: ElementType) -> BufferId {
    let name = format!("lanes.{}", ty.name());
    let known = nest
        .buffers
        .iter()
        .position(|b| b.name == name && matches!(b.role, Role::Table(_)));
    if let Some(known) = known {
        return BufferId(known as u32);
    }
    let all = 0..MOST_LANES;
    let bytes: Vec<u8> = match ty {
        ElementType::F64 => all.flat_map(|lane| (lane as f64).to_le_bytes()).collect(),
        ElementType::I32 => all.flat_map(|lane| (lane as i32).to_le_bytes()).collect(),
        ElementType::I64 => all.flat_map(|lane| (lane as i64).to_le_bytes()).collect(),
        _ => all.flat_map(|lane| (lane as f32).to_le_bytes()).collect(),
    };
    nest.table(&name, ty, MOST_LANES, &bytes)
}

/// Where a part is: the indices of the domain, and the lane.
struct At {
    outer: Vec<Scalar>,
    lane: Scalar,
}

impl At {
    /// Another lane of the same part.
    fn with(&self, lane: Scalar) -> At {
        At {
            outer: self.outer.clone(),
            lane,
        }
    }

    /// The indices of the domain, and then the lane.
    fn position(&self) -> Vec<Scalar> {
        [self.outer.clone(), vec![self.lane.clone()]].concat()
    }
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
