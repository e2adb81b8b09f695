//! Stages whose innermost axis runs over lanes of vector registers.
//!
//! Where the target is written element after element along the innermost axis, the loop over it steps
//! by as many points as fill two registers of the widest type. The last step overlaps the one before, so
//! that there is no scalar tail: what it writes again has the same values. Where a value is combined with
//! what the target holds, the rest is done point by point instead. Each scalar that depends
//! on the axis becomes a list of registers ([`Lanes128`]); all others stay scalars and are broadcast where they
//! meet one. Every lane computes what the scalar code computes, bit by bit.
//!
//! These are registers of 128 bits, the widest that Cranelift knows; most such stages become vector loops
//! instead where the machine has wider ones.
//!
//! A load whose offset steps with the axis is a vector load; any other is done lane by lane, with the
//! scalar code for its index. So a checked index faults at the first point that is wrong, as long as
//! there is one such load in a stage; with more, the stage stays scalar.

mod arithmetic;
mod gather;
mod lanes;
pub(super) mod values;

use super::address::ElementAddress;
use super::emitter::{Emitter, MOST_INSTRUCTIONS, Refusal, Result, no_primitive};
use super::state::{Binding, Bounds};
use crate::analysis::legality::LanePlan;
use crate::analysis::walk::operands_first;
use crate::target::clif128::Lanes128;
use cranelift_codegen::ir::InstBuilder;
use vinelift_nest::{Axis, Kind, Mode, Scalar, Stage};
use vinelift_tensor::ElementType;

impl<'n> Emitter<'n, '_> {
    /// The loop over the innermost axis, by vectors if there are points enough.
    pub(super) fn vectors_or_points(&mut self, stage: &'n Stage, plan: LanePlan) -> Result {
        let LanePlan { axis, lanes } = plan;
        // What is combined needs no last turn that overlaps.
        if axis.extent >= lanes || stage.mode != Mode::Set {
            return self.clif_vector_loop(stage, plan);
        }
        let turns = self.turns(stage, axis);
        let few = self.fewer_than(turns, lanes);
        let b = &mut self.builder;
        let (points, vectors, done) = (b.create_block(), b.create_block(), b.create_block());
        b.ins().brif(few, points, &[], vectors, &[]);
        b.switch_to_block(vectors);
        self.open_scope();
        self.clif_vector_loop(stage, plan)?;
        self.close_scope();
        self.builder.ins().jump(done, &[]);
        self.builder.switch_to_block(points);
        self.open_loop(axis, turns, 1, &[]);
        self.assign(stage)?;
        self.close_loop(&[]);
        self.builder.ins().jump(done, &[]);
        self.builder.switch_to_block(done);
        Ok(())
    }

    /// The loop over the innermost axis, by vectors.
    fn clif_vector_loop(&mut self, stage: &'n Stage, plan: LanePlan) -> Result {
        let LanePlan { axis, lanes } = plan;
        let step = lanes as i64;
        let turns = self.turns(stage, axis);
        self.part_at_least(stage, axis, lanes);
        let fills = turns.part().is_none() && axis.extent.is_multiple_of(lanes);
        // A point that is combined with the target may not be done twice.
        let rest = match stage.mode {
            Mode::Set => None,
            Mode::Combine(_) => Some(self.whole_blocks(turns, step)),
        };
        let blocks = rest.map_or(turns, |middle| Bounds::between(turns.from, middle));
        self.open_loop(axis, blocks, step, &[]);
        if rest.is_none() {
            self.stay_before(axis, turns, lanes);
        }
        self.vectors.begin(axis, lanes);
        let checks = self.analysis.checks(stage, axis.id);
        if !checks.is_empty() {
            let only = matches!(stage.value.kind(), Kind::Load { .. });
            if only && stage.mode == Mode::Set && stage.value.ty() != ElementType::Boolean {
                self.gather_copy(stage, axis, &checks)?;
                self.vectors.end();
                self.close_loop(&[]);
                return Ok(());
            }
            self.gather_lanes(stage, axis, &checks)?;
        }
        let mut value = self.lanes(&stage.value)?;
        let linear = self.analysis.linear(stage.target, &stage.at);
        self.open_scope();
        self.compute(linear.leaves())?;
        let place = self.place(stage.target, &linear);
        self.close_lane();
        if let ElementAddress::Bytes { address, offset } = place {
            let ty = self.analysis.nest.buf(stage.target).ty;
            let flags = self.flags[stage.target.0 as usize];
            if let Mode::Combine(op) = stage.mode {
                let old = self.load_registers(ty, flags, address, offset);
                let bits = stage.value.as_const();
                value = self.vector_binary(op, ty, [&old, &value], bits)?;
            }
            self.store_lanes(ty, flags, address, offset, &value);
        }
        self.vectors.end();
        self.close_loop(&[]);
        if let Some(middle) = rest.filter(|_| !fills) {
            self.open_loop(axis, Bounds::between(middle, turns.to), 1, &[]);
            self.assign(stage)?;
            self.close_loop(&[]);
        }
        Ok(())
    }

    /// The lanes of a scalar; those of one that does not depend on the axis are all the same.
    fn lanes(&mut self, root: &'n Scalar) -> Result<Lanes128> {
        for x in self.in_order(root) {
            if self.builder.func.dfg.num_insts() > MOST_INSTRUCTIONS {
                return Err(Refusal::TooLarge);
            }
            let lanes = self.lanes_of(x)?;
            self.vectors.set(x, lanes);
        }
        self.known_lanes(root)
    }

    /// The scalars under `root` that depend on the axis and have no lanes yet, operands first.
    fn in_order(&self, root: &'n Scalar) -> Vec<&'n Scalar> {
        operands_first(root, |x| self.vectors.get(x).is_some() || !self.varies(x))
    }

    /// Whether a scalar depends on the axis that runs over lanes.
    fn varies(&self, x: &Scalar) -> bool {
        self.analysis.facts.free(x).contains(&self.vectors.axis())
    }

    /// The lanes of a scalar that has been computed, in either way.
    fn known_lanes(&mut self, x: &'n Scalar) -> Result<Lanes128> {
        if let Some(lanes) = self.vectors.get(x) {
            return Ok(lanes.clone());
        }
        self.compute([x])?;
        let value = self.get(x);
        Ok(self.clif128().broadcast(value, x.ty()))
    }

    fn lanes_of(&mut self, x: &'n Scalar) -> Result<Lanes128> {
        if let Some([sum, a, b]) = x.as_sum() {
            let sum = self.known_lanes(sum)?;
            let (a, b) = (self.known_lanes(a)?, self.known_lanes(b)?);
            return self.vector_add_term(x.ty(), &sum, [&a, &b]);
        }
        match x.kind() {
            Kind::Load { buffer, at } => self.load_lanes(*buffer, x, at),
            Kind::Unary(op, a) => {
                let a = self.known_lanes(a)?;
                self.vector_unary(*op, x.ty(), &a)
            }
            Kind::Binary(op, a, b) => {
                let (ty, bits) = (a.ty(), b.as_const());
                let (a, b) = (self.known_lanes(a)?, self.known_lanes(b)?);
                self.vector_binary(*op, ty, [&a, &b], bits)
            }
            Kind::Select(c, yes, no) => {
                let c = self.known_lanes(c)?;
                let (yes, no) = (self.known_lanes(yes)?, self.known_lanes(no)?);
                Ok(self.clif128().select(&c, x.ty(), &yes, &no))
            }
            Kind::Cast(a) => {
                let from = a.ty();
                let a = self.known_lanes(a)?;
                self.vector_cast(&a, from, x.ty())
            }
            Kind::Bitcast(a) => {
                let from = a.ty();
                let a = self.known_lanes(a)?;
                Ok(self.vector_bitcast(&a, from, x.ty()))
            }
            Kind::Reduce {
                op,
                axes,
                init,
                body,
            } => self.fold_lanes(*op, axes, init, body),
            Kind::Const(_) | Kind::Axis(_) | Kind::Extent(_) | Kind::Wrap(_) => {
                no_primitive("a scalar that has no lanes")
            }
        }
    }

    /// A fold in every lane, over axes that are not the lanes'.
    fn fold_lanes(
        &mut self,
        op: vinelift_nest::Binary,
        axes: &'n [Axis],
        init: &'n Scalar,
        body: &'n Scalar,
    ) -> Result<Lanes128> {
        let mut sum = self.known_lanes(init)?;
        if axes.iter().any(|axis| axis.extent == 0) {
            return Ok(sum);
        }
        self.analysis.ranges.bind(axes);
        for &axis in axes.iter().filter(|axis| axis.extent == 1) {
            self.bind_point(axis);
        }
        let loops = self.loops.len();
        let width = sum.width;
        for &axis in axes.iter().filter(|axis| axis.extent > 1) {
            self.hoist([body].into_iter())?;
            sum.registers = self.open_loop_by(axis, 1, &sum.registers);
        }
        let mark = self.vectors.mark();
        sum = match body.as_term() {
            Some((x, y)) => {
                let (x, y) = (self.lanes(x)?, self.lanes(y)?);
                self.vector_add_term(body.ty(), &sum, [&x, &y])?
            }
            None => {
                let next = self.lanes(body)?;
                self.vector_binary(op, body.ty(), [&sum, &next], None)?
            }
        };
        if body.ty() == ElementType::Boolean {
            // The accumulator is as wide as its initial value.
            sum = self.clif128().masks(&sum, width);
        }
        self.vectors.forget(mark);
        while self.loops.len() > loops {
            sum.registers = self.close_loop(&sum.registers);
        }
        for axis in axes {
            self.axes.remove(&axis.id);
        }
        Ok(sum)
    }

    /// Closes a scope for one value of the axis; what does not depend on it stays.
    fn close_lane(&mut self) {
        self.close_point(self.vectors.axis());
    }

    fn load_lanes(
        &mut self,
        buffer: vinelift_nest::BufferId,
        x: &'n Scalar,
        at: &'n [Scalar],
    ) -> Result<Lanes128> {
        let ty: ElementType = x.ty();
        let linear = self.analysis.linear(buffer, at);
        // Of an empty dim there is nothing to load.
        let is_empty = self.analysis.nest.buf(buffer).shape.iter().any(|n| *n == 0);
        if self.analysis.steps_with(self.vectors.axis(), &linear) == Some(1) && !is_empty {
            self.open_scope();
            self.compute(linear.leaves())?;
            let place = self.place(buffer, &linear);
            self.close_lane();
            if let ElementAddress::Bytes { address, offset } = place {
                let flags = self.flags[buffer.0 as usize];
                let lanes = self.load_registers(ty, flags, address, offset);
                return Ok(match self.all_inside(at) {
                    Some(inside) => self.lanes_if(inside, &lanes),
                    None => lanes,
                });
            }
        }
        let axis = self.vectors.axis();
        let Some(first) = self.axes.get(&axis).copied() else {
            return no_primitive("an axis that is not in scope");
        };
        let mut elements = Vec::with_capacity(self.vectors.lanes());
        for lane in 0..self.vectors.lanes() {
            let plus = first.plus + lane as i64;
            self.axes.insert(axis, Binding { plus, ..first });
            self.open_scope();
            self.compute([x])?;
            elements.push(self.get(x));
            self.close_lane();
        }
        self.axes.insert(axis, first);
        Ok(self.gathered(ty, &elements))
    }
}
