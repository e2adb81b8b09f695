//! Parallel chunks: ranges of a nest's outermost loop that may run in any order, or at the same time.

use crate::analysis::spans::{Span, widen};
use crate::analysis::{BoundChunks, Effects, window_overlap};
use crate::ir::{Axis, AxisId, BufferId, Kind, Nest, Scalar, Stage, free_axes, visit_folds};
use rustc_hash::FxHashMap;
use vinelift_tensor::Extent;

/// How a nest is divided into chunks that run in any order with the results of one run of the whole, whatever the
/// symbols of its extents are.
///
/// The loops of all stages over the shared [axis](ParallelChunks::axis), mostly the outermost one, have `extent`
/// turns, or a multiple of it. A chunk is a range of `0..extent`; it runs its share of each stage's turns, stage after
/// stage. Different chunks write different elements, and none reads an element that another writes; chunks of any
/// sizes that cover `0..extent` compute the nest. At most one stage can fault: if chunks run one after the other, the
/// first fault is the nest's; if not, the nest runs again to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelChunks {
    /// Turns that are shared out.
    pub extent: Extent,
    /// A chunk is at least as long: shorter ones would not fill vectors, or would read mostly what
    /// belongs to others.
    pub grain: usize,
    /// A chunk begins at a multiple of this, of which `grain` is a multiple.
    pub unit: usize,
    /// The dim of the target that is divided, where the outermost loops cannot be: in all stages, its index is an
    /// axis. The points of a chunk do not follow each other then.
    pub dim: Option<usize>,
}

/// The least points of a chunk of a loop that has no loop inside. Where another stage of the kernel does `n` points in each turn,
/// folds included, this loop takes little of the time, and `1 / n` as many points are enough.
const LEAST_POINTS: usize = 256;

/// The least turns of a chunk of a loop that has no loop inside: a few vectors.
const LEAST_ROWS: usize = 32;

/// The least points of a chunk of an inner loop: they fill a line of the cache or more, so that chunks do not share
/// lines.
const LEAST_COLUMNS: usize = 16;

impl ParallelChunks {
    /// The one chunk of a nest that cannot be cut.
    pub const WHOLE: ParallelChunks = ParallelChunks {
        extent: Extent::ONE,
        grain: 1,
        unit: 1,
        dim: None,
    };

    /// How `nest` can be cut into chunks; [`ParallelChunks::WHOLE`] if it cannot.
    pub fn of(nest: &Nest) -> ParallelChunks {
        ParallelChunks::of_stages(nest, &nest.stages)
    }

    /// The same of stages that use the buffers of `nest`.
    pub(crate) fn of_stages(nest: &Nest, stages: &[Stage]) -> ParallelChunks {
        if let [stage] = stages
            && stage.group.is_some()
        {
            // Its turns alternate with those of other stages, so they are not divided.
            return ParallelChunks {
                extent: stage.domain.first().map_or(Extent::ONE, |axis| axis.extent),
                ..ParallelChunks::WHOLE
            };
        }
        cut(nest, stages)
            .or_else(|| cut_inside(nest, stages))
            .unwrap_or(ParallelChunks::WHOLE)
    }

    /// The axis of a stage whose turns are shared out.
    pub fn axis(self, stage: &Stage) -> Option<Axis> {
        let Some(dim) = self.dim else {
            return stage.outermost();
        };
        let is_index = |axis: &&Axis| stage.at[dim].is_axis(axis.id);
        stage.domain.iter().find(is_index).copied()
    }

    /// How many turns of a stage's loop over `axis`, its own axis of the shared ones, are one that is shared out.
    pub fn turns_of(self, axis: Axis) -> Option<usize> {
        axis.extent.over(self.extent)?.number()
    }

    /// The chunks where the symbol of number `k` is `values[k]`; `None` if the extent then is none.
    pub fn bound_to(self, values: &[usize]) -> Option<BoundChunks> {
        Some(self.of_extent(self.extent.at(values)?))
    }

    /// The chunks where `extent` is that many.
    pub fn of_extent(self, extent: usize) -> BoundChunks {
        BoundChunks {
            extent,
            grain: self.grain,
            unit: self.unit,
            dim: self.dim,
        }
    }
}

/// Whether the turns of a stage's outermost loop may write the same element: it is reached through indices that
/// depend on data, and the axis of that loop is not an index itself.
pub(crate) fn may_collide(stage: &Stage) -> bool {
    let is_index = |axis: Axis| stage.at.iter().any(|i| i.is_axis(axis.id));
    stage.at.iter().any(|i| matches!(i.kind(), Kind::Wrap(_)))
        && stage.outermost().is_some_and(|outer| !is_index(outer))
}

/// For a stage whose [outermost turns may collide](may_collide), a dim of the target along which no two points do: its index is an axis
/// that the data-dependent indices depend on as well.
pub(crate) fn dim_apart(stage: &Stage) -> Option<usize> {
    let is_wrap = |i: &&Scalar| matches!(i.kind(), Kind::Wrap(_));
    let differs = |axis: &AxisId| {
        stage
            .at
            .iter()
            .filter(is_wrap)
            .any(|i| free_axes(i).contains(axis))
    };
    stage.at.iter().rposition(|i| match i.kind() {
        Kind::Axis(id) => differs(id),
        _ => false,
    })
}

/// The chunks along a dim of the target that all stages write, where data-dependent indices keep the outermost loop from
/// being cut: points that differ in that dim write different elements.
fn cut_inside(nest: &Nest, stages: &[Stage]) -> Option<ParallelChunks> {
    let first = stages.first()?;
    let dim = stages.iter().find(|stage| may_collide(stage));
    let dim = dim.and_then(dim_apart);
    // Another target may have fewer dims, or be indexed in another way.
    if stages.iter().any(|stage| stage.target != first.target) {
        return None;
    }
    let extent = *nest.buf(first.target).shape.get(dim?)?;
    let parts = ParallelChunks {
        extent,
        grain: LEAST_COLUMNS,
        unit: LEAST_COLUMNS,
        dim,
    };
    let fits = |stage: &Stage| {
        let is_whole = parts.axis(stage).is_some_and(|axis| axis.extent == extent);
        is_whole && stage.group.is_none() && stage.domain.iter().all(|axis| axis.extent > 0)
    };
    let is_one = stages.iter().filter(|s| s.may_fault()).count() <= 1;
    let is_long = extent.is_symbolic() || extent >= 2 * LEAST_COLUMNS;
    let is_packed = nest.buf(first.target).ty.is_packed();
    // A fault is looked for again in all parts, one after the other.
    let repeats = Effects::of(stages).faults_again();
    (is_one && is_long && !is_packed && repeats && stages.iter().all(fits)).then_some(parts)
}

fn cut(nest: &Nest, stages: &[Stage]) -> Option<ParallelChunks> {
    let runs = |s: &&Stage| s.domain.iter().all(|axis| axis.extent > 0);
    let running: Vec<&Stage> = stages.iter().filter(runs).collect();
    let outer: Vec<Axis> = running
        .iter()
        .map(|s| s.outermost())
        .collect::<Option<_>>()?;
    // The shortest, of which all others are multiples if there is such a one.
    let extents = outer.iter().map(|axis| axis.extent);
    let extent = extents.min_by_key(|extent| extent.example())?;
    let mut grain = 1;
    // Where other stages have loops inside, a loop without one is a small part of the work.
    let row = running.iter().map(|s| inner_points(s)).max();
    let least = LEAST_POINTS.div_ceil(row.unwrap_or(1)).max(LEAST_ROWS);
    for (stage, axis) in running.iter().zip(&outer) {
        let turns = axis.extent.over(extent)?.number()?;
        // A chunk reads the elements of at most two turns of others for each of its own.
        grain = grain.max(window_overlap(stage, axis.id).div_ceil(2 * turns));
        if stage
            .domain
            .iter()
            .all(|a| a.extent == 1 || a.id == axis.id)
        {
            grain = grain.max(least.div_ceil(turns));
        }
    }
    // False for an extent that has symbols: only a run knows how long the loop is.
    let is_short = extent < 2 * grain;
    if is_short || running.iter().filter(|s| s.may_fault()).count() > 1 {
        return None;
    }
    let mut spans: FxHashMap<BufferId, Span> = FxHashMap::default();
    for stage in &running {
        if nest.buf(stage.target).ty.is_packed() {
            return None;
        }
        spans.insert(stage.target, Span::default());
    }
    widen(nest, stages, extent, &mut spans)?;
    spans
        .values()
        .all(|span| span.is_apart(&nest.relations))
        .then_some(ParallelChunks {
            extent,
            grain,
            unit: 1,
            dim: None,
        })
}

/// The points of a turn of the outermost loop, times those of the longest fold at each; at least one.
fn inner_points(stage: &Stage) -> usize {
    let count = |axes: &[Axis]| {
        let extents = axes.iter().map(|axis| axis.extent.example());
        extents.fold(1, usize::saturating_mul)
    };
    let outer = stage.domain.iter().position(|axis| axis.extent > 1);
    let inner = outer.map_or(1, |at| count(&stage.domain[at + 1..]));
    let mut longest = 1;
    visit_folds(stage, &mut |x| {
        if let Kind::Reduce { axes, .. } = x.kind() {
            longest = longest.max(count(axes));
        }
    });
    inner.saturating_mul(longest).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Footprint;
    use crate::build::*;
    use crate::ir::{Binary, Mode, Policy, Role, Site};
    use crate::schedule;
    use std::ops::Range;
    use vinelift_tensor::ElementType::{F32, I32, U4};

    /// `y[i, wrap(indices[i, j])] += 1` after `y = x` of `columns` columns, or `y[wrap(indices[i, j]), j] += 1`.
    fn scatter(rows: bool, columns: usize) -> Nest {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[64, columns], Role::Input);
        let indices = nest.buffer("indices", I32, &[64, columns], Role::Input);
        let y = nest.buffer("y", F32, &[64, columns], Role::Output);
        let layer = nest.layer("s", "Scatter, opset1");
        nest.define(vec![], y, |n, at| n.load(x, at.to_vec()));
        let domain = nest.axes(&[64, columns]);
        let at: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
        let index = nest.load(indices, at.clone());
        let input = "indices".to_owned();
        let extent = if rows { columns } else { 64 };
        let index = nest.wrap(
            index,
            extent,
            Policy::WRAP,
            Site { layer, input },
            at.clone(),
        );
        let at = match rows {
            true => vec![at[0].clone(), index],
            false => vec![index, at[1].clone()],
        };
        nest.stages.push(Stage {
            domain,
            target: y,
            at,
            mode: Mode::Combine(Binary::Add),
            value: number(1.0, F32),
            layers: vec![],
            group: None,
        });
        nest
    }

    #[test]
    fn updates_are_shared_out_where_they_lie_apart() {
        let whole = ParallelChunks {
            extent: 64.into(),
            ..ParallelChunks::WHOLE
        };
        assert_eq!(ParallelChunks::of(&scatter(true, 32)), whole);
        let mut scheduled = scatter(true, 32);
        schedule(&mut scheduled);
        assert_eq!(ParallelChunks::of(&scheduled), whole);
        assert_eq!(
            ParallelChunks::of(&scatter(false, 16)),
            ParallelChunks::WHOLE
        );
    }

    #[test]
    fn updates_are_shared_out_by_columns_where_rows_may_be_the_same() {
        let found = |updates: &Nest| ParallelChunks::of(updates).dim.is_some();
        let scheduled = |mut nest: Nest| {
            schedule(&mut nest);
            nest
        };
        let updates = scatter(false, 32);
        let parts = ParallelChunks {
            extent: 32.into(),
            grain: LEAST_COLUMNS,
            unit: LEAST_COLUMNS,
            dim: Some(1),
        };
        assert_eq!(ParallelChunks::of(&updates), parts);
        assert_eq!(ParallelChunks::of(&scheduled(updates.clone())), parts);
        for stage in &updates.stages {
            assert_eq!(parts.axis(stage), Some(stage.domain[1]));
        }
        let mut alone = updates.clone();
        alone.stages.remove(0);
        assert_eq!(ParallelChunks::of(&alone), parts);
        // Rows of their own, too few columns, and what reads the rows of others.
        assert!(!found(&scatter(true, 32)));
        assert!(!found(&scatter(false, 31)));
        let mut reads = updates.clone();
        let target = reads.stages[0].target;
        reads.stages[1].value = reads.load(target, vec![index(0), index(1)]);
        assert_eq!(ParallelChunks::of(&reads), ParallelChunks::WHOLE);
    }

    /// The first stage may have a target of fewer dims than the one that is updated.
    #[test]
    fn several_targets_are_not_cut_along_a_dim_of_one() {
        let mut nest = scatter(false, 64);
        let sums = nest.buffer("sums", F32, &[64], Role::Temporary);
        let zero = nest.stages[0].clone();
        nest.define(vec![], sums, |_, _| number(0.0, F32));
        nest.stages.rotate_right(1);
        assert_ne!(nest.stages[0].target, zero.target);
        assert_eq!(ParallelChunks::of(&nest), ParallelChunks::WHOLE);
    }

    #[test]
    fn no_part_reads_what_another_writes() {
        let shifted = |by: i64| {
            let mut nest = Nest::new();
            let x = nest.buffer("x", F32, &[64, 300], Role::Input);
            let t = nest.buffer("t", F32, &[65, 300], Role::Temporary);
            let y = nest.buffer("y", F32, &[64, 300], Role::Output);
            nest.define(vec![], t, |n, at| {
                n.load(x, vec![at[0].min(index(63)), at[1].clone()])
            });
            nest.stages[0].domain[0].extent = 64.into();
            nest.define(vec![], y, |n, at| {
                n.load(t, vec![&at[0] + by, at[1].clone()])
            });
            ParallelChunks::of(&nest)
        };
        assert_eq!(shifted(0).extent, 64);
        assert_eq!(shifted(1), ParallelChunks::WHOLE);
    }

    #[test]
    fn a_part_follows_what_it_uses() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[64, 300], Role::Input);
        let y = nest.buffer("y", F32, &[32, 300], Role::Output);
        // Turn `k` uses rows `2k` and `2k + 1`.
        nest.define(vec![], y, |n, at| {
            let row = &at[0] * 2;
            let next = &row + 1;
            n.load(x, vec![row, at[1].clone()]) + n.load(x, vec![next, at[1].clone()])
        });
        let parts = ParallelChunks::of(&nest);
        let parts = parts.bound_to(&[]).unwrap();
        assert_eq!((parts.extent, parts.grain), (32, 1));
        let reach = Footprint::of(&nest, ParallelChunks::of(&nest), x).unwrap();
        let reach = reach.bound_to(&[]).unwrap();
        let within = |rows: Range<usize>, more| {
            reach.within(parts, &(rows.start * 300..rows.end * 300 + more))
        };
        assert_eq!(within(0..64, 0), Some(0..32));
        assert_eq!(within(0..10, 0), Some(0..5));
        assert_eq!(within(10..15, 299), Some(5..7));
        assert_eq!(within(11..16, 0), Some(6..8));
        assert_eq!(within(11..13, 0), None);
        assert_eq!(within(12..13, 0), None);
        // A buffer that all turns use alike has no footprint.
        let z = nest.buffer("z", F32, &[300], Role::Input);
        nest.define(vec![], y, |n, at| n.load(z, vec![at[1].clone()]));
        assert!(Footprint::of(&nest, ParallelChunks::of(&nest), z).is_none());
    }

    #[test]
    fn short_loops_stay_whole_and_bytes_are_not_shared() {
        let copy = |ty, count: usize| {
            let mut nest = Nest::new();
            let x = nest.buffer("x", ty, &[count], Role::Input);
            let y = nest.buffer("y", ty, &[count], Role::Output);
            nest.define(vec![], y, |n, at| n.load(x, at.to_vec()));
            ParallelChunks::of(&nest)
        };
        assert_eq!(copy(F32, 511), ParallelChunks::WHOLE);
        assert_eq!(copy(U4, 5120), ParallelChunks::WHOLE);
        let parts = copy(F32, 1000).bound_to(&[]).unwrap();
        assert_eq!((parts.extent, parts.grain), (1000, 256));
        assert_eq!(parts.ranges(2), [0..256, 256..1000]);
        assert_eq!(parts.ranges(1).first(), Some(&(0..1000)));
        assert!(parts.ranges(9).iter().all(|part| parts.allow(part)));
        let pieces: Vec<_> = parts.pieces(0..1000, 3).collect();
        assert_eq!(pieces, [0..512, 512..1000]);
        assert!(parts.pieces(256..1000, 99).all(|piece| parts.allow(&piece)));
        assert!(parts.allow(&(1..1000)) && !parts.allow(&(0..100)));
    }

    #[test]
    fn windows_that_reach_over_most_of_a_picture_are_not_shared_out() {
        let rows = |rows: usize| {
            let text = format!(
                "input x: f32[{}, 40]\noutput y: f32[{rows}, 40]\n\
                 for i<{rows}, j<40: y[i, j] = add[k<5; 0.0](x[(i + k), j])\n",
                rows + 4
            );
            ParallelChunks::of(&crate::ir::parse(&text).unwrap())
        };
        assert_eq!(rows(3), ParallelChunks::WHOLE);
        let four = rows(4);
        assert_eq!((four.extent, four.grain), (4.into(), 2));
    }

    /// The chunks of a nest given as text, and of it where its symbols are these.
    fn of_text(text: &str, values: &[usize]) -> [Option<(String, usize)>; 2] {
        let nest = crate::ir::parse(text).unwrap();
        let bound = nest.bound_to(values).unwrap();
        [nest, bound].map(|nest| {
            let found = ParallelChunks::of(&nest);
            (found != ParallelChunks::WHOLE).then(|| (found.extent.to_string(), found.grain))
        })
    }

    #[test]
    fn extents_with_symbols_are_shared_out_for_all_their_values() {
        let rows = "symbols s0=9, s1=4\ninput x: f32[s0, s1]\noutput y: f32[s0, s1]\n\
                    for i<s0, j<s1: y[i, j] = x[i, j]\n";
        let some = |extent: &str, grain| Some((extent.to_owned(), grain));
        assert_eq!(of_text(rows, &[50, 300]), [some("s0", 1), some("50", 1)]);
        // Also of an axis whose stride depends on others.
        let heads = "symbols s0=9\ninput x: f32[s0, 12, 64]\noutput y: f32[12, s0, 64]\n\
                     for h<12, i<s0, j<64: y[h, i, j] = x[i, h, j]\n";
        assert_eq!(of_text(heads, &[50]), [some("12", 1), some("12", 1)]);
        // Two loops, one of which is a multiple of the other.
        let twice = "symbols s0=300\noutput y: f32[s0]\noutput z: f32[2*s0]\n\
                     for i<s0: y[i] = 1.0\nfor i<2*s0: z[i] = 1.0\n";
        assert_eq!(of_text(twice, &[999]), [some("s0", 256), some("999", 256)]);
        let apart = twice
            .replace("z: f32[2*s0]", "z: f32[s0 + 7]")
            .replace("i<2*s0", "i<s0 + 7");
        assert_eq!(of_text(&apart, &[999])[0], None);
        // Turns read rows of others.
        let shifted = "symbols s0=9\ninput x: f32[s0]\ntemporary t: f32[2*s0, 300]\n\
                       output y: f32[s0, 300]\nfor i<s0, j<300: t[i, j] = x[i]\n\
                       for i<s0, j<300: y[i, j] = t[((extent(s0) - i) - 1), j]\n";
        assert_eq!(of_text(shifted, &[50])[0], None);
    }
}
