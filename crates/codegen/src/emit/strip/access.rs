//! Elements in memory: which pointer leads to them, and how it moves.

use super::build::{Argument, Builder, Lanes, Pace};
use super::lanes::instruction;
use super::opcodes;
use super::prefetch::down;
use crate::emit::address::Linear;
use crate::strip::program::{Access, Class, Form, Id, Source, Turns};
use vinelift_nest::{BufferId, Kind, Scalar};
use vinelift_tensor::ElementType::{self, Boolean};

/// What makes pointers the same: the buffer, what else the place depends on, and how it moves.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PointerKey {
    buffer: BufferId,
    panel: Option<usize>,
    terms: Vec<(usize, i64)>,
    moves: Vec<(usize, i64)>,
    pace: Pace,
}

/// Words of 64 bits.
const EVEN_THEN_ODD: [u64; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

impl<'n> Builder<'_, 'n, '_> {
    pub(super) fn load(
        &mut self,
        x: &'n Scalar,
        buffer: BufferId,
        at: &'n [Scalar],
    ) -> Option<Lanes> {
        let ty = x.ty();
        let loaded = match self.is_collected(x) {
            true => {
                let access = self.collected(x)?;
                self.load_neighbours(ty, access)?
            }
            false => self.load_in_place(x, buffer, at)?,
        };
        Some(match ty {
            Boolean => self.is_not_zero(&loaded),
            _ => loaded,
        })
    }

    fn load_in_place(
        &mut self,
        x: &'n Scalar,
        buffer: BufferId,
        at: &'n [Scalar],
    ) -> Option<Lanes> {
        let shape = &self.emitter.nest.buf(buffer).shape;
        let is_own = buffer == self.stage.target && !self.emitter.stays_apart(self.stage, at);
        if is_own || shape.contains(&0) {
            return None;
        }
        // The side of a select that is not taken is read too.
        if !self.certain.contains(&x.address()) {
            return None;
        }
        let Some((access, step)) = self.access(buffer, at) else {
            return match self.jam {
                Some(_) => None,
                None => self.look_up(x, buffer, at),
            };
        };
        let ty = x.ty();
        let loaded = self.load_in_common((access, step, ty), |builder| match step {
            0 => builder.load_spread(ty, access),
            1 => builder.load_neighbours(ty, access),
            2 => builder.load_every_second(ty, access),
            _ => None,
        })?;
        self.where_inside(at, loaded)
    }

    /// Lanes that lie side by side; of booleans, their bytes.
    fn load_neighbours(&mut self, ty: ElementType, access: Access) -> Option<Lanes> {
        let width = self.width(ty);
        let total = (self.lanes * usize::from(width)) as u8;
        if total < 4 {
            return None;
        }
        let parts = self.parts;
        let mut loaded = Vec::with_capacity(parts);
        if self.few.is_some() && total < 16 {
            return None;
        }
        let mask = self.few.and_then(|few| self.mask_of_first(few));
        for part in 0..parts {
            let op = match mask {
                Some(_) => opcodes::masked_load(width, self.target)?,
                None => opcodes::load(total, width, self.target),
            };
            let mut i = instruction(Form::Load, op, self.bytes(width));
            let offset = i32::try_from(part * usize::from(total)).ok()?;
            i.access = Some(Access {
                step: width,
                offset: access.offset.checked_add(offset)?,
                ..access
            });
            (i.mask, i.zeroing) = (mask, mask.is_some());
            loaded.push(self.give(i, Class::Vector));
        }
        Some(Lanes::new(loaded, width))
    }

    /// A mask of the first lanes, if these are not all.
    fn mask_of_first(&mut self, count: usize) -> Option<Id> {
        (count < self.lanes).then(|| self.first_lanes(count))
    }

    /// Every second of 15 or 31 words, from two registers that overlap in one: nothing beyond is read.
    fn load_every_second(&mut self, ty: ElementType, access: Access) -> Option<Lanes> {
        if self.width(ty) != 4 || self.lanes < 8 {
            return None;
        }
        let bytes = self.bytes(4);
        let lanes = self.lanes as i32;
        // Words up to the last that is wanted.
        let words = self.few.map_or(2 * self.lanes - 1, |few| 2 * few - 1);
        let mut loaded = Vec::with_capacity(self.parts);
        for part in 0..self.parts as i32 {
            let mut halves: Vec<Lanes> = Vec::with_capacity(2);
            for word in [0, lanes - 1] {
                // The second has nothing of a short row.
                let left = words.checked_sub(word as usize).filter(|left| *left > 0);
                let Some(left) = left else {
                    halves.extend(halves.first().cloned());
                    continue;
                };
                let mask = self.mask_of_first(left);
                let op = match mask {
                    Some(_) => opcodes::masked_load(4, self.target)?,
                    None => opcodes::load(bytes, 4, self.target),
                };
                let mut i = instruction(Form::Load, op, bytes);
                (i.mask, i.zeroing) = (mask, mask.is_some());
                i.access = Some(Access {
                    step: 8,
                    offset: access.offset.checked_add(8 * lanes * part + 4 * word)?,
                    ..access
                });
                halves.push(Lanes::new(vec![self.give(i, Class::Vector)], 4));
            }
            // The even words of the first, the odd ones of the second, by units of 128 bits; then these
            // in order.
            let mixed = self.three(opcodes::SHUFFLE_TWO, &halves[0], &halves[1], Some(0xd8));
            if bytes == 64 {
                let order = self.program.spread(Source::Whole(&EVEN_THEN_ODD), 64);
                let order = Lanes::new(vec![order], 4);
                loaded.extend(self.three(opcodes::SHUFFLE_BY, &order, &mixed, None).parts);
                continue;
            }
            let mut i = instruction(Form::Two, opcodes::SHUFFLE_HALVES, 32);
            i.immediate = Some(0xd8);
            loaded.extend(self.each(i, Class::Vector, &[&mixed]));
        }
        Some(Lanes::new(loaded, 4))
    }

    /// One element in all lanes.
    fn load_spread(&mut self, ty: ElementType, access: Access) -> Option<Lanes> {
        let width = self.width(ty);
        let op = opcodes::spread(width, self.target);
        let mut i = instruction(Form::Load, op, self.bytes(width));
        i.access = Some(Access { step: 0, ..access });
        Some(Lanes::new(vec![self.give(i, Class::Vector)], width))
    }

    /// Where `buffer[at]` lies, and how many elements it is from lane to lane.
    pub(super) fn access(&mut self, buffer: BufferId, at: &'n [Scalar]) -> Option<(Access, i64)> {
        let linear = self.emitter.linear(buffer, at);
        self.access_of(buffer, linear, Pace::STILL)
    }

    /// The same of the offset `linear`, to which the axis that is cut adds at this pace besides.
    pub(super) fn access_of(
        &mut self,
        buffer: BufferId,
        linear: Linear<'n>,
        mut pace: Pace,
    ) -> Option<(Access, i64)> {
        let ty = self.emitter.nest.buf(buffer).ty;
        if ty.is_packed() {
            return None;
        }
        let width = i64::from(self.width(ty));
        let mut step = 0;
        let mut offset = 0i64;
        let mut moves = Vec::new();
        for (leaf, coefficient) in linear.terms() {
            if self.is_invariant(leaf) {
                if !self.certain.contains(&leaf.address()) && self.emitter.facts.has_effect(leaf) {
                    return None;
                }
                continue;
            }
            let Kind::Axis(id) = leaf.kind() else {
                return None;
            };
            if self.cut == Some(*id) {
                let more = coefficient.checked_mul(width)?.checked_mul(pace.points)?;
                pace.bytes = pace.bytes.checked_add(more)?;
            }
            if let Some((block, each, row)) = self.place_of_row(*id) {
                let by = coefficient.checked_mul(width)?;
                moves.push((block, by.checked_mul(each)?));
                offset = offset.checked_add(row.checked_mul(coefficient)?)?;
            } else if let Some(value) = self.fixed.get(id) {
                offset = offset.checked_add(value.checked_mul(coefficient)?)?;
            } else if self.lane == Some(*id) {
                step = coefficient;
            } else {
                let block = self.blocks.iter().position(|b| b.axis == Some(*id))?;
                moves.push((block, coefficient.checked_mul(width)?));
            }
        }
        // What an axis of a block comes to where the block begins, the kernel adds.
        let blocked = &self.blocked;
        let begins = |x: &Scalar| matches!(x.kind(), Kind::Axis(id) if blocked.contains(id));
        let invariant = linear.without(|leaf| !self.is_invariant(leaf) && !begins(leaf));
        let offset = invariant
            .constant()
            .checked_add(offset)?
            .checked_mul(width)?;
        let invariant = invariant.at_zero();
        let mut terms: Vec<(usize, i64)> = invariant
            .terms()
            .map(|(leaf, c)| match leaf.kind() {
                Kind::Axis(id) => (usize::MAX - id.0 as usize, c),
                _ => (leaf.address(), c),
            })
            .collect();
        terms.sort_unstable();
        moves.sort_unstable();
        moves.retain(|(_, by)| *by != 0);
        let key = PointerKey {
            buffer,
            panel: invariant.panel(),
            terms,
            moves,
            pace,
        };
        let down = down(&key.moves);
        let pointer = match self.pointers.get(&key).copied() {
            Some(known) => known,
            // What is left of rows goes by the pointers of their loop.
            None if self.is_rest() => return None,
            None => {
                let argument = self.arguments.len() as u32;
                self.arguments.push(Argument::Place {
                    buffer,
                    linear: invariant,
                    pace,
                });
                self.program.pointers.push(argument);
                for &(block, by) in &key.moves {
                    let by = i32::try_from(by).ok()?;
                    if let Some(Turns::Count(turns)) = self.blocks[block].turns {
                        by.checked_mul(turns)?;
                    }
                    self.blocks[block].moves.push((argument, by));
                }
                self.pointers.insert(key, argument);
                argument
            }
        };
        let access = Access {
            pointer,
            step: 0,
            offset: i32::try_from(offset)
                .ok()
                .filter(|o| *o < i32::MAX - 4096)?,
        };
        if let Some(down) = down.filter(|_| step == 1) {
            self.note_run(buffer, access, width, down);
        }
        Some((access, step))
    }

    pub(super) fn store(&mut self, value: &Lanes) -> Option<()> {
        let ty = self.emitter.nest.buf(self.stage.target).ty;
        let width = self.width(ty);
        let (access, step) = self.access(self.stage.target, &self.stage.at)?;
        let value = match ty {
            Boolean => self.chosen(value, 1, 1)?,
            _ => value.clone(),
        };
        let (total, parts) = match (self.lane, step) {
            (Some(_), 1) => ((self.lanes * usize::from(width)) as u8, self.parts),
            (None, 0) => (width, 1),
            _ => return None,
        };
        let least = if self.few.is_some() { 16 } else { 4 };
        if self.lane.is_some() && total < least {
            return None;
        }
        let mask = self.few.and_then(|few| self.mask_of_first(few));
        for part in 0..parts {
            let op = opcodes::store(total, width, self.target);
            let mut i = instruction(Form::Store, op, total);
            i.immediate = (total < 4).then_some(0);
            i.from[0] = Some(value.part(part));
            i.mask = mask;
            i.access = Some(Access {
                step: if self.lane.is_some() { width } else { 0 },
                offset: access.offset.checked_add(part as i32 * i32::from(total))?,
                ..access
            });
            self.add(i);
        }
        Some(())
    }
}
