//! Speculation: which scalars of a stage may be evaluated although a guard may say that they are not needed.
//!
//! Vectors evaluate both sides of a select in all lanes, so a side that loads must be safe to evaluate where it is not taken.

use crate::analysis::Analysis;
use rustc_hash::FxHashSet;
use vinelift_nest::{AxisId, FoldBounds, Kind, Scalar, Stage};

impl<'n> Analysis<'n> {
    /// The addresses of the scalars of a stage that may be evaluated at any point, whatever the data are: those that no select
    /// guards, and those whose loads lie inside their buffers without their guards.
    pub(super) fn speculable(&mut self, stage: &'n Stage) -> FxHashSet<usize> {
        let mut speculable = FxHashSet::default();
        let mut guarded = Vec::new();
        let lane = stage.domain.iter().rfind(|axis| axis.extent > 1);
        let lane = lane.map(|axis| axis.id);
        let mut open: Vec<&Scalar> = stage.at.iter().chain([&stage.value]).collect();
        while let Some(x) = open.pop() {
            if !speculable.insert(x.address()) {
                continue;
            }
            match x.kind() {
                Kind::Select(c, yes, no) => {
                    open.push(c);
                    guarded.extend([yes, no]);
                }
                Kind::Reduce {
                    axes, init, body, ..
                } => {
                    self.ranges.bind(axes);
                    open.push(init);
                    if let Some(bounds) = FoldBounds::of(x) {
                        open.extend(bounds.ends());
                        guarded.extend(self.visited(bounds, lane));
                        continue;
                    }
                    match axes.iter().all(|axis| axis.extent > 0) {
                        true => open.push(body),
                        false => guarded.push(body),
                    }
                }
                Kind::Wrap(wrap) => open.push(&wrap.index),
                _ => open.extend(x.children()),
            }
        }
        self.add_harmless(guarded, lane, &mut speculable);
        speculable
    }

    /// The value that a fold between bounds folds, if the bounds are the same for all lanes.
    fn visited(&self, bounds: FoldBounds<'n>, lane: Option<AxisId>) -> Option<&'n Scalar> {
        let varies = |end: &Scalar| lane.is_some_and(|lane| self.facts.free(end).contains(&lane));
        let is_same = !bounds.ends().any(varies);
        is_same.then_some(bounds.value)
    }

    /// Adds the scalars under `guarded` that may be evaluated without their guards: all that they load lies inside of its buffer.
    /// Bounds that differ along `lane` leave out most of a fold, and stay.
    fn add_harmless(
        &mut self,
        guarded: Vec<&'n Scalar>,
        lane: Option<AxisId>,
        speculable: &mut FxHashSet<usize>,
    ) {
        let mut seen = FxHashSet::default();
        let mut open: Vec<_> = guarded.into_iter().map(|x| (x, false)).collect();
        while let Some((x, children_done)) = open.pop() {
            if !children_done {
                if speculable.contains(&x.address()) || !seen.insert(x.address()) {
                    continue;
                }
                if let Kind::Reduce { axes, .. } = x.kind() {
                    self.ranges.bind(axes);
                }
                open.push((x, true));
                match FoldBounds::of(x) {
                    Some(bounds) => {
                        let visited = self.visited(bounds, lane);
                        open.extend(bounds.ends().chain(visited).map(|child| (child, false)));
                    }
                    None => open.extend(x.children().map(|child| (child, false))),
                }
                continue;
            }
            let mut children = x.children();
            let is_harmless = match x.kind() {
                Kind::Load { buffer, at } => {
                    let shape = &self.nest.buf(*buffer).shape;
                    let mut dims = at.iter().zip(shape);
                    dims.all(|(index, extent)| self.ranges.is_index(index, *extent))
                }
                Kind::Wrap(_) | Kind::Reduce { .. } => false,
                _ => true,
            };
            if is_harmless
                && children.all(|x| speculable.contains(&x.address()) || !self.facts.has_effect(x))
            {
                speculable.insert(x.address());
            }
        }
    }
}
