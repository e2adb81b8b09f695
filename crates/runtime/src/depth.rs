//! How much stack runs of a model need.

use crate::stack::{with_large_stack, with_room};
use crate::{Error, Level, Model};
use vinelift_graph::{NodeKind, TensorId};

/// How deep a run may go.
#[derive(Clone, Copy, Debug)]
pub enum Depth {
    /// It is native code.
    Flat,
    /// It may run sub-graphs. The code that it makes is made elsewhere.
    Nested,
    /// It may go as deep as the model.
    Deep,
}

impl Depth {
    /// How deep runs of `model` may go that is compiled at this level.
    pub(crate) fn at(level: Level, model: &Model) -> Result<Depth, Error> {
        Ok(match level {
            Level::Interpreted | Level::Fused => Depth::Deep,
            _ if is_static(model)? => Depth::Flat,
            _ => Depth::Nested,
        })
    }

    /// Runs `work` with as much room as it needs.
    ///
    /// # Errors
    /// As [`with_large_stack`].
    pub fn run<T, E: From<Error>>(self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        match self {
            Depth::Flat => work(),
            Depth::Nested => with_room(work),
            Depth::Deep => with_large_stack(work),
        }
    }
}

/// Whether the shapes of all tensors are known before a run.
fn is_static(model: &Model) -> Result<bool, Error> {
    let (graph, types) = (model.graph(), model.infer()?);
    let is_known = |node| {
        let of_node = graph.node(node);
        let outputs = 0..of_node.layer.outputs.len();
        let mut tensors = outputs.map(|output| TensorId { node, output });
        !matches!(of_node.kind, NodeKind::Control(_))
            && tensors.all(|t| types.get(t).is_none_or(|ty| ty.shape.is_static()))
    };
    Ok(graph.order.iter().all(|node| is_known(*node)))
}
