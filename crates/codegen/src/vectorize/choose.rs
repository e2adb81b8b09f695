//! Which stages, or inner loops of them, become vector loops, how wide, and how far unrolled.

use super::build::{Builder, Jam};
use super::vector_loop::VectorLoop;
use crate::analysis::Analysis;
use crate::analysis::walk::{Visit, visit};
use crate::analysis::work::usual_points;
use crate::target::Target;
use crate::vector_ir::ops::lane_bytes;
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, AxisId, FoldBounds, Kind, Mode, Scalar, Stage};
use vinelift_tensor::ElementType::Boolean;

/// A value of at least this many scalars is taken to be a long dependency chain, of which each operation waits for the one
/// before.
const LONG: usize = 16;

/// The most registers done side by side.
const MOST_PARTS: usize = 8;

/// Bytes of the narrowest registers.
const LEAST_BYTES: usize = 16;

/// The most vector loops for fewer points that a stage has.
const MOST_NARROWER: usize = 2;

impl<'n> Analysis<'n> {
    /// The vector loop for a stage whose facts are known: over as many of its inner loops as can be in one.
    pub(crate) fn vector_loop_of(&mut self, stage: &'n Stage) -> Option<VectorLoop<'n>> {
        let target = self.target?;
        let axes: Vec<Axis> = stage
            .domain
            .iter()
            .copied()
            .filter(|a| a.extent > 1)
            .collect();
        let lane = *axes.last()?;
        if !self.may_be_vector_loop(stage, lane) {
            return None;
        }
        let certain = self.certain_loads(stage);
        let widest = self.widest_lane(stage, lane);
        let (nodes, folds) = self.size_of(&stage.value);
        if folds && let Some(ready) = self.jammed_loop_of(stage, &axes, widest, &certain) {
            return Some(ready);
        }
        let mut ready = self.widest_loop(stage, &axes, widest, folds || nodes >= LONG, &certain)?;
        let mut least = ready.least.map(|(_, points)| points);
        for bytes in [target.bytes(), LEAST_BYTES] {
            let lanes = bytes / widest;
            if lanes < 2 || least.is_none_or(|least| lanes >= least) {
                continue;
            }
            let count = [bytes, lanes, 1];
            let narrower = self.try_vector_loop(stage, target, &axes, ready.outer, count, &certain);
            if let Some(narrower) = narrower {
                least = Some(lanes);
                ready.narrower.push(narrower);
            }
        }
        Some(ready)
    }

    /// The vector loop in the widest vectors, with as many registers side by side as it fills. `is_long` says whether its value
    /// folds, or is a long chain.
    fn widest_loop(
        &mut self,
        stage: &'n Stage,
        axes: &[Axis],
        widest: usize,
        is_long: bool,
        certain: &FxHashSet<usize>,
    ) -> Option<VectorLoop<'n>> {
        let (target, lane) = (self.target?, *axes.last()?);
        let mut bytes = target.bytes();
        let (points, most) = (usual_points(lane.extent), self.usual_points(stage, lane));
        while bytes / widest > most {
            bytes /= 2;
        }
        if bytes < LEAST_BYTES || bytes / widest < 2 {
            return None;
        }
        // Registers done side by side hide how long each takes, most of all in what is a long chain; and where they have more bits
        // than what is stored, several are stored as one.
        let stored = lane_bytes(self.nest.buf(stage.target).ty);
        let is_narrowed = usize::from(stored) < widest;
        let side_by_side = if is_long || is_narrowed { 4 } else { 2 };
        let columns = self.few_columns(stage, lane).unwrap_or(1);
        self.cut_at(stage, columns);
        // Loads of every second element may need registers of 256 bits.
        for bytes in [bytes, 32] {
            let lanes = bytes / widest;
            let mut counts = vec![4, 2, 1];
            counts.retain(|parts| *parts <= side_by_side);
            // As many as have whole rows of few columns, if these have not.
            let whole = (1..=MOST_PARTS).find(|parts| (lanes * parts).is_multiple_of(columns));
            counts.extend(whole.filter(|parts| !counts.contains(parts)));
            for parts in counts {
                // The last turn overlaps the one before: too much must not be done twice.
                let turns = |lanes: usize| points.div_ceil(lanes);
                let done = turns(lanes * parts) * parts;
                if lanes * parts > most || done * 8 > turns(lanes) * 9 {
                    continue;
                }
                for outer in (0..axes.len()).filter(|k| self.may_be_call(stage, &axes[*k..])) {
                    let count = [bytes, lanes, parts];
                    let ready = self.try_vector_loop(stage, target, axes, outer, count, certain);
                    if ready.is_some() {
                        return ready;
                    }
                }
            }
            if bytes <= 32 {
                break;
            }
        }
        None
    }

    /// Whether a stage writes elements that lie side by side along its innermost axis, `lane`.
    pub(super) fn may_be_vector_loop(&self, stage: &'n Stage, lane: Axis) -> bool {
        stage.mode == Mode::Set
            && !self.nest.buf(stage.target).ty.is_packed()
            && !stage.at.iter().any(Scalar::reads_zero)
            && self.steps_with(lane.id, &self.linear(stage.target, &stage.at)) == Some(1)
    }

    /// The vector loop for a block of `count` points of the innermost axis, `lane`, and all of `rows` around it.
    pub(crate) fn vector_loop_of_columns(
        &mut self,
        stage: &'n Stage,
        [rows, lane]: [Axis; 2],
        count: usize,
        outer: usize,
    ) -> Option<VectorLoop<'n>> {
        let target = self.target?;
        let certain = self.certain_loads(stage);
        let widest = self.widest_lane(stage, lane);
        let lanes = target.bytes() / widest;
        // A row in one turn, if it is short: loads that step evenly from row to row are foreseen by the processor.
        let parts = match count / lanes {
            whole @ 3..=4 if lanes * whole == count => whole,
            turns => turns.clamp(1, 2),
        };
        let block = Axis {
            extent: count.into(),
            ..lane
        };
        if lanes < 2 || lanes > count || !self.may_be_call(stage, &[rows, block]) {
            return None;
        }
        let cut = self.cut_axis(stage).filter(|axis| *axis == rows.id);
        let mut builder = Builder::new(self, Some(target), stage, (lanes, parts), certain);
        builder.blocked.push(lane.id);
        builder.stage(&[rows], block, cut)?;
        builder.ready(outer, target.bytes())
    }

    fn try_vector_loop(
        &self,
        stage: &'n Stage,
        target: Target,
        axes: &[Axis],
        outer: usize,
        [bytes, lanes, parts]: [usize; 3],
        certain: &FxHashSet<usize>,
    ) -> Option<VectorLoop<'n>> {
        let mut builder = Builder::new(self, Some(target), stage, (lanes, parts), certain.clone());
        let (lane, between) = axes[outer..].split_last()?;
        let cut = self.cut_axis(stage).filter(|_| outer == 0);
        builder.stage(between, *lane, cut)?;
        builder.ready(outer, bytes)
    }

    /// The vector loop that unrolls a fold by rows and jams them, with as many rows side by side as there are registers
    /// for; and narrower ones of one row, if there may be too few rows or columns for it.
    fn jammed_loop_of(
        &self,
        stage: &'n Stage,
        axes: &[Axis],
        widest: usize,
        certain: &FxHashSet<usize>,
    ) -> Option<VectorLoop<'n>> {
        let (target, lane) = (self.target?, *axes.last()?);
        // Where lanes may be left out, the least registers that hold a row; else the largest that it fills.
        let points = lane.extent.example();
        let may_be_few = target.has_masks() && lane.extent.number().is_some();
        let mut bytes = target.bytes();
        while match may_be_few {
            true => bytes > 32 && bytes / 2 / widest >= points,
            false => bytes / widest > points,
        } {
            bytes /= 2;
        }
        if bytes < LEAST_BYTES || bytes / widest < 2 {
            return None;
        }
        let shape = [bytes, bytes / widest];
        let inside = |most| self.jammed_loop(stage, axes, shape, most, certain);
        let outside = |most| self.jammed_loop_in_rows(stage, axes, shape, most, certain);
        let is_symbolic = self.nest.is_symbolic();
        let either = |most| inside(most).or_else(|| outside(most).filter(|_| is_symbolic));
        let mut ready = target.jammed_rows().into_iter().find_map(either)?;
        let mut least = usize::MAX;
        for bytes in [bytes, 32, LEAST_BYTES] {
            let lanes = bytes / widest;
            let is_needed = ready.needs().next().is_some() && ready.narrower.len() < MOST_NARROWER;
            if is_needed && (2..least).contains(&lanes) && lanes <= shape[1] {
                let narrower = self.loop_in_rows(stage, axes, [bytes, lanes], certain);
                ready.narrower.extend(narrower);
                least = lanes;
            }
        }
        Some(ready)
    }

    /// The vector loop over one row, with the loop over the rows outside.
    fn loop_in_rows(
        &self,
        stage: &'n Stage,
        axes: &[Axis],
        [bytes, lanes]: [usize; 2],
        certain: &FxHashSet<usize>,
    ) -> Option<VectorLoop<'n>> {
        let &[.., rows, lane] = axes else {
            return None;
        };
        let count = (lanes, 1);
        let mut builder = Builder::new(self, Some(self.target?), stage, count, certain.clone());
        builder.rows = Some((rows, 1));
        builder.stage(&[], lane, None)?;
        let is_safe = !builder.may_fault;
        builder.ready(axes.len() - 2, bytes).filter(|_| is_safe)
    }

    /// As [`Self::jammed_loop`], of as many rows as are done side by side, with the loop over the rows outside.
    fn jammed_loop_in_rows(
        &self,
        stage: &'n Stage,
        axes: &[Axis],
        [bytes, lanes]: [usize; 2],
        most: usize,
        certain: &FxHashSet<usize>,
    ) -> Option<VectorLoop<'n>> {
        let &[.., rows, lane] = axes else {
            return None;
        };
        let target = self.target?;
        let mut builder = Builder::new(self, Some(target), stage, (lanes, 1), certain.clone());
        let jam = Jam::of(&builder, rows, most, true)?;
        let each = Axis {
            extent: jam.each.into(),
            ..rows
        };
        if self.cut_axis(stage) == Some(rows.id) || !self.may_be_call(stage, &[each, lane]) {
            return None;
        }
        builder.rows = Some((rows, jam.each));
        builder.jam = Some(jam);
        builder.stage_in_rows(&[rows], lane, None)?;
        let is_safe = !builder.may_fault;
        builder.ready(axes.len() - 2, bytes).filter(|_| is_safe)
    }

    /// The vector loop that unrolls a fold by rows and jams them, at most `most` of them.
    fn jammed_loop(
        &self,
        stage: &'n Stage,
        axes: &[Axis],
        [bytes, lanes]: [usize; 2],
        most: usize,
        certain: &FxHashSet<usize>,
    ) -> Option<VectorLoop<'n>> {
        let target = self.target?;
        let &[.., rows, lane] = axes else {
            return None;
        };
        let cut = self.cut_axis(stage);
        // Where a loop around it may end early, it must not do rows that are not its own.
        if cut == Some(rows.id) {
            return None;
        }
        let points = lane.extent.number()?;
        for outer in (0..axes.len() - 1).filter(|k| self.may_be_call(stage, &axes[*k..])) {
            let mut builder = Builder::new(self, Some(target), stage, (lanes, 1), certain.clone());
            builder.jam = Some(Jam::of(&builder, rows, most, false)?);
            builder.few = Some(points).filter(|few| *few < lanes);
            let cut = cut.filter(|_| outer == 0);
            let built = builder.stage_in_rows(&axes[outer..axes.len() - 1], lane, cut);
            let ready = built.and_then(|()| builder.ready(outer, bytes));
            if ready.is_some() {
                return ready;
            }
        }
        None
    }

    /// The most bytes that a lane takes, of elements, indices or what is written.
    fn widest_lane(&self, stage: &'n Stage, lane: Axis) -> usize {
        self.widest_of(&stage.value)
            .max(self.width_of(stage.target))
            .max(self.widest_index(&stage.value, lane.id))
    }

    pub(super) fn width_of(&self, buffer: vinelift_nest::BufferId) -> usize {
        lane_bytes(self.nest.buf(buffer).ty).into()
    }

    /// The most bytes of an element on the way to a value.
    pub(super) fn widest_of(&self, value: &Scalar) -> usize {
        let mut widest = 1;
        visit(value, |x| {
            let constant = self.facts.free(x).is_empty();
            if x.ty() != Boolean && !constant {
                widest = widest.max(lane_bytes(x.ty()).into());
            }
            below_loads(x)
        });
        widest
    }

    /// How many scalars a value is made of, and whether it folds.
    fn size_of(&self, value: &Scalar) -> (usize, bool) {
        let (mut count, mut folds) = (0, false);
        visit(value, |x| {
            folds |= matches!(x.kind(), Kind::Reduce { .. });
            count += 1;
            below_loads(x)
        });
        (count, folds)
    }

    /// The scalars that may be evaluated whatever the data are: those that no select guards, and those whose loads lie inside
    /// their buffers without their guard.
    pub(super) fn certain_loads(&mut self, stage: &'n Stage) -> FxHashSet<usize> {
        let mut certain = FxHashSet::default();
        let mut guarded = Vec::new();
        let lane = stage.domain.iter().rfind(|axis| axis.extent > 1);
        let lane = lane.map(|axis| axis.id);
        let mut open: Vec<&Scalar> = stage.at.iter().chain([&stage.value]).collect();
        while let Some(x) = open.pop() {
            if !certain.insert(x.address()) {
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
        self.add_harmless(guarded, lane, &mut certain);
        certain
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
        certain: &mut FxHashSet<usize>,
    ) {
        let mut seen = FxHashSet::default();
        let mut open: Vec<_> = guarded.into_iter().map(|x| (x, false)).collect();
        while let Some((x, children_done)) = open.pop() {
            if !children_done {
                if certain.contains(&x.address()) || !seen.insert(x.address()) {
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
                && children.all(|x| certain.contains(&x.address()) || !self.facts.has_effect(x))
            {
                certain.insert(x.address());
            }
        }
    }
}

/// Indices are no lanes.
fn below_loads(x: &Scalar) -> Visit {
    match x.kind() {
        Kind::Load { .. } => Visit::Past,
        _ => Visit::Children,
    }
}
