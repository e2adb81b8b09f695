//! Halos: a picture that windows reach beyond is stored with its border around it.
//!
//! > `t[i, j, c]` of `t: [H, W, C]`, and `Σ_{k, l} select(0 <= i + k - 1 < H & …, t[i + k - 1, j + l - 1, c], 0) · w[k, l, c]`
//! > becomes `t[i + 1, j + 1, c]` of `t: [H + 2, W + 2, C]`, zeros around it, and `Σ_{k, l} t[i + k, j + l, c] · w[k, l, c]`
//!
//! The operand of a padded window is a guarded copy of a picture, which `contract` or this pass stores. Where the picture is a
//! temporary, the stages that compute it write the middle of that copy at once. Several copies with the same value around them
//! become one, as wide as the widest. Rows stay contiguous but for their ends, so this is for pictures whose innermost dim
//! needs no border.

mod guarded_copy;

use crate::analysis::Linear;
use crate::build::index;
use crate::ir::{Axis, BufferId, Kind, Mode, Nest, Scalar, Stage, rewrite_those};
use crate::passes::pad_windows::padded_first;
use crate::passes::peel::{interior, open_outside};
use guarded_copy::{CopiedDim, GuardedCopy, guarded_copies};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use vinelift_tensor::Extent;

/// Stores temporaries with halos where all their guarded copies can be parts of them.
pub(crate) fn store_halos(nest: &mut Nest) {
    copy_operands(nest);
    let mut by_source: FxHashMap<BufferId, Vec<GuardedCopy>> = FxHashMap::default();
    for copy in guarded_copies(nest) {
        let its = by_source.entry(copy.source).or_default();
        if its.first().is_none_or(|first| first.fill == copy.fill) {
            its.push(copy);
        }
    }
    let mut halos = FxHashMap::default();
    let mut dropped = FxHashSet::default();
    for (source, copies) in by_source {
        if let Some(halo) = Halo::around(nest, source, copies) {
            dropped.extend(halo.copies.iter().map(|copy| copy.target));
            halos.insert(source, halo);
        }
    }
    apply(nest, &halos, &dropped);
}

/// Stores the guarded operands of sums of products whose vectors lie along an axis that no guard asks about.
fn copy_operands(nest: &mut Nest) {
    for mut stage in std::mem::take(&mut nest.stages) {
        while let Some((copy, window)) = copied_operand(nest, &stage) {
            nest.stages.push(copy);
            stage = window;
        }
        nest.stages.push(stage);
    }
}

/// The stage that stores a guarded operand of a stage, and the stage that reads it.
fn copied_operand(nest: &mut Nest, stage: &Stage) -> Option<(Stage, Stage)> {
    let innermost = stage.domain.iter().rposition(|a| a.extent > 1)?;
    let whole = (0, stage.domain[innermost].extent.number()? as i64);
    let inside = interior(nest, stage).or_else(|| open_outside(stage))?;
    let is_free = inside[innermost] == Some(whole);
    is_free
        .then(|| padded_first(nest, stage, &inside))
        .flatten()
}

/// How far a temporary grows, and the copies that become parts of it.
struct Halo {
    /// For each dim, how many points are added below and above.
    borders: Vec<(i64, i64)>,
    /// The shape of the temporary without and with them.
    shape: Vec<Extent>,
    grown: Vec<Extent>,
    /// What they are filled with.
    fill: Scalar,
    copies: Vec<GuardedCopy>,
}

impl Halo {
    /// The halo of `source` that is as wide as the widest of its copies, which have the same fill; `None` if there is no formula for
    /// an extent.
    fn around(nest: &Nest, source: BufferId, copies: Vec<GuardedCopy>) -> Option<Halo> {
        let shape = nest.buf(source).shape.clone();
        let mut borders = vec![(0, 0); shape.len()];
        for copy in &copies {
            for ((low, high), dim) in borders.iter_mut().zip(&copy.dims) {
                if let Some(CopiedDim { below, above, .. }) = dim {
                    (*low, *high) = ((*below).max(*low), (*above).max(*high));
                }
            }
        }
        let grown = shape.iter().zip(&borders).map(|(n, (low, high))| {
            let more = usize::try_from(low.checked_add(*high)?).ok()?;
            n.plus(more.into())
                .filter(|n| !n.is_symbolic() || Extent::may_be(n.example()))
        });
        Some(Halo {
            grown: grown.collect::<Option<_>>()?,
            borders,
            shape,
            fill: copies[0].fill.clone(),
            copies,
        })
    }

    /// The stages that write the border of the temporary within its halo, for `writer`, its first.
    fn fills(&self, nest: &mut Nest, writer: &Stage) -> Vec<Stage> {
        let mut fills = Vec::new();
        for (dim, (low, high)) in self.borders.iter().enumerate() {
            let end = Scalar::extent(self.shape[dim]) + *low;
            for (from, count) in [(index(0), *low), (end, *high)] {
                if count == 0 {
                    continue;
                }
                // Of the dims before this one, only the middle is not written yet.
                let parts = (0..self.shape.len()).map(|d| match d.cmp(&dim) {
                    Ordering::Less => (index(self.borders[d].0), self.shape[d]),
                    Ordering::Equal => (from.clone(), (count as usize).into()),
                    Ordering::Greater => (index(0), self.grown[d]),
                });
                let parts: Vec<(Scalar, Extent)> = parts.collect();
                let domain: Vec<Axis> = parts.iter().map(|(_, n)| nest.axis(*n)).collect();
                let at = domain.iter().zip(&parts);
                let at = at.map(|(axis, (from, _))| {
                    let at = Scalar::axis(axis.id) + from.clone();
                    Linear::of(&at).into_scalar()
                });
                fills.push(Stage {
                    at: at.collect(),
                    domain,
                    target: writer.target,
                    mode: Mode::Set,
                    value: self.fill.clone(),
                    layers: writer.layers.clone(),
                    group: None,
                });
            }
        }
        fills
    }
}

/// Stores the temporaries with their halos, so that the element at `i` is at `i + low`; `dropped` are the copies that become parts
/// of them.
fn apply(nest: &mut Nest, halos: &FxHashMap<BufferId, Halo>, dropped: &FxHashSet<BufferId>) {
    let copies: FxHashMap<BufferId, (&Halo, &GuardedCopy)> = halos
        .values()
        .flat_map(|halo| {
            halo.copies
                .iter()
                .map(move |copy| (copy.target, (halo, copy)))
        })
        .collect();
    let access = |buffer: BufferId, at: &[Scalar]| -> Option<(BufferId, Vec<Scalar>)> {
        if let Some(halo) = halos.get(&buffer) {
            let at = at.iter().zip(&halo.borders);
            return Some((buffer, at.map(|(x, (low, _))| plus(x, *low)).collect()));
        }
        let (halo, copy) = copies.get(&buffer)?;
        let places = copy.dims.iter().zip(&halo.borders);
        let places = places.map(|(dim, (low, _))| match dim {
            Some(CopiedDim { dim, below, .. }) => plus(&at[*dim], low - below),
            // A dim of a single element, around which another copy may have a border.
            None => index(*low),
        });
        Some((copy.source, places.collect()))
    };
    let mut filled = FxHashSet::default();
    for mut stage in std::mem::take(&mut nest.stages) {
        if dropped.contains(&stage.target) {
            continue;
        }
        rewrite_those(&mut stage, Scalar::loads, &mut |x| match x.kind() {
            Kind::Load { buffer, at } => match access(*buffer, at) {
                Some((buffer, at)) => Scalar::load(buffer, at, x.ty()),
                None => x,
            },
            _ => x,
        });
        if let Some((target, at)) = access(stage.target, &stage.at) {
            (stage.target, stage.at) = (target, at);
        }
        let halo = halos.get(&stage.target);
        if let Some(halo) = halo.filter(|_| filled.insert(stage.target)) {
            let fills = halo.fills(nest, &stage);
            // Not between a contraction and its epilogue, which runs with its tasks.
            let of_layer = nest.stages.iter().rposition(|s| s.layers != stage.layers);
            let start = of_layer.map_or(0, |at| at + 1);
            nest.stages.splice(start..start, fills);
        }
        nest.stages.push(stage);
    }
    for (buffer, halo) in halos {
        nest.buffers[buffer.0 as usize]
            .shape
            .clone_from(&halo.grown);
    }
}

fn plus(x: &Scalar, n: i64) -> Scalar {
    match n {
        0 => x.clone(),
        n => x.clone() + n,
    }
}

#[cfg(test)]
mod tests;
