//! Stages: one assignment over a domain.

use crate::ir::{Axis, Binary, BufferId, Kind, LayerId, Scalar};
use vinelift_tensor::Extent;

/// For every point of `domain`, in row-major order: `target[at] mode= value`.
///
/// A stage may read its own target: it then sees what earlier points have written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stage {
    /// The axes, outermost first.
    pub domain: Vec<Axis>,
    /// The buffer written.
    pub target: BufferId,
    /// One index (`i64`) for each dim of the target.
    pub at: Vec<Scalar>,
    /// How the value meets what is there.
    pub mode: Mode,
    /// The value at each point, of the target's element type.
    pub value: Scalar,
    /// The layers that this stage computes, its own first.
    pub layers: Vec<LayerId>,
    /// Stages that follow each other and have the same number take turns: at each point of the
    /// outermost axis, which is equally long for all of them, one runs after the other.
    pub group: Option<u32>,
}

impl Stage {
    /// Points of its outermost axis.
    pub fn turns(&self) -> usize {
        self.domain.first().map_or(1, |axis| axis.extent.example())
    }

    /// Whether there is a data-dependent index in it.
    pub(crate) fn wraps(&self) -> bool {
        self.value.wraps() || self.at.iter().any(Scalar::wraps)
    }

    /// Whether there is a select in it.
    pub(crate) fn selects(&self) -> bool {
        self.value.selects() || self.at.iter().any(Scalar::selects)
    }

    /// Whether its points may be computed in any order, and from a copy of what they read. Where several may fault, the first
    /// does.
    pub(crate) fn is_unordered(&self) -> bool {
        let stands_alone = self.mode == Mode::Set && self.group.is_none() && !self.wraps();
        stands_alone && !self.loads().contains(&self.target)
    }

    /// Whether the points are the elements of a target of this shape, in order.
    pub(crate) fn covers(&self, shape: &[Extent]) -> bool {
        let mut axes = self.domain.iter().filter(|axis| axis.extent != 1);
        let dims = self
            .at
            .iter()
            .zip(shape)
            .all(|(index, &n)| match index.kind() {
                Kind::Axis(id) if n == 1 => {
                    self.domain.iter().any(|a| a.id == *id && a.extent == 1)
                }
                Kind::Axis(id) => axes.next().is_some_and(|a| a.id == *id && a.extent == n),
                _ => n == 1 && index.as_index() == Some(0),
            });
        dims && axes.next().is_none()
    }

    /// The position of the first axis that is the stage's own: stages that take turns share the outermost one.
    pub fn first_inner(&self) -> usize {
        usize::from(self.group.is_some())
    }

    /// Its outermost loop of more than one point, if it has any.
    pub(crate) fn outermost(&self) -> Option<Axis> {
        self.domain.iter().find(|axis| axis.extent > 1).copied()
    }
}

/// How a stage's value meets what its target holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// `target[at] = value`
    Set,
    /// `target[at] = target[at] op value`
    Combine(Binary),
}
