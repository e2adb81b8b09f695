//! Whether a plan computes a batch at once or in micro-batches.

use crate::compile::slot::{Slot, constant_bytes};
use std::num::NonZeroUsize;
use vinelift_nest::{Batch, BatchBytes, BufferId, Nest, verify};

/// How a plan computes a batch part by part: it runs once for each, on the next slices of inputs and outputs.
#[derive(Debug)]
pub(crate) struct MicroBatches {
    /// How many there are.
    pub(crate) count: usize,
    /// The positions of the inputs that have a slice for each; others are the same for all. All outputs have.
    inputs: Vec<usize>,
}

/// The bytes of temporaries that a stage of a micro-batch uses at most, unless an image uses more: a thread's share of the caches.
const PART_BYTES: usize = 16 << 20;

/// Each micro-batch reads all constants again, so its images must use at least this many times as many bytes of temporaries. These are
/// counted before fusion, which leaves about one in four.
const LEAST_PER_CONSTANTS: usize = 4;

/// The most micro-batches of a batch.
const MOST_BATCHES: usize = 4096;

/// Into how many parts the images of a batch are to be divided, two at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    images: usize,
    count: usize,
}

impl Wanted {
    /// Micro-batches of at most `most` images, or without a limit of a size that the caches hold; `None` unless the nest as lowered
    /// computes each image in the same way.
    pub(super) fn of(nest: &Nest, slots: &[Slot], most: Option<NonZeroUsize>) -> Option<Wanted> {
        // Variables stay what they are until all is computed, and a recurrent step multiplies all rows at once.
        let is_kept = |slot: &Slot| matches!(slot, Slot::Kept(_));
        if slots.iter().any(is_kept) || nest.stages.iter().any(|s| s.group.is_some()) {
            return None;
        }
        let batch = Batch::of(nest, &|buffer| constant_bytes(slots, buffer))?;
        let most = most.map_or_else(|| worth(&batch.bytes(nest)), NonZeroUsize::get);
        let images = batch.images();
        let count = count(images, most);
        (count > 1).then_some(Wanted { images, count })
    }
}

impl MicroBatches {
    /// Splits the nest of a batch as is wanted, if that is proven to be the same.
    ///
    /// How sums are rounded may depend on the number of images, so it has to be settled before.
    pub(super) fn split(nest: &mut Nest, slots: &[Slot], wanted: Wanted) -> Option<MicroBatches> {
        let Wanted { images, count } = wanted;
        let batch = Batch::of_images(nest, images, &|buffer| constant_bytes(slots, buffer))?;
        let inputs = (0..).map(BufferId).zip(slots);
        let inputs = inputs.filter_map(|(buffer, slot)| match slot {
            Slot::Parameter(k) if batch.is_sliced(buffer) => Some(*k),
            _ => None,
        });
        let inputs = inputs.collect();
        let mut part = nest.clone();
        batch.split(&mut part, count);
        // The verifier may find no proof for a part, though it has one for the batch.
        verify(&part).ok()?;
        *nest = part;
        Some(MicroBatches { count, inputs })
    }

    /// How many slices the tensor in a slot has, one for each micro-batch; 1 if it is the same for all.
    pub(crate) fn slices(&self, slot: &Slot) -> usize {
        match slot {
            Slot::Parameter(k) if self.inputs.contains(k) => self.count,
            Slot::Output(_) => self.count,
            _ => 1,
        }
    }
}

/// How many images to compute at once, at most: those whose temporaries the caches hold, or more where constants are most of the
/// bytes that are read.
fn worth(bytes: &BatchBytes) -> usize {
    let fit = PART_BYTES / bytes.widest.max(1);
    let for_constants = bytes.constants.saturating_mul(LEAST_PER_CONSTANTS) / bytes.all.max(1);
    fit.max(for_constants)
}

/// The least number of equal micro-batches, at most [`MOST_BATCHES`], so that none has more than `most` of the `images`; the largest
/// such number that divides them if there is none.
fn count(images: usize, most: usize) -> usize {
    let counts = (1..=images.min(MOST_BATCHES)).filter(|count| images.is_multiple_of(*count));
    let mut best = 1;
    for count in counts {
        best = count;
        if images / count <= most {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_images_as_the_caches_hold() {
        let of = |widest, all, constants| {
            let bytes = BatchBytes {
                widest,
                all,
                constants,
            };
            [1, 2, 6, 7, 8].map(|images| count(images, worth(&bytes)))
        };
        // All at once, as they fit; the largest that does.
        assert_eq!(of(0, 0, 0), [1, 1, 1, 1, 1]);
        assert_eq!(of(PART_BYTES / 8, PART_BYTES, 0), [1, 1, 1, 1, 1]);
        assert_eq!(of(PART_BYTES / 8 + 1, PART_BYTES, 0), [1, 1, 1, 1, 2]);
        assert_eq!(of(PART_BYTES / 3, PART_BYTES, 0), [1, 1, 2, 7, 4]);
        assert_eq!(of(PART_BYTES * 3, PART_BYTES * 9, 0), [1, 2, 6, 7, 8]);
        // Constants that an image needs as often as this are read for two images at once, or for all.
        let all = 9 * PART_BYTES;
        assert_eq!(of(PART_BYTES, all, all / 4 - 1), [1, 2, 6, 7, 8]);
        assert_eq!(of(PART_BYTES, all, all / 2), [1, 1, 3, 7, 4]);
        assert_eq!(of(PART_BYTES, all, all * 2), [1, 1, 1, 1, 1]);
        assert_eq!(of(usize::MAX, usize::MAX, usize::MAX), [1, 2, 6, 7, 8]);
        assert_eq!([count(usize::MAX, 1), count(1 << 60, 1)], [3855, 4096]);
        assert_eq!(count(0, 1), 1);
    }
}
