//! Which stages may run by vectors, and by how many lanes of 128 bits.

use super::state::Analysis;
use super::walk::{Visit, any_under, visit};
use super::work::usual_points;
use crate::vector_ir::ops::lane_bytes;
use rustc_hash::FxHashSet;
use vinelift_nest::{Axis, AxisId, Kind, Mode, Scalar, Stage};
use vinelift_tensor::{ElementType, Extent};

/// How a stage runs by vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LanePlan {
    /// The innermost axis.
    pub(crate) axis: Axis,
    /// How many of its points are done at once; there may be fewer if its extent has symbols.
    pub(crate) lanes: usize,
}

impl LanePlan {
    pub(crate) fn runs(self) -> Runs {
        Runs {
            lanes: self.lanes,
            bits: 128,
        }
    }
}

/// How a stage runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    /// Points done at once.
    pub(crate) lanes: usize,
    /// Of a vector register; 0 if there are none.
    pub(crate) bits: usize,
}

impl Runs {
    pub(crate) const SCALAR: Runs = Runs { lanes: 1, bits: 0 };
}

/// More scalars than this in one stage stay scalar code: vector code is a few times as large.
const MOST_SCALARS: usize = 3000;

impl<'n> Analysis<'n> {
    /// How `stage`, whose facts are known, runs by vectors; `None` if it does not.
    pub(crate) fn plan(&mut self, stage: &'n Stage) -> Option<LanePlan> {
        let axis = *stage.domain.iter().rfind(|axis| axis.extent > 1)?;
        let target = self.nest.buf(stage.target);
        let fits = self.has_vectors
            && !target.ty.is_packed()
            && (stage.mode == Mode::Set || target.ty != ElementType::Boolean)
            && !stage.at.iter().any(Scalar::reads_zero)
            && self.steps_with(axis.id, &self.linear(stage.target, &stage.at)) == Some(1);
        if !fits {
            return None;
        }
        let is_checked = !self.checks(stage, axis.id).is_empty();
        let widest = self.widest(stage, axis.id, is_checked, lane_bytes(target.ty).into())?;
        // An index that is checked in a fold is checked once for all lanes.
        let most = if self.checks_in_fold(&stage.value) {
            128
        } else {
            32
        };
        let points = usual_points(axis.extent);
        let fits = |bytes: &usize| points >= bytes / widest;
        let bytes = [128, 64, 32]
            .into_iter()
            .filter(|n| *n <= most)
            .find(fits)?;
        let lanes = bytes / widest;
        (!self.loads_apart(stage, axis.id)).then_some(LanePlan { axis, lanes })
    }

    /// Whether a stage loads many elements for each point that are not neighbours, and does little with them.
    /// To put vectors of them together takes longer than the arithmetic that these save, and much code.
    pub(crate) fn loads_apart(&self, stage: &'n Stage, axis: AxisId) -> bool {
        const MANY: usize = 8;
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
        !folds && apart >= MANY && others <= apart + apart / 2
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

    /// The most bytes that a lane of the value takes, if all of it can be done by vectors. `is_checked`:
    /// whether all indices that depend on data and on the axis are checked before anything else is done.
    fn widest(
        &mut self,
        stage: &'n Stage,
        axis: AxisId,
        is_checked: bool,
        least: usize,
    ) -> Option<usize> {
        let mut widest = least;
        let (mut checked, mut folded) = (0, false);
        let mut open: Vec<(&Scalar, bool)> = vec![(&stage.value, false)];
        let mut seen = FxHashSet::default();
        while let Some((x, guarded)) = open.pop() {
            if !seen.insert((x.address(), guarded)) {
                continue;
            }
            if seen.len() > MOST_SCALARS {
                return None;
            }
            let varies = self.facts.free(x).contains(&axis);
            match x.kind() {
                Kind::Load { buffer, at } => {
                    let may_fail = at.iter().any(may_fail);
                    let is_packed = varies && self.nest.buf(*buffer).ty.is_packed();
                    // The side of a select that is not taken would be read too.
                    if is_packed || !self.may_run(stage, x, guarded) || (may_fail && guarded) {
                        return None;
                    }
                    checked += usize::from(may_fail && varies);
                    // One that only a fold can check must come after those of the points before, and before the others.
                    folded |= may_fail && !varies && self.is_of_fold(stage, x);
                    if checked > 1 && !is_checked || checked > 0 && folded {
                        return None;
                    }
                }
                Kind::Axis(_) if varies => return None,
                Kind::Wrap(_) if varies || guarded => return None,
                Kind::Reduce {
                    axes, init, body, ..
                } => {
                    self.ranges.bind(axes);
                    open.extend([(init, guarded), (body, guarded)]);
                }
                Kind::Select(c, yes, no) if varies => {
                    open.extend([(c, guarded), (yes, true), (no, true)]);
                }
                // Scalar code knows which side is taken.
                Kind::Select(..) => {}
                _ => open.extend(x.children().map(|child| (child, guarded))),
            }
            if varies {
                if x.ty().is_packed() {
                    return None;
                }
                widest = widest.max(lane_bytes(x.ty()).into());
            }
        }
        Some(widest)
    }

    /// Whether a scalar depends on an axis of a fold around it.
    fn is_of_fold(&self, stage: &Stage, x: &Scalar) -> bool {
        let is_own = |id: &AxisId| stage.domain.iter().any(|axis| axis.id == *id);
        !self.facts.free(x).iter().all(is_own)
    }

    /// Whether a load, with those that its indices are made of, can be done for several points at once:
    /// none reads what the innermost loop writes, and where a guard is around it, all lie inside their buffers
    /// without that guard, since both sides of a select are evaluated.
    fn may_run(&mut self, stage: &Stage, load: &Scalar, guarded: bool) -> bool {
        let mut open = vec![load];
        let mut seen = FxHashSet::default();
        while let Some(x) = open.pop() {
            if !seen.insert(x.address()) {
                continue;
            }
            match x.kind() {
                Kind::Load { buffer, at }
                    if *buffer == stage.target
                        && (x.address() != load.address() || !self.stays_apart(stage, at)) =>
                {
                    return false;
                }
                Kind::Load { buffer, at } if guarded => {
                    let shape = &self.nest.buf(*buffer).shape;
                    let inside = |(i, n): (&Scalar, &Extent)| self.ranges.is_index(i, *n);
                    if !at.iter().zip(shape).all(inside) {
                        return false;
                    }
                }
                Kind::Reduce { axes, .. } => self.ranges.bind(axes),
                _ => {}
            }
            open.extend(x.children());
        }
        true
    }
}

/// Whether evaluating an index can end the run with an error.
fn may_fail(index: &Scalar) -> bool {
    any_under(
        index,
        |x| matches!(x.kind(), Kind::Wrap(w) if !w.policy.zero),
    )
}
