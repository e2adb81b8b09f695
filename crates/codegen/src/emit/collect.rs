//! Elements that a vector loop cannot load are collected first, a block of points at a time.
//!
//! Elements whose indices depend on data, or that lie the other way round, are put side by side on the
//! stack; the vector loop for the block finds them there. They are collected along the axis on which most of
//! them, and of their indices, are neighbours in memory.

use super::checked::CompareTime;
use super::emitter::{Emitter, Result, no_primitive, register};
use super::state::Bounds;
use super::update::BLOCK;
use crate::analysis::indices::CheckedIndex;
use crate::analysis::indices::has_checks;
use crate::vectorize::Collected;
use cranelift_codegen::ir::{
    InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Value, types,
};
use vinelift_nest::{Axis, Scalar, Stage};

/// Where the elements of a load are put while one column, or row, of a block is collected.
struct CollectedLoad<'n> {
    x: &'n Scalar,
    /// The address of the first element.
    address: Value,
    /// Bytes from one to the next.
    step: i64,
}

impl<'n> Emitter<'n, '_> {
    /// The loops over the blocks of a stage; `inner` are all that are left to open.
    pub(super) fn collected_loops(
        &mut self,
        number: usize,
        stage: &'n Stage,
        collected: Collected<'n>,
        inner: &[Axis],
    ) -> Result {
        let few: Vec<(Axis, usize)> = collected.may_be_few().collect();
        let Collected {
            ready,
            loads,
            lane,
            rows,
        } = collected;
        let points = lane.1 * rows.map_or(1, |(_, count)| count);
        self.collected.clear();
        for x in &loads {
            let bytes = points as u32 * register(x.ty()).bytes();
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 6);
            let slot = self.builder.create_sized_stack_slot(data);
            self.collected.push(slot);
        }
        let may_fault = rows.is_some() && loads.iter().any(|x| has_checks(x));
        let leads_away = may_fault || !few.is_empty();
        let exact = leads_away.then(|| self.builder.create_block());
        if let Some((axis, count)) = rows {
            self.chunk_at_least(stage, axis, count);
        }
        if let Some(exact) = exact {
            for (axis, count) in few {
                let turns = self.turns(stage, axis);
                let few = self.fewer_than(turns, count);
                self.leave_if(few, exact);
            }
        }
        let depth = self.loops.len();
        for (axis, count) in rows.into_iter().chain([lane]) {
            let turns = self.turns(stage, axis);
            self.open_loop(axis, turns, count as i64, &[]);
            self.stay_before(axis, turns, count);
        }
        self.instead_of_faults = exact.filter(|_| may_fault);
        let done = self.collect(stage, &loads, lane, rows);
        self.instead_of_faults = None;
        done?;
        self.call_vector_loop((number, number), stage, ready)?;
        while self.loops.len() > depth {
            self.close_loop(&[]);
        }
        match exact {
            Some(exact) => self.point_by_point(stage, exact, inner),
            None => Ok(()),
        }
    }

    /// Collects the elements of a block; the axes stand where it begins.
    fn collect(
        &mut self,
        stage: &'n Stage,
        loads: &[&'n Scalar],
        lane: (Axis, usize),
        rows: Option<(Axis, usize)>,
    ) -> Result {
        let (inner, count) = rows.unwrap_or(lane);
        let Some(start) = self.axes.remove(&inner.id) else {
            return no_primitive("an axis that is not in scope");
        };
        let first = self.axes.get(&lane.0.id).copied();
        let mut column = None;
        if let Some(first) = first {
            let to = self.builder.ins().iadd_imm_s(first.value, lane.1 as i64);
            self.open_loop(lane.0, Bounds::between(first.value, to), 1, &[]);
            // Scalars that do not depend on the row, which is not in scope.
            self.hoist(loads.iter().copied())?;
            let now = self.axes[&lane.0.id].value;
            column = Some(self.builder.ins().isub(now, first.value));
        }
        let places = self.collected_loads(loads, lane.1, column);
        let to = self.builder.ins().iadd_imm_s(start.value, count as i64);
        let turns = Bounds::between(start.value, to);
        let checks = self.analysis.checks(stage, inner.id);
        let faults = loads.iter().any(|x| self.analysis.has_wrap(x, inner.id));
        if faults && checks.is_empty() {
            self.open_loop(inner, turns, 1, &[]);
            let point = self
                .builder
                .ins()
                .isub(self.axes[&inner.id].value, start.value);
            self.collect_point(&places, point)?;
        } else {
            self.open_loop(inner, turns, BLOCK as i64, &[]);
            if !count.is_multiple_of(BLOCK) {
                self.stay_before(inner, turns, BLOCK);
            }
            let point = self
                .builder
                .ins()
                .isub(self.axes[&inner.id].value, start.value);
            self.collect_points(inner, &checks, &places, point)?;
        }
        self.close_loop(&[]);
        if let Some(first) = first {
            self.close_loop(&[]);
            self.axes.insert(lane.0.id, first);
        }
        self.axes.insert(inner.id, start);
        Ok(())
    }

    /// Where the elements of each load go: to rows of `length`, in the column if there is one.
    fn collected_loads(
        &mut self,
        loads: &[&'n Scalar],
        length: usize,
        column: Option<Value>,
    ) -> Vec<CollectedLoad<'n>> {
        let mut all = Vec::with_capacity(loads.len());
        for (k, &x) in loads.iter().enumerate() {
            let size = i64::from(register(x.ty()).bytes());
            let slot = self.collected[k];
            let mut address = self.builder.ins().stack_addr(types::I64, slot, 0);
            if let Some(column) = column {
                let offset = self.builder.ins().imul_imm_s(column, size);
                address = self.builder.ins().iadd(address, offset);
            }
            let step = size * column.map_or(1, |_| length as i64);
            all.push(CollectedLoad { x, address, step });
        }
        all
    }

    /// Collects the elements of [`BLOCK`] points from where the axis stands on, the first of which is number
    /// `point`.
    fn collect_points(
        &mut self,
        axis: Axis,
        checks: &[CheckedIndex<'n>],
        places: &[CollectedLoad<'n>],
        point: Value,
    ) -> Result {
        let ways = match checks.is_empty() {
            true => None,
            // Elements may be collected again.
            false => Some(self.check(checks, axis, BLOCK, CompareTime::WhenUsed)?),
        };
        for place in places {
            let register = register(place.x.ty());
            let each = match place.step == i64::from(register.bytes()) && register.bytes() >= 4 {
                true => 16 / register.bytes() as usize,
                false => 1,
            };
            let offset = self.builder.ins().imul_imm_s(point, place.step);
            let address = self.builder.ins().iadd(place.address, offset);
            for first in (0..BLOCK).step_by(each) {
                let mut elements = Vec::with_capacity(each);
                for k in first..first + each {
                    let load = |this: &mut Self| {
                        this.compute([place.x])?;
                        Ok(this.get(place.x))
                    };
                    elements.push(match &ways {
                        Some(ways) => self.in_range(ways, axis.id, k, load)?,
                        None => self.at_point(axis.id, k, load)?,
                    });
                }
                let value = match elements[..] {
                    [one] => one,
                    _ => self.clif128(each).one_register(register, &elements),
                };
                let offset = (first as i64 * place.step) as i32;
                self.store_collected(value, address, offset);
            }
        }
        if let Some(ways) = &ways {
            let join = self.builder.create_block();
            self.builder.ins().jump(join, &[]);
            let cold = self.one_by_one(ways, axis, BLOCK, |this, k| {
                let point = this.builder.ins().iadd(point, k);
                this.collect_point(places, point)
            })?;
            self.builder.ins().jump(join, &[]);
            cold.end(self);
            self.builder.switch_to_block(join);
        }
        Ok(())
    }

    /// Collects the elements of one point, with exact code.
    fn collect_point(&mut self, places: &[CollectedLoad<'n>], point: Value) -> Result {
        self.compute(places.iter().map(|place| place.x))?;
        for place in places {
            let offset = self.builder.ins().imul_imm_s(point, place.step);
            let address = self.builder.ins().iadd(place.address, offset);
            let value = self.get(place.x);
            self.store_collected(value, address, 0);
        }
        Ok(())
    }

    fn store_collected(&mut self, value: Value, address: Value, offset: i32) {
        let flags = MemFlagsData::new().with_notrap();
        self.builder.ins().store(flags, value, address, offset);
    }
}
