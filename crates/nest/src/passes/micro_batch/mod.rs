//! Micro-batches: the nest of a batch becomes that of a few of its images, to be run once for each few.
//!
//! > `t[i, …] = f(x[i, …], w[…])` for all `i < B` is, for each `m < B / s`,
//! > `t[m·s + i, …] = f(x[m·s + i, …], w[…])` for all `i < s`
//!
//! The tensors of a few images stay in the cache from stage to stage where those of the whole batch do not, and take less
//! memory. An image may be anything of which a batch is made: a text, a spectrum. Each has a slice of every tensor that depends
//! on the batch, and every point of a stage that writes such a tensor is of one image.

mod propagate;
mod shift;
mod slices;
#[cfg(test)]
mod tests;

use crate::ir::{Buffer, BufferId, Nest, Role, Stage};
use crate::passes::simplify::simplify_stage;
use propagate::{OverImages, over_images, slices};
use rustc_hash::FxHashSet;
use slices::Slices;
use vinelift_tensor::Extent;

/// A nest that does the same for each image of a batch.
#[derive(Debug)]
pub struct Batch {
    images: usize,
    /// Of each buffer.
    slices: Vec<Option<Slices>>,
    /// Of each stage that depends on the batch.
    stages: Vec<Option<OverImages>>,
    /// Whether anything needs what a stage computes.
    is_read: Vec<bool>,
}

/// The bytes that stages use which depend on a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchBytes {
    /// Of the slices that an image has of temporaries, in the stage that uses most.
    pub widest: usize,
    /// Of the slices that an image has of temporaries, in all stages together.
    pub all: usize,
    /// Of all buffers that are the same for each image.
    pub constants: usize,
}

impl Batch {
    /// The largest batch, if a nest has any, of which the outermost dim of an input is the number of images, and that of all
    /// outputs a multiple. `constant` gives the bytes of buffers that are the same in every run.
    pub fn of<'c>(nest: &Nest, constant: &dyn Fn(BufferId) -> Option<&'c [u8]>) -> Option<Batch> {
        if nest.is_symbolic() {
            return None;
        }
        let inputs = (0..).map(BufferId).zip(&nest.buffers);
        let inputs =
            inputs.filter(|(b, buffer)| buffer.role == Role::Input && constant(*b).is_none());
        let sizes = inputs.filter_map(|(_, buffer)| buffer.shape.first()?.number());
        let mut sizes: Vec<usize> = sizes.filter(|n| *n > 1).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut sizes = sizes.into_iter().rev();
        sizes.find_map(|images| Batch::of_images(nest, images, constant))
    }

    /// The batch with this number of images, if the nest has one.
    pub fn of_images<'c>(
        nest: &Nest,
        images: usize,
        constant: &dyn Fn(BufferId) -> Option<&'c [u8]>,
    ) -> Option<Batch> {
        let slices = slices(nest, images, constant)?;
        let is_whole_bytes = |(buffer, slices): (&Buffer, &Option<Slices>)| {
            let is_first = slices.is_some_and(|s| !s.are_equal && s.dim == 0);
            match buffer.role {
                Role::Output => is_first && buffer.ty.bits() >= 8,
                Role::Input => !is_first || buffer.ty.bits() >= 8,
                Role::Temporary | Role::Table(_) => true,
            }
        };
        if !nest.buffers.iter().zip(&slices).all(is_whole_bytes) {
            return None;
        }
        let is_read = is_read(nest);
        let stages = nest.stages.iter().zip(&is_read);
        let stages = stages.map(|(stage, is_read)| match is_read {
            true => of_stage(nest, stage, &slices),
            false => Some(None),
        });
        Some(Batch {
            images,
            stages: stages.collect::<Option<_>>()?,
            slices,
            is_read,
        })
    }

    /// How many images there are.
    pub fn images(&self) -> usize {
        self.images
    }

    /// Whether a buffer has a slice for each image, and they are not all the same.
    pub fn is_sliced(&self, buffer: BufferId) -> bool {
        Slices::differing(&self.slices, buffer).is_some()
    }

    /// The bytes that its stages use. Saturates.
    pub fn bytes(&self, nest: &Nest) -> BatchBytes {
        let mut bytes = BatchBytes {
            widest: 0,
            all: 0,
            constants: 0,
        };
        let of = |b: &BufferId| nest.buf(*b).byte_len().unwrap_or(usize::MAX);
        let mut constants: FxHashSet<BufferId> = FxHashSet::default();
        let stages = nest.stages.iter().zip(&self.stages);
        for (stage, _) in stages.filter(|(_, over)| over.is_some()) {
            let loads = stage.loads();
            let used = loads.iter().chain([&stage.target]);
            let (sliced, same): (Vec<_>, Vec<_>) = used.partition(|b| self.is_sliced(**b));
            let is_temporary = |b: &&BufferId| nest.buf(**b).role == Role::Temporary;
            let sliced = sliced.into_iter().filter(is_temporary);
            let sliced = sliced.map(|b| of(b) / self.images);
            let each = sliced.fold(0, usize::saturating_add);
            bytes.widest = bytes.widest.max(each);
            bytes.all = bytes.all.saturating_add(each);
            constants.extend(same);
        }
        bytes.constants = constants.iter().map(of).fold(0, usize::saturating_add);
        bytes
    }

    /// Has the nest compute a `count`-th of the images. `count` divides their number.
    pub fn split(self, nest: &mut Nest, count: usize) {
        debug_assert_eq!(self.images % count, 0);
        let part = |n: &mut Extent| {
            if let Some(number) = n.number() {
                *n = (number / count).into();
            }
        };
        for (stage, over) in nest.stages.iter_mut().zip(self.stages) {
            if over.is_some_and(|over| over.is_simplified) {
                simplify_stage(stage);
            }
            let axes = stage.domain.iter_mut();
            let axes = axes.filter(|a| over.is_some_and(|over| over.axis == a.id));
            axes.for_each(|a| part(&mut a.extent));
        }
        for (buffer, slices) in nest.buffers.iter_mut().zip(self.slices) {
            if let Some(slices) = slices.filter(|s| !s.are_equal) {
                part(&mut buffer.shape[slices.dim]);
            }
        }
        let mut is_read = self.is_read.into_iter();
        nest.stages.retain(|_| is_read.next() == Some(true));
    }
}

/// How a stage goes over the images, `None` inside if it does not depend on them; `None` if it does not do the same for each.
fn of_stage(nest: &Nest, stage: &Stage, all: &[Option<Slices>]) -> Option<Option<OverImages>> {
    match Slices::differing(all, stage.target) {
        // Its fault would name another image.
        Some(_) if stage.may_fault() => None,
        Some(written) => over_images(nest, stage, written, all).map(Some),
        None => {
            let loads = stage.loads();
            let is_apart = !loads.iter().any(|b| Slices::differing(all, *b).is_some());
            let equal = all[stage.target.0 as usize];
            let is_same = equal.is_none_or(|equal| over_images(nest, stage, equal, all).is_some());
            (is_apart && is_same).then_some(None)
        }
    }
}

/// Whether an output depends on each stage, or it may fault.
fn is_read(nest: &Nest) -> Vec<bool> {
    let mut read: FxHashSet<BufferId> = FxHashSet::default();
    let stages = nest.stages.iter().rev().map(|stage| {
        let is_output = nest.buf(stage.target).role == Role::Output;
        let is_read = is_output || read.contains(&stage.target) || stage.may_fault();
        if is_read {
            read.extend(stage.loads());
        }
        is_read
    });
    let mut is_read: Vec<bool> = stages.collect();
    is_read.reverse();
    is_read
}
