//! The program of a stage: a flat list of nodes, each after those it needs.

use super::InterpretError;
use crate::ir::{Binary, Policy, SiteId, Unary};
use vinelift_tensor::ElementType;

/// Index of a node.
pub(super) type Id = u32;

/// A stage, ready to run.
pub(super) struct Program {
    pub(super) nodes: Vec<Node>,
    /// One more than the number of axes.
    pub(super) levels: usize,
    pub(super) domain: Box<[Loop]>,
    pub(super) target: usize,
    pub(super) ty: ElementType,
    pub(super) combine: Option<Binary>,
    pub(super) at: Box<[Id]>,
    /// The nodes to evaluate for the indices, in order.
    pub(super) at_steps: Box<[Id]>,
    pub(super) value: Id,
    /// The nodes to evaluate for the value, in order.
    pub(super) value_steps: Box<[Id]>,
}

pub(super) struct Node {
    pub(super) op: Op,
    /// Its value holds until the axis of this level (1 is the outermost of the domain), or one
    /// further out, steps. Level 0 holds throughout the stage.
    pub(super) level: u32,
    /// Evaluating it and all it depends on cannot be observed.
    pub(super) pure: bool,
}

pub(super) enum Op {
    /// An axis or a constant, whose value is set and not computed.
    Given(u64),
    Load {
        buffer: usize,
        at: Box<[Id]>,
    },
    Unary(Unary, ElementType, Id),
    Binary(Binary, ElementType, Id, Id),
    /// A sum, and the factors of its term.
    Sum(ElementType, [Id; 3]),
    Cast {
        from: ElementType,
        to: ElementType,
        x: Id,
    },
    Select(Id, Id, Id),
    Reduce(Fold),
    Wrap(Index),
}

/// A fold of `body` over all points of the axes.
pub(super) struct Fold {
    pub(super) op: Binary,
    pub(super) ty: ElementType,
    pub(super) axes: Box<[Loop]>,
    pub(super) init: Id,
    pub(super) body: Id,
    /// The factors, if the body is a term.
    pub(super) term: Option<(Id, Id)>,
    /// The ends of its [bounds](crate::FoldBounds), if it has them; else its axes are visited from their beginnings, and to their
    /// ends.
    pub(super) bounds: [Option<Id>; 2],
    /// The nodes to evaluate at each point, in order.
    pub(super) steps: Box<[Id]>,
}

/// An index that is checked.
pub(super) struct Index {
    pub(super) index: Id,
    pub(super) ty: ElementType,
    pub(super) extent: usize,
    pub(super) policy: Policy,
    pub(super) site: SiteId,
    pub(super) position: Box<[Id]>,
}

/// An axis that steps.
pub(super) struct Loop {
    pub(super) node: Id,
    pub(super) level: usize,
    pub(super) extent: usize,
}

impl Program {
    /// Whether the value of a node, of which none is given, depends on some of the innermost axes of the domain.
    pub(super) fn varies(&self, n: Id, inner: &[Loop]) -> bool {
        let level = self.nodes[n as usize].level as usize;
        inner.first().is_some_and(|axis| level >= axis.level)
    }
}

impl Op {
    /// Calls `f` with all that has to be known before the node itself can be.
    pub(super) fn for_each_needed(&self, nodes: &[Node], mut f: impl FnMut(Id)) {
        match self {
            Op::Given(_) => {}
            Op::Load { at, .. } => at.iter().copied().for_each(f),
            Op::Unary(_, _, x) | Op::Cast { x, .. } | Op::Wrap(Index { index: x, .. }) => f(*x),
            Op::Binary(_, _, x, y) => [*x, *y].into_iter().for_each(f),
            Op::Sum(_, operands) => operands.iter().copied().for_each(f),
            Op::Select(condition, yes, no) => {
                f(*condition);
                // A side that cannot fail is a blend.
                [*yes, *no]
                    .into_iter()
                    .filter(|&side| nodes[side as usize].pure)
                    .for_each(f);
            }
            Op::Reduce(fold) => {
                f(fold.init);
                fold.bounds.into_iter().flatten().for_each(f);
            }
        }
    }
}

/// An error of the nest.
pub(super) fn malformed(what: impl Into<String>) -> InterpretError {
    InterpretError::Malformed(what.into())
}
