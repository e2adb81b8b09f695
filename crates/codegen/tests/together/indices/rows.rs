//! Indices that lead to rows: the data in blocks of columns, in rows of few columns, or kept in registers.

use super::{compare, headings, little_endian};
use crate::common::{Compiled, reference, site, vector_loops};
use vinelift_nest::{Binary, Nest, Policy, Role, Scalar, build::*};
use vinelift_tensor::ElementType::{self, *};

/// More rows than the cache holds, of which each point has its own: blocks of columns are done one after the
/// other, and yet the first fault is that of the first point.
#[test]
fn columns_in_blocks() {
    columns([1, 4100, 40], 1030, [F32, I32], "16 columns at a time:");
}

/// Enough columns that they are packed first: because the data are large, or most rows are led to more than once.
#[test]
fn columns_that_are_packed() {
    let large = "64 columns at a time, packed";
    columns([1, 1100, 1500], 280, [F32, I64], large);
    for (shape, outer, types) in [
        ([2, 1000, 331], 1001, [F16, I32]),
        ([1, 1000, 1031], 1000, [U8, I32]),
        ([2, 1000, 101], 1000, [I64, I64]),
    ] {
        columns(shape, outer, types, "columns at a time, packed");
    }
}

/// `out[b, i, j] = data[b, index[b, i, j], j] + data[b, i, j]`; of `f16`, which are not added, without the sum.
fn columns(shape: [usize; 3], outer: usize, [ty, index_ty]: [ElementType; 2], heading: &str) {
    let [batch, rows, columns] = shape;
    let mut nest = Nest::new();
    let data = nest.buffer("data", ty, &shape, Role::Input);
    let of_indices = [batch, outer, columns];
    let indices = nest.buffer("indices", index_ty, &of_indices, Role::Input);
    let out = nest.buffer("out", ty, &[batch, outer, columns], Role::Output);
    let site = site(&mut nest);
    nest.define(vec![], out, |nest, at| {
        let found = nest.load(indices, at.to_vec());
        let row = nest.wrap(found, rows, Policy::WRAP, site, at.to_vec());
        let far = nest.load(data, vec![at[0].clone(), row, at[2].clone()]);
        match ty {
            F16 => far,
            _ => far + nest.load(data, at.to_vec()),
        }
    });
    let found = headings(&nest);
    assert!(found.contains(heading) || !vector_loops()[0], "{found}");
    let of_data: Vec<u8> = (0..batch * rows * columns)
        .flat_map(|k| little_endian((k % 1009) as i64, ty))
        .collect();
    let good: Vec<i64> = (0..batch * outer * columns)
        .map(|k| (k * 7919 % rows) as i64)
        .collect();
    let n = rows as i64;
    let compiled = Compiled::of(&nest);
    for changes in [
        &[][..],
        &[(12_345, -1), (70, -n)],
        &[(900, n), (800, -n - 1), (30, -5)],
    ] {
        let mut found = good.clone();
        changes.iter().for_each(|&(at, index)| found[at] = index);
        let found = found.iter().flat_map(|k| little_endian(*k, index_ty));
        let inputs = [of_data.clone(), found.collect()];
        let (expected, result) = reference(&nest, &inputs);
        assert_eq!(result.is_err(), changes.len() == 3);
        compare(0, &compiled, &inputs, &expected, &result);
    }
}

/// Lanes over rows of a few columns, which one axis goes through: indices wrong or from the end at the ends and between.
#[test]
fn rows_of_few_columns() {
    for columns in [2, 3, 4, 5, 6, 7, 12] {
        for (ty, data_ty) in [(I32, F32), (I64, I64), (I32, U8), (I64, F16)] {
            for by_row in [false, true] {
                few_columns(columns, ty, data_ty, by_row);
            }
        }
    }
}

/// `out[t] = data[index[t], t % columns]`, or `data[t / columns, index[t]]` if `by_row`.
fn few_columns(columns: usize, ty: ElementType, data_ty: ElementType, by_row: bool) {
    const ROWS: usize = 300;
    const EXTENT: usize = 300;
    let count = ROWS * columns;
    let shape = if by_row {
        [ROWS, EXTENT]
    } else {
        [EXTENT, columns]
    };
    let mut nest = Nest::new();
    let data = nest.buffer("data", data_ty, &shape, Role::Input);
    let indices = nest.buffer("indices", ty, &[count], Role::Input);
    let out = nest.buffer("out", data_ty, &[count], Role::Output);
    let site = site(&mut nest);
    nest.define(vec![], out, |nest, at| {
        let found = nest.load(indices, at.to_vec());
        let found = nest.wrap(found, EXTENT, Policy::WRAP, site, at.to_vec());
        let n = index(columns as i64);
        match by_row {
            true => nest.load(
                data,
                vec![Scalar::binary(Binary::Div, at[0].clone(), n), found],
            ),
            false => nest.load(
                data,
                vec![found, Scalar::binary(Binary::Rem, at[0].clone(), n)],
            ),
        }
    });
    let elements = shape[0] * shape[1];
    let of_data: Vec<u8> = (0..elements)
        .flat_map(|k| little_endian(k as i64, data_ty))
        .collect();
    let good: Vec<i64> = (0..count).map(|k| (k * 7919 % EXTENT) as i64).collect();
    let heading = headings(&nest);
    let on = |bits: usize| heading.contains(&format!("on {bits} bits, indices checked"));
    let is_wide = match vector_loops() {
        [_, true] => on(512),
        [is_there, _] => on(256) || !is_there,
    };
    assert!(is_wide, "{heading}");
    let far = EXTENT as i64;
    let compiled = Compiled::of(&nest);
    for (at, wrong) in [
        (0, far),
        (count / 2, -1),
        (count / 2 + 1, -far - 1),
        (count - 1, far),
    ] {
        let mut found = good.clone();
        found[at] = wrong;
        let found = found.iter().flat_map(|k| little_endian(*k, ty)).collect();
        let inputs = [of_data.clone(), found];
        let (expected, result) = reference(&nest, &inputs);
        assert_eq!(result.is_err(), wrong != -1);
        compare(at as u64, &compiled, &inputs, &expected, &result);
    }
}

/// Rows that stay in registers, whole ones or not, by indices of both widths, of which one may be wrong or from the
/// end, at the ends and between.
#[test]
fn short_rows() {
    for extent in [8, 9, 13, 15, 16, 17, 23, 24, 25, 29, 31, 32] {
        for (ty, data_ty) in [
            (I32, F32),
            (I64, F32),
            (I32, F16),
            (I64, F16),
            (I32, U8),
            (I64, U8),
        ] {
            for points in [16, 21] {
                short_row(extent, points, ty, data_ty);
            }
        }
    }
}

/// `out[i, j] = data[i, index[i, j]]`
fn short_row(extent: usize, points: usize, ty: ElementType, data_ty: ElementType) {
    const ROWS: usize = 5;
    let mut nest = Nest::new();
    let data = nest.buffer("data", data_ty, &[ROWS, extent], Role::Input);
    let indices = nest.buffer("indices", ty, &[ROWS, points], Role::Input);
    let out = nest.buffer("out", data_ty, &[ROWS, points], Role::Output);
    let site = site(&mut nest);
    nest.define(vec![], out, |nest, at| {
        let found = nest.load(indices, at.to_vec());
        let found = nest.wrap(found, extent, Policy::WRAP, site, at.to_vec());
        nest.load(data, vec![at[0].clone(), found])
    });
    let heading = headings(&nest);
    let stays = heading.contains("rows in registers");
    // Wider vectors do not all permute bytes.
    assert!(
        stays || !vector_loops()[0] || vector_loops()[1],
        "{extent}: {heading}"
    );
    let of_data: Vec<u8> = (0..ROWS * extent)
        .flat_map(|k| little_endian(k as i64, data_ty))
        .collect();
    let count = ROWS * points;
    let far = extent as i64;
    let good: Vec<i64> = (0..count as i64).map(|k| k * 7 % far).collect();
    let compiled = Compiled::of(&nest);
    for (at, other) in [
        (0, far - 1),
        (0, far),
        (count / 2, -far),
        (count / 2 + 1, -far - 1),
        (count - 1, 1 << 31),
        (count - 1, -1),
    ] {
        let mut found = good.clone();
        found[at] = other;
        let of_indices = found.iter().flat_map(|v| little_endian(*v, ty)).collect();
        let inputs = [of_data.clone(), of_indices];
        let (expected, result) = reference(&nest, &inputs);
        compare(0, &compiled, &inputs, &expected, &result);
    }
}
