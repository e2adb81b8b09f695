//! Kernels of the same form, as those of equal layers: what is worked out for one is so for all.

use rustc_hash::FxHashMap;
use vinelift_nest::{BufferId, Footprint, Nest, SubNest};

/// The form of each kernel of a nest: kernels whose canonical nests are equal have the same number.
pub(crate) struct Forms {
    numbers: Vec<usize>,
    footprints: FxHashMap<(usize, BufferId), Option<Footprint>>,
}

impl Forms {
    /// Of kernels with these canonical nests.
    pub(crate) fn of(canonical: &[Nest]) -> Forms {
        let mut known: FxHashMap<&Nest, usize> = FxHashMap::default();
        let numbers = canonical.iter().map(|nest| {
            let next = known.len();
            *known.entry(nest).or_insert(next)
        });
        Forms {
            numbers: numbers.collect(),
            footprints: FxHashMap::default(),
        }
    }

    /// The form of kernel `k`.
    pub(crate) fn number(&self, k: usize) -> usize {
        self.numbers[k]
    }

    /// How the chunks of kernel `k`, which has these stages, use one of its buffers.
    pub(crate) fn footprint(
        &mut self,
        k: usize,
        stages: &SubNest,
        buffer: BufferId,
    ) -> Option<Footprint> {
        let key = (self.numbers[k], buffer);
        let found = self.footprints.entry(key);
        let footprint = || Footprint::of(&stages.nest, buffer);
        found.or_insert_with(footprint).clone()
    }
}
