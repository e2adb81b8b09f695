//! Rewrites a model so that a cache is stored in fewer bits: elements that are appended are converted to the form of the
//! storage, and converted back for those who read them.

use super::find::Cache;
use super::{Storage, StoredCache};
use crate::edit::set_attribute;
use crate::error::Error;
use crate::model::{Model, Node, NodeKind, TensorId};
use petgraph::graph::NodeIndex;
use vinelift_ops::{TensorType, VariableAttributes, format_shape};
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor, TensorError};

/// The tensors that one tensor is stored as: numbers; or codes, scales and least elements.
type Parts = Vec<TensorId>;

impl Model {
    pub(super) fn store(&mut self, cache: &Cache, storage: Storage) -> Result<StoredCache, Error> {
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

    /// Gives the variable its stored type where it is read, and adds the variables of scales and least elements.
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

    /// Converts what is appended, and concatenates each of the parts.
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

    /// Sets the variables to the parts of the concatenated cache.
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

    /// Converts a stored tensor back to `f32` for the nodes outside the cache that read its elements, and not only its shape.
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

    /// Converts a tensor of `f32` to the parts that it is stored as.
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

    /// Applies `node` to each part: `node` itself for the first, which it reads at `input` already, and a copy
    /// for each of the others. Returns their outputs.
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
