//! Data-dependent indices of a block of points.
//!
//! Each is compared with its extent in the register that it is loaded into, and used from there: the memory of
//! indices belongs to the caller, and other threads may write to it. If all are in range, the points of a block are
//! done one after the other without loops or branches but these. If one is not, a loop that is laid out far away
//! does the points of the block one by one with the exact code: it counts negative indices from the end, reads
//! zeros, or reports the first index that is wrong, as scalar code for the whole stage would.
//!
//! Where the points of a block may be done again, an index is loaded and compared when its point comes
//! ([`CompareTime::WhenUsed`]); otherwise all are before the first.
//!
//! An index that is computed lies in `0..n` if and only if the sign of `k | (n - 1 - k)` is clear. The signs of
//! those of a block are joined, and one branch tells whether the block needs a closer look.
//!
//! Indices from a table of which none is out of range are used as they are.

use super::address::ElementAddress;
use super::emitter::{Emitter, Result, no_primitive};
use super::state::{Binding, Bounds, Slot};
use crate::analysis::indices::{CheckedIndex, IndexSource};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};
use vinelift_nest::{Axis, AxisId, Effects, Scalar, Stage};
use vinelift_tensor::ElementType::{self, I64};
use vinelift_tensor::Extent;

/// An index that has been checked for a block of points, but not for each of them.
struct BlockIndex<'n> {
    whole: &'n Scalar,
    values: Values,
}

enum Values {
    /// The indices of the points.
    Known(Vec<Value>),
    /// Where they lie. They are compared with an extent when they are used, unless they are known to be in range.
    Loaded(Neighbours, Option<Extent>),
}

/// When the indices of a block of points are compared with their extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompareTime {
    /// Before the first point is done.
    Ahead,
    /// When they are used. The points before may have been done by then, and are done again if one is not in range.
    WhenUsed,
}

impl CompareTime {
    /// The last moment at which the indices of a stage may be compared that writes as it goes.
    pub(super) fn for_stage(stage: &Stage) -> CompareTime {
        match Effects::of_stage(stage).may_repeat() {
            true => CompareTime::WhenUsed,
            false => CompareTime::Ahead,
        }
    }
}

/// Indices of consecutive points in memory, `step` elements apart from `address + offset` on.
#[derive(Clone, Copy)]
pub(super) struct Neighbours {
    pub(super) flags: MemFlagsData,
    pub(super) address: Value,
    pub(super) offset: i32,
    pub(super) ty: ElementType,
    pub(super) step: i32,
}

impl Neighbours {
    /// Bytes of an index.
    fn size(&self) -> i32 {
        self.ty.bits() as i32 / 8
    }

    /// Where the index of a point lies.
    fn offset_of(&self, point: usize) -> i32 {
        self.offset + point as i32 * self.step * self.size()
    }
}

/// The two ways to do a block of points.
pub(super) struct CheckedBlock<'n> {
    ready: Vec<BlockIndex<'n>>,
    /// Where the points are done one by one.
    cold: Block,
}

impl<'n> Emitter<'n, '_> {
    /// Checks the indices of the `count` points from the value of the axis on, or has them be checked. The block that
    /// is current afterwards is for points whose indices are all in range.
    pub(super) fn check(
        &mut self,
        checks: &[CheckedIndex<'n>],
        axis: Axis,
        count: usize,
        compared: CompareTime,
    ) -> Result<CheckedBlock<'n>> {
        let cold = self.builder.create_block();
        self.builder.set_cold_block(cold);
        let mut signs = Signs::default();
        let mut ready = Vec::with_capacity(checks.len());
        for check in checks {
            let source = check.source.as_ref();
            let neighbours = match source.filter(|source| check.fits(source.ty)) {
                Some(source) => self.neighbours(source, axis)?,
                None => None,
            };
            let extent = (!check.is_known).then_some(check.wrap.extent);
            let values = match (neighbours, compared) {
                (None, _) => self.check_each(check, axis, count, &mut signs)?,
                (Some(from), CompareTime::Ahead) if extent.is_some() => {
                    let points = 0..count;
                    let outside = extent.map(|extent| (extent, cold));
                    let load = |point| self.load_index(&from, point, outside);
                    Values::Known(points.map(load).collect())
                }
                (Some(from), _) => Values::Loaded(from, extent),
            };
            ready.push(BlockIndex {
                whole: check.whole,
                values,
            });
        }
        let is_compared =
            |ready: &BlockIndex<'_>| matches!(ready.values, Values::Loaded(_, Some(_)));
        let leaves = signs.0.is_some() || !ready.iter().any(is_compared);
        if leaves {
            let flagged = signs.into_value(self);
            self.leave_if(flagged, cold);
        }
        Ok(CheckedBlock { ready, cold })
    }

    /// Where the indices of the points from the value of the axis on lie, if each is bytes of its own.
    fn neighbours(&mut self, source: &IndexSource<'n>, axis: Axis) -> Result<Option<Neighbours>> {
        self.open_scope();
        self.compute(source.linear.leaves())?;
        let place = self.place(source.buffer, &source.linear);
        self.close_point(axis.id);
        Ok(match place {
            ElementAddress::Bytes { address, offset } => Some(Neighbours {
                flags: self.flags[source.buffer.0 as usize],
                address,
                offset,
                ty: source.ty,
                step: source.step as i32,
            }),
            ElementAddress::Packed { .. } => None,
        })
    }

    /// Computes the index of each point as a scalar.
    fn check_each(
        &mut self,
        &CheckedIndex { wrap, is_known, .. }: &CheckedIndex<'n>,
        axis: Axis,
        count: usize,
        signs: &mut Signs,
    ) -> Result<Values> {
        let mut known = Vec::with_capacity(count);
        for point in 0..count {
            let index = self.at_point(axis.id, point, |this| {
                this.compute([&wrap.index])?;
                Ok(this.found(wrap))
            })?;
            known.push(index);
            if is_known {
                continue;
            }
            let last = match wrap.extent.number() {
                Some(extent) => self.index(extent as i64 - 1),
                None => {
                    let extent = self.extent(wrap.extent);
                    self.builder.ins().iadd_imm_s(extent, -1)
                }
            };
            let rest = self.builder.ins().isub(last, index);
            let sign = self.builder.ins().bor(index, rest);
            signs.join(self, sign);
        }
        Ok(Values::Known(known))
    }

    /// The index of a point. The kernel goes on at the block of `outside` if it is not below the extent. One that is
    /// less than zero is above any extent.
    pub(super) fn load_index(
        &mut self,
        from: &Neighbours,
        point: usize,
        outside: Option<(Extent, Block)>,
    ) -> Value {
        let offset = from.offset_of(point);
        let ins = self.builder.ins();
        let index = match from.ty {
            I64 => ins.load(types::I64, from.flags, from.address, offset),
            _ => ins.uload32(from.flags, from.address, offset),
        };
        if let Some((extent, cold)) = outside {
            let condition = IntCC::UnsignedGreaterThanOrEqual;
            let outside = self.compare_with(condition, index, extent);
            self.leave_if(outside, cold);
        }
        index
    }

    /// Does `f` for one of the points of a block that is in range: its indices are known. `f` comes after
    /// the blocks and before the scopes of all other points.
    pub(super) fn in_range<T>(
        &mut self,
        ways: &CheckedBlock<'n>,
        axis: AxisId,
        point: usize,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.at_point(axis, point, |this| {
            for ready in &ways.ready {
                let value = match &ready.values {
                    Values::Known(indices) => indices[point],
                    Values::Loaded(from, extent) => {
                        this.load_index(from, point, extent.map(|extent| (extent, ways.cold)))
                    }
                };
                let inside = None;
                this.set(ready.whole, Slot { value, inside });
            }
            f(this)
        })
    }

    /// Does `f` with the axis `point` points further, in a scope of its own.
    pub(super) fn at_point<T>(
        &mut self,
        axis: AxisId,
        point: usize,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = self.axes.get(&axis).copied();
        if let Some(first) = before {
            let plus = first.plus + point as i64;
            self.axes.insert(axis, Binding { plus, ..first });
        }
        self.open_scope();
        let done = f(self);
        self.close_scope();
        if let Some(first) = before {
            self.axes.insert(axis, first);
        }
        done
    }

    /// Closes a scope for one value of `axis`; what does not depend on it stays known.
    pub(super) fn close_point(&mut self, axis: AxisId) {
        let start = self.scopes.pop().unwrap_or(0);
        for address in self.order.split_off(start) {
            if self.analysis.facts.depends(address, axis) {
                self.slots.remove(&address);
            } else {
                self.order.push(address);
            }
        }
    }

    /// The slow path: a loop over the `count` points that does `f` for each, given the number of the point, as if nothing had been
    /// checked; then `end`. The code after it must join that of the fast path.
    pub(super) fn one_by_one(
        &mut self,
        ways: &CheckedBlock<'n>,
        axis: Axis,
        count: usize,
        mut f: impl FnMut(&mut Self, Value) -> Result,
    ) -> Result<ColdBlocks> {
        let blocks = self.cold_from_here();
        self.builder.switch_to_block(ways.cold);
        let Some(first) = self.axes.get(&axis.id).copied() else {
            return no_primitive("an axis that is not in scope");
        };
        let from = self.builder.ins().iadd_imm_s(first.value, first.plus);
        let to = self.builder.ins().iadd_imm_s(from, count as i64);
        self.open_loop(axis, Bounds::between(from, to), 1, &[]);
        let now = self.axes[&axis.id].value;
        let point = self.builder.ins().isub(now, from);
        f(self, point)?;
        self.close_loop(&[]);
        self.axes.insert(axis.id, first);
        Ok(blocks)
    }

    /// Marks the blocks that are created from here on as cold.
    pub(super) fn cold_from_here(&self) -> ColdBlocks {
        ColdBlocks(self.builder.func.dfg.num_blocks())
    }
}

/// The number of the first block that is cold.
pub(super) struct ColdBlocks(usize);

impl ColdBlocks {
    /// Lays out the blocks far away, up to the current one.
    pub(super) fn end(self, emitter: &mut Emitter<'_, '_>) {
        let all = self.0..emitter.builder.func.dfg.num_blocks();
        for block in all {
            emitter
                .builder
                .set_cold_block(Block::from_u32(block as u32));
        }
    }
}

/// The signs of all indices of a block that are computed, joined.
#[derive(Default)]
struct Signs(Option<Value>);

impl Signs {
    fn join(&mut self, emitter: &mut Emitter<'_, '_>, sign: Value) {
        self.0 = Some(match self.0 {
            Some(all) => emitter.builder.ins().bor(all, sign),
            None => sign,
        });
    }

    /// Not zero if any is set.
    fn into_value(self, emitter: &mut Emitter<'_, '_>) -> Value {
        match self.0 {
            Some(signs) => emitter.builder.ins().ushr_imm_u(signs, 63),
            None => emitter.index(0),
        }
    }
}
