//! From a model and the shapes of its inputs to a loop nest.
//!
//! One walk over the nodes in order does everything, since each step may need what the one before
//! found: infer a node's types from those of its inputs; if they are static and every value it asked
//! for is known, lower it; if what it reads is constant, interpret that piece of the nest at once and
//! keep the value instead.

mod fold;
mod walk;

use crate::error::Error;
use crate::model::{Model, NodeKind, TensorId};
use crate::strings::Strings;
use petgraph::graph::NodeIndex;
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_nest::{BufferId, Nest};
use vinelift_ops::{IndexPolicy, TensorType};
use vinelift_tensor::{PartialShape, Shape, Tensor};
use walk::Walk;

/// Types of tensors.
#[derive(Clone, Debug, Default)]
pub struct Types(FxHashMap<TensorId, TensorType>);

impl Types {
    /// The type of a tensor, if known.
    pub fn get(&self, tensor: TensorId) -> Option<&TensorType> {
        self.0.get(&tensor)
    }

    /// The static shape of a tensor, if known.
    pub fn shape(&self, tensor: TensorId) -> Option<Shape> {
        self.get(tensor)?.shape.to_static()
    }
}

/// What earlier segments of a run have found.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Tensors that are computed and kept, with their types.
    pub computed: FxHashMap<TensorId, TensorType>,
    /// Values that were waited for.
    pub values: FxHashMap<TensorId, Tensor>,
}

/// Where the contents of an input buffer come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The model's parameter of this position.
    Parameter(usize),
    /// A constant, strings as numbers.
    Constant(Tensor),
    /// A tensor that an earlier segment has kept.
    Kept(TensorId),
}

/// As much of a model as can be lowered with what is known.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The loops.
    pub nest: Nest,
    /// Where the contents of the nest's input buffers come from.
    pub sources: Vec<(BufferId, Source)>,
    /// The tensors behind the nest's output buffers: results, and what later segments read.
    pub outputs: Vec<(BufferId, TensorId)>,
    /// Tensors that turned out constant.
    pub constants: FxHashMap<TensorId, Tensor>,
    /// The values without which the rest cannot be lowered; none if this is the last segment.
    pub wanted: Vec<TensorId>,
    /// The types of all tensors that have one by now.
    pub types: Types,
}

/// The types of all tensors, as far as the declared shapes of the parameters determine them.
pub fn infer(model: &Model) -> Result<Types, Error> {
    let shapes: Vec<PartialShape> = model
        .parameters
        .iter()
        .map(|p| declared(model, *p))
        .collect();
    let mut strings = Strings::default();
    let known = Known::default();
    let mut walk = Walk::new(model, &shapes, &known, IndexPolicy::Spec, &mut strings);
    model.order.iter().for_each(|node| walk.node(*node));
    if walk.errors.is_empty() {
        Ok(walk.types)
    } else {
        Err(Error::Layers(walk.errors))
    }
}

/// Lowers what can be lowered once the parameters have `shapes` and `known` is known. `strings` numbers
/// the texts of constants.
pub fn specialize(
    model: &Model,
    shapes: &[Shape],
    known: &Known,
    policy: IndexPolicy,
    strings: &mut Strings,
) -> Result<Segment, Error> {
    let shapes: Vec<PartialShape> = shapes.iter().map(|s| s.as_slice().into()).collect();
    let mut walk = Walk::new(model, &shapes, known, policy, strings);
    let live = live(model, known);
    model
        .order
        .iter()
        .filter(|n| live.contains(n))
        .for_each(|node| walk.node(*node));
    if !walk.errors.is_empty() {
        return Err(Error::Layers(walk.errors));
    }
    walk.finish(&live)
}

fn declared(model: &Model, parameter: NodeIndex) -> PartialShape {
    match &model.node(parameter).kind {
        NodeKind::Parameter(attributes) => attributes.shape.clone(),
        _ => PartialShape::DYNAMIC,
    }
}

/// The nodes that a result depends on through tensors that are not computed yet.
fn live(model: &Model, known: &Known) -> FxHashSet<NodeIndex> {
    let mut live = FxHashSet::default();
    let mut open = model.results.clone();
    while let Some(node) = open.pop() {
        if live.insert(node) {
            let inputs = model.inputs(node).into_iter();
            open.extend(
                inputs
                    .filter(|t| !known.computed.contains_key(t))
                    .map(|t| t.node),
            );
        }
    }
    live
}
