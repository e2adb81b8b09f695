//! Caches that are stored in fewer bits than their elements have.
//!
//! > `cache = Concat(Gather(…(ReadValue, order)), new)`, and `Assign(cache)`
//!
//! A variable of that form takes over what it holds, reordered at most, and adds to it. So language models keep the keys
//! and values of what they have read. Each element is rounded once, when it is added; every reader reads what is stored,
//! in the run that adds it, too. [`Model::store_caches`] gives such variables another type, so that all else is a model
//! like any other, and means the same at every level.
//!
//! As [`Storage::Rounded`] the elements are numbers of 16 bits. As [`Storage::Codes`] each row along the last dim has a
//! code of 8 bits for each element, and two variables more, its scale and its least element:
//!
//! > `scale = max((largest - least) / 255, 2⁻¹²⁶)`, `code = round((x - least) / scale)`, ties to even,
//! > `element = code · scale + least`, each operation rounded to `f32`
//!
//! so that an element is off by half a scale at most, and by the rounding of these operations.

use crate::edit::set_attribute;
use crate::error::Error;
use crate::model::{Model, Node, NodeKind, TensorId};
use petgraph::graph::NodeIndex;
use vinelift_ops::{TensorType, VariableAttributes, format_shape};
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor, TensorError};

/// How elements of `f32` are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// As numbers of this type, `f16` or `bf16`.
    Rounded(ElementType),
    /// As `u8` with a scale and a least element for each row.
    Codes,
}

/// A variable that is stored in another type than it was declared to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCache {
    /// The variable, which holds numbers or codes.
    pub id: String,
    /// How it is stored.
    pub storage: Storage,
    /// The variables of the scales and of the least elements of codes.
    pub rows: Option<[String; 2]>,
}

/// A variable that takes over what it holds and adds to it.
struct Cache {
    id: String,
    ty: TensorType,
    read: NodeIndex,
    assign: NodeIndex,
    /// The nodes that reorder what is held, each after the one that it reads.
    gathers: Vec<NodeIndex>,
    concat: NodeIndex,
    /// Which input of `concat` is what is held.
    place: usize,
}

/// The tensors that one tensor is stored as: numbers; or codes, scales and least elements.
type Parts = Vec<TensorId>;

impl Model {
    /// Has the caches of `f32` be stored otherwise, but for those in sub-graphs. [`Model::finish`] is to follow.
    ///
    /// # Errors
    /// If an operator does not take the attributes that it is given here.
    pub fn store_caches(&mut self, storage: Storage) -> Result<Vec<StoredCache>, Error> {
        let assigns = self.assigns.clone();
        let caches: Vec<Cache> = assigns
            .into_iter()
            .filter_map(|assign| self.cache(assign, storage))
            .collect();
        let stored = caches.iter().map(|cache| self.store(cache, storage));
        stored.collect()
    }

    /// The cache that a node sets, if it is one that can be stored so.
    fn cache(&self, assign: NodeIndex, storage: Storage) -> Option<Cache> {
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

    /// The node that reads a variable, if one does and one sets it, and no sub-graph has it.
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

    fn operator(&self, node: NodeIndex) -> Option<&'static str> {
        match &self.node(node).kind {
            NodeKind::Operator { def, .. } => Some(def.name),
            _ => None,
        }
    }

    fn store(&mut self, cache: &Cache, storage: Storage) -> Result<StoredCache, Error> {
        let rows = (storage == Storage::Codes).then(|| {
            // No variable of a model has such a name.
            ["scale", "least"].map(|what| format!("\0{what} of {}", cache.id))
        });
        let mut tensors = vec![self.store_read(cache, storage, rows.as_ref())?];
        for &gather in &cache.gathers {
            let parts = self.like(gather, 0, &tensors[tensors.len() - 1])?;
            tensors.push(parts);
        }
        let whole = self.store_concat(cache, storage, &tensors[tensors.len() - 1])?;
        self.store_assign(cache, storage, rows.as_ref(), &whole);
        tensors.push(whole);
        for parts in tensors {
            self.widen(cache, storage, &parts)?;
        }
        Ok(StoredCache {
            id: cache.id.clone(),
            storage,
            rows,
        })
    }

    /// Has what the cache holds be read as it is stored.
    fn store_read(
        &mut self,
        cache: &Cache,
        storage: Storage,
        rows: Option<&[String; 2]>,
    ) -> Result<Parts, Error> {
        let name = self.node(cache.read).layer.name.clone();
        let init = self.inputs(cache.read).first().copied();
        let init = init
            .map(|init| self.narrow(&name, init, storage))
            .transpose()?;
        let types = cache.types(storage);
        let ids = std::iter::once(&cache.id).chain(rows.into_iter().flatten());
        let mut parts = Parts::new();
        for (k, (id, ty)) in ids.zip(types).enumerate() {
            let variable = VariableAttributes {
                id: id.clone(),
                declared: Some(ty),
            };
            let init = init.as_ref().map(|init| init[k]);
            let node = match k {
                0 => cache.read,
                _ => self.copy_of(cache.read, init.is_some()),
            };
            self.set_variable(node, NodeKind::ReadValue, variable);
            if let Some(init) = init {
                self.redirect(&[(node, 0)], init);
            }
            parts.push(TensorId { node, output: 0 });
        }
        Ok(parts)
    }

    /// Has what is added be stored, and then follow what is held.
    fn store_concat(
        &mut self,
        cache: &Cache,
        storage: Storage,
        held: &Parts,
    ) -> Result<Parts, Error> {
        let name = self.node(cache.concat).layer.name.clone();
        let (mut added, inputs) = (Vec::new(), self.inputs(cache.concat));
        for (k, input) in inputs.iter().enumerate() {
            added.push(match k == cache.place {
                true => held.clone(),
                false => self.narrow(&name, *input, storage)?,
            });
        }
        let mut parts = Parts::new();
        for part in 0..held.len() {
            let node = match part {
                0 => cache.concat,
                _ => self.copy_of(cache.concat, false),
            };
            for (k, added) in added.iter().enumerate() {
                self.redirect(&[(node, k)], added[part]);
            }
            parts.push(TensorId { node, output: 0 });
        }
        Ok(parts)
    }

    /// Has the variables be set to the parts of what the cache becomes.
    fn store_assign(
        &mut self,
        cache: &Cache,
        storage: Storage,
        rows: Option<&[String; 2]>,
        whole: &Parts,
    ) {
        let ids = std::iter::once(&cache.id).chain(rows.into_iter().flatten());
        let types = cache.types(storage);
        for (k, ((id, ty), part)) in ids.zip(types).zip(whole).enumerate() {
            let node = match k {
                0 => cache.assign,
                _ => {
                    let node = self.copy_of(cache.assign, false);
                    self.assigns.push(node);
                    node
                }
            };
            let variable = VariableAttributes {
                id: id.clone(),
                declared: Some(ty),
            };
            self.set_variable(node, NodeKind::Assign, variable);
            self.redirect(&[(node, 0)], *part);
        }
    }

    /// Has those who read a tensor of the cache's numbers, and not only its shape, read the elements that are stored.
    fn widen(&mut self, cache: &Cache, storage: Storage, parts: &Parts) -> Result<(), Error> {
        let mut uses = self.uses(parts[0]);
        let own = [cache.concat, cache.assign];
        uses.retain(|(node, input)| {
            let is_own = own.contains(node) || cache.gathers.contains(node) && *input == 0;
            !is_own && self.operator(*node) != Some("ShapeOf")
        });
        if uses.is_empty() {
            return Ok(());
        }
        let name = self.node(parts[0].node).layer.name.clone();
        let wide = self.convert(&name, parts[0], ElementType::F32)?;
        let wide = match (storage, parts.as_slice()) {
            (Storage::Codes, [_, scale, least]) => {
                let scaled = self.arithmetic(&name, "Multiply", [wide, *scale])?;
                self.arithmetic(&name, "Add", [scaled, *least])?
            }
            _ => wide,
        };
        self.redirect(&uses, wide);
        Ok(())
    }

    /// The parts of a tensor of `f32`.
    fn narrow(&mut self, name: &str, x: TensorId, storage: Storage) -> Result<Parts, Error> {
        let Storage::Codes = storage else {
            return Ok(vec![self.convert(name, x, storage.element())?]);
        };
        let last = self.small_constant(name, Tensor::from_slice(&[1], &[-1i64]))?;
        let extreme = |model: &mut Model, op| {
            let keep = [("keep_dims", "true")];
            model.add_operator(name, (op, "opset1"), &keep, &[x, last])
        };
        let least = extreme(self, "ReduceMin")?;
        let largest = extreme(self, "ReduceMax")?;
        let range = self.arithmetic(name, "Subtract", [largest, least])?;
        let steps = self.small_constant(name, Tensor::from_slice(&[], &[MOST_CODE]))?;
        let scale = self.arithmetic(name, "Divide", [range, steps])?;
        let smallest = Tensor::from_slice(&[], &[f32::MIN_POSITIVE]);
        let smallest = self.small_constant(name, smallest)?;
        let scale = self.arithmetic(name, "Maximum", [scale, smallest])?;
        let above = self.arithmetic(name, "Subtract", [x, least])?;
        let codes = self.arithmetic(name, "Divide", [above, scale])?;
        let even = [("mode", "half_to_even")];
        let codes = self.add_operator(name, ("Round", "opset5"), &even, &[codes])?;
        let codes = self.convert(name, codes, ElementType::U8)?;
        Ok(vec![codes, scale, least])
    }

    fn small_constant(
        &mut self,
        name: &str,
        value: Result<Tensor, TensorError>,
    ) -> Result<TensorId, Error> {
        let value = value.map_err(|error| Error::Internal(error.to_string()))?;
        Ok(self.add_constant(name, value))
    }

    fn convert(&mut self, name: &str, x: TensorId, to: ElementType) -> Result<TensorId, Error> {
        let to = [("destination_type", to.name())];
        self.add_operator(name, ("Convert", "opset1"), &to, &[x])
    }

    fn arithmetic(
        &mut self,
        name: &str,
        op: &str,
        operands: [TensorId; 2],
    ) -> Result<TensorId, Error> {
        let broadcast = [("auto_broadcast", "numpy")];
        self.add_operator(name, (op, "opset1"), &broadcast, &operands)
    }

    /// For each part but the first, which `node` reads at `input` already, a node like it that reads that part; what they
    /// make.
    fn like(&mut self, node: NodeIndex, input: usize, parts: &Parts) -> Result<Parts, Error> {
        let mut made = vec![TensorId { node, output: 0 }];
        for part in parts.iter().skip(1) {
            let copy = self.copy_of(node, true);
            self.redirect(&[(copy, input)], *part);
            made.push(TensorId {
                node: copy,
                output: 0,
            });
        }
        Ok(made)
    }

    /// A node like another, which reads the same tensors or none yet.
    fn copy_of(&mut self, node: NodeIndex, with_inputs: bool) -> NodeIndex {
        let inputs = match with_inputs {
            true => self.inputs(node),
            false => Vec::new(),
        };
        let mut copy: Node = self.node(node).clone();
        copy.layer.id = self.next_id();
        let copy = self.graph.add_node(copy);
        for (k, input) in inputs.into_iter().enumerate() {
            self.redirect(&[(copy, k)], input);
        }
        copy
    }

    fn set_variable(
        &mut self,
        node: NodeIndex,
        kind: fn(VariableAttributes) -> NodeKind,
        variable: VariableAttributes,
    ) {
        let Node {
            layer, kind: to, ..
        } = &mut self.graph[node];
        if let Some(ty) = &variable.declared {
            set_attribute(layer, "variable_type", ty.element.name().to_owned());
            set_attribute(layer, "variable_shape", format_shape(&ty.shape));
        }
        set_attribute(layer, "variable_id", variable.id.replace('\0', ""));
        *to = kind(variable);
    }
}

/// The largest code of 8 bits.
const MOST_CODE: f32 = 255.0;

impl Storage {
    /// The type of numbers or codes.
    fn element(self) -> ElementType {
        match self {
            Storage::Rounded(element) => element,
            Storage::Codes => ElementType::U8,
        }
    }
}

impl Cache {
    /// The types of the variables that the cache becomes.
    fn types(&self, storage: Storage) -> Vec<TensorType> {
        let numbers = TensorType::new(storage.element(), self.ty.shape.clone());
        let Storage::Codes = storage else {
            return vec![numbers];
        };
        let mut dims = self.ty.shape.dims().unwrap_or_default().to_vec();
        if let Some(last) = dims.last_mut() {
            *last = Dim::fixed(1);
        }
        let rows = TensorType::new(ElementType::F32, PartialShape::ranked(dims));
        vec![numbers, rows.clone(), rows]
    }
}

#[cfg(test)]
mod tests;
