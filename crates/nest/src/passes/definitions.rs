//! The scalars that loads from temporaries and results can be replaced by.

use crate::ir::{Binary, BufferId, Definition, Kind, Nest, Role, Scalar, Stage};
use rustc_hash::FxHashMap;

/// The stages that are all that writes their buffers, which nothing writes again that they read. Those that may fault
/// are not among them: with one in it, no sum of products becomes a stage of its own.
pub(super) struct Definitions {
    stages: FxHashMap<BufferId, Stage>,
    /// The same of those that read what several stages write.
    others: FxHashMap<BufferId, Stage>,
}

impl Definitions {
    pub(super) fn of(nest: &Nest) -> Definitions {
        let mut writers: FxHashMap<BufferId, usize> = FxHashMap::default();
        for stage in &nest.stages {
            *writers.entry(stage.target).or_default() += 1;
        }
        let once = |b: &BufferId| match nest.buf(*b).role {
            // A pass rewrites a product in the same way whether or not the model returns an operand as a result.
            Role::Temporary | Role::Output => writers.get(b) == Some(&1),
            _ => !writers.contains_key(b),
        };
        let is_only =
            |stage: &&Stage| once(&stage.target) && stage.sets_all(nest) && !stage.may_fault();
        let stages = nest.stages.iter().filter(is_only);
        let (stages, others) = stages
            .map(|stage| (stage.target, stage.clone()))
            .partition(|(_, stage)| stage.loads().iter().all(once));
        Definitions { stages, others }
    }

    /// The stage that defines a buffer.
    pub(super) fn get(&self, buffer: &BufferId) -> Option<&Stage> {
        self.stages.get(buffer)
    }

    /// The stage that is all that writes a buffer. What it reads may be written again.
    pub(super) fn writer(&self, buffer: &BufferId) -> Option<&Stage> {
        self.get(buffer).or_else(|| self.others.get(buffer))
    }

    /// `x` with the values of the conversions, differences, products and moves that it loads, through at most `depth` buffers
    /// one after the other.
    pub(super) fn expanded(&self, nest: &mut Nest, x: &Scalar, depth: usize) -> Scalar {
        match x.kind() {
            Kind::Load { buffer, at } => match self.get(buffer) {
                Some(stage) if depth > 0 && is_elementwise(&stage.value) => {
                    let value = Definition::of(stage).instantiate(nest, at);
                    self.expanded(nest, &value, depth - 1)
                }
                _ => x.clone(),
            },
            Kind::Cast(_) | Kind::Binary(Binary::Mul | Binary::Sub, ..) => {
                x.with_children(|child| self.expanded(nest, child, depth))
            }
            _ => x.clone(),
        }
    }
}

fn is_elementwise(x: &Scalar) -> bool {
    matches!(
        x.kind(),
        Kind::Load { .. } | Kind::Cast(_) | Kind::Binary(Binary::Mul | Binary::Sub, ..)
    )
}
