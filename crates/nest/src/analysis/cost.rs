//! Estimates of how much work a nest is.

use crate::ir::{
    Axis, Binary, BufferId, Kind, Nest, Scalar, Stage, free_axes, visit_folds, visit_stage,
};
use rustc_hash::FxHashSet;
use std::ops::Range;

impl Nest {
    /// About how much work it is, in tenths of a nanosecond; saturates.
    pub fn work(&self) -> usize {
        let stages = 0..self.stages.len();
        let work = stages.map(|k| {
            let stage = &self.stages[k];
            let mut seen = FxHashSet::default();
            let mut each = 1 + self.scattered(stage, stage.target, &stage.at);
            visit_stage(stage, &mut |x| {
                if seen.insert(x.address()) {
                    each += self.work_of_scalar(stage, x);
                }
            });
            self.points_in(k..k + 1).saturating_mul(each)
        });
        work.fold(0, usize::saturating_add)
    }

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

    /// How often the loops of a range of stages go round, folds included; saturates.
    pub fn points_in(&self, range: Range<usize>) -> usize {
        let points = |axes: &[Axis]| {
            axes.iter()
                .map(|a| a.extent.example())
                .fold(1usize, usize::saturating_mul)
        };
        let stages = self.stages[range].iter().map(|stage| {
            let mut folds = 1usize;
            visit_folds(stage, &mut |x| {
                if let Kind::Reduce { axes, .. } = x.kind() {
                    folds = folds.saturating_mul(points(axes).max(1));
                }
            });
            points(&stage.domain).saturating_mul(folds)
        });
        stages.fold(0, usize::saturating_add)
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
