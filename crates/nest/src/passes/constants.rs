//! The buffers whose contents do not depend on a run.

use crate::ir::{BufferId, Nest};
use rustc_hash::FxHashSet;

/// The buffers whose contents are known before the nest runs, with those that are computed from such alone.
pub(crate) fn constants(
    nest: &Nest,
    is_constant: &dyn Fn(BufferId) -> bool,
) -> FxHashSet<BufferId> {
    let all = (0..nest.buffers.len() as u32).map(BufferId);
    let mut constants: FxHashSet<BufferId> = all.filter(|b| is_constant(*b)).collect();
    let mut varying = FxHashSet::default();
    for stage in &nest.stages {
        let is_known = stage.loads().iter().all(|b| constants.contains(b));
        match is_known && !varying.contains(&stage.target) {
            true => constants.insert(stage.target),
            false => constants.remove(&stage.target) | varying.insert(stage.target),
        };
    }
    constants
}
