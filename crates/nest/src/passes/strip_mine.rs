//! Strip-mining: the only loop around the lanes of a window becomes two, of which the inner one is short.
//!
//! > `for j<200, k<256: y[j, k] = Σ_{l<9} x[j + l, k] · w[l, k]` becomes
//! > `for i<25, j<8, k<256: y[8·i + j, k] = Σ_{l<9} x[8·i + j + l, k] · w[l, k]`
//!
//! A kernel is cut into chunks along its outermost loop, wherever that suits the threads. Rows of a loop inside of it may be
//! done side by side, so that what they share is loaded once. Windows over pictures have such a loop; those over a sequence, as in
//! separable convolutions over speech, get one here.

use crate::analysis::{Contraction, Linear, layer_ranges, sums};
use crate::ir::{Axis, Kind, Nest, Scalar, Stage, visit};
use crate::passes::split::split_axis;

/// The rows of the inner loop, the most wanted first: those of unrolled loops, and numbers that these divide well.
const ROWS: [usize; 6] = [8, 4, 6, 7, 5, 3];

/// The least chunks that a kernel can be cut into afterwards: a few for each thread.
const LEAST_CHUNKS: usize = 8;

/// Divides the loops of stages with which no other stage of their kernel is cut into chunks.
pub(crate) fn strip_mine_windows(nest: &mut Nest) {
    for kernel in layer_ranges(nest, |stage| Contraction::of(nest, stage).is_some()) {
        let outermost: Vec<Option<Axis>> = nest.stages[kernel.clone()]
            .iter()
            .map(Stage::outermost)
            .collect();
        for position in kernel {
            let stage = &nest.stages[position];
            let Some((place, rows)) = only_loop(stage).filter(|(_, rows)| slides(stage, rows))
            else {
                continue;
            };
            let as_long = outermost.iter().flatten();
            if as_long.filter(|axis| axis.extent == rows.extent).count() == 1 {
                divide(nest, position, place, rows);
            }
        }
    }
}

/// Makes two loops of the axis `rows`, which is at `place` in the domain of a stage.
fn divide(nest: &mut Nest, stage: usize, place: usize, rows: Axis) -> Option<()> {
    let divides = |count: &usize| {
        let chunks = rows.extent.number().filter(|n| n.is_multiple_of(*count));
        chunks.is_some_and(|n| n / count >= LEAST_CHUNKS)
    };
    let count = ROWS.into_iter().find(divides)?;
    let mut divided = nest.stages[stage].clone();
    split_axis(nest, &mut divided, place, count.into())?;
    nest.stages[stage] = divided;
    Some(())
}

/// The place and the axis of the only loop around the lanes, if points may be done in any order.
fn only_loop(stage: &Stage) -> Option<(usize, Axis)> {
    let mut loops = (stage.domain.iter().enumerate()).filter(|(_, axis)| axis.extent > 1);
    let (rows, _, None) = (loops.next()?, loops.next()?, loops.next()) else {
        return None;
    };
    stage.is_unordered().then_some((rows.0, *rows.1))
}

/// Whether the only fold of a stage is a sum of products for which one row reads elements that the next one reads, too.
fn slides(stage: &Stage, rows: &Axis) -> bool {
    let [sum] = &sums(stage)[..] else {
        return false;
    };
    let Kind::Reduce { axes, body, .. } = sum.kind() else {
        return false;
    };
    let mut found = false;
    visit(body, &mut |x| {
        let Kind::Load { at, .. } = x.kind() else {
            return;
        };
        for form in at.iter().map(Linear::of) {
            let step = |axis: &Axis| {
                let mut terms = form.terms.iter();
                let of_axis = |(atom, _): &&(Scalar, i64)| atom.is_axis(axis.id);
                terms.find(of_axis).map_or(0, |(_, step)| *step)
            };
            found |= axes.iter().any(|tap| {
                let (row, tap, taps) = (step(rows), step(tap), tap.extent.number());
                let apart = (row > 0 && tap > 0 && row % tap == 0).then(|| row / tap);
                apart.is_some_and(|apart| taps.is_some_and(|n| apart < n as i64))
            });
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::ir::parse;

    /// Windows of 9 along `rows`, of 32 channels, each of which steps by `step`.
    fn mined(rows: usize, step: usize) -> String {
        let text = format!(
            "input x: f32[{}, 32]\ninput w: f32[9, 32]\noutput y: f32[{rows}, 32]\n\
             for i<{rows}, j<32: y[i, j] = add[k<9; 0.0](term(x[((i * {step}) + k), j], w[k, j]))\n",
            rows * step + 9
        );
        let mut nest = parse(&text).unwrap();
        strip_mine_windows(&mut nest);
        verify(&nest).unwrap();
        nest.stage_texts()[0].clone()
    }

    #[test]
    fn rows_that_share_elements_are_divided() {
        let text = "for i<25, j<8, k<32: y[((i * 8) + j), k] = \
                    add[l<9; 0.0](term(x[(((i * 8) + j) + l), k], w[l, k]))";
        assert_eq!(mined(200, 1), text);
        assert!(mined(100, 2).starts_with("for i<25, j<4, k<32"));
        assert!(mined(99, 1).starts_with("for i<33, j<3, k<32"));
    }

    #[test]
    fn others_stay() {
        // They share nothing, there are too few, or a prime number of them.
        assert!(mined(200, 9).starts_with("for i<200"));
        assert!(mined(16, 1).starts_with("for i<16"));
        assert!(mined(101, 1).starts_with("for i<101"));
    }
}
