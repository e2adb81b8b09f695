//! Estimates of how much work a nest is.

use crate::ir::{
    Axis, Binary, BufferId, Kind, Nest, Scalar, Seen, Stage, free_axes, visit_folds, visit_stage,
};
use std::ops::Range;
use vinelift_tensor::Extent;

/// How much work a nest is, for any values of its symbols.
#[derive(Clone, Debug)]
pub struct Work {
    stages: Vec<StageWork>,
}

#[derive(Clone, Debug)]
struct StageWork {
    /// The extents of the domain, then of each fold.
    loops: Vec<Vec<Extent>>,
    /// At each point.
    each: usize,
}

impl Work {
    /// The least work that is worth handing to another thread, in tenths of a nanosecond: what it costs to hand it to a thread
    /// that is awake and polls for work.
    pub const LEAST_SHARE: usize = 40_000;

    /// The work of a nest.
    pub fn of(nest: &Nest) -> Work {
        Work::of_range(nest, 0..nest.stages.len())
    }

    /// The work of some stages of a nest.
    pub(crate) fn of_range(nest: &Nest, stages: Range<usize>) -> Work {
        let stages = nest.stages[stages].iter().map(|stage| {
            let mut seen = Seen::default();
            let mut each = 1 + nest.scattered(stage, stage.target, &stage.at);
            visit_stage(stage, &mut |x| {
                if !x.is_shared() || seen.insert(x.address()) {
                    each += nest.work_of_scalar(stage, x);
                }
            });
            let loops = loops(stage);
            StageWork { loops, each }
        });
        Work {
            stages: stages.collect(),
        }
    }

    /// About how much work it is where the symbol of number `k` is `values[k]`, in tenths of a nanosecond; saturates.
    pub fn at(&self, values: &[usize]) -> usize {
        let stages = self.stages.iter();
        let work = stages.map(|stage| points(&stage.loops, values).saturating_mul(stage.each));
        work.fold(0, usize::saturating_add)
    }
}

/// The extents of the axes of a stage's domain, then those of each fold.
fn loops(stage: &Stage) -> Vec<Vec<Extent>> {
    let extents = |axes: &[Axis]| axes.iter().map(|axis| axis.extent).collect();
    let mut loops = vec![extents(&stage.domain)];
    visit_folds(stage, &mut |x| {
        if let Kind::Reduce { axes, .. } = x.kind() {
            loops.push(extents(axes));
        }
    });
    loops
}

/// How often loops go round, the domain's first; a fold over no point counts as one. Saturates.
fn points(loops: &[Vec<Extent>], values: &[usize]) -> usize {
    let rounds = |extents: &Vec<Extent>| {
        let numbers = extents.iter().map(|n| n.at(values).unwrap_or(usize::MAX));
        numbers.fold(1usize, usize::saturating_mul)
    };
    let Some((domain, folds)) = loops.split_first() else {
        return 0;
    };
    let folds = folds.iter().map(|fold| rounds(fold).max(1));
    folds.fold(rounds(domain), usize::saturating_mul)
}

impl Nest {
    /// About how much work a scalar of a stage is without its operands, in tenths of a nanosecond.
    pub fn work_of_scalar(&self, stage: &Stage, x: &Scalar) -> usize {
        match x.kind() {
            Kind::Unary(op, _) if !op.is_primitive() => 5,
            Kind::Load { buffer, at } => 1 + self.scattered(stage, *buffer, at),
            Kind::Wrap(_) | Kind::Cast(_) => 1,
            Kind::Binary(Binary::Div | Binary::Rem | Binary::Pow, ..) => 5,
            _ => 0,
        }
    }

    /// The extra work, in tenths of a nanosecond, of an access whose index depends on data, if neighbours
    /// have indices of their own: the larger the buffer, the farther away it is.
    fn scattered(&self, stage: &Stage, buffer: BufferId, at: &[Scalar]) -> usize {
        let inner = stage.domain.iter().rfind(|axis| axis.extent > 1);
        let is_own = |i: &Scalar| {
            let differs = |axis: &Axis| free_axes(i).contains(&axis.id);
            matches!(i.kind(), Kind::Wrap(_)) && inner.is_some_and(differs)
        };
        if !at.iter().any(is_own) {
            return 0;
        }
        match self.buf(buffer).byte_len().unwrap_or(usize::MAX) >> 10 {
            0..32 => 0,
            32..512 => 4,
            512..16_384 => 10,
            _ => 30,
        }
    }

    /// How often the loops of a range of stages go round at the example, folds included; saturates.
    pub fn points_in(&self, range: Range<usize>) -> usize {
        let stages = self.stages[range].iter();
        let points = stages.map(|stage| points(&loops(stage), &self.symbols));
        points.fold(0, usize::saturating_add)
    }

    /// How many different scalars there are in all stages.
    pub fn size(&self) -> usize {
        let mut count = 0;
        for stage in &self.stages {
            visit_stage(stage, &mut |_| count += 1);
        }
        count
    }
}
