//! `SparseFillEmptyRows`: the elements of a sparse matrix, with `default_value` at column 0 of each row that
//! has none, in row-major order; and which rows these were.
//!
//! Specification: SparseFillEmptyRows-16. Elements at the same place keep their order. One outside of
//! `dense_shape` is an error.

use super::tensors::integers;
use crate::error::ensure;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::{collected, filled, make_room, room_for, text};
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor, packed};

pub(crate) static DEF: OpDef = OpDef {
    name: "SparseFillEmptyRows",
    versions: &["opset16"],
    signature: Signature::new(&["values", "dense_shape", "indices", "default_value"]),
    family: Family::Native,
    build: Build::Native(parse_native::<SparseFillEmptyRows>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SparseFillEmptyRows {}

impl Native for SparseFillEmptyRows {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_rank("values", 1)?;
        let values = cx.expect_same("values", "default_value")?;
        let index = cx.expect_index("indices")?;
        cx.expect_same("indices", "dense_shape")?;
        let one = cx
            .dims("default_value")
            .is_none_or(|d| d.iter().all(|n| n.contains(1)));
        ensure!(
            one,
            "`default_value` must hold one element, found {}",
            cx.shape("default_value")
        );
        cx.expect_rank("indices", 2)?;
        cx.expect_rank("dense_shape", 1)?;
        let own = |name: &str, k: usize| cx.dims(name).map_or(Dim::ANY, |d| d[k]);
        ensure!(
            own("indices", 1).contains(2) && own("dense_shape", 0).contains(2),
            "`indices` {} and `dense_shape` {} must be of a matrix, with a last dim of 2",
            cx.shape("indices"),
            cx.shape("dense_shape")
        );
        let count = own("values", 0).intersect(own("indices", 0));
        let Some(count) = count else {
            return Err(OpError::Shape(format!(
                "`values` {} and `indices` {} must have the same first dim",
                cx.shape("values"),
                cx.shape("indices")
            )));
        };
        let rows = match cx.integers("dense_shape")?.as_deref() {
            Some(&[rows, columns]) => Dim::fixed(extents(rows, columns)?.0),
            _ => Dim::ANY,
        };
        // Each row is empty, or has one of the elements at least.
        let filled = Dim::between(
            count.min().max(rows.min()),
            count
                .max()
                .zip(rows.max())
                .map(|(a, b)| a.saturating_add(b)),
        );
        let shape = |dims: &[Dim]| PartialShape::ranked(dims.to_vec());
        Ok(vec![
            TensorType::new(index, shape(&[filled, Dim::fixed(2)])),
            TensorType::new(values, shape(&[filled])),
            TensorType::new(ElementType::Boolean, shape(&[rows])),
        ])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let (indices, dense) = (cx.integers("indices")?, cx.integers("dense_shape")?);
        let &[rows, columns] = &dense[..] else {
            return Err(OpError::Shape(
                "`dense_shape` must have two elements".to_owned(),
            ));
        };
        let (row_count, column_count) = extents(rows, columns)?;
        let mut empty = filled(row_count, true)?;
        let count = indices.len() / 2;
        // Row, column, and position in the values; the default value comes after them.
        let mut places = room_for(count)?;
        for (k, place) in indices.chunks_exact(2).enumerate() {
            let (row, column) = (place[0], place[1]);
            let inside = |i: i64, n: usize| usize::try_from(i).ok().filter(|i| *i < n);
            let at = inside(row, row_count).zip(inside(column, column_count));
            let Some((r, _)) = at else {
                return Err(OpError::Shape(format!(
                    "`indices` [{row}, {column}] lies outside of `dense_shape` [{rows}, {columns}]"
                )));
            };
            empty[r] = false;
            places.push((row, column, k));
        }
        let missing = empty.iter().filter(|e| **e).count();
        make_room(&mut places, missing)?;
        let fills = empty.iter().enumerate().filter(|(_, e)| **e);
        places.extend(fills.map(|(row, _)| (row as i64, 0, count)));
        places.sort_by_key(|&(row, column, _)| (row, column));

        let flat = collected(places.iter().flat_map(|&(r, c, _)| [r, c]))?;
        let positions = collected(places.iter().map(|p| p.2))?;
        let index = cx.output(0).element;
        Ok(vec![
            integers(index, &[places.len(), 2], &flat)?,
            pick(cx.input("values"), cx.input("default_value"), &positions)?,
            Tensor::from_bools(&[row_count], &empty)?,
        ])
    }
}

/// Rows and columns of the matrix.
fn extents(rows: i64, columns: i64) -> Result<(usize, usize), OpError> {
    let both = usize::try_from(rows)
        .ok()
        .zip(usize::try_from(columns).ok());
    both.ok_or_else(|| {
        OpError::Shape(format!(
            "`dense_shape` must not be negative, found [{rows}, {columns}]"
        ))
    })
}

/// The elements of `values` at `positions`; at the position after the last is `default`.
fn pick(values: &Tensor, default: &Tensor, positions: &[usize]) -> Result<Tensor, OpError> {
    let (ty, shape, count) = (
        values.element_type(),
        [positions.len()],
        values.element_count(),
    );
    if let (Some(values), Some(default)) = (values.strings(), default.strings()) {
        let mut picked = room_for(positions.len())?;
        for &k in positions {
            picked.push(text(values.get(k).unwrap_or(&default[0]))?);
        }
        return Ok(Tensor::from_strings(&shape, picked)?);
    }
    if ty.is_packed() {
        let mut picked = Tensor::zeros(ty, &shape)?;
        for (k, &position) in positions.iter().enumerate() {
            let code = match position < count {
                true => packed::get(ty, values.bytes(), position),
                false => packed::get(ty, default.bytes(), 0),
            };
            packed::set(ty, picked.make_mut()?, k, code);
        }
        return Ok(picked);
    }
    let mut all = Tensor::zeros(ty, &[count + 1])?;
    let (first, last) = all.make_mut()?.split_at_mut(values.bytes().len());
    first.copy_from_slice(values.bytes());
    last.copy_from_slice(default.bytes());
    Ok(all.take(&shape, positions)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i32s, i64s, infer, run_all};

    /// The example of the specification, its elements in another order.
    #[test]
    fn fills_and_sorts() {
        let of = |values: Tensor, default: Tensor| {
            let indices = i32s(&[4, 2], &[3, 1, 0, 1, 0, 3, 2, 0]);
            let inputs = [values, i32s(&[2], &[5, 6]), indices, default];
            run_all(&DEF, &[], &inputs, IndexPolicy::Spec).unwrap()
        };
        let found = of(f32s(&[4], &[4.0, 1.0, 2.0, 3.0]), f32s(&[], &[9.0]));
        assert_eq!(
            found[0],
            i32s(&[6, 2], &[0, 1, 0, 3, 1, 0, 2, 0, 3, 1, 4, 0])
        );
        assert_eq!(found[1], f32s(&[6], &[1.0, 2.0, 9.0, 3.0, 4.0, 9.0]));
        let rows = [false, true, false, false, true];
        assert_eq!(found[2], Tensor::from_bools(&[5], &rows).unwrap());
        let text = |s: &[&str]| {
            Tensor::from_strings(&[s.len()], s.iter().map(|s| s.to_string()).collect()).unwrap()
        };
        let found = of(text(&["d", "a", "b", "c"]), text(&["-"]));
        assert_eq!(found[1], text(&["a", "b", "-", "c", "d", "-"]));
        let nibbles =
            |n: usize, bytes: &[u8]| Tensor::from_bytes(ElementType::I4, &[n], bytes).unwrap();
        let found = of(nibbles(4, &[0x14, 0x32]), nibbles(1, &[0x9]));
        assert_eq!(found[1], nibbles(6, &[0x21, 0x39, 0x94]));
    }

    #[test]
    fn empty_matrices() {
        let of = |rows: i64| {
            let none = i64s(&[0, 2], &[]);
            let inputs = [
                f32s(&[0], &[]),
                i64s(&[2], &[rows, 0]),
                none,
                f32s(&[], &[1.0]),
            ];
            run_all(&DEF, &[], &inputs, IndexPolicy::Spec)
        };
        assert_eq!(of(2).unwrap()[1], f32s(&[2], &[1.0, 1.0]));
        assert_eq!(of(0).unwrap()[0], i64s(&[0, 2], &[]));
        let message = "`dense_shape` must not be negative, found [-1, 0]";
        assert_eq!(of(-1).unwrap_err(), message);
    }

    #[test]
    fn elements_must_lie_within() {
        let of = |row: i64, column: i64| {
            let indices = i64s(&[1, 2], &[row, column]);
            let inputs = [
                f32s(&[1], &[0.0]),
                i64s(&[2], &[2, 3]),
                indices,
                f32s(&[], &[1.0]),
            ];
            error(&DEF, &[], &inputs)
        };
        let message = "`indices` [2, 0] lies outside of `dense_shape` [2, 3]";
        assert_eq!(of(2, 0), message);
        let message = "`indices` [-1, 3] lies outside of `dense_shape` [2, 3]";
        assert_eq!(of(-1, 3), message);
    }

    #[test]
    fn partial_shapes() {
        let shape = |d: &[Dim]| PartialShape::ranked(d.to_vec());
        let of = |dense: Option<Tensor>| {
            let inputs = [
                (ElementType::F16, shape(&[Dim::fixed(3)]), None),
                (ElementType::I32, shape(&[Dim::fixed(2)]), dense),
                (ElementType::I32, shape(&[Dim::ANY, Dim::fixed(2)]), None),
                (ElementType::F16, shape(&[]), None),
            ];
            infer(&DEF, &[], &inputs).0
        };
        let dense = i32s(&[2], &[5, 6]);
        assert_eq!(of(Some(dense)), "i32[5..8, 2] f16[5..8] boolean[5]");
        assert_eq!(of(None), "i32[3.., 2] f16[3..] boolean[?]");
    }
}
