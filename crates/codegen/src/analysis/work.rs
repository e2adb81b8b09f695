//! How much work stages are, and the axis that is cut into chunks.

use super::state::Analysis;
use vinelift_nest::{Axis, AxisId, Kind, Scalar, Seen, Stage};
use vinelift_tensor::Extent;

/// The most work of one call of an assembled function, in tenths of a nanosecond: it does not look whether to stop.
const MOST_CALL: usize = 200_000_000;

impl<'n> Analysis<'n> {
    /// The axis that is cut into chunks, if one is.
    pub(crate) fn cut_axis(&self, stage: &Stage) -> Option<AxisId> {
        let axis = self.chunks.axis(stage).filter(|_| self.chunks.extent > 1)?;
        Some(axis.id)
    }

    /// The turns of the axis of `stage` that is cut, in each unit that threads share out.
    pub(crate) fn cut_turns(&self, stage: &Stage) -> usize {
        let axis = self.chunks.axis(stage);
        axis.and_then(|axis| self.chunks.turns_of(axis))
            .unwrap_or(1)
    }

    /// Whether all chunks that the nest may be cut into begin at a multiple of `points`.
    pub(crate) fn cuts_at(&self, points: usize) -> bool {
        // The chunks of a nest with more stages may still change.
        let [stage] = self.nest.stages.as_slice() else {
            return false;
        };
        let turns = self.cut_turns(stage);
        (self.chunks.unit * turns).is_multiple_of(points)
    }

    /// Makes sure that all chunks do, if the nest has no other stages.
    pub(crate) fn cut_at(&mut self, stage: &Stage, points: usize) {
        let outer = self.chunks.axis(stage);
        let outer = outer.map_or(Extent::ONE, |axis| axis.extent);
        if self.nest.stages.len() == 1 && self.chunks.extent == outer {
            self.chunks.unit = self.chunks.unit.next_multiple_of(points);
            self.chunks.grain = self.chunks.grain.next_multiple_of(self.chunks.unit);
        }
    }

    /// The points of an axis that code for a stage is made for: those of the whole axis, or if it is cut into chunks, those that
    /// each chunk has at least.
    pub(crate) fn usual_points(&self, stage: &Stage, axis: Axis) -> usize {
        usual_points(axis.extent).min(self.least_of_chunk(stage, axis.id))
    }

    /// The points of an axis that each chunk has at least, unless it is the whole; any number of one that is not cut.
    pub(crate) fn least_of_chunk(&self, stage: &Stage, axis: AxisId) -> usize {
        match self.cut_axis(stage) == Some(axis) {
            true => self.chunks.grain.saturating_mul(self.cut_turns(stage)),
            false => usize::MAX,
        }
    }

    /// Whether the loops over `axes` are little enough work to be one call of an assembled function. The axis that
    /// is cut may have as few of its points in each call as a chunk has at least.
    pub(crate) fn may_be_call(&self, stage: &Stage, axes: &[Axis]) -> bool {
        let points = axes.iter().map(|axis| match self.cut_axis(stage) {
            Some(cut) if cut == axis.id => self.least_of_chunk(stage, cut),
            _ => large_points(axis.extent),
        });
        let each = self.work_under(stage, &stage.value);
        points.fold(each, usize::saturating_mul) <= MOST_CALL
    }

    /// How much work it is to evaluate a scalar once, with all turns of its folds.
    pub(crate) fn work_under(&self, stage: &Stage, x: &Scalar) -> usize {
        let mut all = 1usize;
        for_each_with_trips(x, &mut |x, times| {
            let own = self.nest.work_of_scalar(stage, x);
            // A turn of a fold takes something, whatever is folded.
            let own = own.max(usize::from(matches!(x.kind(), Kind::Reduce { .. })));
            all = all.saturating_add(own.saturating_mul(times));
        });
        all
    }
}

/// Calls `f` with every scalar that `x` is made of, itself included, and how often that is evaluated each time `x`
/// is.
pub(crate) fn for_each_with_trips(x: &Scalar, f: &mut impl FnMut(&Scalar, usize)) {
    let mut seen = Seen::default();
    let mut open = vec![(x, 1usize)];
    while let Some((x, times)) = open.pop() {
        if !seen.insert(x.address()) {
            continue;
        }
        if let Kind::Reduce {
            axes, init, body, ..
        } = x.kind()
        {
            let turns = axes.iter().map(|axis| large_points(axis.extent));
            let turns = turns.fold(times, usize::saturating_mul);
            f(x, turns);
            open.extend([(init, times), (body, turns)]);
            continue;
        }
        f(x, times);
        open.extend(x.children().map(|child| (child, times)));
    }
}

/// The points of an extent that code is made for. If it has symbols, these are its least points, but at least `USUAL`, which fill
/// vectors; a run with fewer takes the code for short loops.
pub(crate) fn usual_points(extent: Extent) -> usize {
    const USUAL: usize = 64;
    let usual = extent.least().max(USUAL);
    extent.number().unwrap_or(usual)
}

/// The points of an extent for estimates of how long a loop runs before it must look whether to stop: of one that has symbols,
/// as many as there may be in a long run.
pub(crate) fn large_points(extent: Extent) -> usize {
    const LARGE: usize = 1 << 14;
    let large = extent.example().max(LARGE);
    extent.number().unwrap_or(large)
}

/// The position, among the axes of several points, of the first that vectors or copies may run over: of stages that take turns,
/// the outermost axis has one point in each turn.
pub(crate) fn first_inner(stage: &Stage) -> usize {
    // Symbols are at least 2.
    usize::from(stage.group.is_some() && stage.turns() > 1)
}
