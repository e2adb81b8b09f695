//! Runs a plan without code: its nest is interpreted.

use crate::Error;
use crate::compile::plan::Plan;
use crate::compile::slot::Slot;
use crate::execute::bind::Memory;
use rustc_hash::FxHashMap;
use vinelift_nest::{BufferBytes, InterpretError, Role, interpret_until};
use vinelift_tensor::TensorError;

pub(super) fn run(plan: &Plan, memory: &mut Memory<'_>) -> Result<(), Error> {
    (0..plan.binding.slots.len()).try_for_each(|buffer| memory.check(plan, buffer).map(drop))?;
    let mut outputs: FxHashMap<usize, &mut [u8]> = FxHashMap::default();
    for (k, tensor) in memory.outputs.iter_mut().enumerate() {
        outputs.insert(k, tensor.make_mut()?);
    }
    let mut bytes = Vec::with_capacity(plan.binding.slots.len());
    for (buffer, slot) in plan.nest.buffers.iter().zip(&*plan.binding.slots) {
        bytes.push(match slot {
            Slot::Parameter(k) => BufferBytes::Read(memory.inputs[*k].bytes()),
            Slot::Constant(tensor) => BufferBytes::Read(tensor.bytes()),
            Slot::Kept(id) => BufferBytes::Read(memory.kept[id].bytes()),
            Slot::Output(k) => match outputs.remove(k) {
                Some(bytes) => BufferBytes::Write(bytes),
                None => return Err(Error::internal(format!("output {k} has two buffers"))),
            },
            _ if buffer.role == Role::Temporary => BufferBytes::Temporary,
            _ => BufferBytes::Read(&[]),
        });
    }
    let nest = plan.nest();
    interpret_until(&nest, &mut bytes, memory.stop).map_err(|e| match e {
        InterpretError::Stopped => Error::Cancelled,
        InterpretError::Memory { bytes, .. } => TensorError::OutOfMemory { bytes }.into(),
        InterpretError::Fault(fault) => Error::Fault(fault.message(&nest)),
        other => Error::internal(other),
    })
}
