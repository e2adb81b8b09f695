//! Flattens a stage into its program.

use super::analyze::{Needed, check_nesting, set_levels, set_steps};
use super::program::{Fold, Id, Index, Loop, Node, Op, Program, malformed};
use super::{InterpretError, arith};
use crate::ir::{
    Axis, AxisId, Binary, BufferId, FoldBounds, Kind, Mode, Nest, Scalar, Stage, Wrap,
};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType;

/// The program of a stage.
///
/// # Errors
/// If the stage is one that [`verify`](crate::verify) would refuse.
pub(super) fn compile(nest: &Nest, stage: &Stage) -> Result<Program, InterpretError> {
    let target = nest.buffers.get(stage.target.0 as usize);
    let target = target.ok_or_else(|| malformed("a stage writes no buffer of the nest"))?;
    if stage.at.len() != target.shape.len() || stage.value.ty() != target.ty {
        return Err(malformed(format!(
            "a stage does not fit its target `{}`",
            target.name
        )));
    }
    let combine = match stage.mode {
        Mode::Set => None,
        Mode::Combine(op) => Some(op),
    };
    if let Some(op) = combine {
        check_fold(op, target.ty)?;
    }
    let mut flat = Flattener::new(nest);
    let domain = flat.bind(&stage.domain)?;
    for root in stage.at.iter().chain([&stage.value]) {
        flat.visit(root)?;
    }
    let at: Box<[Id]> = stage.at.iter().map(|index| flat.id(index)).collect();
    let value = flat.id(&stage.value);
    let target = stage.target.0 as usize;
    let levels = flat.axes + 1;
    let mut nodes = flat.nodes;
    set_levels(&mut nodes, levels - 1, target, domain.len());
    check_nesting(&nodes)?;
    set_steps(&mut nodes);
    let mut needed = Needed::new(nodes.len());
    Ok(Program {
        at_steps: needed.steps(&nodes, &at),
        value_steps: needed.steps(&nodes, &[value]),
        nodes,
        levels,
        domain,
        target,
        ty: stage.value.ty(),
        combine,
        at,
        value,
    })
}

/// Puts the sub-expressions of scalars into a list, shared ones once.
struct Flattener<'n> {
    nest: &'n Nest,
    nodes: Vec<Node>,
    known: FxHashMap<usize, Id>,
    bound: FxHashMap<AxisId, Id>,
    /// The extents of the nodes that are axes.
    extents: FxHashMap<Id, usize>,
    axes: usize,
}

enum Visit<'s> {
    Enter(&'s Scalar),
    Leave(&'s Scalar),
}

impl<'n> Flattener<'n> {
    fn new(nest: &'n Nest) -> Flattener<'n> {
        Flattener {
            nest,
            nodes: vec![],
            known: FxHashMap::default(),
            bound: FxHashMap::default(),
            extents: FxHashMap::default(),
            axes: 0,
        }
    }

    /// Nodes for axes, on levels further in than all that are bound already.
    fn bind(&mut self, axes: &[Axis]) -> Result<Box<[Loop]>, InterpretError> {
        let bind = |axis: &Axis| {
            self.axes += 1;
            let node = self.push(Op::Given(0), true);
            self.nodes[node as usize].level = self.axes as u32;
            self.extents.insert(node, axis.extent.example());
            match self.bound.insert(axis.id, node) {
                None => Ok(Loop {
                    node,
                    level: self.axes,
                    extent: axis.extent.example(),
                }),
                Some(_) => Err(malformed(format!("axis {} is bound twice", axis.id.0))),
            }
        };
        axes.iter().map(bind).collect()
    }

    fn push(&mut self, op: Op, pure: bool) -> Id {
        self.nodes.push(Node { op, level: 0, pure });
        self.nodes.len() as Id - 1
    }

    fn visit(&mut self, root: &Scalar) -> Result<(), InterpretError> {
        let mut stack = vec![Visit::Enter(root)];
        let mut loops: FxHashMap<usize, Box<[Loop]>> = FxHashMap::default();
        while let Some(visit) = stack.pop() {
            match visit {
                Visit::Enter(scalar) => {
                    if self.known.contains_key(&scalar.address()) {
                        continue;
                    }
                    if let Kind::Reduce { axes, .. } = scalar.kind() {
                        loops.insert(scalar.address(), self.bind(axes)?);
                    }
                    stack.push(Visit::Leave(scalar));
                    // The first child on top: where several indices are wrong, the first is told.
                    let start = stack.len();
                    stack.extend(scalar.children().map(Visit::Enter));
                    stack[start..].reverse();
                }
                Visit::Leave(scalar) => {
                    let loops = loops.remove(&scalar.address()).unwrap_or_default();
                    let id = self.node(scalar, loops)?;
                    self.known.insert(scalar.address(), id);
                }
            }
        }
        Ok(())
    }

    fn id(&self, scalar: &Scalar) -> Id {
        self.known[&scalar.address()]
    }

    /// The node of a scalar whose children have theirs.
    fn node(&mut self, scalar: &Scalar, loops: Box<[Loop]>) -> Result<Id, InterpretError> {
        let ty = scalar.ty();
        let indexes = matches!(scalar.kind(), Kind::Load { .. });
        if !indexes && scalar.children().any(Scalar::reads_zero) {
            return Err(malformed(
                "a wrap that reads zero is no index of a load or store",
            ));
        }
        let op = match scalar.kind() {
            Kind::Const(bits) => Op::Given(bits.0),
            Kind::Extent(extent) => Op::Given(extent.example() as u64),
            Kind::Axis(id) => {
                let known = self.bound.get(id).copied();
                return known.ok_or_else(|| malformed(format!("axis {} is not bound", id.0)));
            }
            Kind::Load { buffer, at } => self.load(*buffer, at, ty)?,
            Kind::Unary(op, x) => {
                if !arith::has_unary(*op, ty) {
                    return Err(malformed(format!("{op:?} of {ty}")));
                }
                Op::Unary(*op, ty, self.id(x))
            }
            Kind::Binary(op, x, y) => {
                if !arith::has_binary(*op, x.ty()) || x.ty() != y.ty() {
                    return Err(malformed(format!("{op:?} of {} and {}", x.ty(), y.ty())));
                }
                match scalar.as_sum() {
                    Some(operands) => Op::Sum(ty, operands.map(|x| self.id(x))),
                    None => Op::Binary(*op, x.ty(), self.id(x), self.id(y)),
                }
            }
            Kind::Select(condition, yes, no) => {
                Op::Select(self.id(condition), self.id(yes), self.id(no))
            }
            Kind::Cast(x) => self.cast(x, ty)?,
            Kind::Bitcast(x) if ty == ElementType::Boolean => Op::Cast {
                from: ElementType::U8,
                to: ty,
                x: self.id(x),
            },
            Kind::Bitcast(x) => return Ok(self.id(x)),
            Kind::Reduce { op, init, body, .. } => {
                check_fold(*op, ty)?;
                let bounds = FoldBounds::of(scalar);
                let bounds = bounds.map_or([None; 2], |bounds| [bounds.begin, bounds.end]);
                Op::Reduce(Fold {
                    op: *op,
                    ty,
                    axes: loops,
                    init: self.id(init),
                    body: self.id(body),
                    term: body.as_term().map(|(x, y)| (self.id(x), self.id(y))),
                    bounds: bounds.map(|end| end.map(|x| self.id(x))),
                    steps: Box::default(),
                })
            }
            Kind::Wrap(w) => self.wrap(w)?,
        };
        let pure = self.is_pure(&op);
        Ok(self.push(op, pure))
    }

    fn load(&self, buffer: BufferId, at: &[Scalar], ty: ElementType) -> Result<Op, InterpretError> {
        let buffer = buffer.0 as usize;
        let found = self.nest.buffers.get(buffer);
        if found.is_none_or(|b| b.ty != ty || b.shape.len() != at.len()) {
            return Err(malformed(format!("a load does not fit buffer {buffer}")));
        }
        let at = at.iter().map(|index| self.id(index)).collect();
        Ok(Op::Load { buffer, at })
    }

    fn cast(&self, x: &Scalar, to: ElementType) -> Result<Op, InterpretError> {
        let from = x.ty();
        let halves = [ElementType::F16, ElementType::F32];
        let are = |known: &dyn Fn(ElementType) -> bool| known(from) && known(to);
        if !(are(&castable) || are(&|ty| halves.contains(&ty))) {
            return Err(malformed(format!("cast from {from} to {to}")));
        }
        let x = self.id(x);
        Ok(Op::Cast { from, to, x })
    }

    fn wrap(&self, w: &Wrap) -> Result<Op, InterpretError> {
        let ty = w.index.ty();
        if !ty.is_integer() {
            return Err(malformed(format!("an index of type {ty}")));
        }
        Ok(Op::Wrap(Index {
            index: self.id(&w.index),
            ty,
            extent: w.extent.example(),
            policy: w.policy,
            site: w.site,
            position: w.position.iter().map(|p| self.id(p)).collect(),
        }))
    }

    /// Whether evaluating `op` and all it depends on cannot be observed.
    fn is_pure(&self, op: &Op) -> bool {
        let is_pure = |x: Id| self.nodes[x as usize].pure;
        match op {
            Op::Load { buffer, at } => {
                let shape = &self.nest.buffers[*buffer].shape;
                let mut indices = at.iter().zip(shape);
                indices.all(|(&index, &extent)| self.is_inside(index, extent.example()))
            }
            Op::Reduce(_) | Op::Wrap(_) => false,
            Op::Select(condition, yes, no) => [condition, yes, no].into_iter().all(|&x| is_pure(x)),
            op => {
                let mut pure = true;
                op.for_each_needed(&self.nodes, |x| pure &= is_pure(x));
                pure
            }
        }
    }

    /// Whether an index is a constant or an axis that stays in a dim.
    fn is_inside(&self, index: Id, extent: usize) -> bool {
        match (self.extents.get(&index), &self.nodes[index as usize].op) {
            (Some(&axis), _) => axis <= extent,
            (None, Op::Given(value)) => *value < extent as u64,
            _ => false,
        }
    }
}

fn check_fold(op: Binary, ty: ElementType) -> Result<(), InterpretError> {
    match arith::has_binary(op, ty) && (!op.is_comparison() || ty == ElementType::Boolean) {
        true => Ok(()),
        false => Err(malformed(format!("folding {ty} with {op:?}"))),
    }
}

/// Whether casts from and to `ty` are primitive.
pub(super) fn castable(ty: ElementType) -> bool {
    use ElementType::*;
    ty.is_integer() || matches!(ty, Boolean | F32 | F64)
}
