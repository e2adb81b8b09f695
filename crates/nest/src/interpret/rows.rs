//! Row evaluation: each node of a stage is evaluated for a whole row of points before the next node.
//!
//! Most stages that compute constants are arithmetic on the elements of a few tensors; for these it is many times as fast as
//! going point by point. The results are those of [`Machine`]: every node of such a stage is evaluated at every point, and none can
//! fail.

use super::InterpretError;
use super::arith;
use super::machine::Machine;
use super::memory::{Line, Memory};
use super::program::{Id, Loop, Op, Program, malformed};
use vinelift_tensor::ElementType;

/// A shorter row is done point by point.
const LEAST_POINTS: usize = 8;

/// A longer row is done in blocks, whose values stay in the cache.
const BLOCK: usize = 256;

/// A stage whose nodes are evaluated for a row of points at a time.
pub(super) struct RowEvaluation<'p> {
    program: &'p Program,
    /// The innermost axes, which are one axis in all that depends on them.
    lanes: &'p [Loop],
    /// How many points they have.
    points: usize,
    /// The nodes that differ along a row, in order.
    steps: Vec<Id>,
    /// For each node, which row holds its values.
    places: Vec<Option<usize>>,
}

impl<'p> RowEvaluation<'p> {
    /// The row evaluation of a stage, along as many innermost axes as can be merged; `None` if anything else depends on these than
    /// arithmetic and loads of elements at equal steps.
    pub(super) fn of(program: &'p Program, memory: &Memory<'_>) -> Option<RowEvaluation<'p>> {
        // Axes and constants: an index that is out of range may mean that nothing is written.
        let is_given = |&n: &Id| matches!(program.nodes[n as usize].op, Op::Given(_));
        let points = program.domain.iter().map(|axis| axis.extent);
        let points = points.fold(1, usize::saturating_mul);
        if points < LEAST_POINTS || program.combine.is_some() || !program.at.iter().all(is_given) {
            return None;
        }
        (0..program.domain.len()).find_map(|first| RowEvaluation::along(program, memory, first))
    }

    /// As [`RowEvaluation::of`], if the axes of the domain from `first` on can be merged.
    fn along(program: &'p Program, memory: &Memory<'_>, first: usize) -> Option<RowEvaluation<'p>> {
        let lanes = &program.domain[first..];
        let points = lanes.iter().map(|axis| axis.extent);
        let points = points.fold(1, usize::saturating_mul);
        let is_lane = |n: Id| lanes.iter().any(|axis| axis.node == n && axis.extent > 1);
        // Indices of dims that are one dim to the axes, and others that do not depend on them.
        let fits = |buffer: usize, at: &[Id]| {
            let mut rest = lanes.iter().filter(|axis| axis.extent > 1).peekable();
            let mut inside = false;
            for (&n, &extent) in at.iter().zip(memory.shape(buffer)) {
                match rest.next_if(|axis| axis.node == n) {
                    Some(axis) if inside && axis.extent != extent => return None,
                    Some(_) => inside = true,
                    None if is_lane(n) || program.varies(n, lanes) => return None,
                    None if inside && rest.peek().is_some() && extent != 1 => return None,
                    None => {}
                }
            }
            rest.peek().is_none().then_some(())
        };
        if points < LEAST_POINTS || is_lane(program.value) {
            return None;
        }
        fits(program.target, &program.at)?;
        let mut places = vec![None; program.nodes.len()];
        let mut steps = Vec::new();
        for &n in program.value_steps.iter() {
            if !program.varies(n, lanes) {
                continue;
            }
            let node = &program.nodes[n as usize];
            match &node.op {
                Op::Load { at, buffer } if *buffer != program.target => fits(*buffer, at)?,
                Op::Unary(..) | Op::Binary(..) | Op::Sum(..) | Op::Cast { .. } => {
                    // An axis is an index, and no value.
                    let mut computes_with_axis = false;
                    let mut check = |x: Id| computes_with_axis |= is_lane(x);
                    node.op.for_each_needed(&program.nodes, &mut check);
                    if computes_with_axis {
                        return None;
                    }
                }
                _ => return None,
            }
            if !node.pure {
                return None;
            }
            places[n as usize] = Some(steps.len());
            steps.push(n);
        }
        Some(RowEvaluation {
            program,
            lanes,
            points,
            steps,
            places,
        })
    }

    /// Runs the stage.
    pub(super) fn run(&self, mut machine: Machine<'_, '_, '_>) -> Result<(), InterpretError> {
        let program = self.program;
        let outer = &program.domain[..program.domain.len() - self.lanes.len()];
        let mut rows = vec![vec![0; self.points.min(BLOCK)]; self.steps.len()];
        let mut same = vec![Vec::new(); 3];
        let mut more = machine.start(&program.domain);
        while more {
            for &n in program.at_steps.iter().chain(&program.value_steps) {
                if !program.varies(n, self.lanes) {
                    machine.evaluate(&[n])?;
                }
            }
            for start in (0..self.points).step_by(BLOCK) {
                machine.go_on()?;
                let block = start..self.points.min(start + BLOCK);
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
        let place = |at_end: bool| {
            let index = move |&n: &Id| match self.lanes.iter().find(|axis| axis.node == n) {
                Some(axis) if at_end => axis.extent as u64 - 1,
                Some(_) => 0,
                None => machine.value(n),
            };
            machine.memory.locate(buffer, at.iter().map(index))
        };
        let (Some(first), Some(end)) = (place(false)?, place(true)?) else {
            return Err(malformed("a row has no place"));
        };
        let step = (end - first) / (self.points - 1);
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
    use crate::ir::{Buffer, Nest, Policy, Role, Scalar, Site};
    use crate::math::legalize_with_halves;
    use std::sync::atomic::AtomicBool;
    use vinelift_tensor::ElementType::{F16, F32, I8, I64};

    /// The bytes that a stage writes into its only output: in rows, if it can be done so, and point by point.
    fn results(nest: &Nest) -> [Option<Vec<u8>>; 2] {
        let nest = legalize_with_halves(nest).unwrap_or_else(|| nest.clone());
        let program = crate::interpret::compile::compile(&nest, &nest.stages[0]).unwrap();
        [true, false].map(|in_rows| {
            let bytes = |b: &Buffer| -> Vec<u8> {
                let count = b.ty.byte_len(b.example().iter().product()).unwrap();
                let byte = |k: usize| match b.role {
                    Role::Input => (k * 37 % 251) as u8 & 0x3f,
                    _ => 0,
                };
                (0..count).map(byte).collect()
            };
            let mut buffers: Vec<Vec<u8>> = nest.buffers.iter().map(bytes).collect();
            let mut result = buffers.pop().unwrap();
            let mut handed: Vec<BufferBytes> =
                buffers.iter().map(|b| BufferBytes::Read(b)).collect();
            handed.push(BufferBytes::Write(&mut result));
            let mut memory = Memory::new(&nest, &mut handed).unwrap();
            let rows = in_rows.then(|| RowEvaluation::of(&program, &memory));
            let never = AtomicBool::new(false);
            let machine = Machine::new(&program, &mut memory, &never);
            match rows {
                Some(rows) => rows?.run(machine).unwrap(),
                None => machine.run_points().unwrap(),
            }
            Some(result)
        })
    }

    /// `y[i, j] = (x[i, j] - zero[i]) · scale + t[j, i]`
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
            let [rows, points] = results(&nest);
            assert!(points.iter().flatten().any(|byte| *byte != 0));
            assert_eq!(rows, points, "{ty} {columns}");
        }
    }

    /// `y[i, j, k, l] = -x[i, j, 0, l]` with one `k`: one row.
    #[test]
    fn axes_that_are_one_make_one_row() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F16, &[5, 3, 1, 7], Role::Input);
        let y = nest.buffer("y", F32, &[5, 3, 1, 7], Role::Output);
        nest.define(vec![], y, |n, at| {
            let at = [at[0].clone(), at[1].clone(), index(0), at[3].clone()];
            -n.load(x, at.to_vec()).cast(F32)
        });
        let [rows, points] = results(&nest);
        assert!(rows.is_some());
        assert_eq!(rows, points);
        // Of every other plane.
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[10, 2, 8], Role::Input);
        let y = nest.buffer("y", F32, &[10, 4, 8], Role::Output);
        nest.define(vec![], y, |n, at| -n.load(x, at.to_vec()));
        nest.stages[0].domain[1].extent = 2.into();
        let [rows, points] = results(&nest);
        assert!(rows.is_some());
        assert_eq!(rows, points);
    }

    #[test]
    fn what_may_write_nothing_is_done_point_by_point() {
        let mut nest = Nest::new();
        let k = nest.buffer("k", I64, &[16], Role::Input);
        let y = nest.buffer("y", F32, &[4, 16], Role::Output);
        let layer = nest.layer("s", "Scatter, opset1");
        nest.define(vec![layer], y, |_, _| number(1.0, F32));
        assert!(results(&nest)[0].is_some());
        let site = Site {
            layer,
            input: "k".into(),
        };
        let row = nest.load(k, vec![index(0)]);
        let row = nest.wrap(row, 4, Policy::WRAP_OR_ZERO, site, vec![index(0)]);
        nest.stages[0].at[0] = row;
        nest.stages[0].domain.remove(0);
        assert!(results(&nest)[0].is_none());
    }
}
