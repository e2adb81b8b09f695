//! Kernels of the same form, as those of equal layers: what is worked out for one is so for all.

use rustc_hash::FxHashMap;
use vinelift_nest::{BufferId, Footprint, Nest, ParallelChunks, SubNest};

/// The form of each kernel of a nest: kernels whose canonical nests are equal have the same number.
pub(crate) struct Forms {
    numbers: Vec<usize>,
    chunks: FxHashMap<usize, ParallelChunks>,
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
            chunks: FxHashMap::default(),
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
        let (form, nest) = (self.numbers[k], &stages.nest);
        let chunks = self.chunks.entry(form);
        let found = self.footprints.entry((form, buffer));
        let footprint = || {
            let chunks = chunks.or_insert_with(|| ParallelChunks::of(nest));
            Footprint::of(nest, *chunks, buffer)
        };
        found.or_insert_with(footprint).clone()
    }
}
