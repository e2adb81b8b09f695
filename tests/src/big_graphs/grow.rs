//! Grows a graph step by step. A step knows the shapes of what it adds from the operators' specifications.

use super::case::{Batch, Case, Kind, Node, Port};
use super::choices::Choices;
use super::fill::Fill;
use super::steps::{ALL, FAMILIES, Family, HUGE};
use vinelift::ElementType;

/// How many bytes the tensors of a graph have at most; those of one in ten have more.
const MOST: usize = 4 << 20;
const MOST_HUGE: usize = 24 << 20;
/// How many bytes they should have.
const LEAST: usize = 50 << 10;
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
    /// What later nodes may use.
    pub(crate) values: Vec<Value>,
    pub(crate) sinks: Vec<usize>,
    /// Extents that appear again and again, so that tensors fit each other.
    pub(crate) dims: Vec<usize>,
    pub(crate) batch: Option<Batch>,
    /// The most bytes of a tensor.
    pub(crate) most: usize,
    /// Whether it is a graph inside of a node, which has no inputs but those of that node.
    pub(crate) inside: bool,
    huge: bool,
    special: bool,
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
            self.work,
        );
        let done = step(self).is_some();
        if !done {
            self.nodes.truncate(before.0);
            self.values.truncate(before.1);
            self.sinks.truncate(before.2);
            self.work = before.3;
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
        results.extend(inner.into_iter().filter(|_| self.choices.chance(15)));
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

    // Inputs and constants.

    pub(crate) fn parameter(&mut self, ty: ElementType, shape: &[usize]) -> Value {
        let fill = match ty {
            ElementType::F32 if self.special => Fill::Special {
                nan: self.choices.chance(30),
            },
            ty if ty.is_float() => Fill::Numbers(1.0),
            ElementType::U8 => Fill::Integers { low: 0, high: 255 },
            ElementType::U4 => Fill::Integers { low: 0, high: 15 },
            ElementType::I4 => Fill::Integers { low: -8, high: 7 },
            ElementType::Boolean => Fill::Integers { low: 0, high: 1 },
            _ => Fill::Integers { low: -40, high: 40 },
        };
        let value = self.filled(ty, shape, fill);
        self.values.push(value.clone());
        value
    }

    /// An input that nothing else uses.
    pub(crate) fn filled(&mut self, ty: ElementType, shape: &[usize], fill: Fill) -> Value {
        self.source(Kind::Parameter(fill), ty, shape)
    }

    pub(crate) fn constant(&mut self, ty: ElementType, shape: &[usize], fill: Fill) -> Value {
        let seed = self.choices.seed();
        self.source(Kind::Constant(fill, seed), ty, shape)
    }

    fn source(&mut self, kind: Kind, ty: ElementType, shape: &[usize]) -> Value {
        let node = self.nodes.len();
        let bound = match &kind {
            Kind::Constant(Fill::Numbers(scale), _) => 2.0 * scale,
            _ if ty.is_float() => 2.0,
            _ => 255.0,
        };
        self.nodes.push(Node {
            kind,
            inputs: Vec::new(),
            outputs: vec![(ty, shape.to_vec())],
        });
        Value {
            port: Port { node, output: 0 },
            ty,
            shape: shape.to_vec(),
            bound,
        }
    }

    pub(crate) fn scalar(&mut self, ty: ElementType, number: f64) -> Value {
        self.constant(ty, &[], Fill::Exactly(vec![number]))
            .bounded(number.abs())
    }

    pub(crate) fn list(&mut self, numbers: &[i64]) -> Value {
        let exactly = numbers.iter().map(|&n| n as f64).collect();
        self.constant(ElementType::I64, &[numbers.len()], Fill::Exactly(exactly))
    }

    pub(crate) fn axes(&mut self, axes: &[usize]) -> Value {
        let axes: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
        self.list(&axes)
    }

    pub(crate) fn number(&mut self, number: usize) -> Value {
        self.scalar(ElementType::I64, number as f64)
    }

    /// Weights of a contraction over `length` numbers.
    pub(crate) fn weights(&mut self, ty: ElementType, shape: &[usize], length: usize) -> Value {
        let scale = 1.0 / (length.max(1) as f64).sqrt();
        self.constant(ty, shape, Fill::Numbers(scale))
    }

    // Choices.

    /// A shape of large tensors.
    pub(crate) fn shape(&mut self, least_rank: usize, most_rank: usize) -> Vec<usize> {
        const SMALL: [usize; 8] = [1, 2, 3, 4, 7, 8, 12, 16];
        let most = self.most / 8;
        let least = if self.huge { self.most / 80 } else { LEAST / 4 };
        for _ in 0..40 {
            let rank = self
                .choices
                .of(&[1, 2, 2, 2, 3, 3, 4])
                .clamp(least_rank, most_rank);
            let mut shape = if rank == 1 {
                vec![self.choices.within(least, most)]
            } else if rank == 4 && self.choices.chance(60) {
                let height = self.choices.of(&[7, 14, 15, 28, 31, 32, 56]);
                let channels = self.choices.of(&[3, 8, 16, 24, 32, 33, 64]);
                let width = self.choices.of(&[height, height, height + 1, 17]);
                vec![self.choices.of(&[1, 1, 2, 3]), channels, height, width]
            } else {
                let few = (2..rank)
                    .map(|_| self.choices.of(&SMALL))
                    .collect::<Vec<_>>();
                [
                    few,
                    vec![self.choices.of(&self.dims), self.choices.of(&self.dims)],
                ]
                .concat()
            };
            if let Some(batch) = self.batch {
                shape[0] = batch.extent;
            }
            if (least..=most).contains(&shape.iter().product()) {
                return shape;
            }
        }
        let rows = self.batch.map_or(128, |batch| batch.extent);
        match (least_rank, self.huge) {
            (..=2, true) => vec![1500, 1024],
            (3.., true) => [vec![2; least_rank - 2], vec![1024, 500]].concat(),
            (..=2, _) if most_rank == 1 => vec![20_000],
            (..=2, _) => vec![rows, 300],
            (rank, _) => [vec![rows.min(38)], vec![2; rank - 3], vec![24, 60]].concat(),
        }
    }

    pub(crate) fn axis(&mut self, value: &Value) -> usize {
        self.choices.below(value.rank())
    }

    /// Whether the first of these dims changes from inference to inference.
    pub(crate) fn is_batched(&self, shape: &[usize]) -> bool {
        self.batch
            .is_some_and(|batch| shape.first() == Some(&batch.extent))
    }

    /// A value of one of these types, and with so many dims; one of the newest more often than not.
    pub(crate) fn pick(
        &mut self,
        types: &[ElementType],
        ranks: std::ops::RangeInclusive<usize>,
    ) -> Option<Value> {
        let fits = |v: &&Value| {
            types.contains(&v.ty)
                && ranks.contains(&v.rank())
                && v.bytes() >= 8 << 10
                && v.bytes() <= self.most
        };
        let found: Vec<Value> = self.values.iter().filter(fits).cloned().collect();
        if found.is_empty() || self.choices.chance(4) {
            let shape = self.shape(*ranks.start(), *ranks.end());
            let ty = self.choices.of(types);
            let fits = ranks.contains(&shape.len());
            return fits.then(|| self.parameter(ty, &shape));
        }
        let newest = if self.choices.chance(60) {
            found.len().saturating_sub(3)
        } else {
            0
        };
        let at = self.choices.within(newest, found.len() - 1);
        Some(found[at].clone())
    }

    /// One of the values that `fits`.
    pub(crate) fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let found: Vec<&Value> = self.values.iter().filter(|v| fits(v)).collect();
        let at = self.choices.below(found.len());
        found.get(at).map(|v| (*v).clone())
    }

    /// Usually f32.
    pub(crate) fn float(&mut self) -> &'static [ElementType] {
        use ElementType::{BF16, F16, F32, F64};
        if self.choices.chance(12) {
            &[F32, F16, BF16, F64]
        } else {
            &[F32]
        }
    }

    /// Usually f32, or one of `others`.
    pub(crate) fn any_of(&mut self, others: &'static [ElementType]) -> &'static [ElementType] {
        if self.choices.chance(25) {
            others
        } else {
            &[ElementType::F32]
        }
    }

    /// A value of the type and shape of `value`.
    pub(crate) fn like(&mut self, value: &Value) -> Value {
        let alike = |v: &Value| v.ty == value.ty && v.shape == value.shape && v.port != value.port;
        match self.find(alike) {
            Some(found) if self.choices.chance(80) => found,
            _ => self.parameter(value.ty, &value.shape),
        }
    }

    /// A value of this type and shape, which may be a part of a larger one.
    pub(crate) fn up_to(&mut self, shape: &[usize], ty: ElementType) -> Option<Value> {
        if let Some(found) = self.find(|v| v.ty == ty && v.shape == shape)
            && self.choices.chance(80)
        {
            return Some(found);
        }
        let larger = |v: &Value| {
            let covers = v.shape.iter().zip(shape).all(|(a, b)| a >= b);
            v.ty == ty && v.rank() == shape.len() && covers
        };
        if let Some(found) = self.find(larger)
            && self.choices.chance(60)
        {
            let cut = |a: &usize| found.shape[*a] != shape[*a];
            let axes: Vec<usize> = (0..shape.len()).filter(cut).collect();
            let stop: Vec<i64> = axes.iter().map(|&a| shape[a] as i64).collect();
            let [start, step] = [0, 1].map(|n| self.list(&vec![n; axes.len()]));
            let (stop, axes) = (self.list(&stop), self.axes(&axes));
            return self.one(
                "Slice",
                "opset8",
                "",
                &[&found, &start, &stop, &step, &axes],
                shape,
            );
        }
        let count: usize = shape.iter().product();
        if let Some(found) = self.find(|v| v.ty == ty && v.elements() == count)
            && self.batch.is_none()
            && self.choices.chance(80)
        {
            let to = self.axes(shape);
            return self.one(
                "Reshape",
                "opset1",
                "special_zero=\"false\"",
                &[&found, &to],
                shape,
            );
        }
        Some(self.parameter(ty, shape))
    }

    /// A value that broadcasts with `value`, and the shape that both have then.
    pub(crate) fn partner(&mut self, value: &Value) -> Option<(Value, Vec<usize>)> {
        let most = self.most;
        let fits = |v: &Value| {
            let shape = broadcast(&v.shape, &value.shape);
            v.ty == value.ty && shape.is_some_and(|s| s.iter().product::<usize>() * 4 <= most)
        };
        let found = self.find(fits).filter(|_| self.choices.chance(70));
        let partner = found.unwrap_or_else(|| {
            let rank = value.rank();
            let skip = self.choices.below(rank + 1);
            let mut shape = value.shape.clone();
            for extent in &mut shape {
                *extent = if self.choices.chance(60) { *extent } else { 1 };
            }
            shape.drain(..skip);
            if self.is_batched(&shape) || self.choices.chance(30) {
                return self.parameter(value.ty, &shape);
            }
            let fill = match value.ty {
                ty if ty.is_float() => Fill::Numbers(1.5),
                ElementType::Boolean => Fill::Integers { low: 0, high: 1 },
                _ => Fill::Integers { low: 1, high: 8 },
            };
            self.constant(value.ty, &shape, fill)
        });
        let shape = broadcast(&partner.shape, &value.shape)?;
        Some((partner, shape))
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
