//! From a model and the shapes of its inputs to a loop nest.
//!
//! One walk over the nodes in order does everything, since each step may need what the one before
//! found: infer a node's types from those of its inputs; if they are static and every value it asked
//! for is known, lower it; if what it reads is constant, interpret that piece of the nest at once and
//! keep the value instead; where only bounds of what it reads are known, keep bounds. An operator that
//! is no nest ends what can be lowered now: it is called, and what reads its outputs is lowered once
//! their shapes are known.

mod bounds;
mod budget;
mod calls;
mod codes;
mod decompression;
mod finish;
mod fold;
mod lower;
mod shape_values;
mod sub_graphs;
mod variables;
mod walk;

use crate::error::{Error, LayerError, Problem};
use crate::model::{Model, NodeKind, TensorId};
use crate::strings::Strings;
pub(crate) use budget::Budget;
use petgraph::graph::NodeIndex;
use rustc_hash::{FxHashMap, FxHashSet};
pub use shape_values::ShapeValue;
use vinelift_nest::{BufferId, Nest, ValueRange};
use vinelift_ops::{IndexPolicy, Stop, TensorType};
use vinelift_tensor::{Extent, Formula, Tensor};
use walk::{Mode, Walk};

/// Types of tensors.
#[derive(Clone, Debug, Default)]
pub struct Types {
    types: FxHashMap<TensorId, TensorType>,
    /// The values of those that operators make of constants alone, as [`infer`] finds them.
    folded: FxHashMap<TensorId, Tensor>,
    /// For each element of those from which shapes are computed, whether it is one number for all shapes that the model allows, as
    /// [`infer`] finds it.
    fixed: FxHashMap<TensorId, Vec<bool>>,
    /// The nodes that were left to the run because too much had been spent on others.
    left: FxHashSet<NodeIndex>,
}

impl Types {
    /// The type of a tensor, if known.
    pub fn get(&self, tensor: TensorId) -> Option<&TensorType> {
        self.types.get(&tensor)
    }

    fn set(&mut self, tensor: TensorId, ty: TensorType) {
        self.types.insert(tensor, ty);
    }

    /// Whether the `k`-th element of a tensor is known to be one number for all shapes that the model allows.
    pub fn is_fixed(&self, tensor: TensorId, k: usize) -> bool {
        let elements = self.fixed.get(&tensor);
        elements.and_then(|all| all.get(k)) == Some(&true)
    }

    /// The static shape of a tensor, if known.
    pub fn shape(&self, tensor: TensorId) -> Option<Vec<Extent>> {
        self.get(tensor)?.shape.to_extents()
    }
}

/// The results of earlier segments of a run.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Tensors that are computed and kept, with their types; among them what variables hold.
    pub computed: FxHashMap<TensorId, TensorType>,
    /// Values that were waited for, and [those of shapes](Segment::shape_values).
    pub values: FxHashMap<TensorId, Tensor>,
    /// The values that have symbols: the formulas of their elements, and the tensor at the example.
    pub formulas: FxHashMap<TensorId, (Vec<Formula>, Tensor)>,
    /// Tensors that variables hold in memory which has room for more along an axis: how much it takes there.
    pub room: FxHashMap<TensorId, Extent>,
}

impl Known {
    /// Forgets what no later segment asks for.
    pub fn forget(&mut self, tensors: &[TensorId]) {
        for tensor in tensors {
            self.computed.remove(tensor);
            self.values.remove(tensor);
            self.formulas.remove(tensor);
        }
    }

    /// Whether the value of a tensor is known.
    fn has_value(&self, tensor: TensorId) -> bool {
        self.values.contains_key(&tensor) || self.formulas.contains_key(&tensor)
    }

    /// Whether a tensor needs not be computed: it is kept, or its value is known.
    fn has(&self, tensor: TensorId) -> bool {
        self.computed.contains_key(&tensor) || self.has_value(tensor)
    }

    /// All tensors that need not be computed.
    fn tensors(&self) -> impl Iterator<Item = TensorId> {
        let values = self.values.keys().chain(self.formulas.keys());
        self.computed.keys().chain(values).copied()
    }

    /// As [`Known::tensors`], with their types.
    fn types(&self) -> FxHashMap<TensorId, TensorType> {
        let examples = self.formulas.iter().map(|(t, (_, example))| (t, example));
        let values = self.values.iter().chain(examples);
        let values = values.map(|(t, v)| (*t, TensorType::new(v.element_type(), v.shape().into())));
        let mut types: FxHashMap<TensorId, TensorType> = values.collect();
        types.extend(self.computed.iter().map(|(t, ty)| (*t, ty.clone())));
        types
    }

    /// The elements of tensors that have symbols, as bounds.
    fn formula_bounds(&self) -> FxHashMap<TensorId, Vec<ValueRange>> {
        let ranges =
            |formulas: &[Formula]| formulas.iter().map(|f| ValueRange::Formula(*f)).collect();
        let known = self.formulas.iter();
        known
            .map(|(tensor, (formulas, _))| (*tensor, ranges(formulas)))
            .collect()
    }
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
    /// The input buffers whose contents depend on constants and shapes alone.
    pub of_shapes: FxHashSet<BufferId>,
    /// The tensors behind the nest's output buffers: results, and what later segments read.
    pub outputs: Vec<(BufferId, TensorId)>,
    /// Tensors that turned out constant.
    pub constants: FxHashMap<TensorId, Tensor>,
    /// The values without which the rest cannot be lowered.
    pub wanted: Vec<TensorId>,
    /// The values that follow from the shapes, and that later segments read: they are among [`Known::values`] from then on.
    pub shape_values: Vec<ShapeValue>,
    /// The nodes to call after the nest: what reads their outputs comes in later segments.
    pub calls: Vec<NodeIndex>,
    /// As [`Known::room`], in order.
    pub room: Vec<(TensorId, Extent)>,
    /// The tensors, among those known by then, that nobody reads once the calls are done.
    pub forgotten: Vec<TensorId>,
    /// The types of all tensors that have one by now.
    pub types: Types,
}

/// The types of all tensors, as far as the declared shapes of the parameters determine them.
pub fn infer(model: &Model) -> Result<Types, Error> {
    infer_until(model, Stop::NEVER)
}

/// As [`infer`], to be given up with [`Error::Cancelled`] when `stop` says so.
pub fn infer_until(model: &Model, stop: Stop<'_>) -> Result<Types, Error> {
    let budget = Budget::new(stop);
    let given = model.parameters.iter();
    let given: Vec<TensorType> = given.map(|p| model.declared_type(*p)).collect();
    let mut strings = Strings::default();
    let known = Known::default();
    let mut walk = Walk::new(model, &given, &known, Mode::Declared, &budget, &mut strings);
    walk.over(model.order.iter())?;
    let (values, bounds, mut types) = (walk.values, walk.bounds, walk.types);
    let is_one = |range: ValueRange| range.formula().is_some();
    let fixed = bounds.into_iter();
    let fixed = fixed.map(|(t, all)| (t, all.into_iter().map(is_one).collect()));
    types.fixed = fixed.collect();
    let is_folded = |t: &TensorId| matches!(model.node(t.node).kind, NodeKind::Operator { .. });
    types.folded = values.into_iter().filter(|(t, _)| is_folded(t)).collect();
    Ok(types)
}

/// The types and constants among the results of a body.
pub(crate) struct BodyTypes {
    pub(crate) results: Vec<TensorType>,
    /// The values of those that are constant.
    pub(crate) values: Vec<Option<Tensor>>,
}

/// The types of the results of a body whose parameters have `types`, and `values` where they are known.
pub(crate) fn infer_body(
    body: &Model,
    types: &[TensorType],
    values: &[Option<&Tensor>],
    budget: &Budget<'_>,
) -> Result<BodyTypes, Error> {
    let mut known = Known::default();
    let mut errors = Vec::new();
    for ((&node, ty), value) in body.parameters.iter().zip(types).zip(values) {
        let NodeKind::Parameter(attributes) = &body.node(node).kind else {
            continue;
        };
        if let Some(declared) = attributes.element_type
            && declared != ty.element
        {
            errors.push(LayerError {
                layer: body.node(node).label(),
                problem: Problem::Graph(format!("it gets {ty}, expected {declared}")),
            });
        }
        if let Some(value) = value {
            let tensor = TensorId { node, output: 0 };
            known.values.insert(tensor, (*value).clone());
        }
    }
    if !errors.is_empty() {
        return Err(Error::Layers(errors));
    }
    let mut strings = Strings::default();
    let mut walk = Walk::new(body, types, &known, Mode::Body, budget, &mut strings);
    walk.over(body.order.iter())?;
    let sources = body.results.iter().flat_map(|r| body.inputs(*r));
    let sources: Vec<TensorId> = sources.collect();
    let types = sources.iter().map(|t| walk.types.get(*t).cloned());
    let Some(results) = types.collect() else {
        // The walk finds no types behind layers that cannot run, which `check` names.
        body.check()?;
        return Err(Error::Internal("a result of a body has no type".to_owned()));
    };
    let values = sources.iter().map(|t| walk.values.get(t).cloned());
    Ok(BodyTypes {
        results,
        values: values.collect(),
    })
}

/// The types and values that a model is specialised to.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The shapes of the parameters.
    pub shapes: &'a [Vec<Extent>],
    /// The results of earlier segments.
    pub known: &'a Known,
    /// The results of [`infer`] for the model: constants that it has folded are not folded again, and its types are those of all
    /// shapes that the model allows.
    pub inferred: Option<&'a Types>,
    /// The rule for indices that are out of range.
    pub policy: IndexPolicy,
    /// Whether the model is a body, whose parameters take the shapes that they are given.
    pub is_body: bool,
    /// When to give up, with [`Error::Cancelled`].
    pub stop: Stop<'a>,
}

/// Lowers what can be lowered with what is given. `strings` numbers the texts of constants.
///
/// If there are symbols, what is decided about them is written down by the recorder that this runs in
/// ([`Symbols::record`](vinelift_tensor::symbols::Symbols::record)).
pub fn specialize(
    model: &Model,
    given: Given<'_>,
    strings: &mut Strings,
) -> Result<Segment, Error> {
    let inputs = model.parameters.iter().zip(given.shapes);
    let inputs: Vec<TensorType> = inputs
        .map(|(p, s)| TensorType::new(model.declared_type(*p).element, s.as_slice().into()))
        .collect();
    let mode = Mode::Run {
        is_body: given.is_body,
        policy: given.policy,
    };
    let budget = Budget::new(given.stop);
    let mut walk = Walk::new(model, &inputs, given.known, mode, &budget, strings);
    // Folded constants depend on no parameter, but on the rule for indices that are out of range.
    let is_same = !given.is_body && given.policy == IndexPolicy::Spec;
    walk.inferred = given.inferred.filter(|_| is_same);
    walk.declared = given.inferred.filter(|_| !given.is_body);
    let live = Live::of(model, |tensor| given.known.has(tensor));
    walk.over(model.order.iter().filter(|n| live.nodes.contains(n)))?;
    walk.finish(&live.nodes)
}

/// The nodes and tensors that results and variables depend on.
struct Live {
    /// The nodes that they depend on through tensors that are not known yet.
    nodes: FxHashSet<NodeIndex>,
    /// The tensors that are known and that these read.
    read: FxHashSet<TensorId>,
}

impl Live {
    fn of(model: &Model, is_known: impl Fn(TensorId) -> bool) -> Live {
        let (mut nodes, mut read) = (FxHashSet::default(), FxHashSet::default());
        let mut open = [model.results.as_slice(), &model.assigns].concat();
        while let Some(node) = open.pop() {
            if !nodes.insert(node) {
                continue;
            }
            for tensor in model.inputs(node) {
                match is_known(tensor) {
                    true => {
                        read.insert(tensor);
                    }
                    false => open.push(tensor.node),
                }
            }
        }
        Live { nodes, read }
    }
}
