//! Indices that are constants of the model: checked once, when the nest is made.
//!
//! > `data[wrap(constant[at], n)]` with all elements in range becomes `data[check(table[k], n)]`
//!
//! where `k` numbers the points of the axes in `at`, and the table holds what the wrap gives at each: negative
//! indices are counted from the end already. It still is a wrap, which is what proves the access; a code
//! generator that looks at the table finds that it never faults ([`Buffer::values`]). An index that is out of
//! range stays what it is, and so does the error of each run.
//!
//! Where neighbouring dims are reached by such tables, they become one dim with one table: the indices are
//! multiplied and added when the nest is made.
//!
//! > `data[check(t[k], 3), check(u[k], 5), j]` becomes `data[check(tu[k], 15), j]`

mod merge_tables;

use self::merge_tables::merge_tables;
use crate::analysis::{Interval, Linear};
use crate::build::index;
use crate::ir::{
    Axis, Buffer, BufferId, Kind, Nest, Policy, Role, Scalar, Wrap, free_axes, rewrite_those,
    visit_accesses, visit_folds,
};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType::{I32, I64};

/// More points than this have no table.
const MOST_POINTS: usize = 1 << 18;

/// Puts tables in the place of constant indices. `constant` gives the bytes of a buffer that is constant.
pub fn constant_indices<'a>(nest: &mut Nest, constant: &dyn Fn(BufferId) -> Option<&'a [u8]>) {
    let first = nest.buffers.len();
    put_tables(nest, constant);
    if nest.buffers.len() > first {
        merge_tables(nest, first);
        drop_unused(nest, first);
    }
}

fn put_tables<'a>(nest: &mut Nest, constant: &dyn Fn(BufferId) -> Option<&'a [u8]>) {
    let mut tables: FxHashMap<Vec<u8>, BufferId> = FxHashMap::default();
    for number in 0..nest.stages.len() {
        if !nest.stages[number].wraps() {
            continue;
        }
        let mut stage = nest.stages[number].clone();
        let mut axes = stage.domain.clone();
        visit_folds(&stage, &mut |x| {
            if let Kind::Reduce { axes: more, .. } = x.kind() {
                axes.extend(more.iter().copied());
            }
        });
        rewrite_those(&mut stage, Scalar::wraps, &mut |x| {
            let Kind::Wrap(wrap) = x.kind() else {
                return x;
            };
            let Some((bytes, at)) = table(nest, wrap, &axes, constant) else {
                return x;
            };
            let count = bytes.len() / 4;
            let table = *tables
                .entry(bytes)
                .or_insert_with_key(|bytes| nest.table("indices", I32, count, bytes));
            Scalar::wrap(Wrap {
                index: Scalar::load(table, vec![at], I32).cast(I64),
                policy: Policy::CHECK,
                ..Wrap::clone(wrap)
            })
        });
        nest.stages[number] = stage;
    }
}

/// Leaves out the tables from a number on that no stage loads from.
fn drop_unused(nest: &mut Nest, first: usize) {
    let mut used = vec![false; nest.buffers.len()];
    used[..first].fill(true);
    for stage in &nest.stages {
        visit_accesses(stage, &mut |buffer, _| used[buffer.0 as usize] = true);
    }
    let mut count = 0;
    let new: Vec<BufferId> = used
        .iter()
        .map(|used| {
            count += u32::from(*used);
            BufferId(count.wrapping_sub(1))
        })
        .collect();
    let mut number = 0..;
    nest.buffers
        .retain(|_| number.next().is_some_and(|n: usize| used[n]));
    for stage in &mut nest.stages {
        rewrite_those(stage, Scalar::loads, &mut |x| match x.kind() {
            Kind::Load { buffer, at } if new[buffer.0 as usize] != *buffer => {
                Scalar::load(new[buffer.0 as usize], at.clone(), x.ty())
            }
            _ => x,
        });
    }
}

/// The values of a wrap at all points of the axes that its index depends on, and the number of a point.
fn table<'a>(
    nest: &Nest,
    wrap: &Wrap,
    axes: &[Axis],
    constant: &dyn Fn(BufferId) -> Option<&'a [u8]>,
) -> Option<(Vec<u8>, Scalar)> {
    let load = wrap.narrow();
    let Kind::Load { buffer, at } = load.kind() else {
        return None;
    };
    let extent = wrap.extent.number()?;
    let size = match load.ty() {
        I32 => 4,
        I64 => 8,
        _ => return None,
    };
    let elements = constant(*buffer)?;
    let place = Linear::of_access(at, &nest.buf(*buffer).strides());
    let free = free_axes(load);
    let free: Vec<Axis> = axes
        .iter()
        .filter(|a| free.contains(&a.id))
        .copied()
        .collect();
    let points = free
        .iter()
        .try_fold(1usize, |n, a| n.checked_mul(a.extent.number()?))?;
    let steps = steps(&place, &free)?;
    if points == 0 || points > MOST_POINTS {
        return None;
    }
    let mut bytes = Vec::with_capacity(points * 4);
    let mut point = vec![0; free.len()];
    let mut at = place.constant;
    for _ in 0..points {
        let start = usize::try_from(at).ok()?.checked_mul(size)?;
        let element = elements.get(start..start.checked_add(size)?)?;
        let found = match element.try_into() {
            Ok(wide) => i64::from_le_bytes(wide),
            Err(_) => i32::from_le_bytes(element.try_into().ok()?).into(),
        };
        let inside = i32::try_from(wrap.policy.place(found, extent)?).ok()?;
        bytes.extend(inside.to_le_bytes());
        at = at.wrapping_add(advance(&mut point, &free, &steps));
    }
    let number = free.iter().fold(index(0), |number, axis| {
        number * axis.extent.example() as i64 + Scalar::axis(axis.id)
    });
    Some((bytes, number))
}

/// Goes on to the next point, the last axis first, and returns how far that moves a place.
fn advance(point: &mut [usize], axes: &[Axis], steps: &[i64]) -> i64 {
    let mut moved = 0i64;
    for ((count, axis), step) in point.iter_mut().zip(axes).zip(steps).rev() {
        *count += 1;
        moved = moved.wrapping_add(*step);
        if *count < axis.extent.example() {
            break;
        }
        moved = moved.wrapping_sub(step.wrapping_mul(*count as i64));
        *count = 0;
    }
    moved
}

/// How far each axis moves a place, if nothing else does.
fn steps(place: &Linear, axes: &[Axis]) -> Option<Vec<i64>> {
    let mut steps = vec![0; axes.len()];
    for (atom, step) in &place.terms {
        let is = |axis: &Axis| atom.is_axis(axis.id);
        steps[axes.iter().position(is)?] = *step;
    }
    Some(steps)
}

impl Buffer {
    /// The values that the elements of a table of `i32` or `i64` lie between.
    pub fn values(&self) -> Option<Interval> {
        let Role::Table(bytes) = &self.role else {
            return None;
        };
        let hull = |values: &mut dyn Iterator<Item = i64>| {
            let of = |value| Interval {
                low: value,
                high: value,
            };
            values.map(of).reduce(Interval::union)
        };
        match self.ty {
            I32 => hull(
                &mut bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|b| i32::from_le_bytes(*b).into()),
            ),
            I64 => hull(&mut bytes.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::interpret;
    use crate::interpret::BufferBytes;
    use crate::ir::Site;
    use vinelift_tensor::ElementType::{self, U8};

    /// `out[i, j] = data[wrap(indices[j, i]), j]` for indices of a type.
    fn gather(ty: ElementType) -> Nest {
        let mut nest = Nest::new();
        let layer = nest.layer("g", "GatherElements, opset6");
        let data = nest.buffer("data", U8, &[5, 3], Role::Input);
        let indices = nest.buffer("indices", ty, &[3, 2], Role::Input);
        let out = nest.buffer("out", U8, &[2, 3], Role::Output);
        let site = Site {
            layer,
            input: "indices".to_owned(),
        };
        nest.define(vec![layer], out, |nest, at| {
            let place = vec![at[1].clone(), at[0].clone()];
            let found = nest.load(indices, place.clone());
            let row = nest.wrap(found, 5, Policy::WRAP, site, place);
            nest.load(data, vec![row, at[1].clone()])
        });
        nest
    }

    fn known(mut nest: Nest, indices: &[u8]) -> Nest {
        constant_indices(&mut nest, &|buffer| (buffer.0 == 1).then_some(indices));
        crate::passes::simplify(&mut nest);
        verify(&nest).unwrap();
        nest
    }

    #[test]
    fn indices_in_range_become_a_table() {
        let wide: Vec<u8> = [0i64, -1, 3, 4, -5, 2]
            .iter()
            .flat_map(|i| i.to_le_bytes())
            .collect();
        let narrow: Vec<u8> = [0i32, -1, 3, 4, -5, 2]
            .iter()
            .flat_map(|i| i.to_le_bytes())
            .collect();
        for (ty, bytes) in [(I64, wide), (I32, narrow)] {
            let nest = known(gather(ty), &bytes);
            assert_eq!(
                nest.display_stage(&nest.stages[0]).to_string(),
                "for i<2, j<3: out[i, j] = data[check(i64(indices.3[((i * 3) + j)]), 5 in indices[j, i]), j]"
            );
            let values = nest.buffers[3].values().unwrap();
            assert_eq!((values.low, values.high), (0, 4));
            let data: Vec<u8> = (0..15).collect();
            let mut out = [0; 6];
            let mut buffers = [
                BufferBytes::Read(&data),
                BufferBytes::Read(&[]),
                BufferBytes::Write(&mut out),
                BufferBytes::Read(&[]),
            ];
            buffers[1] = BufferBytes::Read(&bytes);
            interpret(&nest, &mut buffers).unwrap();
            // Rows 0, 3, 0 and 4, 4, 2.
            assert_eq!(out, [0, 10, 2, 12, 13, 8]);
        }
    }

    #[test]
    fn an_index_out_of_range_stays() {
        for place in 0..6 {
            for wrong in [5, -6, i64::MAX, i64::MIN] {
                let mut all = [1i64; 6];
                all[place] = wrong;
                let bytes: Vec<u8> = all.iter().flat_map(|i| i.to_le_bytes()).collect();
                assert_eq!(known(gather(I64), &bytes), gather(I64));
            }
        }
    }
}
