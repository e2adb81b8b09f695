//! Stages that a whole row of the innermost axis can be done of at once: what constants are made of mostly is
//! arithmetic over the elements of a few tensors, and taking each step for a row at a time is many times as fast.
//!
//! It gives what [`Machine`] gives point by point: every node of such a stage is evaluated at every point, and
//! none can fail.

use super::InterpretError;
use super::arith;
use super::compile::{Id, Loop, Op, Program, malformed};
use super::machine::Machine;
use super::memory::Line;
use vinelift_tensor::ElementType;

/// A shorter row is done point by point.
const LEAST_POINTS: usize = 8;

/// A longer row is done in blocks, whose values stay in the cache.
const BLOCK: usize = 256;

/// What is done for each row of a stage.
pub(super) struct Rows<'p> {
    program: &'p Program,
    /// The innermost axis.
    lane: &'p Loop,
    /// The nodes that differ along a row, in order.
    steps: Vec<Id>,
    /// For each node, which row holds its values.
    places: Vec<Option<usize>>,
}

impl<'p> Rows<'p> {
    /// For a stage that nothing but loads of elements at equal steps and arithmetic depends on the row in.
    pub(super) fn of(program: &'p Program) -> Option<Rows<'p>> {
        let lane = program.domain.last()?;
        let varies = |n: Id| program.nodes[n as usize].level as usize == lane.level;
        let along = |at: &[Id]| {
            let lanes = at.iter().filter(|&&n| n == lane.node);
            lanes.count() == 1 && !at.iter().any(|&n| varies(n))
        };
        // Axes and constants: an index that is out of range may mean that nothing is written.
        let is_given = |&n: &Id| matches!(program.nodes[n as usize].op, Op::Given(_));
        let writes = along(&program.at) && program.at.iter().all(is_given);
        if program.combine.is_some() || lane.extent < LEAST_POINTS || !writes {
            return None;
        }
        let mut places = vec![None; program.nodes.len()];
        let mut steps = Vec::new();
        for &n in program.value_steps.iter().filter(|&&n| varies(n)) {
            let node = &program.nodes[n as usize];
            let fits = match &node.op {
                Op::Load { at, buffer } => along(at) && *buffer != program.target,
                Op::Unary(..) | Op::Binary(..) | Op::Sum(..) | Op::Cast { .. } => true,
                _ => false,
            };
            // The axis is an index, and no value.
            let mut computes_with_axis = false;
            if !matches!(node.op, Op::Load { .. }) {
                let mut check = |x: Id| computes_with_axis |= x == lane.node;
                node.op.for_each_needed(&program.nodes, &mut check);
            }
            if !fits || !node.pure || computes_with_axis {
                return None;
            }
            places[n as usize] = Some(steps.len());
            steps.push(n);
        }
        (program.value != lane.node).then_some(Rows {
            program,
            lane,
            steps,
            places,
        })
    }

    /// Runs the stage.
    pub(super) fn run(&self, mut machine: Machine<'_, '_, '_>) -> Result<(), InterpretError> {
        let program = self.program;
        let outer = &program.domain[..program.domain.len() - 1];
        let mut rows = vec![vec![0; self.lane.extent.min(BLOCK)]; self.steps.len()];
        let mut same = vec![Vec::new(); 3];
        let mut more = machine.start(&program.domain);
        let varies = |n: Id| program.nodes[n as usize].level as usize == self.lane.level;
        while more {
            for &n in program.at_steps.iter().chain(&program.value_steps) {
                if !varies(n) {
                    machine.evaluate(&[n])?;
                }
            }
            for start in (0..self.lane.extent).step_by(BLOCK) {
                let block = start..self.lane.extent.min(start + BLOCK);
                let count = block.len();
                for (row, &n) in self.steps.iter().enumerate() {
                    let (before, rest) = rows.split_at_mut(row);
                    let to = &mut rest[0][..count];
                    self.step(&machine, n, block.start, before, &mut same, to)?;
                }
                let value = match self.places[program.value as usize] {
                    Some(row) => &rows[row][..count],
                    None => filled(&mut same[0], machine.value(program.value), count),
                };
                let line = self.line(&machine, program.target, &program.at)?;
                machine
                    .memory
                    .set_line(program.target, line.from(block.start), value)?;
            }
            more = machine.advance(outer);
        }
        Ok(())
    }

    /// The values of a node from point `start` of a row on; `rows` are those of the nodes before it.
    fn step(
        &self,
        machine: &Machine<'_, '_, '_>,
        n: Id,
        start: usize,
        rows: &[Vec<u64>],
        same: &mut [Vec<u64>],
        to: &mut [u64],
    ) -> Result<(), InterpretError> {
        let count = to.len();
        let mut same = same.iter_mut();
        let mut of = |n: &Id| match (self.places[*n as usize], same.next()) {
            (Some(row), _) => &rows[row][..count],
            (None, Some(row)) => filled(row, machine.value(*n), count),
            (None, None) => &[],
        };
        match &self.program.nodes[n as usize].op {
            Op::Unary(op, ty, x) => each(to, of(x), |x| arith::unary(*op, *ty, x)),
            Op::Binary(op, ty, x, y) => {
                let (x, y) = (of(x), of(y));
                for ((to, &x), &y) in to.iter_mut().zip(x).zip(y) {
                    *to = arith::binary(*op, *ty, x, y);
                }
            }
            Op::Sum(ty, [sum, x, y]) => {
                let (sum, x, y) = (of(sum), of(x), of(y));
                for (((to, &sum), &x), &y) in to.iter_mut().zip(sum).zip(x).zip(y) {
                    *to = arith::add_term(*ty, sum, x, y);
                }
            }
            Op::Cast { from, to: ty, x } => match (from, ty) {
                (ElementType::F16, ElementType::F32) => each(to, of(x), |x| {
                    arith::cast(ElementType::F16, ElementType::F32, x)
                }),
                _ => each(to, of(x), |x| arith::cast(*from, *ty, x)),
            },
            Op::Load { buffer, at } => {
                let line = self.line(machine, *buffer, at)?;
                machine.memory.get_line(*buffer, line.from(start), to);
            }
            _ => {}
        }
        Ok(())
    }

    /// Where a row lies in a buffer.
    fn line(
        &self,
        machine: &Machine<'_, '_, '_>,
        buffer: usize,
        at: &[Id],
    ) -> Result<Line, InterpretError> {
        let place = |point: u64| {
            let index = move |&n: &Id| match n == self.lane.node {
                true => point,
                false => machine.value(n),
            };
            machine.memory.locate(buffer, at.iter().map(index))
        };
        let last = self.lane.extent - 1;
        let (Some(first), Some(end)) = (place(0)?, place(last as u64)?) else {
            return Err(malformed("a row has no place"));
        };
        let step = (end - first) / last;
        Ok(Line { first, step })
    }
}

fn each(to: &mut [u64], x: &[u64], f: impl Fn(u64) -> u64) {
    for (to, &x) in to.iter_mut().zip(x) {
        *to = f(x);
    }
}

/// A row of the same value.
fn filled(row: &mut Vec<u64>, value: u64, count: usize) -> &[u64] {
    row.clear();
    row.resize(count, value);
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{index, number};
    use crate::interpret::BufferBytes;
    use crate::interpret::memory::Memory;
    use crate::legalize::legalize_with_halves;
    use crate::nest::{Nest, Role, Site};
    use crate::scalar::{Policy, Scalar};
    use vinelift_tensor::ElementType::{F16, F32, I8, I64};

    /// `y[i, j] = (x[i, j] - zero[i]) · scale + t[j, i]`, in rows and point by point.
    #[test]
    fn rows_are_what_their_points_are() {
        for (ty, columns) in [(F16, 9), (F16, 3 * BLOCK + 5), (I8, BLOCK), (I8, 31)] {
            let mut nest = Nest::new();
            let x = nest.buffer("x", ty, &[3, columns], Role::Input);
            let zero = nest.buffer("zero", ty, &[3], Role::Input);
            let t = nest.buffer("t", I8, &[columns, 3], Role::Input);
            let y = nest.buffer("y", F32, &[3, columns], Role::Output);
            nest.define(vec![], y, |n, at| {
                let load = |b, at: &[&Scalar]| n.load(b, at.iter().map(|i| (*i).clone()).collect());
                let difference =
                    load(x, &[&at[0], &at[1]]).cast(F32) - load(zero, &[&at[0]]).cast(F32);
                difference * 0.37 + load(t, &[&at[1], &at[0]]).cast(F32)
            });
            let nest = legalize_with_halves(&nest).unwrap_or(nest);
            let program = Program::new(&nest, &nest.stages[0]).unwrap();
            let rows = Rows::of(&program).unwrap();
            let bytes = |count: usize, bits: usize| -> Vec<u8> {
                (0..count * bits / 8)
                    .map(|k| (k * 37 % 251) as u8 & 0x3f)
                    .collect()
            };
            let (x, zero, t) = (
                bytes(3 * columns, ty.bits()),
                bytes(3, ty.bits()),
                bytes(3 * columns, 8),
            );
            let result = |in_rows: bool| {
                let mut result = vec![0; 3 * columns * 4];
                let mut buffers = [
                    BufferBytes::Read(&x),
                    BufferBytes::Read(&zero),
                    BufferBytes::Read(&t),
                    BufferBytes::Write(&mut result),
                ];
                let mut memory = Memory::new(&nest, &mut buffers).unwrap();
                let machine = Machine::new(&program, &mut memory);
                match in_rows {
                    true => rows.run(machine).unwrap(),
                    false => machine.run_points().unwrap(),
                }
                result
            };
            let points = result(false);
            assert!(points.iter().any(|byte| *byte != 0));
            assert_eq!(result(true), points, "{ty} {columns}");
        }
    }

    #[test]
    fn what_may_write_nothing_is_done_point_by_point() {
        let mut nest = Nest::new();
        let k = nest.buffer("k", I64, &[16], Role::Input);
        let y = nest.buffer("y", F32, &[4, 16], Role::Output);
        let layer = nest.layer("s", "Scatter, opset1");
        nest.define(vec![layer], y, |_, _| number(1.0, F32));
        assert!(Rows::of(&Program::new(&nest, &nest.stages[0]).unwrap()).is_some());
        let site = Site {
            layer,
            input: "k".into(),
        };
        let row = nest.load(k, vec![index(0)]);
        let row = nest.wrap(row, 4, Policy::WRAP_OR_ZERO, site, vec![index(0)]);
        nest.stages[0].at[0] = row;
        nest.stages[0].domain.remove(0);
        let program = Program::new(&nest, &nest.stages[0]).unwrap();
        assert!(Rows::of(&program).is_none());
    }
}
