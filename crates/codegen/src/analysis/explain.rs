//! Why a stage is not vectorised, in a few words for whoever reads a dump.

use super::state::Analysis;
use super::work::{first_inner, usual_points};
use crate::vector_ir::ops::lane_bytes;
use vinelift_nest::{Axis, Kind, Mode, Role, Scalar, Stage};

/// There are no smaller vectors.
const LEAST_BYTES: usize = 16;

impl<'n> Analysis<'n> {
    /// Why `stage`, whose facts are known and which has these axes of many points, is not vectorised.
    pub(crate) fn why_points(&self, stage: &'n Stage, many: &[Axis]) -> Option<&'static str> {
        let target = self.nest.buf(stage.target);
        let last = many.get(first_inner(stage)..)?.last()?;
        if !self.has_vectors {
            return Some("the machine has no vectors");
        }
        if target.ty.is_packed() {
            return Some("writes elements that share bytes");
        }
        let bytes = usize::from(lane_bytes(target.ty));
        if usual_points(last.extent).saturating_mul(bytes) < LEAST_BYTES {
            return Some("the innermost axis is short");
        }
        if stage.at.iter().any(Scalar::reads_zero) {
            return Some("may skip points");
        }
        match self.steps_with(last.id, &self.linear(stage.target, &stage.at)) {
            Some(1) => {}
            None => return Some("where it writes depends on data"),
            Some(_) => return Some("does not write along the innermost axis"),
        }
        if self
            .scan_of(stage)
            .is_some_and(|scan| scan.axis.id == last.id)
        {
            return Some("each point goes on from the one before");
        }
        self.why_value(stage, last)
    }

    fn why_value(&self, stage: &'n Stage, last: &Axis) -> Option<&'static str> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut open = vec![(&stage.value, false)];
        let mut of_data = 0;
        while let Some((x, guarded)) = open.pop() {
            let varies = self.facts.free(x).contains(&last.id);
            if !varies || !seen.insert((x.address(), guarded)) {
                continue;
            }
            match x.kind() {
                Kind::Load { buffer, .. } if *buffer == stage.target => {
                    return Some("reads what it writes");
                }
                Kind::Load { buffer, at } => {
                    if self.nest.buf(*buffer).ty.is_packed() {
                        return Some("reads elements that share bytes");
                    }
                    of_data += usize::from(at.iter().any(|i| self.facts.has_effect(i)));
                    if guarded {
                        return Some("reads only where a guard holds");
                    }
                }
                Kind::Axis(_) if self.target.is_none() => {
                    return Some("computes with the innermost axis");
                }
                Kind::Select(c, yes, no) => open.extend([(c, guarded), (yes, true), (no, true)]),
                Kind::Wrap(_) => return Some("computes with a checked index"),
                _ => open.extend(x.children().map(|child| (child, guarded))),
            }
        }
        if self.loads_apart(stage, last.id) {
            return Some("loads elements that are no neighbours, and does little with them");
        }
        Some(match of_data {
            0 | 1 => "the innermost axis is short, or the value large",
            _ => "more than one index depends on data",
        })
    }

    /// Why a stage that copies what later stages change does not change it in place.
    pub(crate) fn why_copied(&self, stage: &Stage) -> Option<&'static str> {
        let Kind::Load { buffer, at } = stage.value.kind() else {
            return None;
        };
        let is_changed = |s: &Stage| s.target == stage.target && s.mode != Mode::Set;
        let goes_elsewhere = |s: &Stage| s.target == stage.target && s.at.iter().any(is_index);
        let changed = self.nest.stages.iter();
        let mut changed = changed.filter(|s| is_changed(s) || goes_elsewhere(s));
        if *at != stage.at || stage.mode != Mode::Set || changed.next().is_none() {
            return None;
        }
        Some(match self.nest.buf(*buffer).role {
            Role::Temporary => "not in place: it is used again",
            _ => "not in place: it belongs to the caller or the model",
        })
    }
}

fn is_index(index: &Scalar) -> bool {
    matches!(index.kind(), Kind::Wrap(_))
}
