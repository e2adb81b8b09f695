//! Data-dependent indices of several points, checked at once.
//!
//! An index `k` lies in `0..n` if and only if the sign of `k | (n - 1 - k)` is clear. The signs of all
//! indices of a block of points are joined, by vectors where the indices lie side by side, and one
//! branch tells whether the block is one that needs a closer look. If not, the indices are used as they
//! are: those that were compared, not what memory holds by then, which belongs to the caller and may be
//! changed by other threads. What was compared by vectors is put on the stack for that. If so, a loop that is laid out far away does the points one by one with the exact code: it counts
//! negative indices from the end, reads zeros, or reports the first index that is wrong, as scalar code
//! for the whole stage would.
//!
//! Indices from a table of which none is out of range are used as they are.

use super::address::{Linear, Place};
use super::loops::Turns;
use super::scalar::Slot;
use super::{Binding, Emitter, Result};
use cranelift_codegen::ir::{
    Block, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type, Value, types,
};
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, AxisId, BufferId, Kind, Scalar, Stage, Wrap};
use vinelift_tensor::ElementType::{self, I32, I64};

/// A data-dependent index that depends on the axis of a block of points.
pub(super) struct Checked<'n> {
    /// The wrap.
    whole: &'n Scalar,
    wrap: &'n Wrap,
    source: Option<Source<'n>>,
    /// Whether it is in range at every point.
    is_known: bool,
}

/// Where the indices of consecutive points lie: `step` elements apart.
struct Source<'n> {
    buffer: BufferId,
    ty: ElementType,
    linear: Linear<'n>,
    step: i64,
}

/// An index that has been checked for a block of points, but not for each of them.
struct Ready<'n> {
    whole: &'n Scalar,
    values: Values,
}

enum Values {
    /// The indices of the points.
    Known(Vec<Value>),
    /// Where they lie in memory that nobody else writes: a table, or the stack.
    Kept(Neighbours),
}

/// Indices of consecutive points in memory, `step` elements apart from `address + offset` on.
#[derive(Clone, Copy)]
struct Neighbours {
    flags: MemFlagsData,
    address: Value,
    offset: i32,
    ty: ElementType,
    step: i32,
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

/// More indices than this in one stage are checked one by one.
const MOST_CHECKS: usize = 6;

/// The two ways to do a block of points.
pub(super) struct Ways<'n> {
    ready: Vec<Ready<'n>>,
    /// Where the points are done one by one.
    cold: Block,
}

impl<'n> Emitter<'n, '_> {
    /// The data-dependent indices of a stage that depend on `axis`, if all of those can be checked before
    /// anything else is done for a block of points.
    pub(super) fn checks(&self, stage: &'n Stage, axis: AxisId) -> Vec<Checked<'n>> {
        let mut checks = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open: Vec<(&'n Scalar, bool)> = stage.at.iter().map(|x| (x, false)).collect();
        open.push((&stage.value, false));
        open.reverse();
        while let Some((x, guarded)) = open.pop() {
            let varies = self.facts.free(x).contains(&axis);
            if !varies || !seen.insert((x.address(), guarded)) {
                continue;
            }
            let below = open.len();
            match x.kind() {
                Kind::Wrap(wrap) => {
                    let fits = !guarded && self.is_plain(&wrap.index, stage, axis);
                    if !fits || checks.len() == MOST_CHECKS {
                        return Vec::new();
                    }
                    checks.push(Checked {
                        whole: x,
                        wrap,
                        source: self.source(&wrap.index, axis),
                        is_known: self.never_faults(wrap),
                    });
                }
                Kind::Select(c, yes, no) => open.extend([(c, guarded), (yes, true), (no, true)]),
                Kind::Reduce { init, body, .. } => open.extend([(init, guarded), (body, true)]),
                _ => open.extend(x.children().map(|child| (child, guarded))),
            }
            open[below..].reverse();
        }
        checks
    }

    /// Whether an index can be evaluated for later points before earlier ones are done.
    fn is_plain(&self, index: &Scalar, stage: &Stage, axis: AxisId) -> bool {
        let mut open = vec![index];
        let mut seen = FxHashSet::default();
        while let Some(x) = open.pop() {
            if !seen.insert(x.address()) {
                continue;
            }
            match x.kind() {
                Kind::Reduce { .. } => return false,
                Kind::Load { buffer, .. } if *buffer == stage.target => return false,
                Kind::Wrap(w) if !w.policy.zero && self.facts.free(x).contains(&axis) => {
                    return false;
                }
                _ => open.extend(x.children()),
            }
        }
        true
    }

    /// Where an index is loaded from, if that is all it is.
    fn source(&self, index: &'n Scalar, axis: AxisId) -> Option<Source<'n>> {
        let load = match index.kind() {
            // Of a type that holds all values of the other, which is signed.
            Kind::Cast(x) if index.ty() == I64 && x.ty() == I32 => x,
            _ => index,
        };
        let Kind::Load { buffer, at } = load.kind() else {
            return None;
        };
        let linear = self.linear(*buffer, at);
        let step = self
            .steps_with(axis, &linear)
            .filter(|step| (1..=8).contains(step))?;
        let is_whole = at.iter().all(|i| !matches!(i.kind(), Kind::Wrap(_)));
        let ty = load.ty();
        (matches!(ty, I32 | I64) && is_whole).then_some(Source {
            buffer: *buffer,
            ty,
            linear,
            step,
        })
    }

    /// Checks the indices of the `count` points from the value of the axis on. The block that is current
    /// afterwards is for points whose indices are all in range.
    pub(super) fn check(
        &mut self,
        checks: &[Checked<'n>],
        axis: Axis,
        count: usize,
    ) -> Result<Ways<'n>> {
        let mut signs = Signs::default();
        let mut places = Vec::with_capacity(checks.len());
        for check in checks {
            let source = check.source.as_ref();
            places.push(match source.filter(|source| check.fits(source, count)) {
                Some(source) => self.neighbours(source, axis)?,
                None => None,
            });
        }
        let mut kept = self.check_side_by_side(checks, &places, count, &mut signs);
        for (k, check) in checks.iter().enumerate() {
            // Nobody writes to a table.
            if check.is_known && kept[k].is_none() {
                kept[k] = places[k];
            }
        }
        let mut ready = Vec::with_capacity(checks.len());
        for (check, kept) in checks.iter().zip(kept) {
            let values = match kept {
                Some(neighbours) => Values::Kept(neighbours),
                None => self.check_each(check, axis, count, &mut signs)?,
            };
            ready.push(Ready {
                whole: check.whole,
                values,
            });
        }
        let b = &mut self.builder;
        let (fast, cold) = (b.create_block(), b.create_block());
        b.set_cold_block(cold);
        let flagged = signs.into_value(self);
        self.builder.ins().brif(flagged, cold, &[], fast, &[]);
        self.builder.switch_to_block(fast);
        Ok(Ways { ready, cold })
    }

    /// Where the indices of the points from the value of the axis on lie, if each is bytes of its own.
    fn neighbours(&mut self, source: &Source<'n>, axis: Axis) -> Result<Option<Neighbours>> {
        self.open_scope();
        self.compute(source.linear.leaves())?;
        let place = self.place(source.buffer, &source.linear);
        self.close_point(axis.id);
        Ok(match place {
            Place::Bytes { address, offset } => Some(Neighbours {
                flags: self.flags[source.buffer.0 as usize],
                address,
                offset,
                ty: source.ty,
                step: source.step as i32,
            }),
            Place::Packed { .. } => None,
        })
    }

    /// Computes the index of each point as a scalar.
    fn check_each(
        &mut self,
        &Checked { wrap, is_known, .. }: &Checked<'n>,
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
            let last = self.index(wrap.extent as i64 - 1);
            let rest = self.builder.ins().isub(last, index);
            let sign = self.builder.ins().bor(index, rest);
            signs.join(self, sign);
        }
        Ok(Values::Known(known))
    }

    /// Checks, a register at a time, the indices that lie side by side: those of one wrap, or of several
    /// that take turns. Says where those that were compared are kept; the others have not been checked.
    fn check_side_by_side(
        &mut self,
        checks: &[Checked<'n>],
        places: &[Option<Neighbours>],
        count: usize,
        signs: &mut Signs,
    ) -> Vec<Option<Neighbours>> {
        let mut kept: Vec<Option<Neighbours>> = vec![None; checks.len()];
        for k in 0..checks.len() {
            let Some(own) = places[k].filter(|_| kept[k].is_none() && !checks[k].is_known) else {
                continue;
            };
            // Those that share the memory between this index and the next, by their place in it.
            let (size, step) = (own.size(), own.step);
            let mut turns: Vec<Option<(usize, i32)>> = vec![None; step as usize];
            turns[0] = Some((k, own.offset));
            for (other, place) in places.iter().enumerate() {
                if let (Some(place), Some(a), Some(b)) =
                    (place, &checks[k].source, &checks[other].source)
                    && a.takes_turns_with(b)
                    && !checks[other].is_known
                {
                    let apart = place.offset - own.offset;
                    let turn = apart.rem_euclid(step * size) / size;
                    if apart.abs() < step * size && turns[turn as usize].is_none() {
                        turns[turn as usize] = Some((other, place.offset));
                    }
                }
            }
            let mut members: Vec<(usize, i32)> = turns.iter().copied().flatten().collect();
            members.sort_by_key(|(_, offset)| *offset);
            let first = members[0].1;
            let fills =
                |(turn, member): (usize, &(usize, i32))| member.1 == first + turn as i32 * size;
            if members.len() != step as usize || !members.iter().enumerate().all(fills) {
                continue;
            }
            let extents: Vec<usize> = members.iter().map(|m| checks[m.0].wrap.extent).collect();
            let start = Neighbours {
                offset: first,
                ..own
            };
            let copy = self.check_registers(start, &extents, count, signs);
            for (member, offset) in members {
                kept[member] = Some(Neighbours {
                    offset: offset - first,
                    ..copy
                });
            }
        }
        kept
    }

    /// Checks `count` indices of each extent, which take turns, and gives the copy that was checked.
    fn check_registers(
        &mut self,
        from: Neighbours,
        extents: &[usize],
        count: usize,
        signs: &mut Signs,
    ) -> Neighbours {
        let size = from.ty.bits() / 8;
        let (register, lanes) = (vector(from.ty), 16 / size);
        let bytes = (count * extents.len() * size) as u32;
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4);
        let slot = self.builder.create_sized_stack_slot(data);
        let copy = Neighbours {
            flags: MemFlagsData::new().with_notrap(),
            address: self.builder.ins().stack_addr(types::I64, slot, 0),
            offset: 0,
            ..from
        };
        for q in 0..count * extents.len() / lanes {
            let limits = (0..lanes).flat_map(|lane| {
                let extent = extents[(q * lanes + lane) % extents.len()];
                (extent as i64 - 1).to_le_bytes().into_iter().take(size)
            });
            let limits: Vec<u8> = limits.collect();
            let limits = self.builder.func.dfg.constants.insert(limits.into());
            let limits = self.builder.ins().vconst(register, limits);
            let offset = 16 * q as i32;
            let ins = self.builder.ins();
            let found = ins.load(register, from.flags, from.address, from.offset + offset);
            let ins = self.builder.ins();
            ins.store(copy.flags, found, copy.address, offset);
            let rest = self.builder.ins().isub(limits, found);
            let sign = self.builder.ins().bor(found, rest);
            signs.join(self, sign);
        }
        copy
    }

    /// An index that is not less than zero.
    fn load_index(&mut self, from: &Neighbours, point: usize) -> Value {
        let offset = from.offset_of(point);
        let ins = self.builder.ins();
        match from.ty {
            I64 => ins.load(types::I64, from.flags, from.address, offset),
            _ => ins.uload32(from.flags, from.address, offset),
        }
    }

    /// Does `f` for one of the points of a block that is in range: its indices are known. `f` comes after
    /// the blocks and before the scopes of all other points.
    pub(super) fn in_range<T>(
        &mut self,
        ways: &Ways<'n>,
        axis: AxisId,
        point: usize,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.at_point(axis, point, |this| {
            for ready in &ways.ready {
                let value = match &ready.values {
                    Values::Known(indices) => indices[point],
                    Values::Kept(neighbours) => this.load_index(neighbours, point),
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
            if self.facts.depends(address, axis) {
                self.slots.remove(&address);
            } else {
                self.order.push(address);
            }
        }
    }

    /// The other way: a loop over the `count` points that does `f` for each, with the number of the
    /// point, as if nothing had been checked; then `end`. What comes after must go on where the fast way
    /// does.
    pub(super) fn one_by_one(
        &mut self,
        ways: &Ways<'n>,
        axis: Axis,
        count: usize,
        mut f: impl FnMut(&mut Self, Value) -> Result,
    ) -> Result<ColdBlocks> {
        let blocks = self.cold_from_here();
        self.builder.switch_to_block(ways.cold);
        let Some(first) = self.axes.get(&axis.id).copied() else {
            return super::no_primitive("an axis that is not in scope");
        };
        let from = self.builder.ins().iadd_imm_s(first.value, first.plus);
        let to = self.builder.ins().iadd_imm_s(from, count as i64);
        self.open_loop(axis, Turns::between(from, to), 1, &[]);
        let now = self.axes[&axis.id].value;
        let point = self.builder.ins().isub(now, from);
        f(self, point)?;
        self.close_loop(&[]);
        self.axes.insert(axis.id, first);
        Ok(blocks)
    }

    /// What comes from here on is seldom run.
    pub(super) fn cold_from_here(&self) -> ColdBlocks {
        ColdBlocks(self.builder.func.dfg.num_blocks())
    }
}

/// The blocks since then are seldom run.
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

/// What a dump says of how indices are checked.
pub(super) fn how(checks: &[Checked<'_>]) -> &'static str {
    match checks {
        [] => "",
        _ => how_checked(checks.iter().all(|check| check.is_known)),
    }
}

/// The same of indices that are known to be in range, or not.
pub(super) fn how_checked(is_known: bool) -> &'static str {
    match is_known {
        true => "constant indices, checked once",
        false => "indices checked by vectors",
    }
}

impl Checked<'_> {
    /// Whether whole registers hold the indices of so many points, and the largest index.
    fn fits(&self, source: &Source<'_>, count: usize) -> bool {
        let size = source.ty.bits() / 8;
        let last = self.wrap.extent as i128 - 1;
        (count * size).is_multiple_of(16) && last < 1i128 << (source.ty.bits() - 1)
    }
}

impl Source<'_> {
    /// Whether the two lie in the same buffer and differ by a constant.
    fn takes_turns_with(&self, other: &Source<'_>) -> bool {
        let same = (self.buffer, self.ty, self.step) == (other.buffer, other.ty, other.step);
        same && self.linear.differs_by_constant(&other.linear)
    }
}

fn vector(ty: ElementType) -> Type {
    match ty {
        I64 => types::I64X2,
        _ => types::I32X4,
    }
}

/// Signs joined so far, for each type of register.
#[derive(Default)]
struct Signs {
    joined: Vec<(Type, Value)>,
}

impl Signs {
    fn join(&mut self, emitter: &mut Emitter<'_, '_>, sign: Value) {
        let ty = emitter.builder.func.dfg.value_type(sign);
        match self.joined.iter_mut().find(|(known, _)| *known == ty) {
            Some((_, all)) => *all = emitter.builder.ins().bor(*all, sign),
            None => self.joined.push((ty, sign)),
        }
    }

    /// Not zero if any sign is set.
    fn into_value(self, emitter: &mut Emitter<'_, '_>) -> Value {
        let mut all = None;
        for (ty, sign) in self.joined {
            let ins = emitter.builder.ins();
            let bits = match ty.is_vector() {
                true => ins.vhigh_bits(types::I32, sign),
                false => {
                    let shifted = ins.ushr_imm_u(sign, 63);
                    emitter.builder.ins().ireduce(types::I32, shifted)
                }
            };
            all = Some(match all {
                Some(others) => emitter.builder.ins().bor(others, bits),
                None => bits,
            });
        }
        all.unwrap_or_else(|| emitter.builder.ins().iconst(types::I32, 0))
    }
}
