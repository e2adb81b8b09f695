//! Lanes from memory, and from scalars that the kernel's own code computes.

use super::address::ElementAddress;
use super::checked::Neighbours;
use super::emitter::{Emitter, Result, no_primitive, register};
use super::lane_program::LaneProgram;
use super::state::Binding;
use crate::target::clif128::Lanes128;
use crate::vector_ir::ops::{Access, Compared, Gather, lane_bytes};
use crate::vector_ir::program::Stride;
use crate::vectorize::KernelScalar;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::FunctionBuilder;
use vinelift_nest::{AxisId, Kind, Scalar};
use vinelift_tensor::ElementType::{self, Boolean, U8};
use vinelift_tensor::Extent;

impl<'n> Emitter<'n, '_> {
    /// Where the element of the first lane lies, of lanes that are `step` bytes apart.
    pub(super) fn lane_address(
        &mut self,
        p: &LaneProgram<'_, 'n>,
        access: Access,
        step: i64,
    ) -> (Value, i32) {
        let mut address = p.arguments[access.pointer as usize];
        if step != 0 {
            address = self.moved_along(address, p.axis, |b, point| b.ins().imul_imm_s(point, step));
        }
        for (axis, moves) in &p.moves {
            for (_, stride) in moves.iter().filter(|(moved, _)| *moved == access.pointer) {
                address = self.moved_along(address, *axis, |b, point| match *stride {
                    Stride::Bytes(bytes) => b.ins().imul_imm_s(point, i64::from(bytes)),
                    Stride::Argument(number) => b.ins().imul(point, p.arguments[number as usize]),
                });
            }
        }
        (address, access.offset)
    }

    /// The address, moved on by `bytes` of the point that an axis is at, if it is at one.
    fn moved_along(
        &mut self,
        address: Value,
        axis: AxisId,
        bytes: impl FnOnce(&mut FunctionBuilder<'_>, Value) -> Value,
    ) -> Value {
        let Some(Binding { value, .. }) = self.axes.get(&axis).copied() else {
            return address;
        };
        let moved = bytes(&mut self.builder, value);
        self.builder.ins().iadd(address, moved)
    }

    pub(super) fn load_element(
        &mut self,
        p: &LaneProgram<'_, 'n>,
        access: Access,
        ty: ElementType,
        step: i64,
        beyond: i32,
    ) -> Value {
        let (address, offset) = self.lane_address(p, access, step);
        let (register, flags) = (register(ty), p.flags[access.pointer as usize]);
        self.builder
            .ins()
            .load(register, flags, address, offset + beyond)
    }

    pub(super) fn load_strided(
        &mut self,
        p: &LaneProgram<'_, 'n>,
        access: Access,
        ty: ElementType,
        step: i32,
    ) -> Lanes128 {
        let bytes = step * i32::from(lane_bytes(ty));
        let elements: Vec<Value> = (0..p.lanes as i32)
            .map(|lane| self.load_element(p, access, ty, bytes.into(), lane * bytes))
            .collect();
        self.clif128(p.lanes).of_scalars(ty, &elements)
    }

    /// Elements where indices say, each of which is compared with its extent in the register that it is used from. If
    /// they go to memory, each register does before the elements of the next are loaded.
    pub(super) fn gather_lanes(
        &mut self,
        p: &LaneProgram<'_, 'n>,
        gather: Gather,
        ty: ElementType,
        to: Option<Access>,
    ) -> Result<Lanes128> {
        let Some((check, index_type)) = p.check else {
            return no_primitive("a gather without a check");
        };
        let outside = match (check.compared, self.instead_of_faults) {
            (Compared::Never, _) => None,
            (_, Some(exact)) => Some((Extent::from(check.extent as usize), exact)),
            (_, None) => return no_primitive("an index that may be wrong, with nowhere to go"),
        };
        let (address, offset) = self.lane_address(p, check.access, gather.index_bytes.into());
        let indices = Neighbours {
            flags: p.flags[check.access.pointer as usize],
            address,
            offset,
            ty: index_type,
            step: 1,
        };
        let (base, offset) = self.lane_address(p, gather.access, gather.access.step.into());
        let flags = p.flags[gather.access.pointer as usize];
        let element = register(ty);
        let width = element.bytes() as usize;
        let each = (16 / width).min(p.lanes);
        let mut registers = Vec::with_capacity(p.lanes / each);
        let to = to.map(|to| (self.lane_address(p, to, width as i64), to.pointer));
        for first in (0..p.lanes).step_by(each) {
            let mut elements = Vec::with_capacity(each);
            for lane in first..first + each {
                let index = self.load_index(&indices, lane, outside);
                let step = i64::from(gather.index_step);
                let moved = self.builder.ins().imul_imm_s(index, step);
                let address = self.builder.ins().iadd(base, moved);
                let offset = offset + lane as i32 * i32::from(gather.column_bytes);
                elements.push(self.builder.ins().load(element, flags, address, offset));
            }
            let filled = self.clif128(p.lanes).one_register(element, &elements);
            registers.push(filled);
            if let Some(((address, offset), pointer)) = to {
                let part = Lanes128 {
                    registers: vec![filled],
                    width,
                };
                let at = (address, offset + (first * width) as i32);
                self.clif128(each)
                    .store(p.flags[pointer as usize], at, &part);
            }
        }
        Ok(Lanes128 { registers, width })
    }

    /// Scalars as lanes; of booleans, a mask.
    pub(super) fn lanes_of(
        &mut self,
        lanes: usize,
        ty: ElementType,
        scalars: &[Value],
    ) -> Lanes128 {
        let of = self.clif128(lanes).of_scalars(ty, scalars);
        match ty {
            Boolean => self.clif128(lanes).is_not_zero(U8, &of),
            _ => of,
        }
    }

    /// The lanes of a scalar that the kernel's own code computes.
    pub(super) fn scalar_lanes(
        &mut self,
        p: &LaneProgram<'_, 'n>,
        KernelScalar { scalar: x, fixed }: &KernelScalar<'n>,
    ) -> Result<Lanes128> {
        for (axis, point) in fixed {
            let value = self.index(*point);
            let binding = Binding {
                value,
                plus: 0,
                depth: 0,
            };
            self.axes.insert(*axis, binding);
        }
        let lanes = self.lanes_of_scalar(p, x);
        for (axis, _) in fixed {
            self.axes.remove(axis);
        }
        lanes
    }

    fn lanes_of_scalar(&mut self, p: &LaneProgram<'_, 'n>, x: &'n Scalar) -> Result<Lanes128> {
        if !self.analysis.facts.free(x).contains(&p.axis) {
            self.compute([x])?;
            let value = self.get(x);
            return Ok(self.clif128(p.lanes).broadcast(value, x.ty()));
        }
        if let Kind::Load { buffer, at } = x.kind() {
            let linear = self.analysis.linear(*buffer, at);
            if self.analysis.steps_with(p.axis, &linear) == Some(1) {
                self.open_scope();
                self.compute(linear.leaves())?;
                let place = self.place(*buffer, &linear);
                self.close_point(p.axis);
                if let ElementAddress::Bytes { address, offset } = place {
                    return Ok(self.neighbours_inside(p, x, (address, offset)));
                }
            }
        }
        let Some(first) = self.axes.get(&p.axis).copied() else {
            return no_primitive("an axis that is not in scope");
        };
        let mut elements = Vec::with_capacity(p.lanes);
        for lane in 0..p.lanes {
            let plus = first.plus + lane as i64;
            self.axes.insert(p.axis, Binding { plus, ..first });
            self.open_scope();
            self.compute([x])?;
            elements.push(self.get(x));
            self.close_point(p.axis);
        }
        self.axes.insert(p.axis, first);
        Ok(self.lanes_of(p.lanes, x.ty(), &elements))
    }

    /// The neighbours that a load gives whose indices have been computed, or zeros.
    fn neighbours_inside(
        &mut self,
        p: &LaneProgram<'_, 'n>,
        x: &'n Scalar,
        at: (Value, i32),
    ) -> Lanes128 {
        let Kind::Load {
            buffer,
            at: indices,
        } = x.kind()
        else {
            return self.lanes_of(p.lanes, x.ty(), &[]);
        };
        let element = if x.ty() == Boolean { U8 } else { x.ty() };
        let flags = self.flags[buffer.0 as usize];
        let mut lanes = self.clif128(p.lanes).load(element, flags, at);
        if let Some(inside) = self.all_inside(indices) {
            lanes = self.clif128(p.lanes).kept_if(inside, &lanes);
        }
        match x.ty() {
            Boolean => self.clif128(p.lanes).is_not_zero(U8, &lanes),
            _ => lanes,
        }
    }
}
