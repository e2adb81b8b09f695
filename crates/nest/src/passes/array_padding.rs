//! Array padding: rows that nothing uses keep the channels of pictures from lying whole pages apart.
//!
//! > `x[c, i, j]` of `x: [24, 128, 128]` becomes `x[c, i, j]` of `x: [24, 129, 128]`
//!
//! A cache finds a line by the lower bits of its address. Elements whole pages apart share a few of its places, so that a sum
//! over channels, which takes an element of each, would have only those: 24·24 channels of 128×128 take a fifth longer. The
//! values are the same. Temporaries of such sums of products are padded, as inputs and results belong to the caller, unless a
//! stage finds their channels by dividing an index, as a reshape does: with rows that nothing uses there is no one offset any more.

use crate::ir::{
    Binary, BufferId, Kind, Nest, Role, Scalar, Stage, visit, visit_accesses, visit_folds,
};
use rustc_hash::FxHashSet;

/// The bytes that the lines at the same place of the first cache are apart.
const PAGE: usize = 4096;

/// The least channels that are worth it: as many lines as a place of the first cache holds.
const LEAST_CHANNELS: usize = 8;

/// The least elements of a row: shorter ones are windows of weights.
const LEAST_ROW: usize = 16;

/// Pads the temporaries that sums of products go through channel by channel, and those that these write.
pub(crate) fn pad_arrays(nest: &mut Nest) {
    let mut padded = FxHashSet::default();
    for stage in &nest.stages {
        let operands = operands(nest, stage);
        if operands.is_empty() {
            continue;
        }
        padded.extend(operands);
        if crowded_dim(nest, stage.target).is_some() {
            padded.insert(stage.target);
        }
    }
    if padded.is_empty() {
        return;
    }
    for stage in &nest.stages {
        visit_accesses(stage, &mut |buffer, at| {
            if padded.contains(&buffer) && at.iter().any(divides) {
                padded.remove(&buffer);
            }
        });
    }
    for buffer in padded {
        if let Some(dim) = crowded_dim(nest, buffer) {
            let rows = &mut nest.buffers[buffer.0 as usize].shape[dim + 1];
            *rows = rows.number().map_or(*rows, |n| (n + 1).into());
        }
    }
}

fn divides(index: &Scalar) -> bool {
    let mut divides = false;
    visit(index, &mut |x| {
        divides |= matches!(x.kind(), Kind::Binary(Binary::Div | Binary::Rem, ..));
    });
    divides
}

/// The operands of a sum of products that it goes through along a crowded dim.
fn operands(nest: &Nest, stage: &Stage) -> Vec<BufferId> {
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
            if crowded_dim(nest, buffer).is_some_and(|dim| along(&at[dim])) {
                operands.push(buffer);
            }
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

    #[test]
    fn others_stay() {
        let stages = scheduled(33);
        assert!(stages[1].contains("t[((k * 1056) + j)]"), "{stages:#?}");
        let stages = scheduled(31);
        assert!(stages[1].contains("t[((k * 992) + j)]"), "{stages:#?}");
    }
}
