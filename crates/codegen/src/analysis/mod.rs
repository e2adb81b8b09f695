//! What is known of a nest and of the stage that is being compiled: facts that no code is needed for.
//!
//! The scalar code, the vectors of 128 bits and the vector loops ask the same questions here: which offsets step with
//! an axis ([`linear`]), what may be evaluated ahead of its guard or for several points at once ([`legality`],
//! [`indices`]), how much work it is ([`work`]), and in which order memory is fast ([`columns`]).

pub(crate) mod columns;
mod explain;
pub(crate) mod facts;
pub(crate) mod indices;
pub(crate) mod legality;
pub(crate) mod linear;
pub(crate) mod walk;
pub(crate) mod work;

use crate::target::Target;
use columns::Panel;
use facts::Facts;
use vinelift_nest::{Buffer, Interval, Nest, Parts, Ranges, Stage};

pub(crate) struct Analysis<'n> {
    pub(crate) nest: &'n Nest,
    /// The values that tables of indices lie between.
    values: Vec<Option<Interval>>,
    /// Into which parts the nest can be cut.
    pub(crate) parts: Parts,
    /// About the scalars of the current stage.
    pub(crate) facts: Facts,
    pub(crate) ranges: Ranges,
    /// The data of the current stage that it reads from scratch memory.
    pub(crate) panels: Vec<Panel<'n>>,
    /// The machine that vector loops are for; `None` for none.
    pub(crate) target: Option<Target>,
    /// Whether stages may run by Cranelift's vectors.
    pub(crate) has_vectors: bool,
}

impl<'n> Analysis<'n> {
    pub(crate) fn new(nest: &'n Nest, target: Option<Target>, has_vectors: bool) -> Analysis<'n> {
        Analysis {
            nest,
            values: nest.buffers.iter().map(Buffer::values).collect(),
            parts: Parts::of(nest),
            facts: Facts::default(),
            ranges: Ranges::new(),
            panels: Vec::new(),
            target,
            has_vectors,
        }
    }

    /// Goes on with a stage.
    pub(crate) fn begin(&mut self, stage: &'n Stage) {
        self.facts.of_stage(stage);
        self.ranges = Ranges::of_stage(stage);
    }
}
