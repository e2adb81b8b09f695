//! Hoisting: scalars move out of a loop that read memory, can fault or loop themselves, and do not
//! depend on the loop's axis.
//!
//! Only what is evaluated at every point moves, never what a select guards. An index that faults
//! outside the loop would have faulted at its first point: the same points have been written.

use super::emitter::{Emitter, Result};
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
        // A value that runs over lanes is no scalar that could be computed ahead.
        let lanes = self.vectors.axis();
        self.certain(roots, |x| {
            self.analysis
                .facts
                .free(x)
                .iter()
                .all(|id| self.axes.contains_key(id) && *id != lanes)
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
    /// evaluated whatever the data are.
    fn certain(
        &self,
        roots: impl Iterator<Item = &'n Scalar>,
        mut wanted: impl FnMut(&Scalar) -> bool,
    ) -> Vec<&'n Scalar> {
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open: Vec<&'n Scalar> = roots.collect();
        // The first root is on top, so that what is found keeps its order of evaluation.
        open.reverse();
        while let Some(x) = open.pop() {
            if self.is_known(x) || !self.analysis.facts.has_effect(x) || !seen.insert(x.address()) {
                continue;
            }
            // A term is computed as part of its sum only.
            if x.as_term().is_none() && wanted(x) {
                found.push(x);
                continue;
            }
            let below = open.len();
            match x.kind() {
                Kind::Select(condition, ..) => open.push(condition),
                Kind::Wrap(wrap) => open.push(&wrap.index),
                Kind::Reduce {
                    axes, init, body, ..
                } => {
                    open.push(init);
                    if axes.iter().all(|axis| axis.extent > 0) {
                        open.push(body);
                    }
                }
                _ => open.extend(x.children()),
            }
            open[below..].reverse();
        }
        found
    }
}
