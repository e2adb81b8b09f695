//! Flatten: neighbouring dims of a buffer are merged into one, so that an access is one offset.
//!
//! > `x[i, j]` of `x: [m, n]` becomes `x[i·n + j]` of `x: [m·n]`
//!
//! where `n` is a number. A formula stays a dim of its own, unless all accesses are digits of one index:
//!
//! > `x[k / n, k % n]` becomes `x[k]`

use crate::analysis::{Ranges, delinearized, flat_offset, ranges_of};
use crate::compiler_threads;
use crate::ir::{BufferId, Kind, Nest, Scalar, rewrite_those, row_major, visit_accesses};
use std::ops::Range;
use vinelift_tensor::{Extent, example};

/// Puts neighbouring dims of every buffer together where no data-dependent index reaches either: accesses
/// there become offsets.
pub(crate) fn flatten_buffers(nest: &mut Nest) {
    let mut groups: Vec<DimGroups> = nest
        .buffers
        .iter()
        .map(|b| DimGroups::whole(&b.shape))
        .collect();
    split_groups(nest, &mut groups, &|_, _| false);
    if nest.is_symbolic() {
        join_digits(nest, &mut groups);
    }
    flatten_dims(nest, &groups, &|_, _| None);
}

/// Has one group of all dims of each buffer all of whose accesses are digits of one index.
fn join_digits(nest: &Nest, groups: &mut [DimGroups]) {
    let mut are_digits = vec![None; nest.buffers.len()];
    for stage in &nest.stages {
        // The index is found by the ranges that it is found by again when dims are joined.
        let (mut plain, mut ranges) = (ranges_of(stage), ranges_of(stage).with_symbols(nest));
        visit_accesses(stage, &mut |buffer, at| {
            let shape = &nest.buf(buffer).shape;
            let one = delinearized(at, shape, &mut plain).zip(count(shape));
            let fits = one.is_some_and(|(index, count)| ranges.is_index(&index, count));
            let known = &mut are_digits[buffer.0 as usize];
            *known = Some(fits && *known != Some(false));
        });
    }
    for (groups, are_digits) in groups.iter_mut().zip(are_digits) {
        if are_digits == Some(true) {
            groups.joined.fill(true);
        }
    }
}

/// Takes groups apart where an access does not allow them: all accesses of a buffer change together, or none
/// does. `fit` says which two data-dependent indices may become one.
pub(crate) fn split_groups(nest: &Nest, groups: &mut [DimGroups], fit: &Fit<'_>) {
    for stage in &nest.stages {
        let mut ranges = ranges_of(stage).with_symbols(nest);
        visit_accesses(stage, &mut |buffer, at| {
            groups[buffer.0 as usize].split_groups(at, &nest.buf(buffer).shape, &mut ranges, fit);
        });
    }
}

/// Whether two data-dependent indices may become one, given the extents of their dims.
pub(crate) type Fit<'a> = dyn Fn(&[Scalar], &[Extent]) -> bool + 'a;

/// The index in place of several that depend on data, given the extents of their dims.
pub(crate) type One<'a> = dyn Fn(&[Scalar], &[Extent]) -> Option<Scalar> + Sync + 'a;

/// Makes one dim of every group.
pub(crate) fn flatten_dims(nest: &mut Nest, groups: &[DimGroups], one: &One<'_>) {
    let shapes: Vec<Vec<Extent>> = nest.buffers.iter().map(|b| b.shape.clone()).collect();
    compiler_threads::for_each(&mut nest.stages, |stage| {
        let mut ranges = ranges_of(stage);
        let mut joined = |buffer: BufferId, at: &[Scalar]| {
            groups[buffer.0 as usize].indices(at, &shapes[buffer.0 as usize], &mut ranges, one)
        };
        rewrite_those(stage, Scalar::loads, &mut |x| match x.kind() {
            Kind::Load { buffer, at } if groups[buffer.0 as usize].join_any() => {
                Scalar::load(*buffer, joined(*buffer, at), x.ty())
            }
            _ => x,
        });
        if groups[stage.target.0 as usize].join_any() {
            stage.at = joined(stage.target, &stage.at);
        }
    });
    for (buffer, groups) in nest.buffers.iter_mut().zip(groups) {
        if groups.join_any() {
            let dims = groups.ranges().map(|g| count(&buffer.shape[g]));
            buffer.shape = dims.map(|n| n.unwrap_or(0.into())).collect();
        }
    }
}

/// Which dims of a buffer are put together.
pub(crate) struct DimGroups {
    /// For each dim but the last, whether the next belongs to the same group.
    joined: Vec<bool>,
}

impl DimGroups {
    /// Each dim of a shape in a group of its own.
    pub(crate) fn apart(shape: &[Extent]) -> DimGroups {
        DimGroups {
            joined: vec![false; shape.len().saturating_sub(1)],
        }
    }

    /// As many dims of a shape in one group as there can be: all but the first of a group are numbers. None of an empty
    /// tensor.
    fn whole(shape: &[Extent]) -> DimGroups {
        let mut groups = DimGroups::apart(shape);
        if shape.iter().all(|n| *n > 0) {
            let next = shape.iter().skip(1).map(|n| !n.is_symbolic());
            groups.joined = next.collect();
        }
        let several: Vec<Range<usize>> = groups.of_several().collect();
        for group in several {
            if count(&shape[group.clone()]).is_none() {
                groups.joined[group.start..group.end - 1].fill(false);
            }
        }
        groups
    }

    /// Puts a dim and the next one into the same group.
    pub(crate) fn join(&mut self, dim: usize) {
        self.joined[dim] = true;
    }

    pub(crate) fn join_any(&self) -> bool {
        self.joined.contains(&true)
    }

    /// The dims of each group.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut start = 0;
        (1..=self.joined.len() + 1).filter_map(move |end| {
            let open = self.joined.get(end - 1) == Some(&true);
            (!open).then(|| std::mem::replace(&mut start, end)..end)
        })
    }

    /// The groups of more than one dim.
    pub(crate) fn of_several(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.ranges().filter(|group| group.len() > 1)
    }

    fn split_groups(
        &mut self,
        at: &[Scalar],
        shape: &[Extent],
        ranges: &mut Ranges,
        fit: &Fit<'_>,
    ) {
        // A wrap must stay the whole index that it checks, and what is proven only by a guard on
        // one index would not be proven of the sum.
        let indices = at.iter().zip(shape);
        let may = indices.map(|(i, &n)| !depends_on_data(i) && ranges.is_index(i, n));
        let may: Vec<bool> = may.collect();
        for (d, joined) in self.joined.iter_mut().enumerate() {
            *joined &= may[d] && may[d + 1] || fit(&at[d..d + 2], &shape[d..d + 2]);
        }
        let groups: Vec<Range<usize>> = self.of_several().collect();
        for group in groups.into_iter().filter(|g| may[g.start]) {
            let shape = &shape[group.clone()];
            let offset = flat_offset(&at[group.clone()], &row_major(&example(shape)), ranges);
            if !count(shape).is_some_and(|count| ranges.is_index(&offset, count)) {
                self.joined[group.start..group.end - 1].fill(false);
            }
        }
    }

    fn indices(
        &self,
        at: &[Scalar],
        shape: &[Extent],
        ranges: &mut Ranges,
        one: &One<'_>,
    ) -> Vec<Scalar> {
        let of_group = |group: Range<usize>| {
            let (at, shape) = (&at[group.clone()], &shape[group]);
            match at {
                [index] => index.clone(),
                _ => one(at, shape)
                    .or_else(|| delinearized(at, shape, ranges))
                    .unwrap_or_else(|| flat_offset(at, &row_major(&example(shape)), ranges)),
            }
        };
        self.ranges().map(of_group).collect()
    }
}

/// The elements of the dims of a group, if there is a formula for them.
fn count(shape: &[Extent]) -> Option<Extent> {
    let count = shape
        .iter()
        .try_fold(Extent::from(1), |n, extent| n.times(*extent));
    count.filter(|n| !n.is_symbolic() || Extent::may_be(n.example()))
}

fn depends_on_data(index: &Scalar) -> bool {
    matches!(index.kind(), Kind::Wrap(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;

    /// The first stage, flattened, of a nest that reads `x: [s0, s1]` at the digits of `k`.
    fn flattened(k: &str) -> String {
        let text = format!(
            "symbols s0=37, s1=21\ninput x: f32[s0, s1]\noutput y: f32[s0*s1]\n\
             for i<s0*s1: y[i] = x[({k} / extent(s1)), ({k} % extent(s1))]\n"
        );
        let mut nest = parse(&text).unwrap();
        flatten_buffers(&mut nest);
        nest.display_stage(&nest.stages[0]).to_string()
    }

    #[test]
    fn digits_of_one_index_are_joined() {
        assert!(flattened("i").contains("y[i] = x[i]"), "{}", flattened("i"));
    }
}
