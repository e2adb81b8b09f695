//! Memory that the runs of a unit use again.

use crate::execute::Launch;
use crate::run::path::Path;
use crate::{Error, Shape};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vinelift_graph::TensorId;
use vinelift_tensor::{ElementType, Tensor};

/// Memory that the runs of a unit use again, one after the other.
pub(crate) struct Scratch {
    /// Temporaries.
    pub(super) arena: Tensor,
    /// The last launch of native code.
    pub(super) launch: Option<Arc<Launch>>,
    /// Outputs of segments, of the type and shape that they had last.
    pub(super) spare: FxHashMap<TensorId, Tensor>,
    /// Journals of in-place updates.
    pub(super) journals: Vec<Tensor>,
    /// The plans that the last run took.
    pub(super) path: Path,
}

impl Scratch {
    pub(crate) fn new() -> Result<Scratch, Error> {
        Ok(Scratch {
            arena: Tensor::zeros(ElementType::U8, &[0])?,
            launch: None,
            spare: FxHashMap::default(),
            journals: Vec::new(),
            path: Path::default(),
        })
    }

    /// Has the next run compute `tensor` into `memory`, if it is of its type and shape.
    pub(crate) fn lend(&mut self, tensor: TensorId, memory: Tensor) {
        self.spare.insert(tensor, memory);
    }

    /// Lets go of memory that was lent.
    pub(crate) fn take_back(&mut self, tensor: TensorId) {
        self.spare.remove(&tensor);
    }

    /// Memory for an output of a plan.
    pub(super) fn memory(
        &mut self,
        tensor: TensorId,
        element: ElementType,
        shape: &[usize],
    ) -> Result<Tensor, Error> {
        // A nest has a string as its number.
        let element = match element {
            ElementType::String => ElementType::U64,
            other => other,
        };
        match self.spare.remove(&tensor) {
            Some(used) if used.element_type() == element && used.shape() == shape => Ok(used),
            _ => Ok(Tensor::zeros(element, shape)?),
        }
    }

    /// Has empty journals of these types and shapes.
    pub(super) fn keep_journals(&mut self, journals: &[(ElementType, Shape)]) -> Result<(), Error> {
        let is = |t: &Tensor, (element, shape): &(ElementType, Shape)| {
            t.element_type() == *element && t.shape() == shape
        };
        let fit = self.journals.len() == journals.len()
            && self.journals.iter().zip(journals).all(|(t, j)| is(t, j));
        if !fit {
            let memory = |(element, shape): &(ElementType, Shape)| Tensor::zeros(*element, shape);
            self.journals = journals.iter().map(memory).collect::<Result<_, _>>()?;
        }
        for journal in &mut self.journals {
            journal.make_mut()?.fill(!0);
        }
        Ok(())
    }
}
