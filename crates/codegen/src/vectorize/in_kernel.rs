//! Vector loops of 128 bits that are part of the kernel: over the innermost axis of a stage alone.
//!
//! The kernel's own code opens the loops around it and computes each scalar that is the same in all lanes, as well as
//! the loads that have no operation on lanes: `Scalar` operations of the program.

use super::build::Builder;
use super::vector_loop::{BYTES, KernelLoop, KernelScalar};
use crate::analysis::Analysis;
use crate::analysis::indices::{has_checks, how_checked};
use crate::analysis::walk::{Visit, any_under, visit};
use crate::analysis::work::usual_points;
use crate::vector_ir::ops::{Access, Op, lane_bytes};
use crate::vector_ir::program::Value;
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, AxisId, Effects, FoldBounds, Kind, Mode, Scalar, Stage};
use vinelift_tensor::ElementType::{self, Boolean};
use vinelift_tensor::Extent;

/// The bytes, in lanes of the widest type, that a turn may do at once, the most first.
const SIDE_BY_SIDE: [usize; 3] = [128, 64, 32];
/// The most bytes of a turn, unless each point of a fold checks an index or compares with a bound that is data: then more lanes
/// share what that costs.
const MOST_UNCHECKED: usize = 32;
/// Elements of fewer bytes take longer to put together in a register than to store one by one.
const LEAST_GATHERED: u8 = 4;
/// The most bytes from the first lane to the last of a load with a constant step.
const MOST_OFFSET: u64 = 1 << 29;
/// A stage that loads at least this many elements for each point which are not neighbours, and does little with them, is left to
/// scalar code.
const MANY_APART: usize = 8;

impl<'n> Analysis<'n> {
    /// How many points of the innermost axis a vector loop inside the kernel does at once, if the stage may be one.
    pub(crate) fn kernel_lanes(&self, stage: &'n Stage) -> Option<(Axis, usize)> {
        let axis = *stage.domain.iter().rfind(|axis| axis.extent > 1)?;
        let target = self.nest.buf(stage.target);
        let fits = self.has_vectors
            && !target.ty.is_packed()
            && (stage.mode == Mode::Set || target.ty != Boolean)
            && !stage.at.iter().any(Scalar::reads_zero)
            && self.steps_with(axis.id, &self.linear(stage.target, &stage.at)) == Some(1);
        if !fits || self.loads_apart(stage, axis.id) {
            return None;
        }
        let widest = self.widest_varying(stage, axis.id);
        let most = match self.checks_in_fold(&stage.value) || has_fold_bounds(&stage.value) {
            true => SIDE_BY_SIDE[0],
            false => MOST_UNCHECKED,
        };
        let points = usual_points(axis.extent);
        let fits = |bytes: &usize| *bytes <= most && points >= bytes / widest;
        let bytes = SIDE_BY_SIDE.into_iter().find(fits)?;
        Some((axis, bytes / widest))
    }

    /// The vector loop inside the kernel for a stage whose facts are known.
    pub(crate) fn kernel_loop_of(&mut self, stage: &'n Stage) -> Option<KernelLoop<'n>> {
        let (axis, lanes) = self.kernel_lanes(stage)?;
        let may_check_ahead = !self.checks(stage, axis.id).is_empty();
        if may_check_ahead && self.only_gathers_narrow(stage, axis.id) {
            return None;
        }
        let each = BYTES / self.widest_varying(stage, axis.id);
        let mut speculable = self.speculable(stage);
        speculable.extend(self.loads_inside(stage));
        let mut builder = Builder::new(self, None, stage, (each, lanes / each), speculable);
        builder.stage(&[], axis, None)?;
        // Elements that only scalar code finds are not put together just to be stored, if indices of several can be
        // checked at once.
        let is_value = |k: &KernelScalar<'_>| k.scalar.address() == stage.value.address();
        let is_found_by_scalars = builder.kernel_scalars.iter().any(is_value);
        if may_check_ahead && is_found_by_scalars {
            return None;
        }
        let Builder {
            program,
            arguments,
            kernel_scalars,
            bounds,
            may_fault,
            how,
            ..
        } = builder;
        Some(KernelLoop {
            program,
            arguments,
            scalars: kernel_scalars,
            bounds,
            may_fault,
            axis,
            lanes,
            how,
        })
    }

    /// The loads that lie inside their buffers without their guards, with all that their indices are made of.
    fn loads_inside(&mut self, stage: &'n Stage) -> Vec<usize> {
        let mut loads = Vec::new();
        visit(&stage.value, |x| {
            loads.extend(matches!(x.kind(), Kind::Load { .. }).then_some(x));
            Visit::Children
        });
        loads.retain(|x| {
            let mut is_inside = true;
            visit(x, |x| {
                is_inside = match x.kind() {
                    Kind::Load { buffer, at } => {
                        let shape = &self.nest.buf(*buffer).shape;
                        let inside = |(i, n): (&Scalar, &Extent)| self.ranges.is_index(i, *n);
                        at.iter().zip(shape).all(inside)
                    }
                    Kind::Wrap(wrap) => wrap.policy.zero,
                    _ => true,
                };
                if is_inside {
                    Visit::Children
                } else {
                    Visit::End
                }
            });
            is_inside
        });
        loads.into_iter().map(Scalar::address).collect()
    }

    /// The most bytes of a lane, of what is written or changes from lane to lane on the way to it.
    fn widest_varying(&self, stage: &Stage, axis: AxisId) -> usize {
        let mut widest = lane_bytes(self.nest.buf(stage.target).ty);
        visit(&stage.value, |x| {
            if !self.facts.free(x).contains(&axis) {
                return Visit::Past;
            }
            widest = widest.max(lane_bytes(x.ty()));
            match x.kind() {
                Kind::Load { .. } => Visit::Past,
                _ => Visit::Children,
            }
        });
        widest.into()
    }

    /// Whether a stage does nothing but load narrow elements through data-dependent indices.
    fn only_gathers_narrow(&self, stage: &Stage, axis: AxisId) -> bool {
        let value = &stage.value;
        let is_narrow = lane_bytes(value.ty()) < LEAST_GATHERED;
        let Kind::Load { at, .. } = value.kind() else {
            return false;
        };
        is_narrow && at.iter().any(|i| self.has_wrap(i, axis))
    }

    /// Whether a stage loads many elements for each point that are not neighbours, and does little with them.
    /// Putting vectors of them together takes longer than their arithmetic saves, and much code.
    pub(crate) fn loads_apart(&self, stage: &'n Stage, axis: AxisId) -> bool {
        let (mut apart, mut others) = (0, 0);
        let mut folds = false;
        visit(&stage.value, |x| {
            if !self.facts.free(x).contains(&axis) {
                return Visit::Past;
            }
            match x.kind() {
                Kind::Load { buffer, at } => {
                    let linear = self.linear(*buffer, at);
                    apart += usize::from(self.steps_with(axis, &linear) != Some(1));
                    Visit::Past
                }
                Kind::Reduce { .. } => {
                    folds = true;
                    Visit::End
                }
                _ => {
                    others += 1;
                    Visit::Children
                }
            }
        });
        !folds && apart >= MANY_APART && others <= apart + apart / 2
    }

    /// Whether a fold evaluates an index that depends on data and on its axes.
    fn checks_in_fold(&self, value: &Scalar) -> bool {
        let mut seen = FxHashSet::default();
        let mut open: Vec<(&Scalar, &[Axis])> = vec![(value, &[])];
        while let Some((x, folded)) = open.pop() {
            if !seen.insert((x.address(), folded.len())) {
                continue;
            }
            match x.kind() {
                Kind::Wrap(_) if folded.iter().any(|a| self.facts.free(x).contains(&a.id)) => {
                    return true;
                }
                Kind::Reduce { axes, body, .. } => open.push((body, axes)),
                _ => open.extend(x.children().map(|child| (child, folded))),
            }
        }
        false
    }
}

impl<'n> Builder<'_, 'n> {
    /// Whether the program becomes part of the kernel, whose scalar code is at hand there.
    pub(super) fn is_in_kernel(&self) -> bool {
        self.target.is_none()
    }

    /// Whether the kernel computes `x` as a scalar, inside the program, because it is the same in all lanes.
    pub(super) fn is_scalar(&self, x: &Scalar) -> bool {
        let varies = |lane: &AxisId| self.analysis.facts.free(x).contains(lane);
        self.is_in_kernel() && !self.lane.iter().any(varies)
    }

    /// The lanes of a scalar that the kernel computes: once, or, if it is a load, for each lane.
    pub(super) fn kernel_scalar(&mut self, x: &'n Scalar) -> Option<Value> {
        if !self.is_in_kernel() || !self.may_be_kernel_scalar(x) {
            return None;
        }
        // One that does not change is computed ahead of the loop: if it fails, nothing has been written.
        if !self.is_invariant(x) && any_under(x, |x| self.may_fail(x)) {
            // The kernel goes through all points of the axis again if an index is wrong.
            if !Effects::of_stage(self.stage).may_repeat() {
                return None;
            }
            self.may_fault = true;
        }
        if has_checks(x) && !self.is_scalar(x) {
            let is_open =
                |x: &Scalar| matches!(x.kind(), Kind::Wrap(w) if !self.analysis.never_faults(w));
            self.how = how_checked(!any_under(x, is_open)).to_owned();
        }
        let mut fixed: Vec<(AxisId, i64)> = self.fixed.iter().map(|(id, at)| (*id, *at)).collect();
        fixed.sort_unstable();
        let number = self.kernel_scalars.len() as u32;
        self.kernel_scalars.push(KernelScalar { scalar: x, fixed });
        Some(self.apply(Op::Scalar(number), x.ty(), &[]))
    }

    /// The step of a load inside the kernel, if instructions have room for the offsets of all lanes.
    pub(super) fn near_step(&self, access: Access, step: i64, ty: ElementType) -> Option<i32> {
        let bytes = step.checked_mul(i64::from(lane_bytes(ty)))?;
        let last = bytes.checked_mul((self.lanes * self.parts) as i64)?;
        let is_near = |bytes: u64| bytes < MOST_OFFSET;
        let fits = is_near(last.unsigned_abs()) && is_near(access.offset.unsigned_abs().into());
        i32::try_from(step)
            .ok()
            .filter(|_| fits && self.is_in_kernel())
    }

    /// Whether a scalar may be evaluated ahead of its guard and of what the stage writes.
    fn may_be_kernel_scalar(&self, x: &'n Scalar) -> bool {
        let is_speculable = self.speculable.contains(&x.address());
        if x.ty().is_packed() || (!is_speculable && self.analysis.facts.has_effect(x)) {
            return false;
        }
        let target = self.stage.target;
        match x.kind() {
            Kind::Load { buffer, at } => {
                let buf = self.analysis.nest.buf(*buffer);
                let is_apart = *buffer != target || self.analysis.stays_apart(self.stage, at);
                is_apart
                    && !buf.ty.is_packed()
                    && !buf.shape.iter().any(|n| *n == 0)
                    && !at.iter().any(|i| self.analysis.reads(i, target))
            }
            _ => !self.analysis.reads(x, target),
        }
    }

    /// Whether `x` is an index that may end the run with an error.
    fn may_fail(&self, x: &Scalar) -> bool {
        matches!(x.kind(), Kind::Wrap(wrap) if !wrap.policy.zero && !self.analysis.never_faults(wrap))
    }
}

/// Whether there is a fold between bounds in a value.
fn has_fold_bounds(value: &Scalar) -> bool {
    any_under(value, |x| FoldBounds::of(x).is_some())
}
