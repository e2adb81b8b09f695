//! Matrices that are copied for several others, as the keys and values of grouped queries are for all heads of a group.
//!
//! > `c[h, t, d] = x[h / 7, t, d]`, `y[h, q, t] = Σ_d a[h, q, d] · c[h, t, d]`
//!
//! Read in place of `c`, `x` is multiplied with seven times as many rows once `h` is divided: `h = 7·g + r` makes
//! `y[g, r, q, t] = Σ_d a[g, r, q, d] · x[g, t, d]`, where the contraction's rows are those of `r` and `q`.

use crate::analysis::{byte, sums};
use crate::ir::{AxisId, Binary, BufferId, Kind, Scalar, Stage, free_axes, visit, visit_stage};
use rustc_hash::{FxHashMap, FxHashSet};

/// Whether `copy` only loads, from quotients of its axes, and all that `readers` load of it are factors of sums of products
/// whose other factor moves with the axes that are divided then, so that these can be divided in two.
pub(super) fn are_shared<'s>(copy: &Stage, readers: impl Iterator<Item = &'s Stage>) -> bool {
    let Some(divided) = divided_dims(copy) else {
        return false;
    };
    let mut readers = readers.peekable();
    readers.peek().is_some() && readers.all(|reader| is_factor(copy, &divided, reader))
}

/// For each dim of a copy, the number by which its axis is divided, or 1; `None` if the stage is no copy, or takes anything
/// else of its axes than quotients and sums.
fn divided_dims(copy: &Stage) -> Option<Vec<usize>> {
    let Kind::Load { at, .. } = copy.value.kind() else {
        return None;
    };
    let mut divisors = vec![1; copy.domain.len()];
    let mut fits = true;
    for index in at {
        visit(index, &mut |x| match x.kind() {
            Kind::Binary(Binary::Div, axis, by) => {
                let position = copy.domain.iter().position(|a| axis.is_axis(a.id));
                let by = by.as_index().and_then(|by| usize::try_from(by).ok());
                match position.zip(by.filter(|by| *by > 1)) {
                    // Where an axis is divided, nothing else of it may be used.
                    Some((position, by)) if divisors[position] == 1 => divisors[position] = by,
                    _ => fits = false,
                }
            }
            Kind::Binary(Binary::Rem, ..)
            | Kind::Load { .. }
            | Kind::Wrap(_)
            | Kind::Select(..) => {
                fits = false;
            }
            _ => {}
        });
    }
    let divided = copy.domain.iter().zip(&divisors).filter(|(_, by)| **by > 1);
    let is_used_once = |id: AxisId| {
        let mut known = FxHashMap::default();
        let uses = at.iter().map(|index| uses_of(index, id, &mut known));
        uses.fold(0, usize::saturating_add) == 1
    };
    let mut divided = divided.map(|(axis, _)| axis.id).peekable();
    fits &= divided.peek().is_some() && divided.all(is_used_once);
    fits.then_some(divisors)
}

/// How often an axis stands in the text of an index; saturates. `known` has that of its parts, which may use one another again and
/// again.
fn uses_of(index: &Scalar, axis: AxisId, known: &mut FxHashMap<usize, usize>) -> usize {
    if index.is_axis(axis) {
        return 1;
    }
    if let Some(uses) = known.get(&index.address()) {
        return *uses;
    }
    let parts = index.children().map(|child| uses_of(child, axis, known));
    let uses = parts.fold(0, usize::saturating_add);
    known.insert(index.address(), uses);
    uses
}

/// Whether all that `reader` loads of the copy are factors, as [`are_shared`] says.
fn is_factor(copy: &Stage, divided: &[usize], reader: &Stage) -> bool {
    let mut factors: FxHashSet<usize> = FxHashSet::default();
    for sum in sums(reader) {
        let Kind::Reduce { body, .. } = sum.kind() else {
            continue;
        };
        let Some((left, right)) = body.as_term() else {
            continue;
        };
        for (factor, other) in [(left, right), (right, left)] {
            let factor = byte(factor).unwrap_or(factor);
            if is_read_by_rows(copy.target, divided, reader, [factor, other]) {
                factors.insert(factor.address());
            }
        }
    }
    let mut all = true;
    visit_stage(reader, &mut |x| {
        if let Kind::Load { buffer, .. } = x.kind() {
            all &= *buffer != copy.target || factors.contains(&x.address());
        }
    });
    all
}

/// Whether `factor` loads the copy where an axis of the domain, or a quotient of one, is the index of each dim that is
/// divided, and can be divided itself, while `other` moves with it.
fn is_read_by_rows(
    copy: BufferId,
    divided: &[usize],
    reader: &Stage,
    [factor, other]: [&Scalar; 2],
) -> bool {
    let Kind::Load { buffer, at } = factor.kind() else {
        return false;
    };
    let others = free_axes(other);
    let mut dims = at.iter().zip(divided).filter(|(_, by)| **by > 1);
    *buffer == copy
        && dims.all(|(index, by)| {
            let (axis, already) = match index.kind() {
                Kind::Binary(Binary::Div, axis, by) => (axis, by.as_index().unwrap_or(0)),
                _ => (index, 1),
            };
            let axis = reader.domain.iter().find(|a| axis.is_axis(a.id));
            let by = usize::try_from(already)
                .ok()
                .and_then(|n| n.checked_mul(*by));
            axis.zip(by.filter(|by| *by > 1)).is_some_and(|(axis, by)| {
                others.contains(&axis.id) && axis.extent.is_multiple_of(by)
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Nest, Role};
    use vinelift_tensor::ElementType::F32;

    /// The index of a copy whose parts use one another again and again is no tree that anybody could walk.
    #[test]
    fn parts_that_are_used_again_and_again_are_met_once() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[1 << 20], Role::Input);
        let y = nest.buffer("y", F32, &[8, 4], Role::Output);
        nest.define(vec![], y, |nest, at| {
            let twice = |part: Scalar, _| &part + &(&part + 1);
            let sum = (0..60).fold(&at[0] + &at[1], twice);
            nest.load(x, vec![sum + &at[0] / 2])
        });
        assert_eq!(divided_dims(&nest.stages[0]), None);
        nest.define(vec![], y, |nest, at| {
            nest.load(x, vec![&at[0] / 2 + &at[1]])
        });
        assert_eq!(divided_dims(&nest.stages[1]), Some(vec![2, 1]));
    }
}
