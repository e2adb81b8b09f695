//! Nests, stages and buffers.

use crate::ir::{
    Axis, AxisId, BufferId, Kind, LayerId, Mode, Policy, Scalar, SiteId, Stage, Wrap, rewrite_those,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::{Hash, Hasher};
use std::ops::RangeFrom;
use std::sync::Arc;
use vinelift_tensor::{ElementType, Extent, Formula, Shape, count_of, element_count, extents};

/// A list of stages over buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nest {
    /// The buffers that the stages read and write.
    pub buffers: Vec<Buffer>,
    /// The stages, in the order in which they run.
    pub stages: Vec<Stage>,
    /// The layers that the stages come from.
    pub layers: Vec<Layer>,
    /// The data-dependent indices that may fail.
    pub sites: Vec<Site>,
    /// The values at the example of the symbols that extents have, by their numbers. Empty if all extents are numbers.
    pub symbols: Vec<usize>,
    /// Formulas over the symbols that are not negative for any values that the nest is for.
    pub relations: Vec<Formula>,
    /// The next axis id that no stage uses.
    pub(crate) next_axis: u32,
    /// The names of the buffers.
    pub(crate) names: FxHashSet<String>,
}

impl Hash for Nest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.buffers, &self.stages, &self.sites, &self.symbols).hash(state);
    }
}

/// A tensor in memory: row-major, packed as the IR packs its element type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// Name for the text form; unique in a nest.
    pub name: String,
    /// Element type.
    pub ty: ElementType,
    /// Extents.
    pub shape: Vec<Extent>,
    /// Who owns the memory.
    pub role: Role,
}

impl Buffer {
    /// The bytes that it takes, if they can be counted.
    pub fn byte_len(&self) -> Option<usize> {
        element_count(&self.example()).and_then(|n| self.ty.byte_len(n))
    }

    /// The bytes that it takes where the symbol of number `k` is `values[k]`, if they can be counted.
    pub fn byte_len_at(&self, values: &[usize]) -> Option<usize> {
        let extents = self.shape.iter().map(|n| n.at(values));
        if extents.clone().any(|n| n.is_none()) {
            return None;
        }
        count_of(extents.flatten()).and_then(|n| self.ty.byte_len(n))
    }

    /// The shape at the example.
    pub fn example(&self) -> Shape {
        vinelift_tensor::example(&self.shape)
    }

    /// Elements between neighbours along each dim, at the example.
    pub fn strides(&self) -> Vec<usize> {
        row_major(&self.example())
    }
}

/// Who owns a buffer's memory, and so who may write it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Read only, handed in.
    Input,
    /// Written by the nest, handed out.
    Output,
    /// Written and read within the nest.
    Temporary,
    /// Read only, part of the nest: the bytes of a constant table.
    Table(Arc<[u8]>),
}

/// A layer of the model, for messages and for tracing text back to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layer {
    /// The layer's name in the file.
    pub name: String,
    /// Operator and version, as in `GatherND, opset8`.
    pub op: String,
}

/// `layer 'gather_1' (GatherND, opset8)`, the opening of every message about a layer.
impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "layer '{}' ({})",
            one_line(&self.name),
            one_line(&self.op)
        )
    }
}

/// `text` with its control characters escaped: names in files may hold any.
pub(crate) fn one_line(text: &str) -> String {
    let escape = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Where a data-dependent index comes from, for the message when it is out of range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The layer whose index it is.
    pub layer: LayerId,
    /// The name of that operator's input.
    pub input: String,
}

impl Stage {
    /// Whether it writes every element of its target once, each at the point of the same indices.
    fn is_identity(&self, nest: &Nest) -> bool {
        let is_axis = |(i, a): (&Scalar, &Axis)| i.is_axis(a.id);
        let extents = self.domain.iter().map(|a| a.extent);
        self.at.len() == self.domain.len()
            && self.at.iter().zip(&self.domain).all(is_axis)
            && extents.eq(nest.buf(self.target).shape.iter().copied())
    }

    /// Whether it sets every element of its target, and takes no turns.
    pub(crate) fn sets_all(&self, nest: &Nest) -> bool {
        self.mode == Mode::Set && self.group.is_none() && self.is_identity(nest)
    }

    /// Whether it sets every element of a temporary, and takes no turns. If nothing else writes that, loads
    /// of it may be replaced by its value.
    pub(crate) fn is_definition(&self, nest: &Nest) -> bool {
        nest.buf(self.target).role == Role::Temporary && self.sets_all(nest)
    }
}

impl Nest {
    /// An empty nest.
    pub fn new() -> Nest {
        Nest::default()
    }

    /// The end of the run of stages that take turns with the one at `start`, or just after that one.
    pub fn group_end(&self, start: usize) -> usize {
        let group = self.stages[start].group;
        let rest = self.stages[start + 1..].iter();
        let more = rest.take_while(|s| group.is_some() && s.group == group);
        start + 1 + more.count()
    }

    /// Adds a buffer. A name that is taken gets a number.
    pub fn buffer(
        &mut self,
        name: &str,
        ty: ElementType,
        shape: &[impl Into<Extent> + Copy],
        role: Role,
    ) -> BufferId {
        let id = BufferId(self.buffers.len() as u32);
        let name = self.free_name(name);
        self.buffers.push(Buffer {
            name,
            ty,
            shape: extents(shape),
            role,
        });
        id
    }

    /// Whether there are extents that have symbols.
    pub fn is_symbolic(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// Adds a table of constants: one dim, element `k` being `values[k]`.
    pub fn table(&mut self, name: &str, ty: ElementType, count: usize, bytes: &[u8]) -> BufferId {
        debug_assert_eq!(ty.byte_len(count), Some(bytes.len()), "table `{name}`");
        self.buffer(name, ty, &[count], Role::Table(bytes.into()))
    }

    /// Adds a layer.
    pub fn layer(&mut self, name: &str, op: &str) -> LayerId {
        self.layers.push(Layer {
            name: name.to_owned(),
            op: op.to_owned(),
        });
        LayerId(self.layers.len() as u32 - 1)
    }

    /// A fresh axis of `extent` points.
    pub fn axis(&mut self, extent: impl Into<Extent>) -> Axis {
        let (id, extent) = (AxisId(self.next_axis), extent.into());
        self.next_axis += 1;
        Axis { id, extent }
    }

    /// Fresh axes over a shape.
    pub fn axes(&mut self, shape: &[impl Into<Extent> + Copy]) -> Vec<Axis> {
        shape.iter().map(|&n| self.axis(n)).collect()
    }

    /// The buffer behind an id.
    pub fn buf(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// `buffer[at]`.
    pub fn load(&self, buffer: BufferId, at: Vec<Scalar>) -> Scalar {
        let b = self.buf(buffer);
        debug_assert_eq!(b.shape.len(), at.len(), "rank of `{}`", b.name);
        Scalar::load(buffer, at, b.ty)
    }

    /// An index that depends on data: in range by its policy, or a fault at `site`.
    /// `position` are the coordinates of the index in the tensor of indices, for the message.
    pub fn wrap(
        &mut self,
        index: Scalar,
        extent: impl Into<Extent>,
        policy: Policy,
        site: Site,
        position: Vec<Scalar>,
    ) -> Scalar {
        let known = self.sites.iter().position(|s| *s == site);
        let id = SiteId(known.unwrap_or(self.sites.len()) as u32);
        if known.is_none() {
            self.sites.push(site);
        }
        Scalar::wrap(Wrap {
            index,
            extent: extent.into(),
            policy,
            site: id,
            position,
        })
    }

    /// Appends `target[at over its whole shape] = value(at)`.
    pub fn define(
        &mut self,
        layers: Vec<LayerId>,
        target: BufferId,
        value: impl FnOnce(&mut Nest, &[Scalar]) -> Scalar,
    ) {
        let (domain, at) = self.points_of(target);
        let value = value(self, &at);
        self.stages.push(Stage {
            domain,
            target,
            at,
            mode: Mode::Set,
            value,
            layers,
            group: None,
        });
    }

    /// New axes over the whole shape of a buffer, and the index of each point.
    fn points_of(&mut self, buffer: BufferId) -> (Vec<Axis>, Vec<Scalar>) {
        let domain = self.axes(&self.buf(buffer).shape.clone());
        let at = domain.iter().map(|a| Scalar::axis(a.id)).collect();
        (domain, at)
    }

    /// The id of a layer equal to `layer`, added if there is none.
    pub(crate) fn adopt(&mut self, layer: &Layer) -> LayerId {
        match self.layers.iter().position(|l| l == layer) {
            Some(known) => LayerId(known as u32),
            None => self.layer(&layer.name, &layer.op),
        }
    }

    /// `name`, or `name` with the number of the buffer if that is taken.
    fn free_name(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        let mut number = self.buffers.len();
        while !self.names.insert(free.clone()) {
            free = format!("{name}.{number}");
            number += 1;
        }
        free
    }
}

impl Nest {
    /// Puts a constant in place of every load of a buffer, in the stages of a range, and of what is then known to be an index in range.
    pub fn replace_loads(&mut self, range: RangeFrom<usize>, by: &FxHashMap<BufferId, Scalar>) {
        for stage in &mut self.stages[range] {
            rewrite_those(stage, Scalar::loads, &mut |x| match x.kind() {
                Kind::Load { buffer, .. } => by.get(buffer).cloned().unwrap_or(x),
                Kind::Wrap(wrap) => wrap.known().unwrap_or(x),
                _ => x,
            });
        }
    }

    /// Takes away the buffers from `length` on, which no stage may use.
    pub fn truncate_buffers(&mut self, length: usize) {
        for buffer in self.buffers.drain(length..) {
            self.names.remove(&buffer.name);
        }
    }
}

/// Elements between neighbours along each dim of a row-major `shape`.
///
/// Saturates, which is harmless: only an empty tensor has strides that overflow.
pub fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d].saturating_mul(shape[d]);
    }
    strides
}
