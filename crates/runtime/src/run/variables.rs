//! Variables: what they hold from run to run, and their memory while a plan updates them in place.

use crate::Error;
use crate::compile::plan::Output;
use crate::compile::slot::Slot;
use crate::compile::variables::{Growth, InPlaceUpdate};
use crate::growth_cache::capacity_for;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use vinelift_graph::TensorId;
use vinelift_nest::BufferId;
use vinelift_tensor::{Shape, Tensor};

/// The values of variables, by name.
pub(crate) type Variables = BTreeMap<String, Held>;

/// What variables held before a run that sets them before it has come to its end, as sub-graphs do.
pub(crate) struct Before<'n> {
    names: &'n [String],
    held: Variables,
}

impl<'n> Before<'n> {
    /// Keeps what the variables of these names hold; it is then copied where the run would change it in place.
    pub(crate) fn of(names: &'n [String], variables: &Variables) -> Before<'n> {
        let held = names.iter();
        let held = held.filter_map(|name| Some((name.clone(), variables.get(name)?.clone())));
        let held = held.collect();
        Before { names, held }
    }

    /// Has the variables hold that again.
    pub(crate) fn put_back(self, variables: &mut Variables) {
        variables.retain(|name, _| !self.names.contains(name));
        variables.extend(self.held);
    }
}

/// The value of a variable.
#[derive(Clone)]
pub(crate) struct Held {
    /// The tensor itself, or memory that has room for more of it.
    memory: Tensor,
    filled: Option<Filled>,
    /// The tensor, once somebody has asked for it where there is room.
    dense: OnceLock<Option<Tensor>>,
    /// Its elements in the model's type, once somebody has asked for them, of a cache that is stored otherwise.
    wide: OnceLock<Option<Tensor>>,
}

/// The part of the memory that is the tensor: the first `extent` points along `axis`.
#[derive(Clone, Copy)]
struct Filled {
    axis: usize,
    extent: usize,
}

impl From<Tensor> for Held {
    fn from(memory: Tensor) -> Held {
        Held {
            memory,
            filled: None,
            dense: OnceLock::new(),
            wide: OnceLock::new(),
        }
    }
}

impl Held {
    /// The value that a run has left in `memory`; with the axis and extent of `growth` if the variable grows.
    pub(super) fn after(memory: Tensor, growth: Option<&Growth>) -> Held {
        let filled = growth.map(|growth| Filled {
            axis: growth.axis,
            extent: growth.extent,
        });
        Held {
            filled,
            ..Held::from(memory)
        }
    }

    pub(crate) fn memory(&self) -> &Tensor {
        &self.memory
    }

    pub(super) fn into_memory(self) -> Tensor {
        self.memory
    }

    /// How much the memory takes along the axis of which it has room.
    pub(super) fn capacity(&self) -> Option<usize> {
        self.filled.map(|filled| self.memory.shape()[filled.axis])
    }

    /// The shape of the tensor.
    pub(super) fn shape(&self) -> Shape {
        let mut shape = self.memory.shape().to_vec();
        if let Some(Filled { axis, extent }) = self.filled {
            shape[axis] = extent;
        }
        shape
    }

    /// The tensor; `None` if there is no memory for it.
    pub(crate) fn tensor(&self) -> Option<&Tensor> {
        let Some(Filled { axis, extent }) = self.filled else {
            return Some(&self.memory);
        };
        let dense = || resized(&self.memory, axis, extent, extent).ok();
        self.dense.get_or_init(dense).as_ref()
    }

    /// The tensor in the model's type, which `make` gives; `None` if there is no memory for it.
    pub(crate) fn wide(&self, make: impl FnOnce() -> Option<Tensor>) -> Option<&Tensor> {
        self.wide.get_or_init(make).as_ref()
    }

    /// Has the memory have room for `extent` points along `axis`.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn make_room(&mut self, axis: usize, extent: usize) -> Result<(), Error> {
        if self.filled.is_some_and(|filled| filled.axis != axis) {
            let dense = self.tensor().cloned();
            let missing = || Error::Fault("out of memory: a variable that grows".to_owned());
            *self = Held::from(dense.ok_or_else(missing)?);
        }
        let held = self.shape()[axis];
        if self.capacity().is_none_or(|capacity| capacity < extent) {
            self.memory = resized(&self.memory, axis, held, capacity_for(extent))?;
        }
        self.filled = Some(Filled { axis, extent: held });
        Ok(())
    }
}

/// The first `kept` points of a tensor along `axis`, in memory that takes `capacity` there.
fn resized(tensor: &Tensor, axis: usize, kept: usize, capacity: usize) -> Result<Tensor, Error> {
    let mut shape = tensor.shape().to_vec();
    let before = std::mem::replace(&mut shape[axis], capacity);
    let mut memory = Tensor::zeros(tensor.element_type(), &shape)?;
    let inner: usize = shape[axis + 1..].iter().product();
    let row = inner * tensor.element_type().bits() / 8;
    if row > 0 && capacity > 0 && before > 0 {
        let to = memory.make_mut()?.chunks_exact_mut(capacity * row);
        for (to, from) in to.zip(tensor.bytes().chunks_exact(before * row)) {
            let bytes = kept * row;
            to[..bytes].copy_from_slice(&from[..bytes]);
        }
    }
    Ok(memory)
}

impl InPlaceUpdate {
    /// Takes the memory of the variable, if nobody else holds it and it fits the output; the variable and the tensor
    /// that was read of it are gone then. `is_in_order` says whether nothing is reordered.
    pub(super) fn take(
        &self,
        variables: &mut Variables,
        kept: &mut FxHashMap<TensorId, Tensor>,
        (_, element, shape): &Output,
        is_in_order: bool,
    ) -> Option<InPlace<'_>> {
        self.copy?;
        let shape = match &self.growth {
            Some(_) if !is_in_order => return None,
            Some(growth) => &growth.memory,
            None => shape,
        };
        let (held, read) = (variables.get(&self.variable)?, kept.get(&self.read)?);
        let fits = held.memory.element_type() == *element && held.memory.shape() == shape;
        // They are one tensor, unless another part of the model has set the variable meanwhile.
        if !fits || held.memory.bytes().as_ptr() != read.bytes().as_ptr() {
            return None;
        }
        let held = variables.remove(&self.variable)?;
        kept.remove(&self.read);
        if !held.memory.is_unshared() {
            kept.insert(self.read, held.memory.clone());
            variables.insert(self.variable.clone(), held);
            return None;
        }
        Some(InPlace {
            update: self,
            memory: Some(held.memory),
            filled: held.filled,
        })
    }
}

/// A variable whose memory is that of an output.
pub(super) struct InPlace<'p> {
    pub(super) update: &'p InPlaceUpdate,
    /// The memory, until the output has it.
    pub(super) memory: Option<Tensor>,
    filled: Option<Filled>,
}

impl InPlace<'_> {
    /// Has the variable hold its memory again.
    pub(super) fn give_back(self, variables: &mut Variables, memory: Tensor) {
        let held = Held {
            filled: self.filled,
            ..Held::from(memory)
        };
        variables.insert(self.update.variable.clone(), held);
    }

    /// Takes back what a run that failed has changed in what the variable held, and has it hold that again. `outputs` are
    /// those of the plan and its journals.
    pub(super) fn undo(
        self,
        variables: &mut Variables,
        outputs: &mut [Tensor],
        slots: &[Slot],
    ) -> Result<(), Error> {
        let outside = || Error::internal("a journal leads outside of its variable");
        let tensor = |buffer: BufferId| match slots[buffer.0 as usize] {
            Slot::Output(k) => Ok(k),
            _ => Err(Error::internal("a journal is no output")),
        };
        let output = self.update.output;
        for journal in self.update.journals.iter().rev() {
            let (old, places) = (tensor(journal.old)?, tensor(journal.places)?);
            let (old, places) = (outputs[old].clone(), outputs[places].clone());
            let held = outputs[output].make_mut()?;
            let size = old.element_type().bits() / 8;
            let places = places.bytes().as_chunks().0.iter();
            for (place, old) in places.zip(old.bytes().chunks_exact(size)) {
                // An element that was not written down yet was not changed either.
                let Ok(place) = usize::try_from(i64::from_le_bytes(*place)) else {
                    continue;
                };
                let element = held.chunks_exact_mut(size).nth(place);
                element.ok_or_else(outside)?.copy_from_slice(old);
            }
        }
        self.give_back(variables, outputs[output].clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
