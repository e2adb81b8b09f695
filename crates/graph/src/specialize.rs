//! From a model and the shapes of its inputs to a loop nest.
//!
//! One walk over the nodes in order does everything, since each step may need what the one before
//! found: infer a node's types from those of its inputs; if they are static and every value it asked
//! for is known, lower it; if what it reads is constant, interpret that piece of the nest at once and
//! keep the value instead.

use crate::error::{Error, LayerError, Problem};
use crate::model::{Model, NodeKind, TensorId};
use crate::strings::Strings;
use petgraph::graph::NodeIndex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;
use vinelift_nest::{BufferBytes, BufferId, LayerId, Nest, Role, Scalar, interpret};
use vinelift_ops::{IndexPolicy, Infer, Lower, Op, OpDef, TensorType};
use vinelift_tensor::{ElementType, PartialShape, Shape, Tensor, element_count};

/// The most points of all loops together that are interpreted while compiling. More than that is
/// left to native code.
const FOLD_POINTS: usize = 1 << 16;

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

struct Walk<'a> {
    model: &'a Model,
    shapes: &'a [PartialShape],
    known: &'a Known,
    policy: IndexPolicy,
    strings: &'a mut Strings,
    types: Types,
    /// Values of tensors that are constant, or were waited for.
    values: FxHashMap<TensorId, Tensor>,
    /// Tensors whose contents can be had when the nest runs.
    available: FxHashSet<TensorId>,
    nest: Nest,
    buffers: FxHashMap<TensorId, BufferId>,
    sources: Vec<(BufferId, Source)>,
    wanted: BTreeSet<TensorId>,
    errors: Vec<LayerError>,
}

impl<'a> Walk<'a> {
    fn new(
        model: &'a Model,
        shapes: &'a [PartialShape],
        known: &'a Known,
        policy: IndexPolicy,
        strings: &'a mut Strings,
    ) -> Walk<'a> {
        Walk {
            model,
            shapes,
            known,
            policy,
            strings,
            types: Types(known.computed.clone()),
            values: known.values.clone(),
            available: known.computed.keys().copied().collect(),
            nest: Nest::new(),
            buffers: FxHashMap::default(),
            sources: Vec::new(),
            wanted: BTreeSet::new(),
            errors: Vec::new(),
        }
    }

    fn node(&mut self, node: NodeIndex) {
        let done = match &self.model.node(node).kind {
            NodeKind::Parameter(attributes) => self.parameter(node, attributes.element_type),
            NodeKind::Constant(tensor) => self.constant(node, tensor),
            NodeKind::Operator { def, op } => self.operator(node, def, op),
            NodeKind::Result | NodeKind::Refused(_) => Ok(()),
        };
        if let Err(problem) = done {
            self.errors.push(LayerError {
                layer: self.model.node(node).label(),
                problem,
            });
        }
    }

    fn parameter(&mut self, node: NodeIndex, element: ElementType) -> Result<(), Problem> {
        let tensor = TensorId { node, output: 0 };
        let position = self.model.parameters.iter().position(|p| *p == node);
        let shape = position
            .and_then(|p| self.shapes.get(p))
            .cloned()
            .unwrap_or(PartialShape::DYNAMIC);
        let declared = declared(self.model, node);
        let shape = declared
            .intersect(&shape)
            .ok_or_else(|| Problem::Graph(format!("shape {shape}, expected {declared}")))?;
        if shape.is_static() {
            self.available.insert(tensor);
        }
        self.types.0.insert(tensor, TensorType::new(element, shape));
        Ok(())
    }

    fn constant(&mut self, node: NodeIndex, value: &Tensor) -> Result<(), Problem> {
        let tensor = TensorId { node, output: 0 };
        self.types.0.insert(
            tensor,
            TensorType::new(value.element_type(), value.shape().into()),
        );
        self.values.insert(tensor, value.clone());
        self.available.insert(tensor);
        Ok(())
    }

    fn operator(
        &mut self,
        node: NodeIndex,
        def: &'static OpDef,
        op: &Arc<dyn Op>,
    ) -> Result<(), Problem> {
        let count = self.model.node(node).layer.outputs.len();
        let outputs: Vec<TensorId> = (0..count).map(|output| TensorId { node, output }).collect();
        if !outputs.is_empty() && outputs.iter().all(|t| self.known.computed.contains_key(t)) {
            return Ok(());
        }
        let inputs = self.model.inputs(node);
        let Some(types) = inputs
            .iter()
            .map(|t| self.types.get(*t).cloned())
            .collect::<Option<Vec<_>>>()
        else {
            return Ok(()); // What feeds it is wrong, and is reported itself.
        };
        let values: Vec<Option<Tensor>> =
            inputs.iter().map(|t| self.values.get(t).cloned()).collect();
        let values: Vec<Option<&Tensor>> = values.iter().map(Option::as_ref).collect();
        let cx = Infer::new(def, &types, &values)?;
        let results = op.infer(&cx)?;
        if results.len() != count {
            return Err(Problem::Graph(format!(
                "{count} output ports, expected {}",
                results.len()
            )));
        }
        let missing: Vec<TensorId> = cx.missing().map(|i| inputs[i]).collect();
        let shapes: Option<Vec<Shape>> = results.iter().map(|t| t.shape.to_static()).collect();
        for (tensor, ty) in outputs.iter().zip(&results) {
            self.types.0.insert(*tensor, ty.clone());
        }
        self.wanted
            .extend(missing.iter().filter(|t| self.available.contains(t)));
        let (Some(shapes), true) = (
            shapes,
            missing.is_empty() && types.iter().all(|t| t.shape.is_static()),
        ) else {
            return Ok(());
        };
        for (ty, shape) in results.iter().zip(&shapes) {
            let bytes = element_count(shape).and_then(|n| ty.element.byte_len(n));
            bytes.ok_or_else(|| Problem::Graph(format!("its output {ty} is too large")))?;
        }
        self.lower(node, def, op, &inputs, &outputs, &values)
    }

    fn lower(
        &mut self,
        node: NodeIndex,
        def: &'static OpDef,
        op: &Arc<dyn Op>,
        inputs: &[TensorId],
        outputs: &[TensorId],
        values: &[Option<&Tensor>],
    ) -> Result<(), Problem> {
        let before = Mark {
            buffers: self.nest.buffers.len(),
            stages: self.nest.stages.len(),
            sources: self.sources.len(),
        };
        let label = self.model.node(node).label();
        let layer: LayerId = self.nest.layer(&label.name, &label.op);
        let sources = inputs
            .iter()
            .map(|t| self.input_buffer(*t))
            .collect::<Result<Vec<_>, _>>()?;
        let targets: Vec<BufferId> = outputs
            .iter()
            .map(|t| self.new_buffer(*t, Role::Temporary))
            .collect();
        op.lower(&mut Lower::new(
            &mut self.nest,
            def,
            layer,
            sources,
            targets,
            values,
            self.policy,
        ));
        self.inline_scalars(&before);

        let read = self.nest.read_in(before.stages..self.nest.stages.len());
        let own = |b: &BufferId| b.0 as usize >= before.buffers && !self.is_input(*b);
        let constant = |b: &BufferId| {
            self.sources
                .iter()
                .any(|(id, s)| id == b && matches!(s, Source::Constant(_)))
        };
        if read.iter().all(|b| own(b) || constant(b)) && self.fold(&before, outputs)? {
            self.undo(&before);
            return Ok(());
        }
        if inputs.iter().all(|t| self.available.contains(t)) {
            self.available.extend(outputs);
        } else {
            self.undo(&before);
        }
        Ok(())
    }

    /// Interprets the stages since `before` if that is little work, and keeps the values of `outputs`.
    fn fold(&mut self, before: &Mark, outputs: &[TensorId]) -> Result<bool, Problem> {
        let stages = before.stages..self.nest.stages.len();
        let strings = outputs.iter().any(|t| {
            self.types
                .get(*t)
                .is_none_or(|ty| ty.element == ElementType::String)
        });
        if strings || self.nest.points_in(stages.clone()) > FOLD_POINTS {
            return Ok(false);
        }
        let kernel = self.nest.extract(stages);
        let inputs: FxHashMap<BufferId, &Tensor> = self
            .sources
            .iter()
            .filter_map(|(b, s)| {
                if let Source::Constant(t) = s {
                    Some((*b, t))
                } else {
                    None
                }
            })
            .collect();
        let mut results = Vec::new();
        for tensor in outputs {
            let Some((ty, shape)) = self
                .types
                .get(*tensor)
                .and_then(|t| Some((t.element, t.shape.to_static()?)))
            else {
                return Ok(false);
            };
            results.push((
                self.buffers.get(tensor).copied(),
                Tensor::zeros(ty, &shape)?,
            ));
        }
        let mut targets: FxHashMap<BufferId, &mut Tensor> = results
            .iter_mut()
            .filter_map(|(b, t)| b.map(|b| (b, t)))
            .collect();
        let mut bytes: Vec<BufferBytes<'_>> = Vec::new();
        for (buffer, inner) in kernel.buffers.iter().zip(&kernel.nest.buffers) {
            bytes.push(match (inputs.get(buffer), targets.remove(buffer)) {
                (Some(tensor), _) => BufferBytes::Read(tensor.bytes()),
                (None, Some(tensor)) => BufferBytes::Write(tensor.make_mut()?),
                (None, None) if matches!(inner.role, Role::Table(_)) => BufferBytes::Read(&[]),
                (None, None) => BufferBytes::Temporary,
            });
        }
        // An index that is out of range is reported when the model runs, as for any other index.
        let done = interpret(&kernel.nest, &mut bytes).is_ok();
        drop(bytes);
        if done {
            for (tensor, (_, value)) in outputs.iter().zip(results) {
                self.values.insert(*tensor, value);
                self.available.insert(*tensor);
            }
        }
        Ok(done)
    }

    /// Puts constants of one element in place of their loads.
    fn inline_scalars(&mut self, before: &Mark) {
        let scalar = |(b, s): &(BufferId, Source)| {
            let Source::Constant(t) = s else { return None };
            let bits = t.bytes();
            let ty = self.nest.buf(*b).ty;
            if t.element_count() != 1 || bits.len() > 8 || ty.is_packed() {
                return None;
            }
            let mut word = [0; 8];
            word[..bits.len()].copy_from_slice(bits);
            let word = u64::from_le_bytes(word);
            let word = if ty == ElementType::Boolean {
                u64::from(word != 0)
            } else {
                word
            };
            Some((*b, Scalar::constant(word, ty)))
        };
        let scalars: FxHashMap<BufferId, Scalar> = self.sources.iter().filter_map(scalar).collect();
        self.nest.replace_loads(before.stages.., &scalars);
    }

    fn undo(&mut self, before: &Mark) {
        self.nest.stages.truncate(before.stages);
        self.nest.truncate_buffers(before.buffers);
        self.sources.truncate(before.sources);
        self.buffers.retain(|_, b| (b.0 as usize) < before.buffers);
    }

    fn is_input(&self, buffer: BufferId) -> bool {
        self.nest.buf(buffer).role == Role::Input
    }

    /// The buffer that holds a tensor, made an input of the nest if it is not computed in it.
    fn input_buffer(&mut self, tensor: TensorId) -> Result<BufferId, Problem> {
        if let Some(&known) = self.buffers.get(&tensor) {
            return Ok(known);
        }
        let buffer = self.new_buffer(tensor, Role::Input);
        let source = if let Some(value) = self.values.get(&tensor) {
            Source::Constant(self.strings.encode(value)?)
        } else if let Some(k) = self.model.parameters.iter().position(|p| *p == tensor.node) {
            Source::Parameter(k)
        } else {
            Source::Kept(tensor)
        };
        self.sources.push((buffer, source));
        Ok(buffer)
    }

    fn new_buffer(&mut self, tensor: TensorId, role: Role) -> BufferId {
        let layer = &self.model.node(tensor.node).layer;
        let name = match layer.outputs.len() {
            0 | 1 => layer.name.clone(),
            _ => format!("{}.{}", layer.name, tensor.output),
        };
        // Every tensor that gets here has a static type.
        let ty = self.types.get(tensor);
        let (element, shape) = ty.map_or((ElementType::U8, None), |t| {
            (t.element, t.shape.to_static())
        });
        let buffer = self
            .nest
            .buffer(&name, element, &shape.unwrap_or_default(), role);
        self.buffers.insert(tensor, buffer);
        buffer
    }

    fn finish(mut self, live: &FxHashSet<NodeIndex>) -> Result<Segment, Error> {
        let result_sources: Vec<TensorId> = self
            .model
            .results
            .iter()
            .flat_map(|r| self.model.inputs(*r))
            .collect();
        let complete = result_sources.iter().all(|t| self.available.contains(t));
        if complete {
            self.wanted.clear();
        } else if self.wanted.is_empty() {
            let stuck: Vec<String> = result_sources
                .iter()
                .filter(|t| !self.available.contains(t))
                .map(|t| self.model.node(t.node).label().to_string())
                .collect();
            return Err(Error::Internal(format!(
                "no shape can be found for the output of {}",
                stuck.join(", ")
            )));
        }
        let waits = |node: NodeIndex| {
            live.contains(&node) && !self.available.contains(&TensorId { node, output: 0 })
        };
        let mut outputs = Vec::new();
        let mut computed: Vec<(TensorId, BufferId)> =
            self.buffers.iter().map(|(t, b)| (*t, *b)).collect();
        computed.sort_unstable();
        for (tensor, buffer) in computed {
            let read_later = || self.model.readers(tensor).any(waits);
            let needed =
                result_sources.contains(&tensor) || self.wanted.contains(&tensor) || read_later();
            if self.nest.buf(buffer).role == Role::Temporary && needed {
                self.nest.buffers[buffer.0 as usize].role = Role::Output;
                outputs.push((buffer, tensor));
            }
        }
        Ok(Segment {
            nest: self.nest,
            sources: self.sources,
            outputs,
            constants: self.values,
            wanted: self.wanted.into_iter().collect(),
            types: self.types,
        })
    }
}

/// Lengths to go back to.
struct Mark {
    buffers: usize,
    stages: usize,
    sources: usize,
}
