//! Transposition: `to[r, l] = from[l, r]`, of squares whose rows are in registers.
//!
//! Whole lines of the cache are written at once, and each line that is read is taken in a few steps that follow each other.

use super::address::ElementAddress;
use super::emitter::{Emitter, Result, no_primitive};
use super::state::Binding;
use crate::analysis::runs::Runs;
use crate::analysis::work::usual_points;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use std::ops::Range;
use vinelift_nest::{Axis, BufferId, Scalar, Stage};

/// A stage that moves elements from one order to the other.
pub(super) struct Transpose<'n> {
    buffer: BufferId,
    at: &'n [Scalar],
    /// The position of the outer one of the two axes among those of more than one point.
    pub(super) outermost: usize,
    /// Along it lie neighbours in the target.
    lane: Axis,
    /// Along it lie neighbours in what is read.
    rows: Axis,
    /// Bytes from lane to lane in what is read, and from row to row in the target; `None` where that depends on symbols.
    steps: [Option<i32>; 2],
    /// The bytes of an element.
    width: usize,
    /// How many squares are done at once, side by side along the lanes, and along the rows.
    squares: usize,
    tall: usize,
    /// Whether rows of the target lie far apart.
    is_far: bool,
}

const REGISTER: usize = 16;

/// The bytes of the largest elements of which a register holds enough.
const MOST_WIDTH: usize = 4;

/// How many squares may be done at once, the most wanted first. Four of `f32` fill lines of the cache; those of smaller elements are
/// more code, and no more of them are done than an element has bytes.
const SQUARES: [usize; 3] = [4, 2, 1];

/// Where rows of the target are at least this many bytes apart, each lies on a page of its own. The loop over the lanes is then inside of
/// that over the rows, and code writes to [`TALL`] rows at a time. As many `f32` are a line of the cache in what it reads.
const PAGE: i32 = 4096;
const TALL: usize = 16;

/// An offset in this range and a step in it fit together into an instruction.
const NEAR: Range<i32> = -(1 << 30)..1 << 30;

impl Transpose<'_> {
    pub(super) fn runs(&self) -> Runs {
        Runs {
            lanes: self.side(),
            bits: 8 * REGISTER,
        }
    }

    /// The note in the heading of a stage.
    pub(super) fn note(&self) -> String {
        let [lanes, rows] = self.at_once();
        format!("{rows} × {lanes} transposed in registers")
    }

    /// The lanes and the rows that are done at once.
    fn at_once(&self) -> [usize; 2] {
        [self.squares, self.tall].map(|squares| squares * self.side())
    }

    /// The rows and the lanes of a square: the elements of a register.
    fn side(&self) -> usize {
        REGISTER / self.width
    }
}

impl<'n> Emitter<'n, '_> {
    /// How a stage transposes, if that is what it does. `many` are its axes of more than one point.
    pub(super) fn transpose_of(&self, stage: &'n Stage, many: &[Axis]) -> Option<Transpose<'n>> {
        let (buffer, at) = self.plain_copy(stage)?;
        let width = stage.value.ty().bits() / 8;
        if width > MOST_WIDTH {
            return None;
        }
        let side = REGISTER / width;
        let from = self.analysis.linear(buffer, at);
        let to = self.analysis.linear(stage.target, &stage.at);
        let step = |axis: Axis, linear| self.analysis.moves_with(axis.id, linear)?.number();
        let along = |linear| many.iter().position(|axis| step(*axis, linear) == Some(1));
        let (inner, outer) = (along(&to)?, along(&from)?);
        let (lane, rows) = (many[inner], many[outer]);
        let fits = |axis: Axis, count| usual_points(axis.extent) >= count;
        let mut squares = SQUARES.into_iter().filter(|squares| *squares <= width);
        let squares = squares.find(|squares| fits(lane, squares * side))?;
        // The steps to all lanes and rows of a square are parts of instructions, which have 32 bits for them.
        let bytes = |elements: i64| {
            let bytes = i32::try_from(elements.checked_mul(width as i64)?).ok()?;
            let most = bytes.checked_mul(REGISTER as i32)?;
            NEAR.contains(&most).then_some(bytes)
        };
        let step = |axis: Axis, linear| match self.analysis.moves_with(axis.id, linear)?.number() {
            Some(elements) => bytes(elements).map(Some),
            None => Some(None),
        };
        let steps = [step(lane, &from)?, step(rows, &to)?];
        let is_apart = inner != outer && fits(rows, side);
        let is_far = steps[1].is_some_and(|step| step.abs() >= PAGE) && fits(rows, TALL);
        is_apart.then_some(Transpose {
            buffer,
            at,
            outermost: inner.min(outer),
            lane,
            rows,
            steps,
            width,
            squares,
            tall: if is_far { TALL / side } else { 1 },
            is_far,
        })
    }

    /// All loops over `inner`, the axes from the outermost one of the square's on: of squares, or of points where there are too few for
    /// one.
    pub(super) fn transpose(
        &mut self,
        stage: &'n Stage,
        of: &Transpose<'n>,
        inner: &[Axis],
    ) -> Result {
        let [lanes, rows] = of.at_once();
        let few = [(of.lane, lanes), (of.rows, rows)].map(|(axis, points)| {
            self.chunk_at_least(stage, axis, points);
            let turns = self.turns(stage, axis);
            let are_enough = axis.extent >= points;
            (!are_enough).then(|| self.fewer_than(turns, points))
        });
        let few = few.into_iter().flatten();
        let few = few.reduce(|a, b| self.builder.ins().bor(a, b));
        self.unless_few(few, (stage, inner), |this| this.squares(stage, of, inner))
    }

    fn squares(&mut self, stage: &'n Stage, of: &Transpose<'n>, inner: &[Axis]) -> Result {
        let depth = self.loops.len();
        let side = of.side();
        let others = inner
            .iter()
            .filter(|axis| ![of.lane.id, of.rows.id].contains(&axis.id));
        let others = others.map(|axis| (*axis, 1));
        let [lanes, rows] = of.at_once();
        let squares = match of.is_far {
            true => [(of.rows, rows), (of.lane, lanes)],
            false => [(of.lane, lanes), (of.rows, rows)],
        };
        for (axis, points) in others.chain(squares) {
            let turns = self.turns(stage, axis);
            self.open_loop(axis, turns, points as i64, &[]);
            self.stay_before(axis, turns, points);
        }
        let [lane_step, row_step] = of.steps;
        let flags = [of.buffer, stage.target].map(|buffer| self.flags[buffer.0 as usize]);
        let lines = self.elements_along((of.buffer, of.at), of.lane, lanes, lane_step)?;
        let rows = self.elements_along((stage.target, &stage.at), of.rows, rows, row_step)?;
        for (square, lines) in lines.chunks(side).enumerate() {
            for (below, rows) in rows.chunks(side).enumerate() {
                let load = |(from, offset): &(Value, i32)| {
                    let offset = offset + (below * REGISTER) as i32;
                    let ins = self.builder.ins();
                    ins.load(types::I8X16, flags[0], *from, offset)
                };
                let lines = lines.iter().map(load).collect();
                let columns = self.transposed(lines, of.width);
                for (column, (to, offset)) in columns.into_iter().zip(rows) {
                    let offset = offset + (square * REGISTER) as i32;
                    self.builder.ins().store(flags[1], column, *to, offset);
                }
            }
        }
        while self.loops.len() > depth {
            self.close_loop(&[]);
        }
        Ok(())
    }

    /// Where `count` elements lie that are neighbours along an axis, the first of which is that of all axes as they are; `step` bytes
    /// from each to the next, if that is known.
    fn elements_along(
        &mut self,
        (buffer, at): (BufferId, &'n [Scalar]),
        axis: Axis,
        count: usize,
        step: Option<i32>,
    ) -> Result<Vec<(Value, i32)>> {
        if let Some(step) = step {
            let (address, first) = self.first_element(buffer, at)?;
            let offsets = (0..count as i32).map(|k| (address, first + k * step));
            return Ok(offsets.collect());
        }
        let first = self.axes[&axis.id];
        let mut all = Vec::with_capacity(count);
        for k in 0..count as i64 {
            let plus = first.plus + k;
            self.axes.insert(axis.id, Binding { plus, ..first });
            all.push(self.first_element(buffer, at)?);
        }
        self.axes.insert(axis.id, first);
        Ok(all)
    }

    /// Where the element of all axes as they are lies.
    pub(super) fn first_element(
        &mut self,
        buffer: BufferId,
        at: &'n [Scalar],
    ) -> Result<(Value, i32)> {
        let linear = self.analysis.linear(buffer, at);
        self.compute(linear.leaves())?;
        match self.place(buffer, &linear) {
            ElementAddress::Bytes { address, offset } if NEAR.contains(&offset) => {
                Ok((address, offset))
            }
            ElementAddress::Bytes { address, offset } => {
                let address = self.builder.ins().iadd_imm_s(address, i64::from(offset));
                Ok((address, 0))
            }
            ElementAddress::Packed { .. } => no_primitive("registers of packed elements"),
        }
    }

    /// The columns of a square of these rows: each step puts elements of the first and of the second half of the rows in turn.
    fn transposed(&mut self, mut lines: Vec<Value>, width: usize) -> Vec<Value> {
        for _ in 0..lines.len().ilog2() {
            let (first, second) = lines.split_at(lines.len() / 2);
            let pairs = first.iter().zip(second);
            lines = pairs
                .flat_map(|(a, b)| [0, 1].map(|half| self.in_turn([*a, *b], width, half)))
                .collect();
        }
        lines
    }

    /// Elements of two registers in turn, from a half of each.
    fn in_turn(&mut self, [a, b]: [Value; 2], width: usize, half: usize) -> Value {
        let byte = |byte: usize| {
            let (element, byte) = (byte / width, byte % width);
            let from = half * REGISTER / 2 + element / 2 * width + byte;
            (element % 2 * REGISTER + from) as u8
        };
        let bytes: Vec<u8> = (0..REGISTER).map(byte).collect();
        let bytes = self.builder.func.dfg.immediates.push(bytes.into());
        self.builder.ins().shuffle(a, b, bytes)
    }
}
