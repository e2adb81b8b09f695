//! Packed constants that all plans of a compiled model share, so that their memory does not multiply with shapes.

use crate::compile::constant_operand::CodingSource;
use crate::weights::MappedFile;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use vinelift_kernels::{Layout, Packed};

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

impl PackedOperands {
    /// For constants whose bytes begin at these addresses, and which outlive this; some may be in a file.
    pub(crate) fn of(constants: FxHashSet<usize>, file: Option<MappedFile>) -> PackedOperands {
        PackedOperands {
            constants,
            known: Mutex::default(),
            file,
        }
    }

    /// `bytes`, which are those of the constant that begins at address `constant` from some element on, packed: by
    /// `pack` if they are not known in this layout and coding.
    pub(crate) fn get(
        &self,
        constant: usize,
        (bytes, coding): (&[u8], Option<&CodingSource>),
        layout: impl FnOnce() -> Layout,
        pack: impl FnOnce() -> Option<Packed>,
    ) -> Option<Arc<Packed>> {
        let coding_constants = coding.into_iter().flat_map(CodingSource::constants);
        let mut constants = coding_constants.chain([constant]);
        if !constants.all(|address| self.constants.contains(&address)) {
            return pack().map(Arc::new);
        }
        let key = PackedKey {
            address: bytes.as_ptr() as usize,
            bytes: bytes.len(),
            layout: layout(),
            coding: coding.cloned(),
        };
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packed) = known().get(&key).and_then(Weak::upgrade) {
            return Some(packed);
        }
        let packed = Arc::new(pack()?);
        if let Some(file) = &self.file {
            file.release(bytes);
        }
        let mut known = known();
        known.retain(|_, packed| packed.strong_count() > 0);
        known.insert(key, Arc::downgrade(&packed));
        Some(packed)
    }
}
