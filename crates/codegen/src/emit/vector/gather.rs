//! Loads through data-dependent indices, for all lanes at once.

use crate::analysis::indices::CheckedIndex;
use crate::emit::address::ElementAddress;
use crate::emit::checked::CompareTime;
use crate::emit::emitter::{Emitter, Result, register};
use crate::target::clif128::{Lanes128, vector};
use cranelift_codegen::ir::{
    BlockArg, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value, types,
};
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, Kind, Scalar, Stage};
use vinelift_tensor::ElementType;

impl<'n> Emitter<'n, '_> {
    /// Computes the lanes of the loads that `checks` are for.
    pub(super) fn gather_lanes(
        &mut self,
        stage: &'n Stage,
        axis: Axis,
        checks: &[CheckedIndex<'n>],
    ) -> Result {
        let count = self.vectors.lanes();
        let loads = self.gathers(stage);
        // Nothing is written before all are there.
        let ways = self.check(checks, axis, count, CompareTime::WhenUsed)?;
        let join = self.builder.create_block();
        let mut registers = Vec::new();
        for x in &loads {
            let mut elements = Vec::with_capacity(count);
            for lane in 0..count {
                elements.push(self.in_range(&ways, axis.id, lane, |this| {
                    this.compute([*x])?;
                    Ok(this.get(x))
                })?);
            }
            registers.extend(self.gathered(x.ty(), &elements).registers);
        }
        let arguments: Vec<BlockArg> = registers.iter().map(|r| BlockArg::from(*r)).collect();
        self.builder.ins().jump(join, &arguments);

        let slots: Vec<StackSlot> = loads.iter().map(|x| self.lane_slot(x.ty())).collect();
        let cold = self.one_by_one(&ways, axis, count, |this, lane| {
            this.compute(loads.iter().copied())?;
            for (x, slot) in loads.iter().zip(&slots) {
                this.store_lane(x, *slot, lane);
            }
            Ok(())
        })?;
        let mut reloaded: Vec<BlockArg> = Vec::new();
        for (x, slot) in loads.iter().zip(&slots) {
            let address = self.builder.ins().stack_addr(types::I64, *slot, 0);
            let flags = MemFlagsData::new().with_notrap();
            let lanes = self.load_registers(x.ty(), flags, address, 0);
            reloaded.extend(lanes.registers.iter().map(|r| BlockArg::from(*r)));
        }
        self.builder.ins().jump(join, &reloaded);
        cold.end(self);

        let mut joined = registers.iter().map(|r| {
            let ty = self.builder.func.dfg.value_type(*r);
            self.builder.append_block_param(join, ty)
        });
        let joined: Vec<Value> = joined.by_ref().collect();
        self.builder.switch_to_block(join);
        let mut joined = joined.into_iter();
        for x in loads {
            let width = register(x.ty()).bytes() as usize;
            let registers = joined
                .by_ref()
                .take(self.clif128().registers(width))
                .collect();
            self.vectors.set(x, Lanes128 { registers, width });
        }
        Ok(())
    }

    /// Stores a scalar that has been computed as the element of a lane in a slot.
    fn store_lane(&mut self, x: &Scalar, slot: StackSlot, lane: Value) {
        let width = register(x.ty()).bytes();
        let start = self.builder.ins().stack_addr(types::I64, slot, 0);
        let offset = self.builder.ins().imul_imm_s(lane, i64::from(width));
        let address = self.builder.ins().iadd(start, offset);
        let (value, flags) = (self.get(x), MemFlagsData::new().with_notrap());
        self.builder.ins().store(flags, value, address, 0);
    }

    /// All of a stage that does nothing but load through data-dependent indices.
    pub(super) fn gather_copy(
        &mut self,
        stage: &'n Stage,
        axis: Axis,
        checks: &[CheckedIndex<'n>],
    ) -> Result {
        let ty = stage.value.ty();
        let count = self.vectors.lanes();
        let linear = self.analysis.linear(stage.target, &stage.at);
        self.open_scope();
        self.compute(linear.leaves())?;
        let place = self.place(stage.target, &linear);
        self.close_point(axis.id);
        let ways = self.check(checks, axis, count, CompareTime::for_stage(stage))?;
        let join = self.builder.create_block();
        let register = register(ty);
        let each = 16 / register.bytes() as usize;
        let flags = self.flags[stage.target.0 as usize];
        for first in (0..count).step_by(each) {
            // Of narrow elements, putting them together takes longer than storing each.
            let (true, ElementAddress::Bytes { address, offset }) = (register.bytes() >= 4, &place)
            else {
                for lane in first..first + each {
                    self.in_range(&ways, axis.id, lane, |this| this.assign(stage))?;
                }
                continue;
            };
            let mut filled = None;
            for lane in 0..each {
                let element = self.in_range(&ways, axis.id, first + lane, |this| {
                    this.compute([&stage.value])?;
                    Ok(this.get(&stage.value))
                })?;
                let ins = self.builder.ins();
                filled = Some(match filled {
                    None => ins.scalar_to_vector(vector(register), element),
                    Some(others) => ins.insertlane(others, element, lane as u8),
                });
            }
            if let Some(filled) = filled {
                let offset = offset + (first * register.bytes() as usize) as i32;
                self.builder.ins().store(flags, filled, *address, offset);
            }
        }
        self.builder.ins().jump(join, &[]);
        let cold = self.one_by_one(&ways, axis, count, |this, _| this.assign(stage))?;
        self.builder.ins().jump(join, &[]);
        cold.end(self);
        self.builder.switch_to_block(join);
        Ok(())
    }

    /// The loads of a stage whose indices depend on data and on the lane.
    fn gathers(&self, stage: &'n Stage) -> Vec<&'n Scalar> {
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![&stage.value];
        while let Some(x) = open.pop() {
            if !self.varies(x) || !seen.insert(x.address()) {
                continue;
            }
            let below = open.len();
            match x.kind() {
                Kind::Load { at, .. }
                    if at
                        .iter()
                        .any(|i| self.analysis.has_wrap(i, self.vectors.axis())) =>
                {
                    found.push(x)
                }
                Kind::Load { .. } => {}
                Kind::Reduce { init, .. } => open.push(init),
                _ => open.extend(x.children()),
            }
            open[below..].reverse();
        }
        found
    }

    /// Memory for all lanes of a type.
    fn lane_slot(&mut self, ty: ElementType) -> StackSlot {
        let bytes = self.vectors.lanes() as u32 * register(ty).bytes();
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4);
        self.builder.create_sized_stack_slot(data)
    }
}
