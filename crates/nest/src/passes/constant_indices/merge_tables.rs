//! Tables of indices into neighbouring dims are merged into one table of offsets.
//!
//! > `data[check(t[k], 3), check(u[k], 5), j]` becomes `data[check(tu[k], 15), j]`, `tu[k] = 5·t[k] + u[k]`

use crate::ir::{BufferId, Kind, Nest, Role, Scalar, Wrap, visit_accesses};
use crate::passes::flatten::{DimGroups, flatten_dims, split_groups};
use vinelift_tensor::ElementType::{I32, I64};
use vinelift_tensor::{Extent, element_count, numbers};

/// Makes one dim of neighbours that are reached by tables, which are the buffers from `first` on. Two fit if
/// the same entry of both is looked up, so that theirs has no more entries.
pub(super) fn merge_tables(nest: &mut Nest, first: usize) {
    let fit = |at: &[Scalar], shape: &[Extent]| {
        Entry::of_all(first, at, shape)
            .is_some_and(|entries| entries.windows(2).all(|e| e[0].number == e[1].number))
    };
    let apart = nest.buffers.iter().map(|b| DimGroups::apart(&b.shape));
    let mut groups: Vec<DimGroups> = apart.collect();
    for stage in &nest.stages {
        visit_accesses(stage, &mut |buffer, at| {
            let shape = &nest.buf(buffer).shape;
            let count = numbers(shape).and_then(|shape| element_count(&shape));
            if count.is_some_and(|n| i32::try_from(n).is_ok()) {
                let pairs = at.windows(2).zip(shape.windows(2)).enumerate();
                for (dim, _) in pairs.filter(|(_, (at, shape))| fit(at, shape)) {
                    groups[buffer.0 as usize].join(dim);
                }
            }
        });
    }
    split_groups(nest, &mut groups, &fit);
    let tables = offsets(nest, &groups, first);
    flatten_dims(nest, &groups, &|at, shape| {
        let entries = Entry::of_all(first, at, shape)?;
        let Entry { wrap, number, .. } = entries.first()?;
        let keys = keys(&entries);
        let (_, table) = tables.iter().find(|(known, _)| *known == keys)?;
        Some(Scalar::wrap(Wrap {
            index: Scalar::load(*table, vec![(*number).clone()], I32).cast(I64),
            extent: shape
                .iter()
                .try_fold(Extent::from(1), |n, dim| n.times(*dim))?,
            ..(*wrap).clone()
        }))
    });
}

/// The tables that a table is made of, and the extents of their dims.
type Keys = Vec<(BufferId, usize)>;

fn keys(entries: &[Entry]) -> Keys {
    entries
        .iter()
        .map(|e| (e.table, e.wrap.extent.example()))
        .collect()
}

/// The tables of offsets into the dims of all groups.
fn offsets(nest: &mut Nest, groups: &[DimGroups], first: usize) -> Vec<(Keys, BufferId)> {
    let mut made: Vec<(Keys, Vec<u8>)> = Vec::new();
    for stage in &nest.stages {
        visit_accesses(stage, &mut |buffer, at| {
            for group in groups[buffer.0 as usize].of_several() {
                let shape = &nest.buf(buffer).shape[group.clone()];
                if let Some(entries) = Entry::of_all(first, &at[group], shape) {
                    let keys = keys(&entries);
                    if !made.iter().any(|(known, _)| *known == keys) {
                        made.push((keys, joined(nest, &entries)));
                    }
                }
            }
        });
    }
    let mut tables = Vec::with_capacity(made.len());
    for (keys, bytes) in made {
        tables.push((keys, nest.table("offsets", I32, bytes.len() / 4, &bytes)));
    }
    tables
}

/// The offsets that entries of several tables make together, the last dim's innermost.
fn joined(nest: &Nest, entries: &[Entry]) -> Vec<u8> {
    let mut offsets: Vec<i32> = Vec::new();
    for entry in entries {
        if let Role::Table(bytes) = &nest.buf(entry.table).role {
            let values = bytes.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b));
            offsets.resize(values.len(), 0);
            for (offset, value) in offsets.iter_mut().zip(values) {
                *offset = *offset * entry.wrap.extent.example() as i32 + value;
            }
        }
    }
    offsets.iter().flat_map(|i| i.to_le_bytes()).collect()
}

/// An index that is an entry of a table.
struct Entry<'a> {
    wrap: &'a Wrap,
    table: BufferId,
    number: &'a Scalar,
}

impl<'a> Entry<'a> {
    /// If the index spans its dim, whose extent is given.
    fn of(first: usize, index: &'a Scalar, extent: Extent) -> Option<Entry<'a>> {
        let Kind::Wrap(wrap) = index.kind() else {
            return None;
        };
        match wrap.narrow().kind() {
            Kind::Load { buffer, at }
                if buffer.0 as usize >= first && wrap.extent == extent && !extent.is_symbolic() =>
            {
                Some(Entry {
                    wrap,
                    table: *buffer,
                    number: at.first()?,
                })
            }
            _ => None,
        }
    }

    fn of_all(first: usize, at: &'a [Scalar], shape: &[Extent]) -> Option<Vec<Entry<'a>>> {
        let pairs = at.iter().zip(shape);
        pairs.map(|(i, &n)| Entry::of(first, i, n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::interpret::BufferBytes;
    use crate::ir::{Policy, Site, SiteId};
    use crate::{constant_indices, interpret};
    use vinelift_tensor::ElementType::U8;

    const DATA: [usize; 4] = [3, 5, 4, 2];

    /// `out[i, j] = data[wrap(indices[i, 0]), …, wrap(indices[i, 2]), j]`, or the same the other way round.
    fn nest(scatters: bool) -> Nest {
        let mut nest = Nest::new();
        let layer = nest.layer("g", "GatherND, opset8");
        let input = nest.buffer("data", U8, &DATA, Role::Input);
        let indices = nest.buffer("indices", I64, &[4, 3], Role::Input);
        let site = Site {
            layer,
            input: "indices".to_owned(),
        };
        nest.sites.push(site);
        let place = |nest: &Nest, at: &[Scalar]| -> Vec<Scalar> {
            let wrap = |d: usize| {
                let position = vec![at[0].clone(), crate::build::index(d as i64)];
                Scalar::wrap(Wrap {
                    index: nest.load(indices, position.clone()),
                    extent: DATA[d].into(),
                    policy: Policy::WRAP,
                    site: SiteId(0),
                    position,
                })
            };
            (0..3).map(wrap).chain([at[1].clone()]).collect()
        };
        if scatters {
            let updates = nest.buffer("updates", U8, &[4, 2], Role::Input);
            let out = nest.buffer("out", U8, &DATA, Role::Output);
            nest.define(vec![layer], out, |nest, at| nest.load(input, at.to_vec()));
            let domain = nest.axes(&[4, 2]);
            let at: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
            let value = nest.load(updates, at.clone());
            let at = place(&nest, &at);
            nest.stages.push(crate::Stage {
                at,
                domain,
                value,
                ..nest.stages[0].clone()
            });
        } else {
            let out = nest.buffer("out", U8, &[4, 2], Role::Output);
            nest.define(vec![layer], out, |nest, at| {
                nest.load(input, place(nest, at))
            });
        }
        nest
    }

    fn known(mut nest: Nest, bytes: &[u8]) -> Nest {
        constant_indices(&mut nest, &|buffer| (buffer.0 == 1).then_some(bytes));
        crate::passes::simplify(&mut nest);
        verify(&nest).unwrap();
        nest
    }

    fn indices() -> Vec<u8> {
        let rows: [[i64; 3]; 4] = [[0, 0, 0], [2, 4, 3], [-1, 0, -2], [1, -5, 1]];
        let all = rows.as_flattened().iter();
        all.flat_map(|i| i.to_le_bytes()).collect()
    }

    /// Offsets of the rows of indices, by hand: `(a·5 + b)·4 + c`.
    const OFFSETS: [usize; 4] = [0, 59, 42, 21];

    #[test]
    fn indices_into_three_dims_are_one_offset() {
        let bytes = indices();
        let nest = known(nest(false), &bytes);
        assert_eq!(
            nest.display_stage(&nest.stages[0]).to_string(),
            "for i<4, j<2: out[i, j] = data[check(i64(offsets[i]), 60 in indices[i, 0]), j]"
        );
        assert_eq!(nest.buffers[0].shape, [60, 2]);
        assert_eq!(nest.buffers.len(), 4, "only one table is kept");
        let data: Vec<u8> = (0..120).collect();
        let mut out = [0; 8];
        let mut buffers = [
            BufferBytes::Read(&data),
            BufferBytes::Read(&bytes),
            BufferBytes::Write(&mut out),
            BufferBytes::Read(&[]),
        ];
        interpret(&nest, &mut buffers).unwrap();
        let want = OFFSETS.map(|at| [2 * at as u8, 2 * at as u8 + 1]);
        assert_eq!(out, want.as_flattened());
    }

    #[test]
    fn a_copy_before_updates_follows() {
        let bytes = indices();
        let nest = known(nest(true), &bytes);
        assert_eq!(nest.buffers[3].shape, [60, 2]);
        let data = [0; 120];
        let updates = [1, 2, 3, 4, 5, 6, 7, 8];
        let mut out = [9; 120];
        let mut buffers = [
            BufferBytes::Read(&data),
            BufferBytes::Read(&bytes),
            BufferBytes::Read(&updates),
            BufferBytes::Write(&mut out),
            BufferBytes::Read(&[]),
        ];
        interpret(&nest, &mut buffers).unwrap();
        let mut want = [0; 120];
        for (at, update) in OFFSETS.iter().zip(updates.chunks(2)) {
            want[2 * at..2 * at + 2].copy_from_slice(update);
        }
        assert_eq!(out, want);
    }

    #[test]
    fn an_index_out_of_range_joins_nothing() {
        let mut bytes = indices();
        bytes[8..16].copy_from_slice(&5i64.to_le_bytes());
        let nest = known(nest(false), &bytes);
        assert_eq!(nest.buffers[0].shape, DATA);
        assert!(
            nest.display_stage(&nest.stages[0])
                .to_string()
                .contains("wrap(indices[i, 1], 5)")
        );
    }
}
