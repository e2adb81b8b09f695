//! Indices that depend on data: which can be checked for several points at once.

use super::linear::Linear;
use super::state::Analysis;
use super::walk::any_under;
use rustc_hash::FxHashSet;
use vinelift_nest::{AxisId, BufferId, Kind, Scalar, Stage, Wrap};
use vinelift_tensor::ElementType::{self, I32, I64};

/// A data-dependent index that depends on the axis of a block of points.
pub(crate) struct CheckedIndex<'n> {
    /// The wrap.
    pub(crate) whole: &'n Scalar,
    pub(crate) wrap: &'n Wrap,
    pub(crate) source: Option<IndexSource<'n>>,
    /// Whether it is in range at every point.
    pub(crate) is_known: bool,
}

/// Where the indices of consecutive points lie: `step` elements apart.
pub(crate) struct IndexSource<'n> {
    pub(crate) buffer: BufferId,
    pub(crate) ty: ElementType,
    pub(crate) linear: Linear<'n>,
    pub(crate) step: i64,
}

/// More indices than this in one stage are checked one by one.
const MOST_CHECKS: usize = 6;

impl<'n> Analysis<'n> {
    /// The data-dependent indices of a stage that depend on `axis`, if all of those can be checked before
    /// anything else is done for a block of points.
    pub(crate) fn checks(&self, stage: &'n Stage, axis: AxisId) -> Vec<CheckedIndex<'n>> {
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
                    checks.push(CheckedIndex {
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
        !any_under(index, |x| match x.kind() {
            Kind::Reduce { .. } => true,
            Kind::Load { buffer, .. } => *buffer == stage.target,
            Kind::Wrap(w) => !w.policy.zero && self.facts.free(x).contains(&axis),
            _ => false,
        })
    }

    /// Where an index is loaded from, if that is all it is.
    fn source(&self, index: &'n Scalar, axis: AxisId) -> Option<IndexSource<'n>> {
        let load = match index.kind() {
            // `i64` holds all values of `i32`.
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
        (matches!(ty, I32 | I64) && is_whole).then_some(IndexSource {
            buffer: *buffer,
            ty,
            linear,
            step,
        })
    }

    /// Whether an index comes from a table that holds none out of range: it needs no check.
    pub(crate) fn never_faults(&self, wrap: &Wrap) -> bool {
        let values = match wrap.narrow().kind() {
            Kind::Load { buffer, .. } => self.values[buffer.0 as usize],
            _ => None,
        };
        values.is_some_and(|values| values.is_index_of(wrap.extent.least()))
    }

    /// Whether an index under `x` depends on data and on the axis.
    pub(crate) fn has_wrap(&self, x: &Scalar, axis: AxisId) -> bool {
        any_under(x, |x| {
            matches!(x.kind(), Kind::Wrap(_)) && self.facts.free(x).contains(&axis)
        })
    }
}

impl CheckedIndex<'_> {
    /// Whether an index of this type that is less than zero is above the extent, its bits read as a larger number.
    pub(crate) fn fits(&self, ty: ElementType) -> bool {
        self.wrap.extent.most() as u64 <= 1 << (ty.bits() - 1)
    }
}

/// The note of a dump on how indices are checked.
pub(crate) fn how_all_checked(checks: &[CheckedIndex<'_>]) -> &'static str {
    match checks {
        [] => "",
        _ => how_checked(checks.iter().all(|check| check.is_known)),
    }
}

/// The same of indices that are known to be in range, or not.
pub(crate) fn how_checked(is_known: bool) -> &'static str {
    match is_known {
        true => "constant indices, checked once",
        false => "indices checked",
    }
}

/// Whether an index under `x` is checked.
pub(crate) fn has_checks(x: &Scalar) -> bool {
    any_under(x, |x| matches!(x.kind(), Kind::Wrap(_)))
}
