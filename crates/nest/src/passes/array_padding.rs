//! Array padding: rows or lines that nothing uses keep the elements that a sum goes through from lying whole pages apart.
//!
//! > `x[c, i, j]` of `x: [24, 128, 128]` becomes `x[c, i, j]` of `x: [24, 129, 128]`
//!
//! A cache chooses the set of a line by the lower bits of its address. Elements whole pages apart fall into the same few sets, so a
//! sum over channels, which reads one element of each, would evict its own lines: a product of 24·24 channels of 128×128 takes a
//! fifth longer. The values are the same. Temporaries of such sums of products are padded, as inputs and results belong to the caller, unless a
//! stage finds their channels by dividing an index, as a reshape does: with rows that nothing uses there is no one offset any more.
//!
//! > `x[i, j, c]` of `x: [18, 18, 256]` becomes `x[i, j, c]` of `x: [18, 18, 272]`
//!
//! So do the pixels of windows over pictures with their channels last, which go through the channels one after the other: the
//! windows of several columns read a line of each of their pixels, and these fall into `4096 / gcd(4096, bytes of a pixel)` sets of
//! a few lines each. Windows of 3×3 in 12 columns have 42 pixels; with 512 channels, there were 16 lines for them.

use crate::analysis::Linear;
use crate::ir::{
    Axis, AxisId, Binary, BufferId, Kind, Nest, Role, Scalar, Stage, free_axes, visit,
    visit_accesses, visit_folds,
};
use rustc_hash::FxHashMap;

/// How many bytes apart lines of the same set of the first cache lie.
const PAGE: usize = 4096;

/// The lines of a set of a small first cache.
const WAYS: usize = 8;

/// The columns of results that a contraction kernel has at a time; the largest have 14.
const COLUMNS: usize = 12;

/// The bytes of a line of the cache.
const LINE: usize = 64;

/// Fewer channels are not padded: a set of the first cache has a line for each of them.
const LEAST_CHANNELS: usize = 8;

/// The least elements of a row: shorter ones are windows of weights.
const LEAST_ROW: usize = 16;

/// Pads the temporaries that sums of products go through channel by channel, those that these write, and those that windows
/// slide over pixel by pixel.
pub(crate) fn pad_arrays(nest: &mut Nest) {
    // The dim that grows, and by how much.
    let mut padded: FxHashMap<BufferId, (usize, usize)> = FxHashMap::default();
    for stage in &nest.stages {
        for (buffer, pixels) in windowed(nest, stage) {
            if let Some(padding) = crowded_pixels(nest, buffer, pixels) {
                padded.insert(buffer, padding);
            }
        }
        let mut crowded = operands(nest, stage);
        if !crowded.is_empty() {
            crowded.extend(crowded_dim(nest, stage.target).map(|dim| (stage.target, dim)));
        }
        padded.extend(
            crowded
                .into_iter()
                .map(|(buffer, dim)| (buffer, (dim + 1, 1))),
        );
    }
    if padded.is_empty() {
        return;
    }
    for stage in &nest.stages {
        visit_accesses(stage, &mut |buffer, at| {
            if padded.contains_key(&buffer) && at.iter().any(divides) {
                padded.remove(&buffer);
            }
        });
    }
    for (buffer, (dim, more)) in padded {
        let extent = &mut nest.buffers[buffer.0 as usize].shape[dim];
        *extent = extent.number().map_or(*extent, |n| (n + more).into());
    }
}

/// The temporaries that a sum of products goes through by windows or their taps, and whose last dim are channels: those it sums
/// over, or an axis of the stage that is the last one of all that it multiplies. Each with the pixels of the windows of several
/// columns.
fn windowed(nest: &Nest, stage: &Stage) -> Vec<(BufferId, usize)> {
    let mut operands = Vec::new();
    visit_folds(stage, &mut |x| {
        let Kind::Reduce { axes, body, .. } = x.kind() else {
            return;
        };
        if body.as_term().is_none() {
            return;
        }
        let is_tap = |id: &AxisId| axes.iter().any(|a| a.id == *id && a.extent > 1);
        let mut factors: Vec<(BufferId, Vec<Scalar>)> = Vec::new();
        visit(body, &mut |x| {
            if let Kind::Load { buffer, at } = x.kind() {
                factors.push((*buffer, at.clone()));
            }
        });
        let last = |at: &[Scalar], axes: &[Axis]| {
            let is_last = |axis: &&Axis| at.last().is_some_and(|last| last.is_axis(axis.id));
            axes.iter().find(is_last).map(|axis| axis.id)
        };
        let first = factors.first().and_then(|(_, at)| last(at, &stage.domain));
        let are_same =
            first.is_some() && (factors.iter()).all(|(_, at)| last(at, &stage.domain) == first);
        let is_window = |index: &Scalar| {
            let axes = free_axes(index);
            axes.iter().any(is_tap) && !axes.iter().all(is_tap)
        };
        // Taps of a window, or of a copy that has them apart.
        let goes_through_taps = |at: &[Scalar]| {
            let outer = at.split_last().map_or(at, |(_, outer)| outer);
            last(at, axes).is_some()
                && outer
                    .iter()
                    .any(|index| free_axes(index).iter().any(is_tap))
        };
        let windows = factors
            .iter()
            .filter(|(_, at)| goes_through_taps(at) || are_same && at.iter().any(is_window));
        operands.extend(windows.map(|(buffer, at)| (*buffer, pixels(at, axes))));
    });
    operands.retain(|(b, _)| nest.buf(*b).role == Role::Temporary && *b != stage.target);
    operands
}

/// The pixels that windows over `taps` have in [`COLUMNS`] columns, where `at` is the index of an element: the last dim but one
/// has the columns of a line.
fn pixels(at: &[Scalar], taps: &[Axis]) -> usize {
    let outer = at.split_last().map_or(at, |(_, outer)| outer);
    let values = |(dim, index): (usize, &Scalar)| {
        let form = Linear::of(index);
        let terms = form.terms.iter().filter_map(|(atom, k)| {
            let tap = taps.iter().find(|tap| atom.is_axis(tap.id));
            let count = match tap {
                Some(tap) => tap.extent.example(),
                None if dim + 1 == outer.len() => COLUMNS,
                None => return None,
            };
            Some((count, k.unsigned_abs() as usize))
        });
        let (all, reach) = terms.fold((1usize, 1usize), |(all, reach), (count, k)| {
            let steps = count.saturating_sub(1).saturating_mul(k);
            (all.saturating_mul(count), reach.saturating_add(steps))
        });
        all.min(reach)
    };
    outer
        .iter()
        .enumerate()
        .map(values)
        .fold(1, usize::saturating_mul)
}

/// The last dim of a temporary, and by how many elements to pad it, if a kernel reads `pixels` at a time, and the sets of the first
/// cache which these fall into cannot hold a line of each.
fn crowded_pixels(nest: &Nest, buffer: BufferId, pixels: usize) -> Option<(usize, usize)> {
    let b = nest.buf(buffer);
    let dim = b.shape.len().checked_sub(1)?;
    let bytes = b.ty.bits() / 8;
    let pixel = b.shape[dim].number()?.checked_mul(bytes)?;
    // The greatest power of two that divides the bytes of a pixel, and those of a page.
    let apart = (1 << pixel.trailing_zeros().min(PAGE.trailing_zeros())).max(LINE);
    let crowds = pixel > LINE && apart > LINE && pixels > PAGE / apart * WAYS;
    (bytes > 0 && crowds).then(|| (dim, LINE / bytes))
}

fn divides(index: &Scalar) -> bool {
    let mut divides = false;
    visit(index, &mut |x| {
        divides |= matches!(x.kind(), Kind::Binary(Binary::Div | Binary::Rem, ..));
    });
    divides
}

/// The operands of a sum of products that it goes through along a crowded dim, each with that dim.
fn operands(nest: &Nest, stage: &Stage) -> Vec<(BufferId, usize)> {
    let mut operands = Vec::new();
    visit_folds(stage, &mut |x| {
        let Kind::Reduce { axes, body, .. } = x.kind() else {
            return;
        };
        if body.as_term().is_none() {
            return;
        }
        let along = |index: &Scalar| axes.iter().any(|axis| *index == Scalar::axis(axis.id));
        visit_accesses(stage, &mut |buffer, at| {
            let dim = crowded_dim(nest, buffer).filter(|dim| along(&at[*dim]));
            operands.extend(dim.map(|dim| (buffer, dim)));
        });
    });
    operands
}

/// The outermost dim of a temporary, of several rows of rows, whose elements lie whole pages apart.
fn crowded_dim(nest: &Nest, buffer: BufferId) -> Option<usize> {
    let buffer = nest.buf(buffer);
    if buffer.role != Role::Temporary || buffer.ty.is_packed() {
        return None;
    }
    let shape: Vec<usize> = buffer
        .shape
        .iter()
        .map(|n| n.number())
        .collect::<Option<_>>()?;
    let [.., row] = shape[..] else { return None };
    let dims = 0..shape.len().saturating_sub(2);
    let crowds = |dim: &usize| {
        let elements = shape[dim + 1..]
            .iter()
            .try_fold(1usize, |n, &extent| n.checked_mul(extent));
        let bytes = elements.and_then(|n| n.checked_mul(buffer.ty.bits() / 8));
        shape[*dim] >= LEAST_CHANNELS && bytes.is_some_and(|n| n > 0 && n.is_multiple_of(PAGE))
    };
    dims.into_iter().find(crowds).filter(|_| row >= LEAST_ROW)
}

#[cfg(test)]
mod tests {
    use crate::analysis::verify;
    use crate::ir::parse;
    use crate::passes::schedule::schedule;

    /// `t`, a temporary of 24 channels of `rows` by 32, of which sums of products are made, scheduled, with `more` stages.
    fn scheduled(rows: usize) -> Vec<String> {
        texts(rows, "")
    }

    fn texts(rows: usize, more: &str) -> Vec<String> {
        let text = format!(
            "input x: f32[24, {rows}, 32]\ninput w: f32[8, 24]\ntemporary t: f32[24, {rows}, 32]\n\
             output y: f32[8, {rows}, 32]\noutput z: f32[768, {rows}]\n\
             for i<24, j<{rows}, k<32: t[i, j, k] = (x[i, j, k] + 1.0)\n\
             for i<8, j<{rows}, k<32: y[i, j, k] = add[l<24; 0.0](term(t[l, j, k], w[i, l]))\n{more}"
        );
        let mut nest = parse(&text).unwrap();
        schedule(&mut nest);
        verify(&nest).unwrap();
        nest.stage_texts()
    }

    #[test]
    fn channels_a_page_apart_get_a_row_more() {
        let stages = scheduled(32);
        assert!(stages[0].contains("t[((i * 1056) + j)]"), "{stages:#?}");
        assert!(stages[1].contains("y[((i * 1024) + j)]"), "{stages:#?}");
        assert!(stages[1].contains("t[((k * 1056) + j)]"), "{stages:#?}");
    }

    #[test]
    fn a_reshape_keeps_channels_where_they_are() {
        let more = "for i<768, j<32: z[i, j] = t[(i / 32), (i % 32), j]\n";
        let stages = texts(32, more);
        assert!(stages[1].contains("t[((k * 1024) + j)]"), "{stages:#?}");
    }

    /// `t`, of 6 by 6 pixels with this many channels, doubled, and windows of 3 by 3 over it.
    fn windows(channels: usize) -> Vec<String> {
        let text = format!(
            "input x: f32[6, 6, {channels}]\ninput w: f32[3, 3, {channels}]\ntemporary t: f32[6, 6, {channels}]\n\
             output y: f32[4, 4, {channels}]\n\
             for i<6, j<6, k<{channels}: t[i, j, k] = (x[i, j, k] + x[i, j, k])\n\
             for i<4, j<4, k<{channels}: y[i, j, k] = add[l<3, m<3; 0.0](term(t[(i + l), (j + m), k], w[l, m, k]))\n"
        );
        let mut nest = parse(&text).unwrap();
        schedule(&mut nest);
        verify(&nest).unwrap();
        nest.stage_texts()
    }

    #[test]
    fn pixels_a_quarter_of_a_page_apart_get_a_line_more() {
        let stages = windows(256);
        assert!(stages[0].contains("t[((i * 272) + j)]"), "{stages:#?}");
        let stages = windows(248);
        assert!(stages[0].contains("t[i]"), "{stages:#?}");
    }

    /// `t`, of 6 by 6 pixels with this many channels, and sums over windows of 3 by 3, channel after channel.
    fn convolution(channels: usize) -> Vec<String> {
        let text = format!(
            "input x: f32[6, 6, {channels}]\ninput w: f32[8, {channels}, 3, 3]\ntemporary t: f32[6, 6, {channels}]\n\
             output y: f32[4, 4, 8]\n\
             for i<6, j<6, k<{channels}: t[i, j, k] = (x[i, j, k] + x[i, j, k])\n\
             for i<4, j<4, k<8: y[i, j, k] = add[l<{channels}, m<3, n<3; 0.0](term(t[(i + m), (j + n), l], w[k, l, m, n]))\n"
        );
        let mut nest = parse(&text).unwrap();
        schedule(&mut nest);
        verify(&nest).unwrap();
        nest.stage_texts()
    }

    #[test]
    fn pixels_whose_channels_a_sum_goes_through_get_a_line_more() {
        for (channels, padded) in [(256, 272), (512, 528)] {
            let stages = convolution(channels);
            let place = format!("t[((i * {padded}) + j)]");
            assert!(stages[0].contains(&place), "{stages:#?}");
        }
        let stages = convolution(500);
        assert!(stages[0].contains("t[i]"), "{stages:#?}");
    }

    /// Taps that lie apart, as a transposed convolution stores them for each of its phases.
    #[test]
    fn pixels_of_taps_get_a_line_more() {
        let text = "input x: f32[2, 4, 512]\ninput w: f32[8, 512, 2]\ntemporary t: f32[2, 4, 512]\noutput y: f32[4, 8]\n\
                    for i<2, j<4, k<512: t[i, j, k] = (x[i, j, k] + x[i, j, k])\n\
                    for i<4, j<8: y[i, j] = add[k<512, l<2; 0.0](term(t[l, i, k], w[j, k, l]))\n";
        let mut nest = parse(text).unwrap();
        schedule(&mut nest);
        verify(&nest).unwrap();
        let stages = nest.stage_texts();
        assert!(
            stages[1].contains("t[(((l * 2112) + (i * 528)) + k)]"),
            "{stages:#?}"
        );
    }

    /// The places of 128 channels hold 64 lines: windows of 3×3×3 in 12 columns have 14·9 pixels, those of 3×3 with a step of two
    /// 25·3, and with a step of one 14·3.
    #[test]
    fn windows_of_more_pixels_than_their_places_hold_get_a_line_more() {
        let first = |taps: usize, step: usize| {
            let (planes, rows) = (taps, 2 * step + 3);
            let text = format!(
                "input x: f32[{planes}, {rows}, {rows}, 128]\ninput w: f32[8, 128, {taps}, 3, 3]\n\
                 temporary t: f32[{planes}, {rows}, {rows}, 128]\noutput y: f32[3, 3, 8]\n\
                 for i<{planes}, j<{rows}, k<{rows}, l<128: t[i, j, k, l] = (x[i, j, k, l] + x[i, j, k, l])\n\
                 for i<3, j<3, k<8: y[i, j, k] = add[l<128, m<{taps}, n<3, o<3; 0.0](term(t[m, ((i * {step}) + n), ((j * {step}) + o), l], w[k, l, m, n, o]))\n"
            );
            let mut nest = parse(&text).unwrap();
            schedule(&mut nest);
            verify(&nest).unwrap();
            nest.stage_texts().swap_remove(0)
        };
        for (taps, step, is_padded) in [(1, 1, false), (1, 2, true), (3, 1, true)] {
            let stage = first(taps, step);
            assert_eq!(stage.contains("* 144)"), is_padded, "{stage}");
        }
    }

    #[test]
    fn others_stay() {
        let stages = scheduled(33);
        assert!(stages[1].contains("t[((k * 1056) + j)]"), "{stages:#?}");
        let stages = scheduled(31);
        assert!(stages[1].contains("t[((k * 992) + j)]"), "{stages:#?}");
    }
}
