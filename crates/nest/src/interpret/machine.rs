//! Runs the program of a stage.

use super::memory::{MISSING, Memory};
use super::program::{Fold, Id, Index, Loop, Node, Op, Program};
use super::{InterpretError, arith};
use crate::ir::Fault;
use std::sync::atomic::{AtomicBool, Ordering};
use vinelift_tensor::ElementType;

/// The values of a program's nodes while it runs.
///
/// Each level has the tick at which an axis of it, or further out, last stepped. A value that was
/// found at the tick of its level still holds.
pub(super) struct Machine<'p, 'm, 'b> {
    program: &'p Program,
    pub(super) memory: &'m mut Memory<'b>,
    values: Vec<u64>,
    found: Vec<u64>,
    stepped: Vec<u64>,
    tick: u64,
    stack: Vec<Id>,
    stop: &'m AtomicBool,
    /// Turns until the flag is read again.
    turns_left: u32,
}

/// Turns of loops between two reads of the flag: some milliseconds.
const TURNS: u32 = 1 << 14;

const NEVER: u64 = u64::MAX;

impl<'p, 'm, 'b> Machine<'p, 'm, 'b> {
    pub(super) fn new(
        program: &'p Program,
        memory: &'m mut Memory<'b>,
        stop: &'m AtomicBool,
    ) -> Machine<'p, 'm, 'b> {
        let start = |node: &Node| match node.op {
            Op::Given(value) => (value, 0),
            _ => (0, NEVER),
        };
        let (values, found) = program.nodes.iter().map(start).unzip();
        Machine {
            program,
            memory,
            values,
            found,
            stepped: vec![0; program.levels],
            tick: 0,
            stack: vec![],
            stop,
            turns_left: TURNS,
        }
    }

    /// Must be called in each turn of a loop: an error once the run is to stop.
    pub(super) fn go_on(&mut self) -> Result<(), InterpretError> {
        self.turns_left -= 1;
        if self.turns_left > 0 {
            return Ok(());
        }
        self.turns_left = TURNS;
        match self.stop.load(Ordering::Relaxed) {
            true => Err(InterpretError::Stopped),
            false => Ok(()),
        }
    }

    /// Point by point.
    pub(super) fn run_points(mut self) -> Result<(), InterpretError> {
        let program = self.program;
        let mut more = self.start(&program.domain);
        while more {
            self.point()?;
            more = self.advance(&program.domain);
        }
        Ok(())
    }

    /// Runs at one point of the outermost axis.
    pub(super) fn run_turn(mut self, turn: usize) -> Result<(), InterpretError> {
        let program = self.program;
        let Some((outermost, inner)) = program.domain.split_first() else {
            return self.point();
        };
        let mut more = self.start(&program.domain);
        self.values[outermost.node as usize] = turn as u64;
        while more {
            self.point()?;
            more = self.advance(inner);
        }
        Ok(())
    }

    fn point(&mut self) -> Result<(), InterpretError> {
        self.go_on()?;
        let program = self.program;
        self.evaluate(&program.at_steps)?;
        let at = program.at.iter().map(|&index| self.value(index));
        let Some(element) = self.memory.locate(program.target, at)? else {
            return Ok(());
        };
        self.evaluate(&program.value_steps)?;
        let mut value = self.value(program.value);
        if let Some(op) = program.combine {
            let old = self.memory.get(program.target, element);
            value = arith::binary(op, program.ty, old, value);
        }
        self.memory.set(program.target, element, value)
    }

    pub(super) fn value(&self, n: Id) -> u64 {
        self.values[n as usize]
    }

    fn holds(&self, n: Id) -> bool {
        self.found[n as usize] == self.stepped[self.program.nodes[n as usize].level as usize]
    }

    /// Evaluates nodes that come after all they need.
    pub(super) fn evaluate(&mut self, steps: &[Id]) -> Result<(), InterpretError> {
        for &n in steps {
            if !self.holds(n) {
                self.compute(n)?;
            }
        }
        Ok(())
    }

    /// Evaluates a node with all that it needs, which may be much: hence no recursion.
    fn force(&mut self, n: Id) -> Result<(), InterpretError> {
        let program = self.program;
        let base = self.stack.len();
        self.stack.push(n);
        while let Some(&n) = self.stack.last() {
            if self.stack.len() == base {
                break;
            }
            if self.holds(n) {
                self.stack.pop();
                continue;
            }
            let height = self.stack.len();
            let mut stack = std::mem::take(&mut self.stack);
            program.nodes[n as usize]
                .op
                .for_each_needed(&program.nodes, |x| {
                    if !self.holds(x) {
                        stack.push(x);
                    }
                });
            self.stack = stack;
            // The first on top: where several indices are wrong, the first is told.
            self.stack[height..].reverse();
            if self.stack.len() == height {
                self.compute(n)?;
                self.stack.pop();
            }
        }
        Ok(())
    }

    /// Evaluates a node whose needs hold.
    fn compute(&mut self, n: Id) -> Result<(), InterpretError> {
        let node = &self.program.nodes[n as usize];
        let value = match &node.op {
            Op::Given(value) => *value,
            Op::Unary(op, ty, x) => arith::unary(*op, *ty, self.value(*x)),
            Op::Sum(ty, [sum, x, y]) => {
                arith::add_term(*ty, self.value(*sum), self.value(*x), self.value(*y))
            }
            Op::Binary(op, ty, x, y) => arith::binary(*op, *ty, self.value(*x), self.value(*y)),
            Op::Cast { from, to, x } => arith::cast(*from, *to, self.value(*x)),
            Op::Load { buffer, at } => {
                let element = self
                    .memory
                    .locate(*buffer, at.iter().map(|&index| self.value(index)))?;
                element.map_or(0, |element| self.memory.get(*buffer, element))
            }
            Op::Select(condition, yes, no) => {
                let side = match self.value(*condition) {
                    0 => *no,
                    _ => *yes,
                };
                if !self.holds(side) {
                    self.force(side)?;
                }
                self.value(side)
            }
            Op::Reduce(fold) => self.fold(fold)?,
            Op::Wrap(index) => self.index(index)?,
        };
        self.values[n as usize] = value;
        self.found[n as usize] = self.stepped[node.level as usize];
        Ok(())
    }

    fn fold(&mut self, fold: &Fold) -> Result<u64, InterpretError> {
        let mut sum = self.value(fold.init);
        let [begin, end] = fold.bounds.map(|end| end.map(|end| self.value(end) as i64));
        let mut more = self.start(&fold.axes);
        if let (Some(begin), [axis]) = (begin, &fold.axes[..]) {
            let begin = begin.max(0) as u64;
            self.values[axis.node as usize] = begin;
            more &= begin < axis.extent as u64;
        }
        let is_inside = |machine: &Self| match (end, &fold.axes[..]) {
            (Some(end), [axis]) => (machine.value(axis.node) as i64) < end,
            _ => true,
        };
        while more && is_inside(self) {
            self.go_on()?;
            self.evaluate(&fold.steps)?;
            sum = match fold.term {
                Some((x, y)) => arith::add_term(fold.ty, sum, self.value(x), self.value(y)),
                None => {
                    let [a, b] = fold.op.fold_operands(fold.ty, sum, self.value(fold.body));
                    arith::binary(fold.op, fold.ty, a, b)
                }
            };
            more = self.advance(&fold.axes);
        }
        Ok(sum)
    }

    /// The element that an index names, [`MISSING`] or an error outside.
    fn index(&mut self, wrap: &Index) -> Result<u64, InterpretError> {
        let (policy, extent) = (wrap.policy, wrap.extent);
        let index = match wrap.ty {
            ElementType::U64 => i128::from(self.value(wrap.index)),
            ty => i128::from(arith::signed(ty, self.value(wrap.index))),
        };
        let n = extent as i128;
        let low = if policy.negative { -n } else { 0 };
        if (low..n).contains(&index) {
            return Ok((if index < 0 { index + n } else { index }) as u64);
        }
        if policy.zero {
            return Ok(MISSING);
        }
        let position = &wrap.position;
        position.iter().try_for_each(|&p| self.force(p))?;
        Err(InterpretError::Fault(Fault {
            site: wrap.site,
            position: position.iter().map(|&p| self.value(p) as i64).collect(),
            index,
            extent,
            negative: policy.negative,
        }))
    }

    /// Sets the axes to their first point, if there is one.
    pub(super) fn start(&mut self, axes: &[Loop]) -> bool {
        for axis in axes {
            self.values[axis.node as usize] = 0;
        }
        if let Some(outermost) = axes.first() {
            self.step(outermost.level);
        }
        axes.iter().all(|axis| axis.extent > 0)
    }

    /// Sets the axes to their next point, if there is one.
    pub(super) fn advance(&mut self, axes: &[Loop]) -> bool {
        for axis in axes.iter().rev() {
            let value = &mut self.values[axis.node as usize];
            *value += 1;
            if *value < axis.extent as u64 {
                self.step(axis.level);
                return true;
            }
            *value = 0;
        }
        false
    }

    fn step(&mut self, level: usize) {
        self.tick += 1;
        self.stepped[level..].fill(self.tick);
    }
}
