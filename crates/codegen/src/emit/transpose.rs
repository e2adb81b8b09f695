//! Transposition: `to[r, l] = from[l, r]`, of squares whose rows are in registers.
//!
//! Whole lines of the cache are written at once, and each line that is read is taken in a few steps that follow each other.

use super::address::ElementAddress;
use super::emitter::{Emitter, Result, no_primitive};
use crate::analysis::runs::Runs;
use cranelift_codegen::ir::{InstBuilder, Value, types};
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
    /// Bytes from lane to lane in what is read, and from row to row in the target.
    steps: [i32; 2],
    /// The bytes of an element.
    width: usize,
    /// How many squares are done at once, side by side along the lanes.
    squares: usize,
}

const REGISTER: usize = 16;

/// The bytes of the largest elements of which a register holds enough.
const MOST_WIDTH: usize = 4;

/// How many squares may be done at once, the most wanted first. Four of `f32` fill lines of the cache; those of smaller elements are
/// more code, and no more of them are done than an element has bytes.
const SQUARES: [usize; 3] = [4, 2, 1];

/// Offsets of this many bytes and the steps of a square, which are less, fit together into an instruction.
const FAR: i32 = 1 << 30;

impl Transpose<'_> {
    pub(super) fn runs(&self) -> Runs {
        Runs {
            lanes: self.side(),
            bits: 8 * REGISTER,
        }
    }

    /// The note in the heading of a stage.
    pub(super) fn note(&self) -> String {
        let side = self.side();
        format!("{side} × {} transposed in registers", self.squares * side)
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
        let fits = |axis: Axis, count| axis.extent.number().is_some_and(|n| n >= count);
        let mut squares = SQUARES.into_iter().filter(|squares| *squares <= width);
        let squares = squares.find(|squares| fits(lane, squares * side))?;
        // Those of all lanes and rows are offsets of instructions.
        let bytes = |elements: i64| {
            let bytes = i32::try_from(elements.checked_mul(width as i64)?).ok()?;
            let most = bytes.checked_mul(REGISTER as i32)?;
            (most.abs() < FAR).then_some(bytes)
        };
        let steps = [bytes(step(lane, &from)?)?, bytes(step(rows, &to)?)?];
        let is_apart = inner != outer && fits(rows, side);
        is_apart.then_some(Transpose {
            buffer,
            at,
            outermost: inner.min(outer),
            lane,
            rows,
            steps,
            width,
            squares,
        })
    }

    /// Opens the loops over `inner`, the axes from the outermost one of the square's on, and does some lanes and rows in them.
    pub(super) fn transpose(
        &mut self,
        stage: &'n Stage,
        of: &Transpose<'n>,
        inner: &[Axis],
    ) -> Result {
        let side = of.side();
        let others = inner
            .iter()
            .filter(|axis| ![of.lane.id, of.rows.id].contains(&axis.id));
        let others = others.map(|axis| (*axis, 1));
        for (axis, points) in others.chain([(of.lane, of.squares * side), (of.rows, side)]) {
            self.chunk_at_least(stage, axis, points);
            let turns = self.turns(stage, axis);
            self.open_loop(axis, turns, points as i64, &[]);
            self.stay_before(axis, turns, points);
        }
        let (from, first) = self.first_element(of.buffer, of.at)?;
        let (to, target) = self.first_element(stage.target, &stage.at)?;
        let flags = [of.buffer, stage.target].map(|buffer| self.flags[buffer.0 as usize]);
        let [lane_step, row_step] = of.steps;
        for lane in (0..of.squares * side).step_by(side) {
            let line = |k: usize| first + (lane + k) as i32 * lane_step;
            let lines = (0..side).map(|k| {
                let ins = self.builder.ins();
                ins.load(types::I8X16, flags[0], from, line(k))
            });
            let lines: Vec<Value> = lines.collect();
            for (row, line) in self.transposed(lines, of.width).into_iter().enumerate() {
                let offset = target + row as i32 * row_step + (lane * of.width) as i32;
                self.builder.ins().store(flags[1], line, to, offset);
            }
        }
        Ok(())
    }

    /// Where the element of all axes as they are lies.
    fn first_element(&mut self, buffer: BufferId, at: &'n [Scalar]) -> Result<(Value, i32)> {
        let linear = self.analysis.linear(buffer, at);
        self.compute(linear.leaves())?;
        match self.place(buffer, &linear) {
            ElementAddress::Bytes { address, offset } if offset < FAR => Ok((address, offset)),
            ElementAddress::Bytes { address, offset } => {
                let address = self.builder.ins().iadd_imm_s(address, i64::from(offset));
                Ok((address, 0))
            }
            ElementAddress::Packed { .. } => no_primitive("squares of packed elements"),
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
