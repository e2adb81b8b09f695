//! Elements in memory: which pointer leads to them, and how it moves.

use super::build::{Builder, PointerKey};
use super::prefetch::row_bytes;
use super::vector_loop::{Argument, Pace};
use crate::analysis::coefficient::Coefficient;
use crate::analysis::linear::Linear;
use crate::vector_ir::ops::{Access, Op, lane_bytes};
use crate::vector_ir::program::{Stride, TripCount, Value};
use std::rc::Rc;
use vinelift_nest::{BufferId, Kind, Scalar};
use vinelift_tensor::ElementType::{Boolean, U8};

/// How an offset moves, in elements, and pointers to it, in bytes.
#[derive(Default)]
struct Strides<'n> {
    /// The terms that are the same throughout the vector loop, with those of axes that begin where the kernel says.
    still: Vec<(&'n Scalar, Coefficient)>,
    /// From lane to lane.
    step: i64,
    /// The part that comes from axes which have one value for now: a number here, and what has symbols beside it.
    offset: i64,
    symbolic: Vec<Coefficient>,
    /// Loops that move the pointer, and by how many bytes.
    moves: Vec<(usize, Coefficient)>,
    /// Bytes by which a point of the axis that is cut moves it.
    cut_step: i64,
}

impl Strides<'_> {
    /// Takes in an axis that has one value.
    fn add_value(&mut self, value: i64, coefficient: Coefficient) -> Option<()> {
        match coefficient.number() {
            Some(number) => {
                let more = value.checked_mul(number)?;
                self.offset = self.offset.checked_add(more)?;
            }
            None if value == 0 => {}
            None => self.symbolic.push(coefficient.times(value)),
        }
        Some(())
    }
}

impl<'n> Builder<'_, 'n> {
    pub(super) fn load(
        &mut self,
        x: &'n Scalar,
        buffer: BufferId,
        at: &'n [Scalar],
    ) -> Option<Value> {
        let ty = x.ty();
        let loaded = match self.is_collected(x) {
            true => {
                let access = self.collected(x)?;
                self.apply(Op::Load(access), ty, &[])
            }
            false => match self.load_in_place(x, buffer, at) {
                Some(loaded) => loaded,
                None => return self.kernel_scalar(x),
            },
        };
        Some(match ty {
            Boolean => self.apply(Op::IsNonZero, U8, &[loaded]),
            _ => loaded,
        })
    }

    fn load_in_place(
        &mut self,
        x: &'n Scalar,
        buffer: BufferId,
        at: &'n [Scalar],
    ) -> Option<Value> {
        let shape = &self.analysis.nest.buf(buffer).shape;
        let is_own = buffer == self.stage.target && !self.analysis.stays_apart(self.stage, at);
        if is_own || shape.iter().any(|n| *n == 0) {
            return None;
        }
        // The side of a select that is not taken is read too.
        if !self.speculable.contains(&x.address()) {
            return None;
        }
        let Some((access, step)) = self.access(buffer, at) else {
            return match self.jam {
                Some(_) => None,
                None => self.gather(x, buffer, at),
            };
        };
        let ty = x.ty();
        let op = match step {
            0 => Op::LoadUniform(access),
            1 => Op::Load(access),
            2 => Op::LoadStrided(access, 2),
            _ => Op::LoadStrided(access, self.near_step(access, step, ty)?),
        };
        let loaded = self.load_in_common(op, ty);
        Some(self.where_inside(at, ty, loaded))
    }

    /// Where `buffer[at]` lies, and how many elements it is from lane to lane.
    pub(super) fn access(&mut self, buffer: BufferId, at: &'n [Scalar]) -> Option<(Access, i64)> {
        // The same access is asked for by each row and each point of an unrolled fold.
        let place = (buffer, at.as_ptr().addr());
        let known = self.linears.get(&place).cloned();
        let linear = known.unwrap_or_else(|| {
            let linear = Rc::new(self.analysis.linear(buffer, at));
            self.linears.insert(place, linear.clone());
            linear
        });
        self.access_of(buffer, &linear, Pace::STILL)
    }

    /// The same of the offset `linear`, to which the axis that is cut adds at this pace besides.
    pub(super) fn access_of(
        &mut self,
        buffer: BufferId,
        linear: &Linear<'n>,
        mut pace: Pace,
    ) -> Option<(Access, i64)> {
        let ty = self.analysis.nest.buf(buffer).ty;
        if ty.is_packed() {
            return None;
        }
        let width = i64::from(lane_bytes(ty));
        let Strides {
            still,
            step,
            offset,
            symbolic,
            moves,
            cut_step,
        } = self.strides(linear, width)?;
        let cut_bytes = cut_step.checked_mul(pace.points)?;
        pace.bytes = pace.bytes.checked_add(cut_bytes)?;
        let mut invariant = linear.with_terms(still);
        symbolic.into_iter().for_each(|c| invariant.add_constant(c));
        let offset = invariant
            .constant()
            .checked_add(offset)?
            .checked_mul(width)?;
        let row_bytes = row_bytes(&moves);
        let access = Access {
            pointer: self.pointer(buffer, invariant.at_zero(), moves, pace)?,
            step: 0,
            offset: i32::try_from(offset)
                .ok()
                .filter(|o| *o < i32::MAX - 4096)?,
        };
        if let Some(row_bytes) = row_bytes.filter(|_| step == 1) {
            self.note_run(buffer, access, width, row_bytes);
        }
        Some((access, step))
    }

    /// How an offset of elements of `width` bytes moves with lanes and loops; `None` if it also depends on something else.
    fn strides(&self, linear: &Linear<'n>, width: i64) -> Option<Strides<'n>> {
        let mut strides = Strides::default();
        // Where a block of an axis begins is added by the kernel.
        let rows = self.rows.map(|(axis, _)| axis.id);
        let blocked = self.blocked.iter().chain(&rows);
        let begins = |x: &Scalar| blocked.clone().any(|id| x.is_axis(*id));
        for (leaf, coefficient) in linear.terms() {
            if self.is_invariant(leaf) {
                if !self.speculable.contains(&leaf.address())
                    && self.analysis.facts.has_effect(leaf)
                {
                    return None;
                }
                strides.still.push((leaf, coefficient));
                continue;
            }
            let Kind::Axis(id) = leaf.kind() else {
                return None;
            };
            if begins(leaf) {
                strides.still.push((leaf, coefficient));
            }
            let bytes = || coefficient.checked_times(width);
            if self.cut == Some(*id) {
                // The points of an axis that is cut, and lanes, are apart by numbers.
                strides.cut_step = strides.cut_step.checked_add(bytes()?.number()?)?;
            }
            if let Some((block, each, row)) = self.jammed_axis(*id) {
                if self.blocks[block].trips.is_some() {
                    strides.moves.push((block, bytes()?.checked_times(each)?));
                }
                strides.add_value(row, coefficient)?;
            } else if let Some(value) = self.fixed.get(id) {
                strides.add_value(*value, coefficient)?;
            } else if self.lane == Some(*id) {
                strides.step = coefficient.number()?;
            } else {
                let block = self.blocks.iter().position(|b| b.is_over(*id))?;
                strides.moves.push((block, bytes()?));
            }
        }
        strides.moves.sort_by_key(|(block, _)| *block);
        strides.moves.retain(|(_, by)| *by != 0.into());
        Some(strides)
    }

    /// The pointer that starts at `invariant` in the buffer and moves so.
    fn pointer(
        &mut self,
        buffer: BufferId,
        invariant: Linear<'n>,
        moves: Vec<(usize, Coefficient)>,
        pace: Pace,
    ) -> Option<u32> {
        let mut terms: Vec<(usize, Coefficient)> = invariant
            .terms()
            .map(|(leaf, c)| match leaf.kind() {
                Kind::Axis(id) => (usize::MAX - id.0 as usize, c),
                _ => (leaf.address(), c),
            })
            .collect();
        terms.sort_by_key(|(leaf, _)| *leaf);
        let key = PointerKey {
            buffer,
            panel: invariant.panel(),
            terms,
            symbolic: invariant.symbolic().to_vec(),
            moves,
            pace,
        };
        // The rows that are left go by the pointers of the loop over the others.
        if self.is_rest() {
            return self.pointers.get(&key).copied();
        }
        if let Some(known) = self.pointers.get(&key).copied() {
            // Another loop may have taken the place of one that is closed.
            self.move_by(known, &key.moves)?;
            return Some(known);
        }
        let argument = self.argument(Argument::Address {
            buffer,
            linear: invariant,
            pace,
        });
        self.program.pointers.push(argument);
        self.move_by(argument, &key.moves)?;
        self.pointers.insert(key, argument);
        Some(argument)
    }

    /// Has each of these loops move the pointer by as many bytes.
    fn move_by(&mut self, pointer: u32, moves: &[(usize, Coefficient)]) -> Option<()> {
        for &(block, by) in moves {
            let stride = match by.number() {
                Some(bytes) => Stride::Bytes(i32::try_from(bytes).ok()?),
                None => Stride::Argument(self.stride(by)),
            };
            let block = &mut self.blocks[block];
            if let (Some(TripCount::Fixed(trips)), Stride::Bytes(bytes)) = (block.trips, stride) {
                bytes.checked_mul(trips)?;
            }
            if !block.moves.contains(&(pointer, stride)) {
                block.moves.push((pointer, stride));
            }
        }
        Some(())
    }

    /// The argument that says how many bytes these are.
    fn stride(&mut self, bytes: Coefficient) -> u32 {
        let is_known = |a: &Argument<'_>| matches!(a, Argument::Stride(known) if *known == bytes);
        match self.arguments.iter().position(is_known) {
            Some(known) => known as u32,
            None => self.argument(Argument::Stride(bytes)),
        }
    }

    /// The elements that lie where the stage writes.
    pub(super) fn old_value(&mut self) -> Option<Value> {
        let ty = self.analysis.nest.buf(self.stage.target).ty;
        let (access, _) = self.access(self.stage.target, &self.stage.at)?;
        Some(self.apply(Op::Load(access), ty, &[]))
    }

    /// Stores `value` where the stage writes.
    pub(super) fn store(&mut self, value: Value) -> Option<()> {
        let ty = self.analysis.nest.buf(self.stage.target).ty;
        let (access, step) = self.access(self.stage.target, &self.stage.at)?;
        let value = match ty {
            Boolean => self.apply(Op::MaskedConstant(1), U8, &[value]),
            _ => value,
        };
        self.add(Op::Store(access), ty, &[value]);
        (step == 1).then_some(())
    }
}
