//! Binding: from the tensors of a run to the address of every buffer of a plan.

use crate::Error;
use crate::compile::native::Native;
use crate::compile::plan::Plan;
use crate::compile::slot::Slot;
use crate::compile::variables::InPlaceUpdate;
use crate::execute::pool::Pool;
use rustc_hash::FxHashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use vinelift_codegen::Pointer;
use vinelift_graph::TensorId;
use vinelift_nest::Fault;
use vinelift_tensor::{ElementType, Tensor};

/// The tensors that a plan reads and writes; strings are numbers here.
pub(crate) struct Memory<'a> {
    /// The inputs, in order.
    pub(crate) inputs: &'a [Tensor],
    /// The tensors that earlier segments, calls and variables gave.
    pub(crate) kept: &'a FxHashMap<TensorId, Tensor>,
    /// One for each of [`Plan::outputs`] and [`Plan::journals`], of its type and shape.
    pub(crate) outputs: &'a mut [Tensor],
    /// At least [`Plan::arena`] bytes of `u8`.
    pub(crate) arena: &'a mut Tensor,
    /// The last launch: the next one of the same plan uses its memory again.
    pub(crate) launch: &'a mut Option<Arc<Launch>>,
    /// The threads that may be used.
    pub(crate) pool: &'a Pool,
    /// The variables whose memory is that of an output: their copies are left out.
    pub(crate) in_place: &'a [&'a InPlaceUpdate],
    /// Once true, the run ends soon.
    pub(crate) stop: &'a Arc<AtomicBool>,
}

impl Memory<'_> {
    /// The output that has the memory of `read`, what a variable held, if it is updated in place.
    fn updated(&self, read: &TensorId) -> Option<usize> {
        let update = self.in_place.iter().find(|update| update.read == *read);
        update.map(|update| update.output)
    }

    /// The length in bytes of a buffer of the nest, which is that of the tensor in its slot, or of one of its slices.
    ///
    /// # Errors
    /// An internal one, if the two differ.
    pub(super) fn check(&self, plan: &Plan, buffer: usize) -> Result<usize, Error> {
        let (length, slot) = (plan.binding.lengths[buffer], &plan.binding.slots[buffer]);
        let need = length.and_then(|bytes| bytes.checked_mul(plan.slices(slot)));
        let found = match slot {
            Slot::Parameter(k) => self.inputs.get(*k).map(|t| t.bytes().len()),
            Slot::Constant(tensor) => Some(tensor.bytes().len()),
            Slot::Kept(id) => {
                let updated = self.updated(id).and_then(|k| self.outputs.get(k));
                updated.or(self.kept.get(id)).map(|t| t.bytes().len())
            }
            Slot::Output(k) => self.outputs.get(*k).map(|t| t.bytes().len()),
            Slot::Arena(offset) => {
                let end = need.and_then(|n| n.checked_add(*offset));
                need.filter(|_| end.is_some_and(|end| end <= self.arena.bytes().len()))
            }
            // No step reads or writes it, and what is worked out once for all shapes has no numbers for its extents.
            Slot::Absent => return Ok(need.unwrap_or(0)),
        };
        match found {
            Some(_) if found == need => Ok(length.unwrap_or(0)),
            _ => Err(Error::internal(format!(
                "buffer `{}` takes {need:?} bytes, found {found:?}",
                plan.nest.buffers[buffer].name
            ))),
        }
    }
}

/// The first fault that was met in a run.
pub(super) struct FoundFault {
    /// The step whose code met it.
    pub(super) step: usize,
    /// The first point of the task that did.
    pub(super) start: usize,
    pub(super) fault: Fault,
}

/// A plan bound to memory, for one run.
///
/// Threads that share its steps may hold it for a moment longer than the run, but do nothing with it then.
pub(crate) struct Launch {
    pub(super) plan: Arc<Plan>,
    /// The address of each buffer of the nest, and its length in bytes.
    pub(super) buffers: Vec<(Pointer, usize)>,
    /// The addresses of the buffers of all steps, step after step.
    pub(super) arguments: Vec<Pointer>,
    pub(super) arena: Pointer,
    pub(super) fault: Mutex<Option<FoundFault>>,
    /// Once true, the run ends soon.
    pub(super) stop: Arc<AtomicBool>,
    /// Whether a task has ended early for that.
    pub(super) is_cut_short: AtomicBool,
}

impl Launch {
    /// Binds `plan` to `memory`, for the micro-batch of this number.
    ///
    /// # Errors
    /// An internal one if a tensor does not fit its buffer.
    pub(super) fn bind(
        plan: &Arc<Plan>,
        native: &Native,
        memory: &mut Memory<'_>,
        micro_batch: usize,
    ) -> Result<Arc<Launch>, Error> {
        let used = memory.launch.take().and_then(Arc::into_inner);
        let used = used.filter(|launch| Arc::ptr_eq(&launch.plan, plan));
        let mut launch = used.unwrap_or_else(|| Launch {
            plan: plan.clone(),
            buffers: Vec::new(),
            arguments: Vec::new(),
            arena: Pointer(std::ptr::null_mut()),
            fault: Mutex::new(None),
            stop: memory.stop.clone(),
            is_cut_short: AtomicBool::new(false),
        });
        if !Arc::ptr_eq(&launch.stop, memory.stop) {
            launch.stop = memory.stop.clone();
        }
        *launch.is_cut_short.get_mut() = false;
        launch.buffers.clear();
        launch.arguments.clear();
        let arena = memory.arena.make_mut()?.as_mut_ptr();
        launch.arena = Pointer(arena);
        let read = |tensor: &Tensor| tensor.bytes().as_ptr().cast_mut();
        for (buffer, slot) in plan.binding.slots.iter().enumerate() {
            let bytes = memory.check(plan, buffer)?;
            let pointer = match slot {
                Slot::Parameter(k) => read(&memory.inputs[*k]),
                Slot::Constant(tensor) => read(tensor),
                Slot::Kept(id) => match memory.updated(id) {
                    Some(k) => memory.outputs[k].make_mut()?.as_mut_ptr(),
                    None => read(&memory.kept[id]),
                },
                Slot::Output(k) => memory.outputs[*k].make_mut()?.as_mut_ptr(),
                Slot::Arena(offset) => arena.wrapping_add(*offset),
                // No step reads or writes it, but in a window of a chain.
                Slot::Absent => {
                    let nowhere = std::ptr::dangling_mut();
                    launch.buffers.push((Pointer(nowhere), 0));
                    continue;
                }
            };
            let slice = match plan.slices(slot) {
                1 => 0,
                _ => micro_batch * bytes,
            };
            launch
                .buffers
                .push((Pointer(pointer.wrapping_add(slice)), bytes));
        }
        for step in &*native.steps {
            let pointers = step.kernel.buffers().iter();
            let pointers = pointers.map(|b| launch.buffers[b.0 as usize].0);
            launch.arguments.extend(pointers);
        }
        Ok(Arc::new(launch))
    }
}

/// Has `arena` be at least `bytes` bytes long. One that grows becomes half as long again, so that shapes which come in the order
/// of their size have the system give memory for all of it a few times only; it gives none before it is used.
///
/// # Errors
/// If there is no memory for it.
pub(crate) fn grow(arena: &mut Tensor, bytes: usize) -> Result<(), Error> {
    if arena.bytes().len() < bytes {
        let more = arena.bytes().len() / 2 * 3;
        *arena = match Tensor::zeros(ElementType::U8, &[bytes.max(more)]) {
            Ok(arena) => arena,
            Err(_) => Tensor::zeros(ElementType::U8, &[bytes])?,
        };
    }
    Ok(())
}
