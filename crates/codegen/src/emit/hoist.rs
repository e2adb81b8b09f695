//! Hoisting: scalars move out of a loop that read memory, can fault or loop themselves, and do not
//! depend on the loop's axis.
//!
//! Only what is evaluated at every point moves, never what a select guards. An index that faults
//! outside the loop would have faulted at its first point: the same points have been written. It moves past no other
//! that may fault.

use super::emitter::{Emitter, Result};
use crate::analysis::walk::{Visit, visit};
use rustc_hash::FxHashSet;
use vinelift_nest::{Kind, Scalar};

impl<'n> Emitter<'n, '_> {
    /// Computes the scalars that need not wait for a loop that is about to be opened.
    pub(super) fn hoist(&mut self, roots: impl Iterator<Item = &'n Scalar>) -> Result {
        let ready = self.ready(roots);
        self.compute(ready)
    }

    /// The largest scalars under `roots` that are worth hoisting and depend on axes in scope alone.
    pub(super) fn ready(&self, roots: impl Iterator<Item = &'n Scalar>) -> Vec<&'n Scalar> {
        self.certain(roots, |x| {
            self.analysis
                .facts
                .free(x)
                .iter()
                .all(|id| self.axes.contains_key(id))
                && !self.analysis.facts.converts_halves(x)
        })
    }

    /// Whether evaluating `x` would do more than arithmetic, besides what has been computed.
    pub(crate) fn has_effect(&self, x: &'n Scalar) -> bool {
        let mut seen = FxHashSet::default();
        let mut open = vec![x];
        while let Some(x) = open.pop() {
            if self.is_known(x) || !self.analysis.facts.has_effect(x) || !seen.insert(x.address()) {
                continue;
            }
            if matches!(
                x.kind(),
                Kind::Load { .. } | Kind::Wrap(_) | Kind::Reduce { .. }
            ) {
                return true;
            }
            open.extend(x.children());
        }
        false
    }

    /// The scalars that both sides of a select evaluate in any case, and are more than arithmetic.
    pub(super) fn in_both(&self, yes: &'n Scalar, no: &'n Scalar) -> Vec<&'n Scalar> {
        let mut in_yes = FxHashSet::default();
        self.certain([yes].into_iter(), |x| {
            in_yes.insert(x.address());
            false
        });
        self.certain([no].into_iter(), |x| in_yes.contains(&x.address()))
    }

    /// The outermost scalars with effects that satisfy `wanted`, among those under `roots` that are
    /// evaluated whatever the data are. One that may fault is not among them if another is evaluated before it that may
    /// fault as well and is not found: that other fault would be the first.
    fn certain(
        &self,
        roots: impl Iterator<Item = &'n Scalar>,
        mut wanted: impl FnMut(&Scalar) -> bool,
    ) -> Vec<&'n Scalar> {
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
        let mut may_have_faulted = false;
        let mut open: Vec<Step<'n>> = roots.map(Step::Enter).collect();
        // The first root is on top, so that what is found keeps its order of evaluation.
        open.reverse();
        while let Some(step) = open.pop() {
            let x = match step {
                Step::Enter(x) => x,
                Step::Leave(x) => {
                    may_have_faulted |= match x.kind() {
                        Kind::Select(_, yes, no) => may_fault(yes) || may_fault(no),
                        _ => x.may_fault(),
                    };
                    continue;
                }
            };
            if self.is_known(x) || !self.analysis.facts.has_effect(x) || !seen.insert(x.address()) {
                continue;
            }
            // A term is computed as part of its sum only.
            let may_be_found = x.as_term().is_none() && !(may_have_faulted && may_fault(x));
            if may_be_found && wanted(x) {
                found.push(x);
                continue;
            }
            open.push(Step::Leave(x));
            let below = open.len();
            match x.kind() {
                Kind::Select(condition, ..) => open.push(Step::Enter(condition)),
                Kind::Wrap(wrap) => open.push(Step::Enter(&wrap.index)),
                Kind::Reduce {
                    axes, init, body, ..
                } => {
                    open.push(Step::Enter(init));
                    if axes.iter().all(|axis| axis.extent > 0) {
                        open.push(Step::Enter(body));
                    }
                }
                _ => open.extend(x.children().map(Step::Enter)),
            }
            open[below..].reverse();
        }
        found
    }
}

/// Before a scalar's parts are evaluated, and after.
enum Step<'n> {
    Enter(&'n Scalar),
    Leave(&'n Scalar),
}

/// Whether evaluating a scalar may fault.
fn may_fault(x: &Scalar) -> bool {
    let mut found = false;
    visit(x, |x| {
        found |= x.may_fault();
        if found { Visit::End } else { Visit::Children }
    });
    found
}
