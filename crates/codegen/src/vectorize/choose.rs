//! Which stages, or inner loops of them, become vector loops, how wide, and how far unrolled.

use super::build::Builder;
use super::jam::Jam;
use super::vector_loop::VectorLoop;
use crate::analysis::Analysis;
use crate::analysis::walk::{Visit, visit};
use crate::analysis::work::usual_points;
use crate::vector_ir::ops::lane_bytes;
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, Kind, Mode, Scalar, Stage};
use vinelift_tensor::ElementType::Boolean;

/// A value of at least this many scalars is taken to be a long dependency chain, of which each operation waits for the one
/// before.
const LONG: usize = 16;

/// The most registers done side by side.
const MOST_PARTS: usize = 8;

/// Bytes of the narrowest registers.
const LEAST_BYTES: usize = 16;

/// The most narrower vector loops of a stage, for runs with fewer points.
const MOST_NARROWER: usize = 2;

/// A stage that may become a vector loop, with what every way to build one needs.
struct Candidate<'n> {
    stage: &'n Stage,
    /// The axes of the domain that have more than one point, outermost first. The last is the lane axis.
    axes: Vec<Axis>,
    lane: Axis,
    /// Bytes of the widest lane.
    widest: usize,
    /// The [speculable](Analysis::speculable) scalars.
    speculable: FxHashSet<usize>,
}

/// How wide the registers of a vector loop are.
#[derive(Clone, Copy)]
struct Width {
    bytes: usize,
    /// Elements of the widest type in a register.
    lanes: usize,
}

impl Candidate<'_> {
    fn width(&self, bytes: usize) -> Width {
        Width {
            bytes,
            lanes: bytes / self.widest,
        }
    }
}

impl Width {
    /// Whether registers are large enough to be worth it.
    fn is_vector(self) -> bool {
        self.bytes >= LEAST_BYTES && self.lanes >= 2
    }
}

impl<'n> Analysis<'n> {
    /// The vector loop for a stage whose facts are known: over as many of its inner loops as can be in one.
    pub(crate) fn vector_loop_of(&mut self, stage: &'n Stage) -> Option<VectorLoop<'n>> {
        let target = self.target?;
        let axes = stage.domain.iter().copied().filter(|a| a.extent > 1);
        let axes: Vec<Axis> = axes.collect();
        let lane = *axes.last()?;
        if !self.may_be_vector_loop(stage, lane) {
            return None;
        }
        let candidate = Candidate {
            stage,
            axes,
            lane,
            speculable: self.speculable(stage),
            widest: self.widest_lane(stage, lane),
        };
        let (nodes, folds) = self.size_of(&stage.value);
        if folds && let Some(ready) = self.jammed_loop_of(&candidate) {
            return Some(ready);
        }
        let mut ready = self.widest_loop(&candidate, folds || nodes >= LONG)?;
        let mut least = ready.least.map(|(_, points)| points);
        for bytes in [target.bytes(), LEAST_BYTES] {
            let width = candidate.width(bytes);
            if width.lanes < 2 || least.is_none_or(|least| width.lanes >= least) {
                continue;
            }
            if let Some(narrower) = self.try_vector_loop(&candidate, ready.outer, width, 1) {
                least = Some(width.lanes);
                ready.narrower.push(narrower);
            }
        }
        Some(ready)
    }

    /// The vector loop in the widest vectors, with as many registers side by side as it fills. `is_long` says whether its value
    /// folds, or is a long chain.
    fn widest_loop(&mut self, candidate: &Candidate<'n>, is_long: bool) -> Option<VectorLoop<'n>> {
        let (stage, lane) = (candidate.stage, candidate.lane);
        let mut width = candidate.width(self.target?.bytes());
        let (points, most) = (usual_points(lane.extent), self.usual_points(stage, lane));
        while width.lanes > most {
            width = candidate.width(width.bytes / 2);
        }
        if !width.is_vector() {
            return None;
        }
        // Registers done side by side hide how long each takes, most of all in what is a long chain; and where they have more bits
        // than what is stored, several are stored as one.
        let stored = lane_bytes(self.nest.buf(stage.target).ty);
        let is_narrowed = usize::from(stored) < candidate.widest;
        let side_by_side = if is_long || is_narrowed { 4 } else { 2 };
        let columns = self.few_columns(stage, lane).unwrap_or(1);
        if self.cut_axis(stage) == Some(lane.id) {
            self.cut_at(stage, columns);
        }
        // Loads of every second element may need registers of 256 bits.
        for bytes in [width.bytes, 32] {
            let width = candidate.width(bytes);
            let mut counts = vec![4, 2, 1];
            counts.retain(|parts| *parts <= side_by_side);
            // A turn of whole rows, where the lane axis runs over rows of few columns.
            let is_whole = |parts: &usize| (width.lanes * parts).is_multiple_of(columns);
            let whole = (1..=MOST_PARTS).find(is_whole);
            counts.extend(whole.filter(|parts| !counts.contains(parts)));
            for parts in counts {
                if width.lanes * parts > most || repeats_much(points, width.lanes, parts) {
                    continue;
                }
                for outer in self.callable_loops(candidate, candidate.axes.len()) {
                    let ready = self.try_vector_loop(candidate, outer, width, parts);
                    if ready.is_some() {
                        return ready;
                    }
                }
            }
            if width.bytes <= 32 {
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
        let speculable = self.speculable(stage);
        let lanes = target.bytes() / self.widest_lane(stage, lane);
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
        let mut builder = Builder::new(self, Some(target), stage, (lanes, parts), speculable);
        builder.blocked.push(lane.id);
        builder.stage(&[rows], block, cut)?;
        builder.ready(outer, target.bytes())
    }

    /// The vector loop inside `outer` loops of the kernel, with `parts` registers of this width side by side.
    fn try_vector_loop(
        &self,
        candidate: &Candidate<'n>,
        outer: usize,
        width: Width,
        parts: usize,
    ) -> Option<VectorLoop<'n>> {
        let mut builder = self.builder(candidate, width, parts)?;
        let (lane, between) = candidate.axes[outer..].split_last()?;
        let cut = self.cut_axis(candidate.stage).filter(|_| outer == 0);
        builder.stage(between, *lane, cut)?;
        builder.ready(outer, width.bytes)
    }

    fn builder(
        &self,
        candidate: &Candidate<'n>,
        width: Width,
        parts: usize,
    ) -> Option<Builder<'_, 'n>> {
        let (target, speculable) = (self.target?, candidate.speculable.clone());
        let count = (width.lanes, parts);
        Some(Builder::new(
            self,
            Some(target),
            candidate.stage,
            count,
            speculable,
        ))
    }

    /// The numbers of loops, below `end`, that may stay outside of one call because those inside are little enough work.
    fn callable_loops(&self, candidate: &Candidate<'n>, end: usize) -> impl Iterator<Item = usize> {
        let Candidate { stage, axes, .. } = candidate;
        (0..end).filter(|outer| self.may_be_call(stage, &axes[*outer..]))
    }

    /// The vector loop that unrolls a fold by rows and jams them, with as many rows side by side as there are registers
    /// for; and narrower ones of one row, if there may be too few rows or columns for it.
    fn jammed_loop_of(&self, candidate: &Candidate<'n>) -> Option<VectorLoop<'n>> {
        let (target, lane) = (self.target?, candidate.lane);
        // Where lanes may be left out, the least registers that hold a row; else the largest that it fills.
        let points = lane.extent.example();
        let may_be_few = target.has_masks() && lane.extent.number().is_some();
        let mut width = candidate.width(target.bytes());
        while match may_be_few {
            true => width.bytes > 32 && candidate.width(width.bytes / 2).lanes >= points,
            false => width.lanes > points,
        } {
            width = candidate.width(width.bytes / 2);
        }
        if !width.is_vector() {
            return None;
        }
        let inside = |most| self.jammed_loop(candidate, width, most);
        let outside = |most| self.jammed_loop_in_rows(candidate, width, most);
        let is_symbolic = self.nest.is_symbolic();
        let either = |most| inside(most).or_else(|| outside(most).filter(|_| is_symbolic));
        let mut ready = target.jammed_rows().into_iter().find_map(either)?;
        let mut least = usize::MAX;
        for bytes in [width.bytes, 32, LEAST_BYTES] {
            let narrower = candidate.width(bytes);
            let last = ready.narrower.last().unwrap_or(&ready);
            let is_needed = last.may_be_few() && ready.narrower.len() < MOST_NARROWER;
            let is_narrower = (2..least).contains(&narrower.lanes) && narrower.lanes <= width.lanes;
            if is_needed && is_narrower {
                ready
                    .narrower
                    .extend(self.loop_in_rows(candidate, narrower));
                least = narrower.lanes;
            }
        }
        Some(ready)
    }

    /// The vector loop over one row, with the loop over the rows outside.
    fn loop_in_rows(&self, candidate: &Candidate<'n>, width: Width) -> Option<VectorLoop<'n>> {
        let [.., rows, lane] = candidate.axes[..] else {
            return None;
        };
        let mut builder = self.builder(candidate, width, 1)?;
        builder.rows = Some((rows, 1));
        builder.stage(&[], lane, None)?;
        self.ready_in_rows(builder, candidate, width)
    }

    /// As [`Self::jammed_loop`], of as many rows as are done side by side, with the loop over the rows outside.
    fn jammed_loop_in_rows(
        &self,
        candidate: &Candidate<'n>,
        width: Width,
        most: usize,
    ) -> Option<VectorLoop<'n>> {
        let [.., rows, lane] = candidate.axes[..] else {
            return None;
        };
        let stage = candidate.stage;
        let mut builder = self.builder(candidate, width, 1)?;
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
        self.ready_in_rows(builder, candidate, width)
    }

    /// The vector loop that has been built, with the loop over the rows outside; `None` if it may find an index out of range.
    fn ready_in_rows(
        &self,
        builder: Builder<'_, 'n>,
        candidate: &Candidate<'n>,
        width: Width,
    ) -> Option<VectorLoop<'n>> {
        let is_safe = !builder.may_fault;
        let ready = builder.ready(candidate.axes.len() - 2, width.bytes);
        ready.filter(|_| is_safe)
    }

    /// The vector loop that unrolls a fold by rows and jams them, at most `most` of them.
    fn jammed_loop(
        &self,
        candidate: &Candidate<'n>,
        width: Width,
        most: usize,
    ) -> Option<VectorLoop<'n>> {
        let axes = &candidate.axes;
        let [.., rows, lane] = axes[..] else {
            return None;
        };
        let cut = self.cut_axis(candidate.stage);
        // Where a loop around it may end early, it must not do rows that are not its own.
        if cut == Some(rows.id) {
            return None;
        }
        let points = lane.extent.number()?;
        for outer in self.callable_loops(candidate, axes.len() - 1) {
            let mut builder = self.builder(candidate, width, 1)?;
            builder.jam = Some(Jam::of(&builder, rows, most, false)?);
            builder.few = Some(points).filter(|few| *few < width.lanes);
            let cut = cut.filter(|_| outer == 0);
            let built = builder.stage_in_rows(&axes[outer..axes.len() - 1], lane, cut);
            let ready = built.and_then(|()| builder.ready(outer, width.bytes));
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
}

/// Leaves out what is under loads: indices do not take up lanes.
fn below_loads(x: &Scalar) -> Visit {
    match x.kind() {
        Kind::Load { .. } => Visit::Past,
        _ => Visit::Children,
    }
}

/// Whether registers of this many lanes do more than an eighth too much where `parts` of them are done side by side: the last turn
/// overlaps the one before.
fn repeats_much(points: usize, lanes: usize, parts: usize) -> bool {
    let turns = |lanes: usize| points.div_ceil(lanes);
    let least = turns(lanes);
    turns(lanes * parts) * parts - least > least / 8
}

#[cfg(test)]
mod tests {
    use super::repeats_much;

    #[test]
    fn whole_turns_repeat_nothing_however_many_there_are() {
        assert!(!repeats_much(64, 16, 4));
        // Eight registers for seven, and sixteen for fifteen.
        assert!(repeats_much(7 * 16, 16, 4));
        assert!(!repeats_much(15 * 16, 16, 4));
        assert!(!repeats_much(usize::MAX, 16, 4));
    }
}
