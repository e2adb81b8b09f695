//! Loads through indices that lie side by side in memory, one for each lane.
//!
//! `buffer[… + wrap(index) · k + …]`: the indices of a turn are checked at once, then the elements are put
//! together one by one; those of a short row stay in registers and are permuted. If an index is out of range,
//! the kernel does all points of the strip again, in the exact way.

use super::build::{Block, Builder, Lanes, Pace};
use super::lanes::instruction;
use super::opcodes;
use crate::emit::address::Linear;
use crate::emit::checked::how_checked;
use crate::emit::stage::reads_zero;
use crate::emit::vector::Plan;
use crate::emit::{Emitter, register};
use crate::strip::program::{Access, Check, Class, Compared, Form, LookUp};
use crate::strip::{Target, limit};
use rustc_hash::FxHashSet;
use vinelift_nest::{AxisId, BufferId, Effects, Kind, Scalar, Wrap};
use vinelift_tensor::ElementType::{I32, I64};

/// A load through one index that depends on the lane.
struct Found<'n> {
    wrap: &'n Wrap,
    /// Elements for each step of the index.
    by: i64,
    /// Where the indices lie.
    index: &'n Scalar,
    /// Where the elements lie, but for the index.
    rest: Linear<'n>,
}

impl<'n> Emitter<'n, '_> {
    /// The most bytes of an index that depends on the axis `lane`, on the way to a value.
    pub(super) fn widest_index(&self, value: &'n Scalar, lane: AxisId) -> usize {
        let mut widest = 1;
        let mut seen = FxHashSet::default();
        let mut open = vec![value];
        while let Some(x) = open.pop() {
            if !self.facts.free(x).contains(&lane) || !seen.insert(x.address()) {
                continue;
            }
            if let Kind::Wrap(wrap) = x.kind() {
                widest = widest.max(register(wrap.narrow().ty()).bytes() as usize);
            }
            open.extend(x.children());
        }
        widest
    }
}

impl<'n> Builder<'_, 'n, '_> {
    /// The lanes of `x`, which is `buffer[at]`.
    pub(super) fn look_up(
        &mut self,
        x: &'n Scalar,
        buffer: BufferId,
        at: &'n [Scalar],
    ) -> Option<Lanes> {
        let lane = self.lane?;
        let Found {
            wrap,
            by,
            index,
            rest,
        } = self.found(buffer, at)?;
        let width = self.width(x.ty());
        let bytes = i32::try_from(by.checked_mul(i64::from(width))?).ok()?;
        let extent = wrap.extent;
        if by != 1 && self.blocked.is_empty() && self.is_better_along_another(&rest, lane) {
            return None;
        }
        let (rows, rest) = self.by_rows(rest, lane, width)?;
        let pace = match rows.columns {
            columns if columns > 0 && self.cut == Some(lane) => Pace {
                bytes: rows.down.into(),
                points: columns.into(),
            },
            _ => Pace::STILL,
        };
        let (access, step) = self.access_of(buffer, rest, pace)?;
        if bytes < 1 || !(0..=1).contains(&step) || (rows.columns > 0 && step != 0) {
            return None;
        }
        let apart = if step == 1 { width } else { rows.apart };
        let index_bytes = self.width(index.ty());
        let is_row = by == 1 && (apart, rows.columns) == (0, 0);
        let keeps = is_row && self.keeps_row(extent, width, index_bytes);
        // The row is loaded outside of the loop over lanes.
        let row_depth = self.depth_of_pointer(access.pointer);
        let innermost = self.blocks.iter().rposition(|b| b.axis == Some(lane))?;
        let permutes = keeps && row_depth < innermost;

        let lanes = self.lanes as u8;
        self.check(wrap, index, permutes)?;
        self.program.looks_up = true;
        let is_known = self.emitter.never_faults(wrap);
        let kept = match (permutes, is_known) {
            (true, true) => ", rows in registers",
            (true, false) => " by vectors, rows in registers",
            (false, _) => "",
        };
        let checked = how_checked(is_known);
        self.how = format!("{checked}{kept}");
        if permutes {
            let row = self.row(access, extent, width, row_depth)?;
            return self.permuted(&row, index_bytes, width);
        }
        let mut parts = Vec::with_capacity(self.parts);
        for part in 0..self.parts {
            let elements = LookUp {
                first: u8::try_from(part * self.lanes).ok()?,
                index_bytes,
                by: bytes,
                apart,
                down: rows.down,
                columns: rows.columns,
                width,
                lanes,
            };
            let mut i = instruction(Form::LookUp(elements), opcodes::NOT_MASK, 16);
            i.access = Some(Access {
                step: if step == 1 { width } else { 0 },
                ..access
            });
            parts.push(self.give(i, Class::Vector));
        }
        Some(Lanes::new(parts, width))
    }

    /// How `buffer[at]` is such a load.
    fn found(&self, buffer: BufferId, at: &'n [Scalar]) -> Option<Found<'n>> {
        let linear = self.emitter.linear(buffer, at);
        let mut wraps = linear
            .terms()
            .filter(|(leaf, _)| matches!(leaf.kind(), Kind::Wrap(_)) && !self.is_invariant(leaf));
        let (leaf, by) = wraps.next()?;
        let Kind::Wrap(wrap) = leaf.kind() else {
            return None;
        };
        let index = wrap.narrow();
        let is_only = wraps.next().is_none();
        let fits = (wrap.extent as u64) < 1 << (index.ty().bits() - 1);
        // The exact way, which is left to the kernel, reads zeros.
        let skips = |i: &Scalar| reads_zero(i) && i.address() != leaf.address();
        let is_plain = is_only && matches!(index.ty(), I32 | I64) && fits && !at.iter().any(skips);
        drop(wraps);
        is_plain.then(|| Found {
            wrap,
            by,
            index,
            rest: linear.without(|other| other.address() == leaf.address()),
        })
    }

    /// Whether the elements had better be gone through in another order: because neighbours lie along another
    /// axis, or because those of a few columns stay in the cache.
    fn is_better_along_another(&self, rest: &Linear<'n>, lane: AxisId) -> bool {
        let along = |(leaf, k): (&Scalar, i64)| match leaf.kind() {
            Kind::Axis(id) if k == 1 => Some(*id),
            _ => None,
        };
        let mut many = self.stage.domain.iter().filter(|axis| axis.extent > 1);
        if rest.terms().any(|term| along(term) == Some(lane)) {
            let (axis, rows) = (many.next_back(), many.next_back());
            return axis.zip(rows).is_some_and(|(axis, rows)| {
                let plan = Plan {
                    axis: *axis,
                    lanes: self.lanes,
                };
                self.emitter.columns(self.stage, *rows, plan).is_some()
            });
        }
        many.any(|axis| rest.terms().any(|term| along(term) == Some(axis.id)))
    }

    /// Checks the indices of a turn, by which a row in registers is permuted, or elements are looked up.
    fn check(&mut self, wrap: &'n Wrap, index: &'n Scalar, permutes: bool) -> Option<()> {
        let Kind::Load { buffer, at } = index.kind() else {
            return None;
        };
        // One that would be zero cannot be read, and one that the stage writes not ahead.
        if *buffer == self.stage.target || at.iter().any(reads_zero) {
            return None;
        }
        let (access, step) = self.access(*buffer, at)?;
        let width = self.width(index.ty());
        let bytes = self.lanes * usize::from(width);
        if step != 1 || !(16..=self.target.bytes()).contains(&bytes) {
            return None;
        }
        let is_known = self.emitter.never_faults(wrap);
        // The kernel goes through all points again if one is wrong.
        if !is_known && !Effects::of_stage(self.stage).may_repeat() {
            return None;
        }
        let form = Form::Check(Check {
            registers: u8::try_from(self.parts).ok()?,
            compared: match is_known {
                true => Compared::Never,
                // Permutations stay in the row whatever an index is.
                false if permutes => Compared::ByRegisters,
                false => Compared::WhenUsed(i32::try_from(wrap.extent).ok()?),
            },
            negative: wrap.policy.negative,
        });
        let mut i = instruction(form, opcodes::compare_integers(false, width), bytes as u8);
        let limit = self.constant(limit(wrap.extent as u64, self.target), width);
        i.from[0] = Some(limit.part(0));
        i.access = Some(Access {
            step: width,
            ..access
        });
        let class = match self.target {
            Target::Avx512 => Class::Mask,
            Target::Avx2 => Class::Vector,
        };
        self.give(i, class);
        self.may_fault |= !is_known;
        Some(())
    }

    /// The innermost loop that a pointer moves with.
    fn depth_of_pointer(&self, pointer: u32) -> usize {
        let moves = |block: &Block| block.moves.iter().any(|(moved, _)| *moved == pointer);
        self.blocks.iter().rposition(moves).unwrap_or(0)
    }
}
