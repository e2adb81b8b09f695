//! Halos: a picture that windows reach beyond is stored with its border around it.
//!
//! > `t[i, j, c]` of `t: [H, W, C]`, and `Σ_{k, l} select(0 <= i + k - 1 < H & …, t[i + k - 1, j + l - 1, c], 0) · w[k, l, c]`
//! > becomes `t[i + 1, j + 1, c]` of `t: [H + 2, W + 2, C]`, zeros around it, and `Σ_{k, l} t[i + k, j + l, c] · w[k, l, c]`
//!
//! The operand of a padded window is a guarded copy of a picture, which `contract` or this pass stores. Where the picture is a
//! temporary, the stages that compute it write the middle of that copy at once. Several copies with the same value around them
//! become one, as wide as the widest. Rows stay contiguous but for their ends, so this is for pictures whose innermost dim
//! needs no border.

use crate::analysis::Linear;
use crate::build::index;
use crate::ir::{Axis, BufferId, Kind, Mode, Nest, Scalar, Stage, rewrite_those};
use crate::passes::pad_windows::padded_first;
use crate::passes::peel::interior;
use crate::passes::rearrangeable::rearrangeable;
use rustc_hash::{FxHashMap, FxHashSet};

/// Stores temporaries with halos where all their guarded copies can be parts of them.
pub(crate) fn store_halos(nest: &mut Nest) {
    if nest.is_symbolic() {
        return;
    }
    copy_operands(nest);
    let mut by_source: FxHashMap<BufferId, Vec<Copy>> = FxHashMap::default();
    for copy in copies(nest) {
        let its = by_source.entry(copy.source).or_default();
        if its.first().is_none_or(|first| first.around == copy.around) {
            its.push(copy);
        }
    }
    let mut halos = FxHashMap::default();
    let mut dropped = FxHashSet::default();
    for (source, copies) in by_source {
        dropped.extend(copies.iter().map(|copy| copy.target));
        halos.insert(source, Halo::around(nest, source, copies));
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
    let inside = interior(nest, stage)?;
    let is_free = inside[innermost] == Some(whole);
    is_free
        .then(|| padded_first(nest, stage, &inside))
        .flatten()
}

/// The copies of temporaries that may be parts of these: a copy is written once, and its source before that alone. The source
/// is no such copy itself, as these are gone afterwards.
fn copies(nest: &Nest) -> Vec<Copy> {
    let rearrangeable = rearrangeable(nest);
    let mut writers: FxHashMap<BufferId, Vec<usize>> = FxHashMap::default();
    for (k, stage) in nest.stages.iter().enumerate() {
        writers.entry(stage.target).or_default().push(k);
    }
    let is_written_before = |buffer: BufferId, k: usize| {
        let last = writers.get(&buffer).and_then(|all| all.last());
        last.is_some_and(|last| *last < k)
    };
    let stages = nest.stages.iter().enumerate();
    let copies = stages.filter_map(|(k, stage)| {
        let copy = Copy::of(nest, stage)?;
        let are_free = [copy.source, copy.target].map(|b| rearrangeable.contains(&b)) == [true; 2];
        let is_once = writers[&copy.target] == [k];
        (are_free && is_once && is_written_before(copy.source, k)).then_some(copy)
    });
    let mut copies: Vec<Copy> = copies.collect();
    let targets: FxHashSet<BufferId> = copies.iter().map(|copy| copy.target).collect();
    copies.retain(|copy| !targets.contains(&copy.source));
    copies
}

/// A stage that copies a temporary with a value around it.
struct Copy {
    source: BufferId,
    target: BufferId,
    /// The value around, a constant.
    around: Scalar,
    /// For each dim of the source that of the copy, and how far the copy reaches below and above it.
    dims: Vec<Option<(usize, i64, i64)>>,
}

impl Copy {
    /// The copy that a stage makes, if the source can be a part of it.
    fn of(nest: &Nest, stage: &Stage) -> Option<Copy> {
        let Kind::Select(_, body, around) = stage.value.kind() else {
            return None;
        };
        let Kind::Load { buffer: source, at } = body.kind() else {
            return None;
        };
        around.as_const()?;
        let (from, to) = (nest.buf(*source), nest.buf(stage.target));
        let is_copy = stage.mode == Mode::Set && stage.group.is_none() && stage.is_identity(nest);
        if !is_copy || *source == stage.target {
            return None;
        }
        let inside = interior(nest, stage)?;
        let mut dims = Vec::new();
        let mut used = vec![false; to.shape.len()];
        for (index, extent) in at.iter().zip(&from.shape) {
            let extent = extent.number()? as i64;
            let form = Linear::of(index);
            let dim = match form.terms.as_slice() {
                [] if form.constant == 0 && extent == 1 => None,
                [(atom, 1)] if form.constant <= 0 => {
                    let dim = stage.domain.iter().position(|a| atom.is_axis(a.id))?;
                    let (low, whole) = (-form.constant, stage.domain[dim].extent.number()? as i64);
                    let (from, to) = inside[dim]?;
                    if from > low || to < whole.min(low + extent) || used[dim] {
                        return None;
                    }
                    used[dim] = true;
                    Some((dim, low, (whole - low - extent).max(0)))
                }
                _ => return None,
            };
            dims.push(dim);
        }
        let rest = used.iter().zip(&to.shape);
        let is_whole = rest.into_iter().all(|(used, n)| *used || *n == 1);
        let innermost = from.shape.iter().rposition(|n| *n > 1)?;
        let (_, low, high) = dims[innermost]?;
        (is_whole && low == 0 && high == 0).then(|| Copy {
            source: *source,
            target: stage.target,
            around: around.clone(),
            dims,
        })
    }
}

/// How far a temporary grows, and the copies that become parts of it.
struct Halo {
    /// Below and above, for each dim.
    around: Vec<(i64, i64)>,
    value: Scalar,
    copies: Vec<Copy>,
}

impl Halo {
    fn around(nest: &Nest, source: BufferId, copies: Vec<Copy>) -> Halo {
        let mut around = vec![(0, 0); nest.buf(source).shape.len()];
        for copy in &copies {
            for (around, dim) in around.iter_mut().zip(&copy.dims) {
                if let Some((_, low, high)) = dim {
                    *around = (around.0.max(*low), around.1.max(*high));
                }
            }
        }
        Halo {
            around,
            value: copies[0].around.clone(),
            copies,
        }
    }

    /// The stages that write the border of a temporary of this shape within its halo, for `writer`, its first.
    fn fills(&self, nest: &mut Nest, writer: &Stage, shape: &[i64]) -> Vec<Stage> {
        let mut fills = Vec::new();
        for (dim, (low, high)) in self.around.iter().enumerate() {
            for (from, count) in [(0, *low), (low + shape[dim], *high)] {
                if count == 0 {
                    continue;
                }
                // Of the dims before this one, only the middle is not written yet.
                let parts = self.around.iter().zip(shape).enumerate();
                let parts = parts.map(|(d, ((low, high), n))| match d.cmp(&dim) {
                    std::cmp::Ordering::Less => (*low, *n),
                    std::cmp::Ordering::Equal => (from, count),
                    std::cmp::Ordering::Greater => (0, low + n + high),
                });
                let parts: Vec<(i64, i64)> = parts.collect();
                let domain: Vec<Axis> = parts.iter().map(|(_, n)| nest.axis(*n as usize)).collect();
                let at = domain.iter().zip(&parts);
                let at = at.map(|(axis, (from, _))| plus(&Scalar::axis(axis.id), *from));
                fills.push(Stage {
                    at: at.collect(),
                    domain,
                    target: writer.target,
                    mode: Mode::Set,
                    value: self.value.clone(),
                    layers: writer.layers.clone(),
                    group: None,
                });
            }
        }
        fills
    }
}

/// Stores the temporaries with their halos: what was at `i` is at `i + low` now.
fn apply(nest: &mut Nest, halos: &FxHashMap<BufferId, Halo>, dropped: &FxHashSet<BufferId>) {
    let copies: FxHashMap<BufferId, (&Halo, &Copy)> = halos
        .values()
        .flat_map(|halo| {
            halo.copies
                .iter()
                .map(move |copy| (copy.target, (halo, copy)))
        })
        .collect();
    let access = |buffer: BufferId, at: &[Scalar]| -> Option<(BufferId, Vec<Scalar>)> {
        if let Some(halo) = halos.get(&buffer) {
            let at = at.iter().zip(&halo.around);
            return Some((buffer, at.map(|(x, (low, _))| plus(x, *low)).collect()));
        }
        let (halo, copy) = copies.get(&buffer)?;
        let places = copy.dims.iter().zip(&halo.around);
        let places = places.map(|(dim, (low, _))| match dim {
            Some((dim, below, _)) => plus(&at[*dim], low - below),
            // The only element, which another copy may have a border around.
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
            let shape = nest.buf(stage.target).example();
            let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
            let fills = halo.fills(nest, &stage, &shape);
            // Not between a contraction and its epilogue, which runs with its tasks.
            let of_layer = nest.stages.iter().rposition(|s| s.layers != stage.layers);
            let start = of_layer.map_or(0, |at| at + 1);
            nest.stages.splice(start..start, fills);
        }
        nest.stages.push(stage);
    }
    for (buffer, halo) in halos {
        let shape = &mut nest.buffers[buffer.0 as usize].shape;
        for (extent, (low, high)) in shape.iter_mut().zip(&halo.around) {
            *extent = extent
                .number()
                .map_or(*extent, |n| (n + (low + high) as usize).into());
        }
    }
}

fn plus(x: &Scalar, n: i64) -> Scalar {
    match n {
        0 => x.clone(),
        n => x.clone() + n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::build::*;
    use crate::ir::{Binary, Role};
    use crate::{BufferBytes, interpret};
    use vinelift_tensor::ElementType::F32;

    /// `t: [4, 6, 8]`, which is `x`, doubled, if that is an input.
    fn picture(role: Role) -> (Nest, BufferId) {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4, 6, 8], Role::Input);
        nest.buffer("w", F32, &[5, 5, 8], Role::Input);
        if role == Role::Input {
            return (nest, x);
        }
        let t = nest.buffer("t", F32, &[4, 6, 8], role);
        nest.define(vec![], t, |n, at| {
            n.load(x, at.to_vec()) + n.load(x, at.to_vec())
        });
        (nest, t)
    }

    /// `y[i, j, c] = Σ_{k, l} t[i + k - size/2, j + l - size/2, c] · w[k, l, c]`, zero outside of `t`; or along the last
    /// two dims.
    fn window(nest: &mut Nest, t: BufferId, size: usize, last: bool) {
        let y = nest.buffer("y", F32, &[4, 6, 8], Role::Output);
        let layer = nest.layer("window", "GroupConvolution, opset1");
        let extents = nest.buf(t).example();
        nest.define(vec![layer], y, |n, at| {
            let axes = n.axes(&[size, size]);
            let mut place = at.to_vec();
            let mut guard = Vec::new();
            for (dim, axis) in axes.iter().enumerate() {
                let dim = dim + usize::from(last);
                place[dim] = &at[dim] + Scalar::axis(axis.id) - (size / 2) as i64;
                guard.push(inside(&place[dim], 0, extents[dim] as i64));
            }
            let guard = guard.into_iter().reduce(|a, b| a & b).unwrap();
            let x = select(guard, n.load(t, place), zero(F32));
            let tap = |d: usize| Scalar::axis(axes[d].id);
            let w = n.load(BufferId(1), vec![tap(0), tap(1), at[2].clone()]);
            let term = Scalar::binary(Binary::Term, x, w);
            Scalar::reduce(Binary::Add, axes.clone(), zero(F32), term)
        });
    }

    /// The stages with halos, which must compute the same as without.
    fn with_halos(mut nest: Nest) -> Vec<String> {
        let expected = run(&nest);
        store_halos(&mut nest);
        verify(&nest).unwrap();
        assert!(run(&nest) == expected, "{:#?}", nest.stage_texts());
        nest.stage_texts()
    }

    /// The bytes of all outputs, memory being full of something else before.
    fn run(nest: &Nest) -> Vec<Vec<u8>> {
        let value = |k: usize| ((k * 7919) % 23) as f32 - 11.0;
        let mut memory: Vec<Vec<u8>> = (nest.buffers.iter())
            .map(|b| b.example().iter().product::<usize>())
            .map(|n| (0..n).flat_map(|k| value(k).to_le_bytes()).collect())
            .collect();
        let mut buffers: Vec<BufferBytes<'_>> = (memory.iter_mut().zip(&nest.buffers))
            .map(|(bytes, buffer)| match buffer.role {
                Role::Input => BufferBytes::Read(bytes),
                _ => BufferBytes::Write(bytes),
            })
            .collect();
        interpret(nest, &mut buffers).unwrap();
        drop(buffers);
        let outputs = memory.into_iter().zip(&nest.buffers);
        outputs
            .filter_map(|(bytes, b)| (b.role == Role::Output).then_some(bytes))
            .collect()
    }

    #[test]
    fn a_window_reads_what_is_stored_with_its_border() {
        let (mut nest, t) = picture(Role::Temporary);
        window(&mut nest, t, 3, false);
        assert_eq!(
            with_halos(nest),
            [
                "for i<1, j<8, k<8: t[i, j, k] = 0.0",
                "for i<1, j<8, k<8: t[(i + 5), j, k] = 0.0",
                "for i<4, j<1, k<8: t[(i + 1), j, k] = 0.0",
                "for i<4, j<1, k<8: t[(i + 1), (j + 7), k] = 0.0",
                "for i<4, j<6, k<8: t[(i + 1), (j + 1), k] = (x[i, j, k] + x[i, j, k])",
                "for i<4, j<6, k<8: y[i, j, k] = \
                 add[l<3, m<3; 0.0](term(t[(i + l), (j + m), k], w[l, m, k]))",
            ]
        );
    }

    #[test]
    fn the_widest_border_serves_all_windows() {
        let (mut nest, t) = picture(Role::Temporary);
        for size in [3, 5, 3] {
            window(&mut nest, t, size, false);
        }
        let stages = with_halos(nest);
        assert_eq!(stages.len(), 4 + 1 + 3, "{stages:#?}");
        assert!(
            stages[5].contains("term(t[((i + l) + 1), ((j + m) + 1), k]"),
            "{stages:#?}"
        );
        assert!(
            stages[6].contains("term(t[(i + l), (j + m), k]"),
            "{stages:#?}"
        );
    }

    /// `y[i, j, c] = Σ_f Σ_{k, l} t[i + k - size_f/2, j + l - size_f/2, c] · w[k, l, c]`
    #[test]
    fn all_windows_of_a_stage_read_the_border() {
        let (mut nest, t) = picture(Role::Temporary);
        let y = nest.buffer("y", F32, &[4, 6, 8], Role::Output);
        nest.define(vec![], y, |n, at| {
            let sums = [3, 1, 5].map(|size: usize| {
                let axes = n.axes(&[size, size]);
                let tap = |d: usize| Scalar::axis(axes[d].id);
                let place = |d: usize| &at[d] + tap(d) - (size / 2) as i64;
                let guard = inside(&place(0), 0, 4) & inside(&place(1), 0, 6);
                let load = n.load(t, vec![place(0), place(1), at[2].clone()]);
                let x = match size {
                    1 => load,
                    _ => select(guard, load, zero(F32)),
                };
                let w = n.load(BufferId(1), vec![tap(0), tap(1), at[2].clone()]);
                let term = Scalar::binary(Binary::Term, x, w);
                Scalar::reduce(Binary::Add, axes.clone(), zero(F32), term)
            });
            let [a, b, c] = sums;
            a + b + c
        });
        let stages = with_halos(nest);
        assert_eq!(stages.len(), 4 + 1 + 1, "{stages:#?}");
        let window = stages.last().unwrap();
        let is_read = |place: &str| window.contains(&format!("term(t[{place}, "));
        assert!(
            is_read("((i + l) + 1), ((j + m) + 1)") && !window.contains("select"),
            "{window}"
        );
    }

    #[test]
    fn rows_that_need_borders_and_inputs_are_copied() {
        let (mut nest, t) = picture(Role::Temporary);
        window(&mut nest, t, 3, true);
        let stages = with_halos(nest);
        assert!(
            stages[0].starts_with("for i<4, j<6, k<8: t[i, j, k]"),
            "{stages:#?}"
        );
        let (mut nest, x) = picture(Role::Input);
        window(&mut nest, x, 3, false);
        let stages = with_halos(nest);
        assert!(
            stages[0].starts_with("for i<6, j<8, k<8: y.padded[i, j, k] = select"),
            "{stages:#?}"
        );
    }

    #[test]
    fn a_copy_of_a_copy_stays() {
        let (mut nest, t) = picture(Role::Temporary);
        let wide = nest.buffer("wide", F32, &[6, 6, 8], Role::Temporary);
        nest.define(vec![], wide, |n, at| {
            let row = at[0].clone() - 1;
            let guard = inside(&row, 0, 4);
            let place = vec![row, at[1].clone(), at[2].clone()];
            select(guard, n.load(t, place), zero(F32))
        });
        window(&mut nest, wide, 3, false);
        let part = nest.buffer("part", F32, &[6, 6, 8], Role::Output);
        nest.define(vec![], part, |n, at| n.load(wide, at.to_vec()));
        let stages = with_halos(nest);
        let copy = "for i<6, j<8, k<8: y.padded[i, j, k] = select";
        assert!(
            stages.iter().any(|stage| stage.starts_with(copy)),
            "{stages:#?}"
        );
    }

    /// A picture of one pixel, with a border along either dim for a window of its own.
    #[test]
    fn copies_without_a_dim_have_it_where_others_have_a_border() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[1, 1, 8], Role::Input);
        let t = nest.buffer("t", F32, &[1, 1, 8], Role::Temporary);
        nest.define(vec![], t, |n, at| {
            n.load(x, at.to_vec()) + n.load(x, at.to_vec())
        });
        for dim in 0..2 {
            let wide = nest.buffer("wide", F32, &[3, 8], Role::Temporary);
            nest.define(vec![], wide, |n, at| {
                let mut place = vec![index(0), index(0), at[1].clone()];
                place[dim] = at[0].clone() - 1;
                let guard = inside(&place[dim], 0, 1);
                select(guard, n.load(t, place), zero(F32))
            });
            let y = nest.buffer("y", F32, &[3, 8], Role::Output);
            nest.define(vec![], y, |n, at| n.load(wide, at.to_vec()));
        }
        let stages = with_halos(nest);
        assert_eq!(
            stages[5..],
            [
                "for i<3, j<8: y[i, j] = t[i, 1, j]",
                "for i<3, j<8: y.5[i, j] = t[1, i, j]",
            ]
        );
    }

    #[test]
    fn a_copy_of_what_is_written_again_stays() {
        let (mut nest, t) = picture(Role::Temporary);
        window(&mut nest, t, 3, false);
        nest.define(vec![], t, |_, _| number(1.0, F32));
        window(&mut nest, t, 3, false);
        let stages = with_halos(nest);
        let copy = "for i<6, j<8, k<8: y.padded[i, j, k] = select";
        assert!(stages[5].starts_with(copy), "{stages:#?}");
        assert_eq!(stages.len(), 4 + 5, "{stages:#?}");
    }
}
