//! Finds the variables that are caches.

use super::Storage;
use crate::model::{Model, NodeKind, TensorId};
use petgraph::graph::NodeIndex;
use vinelift_ops::{TensorType, VariableAttributes};
use vinelift_tensor::ElementType;

/// A variable that is set to what it holds, perhaps reordered, with more behind or before it.
pub(super) struct Cache {
    pub(super) id: String,
    pub(super) ty: TensorType,
    pub(super) read: NodeIndex,
    pub(super) assign: NodeIndex,
    /// The nodes that reorder what the variable holds, each after the one that it reads.
    pub(super) gathers: Vec<NodeIndex>,
    pub(super) concat: NodeIndex,
    /// The input of `concat` that is what the variable holds.
    pub(super) place: usize,
}

impl Model {
    /// The cache that the node `assign` sets, if it is one that can be stored in this form.
    pub(super) fn cache(&self, assign: NodeIndex, storage: Storage) -> Option<Cache> {
        let NodeKind::Assign(VariableAttributes { id, .. }) = &self.node(assign).kind else {
            return None;
        };
        let read = self.only_read(id)?;
        let ty = self.variable(id)?.clone();
        let concat = self.inputs(assign).first()?.node;
        let rank = ty.shape.rank()?;
        if self.operator(concat) != Some("Concat") || ty.element != ElementType::F32 || rank == 0 {
            return None;
        }
        let axis: i64 = self.node(concat).layer.attribute("axis")?.parse().ok()?;
        let is_within_rows = [-1, rank as i64 - 1].contains(&axis) || rank == 1;
        if storage == Storage::Codes && is_within_rows {
            return None;
        }
        let inputs = self.inputs(concat).into_iter().enumerate();
        let mut held = inputs.filter_map(|(place, t)| Some((place, self.held_by(t, read)?)));
        let (place, gathers) = held.next()?;
        let is_alone = held.next().is_none();
        drop(held);
        is_alone.then(|| Cache {
            id: id.clone(),
            ty,
            read,
            assign,
            gathers,
            concat,
            place,
        })
    }

    /// The node that reads a variable, if one node reads and one node sets it, and no sub-graph uses it.
    fn only_read(&self, id: &str) -> Option<NodeIndex> {
        let mut reads = self.graph.node_indices().filter(
            |n| matches!(&self.node(*n).kind, NodeKind::ReadValue(variable) if variable.id == id),
        );
        let read = reads.next().filter(|_| reads.next().is_none())?;
        let is_set =
            |n: &&NodeIndex| matches!(&self.node(**n).kind, NodeKind::Assign(v) if v.id == id);
        let is_set_once = self.assigns.iter().filter(is_set).count() == 1;
        let mut bodies = self.graph.node_weights().flat_map(|node| &node.bodies);
        let is_elsewhere = bodies.any(|(_, body)| body.mentions(id));
        (is_set_once && !is_elsewhere).then_some(read)
    }

    fn mentions(&self, id: &str) -> bool {
        self.graph.node_weights().any(|node| {
            node.layer.attribute("variable_id") == Some(id)
                || node.bodies.iter().any(|(_, body)| body.mentions(id))
        })
    }

    /// The nodes that reorder what `read` reads along its first dim to `tensor`; `None` if that is anything else.
    fn held_by(&self, tensor: TensorId, read: NodeIndex) -> Option<Vec<NodeIndex>> {
        let (mut gathers, mut at) = (Vec::new(), tensor.node);
        while at != read {
            let inputs = self.inputs(at);
            let [data, _, axis] = inputs.as_slice() else {
                return None;
            };
            let NodeKind::Constant(axis) = &self.node(axis.node).kind else {
                return None;
            };
            let is_first = axis.to_i64_vec().is_ok_and(|axis| axis == [0]);
            if self.operator(at) != Some("Gather") || !is_first {
                return None;
            }
            gathers.push(at);
            at = data.node;
        }
        gathers.reverse();
        Some(gathers)
    }
}
