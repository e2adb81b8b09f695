//! From a stage, or the inner loops of one, to a program.

use super::jam::Jam;
use super::vector_loop::{Argument, KernelScalar, Pace, VectorLoop};
use crate::analysis::Analysis;
use crate::analysis::coefficient::Coefficient;
use crate::analysis::linear::Linear;
use crate::target::Target;
use crate::vector_ir::ops::{Access, Op};
use crate::vector_ir::program::{Instruction, Program, Step, Stride, TripCount, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use vinelift_nest::{Axis, AxisId, BufferId, FoldBounds, Mode, Scalar, Stage};
use vinelift_tensor::ElementType::{self, Boolean};
use vinelift_tensor::Extent;

/// Accesses of equal keys go by the same pointer.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PointerKey {
    pub(super) buffer: BufferId,
    pub(super) panel: Option<usize>,
    pub(super) terms: Vec<(usize, Coefficient)>,
    pub(super) symbolic: Vec<Coefficient>,
    pub(super) moves: Vec<(usize, Coefficient)>,
    pub(super) pace: Pace,
}

/// Elements that lie side by side along the lanes, row after row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) access: Access,
    /// Bytes of an element.
    pub(super) width: i32,
    /// Bytes from row to row.
    pub(super) row_bytes: i32,
}

/// A loop, or the code around all loops.
pub(super) struct Block {
    /// Its axis, which has the points of a block if it is in blocks.
    pub(super) axis: Option<Axis>,
    steps: Vec<Step>,
    pub(super) moves: Vec<(u32, Stride)>,
    pub(super) trips: Option<TripCount>,
    /// Whether it may be skipped.
    pub(super) is_rare: bool,
}

impl Block {
    pub(super) fn is_over(&self, axis: AxisId) -> bool {
        self.axis.is_some_and(|own| own.id == axis)
    }
}

pub(super) struct Builder<'b, 'n> {
    pub(super) analysis: &'b Analysis<'n>,
    /// The machine that the program becomes a function for; `None` for a program that becomes part of the kernel.
    pub(super) target: Option<Target>,
    pub(super) program: Program,
    pub(super) arguments: Vec<Argument<'n>>,
    /// The scalars that the kernel computes inside the program.
    pub(super) kernel_scalars: Vec<KernelScalar<'n>>,
    /// The bounds of the folds that are loops of the kernel.
    pub(super) bounds: Vec<FoldBounds<'n>>,
    pub(super) stage: &'n Stage,
    /// Elements in one register.
    pub(super) lanes: usize,
    /// Registers for what depends on the axis that runs over lanes.
    pub(super) parts: usize,
    /// The axis that runs over lanes, inside its loop.
    pub(super) lane: Option<AxisId>,
    /// The points of that axis, if it has fewer than a register has lanes: others are left out.
    pub(super) few: Option<usize>,
    pub(super) blocks: Vec<Block>,
    /// Which of them instructions go to.
    pub(super) at: usize,
    /// The rows that are unrolled and jammed, if any are.
    pub(super) jam: Option<Jam<'n>>,
    /// The axis that is cut into chunks.
    pub(super) cut: Option<AxisId>,
    /// Axes of which it does a block: from where they stand in the kernel on.
    pub(super) blocked: Vec<AxisId>,
    /// Runs of neighbours that such a block reads or writes.
    pub(super) runs: Vec<Run>,
    /// Loads that the kernel has collected.
    pub(super) collected: Vec<&'n Scalar>,
    /// Axes that have one value for now.
    pub(super) fixed: FxHashMap<AxisId, i64>,
    pub(super) known: FxHashMap<usize, (usize, Value)>,
    pub(super) order: Vec<usize>,
    /// The [speculable](Analysis::speculable) scalars.
    pub(super) speculable: FxHashSet<usize>,
    pub(super) pointers: FxHashMap<PointerKey, u32>,
    /// The offsets of what is accessed, by buffer and where the indices are.
    pub(super) linears: FxHashMap<(BufferId, usize), Rc<Linear<'n>>>,
    pub(super) scalars: FxHashMap<usize, u32>,
    /// Whether an index may be out of range.
    pub(super) may_fault: bool,
    /// The axis over lanes and how many of its points there must be, if there may be fewer.
    least: Option<(Axis, usize)>,
    /// The innermost axis that is not part of the program, if that does several points of it at once, or one.
    pub(super) rows: Option<(Axis, usize)>,
    /// The note of a dump on how elements are gathered, if any are.
    pub(super) how: String,
}

impl<'b, 'n> Builder<'b, 'n> {
    /// A builder of a program that does `parts` registers of `lanes` elements at a time.
    pub(super) fn new(
        analysis: &'b Analysis<'n>,
        target: Option<Target>,
        stage: &'n Stage,
        (lanes, parts): (usize, usize),
        speculable: FxHashSet<usize>,
    ) -> Builder<'b, 'n> {
        Builder {
            analysis,
            target,
            program: Program::default(),
            arguments: Vec::new(),
            kernel_scalars: Vec::new(),
            bounds: Vec::new(),
            stage,
            lanes,
            parts,
            lane: None,
            few: None,
            blocks: vec![Block {
                axis: None,
                steps: Vec::new(),
                moves: Vec::new(),
                trips: None,
                is_rare: false,
            }],
            at: 0,
            jam: None,
            cut: None,
            blocked: Vec::new(),
            runs: Vec::new(),
            collected: Vec::new(),
            fixed: FxHashMap::default(),
            known: FxHashMap::default(),
            order: Vec::new(),
            speculable,
            pointers: FxHashMap::default(),
            linears: FxHashMap::default(),
            scalars: FxHashMap::default(),
            may_fault: false,
            least: None,
            rows: None,
            how: String::new(),
        }
    }

    /// The vector loop that has been built, on registers of `bytes` bytes, inside `outer` loops of the kernel; `None`
    /// if there are too few registers for what is done side by side. One register for each value, of one row, may spill.
    pub(super) fn ready(mut self, outer: usize, bytes: usize) -> Option<VectorLoop<'n>> {
        (self.program.lanes, self.program.parts) = (self.lanes, self.parts);
        self.program.few = self.few;
        let may_spill = self.parts == 1 && self.jam.is_none();
        Some(VectorLoop {
            code: self.target?.compile(&self.program, may_spill)?,
            arguments: self.arguments,
            may_fault: self.may_fault,
            least: self.least,
            rows: self.rows,
            narrower: Vec::new(),
            how: self.how,
            outer,
            lanes: self.lanes * self.parts,
            bits: bytes * 8,
        })
    }

    /// Builds the loops over `outer` and over `lane`, along which the target is written. Of the axis `cut` only a
    /// chunk may have to be done.
    pub(super) fn stage(&mut self, outer: &[Axis], lane: Axis, cut: Option<AxisId>) -> Option<()> {
        self.cut = cut;
        for axis in outer {
            match axis.extent.number() {
                Some(1) => drop(self.fixed.insert(axis.id, 0)),
                _ => self.open(*axis)?,
            }
        }
        self.open_lanes(lane)?;
        self.finish()
    }

    /// As [`Self::stage`], with several points of the innermost axis of `outer` at once, as the jam says.
    pub(super) fn stage_in_rows(
        &mut self,
        outer: &[Axis],
        lane: Axis,
        cut: Option<AxisId>,
    ) -> Option<()> {
        self.cut = cut;
        let (_, outer) = outer.split_last()?;
        for axis in outer {
            self.open(*axis)?;
        }
        self.jammed_loops(lane)?;
        self.close_all()
    }

    pub(super) fn open_lanes(&mut self, lane: Axis) -> Option<()> {
        self.lane = Some(lane.id);
        if self.is_in_kernel() {
            self.push(lane, TripCount::OfKernel);
            return Some(());
        }
        let step = i32::try_from(self.lanes * self.parts).ok()?;
        let extent = i32::try_from(lane.extent.most()).ok()?;
        if self.lanes * self.parts > self.least_of_chunk(lane.id) {
            return None;
        }
        let is_known = lane.extent >= self.lanes * self.parts || self.few.is_some();
        if !is_known {
            self.least = Some((lane, self.lanes * self.parts));
        }
        let argument = match self.cut == Some(lane.id) {
            true => Some(self.points(step.into())),
            false => self.points_of(lane.extent, step.into()),
        };
        let trips = match argument {
            Some(argument) => TripCount::LanesUntil {
                argument,
                extent,
                step,
            },
            None => TripCount::Lanes { extent, step },
        };
        self.push(lane, trips);
        Some(())
    }

    /// The points of an axis that each chunk has at least, where only a chunk may have to be done.
    pub(super) fn least_of_chunk(&self, axis: AxisId) -> usize {
        match self.cut == Some(axis) {
            true => self.analysis.least_of_chunk(self.stage, axis),
            false => usize::MAX,
        }
    }

    /// The value and its store, inside the loops that are open.
    fn finish(&mut self) -> Option<()> {
        let mut value = self.value(&self.stage.value)?;
        if let Mode::Combine(op) = self.stage.mode {
            let old = self.old_value()?;
            let (ty, bits) = (self.stage.value.ty(), self.stage.value.as_const());
            value = self.binary(op, ty, [old, value], bits)?;
        }
        self.store(value)?;
        if let Some(lane) = self.blocks.last().filter(|_| !self.runs.is_empty()) {
            self.fetch_ahead(lane.axis?.extent.number()?)?;
        }
        self.close_all()
    }

    fn close_all(&mut self) -> Option<()> {
        while self.blocks.len() > 1 {
            self.close();
        }
        self.program.steps = std::mem::take(&mut self.blocks[0].steps);
        Some(())
    }

    pub(super) fn open(&mut self, axis: Axis) -> Option<()> {
        let trips = match self.cut == Some(axis.id) {
            true => TripCount::Argument(self.points(0)),
            false => TripCount::Fixed(i32::try_from(axis.extent.number()?).ok()?),
        };
        self.push(axis, trips);
        Some(())
    }

    /// Opens the loop over an axis of a fold.
    pub(super) fn open_fold(&mut self, axis: Axis) -> Option<()> {
        if self.is_in_kernel() {
            self.push(axis, TripCount::OfKernel);
            return Some(());
        }
        match self.points_of(axis.extent, 0) {
            Some(argument) => self.push(axis, TripCount::Times(argument)),
            None => self.open(axis)?,
        }
        Some(())
    }

    /// The argument that is an extent less `less`, if that has symbols.
    fn points_of(&mut self, extent: Extent, less: i64) -> Option<u32> {
        let is_known = !extent.is_symbolic();
        (!is_known).then(|| self.argument(Argument::Extent { extent, less }))
    }

    fn points(&mut self, less: i64) -> u32 {
        self.argument(Argument::Points { less })
    }

    pub(super) fn push(&mut self, axis: Axis, trips: TripCount) {
        self.push_block(axis, Some(trips));
    }

    /// Opens a block of code for one point of an axis, or for several, whose loop is elsewhere.
    pub(super) fn push_block(&mut self, axis: Axis, trips: Option<TripCount>) {
        self.blocks.push(Block {
            axis: Some(axis),
            steps: Vec::new(),
            moves: Vec::new(),
            trips,
            is_rare: false,
        });
        self.at = self.blocks.len() - 1;
    }

    /// Opens what may be skipped where the mask has no lanes, inside the innermost loop.
    pub(super) fn open_rare(&mut self, mask: Value) {
        self.add(Op::HasLanes, Boolean, &[mask]);
        self.blocks.push(Block {
            axis: None,
            steps: Vec::new(),
            moves: Vec::new(),
            trips: None,
            is_rare: true,
        });
        self.at = self.blocks.len() - 1;
    }

    /// Closes the innermost loop: appends it to the code around it, and forgets what was computed in it.
    pub(super) fn close(&mut self) {
        let Some(block) = self.blocks.pop() else {
            return;
        };
        let depth = self.blocks.len();
        let known = &mut self.known;
        self.order.retain(|address| {
            let inside = known.get(address).is_some_and(|(at, _)| *at >= depth);
            if inside {
                known.remove(address);
            }
            !inside
        });
        self.at = depth - 1;
        let steps = &mut self.blocks[depth - 1].steps;
        match block.axis.zip(block.trips) {
            Some((axis, trips)) => steps.push(Step::Loop {
                axis,
                trips,
                moves: block.moves,
                body: block.steps,
            }),
            None if block.is_rare => steps.push(Step::IfLanes(block.steps)),
            None => steps.extend(block.steps),
        }
    }

    /// Has instructions go to this loop from now on. Returns the one that they went to.
    pub(super) fn go_to(&mut self, block: usize) -> usize {
        std::mem::replace(&mut self.at, block)
    }

    /// Puts an instruction without a result into the loop.
    pub(super) fn add(&mut self, op: Op, ty: ElementType, operands: &[Value]) {
        self.instruct(op, ty, operands, None);
    }

    /// Puts an instruction into the loop whose result is a new value.
    pub(super) fn apply(&mut self, op: Op, ty: ElementType, operands: &[Value]) -> Value {
        let to = self.program.value(match op {
            Op::Compare(_) | Op::IsNonZero => Boolean,
            _ => ty,
        });
        self.instruct(op, ty, operands, Some(to));
        to
    }

    /// `variable = op(operands)`
    pub(super) fn assign(&mut self, op: Op, ty: ElementType, operands: &[Value], variable: Value) {
        self.instruct(op, ty, operands, Some(variable));
    }

    fn instruct(&mut self, op: Op, ty: ElementType, operands: &[Value], to: Option<Value>) {
        let number = self.program.instructions.len() as u32;
        self.blocks[self.at].steps.push(Step::Do(number));
        self.program.instructions.push(Instruction {
            op,
            ty,
            operands: [0, 1, 2].map(|k| operands.get(k).copied()),
            to,
        });
    }

    /// A value that is the same throughout, which is in no loop.
    pub(super) fn throughout(&mut self, op: Op, ty: ElementType) -> Value {
        let to = self.program.value(ty);
        self.program.instructions.push(Instruction {
            op,
            ty,
            operands: [None; 3],
            to: Some(to),
        });
        to
    }
}
