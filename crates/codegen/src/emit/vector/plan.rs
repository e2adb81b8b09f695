//! Which stages run by vectors.

use crate::emit::Emitter;
use crate::emit::address::Linear;
use crate::emit::{Runs, any_under, register};
use cranelift_codegen::isa::TargetIsa;
use vinelift_nest::{Axis, AxisId, Kind, Mode, Scalar, Stage};
use vinelift_tensor::ElementType;

/// How a stage runs by vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The innermost axis.
    pub(crate) axis: Axis,
    /// How many of its points are done at once.
    pub(crate) lanes: usize,
}

impl Plan {
    pub(crate) fn runs(self) -> Runs {
        Runs {
            lanes: self.lanes,
            bits: 128,
        }
    }
}

/// More scalars than this in one stage stay scalar code: vector code is a few times as large.
const MOST_SCALARS: usize = 3000;

/// Whether the machine has the vector instructions that Cranelift counts on.
pub(crate) fn is_supported(isa: &dyn TargetIsa) -> bool {
    let flags = isa.isa_flags();
    let has = |name: &str| {
        flags
            .iter()
            .any(|f| f.name == name && f.as_bool() == Some(true))
    };
    match isa.name() {
        "x64" => has("has_ssse3") && has("has_sse41"),
        "aarch64" => true,
        _ => false,
    }
}

impl<'n> Emitter<'n, '_> {
    /// How `stage`, whose facts are known, runs by vectors; `None` if it does not.
    pub(crate) fn plan(&mut self, stage: &'n Stage) -> Option<Plan> {
        let axis = *stage.domain.iter().rfind(|axis| axis.extent > 1)?;
        let target = self.nest.buf(stage.target);
        let skips = |i: &Scalar| matches!(i.kind(), Kind::Wrap(w) if w.policy.zero);
        let fits = self.has_vectors
            && !target.ty.is_packed()
            && (stage.mode == Mode::Set || target.ty != ElementType::Boolean)
            && !stage.at.iter().any(skips)
            && self.steps_with(axis.id, &self.linear(stage.target, &stage.at)) == Some(1);
        if !fits {
            return None;
        }
        let is_checked = !self.checks(stage, axis.id).is_empty();
        let widest = self.widest(
            stage,
            axis.id,
            is_checked,
            register(target.ty).bytes() as usize,
        )?;
        // An index that is checked in a fold is checked once for all lanes.
        let most = if self.checks_in_fold(&stage.value) {
            128
        } else {
            32
        };
        let fits = |bytes: &usize| axis.extent >= bytes / widest;
        let bytes = [128, 64, 32]
            .into_iter()
            .filter(|n| *n <= most)
            .find(fits)?;
        let lanes = bytes / widest;
        (!self.loads_apart(stage, axis.id)).then_some(Plan { axis, lanes })
    }

    /// Whether a stage loads many elements for each point that are not neighbours, and does little with them.
    /// To put vectors of them together takes longer than the arithmetic that these save, and much code.
    pub(crate) fn loads_apart(&self, stage: &'n Stage, axis: AxisId) -> bool {
        const MANY: usize = 8;
        let (mut apart, mut others) = (0, 0);
        let mut open: Vec<&'n Scalar> = vec![&stage.value];
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(x) = open.pop() {
            if !self.facts.free(x).contains(&axis) || !seen.insert(x.address()) {
                continue;
            }
            match x.kind() {
                Kind::Load { buffer, at } => {
                    let linear = self.linear(*buffer, at);
                    apart += usize::from(self.steps_with(axis, &linear) != Some(1));
                }
                Kind::Reduce { .. } => return false,
                _ => {
                    others += 1;
                    open.extend(x.children());
                }
            }
        }
        apart >= MANY && others <= apart + apart / 2
    }

    /// Whether a fold evaluates an index that depends on data and on its axes.
    fn checks_in_fold(&self, value: &Scalar) -> bool {
        let mut seen = rustc_hash::FxHashSet::default();
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
        let mut checked = 0;
        let mut open: Vec<(&Scalar, bool)> = vec![(&stage.value, false)];
        let mut seen = rustc_hash::FxHashSet::default();
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
                    let b = self.nest.buf(*buffer);
                    if varies && b.ty.is_packed() {
                        return None;
                    }
                    // The side of a select that is not taken would be read too.
                    if !self.may_run(stage, x, guarded) {
                        return None;
                    }
                    let may_fail = at.iter().any(may_fail);
                    if may_fail && guarded {
                        return None;
                    }
                    checked += usize::from(may_fail && varies);
                    if checked > 1 && !is_checked {
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
                widest = widest.max(register(x.ty()).bytes() as usize);
            }
        }
        Some(widest)
    }

    /// Whether a load, with those that its indices are made of, can be done for several points at once:
    /// none reads what the innermost loop writes, and where a guard is around it, all lie inside their buffers
    /// without that guard, since both sides of a select are evaluated.
    fn may_run(&mut self, stage: &Stage, load: &Scalar, guarded: bool) -> bool {
        let mut open = vec![load];
        let mut seen = rustc_hash::FxHashSet::default();
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
                    let inside = |(i, n): (&Scalar, &usize)| self.ranges.of(i).is_index_of(*n);
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

    /// Whether `at` in the target of `stage` is, at every point, so far from what is written there that
    /// the innermost loop does not read what it writes.
    pub(crate) fn stays_apart(&self, stage: &Stage, at: &[Scalar]) -> bool {
        let Some(axis) = stage.domain.iter().rfind(|axis| axis.extent > 1) else {
            return false;
        };
        let (read, written) = (
            self.linear(stage.target, at),
            self.linear(stage.target, &stage.at),
        );
        let mut moves: Vec<(&Scalar, i64)> = read.terms().collect();
        for (leaf, coefficient) in written.terms() {
            match moves.iter_mut().find(|(other, _)| *other == leaf) {
                Some((_, sum)) => *sum = sum.wrapping_sub(coefficient),
                None => return false,
            }
        }
        let distance = read.constant().wrapping_sub(written.constant());
        let is_far = distance.unsigned_abs() >= axis.extent as u64;
        is_far && moves.iter().all(|(_, sum)| *sum == 0)
    }

    /// The elements by which an offset steps along the lanes.
    pub(super) fn steps(&self, linear: &Linear<'n>) -> Option<i64> {
        self.steps_with(self.vectors.axis(), linear)
    }

    /// The elements by which an offset steps with the axis; `None` if not always by as many.
    pub(crate) fn steps_with(&self, axis: AxisId, linear: &Linear<'n>) -> Option<i64> {
        let mut step = 0;
        for (leaf, coefficient) in linear.terms() {
            match leaf.kind() {
                Kind::Axis(id) if *id == axis => step = coefficient,
                _ if self.facts.free(leaf).contains(&axis) => return None,
                _ => {}
            }
        }
        Some(step)
    }
}

/// Whether evaluating an index can end the run with an error.
fn may_fail(index: &Scalar) -> bool {
    any_under(
        index,
        |x| matches!(x.kind(), Kind::Wrap(w) if !w.policy.zero),
    )
}
