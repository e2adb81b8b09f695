//! The slices of all buffers: from those of the inputs, stage by stage.

use super::shift::Shifts;
use super::slices::Slices;
use crate::ir::{Axis, AxisId, BufferId, Kind, Nest, Role, Stage};
use crate::passes::simplify::simplify_stage;

/// The slices of all buffers of a nest, for a batch of `images`; of constants, `constant` says what they hold.
///
/// These are guesses where several stages write one buffer, and have to be [checked](over_images).
/// `None` if a stage would do the same for each image anew.
pub(super) fn slices<'c>(
    nest: &Nest,
    images: usize,
    constant: &dyn Fn(BufferId) -> Option<&'c [u8]>,
) -> Option<Vec<Option<Slices>>> {
    let outermost = |length: usize, are_equal| {
        Some(Slices {
            dim: 0,
            length: i64::try_from(length / images).ok()?,
            are_equal,
        })
    };
    let given = (0..).zip(&nest.buffers).map(|(number, buffer)| {
        let length = buffer.shape.first()?.number()?;
        if buffer.role != Role::Input || length == 0 || length % images != 0 {
            return None;
        }
        match constant(BufferId(number)) {
            // Elements of less than a byte may begin a slice inside of one.
            Some(_) if buffer.ty.bits() < 8 => None,
            Some(bytes) if are_equal(bytes, images) => outermost(length, true),
            None if length == images => outermost(length, false),
            _ => None,
        }
    });
    let mut slices: Vec<Option<Slices>> = given.collect();
    let is_given = |b: &BufferId| nest.buf(*b).role == Role::Input && constant(*b).is_none();
    for stage in &nest.stages {
        let loads = stage.loads();
        let are_equal = !loads
            .iter()
            .any(|b| Slices::differing(&slices, *b).is_some());
        if are_equal && loads.iter().any(is_given) {
            return None;
        }
        let target = stage.target.0 as usize;
        let known = slices[target].filter(|s| !s.are_equal || are_equal);
        slices[target] = known.or_else(|| written(nest, stage, images, are_equal, &slices));
    }
    Some(slices)
}

fn are_equal(bytes: &[u8], count: usize) -> bool {
    let length = bytes.len() / count;
    length > 0
        && bytes.len().is_multiple_of(count)
        && bytes
            .chunks_exact(length)
            .all(|slice| slice == &bytes[..length])
}

/// The slices that a stage writes, along the outermost dim that has such.
fn written(
    nest: &Nest,
    stage: &Stage,
    images: usize,
    are_equal: bool,
    slices: &[Option<Slices>],
) -> Option<Slices> {
    let shape = nest.buf(stage.target).shape.iter().enumerate();
    let mut candidates = shape.filter_map(|(dim, extent)| {
        let extent = extent.number().filter(|n| *n > 0 && n % images == 0)?;
        Some(Slices {
            dim,
            length: i64::try_from(extent / images).ok()?,
            are_equal,
        })
    });
    candidates.find(|candidate| over_images(nest, stage, *candidate, slices).is_some())
}

/// How a stage goes over the images.
#[derive(Clone, Copy, Debug)]
pub(super) struct OverImages {
    pub(super) axis: AxisId,
    /// Whether it is one that copies, and has to be simplified for that to be seen.
    pub(super) is_simplified: bool,
}

/// How a stage goes over the slices that it writes, if each is computed as the others are.
pub(super) fn over_images(
    nest: &Nest,
    stage: &Stage,
    written: Slices,
    slices: &[Option<Slices>],
) -> Option<OverImages> {
    let Kind::Axis(id) = stage.at[written.dim].kind() else {
        return None;
    };
    let mut axes = stage.domain.iter().skip(stage.first_inner());
    let axis = *axes.find(|a| a.id == *id)?;
    if axis.extent != nest.buf(stage.target).shape[written.dim] {
        return None;
    }
    if is_same(stage, axis, written, slices) {
        return Some(OverImages {
            axis: axis.id,
            is_simplified: false,
        });
    }
    if !matches!(stage.value.kind(), Kind::Load { .. }) {
        return None;
    }
    // As lowered, the digits of a batch that is not the outermost dim look as if they moved.
    let mut simple = stage.clone();
    simplify_stage(&mut simple);
    is_same(&simple, axis, written, slices).then_some(OverImages {
        axis: axis.id,
        is_simplified: true,
    })
}

/// Whether a stage does the same for each slice that it writes along an axis.
fn is_same(stage: &Stage, axis: Axis, written: Slices, slices: &[Option<Slices>]) -> bool {
    let mut shifts = Shifts::new(stage, axis.id, written.length, slices);
    let indices = stage.at.iter().enumerate();
    let mut others = indices.filter(|(dim, _)| *dim != written.dim);
    others.all(|(_, index)| shifts.is_still(index)) && shifts.is_still(&stage.value)
}
