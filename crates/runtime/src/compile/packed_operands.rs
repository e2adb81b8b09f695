//! Packed constants that plans share, so that their memory does not multiply with shapes: those of the model by all plans of a
//! compiled model, and those that a plan for a class of shapes computed from these by all its bindings.

use crate::Tensor;
use crate::compile::coding_source::CodingSource;
use crate::compile::slot::Slot;
use crate::weights::MappedFile;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use vinelift_kernels::{Layout, Packed};
use vinelift_nest::BufferId;

/// Packed operands by the constants that they were made of. Plans own them: what no plan uses is gone.
#[derive(Default)]
pub(crate) struct PackedOperands {
    /// Where the constants begin that live as long as this: addresses stand for elements only while these live.
    constants: FxHashSet<usize>,
    known: Mutex<FxHashMap<PackedKey, Weak<Packed>>>,
    /// The file that constants are in: those that are packed need not stay in memory as it has them.
    file: Option<MappedFile>,
}

/// The constant, from its first element that is used on, and how it is packed.
#[derive(PartialEq, Eq, Hash)]
struct PackedKey {
    address: usize,
    bytes: usize,
    layout: Layout,
    coding: Option<CodingSource>,
}

/// A constant operand before it is packed.
pub(crate) struct Unpacked<'a> {
    /// Where the bytes of the constant begin.
    pub(crate) constant: usize,
    /// Its bytes, from the first element on that the contraction reads.
    pub(crate) bytes: &'a [u8],
    pub(crate) coding: Option<&'a CodingSource>,
}

impl Unpacked<'_> {
    /// Where all constants begin that it is made of.
    fn constants(&self) -> impl Iterator<Item = usize> {
        let coding = self.coding.into_iter().flat_map(CodingSource::constants);
        coding.chain([self.constant])
    }
}

impl PackedOperands {
    /// For constants whose bytes begin at these addresses, and which outlive this; some may be in a file.
    pub(crate) fn of(constants: FxHashSet<usize>, file: Option<MappedFile>) -> PackedOperands {
        PackedOperands {
            constants,
            known: Mutex::default(),
            file,
        }
    }

    /// Whether all constants live as long as this that an operand is made of.
    fn outlive(&self, operand: &Unpacked<'_>) -> bool {
        let mut constants = operand.constants();
        constants.all(|address| self.constants.contains(&address))
    }

    /// The operand, whose constants live as long as this, packed: by `pack` if it is not known in this layout and coding.
    fn get(
        &self,
        operand: &Unpacked<'_>,
        layout: impl FnOnce() -> Layout,
        pack: impl FnOnce() -> Option<Packed>,
    ) -> Option<Arc<Packed>> {
        let key = PackedKey {
            address: operand.bytes.as_ptr() as usize,
            bytes: operand.bytes.len(),
            layout: layout(),
            coding: operand.coding.cloned(),
        };
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packed) = known().get(&key).and_then(Weak::upgrade) {
            return Some(packed);
        }
        let packed = Arc::new(pack()?);
        if let Some(file) = &self.file {
            file.release(operand.bytes);
        }
        let mut known = known();
        known.retain(|_, packed| packed.strong_count() > 0);
        known.insert(key, Arc::downgrade(&packed));
        Some(packed)
    }
}

/// Where the buffers of a plan are found at all values of its symbols, with the packed constants that are its own.
pub(crate) struct PlanSlots {
    slots: Vec<Slot>,
    /// Of the constants among the slots: no other plan has those that were computed for it.
    own: PackedOperands,
}

impl PlanSlots {
    /// Nothing is packed yet.
    pub(crate) fn new(slots: Vec<Slot>) -> PlanSlots {
        PlanSlots {
            slots,
            own: PackedOperands::default(),
        }
    }

    /// The slots, by the numbers of the buffers.
    pub(crate) fn all(&self) -> &[Slot] {
        &self.slots
    }

    /// The constant that a buffer is.
    pub(crate) fn constant(&self, buffer: BufferId) -> Option<&Tensor> {
        match self.slots.get(buffer.0 as usize)? {
            Slot::Constant(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// An operand that is made of constants among the slots, packed: by `pack` if neither the plans of the model, which share
    /// `of_model`, nor the bindings of this one know it in this layout and coding. `None` if it cannot be packed.
    pub(crate) fn packed(
        &self,
        of_model: &PackedOperands,
        operand: &Unpacked<'_>,
        layout: impl FnOnce() -> Layout,
        pack: impl FnOnce() -> Option<Packed>,
    ) -> Option<Arc<Packed>> {
        match of_model.outlive(operand) {
            true => of_model.get(operand, layout, pack),
            false => self.own.get(operand, layout, pack),
        }
    }
}
