//! Loads through indices that lie side by side in memory, one for each lane.
//!
//! `buffer[… + wrap(index) · k + …]`: the indices of a turn are checked at once, then the elements are put
//! together one by one; those of a short row stay in registers and are permuted. If an index is out of range,
//! the kernel does all points of the vector loop again, in the exact way.

use super::build::{Block, Builder};
use crate::analysis::Analysis;
use crate::analysis::coefficient::Coefficient;
use crate::analysis::indices::how_checked;
use crate::analysis::linear::Linear;
use crate::analysis::walk::{Visit, visit};
use crate::target::Target;
use crate::vector_ir::ops::{Access, Compared, Gather, IndexCheck, Op, lane_bytes};
use crate::vector_ir::program::Value;
use vinelift_nest::{AxisId, BufferId, Effects, Kind, Scalar, Wrap};
use vinelift_tensor::ElementType::{self, I32, I64};

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

impl<'n> Analysis<'n> {
    /// The most bytes of an index that depends on the axis `lane`, on the way to a value.
    pub(super) fn widest_index(&self, value: &'n Scalar, lane: AxisId) -> usize {
        let mut widest = 1;
        visit(value, |x| {
            if !self.facts.free(x).contains(&lane) {
                return Visit::Past;
            }
            if let Kind::Wrap(wrap) = x.kind() {
                widest = widest.max(lane_bytes(wrap.narrow().ty()).into());
            }
            Visit::Children
        });
        widest
    }
}

impl<'n> Builder<'_, 'n> {
    /// The value of `x`, which is `buffer[at]`.
    pub(super) fn gather(
        &mut self,
        x: &'n Scalar,
        buffer: BufferId,
        at: &'n [Scalar],
    ) -> Option<Value> {
        let lane = self.lane?;
        let found = self.found(buffer, at)?;
        let (wrap, by, index) = (found.wrap, found.by, found.index);
        let ty = x.ty();
        let width = lane_bytes(ty);
        let index_step = i32::try_from(by.checked_mul(i64::from(width))?).ok()?;
        // Instructions compare with it.
        let extent = wrap.extent.number()?;
        let is_whole = self.blocked.is_empty() && !self.is_in_kernel();
        if by != 1 && is_whole && self.is_better_along_another(&found.rest, lane) {
            return None;
        }
        let (rows, rest) = self.by_rows(found.rest, lane, width)?;
        let pace = rows.pace(self.cut == Some(lane));
        let (access, step) = self.access_of(buffer, &rest, pace)?;
        let has_rows = rows.columns > 0;
        let may_have_rows = step == 0 && !self.is_in_kernel();
        if index_step < 1 || !(0..=1).contains(&step) || (has_rows && !may_have_rows) {
            return None;
        }
        let column_bytes = if step == 1 { width } else { rows.column_bytes };
        let index_bytes = lane_bytes(index.ty());
        let is_row = by == 1 && (column_bytes, rows.columns) == (0, 0);
        let registers = [self.lanes, self.parts];
        let holds = |target: Target| target.holds_table(registers, extent, width, index_bytes);
        let keeps = is_row && self.target.is_some_and(holds);
        // The row is loaded outside of the loop over lanes.
        let row_depth = self.depth_of_pointer(access.pointer);
        let innermost = self.blocks.iter().rposition(|b| b.is_over(lane))?;
        let permutes = keeps && row_depth < innermost;

        self.check(wrap, index, permutes)?;
        self.program.has_indices = true;
        self.how = note(self.analysis.never_faults(wrap), permutes);
        if permutes {
            let table = Op::LoadTable {
                access,
                extent: u32::try_from(extent).ok()?,
            };
            return Some(self.look_up(table, row_depth, index_bytes, ty));
        }
        let gather = Gather {
            access: Access {
                step: if step == 1 { width } else { 0 },
                ..access
            },
            index_bytes,
            index_step,
            column_bytes,
            row_bytes: rows.row_bytes,
            columns: rows.columns,
        };
        Some(self.apply(Op::Gather(gather), ty, &[]))
    }

    /// The elements of a table, which is loaded in the loop at `depth`, at the indices that were checked last.
    fn look_up(&mut self, table: Op, depth: usize, index_bytes: u8, ty: ElementType) -> Value {
        let before = self.go_to(depth);
        let table = self.apply(table, ty, &[]);
        self.go_to(before);
        self.apply(Op::TableLookup { index_bytes }, ty, &[table])
    }

    /// The index of `buffer[at]`, if it is a load through one.
    fn found(&self, buffer: BufferId, at: &'n [Scalar]) -> Option<Found<'n>> {
        let linear = self.analysis.linear(buffer, at);
        let mut wraps = linear
            .terms()
            .filter(|(leaf, _)| matches!(leaf.kind(), Kind::Wrap(_)) && !self.is_invariant(leaf));
        let (leaf, by) = wraps.next()?;
        let (Kind::Wrap(wrap), Some(by)) = (leaf.kind(), by.number()) else {
            return None;
        };
        let index = wrap.narrow();
        let is_only = wraps.next().is_none();
        let fits = (wrap.extent.most() as u64) < 1 << (index.ty().bits() - 1);
        // The exact way, which is left to the kernel, reads zeros.
        let skips = |i: &Scalar| i.reads_zero() && i.address() != leaf.address();
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
        let along = |(leaf, k): (&Scalar, Coefficient)| match leaf.kind() {
            Kind::Axis(id) if k == 1.into() => Some(*id),
            _ => None,
        };
        let mut many = self.stage.domain.iter().filter(|axis| axis.extent > 1);
        if rest.terms().any(|term| along(term) == Some(lane)) {
            let (axis, rows) = (many.next_back(), many.next_back());
            return axis.zip(rows).is_some_and(|(axis, rows)| {
                let axes = [*rows, *axis];
                self.analysis
                    .columns(self.stage, axes, self.lanes)
                    .is_some()
            });
        }
        many.any(|axis| rest.terms().any(|term| along(term) == Some(axis.id)))
    }

    /// Checks the indices of a turn, by which elements are gathered, or found in a table.
    fn check(&mut self, wrap: &'n Wrap, index: &'n Scalar, permutes: bool) -> Option<()> {
        let Kind::Load { buffer, at } = index.kind() else {
            return None;
        };
        // An index that would read zero has no address, and one that the stage writes cannot be read ahead.
        if *buffer == self.stage.target || at.iter().any(Scalar::reads_zero) {
            return None;
        }
        let (access, step) = self.access(*buffer, at)?;
        if step != 1 {
            return None;
        }
        let is_known = self.analysis.never_faults(wrap);
        // The kernel goes through all points again if one is wrong.
        if !is_known && !Effects::of_stage(self.stage).may_repeat() {
            return None;
        }
        let extent = wrap.extent.number()?;
        let check = IndexCheck {
            access,
            extent: extent as u64,
            compared: match is_known {
                true => Compared::Never,
                // Look-ups stay in the table whatever an index is.
                false if permutes => Compared::ByVectors,
                false => Compared::WhenUsed(i32::try_from(extent).ok()?),
            },
            negative: wrap.policy.negative,
        };
        self.add(Op::CheckIndices(check), index.ty(), &[]);
        self.may_fault |= !is_known;
        Some(())
    }

    /// The innermost loop that a pointer moves with.
    fn depth_of_pointer(&self, pointer: u32) -> usize {
        let moves = |block: &Block| block.moves.iter().any(|(moved, _)| *moved == pointer);
        self.blocks.iter().rposition(moves).unwrap_or(0)
    }
}

/// The note of a dump: whether indices are known to be in range, and whether rows stay in registers.
fn note(is_known: bool, in_registers: bool) -> String {
    let kept = match (in_registers, is_known) {
        (true, true) => ", rows in registers",
        (true, false) => " by vectors, rows in registers",
        (false, _) => "",
    };
    format!("{}{kept}", how_checked(is_known))
}
