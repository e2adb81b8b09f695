//! Grows a graph step by step. A step knows the shapes of what it adds from the operators' specifications.

use super::case::{Batch, Case, Kind, Node, Port};
use super::choices::Choices;
use super::steps::{ALL, FAMILIES, Family, HUGE};
use vinelift::ElementType;

/// How many bytes the tensors of a graph have at most; those of one in ten have more.
const MOST: usize = 4 << 20;
const MOST_HUGE: usize = 24 << 20;
/// The most operations of one node, and of a graph.
const MOST_WORK: usize = 50_000_000;
const ALL_WORK: usize = 150_000_000;
/// Numbers that may be larger than this are made smaller, lest they become infinite later.
const MOST_BOUND: f64 = 3e3;

/// A tensor of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) port: Port,
    pub(crate) ty: ElementType,
    pub(crate) shape: Vec<usize>,
    /// About how large its numbers are.
    pub(crate) bound: f64,
}

impl Value {
    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    pub(crate) fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ty.byte_len(self.elements()).unwrap_or(usize::MAX)
    }

    pub(crate) fn bounded(self, bound: f64) -> Value {
        Value { bound, ..self }
    }

    /// The extents of the axis, counted from the last.
    pub(crate) fn last(&self, axis: usize) -> usize {
        self.shape[self.rank() - 1 - axis]
    }

    pub(crate) fn is_float(&self) -> bool {
        self.ty.is_float()
    }
}

/// A graph that grows.
pub(crate) struct Grow<'a> {
    pub(crate) choices: &'a mut Choices,
    pub(crate) nodes: Vec<Node>,
    /// The values that later nodes may use.
    pub(crate) values: Vec<Value>,
    pub(crate) sinks: Vec<usize>,
    /// The values that are to be results although other nodes use them.
    pub(crate) shown: Vec<Port>,
    /// Extents that appear again and again, so that tensors fit each other.
    pub(crate) dims: Vec<usize>,
    pub(crate) batch: Option<Batch>,
    /// The most bytes of a tensor.
    pub(crate) most: usize,
    /// Whether it is a graph inside of a node, which has no inputs but those of that node.
    pub(crate) inside: bool,
    pub(crate) huge: bool,
    /// Whether inputs have numbers that are not like others.
    pub(crate) special: bool,
    work: usize,
}

/// The graph that these choices make.
pub fn grow(choices: &mut Choices) -> Case {
    let family = &FAMILIES[choices.below(FAMILIES.len())];
    let mut grow = Grow::new(choices, family);
    let (least, most) = if grow.huge { (2, 5) } else { (4, 20) };
    let wanted = grow.choices.within(least, most);
    // The first step is one of the family, as are some of the others.
    for _ in 0..40 {
        let step = grow.choices.of(family.steps);
        if grow.attempt(step) {
            break;
        }
    }
    for _ in 0..80 {
        if grow.operators() >= wanted {
            break;
        }
        let step = match grow.choices.below(3) {
            0 => grow.choices.of(family.steps),
            _ if grow.huge => grow.choices.of(HUGE),
            _ => grow.choices.of(ALL),
        };
        grow.attempt(step);
    }
    grow.finish(family.name)
}

/// Adds nodes, unless it finds nothing that it could add them to.
pub(crate) type Step = fn(&mut Grow<'_>) -> Option<()>;

impl Grow<'_> {
    fn new<'a>(choices: &'a mut Choices, family: &Family) -> Grow<'a> {
        const EXTENTS: [usize; 28] = [
            2, 3, 5, 8, 15, 16, 24, 31, 32, 33, 48, 64, 65, 96, 100, 127, 128, 160, 200, 255, 256,
            300, 384, 511, 512, 640, 768, 1000,
        ];
        const LARGE: [usize; 8] = [640, 1000, 1024, 1500, 2000, 2048, 3000, 4096];
        let huge = family.huge || choices.chance(5);
        let dims = match huge {
            true => (0..5).map(|_| choices.of(&LARGE)).collect(),
            false => (0..6).map(|_| choices.of(&EXTENTS)).collect(),
        };
        // Extents that nothing else has tell a batch from other dims.
        let batch = (family.batch || choices.chance(8) && !huge).then(|| Batch {
            extent: choices.of(&[6, 11, 19, 38]),
            second: choices.of(&[1, 2, 7, 22, 41]),
        });
        let special = choices.chance(6);
        let mut grow = Grow {
            choices,
            nodes: Vec::new(),
            values: Vec::new(),
            sinks: Vec::new(),
            shown: Vec::new(),
            dims,
            batch,
            most: if huge { MOST_HUGE } else { MOST },
            inside: false,
            huge,
            special,
            work: 0,
        };
        for _ in 0..grow.choices.within(1, 3) {
            let shape = grow.shape(1, 4);
            grow.parameter(ElementType::F32, &shape);
        }
        use ElementType::{BF16, Boolean, F16, F64, I8, I16, I32, I64, U8};
        for ty in [U8, I8, I16, I32, I64, F16, BF16, F64, Boolean] {
            if grow.choices.chance(if family.types { 35 } else { 6 }) {
                let shape = grow.shape(1, 4);
                grow.parameter(ty, &shape);
            }
        }
        grow
    }

    /// Whether a step could add something; the graph is as before if not.
    fn attempt(&mut self, step: Step) -> bool {
        let before = (
            self.nodes.len(),
            self.values.len(),
            self.sinks.len(),
            self.shown.len(),
            self.work,
        );
        let done = step(self).is_some();
        if !done {
            self.nodes.truncate(before.0);
            self.values.truncate(before.1);
            self.sinks.truncate(before.2);
            self.shown.truncate(before.3);
            self.work = before.4;
        }
        done
    }

    fn operators(&self) -> usize {
        let is_operator = |node: &&Node| matches!(node.kind, Kind::Operator { .. });
        self.nodes.iter().filter(is_operator).count()
    }

    /// The results are values that nothing uses, and some others.
    fn finish(mut self, family: &'static str) -> Case {
        let is_used = |port: Port| self.nodes.iter().any(|node| node.inputs.contains(&port));
        let computed = |v: &&Value| matches!(self.nodes[v.port.node].kind, Kind::Operator { .. });
        let made: Vec<Port> = self
            .values
            .iter()
            .filter(computed)
            .map(|v| v.port)
            .collect();
        let (inner, mut results): (Vec<Port>, Vec<Port>) = made.iter().partition(|p| is_used(**p));
        let most = self.choices.of(&[2, 3, 4, 10]);
        while results.len() > most {
            let drop = self.choices.below(results.len());
            results.remove(drop);
        }
        let shown = |port: &Port| self.shown.contains(port) || self.choices.chance(15);
        results.extend(inner.into_iter().filter(shown));
        if results.is_empty() {
            let x = self.values[0].clone();
            let tanh = self.one("Tanh", "opset1", "", &[&x], &x.shape);
            results.push(
                tanh.expect("the first input is no larger than allowed")
                    .port,
            );
        }
        Case {
            family,
            nodes: self.nodes,
            results,
            sinks: self.sinks,
            seed: self.choices.seed(),
            batch: self.batch,
            work: self.work,
        }
    }

    /// Adds a node and gives its outputs, unless one of them is too large or empty.
    pub(crate) fn node(
        &mut self,
        kind: Kind,
        inputs: &[&Value],
        outputs: &[(ElementType, &[usize])],
    ) -> Option<Vec<Value>> {
        let node = self.nodes.len();
        let bound = inputs.iter().map(|v| v.bound).fold(1.0, f64::max);
        let value = |(output, (ty, shape)): (usize, &(ElementType, &[usize]))| Value {
            port: Port { node, output },
            ty: *ty,
            shape: shape.to_vec(),
            bound,
        };
        let values: Vec<Value> = outputs.iter().enumerate().map(value).collect();
        let sizes = values.iter().map(Value::bytes);
        if !sizes
            .clone()
            .all(|bytes| (1..=2 * self.most).contains(&bytes))
        {
            return None;
        }
        self.charge(values.iter().map(Value::elements).sum())?;
        self.nodes.push(Node {
            kind,
            inputs: inputs.iter().map(|v| v.port).collect(),
            outputs: values.iter().map(|v| (v.ty, v.shape.clone())).collect(),
        });
        Some(values)
    }

    /// Adds an operator.
    pub(crate) fn several(
        &mut self,
        ty: &'static str,
        version: &'static str,
        attributes: impl Into<String>,
        inputs: &[&Value],
        outputs: &[(ElementType, &[usize])],
    ) -> Option<Vec<Value>> {
        let kind = Kind::Operator {
            ty,
            version,
            attributes: attributes.into(),
            bodies: Vec::new(),
        };
        self.node(kind, inputs, outputs)
    }

    /// Adds an operator with one output, of the type of its first input.
    pub(crate) fn one(
        &mut self,
        ty: &'static str,
        version: &'static str,
        attributes: impl Into<String>,
        inputs: &[&Value],
        shape: &[usize],
    ) -> Option<Value> {
        let outputs = [(inputs[0].ty, shape)];
        self.several(ty, version, attributes, inputs, &outputs)?
            .pop()
    }

    /// Has later nodes use `value`, made smaller if its numbers are large.
    pub(crate) fn keep(&mut self, value: Value) -> Option<Value> {
        let value = if value.is_float() && value.bound > MOST_BOUND {
            let scale = self.scalar(value.ty, 3.0 / value.bound);
            self.one("Multiply", "opset1", "", &[&value, &scale], &value.shape)?
                .bounded(4.0)
        } else {
            value
        };
        self.values.push(value.clone());
        Some(value)
    }

    /// Counts work, unless it is too much.
    pub(crate) fn charge(&mut self, work: usize) -> Option<()> {
        self.work += work;
        (work <= MOST_WORK && self.work <= ALL_WORK).then_some(())
    }

    /// The work counted so far.
    pub(crate) fn work(&self) -> usize {
        self.work
    }
}

/// The shape that both have, as NumPy broadcasts.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let extent =
        |shape: &[usize], k: usize| (k + shape.len()).checked_sub(rank).map_or(1, |k| shape[k]);
    (0..rank)
        .map(|k| match (extent(a, k), extent(b, k)) {
            (1, n) | (n, 1) => Some(n),
            (n, m) => (n == m).then_some(n),
        })
        .collect()
}

/// `shape` with another extent.
pub(crate) fn with(shape: &[usize], axis: usize, extent: usize) -> Vec<usize> {
    let mut shape = shape.to_vec();
    shape[axis] = extent;
    shape
}
