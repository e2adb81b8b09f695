//! The temporaries whose elements a pass may put elsewhere.

use crate::ir::{BufferId, Nest, Role, visit_accesses};
use rustc_hash::FxHashSet;

/// The temporaries that are used only by stages which take no turns and have no data-dependent indices: a pass may change
/// where their elements lie, if it changes all accesses alike.
pub(crate) fn rearrangeable(nest: &Nest) -> FxHashSet<BufferId> {
    let all = (0..nest.buffers.len() as u32).map(BufferId);
    let mut found: FxHashSet<BufferId> = all
        .filter(|id| nest.buf(*id).role == Role::Temporary)
        .collect();
    for stage in &nest.stages {
        if stage.group.is_some() || stage.wraps() {
            visit_accesses(stage, &mut |buffer, _| {
                found.remove(&buffer);
            });
        }
    }
    found
}
