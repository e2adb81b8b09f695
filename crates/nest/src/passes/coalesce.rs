//! Coalescing: the two outermost loops of a stage become one where other stages of its kernel go through as many
//! points in one loop, or in two as well. A kernel is cut into chunks along the outermost loops of its stages, so it
//! is cut into more of them then, which use less memory each.
//!
//! > `for a<A, b<B, k<K: y[a, b, k] = x[a, b, k] + m[b, k]` becomes
//! > `for i<A·B, k<K: y[i / B, i % B, k] = x[i / B, i % B, k] + m[i % B, k]`
//!
//! Quotients and remainders that are digits of one index are that index again, here or in its offset. Loops over the points of
//! pictures stay two where windows go over these: neighbours along the second share what they read.

use crate::analysis::{
    Contraction, ParallelChunks, divided, is_proven, joined_digits, layer_ranges, window_overlap,
};
use crate::ir::{
    Axis, AxisId, Binary, Kind, Nest, Scalar, Stage, free_axes, replace_axes, visit,
    visit_accesses, visit_stage,
};
use crate::passes::simplify::simplify_stage;
use rustc_hash::FxHashMap;
use vinelift_tensor::Extent;

/// A kernel that can be cut into as many chunks as this is left as it is.
const ENOUGH: usize = 64;

/// The same of kernels in which windows go over pictures.
const ENOUGH_OF_WINDOWS: usize = 4;

/// The least points of a row beside which the quotient and the remainder that its index is computed by cost next to nothing.
const LONG_ROW: usize = 32;

/// Coalesces outer loops of the kernels of a nest.
pub(crate) fn coalesce_outer_loops(nest: &mut Nest) {
    let kernels = layer_ranges(nest, |stage| Contraction::of(nest, stage).is_some());
    let mut stages = std::mem::take(&mut nest.stages);
    for kernel in kernels.into_iter().filter(|stages| stages.len() > 1) {
        if let Some(coalesced) = coalesced(nest, &stages[kernel.clone()]) {
            stages.splice(kernel, coalesced);
        }
    }
    nest.stages = stages;
}

/// The stages of a kernel with longer outermost loops, if it can be cut into more chunks then. `nest` has its buffers,
/// and no stages.
fn coalesced(nest: &mut Nest, stages: &[Stage]) -> Option<Vec<Stage>> {
    let outer = stages.iter().map(Stage::outermost);
    let outer: Vec<Axis> = outer.collect::<Option<_>>()?;
    let shortest = outer
        .iter()
        .min_by_key(|axis| axis.extent.example())?
        .extent;
    if shortest.example() >= ENOUGH || stages.iter().any(|s| s.wraps() || s.group.is_some()) {
        return None;
    }
    if shortest.example() >= ENOUGH_OF_WINDOWS && stages.iter().any(has_window) {
        return None;
    }
    // How many points the loops have that each stage can be cut along.
    let points = |(stage, outer): (&Stage, &Axis)| match outer.extent == shortest {
        true => outer.extent.times(next(stage, *outer)?.extent),
        false => Some(outer.extent),
    };
    let all = stages.iter().zip(&outer).map(points);
    let all: Vec<Extent> = all.collect::<Option<_>>()?;
    let longest = *all.iter().min_by_key(|points| points.example())?;
    // One loop over all points would compute an index for each of them.
    let is_all = |((stage, outer), points): ((&Stage, &Axis), &Extent)| {
        let loops = stage.domain.iter().filter(|axis| axis.extent > 1);
        let is_joined = outer.extent == shortest && *points == longest;
        let is_plain = loops.count() == 2 && !stage.value.folds();
        is_joined && is_plain && !has_one_index(nest, stage, *outer, longest)
    };
    let extent = match stages.iter().zip(&outer).zip(&all).any(is_all) {
        true => with_rows(shortest, longest)?,
        false => longest,
    };
    let coalesced = |((stage, outer), points): ((&Stage, &Axis), &Extent)| {
        let turns = points.over(extent)?.number()?;
        match outer.extent == shortest {
            true => join(stage, *outer, extent, turns),
            false => Some(stage.clone()),
        }
    };
    let coalesced = stages.iter().zip(&outer).zip(&all).map(coalesced);
    let stages: Vec<Stage> = coalesced.collect::<Option<_>>()?;
    if !stages.iter().all(|stage| is_proven(nest, stage)) {
        return None;
    }
    let is_longer = ParallelChunks::of_stages(nest, &stages).extent == extent;
    is_longer.then_some(stages)
}

/// The least multiple of `shortest` that is enough, and leaves long rows of `longest` points inside.
fn with_rows(shortest: Extent, longest: Extent) -> Option<Extent> {
    let (outer, inner) = (shortest.number()?, longest.over(shortest)?.number()?);
    let fits = |parts: &usize| inner.is_multiple_of(*parts) && outer * parts >= ENOUGH;
    let parts = (2..=inner / LONG_ROW).find(fits)?;
    Some((outer * parts).into())
}

/// Whether neighbouring turns of one of a stage's two outermost loops read the same elements.
fn has_window(stage: &Stage) -> bool {
    let outer = stage.outermost();
    let inner = outer.and_then(|outer| next(stage, outer));
    let mut loops = outer.into_iter().chain(inner);
    loops.any(|axis| window_overlap(stage, axis.id) > 0)
}

/// The loop inside of the outermost one.
fn next(stage: &Stage, outer: Axis) -> Option<Axis> {
    let mut inner = stage.domain.iter().filter(|axis| axis.extent > 1);
    inner.find(|axis| axis.id != outer.id).copied()
}

/// A stage whose two outermost loops are one of `extent` points, and a loop of `turns` points inside it unless that is
/// one. `None` if rows are too short for it.
fn join(stage: &Stage, outer: Axis, extent: Extent, turns: usize) -> Option<Stage> {
    let inner = next(stage, outer)?;
    let each = extent.over(outer.extent)?;
    let whole = Scalar::axis(outer.id);
    let mut digit = remainder(&whole, each);
    if turns > 1 {
        digit = digit * turns as i64 + Scalar::axis(inner.id);
    }
    let by: FxHashMap<AxisId, Scalar> = [(outer.id, quotient(&whole, each)), (inner.id, digit)]
        .into_iter()
        .collect();
    let mut joined = stage.clone();
    replace_axes(&mut joined, &by);
    joined.domain.retain(|axis| axis.id != inner.id);
    let position = joined.domain.iter().position(|a| a.id == outer.id)?;
    joined.domain[position].extent = extent;
    if turns > 1 {
        let axis = Axis {
            id: inner.id,
            extent: turns.into(),
        };
        joined.domain.insert(position + 1, axis);
    }
    simplify_stage(&mut joined);
    let inside = joined.domain[position + 1..].iter();
    let row = inside.fold(1, |n: usize, a| n.saturating_mul(a.extent.example()));
    (row >= LONG_ROW || moves_with_both(stage, [outer.id, inner.id])).then_some(joined)
}

/// Whether a stage of two loops, of which `outer` is the outer one, divides nothing once they are one loop of `extent` points: the indices
/// of each access are digits of one then.
fn has_one_index(nest: &Nest, stage: &Stage, outer: Axis, extent: Extent) -> bool {
    let Some(joined) = join(stage, outer, extent, 1) else {
        return false;
    };
    let mut divides = false;
    let mut look = |x: &Scalar| {
        let [quotient, remainder] = [Binary::Div, Binary::Rem].map(|op| divided(x, op));
        divides |= quotient.or(remainder).is_some();
    };
    let mut is_one = true;
    visit_accesses(&joined, &mut |buffer, at| {
        let dims = joined_digits(at, &nest.buf(buffer).shape);
        is_one &= dims.is_some();
        for (index, _) in dims.iter().flatten() {
            visit(index, &mut look);
        }
    });
    is_one && !divides
}

/// Whether everything that is loaded or written in a stage moves with both axes, or with neither.
fn moves_with_both(stage: &Stage, axes: [AxisId; 2]) -> bool {
    let is_alike = |at: &[Scalar]| {
        let [a, b] = axes.map(|axis| at.iter().any(|i| free_axes(i).contains(&axis)));
        a == b
    };
    let mut all = is_alike(&stage.at);
    visit_stage(stage, &mut |x| {
        if let Kind::Load { at, .. } = x.kind() {
            all &= is_alike(at);
        }
    });
    all
}

/// `x / n`
fn quotient(x: &Scalar, n: Extent) -> Scalar {
    match n.number() {
        Some(number) => x / number as i64,
        None => x / Scalar::extent(n),
    }
}

/// `x % n`
fn remainder(x: &Scalar, n: Extent) -> Scalar {
    match n.number() {
        Some(number) => x.rem(crate::build::index(number as i64)),
        None => x.rem(Scalar::extent(n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::ir::parse;

    /// The stages of a kernel, coalesced.
    fn coalesced(text: &str) -> Vec<String> {
        let mut nest = parse(text).unwrap();
        let layer = nest.layer("softmax", "SoftMax, opset8");
        for stage in &mut nest.stages {
            stage.layers = vec![layer];
        }
        coalesce_outer_loops(&mut nest);
        verify(&nest).unwrap();
        let text = |stage| nest.display_stage(stage).to_string();
        nest.stages.iter().map(text).collect()
    }

    #[test]
    fn rows_of_heads_are_one_loop() {
        let stages = coalesced(
            "input x: f32[4, 100, 300]\ninput mask: f32[100, 300]\n\
             temporary s: f32[4, 100, 300]\noutput y: f32[400]\n\
             for a<4, b<100, k<300: s[a, b, k] = (x[a, b, k] + mask[b, k])\n\
             for i<400: y[i] = max[k<300; 0.0](s[(i / 100), (i % 100), k])\n",
        );
        assert_eq!(
            stages[0],
            "for i<400, j<300: s[(i / 100), (i % 100), j] = (x[(i / 100), (i % 100), j] + mask[(i % 100), j])"
        );
    }

    #[test]
    fn dims_may_have_symbols() {
        let stages = coalesced(
            "symbols s0=100, s1=300\ninput x: f32[4, s0, s1]\ninput mask: f32[s0, s1]\n\
             temporary s: f32[4, s0, s1]\noutput y: f32[4, s0]\n\
             for a<4, b<s0, k<s1: s[a, b, k] = (x[a, b, k] + mask[b, k])\n\
             for a<4, b<s0: y[a, b] = max[k<s1; 0.0](s[a, b, k])\n",
        );
        let row = "(i / extent(s0)), (i % extent(s0))";
        let mask = "mask[(i % extent(s0)), j]";
        let expected = [
            format!("for i<4*s0, j<s1: s[{row}, j] = (x[{row}, j] + {mask})"),
            format!("for i<4*s0: y[{row}] = max[j<s1; 0.0](s[{row}, j])"),
        ];
        assert_eq!(stages, expected);
    }

    /// A stage of two loops whose indices are digits of one, between those of rows.
    #[test]
    fn sums_of_rows_of_all_lengths_are_one_loop() {
        let stages = coalesced(
            "symbols s0=100\ninput x: f32[4, s0, s0]\ninput mask: f32[s0, s0]\n\
             temporary s: f32[4, s0, s0]\ntemporary l: f32[4, 2*s0]\noutput y: f32[4, s0]\n\
             for a<4, b<s0, k<s0: s[a, b, k] = (x[a, b, k] + mask[b, k])\n\
             for a<4, b<s0, k<2: l[a, ((b * 2) + k)] = s[a, b, k]\n\
             for a<4, b<s0: y[a, b] = (l[a, (b * 2)] + l[a, ((b * 2) + 1)])\n",
        );
        let [row, pair] = ["(i % extent(s0))", "((i % extent(s0)) * 2)"];
        let expected = format!(
            "for i<4*s0: y[(i / extent(s0)), {row}] = \
             (l[(i / extent(s0)), {pair}] + l[(i / extent(s0)), ({pair} + 1)])"
        );
        assert_eq!(stages[2], expected);
    }

    /// A dim is rows and what is in them.
    #[test]
    fn dims_of_rows_may_have_symbols() {
        let stages = coalesced(
            "symbols s0=100\ninput x: f32[4, 64*s0]\ninput mask: f32[s0]\n\
             temporary s: f32[4, 64*s0]\noutput y: f32[4, s0]\n\
             for a<4, b<s0, k<64: s[a, ((b * 64) + k)] = (x[a, ((b * 64) + k)] + mask[b])\n\
             for a<4, b<s0: y[a, b] = max[k<64; 0.0](s[a, ((b * 64) + k)])\n",
        );
        let row = "(i / extent(s0)), (((i % extent(s0)) * 64) + j)";
        let first = format!("for i<4*s0, j<64: s[{row}] = (x[{row}] + mask[(i % extent(s0))])");
        assert_eq!(stages[0], first);
    }

    /// One offset, of which the second loop is a part.
    #[test]
    fn the_rest_of_the_second_loop_stays_inside() {
        let stages = coalesced(
            "input x: f32[120000]\ninput mask: f32[30000]\n\
             temporary s: f32[120000]\noutput y: f32[400]\n\
             for a<4, b<30000: s[((a * 30000) + b)] = (x[((a * 30000) + b)] + mask[b])\n\
             for i<400: y[i] = max[k<300; 0.0](s[((i * 300) + k)])\n",
        );
        assert_eq!(
            stages[0],
            "for i<400, j<300: s[(j + (i * 300))] = (x[(j + (i * 300))] + mask[(((i % 100) * 300) + j)])"
        );
    }

    /// The points of a copy stay in rows, of which there are enough.
    #[test]
    fn copies_keep_rows() {
        let parts = |rows: usize, points: usize| {
            coalesced(&format!(
                "input x: f32[{rows}, {all}]\noutput y: f32[{rows}, {points}]\noutput z: f32[{rows}, {points}]\n\
                 for a<{rows}, b<{points}: y[a, b] = x[a, b]\n\
                 for a<{rows}, b<{points}: z[a, b] = x[a, (b + {points})]\n",
                all = 2 * points,
            ))
        };
        let stages = parts(8, 25600);
        assert_eq!(
            stages[1],
            "for i<64, j<3200: z[(i / 8), (((i % 8) * 3200) + j)] = x[(i / 8), ((((i % 8) * 3200) + j) + 25600)]"
        );
        // 8 times 8 rows of 32, but not of 31.
        assert_eq!(
            parts(8, 256)[0],
            "for i<64, j<32: y[(i / 8), (((i % 8) * 32) + j)] = x[(i / 8), (((i % 8) * 32) + j)]"
        );
        assert_eq!(parts(8, 248)[0], "for i<8, j<248: y[i, j] = x[i, j]");
    }

    /// Chunks of rows would read what others write; rows that are short would compute an index for each point; 64 heads are
    /// enough; and windows share what they read.
    #[test]
    fn loops_stay_where_nothing_is_won() {
        let columns = "input x: f32[4, 100, 300]\ntemporary s: f32[4, 100, 300]\noutput y: f32[4, 300]\n\
             for a<4, b<100, k<300: s[a, b, k] = exp(x[a, b, k])\n\
             for a<4, k<300: y[a, k] = max[b<100; 0.0](s[a, b, k])\n";
        let short = "input x: f32[4, 100]\ninput m: f32[100]\ntemporary s: f32[4, 100]\noutput y: f32[4, 100, 300]\n\
             for a<4, b<100: s[a, b] = (x[a, b] + m[b])\n\
             for a<4, b<100, k<300: y[a, b, k] = s[a, b]\n";
        let many = "input x: f32[64, 100, 300]\ntemporary s: f32[64, 100, 300]\noutput y: f32[64, 100]\n\
             for a<64, b<100, k<300: s[a, b, k] = exp(x[a, b, k])\n\
             for a<64, b<100: y[a, b] = max[k<300; 0.0](s[a, b, k])\n";
        let window = "input x: f32[58, 58, 36]\ninput z: f32[56, 56, 36]\noutput y: f32[56, 56, 72]\n\
             for a<56, b<56, k<36: y[a, b, k] = z[a, b, k]\n\
             for a<56, b<56, k<36: y[a, b, (k + 36)] = max[m<3, n<3; 0.0](x[(a + m), (b + n), k])\n";
        for text in [columns, short, many, window] {
            let stages = coalesced(text);
            assert!(
                stages.iter().all(|stage| !stage.contains('%')),
                "{stages:#?}"
            );
        }
    }
}
