use super::*;
use crate::build::*;
use crate::interpret::BufferBytes;
use crate::ir::Role;
use crate::{fuse, interpret, schedule};
use vinelift_tensor::ElementType::F32;
use vinelift_tensor::Extent;
use vinelift_tensor::symbols::Symbols;

fn divide(nest: &mut Nest) {
    partial_folds(nest, &|_| false, &AtomicBool::new(false));
}

/// `y[i] = op_{k, l} x[i, k, l]`
fn rows(op: Binary, shape: [impl Into<Extent> + Copy; 3]) -> Nest {
    let shape = shape.map(Into::into);
    rows_at(op, shape, &shape, |point| point.to_vec())
}

/// `y[i] = op_{k, l} x[i·K·L + k·L + l]`
fn rows_of_flattened(op: Binary, shape: [Extent; 3]) -> Nest {
    let [_, k, l] = shape;
    let row = k.product(l);
    let len = shape[0].product(row);
    rows_at(op, shape, &[len], |[i, j, last]| {
        let first = i * Scalar::extent(row) + j * Scalar::extent(l);
        vec![first + last]
    })
}

/// `y[i] = op_{k, l} x[at(i, k, l)]`, where `memory` is the shape of `x`.
fn rows_at(
    op: Binary,
    shape: [Extent; 3],
    memory: &[Extent],
    position: impl Fn([Scalar; 3]) -> Vec<Scalar>,
) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, memory, Role::Input);
    let y = nest.buffer("y", F32, &shape[..1], Role::Output);
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&shape[1..]);
        let [k, l] = [Scalar::axis(axes[0].id), Scalar::axis(axes[1].id)];
        let point = position([at[0].clone(), k, l]);
        let init = match op {
            Binary::Max => lowest(F32),
            _ => zero(F32),
        };
        Scalar::reduce(op, axes, init, n.load(x, point))
    });
    nest
}

/// The output of a nest of one input and one output.
fn run(nest: &Nest, x: &[f32]) -> Vec<f32> {
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    let size = |b: &crate::Buffer| 4 * b.example().iter().product::<usize>();
    let mut memory: Vec<Vec<u8>> = nest.buffers[1..].iter().map(|b| vec![0; size(b)]).collect();
    let mut buffers = vec![BufferBytes::Read(&bytes)];
    buffers.extend(memory.iter_mut().map(|m| BufferBytes::Write(m)));
    interpret(nest, &mut buffers).unwrap();
    let words = memory[0].chunks_exact(4);
    words
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

#[test]
fn a_short_row_has_eight_parts() {
    let mut nest = rows(Binary::Add, [3, 1, 27]);
    divide(&mut nest);
    verify(&nest).unwrap();
    let last = |lane: usize| format!("(y.lanes[i, {lane}] + x[i, 0, ((27 - 8) + {lane})])");
    let tree = format!(
        "(((y.lanes[i, 0] + y.lanes[i, 4]) + (y.lanes[i, 2] + {})) \
         + ((y.lanes[i, 1] + {}) + (y.lanes[i, 3] + {})))",
        last(6),
        last(5),
        last(7)
    );
    assert_eq!(
        nest.stage_texts(),
        [
            "for i<3, j<8: y.lanes[i, j] = add[k<3; 0.0](x[i, 0, ((k * 8) + j)])".to_owned(),
            format!("for i<3: y[i] = {tree}"),
        ]
    );
}

/// `y[i] = max_k x[i, k]` from `x[i, 0]` on: each part starts from the value of its own row.
#[test]
fn what_a_fold_starts_from_may_differ_from_row_to_row() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[Extent::from(3), 24.into()], Role::Input);
    let y = nest.buffer("y", F32, &[Extent::from(3)], Role::Output);
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[Extent::from(24)]);
        let first = n.load(x, vec![at[0].clone(), index(0)]);
        let point = n.load(x, vec![at[0].clone(), Scalar::axis(axes[0].id)]);
        Scalar::reduce(Binary::Max, axes, first, point)
    });
    divide(&mut nest);
    verify(&nest).unwrap();
    let parts = "for i<3, j<8: y.lanes[i, j] = max[k<3; x[i, 0]](x[i, ((k * 8) + j)])";
    assert_eq!(nest.stage_texts()[0], parts);
    let values: Vec<f32> = (0..72).map(|k| ((k * 37) % 71) as f32).collect();
    let rows = values.chunks(24);
    let largest: Vec<f32> = rows
        .map(|row| row.iter().copied().fold(0.0, f32::max))
        .collect();
    assert_eq!(run(&nest, &values), largest);
}

/// Axes that are one in memory are folded as one, and stay affine.
#[test]
fn a_long_row_has_sixty_four_parts() {
    let mut nest = rows(Binary::Max, [3, 28, 15]);
    divide(&mut nest);
    fuse(&mut nest);
    schedule(&mut nest);
    verify(&nest).unwrap();
    let stages = nest.stage_texts();
    assert_eq!(
        stages[0],
        "for i<3, j<64: y.lanes[((i * 64) + j)] = max[k<6; -inf](x[(((i * 420) + (k * 64)) + j)])"
    );
    // 36 points are left, which the last 36 of 64 lanes take in.
    let lane = |more: &str| format!("y.lanes[(((i * 64) + j){more}]");
    let point = |number: usize| format!("x[(((i * 420) + j) + {number})]");
    assert_eq!(
        stages[1],
        format!(
            "for i<3, j<16: y.folded[((i * 16) + j)] = max(max({}, max({}, {})), \
             max(select((lanes.f32[(j + 16)] >= 28.0), max({}, {third}), {third}), max({}, {})))",
            "y.lanes[((i * 64) + j)]",
            point(388),
            lane(" + 32)"),
            point(372),
            point(404),
            lane(" + 48)"),
            third = lane(" + 16)"),
        )
    );
    assert!(
        stages[2].starts_with("for i<3: y[i] = max(max(max("),
        "{}",
        stages[2]
    );
}

/// Wherever they are, among the last points as well.
#[test]
fn a_maximum_passes_over_what_is_nan() {
    for points in [27, 31, 420] {
        let mut nest = rows(Binary::Max, [1, 1, points]);
        divide(&mut nest);
        for number in [0, 1, points - 8, points - 1] {
            let mut x = vec![f32::NAN; points];
            assert_eq!(run(&nest, &x), [f32::NEG_INFINITY]);
            x[number] = -1.0;
            assert_eq!(run(&nest, &x), [-1.0], "{number} of {points}");
        }
    }
}

/// The definition in the module's documentation, written out.
#[test]
fn every_point_is_taken_in_once() {
    for points in [23usize, 24, 47, 95, 96, 255, 383, 384, 400, 449, 1000] {
        let x: Vec<f32> = (0..2 * points).map(|k| (k as f32 * 0.7).sin()).collect();
        let mut nest = rows(Binary::Add, [2, 1, points]);
        let plain = nest.clone();
        divide(&mut nest);
        verify(&nest).unwrap();
        assert_eq!(nest == plain, points < 24);
        let found = run(&nest, &x);
        for (row, found) in x.chunks_exact(points).zip(found) {
            let lanes = match points {
                0..24 => 0,
                24..384 => 8,
                _ => 64,
            };
            let whole = row.len().checked_div(lanes).unwrap_or(0) * lanes;
            let mut t = vec![0f32; lanes];
            for (k, x) in row[..whole].iter().enumerate() {
                t[k % lanes] += x;
            }
            let rest = &row[whole..];
            if lanes > 0 {
                let last = lanes - rest.len();
                t[last..].iter_mut().zip(rest).for_each(|(t, x)| *t += x);
            }
            while t.len() > 1 {
                let half = t.len() / 2;
                t = match t.len() {
                    64 => (0..16)
                        .map(|l| (t[l] + t[l + 32]) + (t[l + 16] + t[l + 48]))
                        .collect(),
                    _ => (0..half).map(|l| t[l] + t[l + half]).collect(),
                };
            }
            let want = match t.first() {
                Some(sum) => *sum,
                None => row.iter().fold(0.0, |sum, x| sum + x),
            };
            assert_eq!(found.to_bits(), want.to_bits(), "{points} points");
        }
    }
}

/// Rows of `number` points, as of a nest in which the number is a symbol, or as they are.
fn rows_of(op: Binary, number: Extent, factor: usize, is_flattened: bool) -> Nest {
    let shape = [2.into(), number, factor.into()];
    let mut nest = match is_flattened {
        true => rows_of_flattened(op, shape),
        false => rows(op, shape),
    };
    nest.symbols = number
        .is_symbolic()
        .then_some(number.example())
        .into_iter()
        .collect();
    divide(&mut nest);
    verify(&nest).unwrap();
    nest
}

/// Rows of a number of points that has symbols are folded as those of the number, wherever the conditions hold that
/// were noted at the example; one class for each number of lanes is enough.
#[test]
fn a_formula_of_points_is_folded_as_the_number() {
    for (op, factor, is_flattened) in [
        (Binary::Add, 1, false),
        (Binary::Max, 1, false),
        (Binary::Add, 3, false),
        (Binary::Add, 1, true),
        (Binary::Max, 3, true),
    ] {
        let mut classes: Vec<(Symbols, Nest)> = Vec::new();
        for number in (2..500).rev().step_by(7).chain([383, 384, 95, 96, 23, 24]) {
            if !classes
                .iter()
                .any(|(symbols, _)| symbols.bind(&[number]).is_some())
            {
                let mut symbols = Symbols::default();
                let s = symbols.add(number).unwrap();
                let nest = symbols.record(|| {
                    let mut nest = rows_of(op, s, factor, is_flattened);
                    fuse(&mut nest);
                    schedule(&mut nest);
                    nest
                });
                verify(&nest).unwrap();
                classes.push((symbols, nest));
            }
            let bound = classes
                .iter()
                .find_map(|(symbols, nest)| nest.bound_to(&symbols.bind(&[number])?));
            let bound = bound.unwrap();
            verify(&bound).unwrap();
            let expected = rows_of(op, number.into(), factor, is_flattened);
            let count = 2 * number * factor;
            let x: Vec<f32> = (0..count).map(|k| (k as f32 * 0.7).sin() - 0.3).collect();
            let bits = |nest| {
                run(nest, &x)
                    .iter()
                    .map(|x| x.to_bits())
                    .collect::<Vec<u32>>()
            };
            assert_eq!(bits(&bound), bits(&expected), "{number} points");
        }
        assert_eq!(classes.len(), 3);
    }
}

#[test]
fn other_folds_stay_as_they_are() {
    let unchanged = |nest: Nest| {
        let mut divided = nest.clone();
        divide(&mut divided);
        assert_eq!(divided, nest);
    };
    let with = |body: &dyn Fn(&mut Nest, crate::BufferId, &Scalar, Scalar) -> Scalar| {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[128, 128], Role::Input);
        let y = nest.buffer("y", F32, &[64], Role::Output);
        nest.define(vec![], y, |n, at| {
            let k = n.axis(64);
            let body = body(n, x, &at[0], Scalar::axis(k.id));
            Scalar::reduce(Binary::Add, vec![k], zero(F32), body)
        });
        nest
    };
    // Down a column, along a window that slides, every second, and a sum of products.
    unchanged(with(&|n, x, i, k| n.load(x, vec![k, i.clone()])));
    unchanged(with(&|n, x, i, k| n.load(x, vec![index(0), i + k])));
    unchanged(with(&|n, x, i, k| n.load(x, vec![i.clone(), k * 2])));
    unchanged(with(&|n, x, i, k| {
        let x = n.load(x, vec![i.clone(), k]);
        Scalar::binary(Binary::Term, x.clone(), x)
    }));
    // A value that is made of the axis.
    unchanged(with(&|n, x, i, k| {
        n.load(x, vec![i.clone(), k.clone()]) + k.cast(F32)
    }));
    // One that is read through a transposition, which fusion takes away.
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[64, 8], Role::Input);
    let t = nest.buffer("t", F32, &[8, 64], Role::Temporary);
    let y = nest.buffer("y", F32, &[8], Role::Output);
    nest.define(vec![], t, |n, at| {
        n.load(x, vec![at[1].clone(), at[0].clone()])
    });
    nest.define(vec![], y, |n, at| {
        let k = n.axis(64);
        let body = n.load(t, vec![at[0].clone(), Scalar::axis(k.id)]);
        Scalar::reduce(Binary::Add, vec![k], zero(F32), body)
    });
    unchanged(nest);
}

#[test]
fn what_a_fold_starts_from_is_taken_in_once() {
    let mut nest = rows(Binary::Add, [1, 1, 64]);
    let value = nest.stages[0].value.clone();
    let Kind::Reduce { op, axes, body, .. } = value.kind() else {
        panic!("not a fold");
    };
    nest.stages[0].value = Scalar::reduce(*op, axes.clone(), number(5.0, F32), body.clone());
    divide(&mut nest);
    verify(&nest).unwrap();
    assert_eq!(run(&nest, &[1.0; 64]), [69.0]);
}

/// `y[i] = Σ_k (x[i, k] != x[i, k] ? nan : 0)`, or of `x[k, i]`, which are computed from rows that lie along memory.
fn nans(points: usize, are_across: bool) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[4, points], Role::Input);
    let y = nest.buffer("y", F32, &[4], Role::Output);
    let shape = if are_across { [points, 4] } else { [4, points] };
    let t = nest.buffer("t", F32, &shape, Role::Temporary);
    let place = |i: &Scalar, k: &Scalar| match are_across {
        true => vec![k.clone(), i.clone()],
        false => vec![i.clone(), k.clone()],
    };
    nest.define(vec![], t, |n, at| {
        let place = place(&at[0], &at[1]);
        n.load(x, place).exp()
    });
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[points]);
        let value = n.load(t, place(&at[0], &Scalar::axis(axes[0].id)));
        let body = select(value.ne(value.clone()), number(f64::NAN, F32), zero(F32));
        Scalar::reduce(Binary::Add, axes, zero(F32), body)
    });
    nest
}

/// Sums of NaN and 0 are divided where memory is as it will be, if they run along it then.
#[test]
fn the_order_of_nan_does_not_matter() {
    for (points, are_across, stages) in [
        (24, false, 3),
        (23, false, 2),
        (24, true, 2),
        (383, false, 3),
        (384, false, 4),
    ] {
        let mut nest = nans(points, are_across);
        let mut x: Vec<f32> = (0..4 * points).map(|k| (k % 7) as f32).collect();
        x[points + points / 2] = f32::NAN;
        x[4 * points - 1] = f32::NAN;
        let expected: Vec<bool> = run(&nest, &x).iter().map(|y| y.is_nan()).collect();
        let before = nest.clone();
        divide(&mut nest);
        assert!(nest == before, "{points}");
        unordered_partial_folds(&mut nest);
        verify(&nest).unwrap();
        assert_eq!(nest.stages.len(), stages, "{points} {are_across}");
        let found: Vec<bool> = run(&nest, &x).iter().map(|y| y.is_nan()).collect();
        assert_eq!(found, expected);
    }
}

/// `t[i, k] = exp(x[k, i])`, whether it is a result or not, and `y[i] = Σ_k t[i, k]`; or the other way round in memory.
#[test]
fn the_order_does_not_depend_on_what_is_a_result() {
    for are_across in [false, true] {
        let divided = [Role::Temporary, Role::Output].map(|role| {
            let (long, short) = (40, 4);
            let mut nest = Nest::new();
            let shapes = [[long, short], [short, long]];
            let [of_x, of_t] = match are_across {
                true => [shapes[1], shapes[0]],
                false => shapes,
            };
            let x = nest.buffer("x", F32, &of_x, Role::Input);
            let t = nest.buffer("t", F32, &of_t, role);
            let y = nest.buffer("y", F32, &[short], Role::Output);
            nest.define(vec![], t, |n, at| {
                n.load(x, vec![at[1].clone(), at[0].clone()]).exp()
            });
            nest.define(vec![], y, |n, at| {
                let axes = n.axes(&[long]);
                let k = Scalar::axis(axes[0].id);
                let place = match are_across {
                    true => vec![k, at[0].clone()],
                    false => vec![at[0].clone(), k],
                };
                Scalar::reduce(Binary::Add, axes, zero(F32), n.load(t, place))
            });
            divide(&mut nest);
            verify(&nest).unwrap();
            nest.stage_texts()
        });
        assert_eq!(divided[0], divided[1]);
        assert_eq!(divided[0].len() > 2, are_across);
    }
}
