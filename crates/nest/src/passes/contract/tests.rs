use super::*;
use crate::analysis::Contraction;
use crate::build::*;
use crate::passes::fuse::fuse;
use crate::passes::schedule::schedule;
use crate::{Points, Strided, verify};
use vinelift_tensor::ElementType::{BF16, F16, F32, I8};

/// The text of the stages after the passes.
fn contracted(nest: &mut Nest) -> Vec<String> {
    verify(nest).unwrap();
    fuse(nest);
    contract(nest, &|b| b == BufferId(1));
    verify(nest).unwrap();
    nest.stage_texts()
}

fn product(
    nest: &mut Nest,
    extents: &[usize],
    f: impl Fn(&mut Nest, &[Scalar]) -> Scalar,
) -> Scalar {
    let axes = nest.axes(extents);
    let point: Vec<Scalar> = axes.iter().map(|a| Scalar::axis(a.id)).collect();
    let body = f(nest, &point);
    Scalar::reduce(Binary::Add, axes, zero(body.ty()), body)
}

fn term(x: Scalar, y: Scalar) -> Scalar {
    Scalar::binary(Binary::Term, x, y)
}

#[test]
fn a_matrix_product_is_one_stage_and_its_bias_another() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[32, 16], Role::Input);
    let w = nest.buffer("w", F32, &[8, 16], Role::Input);
    let bias = nest.buffer("bias", F32, &[8], Role::Input);
    let t = nest.buffer("t", F32, &[32, 8], Role::Temporary);
    let y = nest.buffer("y", F32, &[32, 8], Role::Output);
    nest.define(vec![], t, |n, at| {
        product(n, &[16], |n, k| {
            let x = n.load(x, vec![at[0].clone(), k[0].clone()]);
            term(x, n.load(w, vec![at[1].clone(), k[0].clone()]))
        })
    });
    nest.define(vec![], y, |n, at| {
        n.load(t, at.to_vec()) + n.load(bias, vec![at[1].clone()])
    });
    assert_eq!(
        contracted(&mut nest),
        [
            "for i<32, j<8: y.sum[i, j] = add[k<16; 0.0](term(x[i, k], w[j, k]))",
            "for i<32, j<8: y[i, j] = (y.sum[i, j] + bias[j])",
        ]
    );
    schedule(&mut nest);
    let found = Contraction::of(&nest, &nest.stages[0]).unwrap();
    let axes = found
        .axes
        .iter()
        .map(|a| (a.extent, a.left, a.right, a.out));
    let axes: Vec<_> = axes.collect();
    assert_eq!(axes, [(32, 16, 0, 8), (8, 0, 16, 1), (16, 1, 1, 0)]);
    assert_eq!(Contraction::of(&nest, &nest.stages[1]), None);
}

/// The padded input is stored over what `oh · 2 + kh` takes, not over all windows.
#[test]
fn a_padded_convolution_stores_its_padded_input() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[4, 19], Role::Input);
    let w = nest.buffer("w", F16, &[16, 4, 3], Role::Input);
    let y = nest.buffer("y", F32, &[16, 10], Role::Output);
    nest.define(vec![], y, |n, at| {
        product(n, &[4, 3], |n, k| {
            let i = &at[1] * 2 + &k[1] - 1;
            let x = n.load(x, vec![k[0].clone(), i.clone()]);
            let w = n.load(w, vec![at[0].clone(), k[0].clone(), k[1].clone()]);
            term(select(inside(&i, 0, 19), x, zero(F32)), w.cast(F32))
        })
    });
    assert_eq!(
        contracted(&mut nest),
        [
            "for i<4, j<21: y.left[i, j] = select((((j - 1) >= 0) & ((j - 1) < 19)), x[i, (j - 1)], 0.0)",
            "for i<16, j<10: y[i, j] = \
             add[k<4, l<3; 0.0](term(y.left[k, ((j * 2) + l)], f32(w[i, k, l])))",
        ]
    );
}

/// Results between two elements of the input meet every other tap, from the last on: the taps are stored in the order in
/// which they are met, whether the tensor has a dim for them or they are part of a flat index.
#[test]
fn taps_of_a_transposed_convolution_are_walked_forward() {
    let of = |flat: bool| {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[8, 18], Role::Input);
        let shape: &[usize] = if flat { &[8 * 16 * 4] } else { &[8, 16, 4] };
        let w = nest.buffer("w", F32, shape, Role::Input);
        let y = nest.buffer("y", F32, &[16, 16, 2], Role::Output);
        nest.define(vec![], y, |n, at| {
            product(n, &[8, 2], |n, k| {
                let x = n.load(x, vec![k[0].clone(), &at[1] + &at[2] + &k[1]]);
                let tap = &k[1] * -2 - &at[2] + 3;
                let tap = match flat {
                    true => vec![&k[0] * 64 + &at[0] * 4 + tap],
                    false => vec![k[0].clone(), at[0].clone(), tap],
                };
                term(x, n.load(w, tap))
            })
        });
        let text = contracted(&mut nest);
        let found = Contraction::of(&nest, &nest.stages[1]).unwrap();
        assert_eq!(found.axes.len(), 5);
        text
    };
    assert_eq!(
        of(false),
        [
            "for i<8, j<16, k<4: y.right[i, j, k] = w[i, j, ((k * -1) + 3)]",
            "for i<16, j<16, k<2: y[i, j, k] = add[l<8, m<2; 0.0](term(x[l, ((j + k) + m)], y.right[l, i, (k + (m * 2))]))",
        ]
    );
    assert_eq!(
        of(true),
        [
            "for i<8, j<2, k<16, l<2: y.right[i, j, k, l] = w[(((((i * 64) + (k * 4)) + (j * -2)) + (l * -1)) + 3)]",
            "for i<16, j<16, k<2: y[i, j, k] = add[l<8, m<2; 0.0](term(x[l, ((j + k) + m)], y.right[l, m, i, k]))",
        ]
    );
}

/// Constant weights stay as they are coded, where zero points and scales belong to columns, or to groups of what is summed
/// over that are not too small.
#[test]
fn coded_weights_stay_coded() {
    let right = |scales: &[usize], place: fn(&[Scalar], &Scalar) -> Vec<Scalar>| {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[16, 32], Role::Input);
        let w = nest.buffer("w", I8, &[32, 64], Role::Input);
        let scale = nest.buffer("scale", F32, scales, Role::Input);
        let y = nest.buffer("y", F32, &[16, 64], Role::Output);
        nest.define(vec![], y, |n, at| {
            product(n, &[32], |n, k| {
                let w = n.load(w, vec![k[0].clone(), at[1].clone()]);
                let scale = n.load(scale, place(at, &k[0]));
                let x = n.load(x, vec![at[0].clone(), k[0].clone()]);
                term(x, (w.cast(F32) - number(3.0, F32)) * scale)
            })
        });
        verify(&nest).unwrap();
        fuse(&mut nest);
        contract(&mut nest, &|b| b == BufferId(1) || b == BufferId(2));
        verify(&nest).unwrap();
        schedule(&mut nest);
        let last = nest.stages.last().unwrap().clone();
        let contraction = Contraction::of(&nest, &last).unwrap();
        let coding = contraction.right.coding.clone();
        coding.map(|coding| (contraction.group(&coding), coding))
    };
    let (group, coded) = right(&[64], |at, _| vec![at[1].clone()]).unwrap();
    assert_eq!(group, 32);
    assert_eq!(coded.zero, Some(Points::Value(3.0f32.to_bits())));
    let from = Strided {
        buffer: BufferId(2),
        base: 0,
    };
    let steps = vec![0, 1, 0];
    assert_eq!(coded.scale, Some(Points::Tensor { from, steps }));
    // Axes: rows, columns, groups, and elements in a group.
    let (group, coded) = right(&[64, 2], |at, k| vec![at[1].clone(), k / 16]).unwrap();
    assert_eq!(group, 16);
    let steps = vec![0, 2, 1, 0];
    assert_eq!(coded.scale, Some(Points::Tensor { from, steps }));
    assert_eq!(right(&[64, 4], |at, k| vec![at[1].clone(), k / 8]), None);
    assert_eq!(right(&[32], |_, k| vec![k.clone()]), None);
}

/// Keys of 16 bits that differ from run to run are taken as they are where few queries share them, in a kernel; many have them
/// widened once, and where they are no columns they are stored as `f32` as others are.
#[test]
fn narrow_columns_that_few_rows_share_stay_narrow() {
    // The number of stages, and whether a contraction takes the keys.
    let found = |rows: usize, ty, (columns, across): (bool, bool)| {
        let mut nest = Nest::new();
        let shape = if across { [64, 32] } else { [32, 64] };
        let keys = nest.buffer("k", ty, &shape, Role::Input);
        let queries = nest.buffer("q", F32, &[rows, 32], Role::Input);
        let shape = if columns { [rows, 64] } else { [64, rows] };
        let y = nest.buffer("y", F32, &shape, Role::Output);
        nest.define(vec![], y, |n, at| {
            product(n, &[32], |n, k| {
                let (row, key) = if columns { (0, 1) } else { (1, 0) };
                let query = n.load(queries, vec![at[row].clone(), k[0].clone()]);
                let mut place = vec![at[key].clone(), k[0].clone()];
                if !across {
                    place.reverse();
                }
                term(query, n.load(keys, place).cast(F32))
            })
        });
        let stages = contracted(&mut nest).len();
        let contraction = Contraction::of(&nest, nest.stages.last().unwrap());
        let takes_keys = contraction
            .is_some_and(|c| c.right.tensor.buffer == keys && !c.suits_loops(|axis| axis.right));
        (stages, takes_keys)
    };
    for ty in [F16, BF16] {
        for rows in [1, 15] {
            assert_eq!(found(rows, ty, (true, true)), (1, true));
        }
        assert_eq!(found(16, ty, (true, true)), (2, false));
        assert_eq!(found(15, ty, (false, true)), (2, false));
        // Elements side by side, of which a row alone has vectors in a loop.
        assert_eq!(found(1, ty, (true, false)), (1, false));
        for rows in [2, 15] {
            assert_eq!(found(rows, ty, (true, false)), (1, true));
        }
        assert_eq!(found(16, ty, (true, false)), (2, false));
    }
    // Codes of 8 bits are no such numbers.
    assert_eq!(found(15, I8, (true, true)), (2, false));
}

#[test]
fn groups_become_an_axis() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[2, 3, 48], Role::Input);
    let w = nest.buffer("w", F32, &[2, 4, 3], Role::Input);
    let y = nest.buffer("y", F32, &[8, 48], Role::Output);
    nest.define(vec![], y, |n, at| {
        product(n, &[3], |n, k| {
            let (group, own) = (&at[0] / 4, at[0].rem(index(4)));
            let x = n.load(x, vec![group.clone(), k[0].clone(), at[1].clone()]);
            term(x, n.load(w, vec![group, own, k[0].clone()]))
        })
    });
    assert_eq!(contracted(&mut nest).len(), 1);
    let found = Contraction::of(&nest, &nest.stages[0]).unwrap();
    let axes = found
        .axes
        .iter()
        .map(|a| (a.extent, a.left, a.right, a.out));
    let axes: Vec<_> = axes.collect();
    let want = [
        (2, 144, 12, 192),
        (4, 0, 3, 48),
        (48, 1, 0, 1),
        (3, 48, 1, 0),
    ];
    assert_eq!(axes, want);
}

/// A stage that reads its own target, is small, or writes an element twice stays as it is.
#[test]
fn what_is_no_kernel_stays_a_loop() {
    let stays = |domain: &[usize], depth: usize, at: fn(&[Scalar]) -> Scalar| {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[64, 64], Role::Input);
        let w = nest.buffer("w", F32, &[64, 64], Role::Input);
        let y = nest.buffer("y", F32, &[4096], Role::Output);
        let axes = nest.axes(domain);
        let point: Vec<Scalar> = axes.iter().map(|a| Scalar::axis(a.id)).collect();
        let value = product(&mut nest, &[depth], |n, k| {
            let x = n.load(x, vec![point[0].clone(), k[0].clone()]);
            term(x, n.load(w, vec![k[0].clone(), point[1].clone()]))
        });
        let stage = Stage {
            domain: axes,
            target: y,
            at: vec![at(&point)],
            mode: Mode::Set,
            value,
            layers: vec![],
            group: None,
        };
        Contraction::of(&nest, &stage).is_none()
    };
    assert!(!stays(&[64, 64], 64, |at| &at[0] * 64 + &at[1]));
    assert!(!stays(&[16, 64], 64, |at| &at[0] * 64 + &at[1]));
    assert!(stays(&[4, 4], 16, |at| &at[0] * 64 + &at[1]));
    assert!(stays(&[64, 64], 64, |at| &at[0] * 32 + &at[1]));
    assert!(stays(&[64, 64], 64, |at| at[1].clone()));
    // One product is no sum.
    assert!(stays(&[64, 64], 1, |at| &at[0] * 64 + &at[1]));
}

/// Windows over channels of their own stay folds, whether they move by one point or two, or are dilated.
#[test]
fn windows_of_channels_stay_loops() {
    for (stride, dilation) in [(1, 1), (2, 1), (1, 2), (1, 3)] {
        let mut nest = Nest::new();
        let long = stride as usize * 63 + dilation as usize * 2 + 1;
        let x = nest.buffer("x", F32, &[16, long], Role::Input);
        let w = nest.buffer("w", F32, &[16, 3], Role::Input);
        let y = nest.buffer("y", F32, &[16, 64], Role::Output);
        nest.define(vec![], y, |n, at| {
            product(n, &[3], |n, k| {
                let place = &at[1] * stride + &k[0] * dilation;
                let x = n.load(x, vec![at[0].clone(), place]);
                term(x, n.load(w, vec![at[0].clone(), k[0].clone()]))
            })
        });
        let found = Contraction::of(&nest, &nest.stages[0]);
        assert_eq!(found, None, "stride {stride}, dilation {dilation}");
    }
}

/// Large windows are contractions where each row is of one channel, and loops where it is of all channels.
#[test]
fn large_windows_of_channels_are_loops_if_channels_are_lanes() {
    let is_contraction = |window: usize, channels_last: bool| {
        let mut nest = Nest::new();
        let shape = |points: usize| match channels_last {
            true => [points, 16],
            false => [16, points],
        };
        let x = nest.buffer("x", F32, &shape(64 + window), Role::Input);
        let w = nest.buffer("w", F32, &shape(window), Role::Input);
        let y = nest.buffer("y", F32, &shape(64), Role::Output);
        nest.define(vec![], y, |n, at| {
            product(n, &[window], |n, k| {
                let of = |point: Scalar| match channels_last {
                    true => vec![point, at[1].clone()],
                    false => vec![at[0].clone(), point],
                };
                let place = &at[usize::from(!channels_last)] + &k[0];
                term(n.load(x, of(place)), n.load(w, of(k[0].clone())))
            })
        });
        Contraction::of(&nest, &nest.stages[0]).is_some()
    };
    assert!(!is_contraction(49, false) && is_contraction(50, false));
    assert!(!is_contraction(1024, true) && is_contraction(1025, true));
}

#[test]
fn a_sum_that_only_a_guard_keeps_inside_stays_under_it() {
    // The sum of matrices before each: the product is read at `i - 1`, where there is one.
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[4, 32, 16], Role::Input);
    let w = nest.buffer("w", F32, &[4, 16, 8], Role::Input);
    let t = nest.buffer("t", F32, &[4, 32, 8], Role::Temporary);
    let y = nest.buffer("y", F32, &[4, 32, 8], Role::Output);
    let sum = |n: &mut Nest, i: &Scalar, at: &[Scalar]| {
        product(n, &[16], |n, k| {
            let x = n.load(x, vec![i.clone(), at[1].clone(), k[0].clone()]);
            term(x, n.load(w, vec![i.clone(), k[0].clone(), at[2].clone()]))
        })
    };
    let before = |at: &[Scalar], value: Scalar| {
        let is_first = Scalar::binary(Binary::Lt, at[0].clone(), index(1));
        Scalar::select(is_first, zero(F32), value)
    };
    let mut guarded = nest.clone();
    guarded.define(vec![], y, |n, at| {
        let sum = sum(n, &(at[0].clone() - 1i64), at);
        before(at, sum)
    });
    nest.define(vec![], t, |n, at| sum(n, &at[0], at));
    nest.define(vec![], y, |n, at| {
        let t = n.load(t, vec![at[0].clone() - 1i64, at[1].clone(), at[2].clone()]);
        before(at, t)
    });
    assert_eq!(
        contracted(&mut nest),
        [
            "for i<4, j<32, k<8: t[i, j, k] = add[l<16; 0.0](term(x[i, j, l], w[i, l, k]))",
            "for i<4, j<32, k<8: y[i, j, k] = select((i < 1), 0.0, t[(i - 1), j, k])",
        ]
    );
    let stages = guarded.stage_texts();
    assert_eq!(contracted(&mut guarded), stages);
}

/// `y = c·c` and `z = c + 1` for `c[i, j] = Σ_k x[i, k]·w[k, j]`, as fusion leaves them; between the two, `between` is
/// done.
fn readers(between: impl Fn(&mut Nest, crate::BufferId)) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[16, 64], Role::Input);
    let w = nest.buffer("w", F32, &[64, 32], Role::Temporary);
    let y = nest.buffer("y", F32, &[16, 32], Role::Output);
    let z = nest.buffer("z", F32, &[16, 32], Role::Output);
    let sum = |n: &mut Nest, at: &[Scalar]| {
        let axes = n.axes(&[64]);
        let k = Scalar::axis(axes[0].id);
        let left = n.load(x, vec![at[0].clone(), k.clone()]);
        let right = n.load(w, vec![k, at[1].clone()]);
        let term = Scalar::binary(Binary::Term, left, right);
        Scalar::reduce(Binary::Add, axes, zero(F32), term)
    };
    nest.define(vec![], w, |_, _| number(0.5, F32));
    nest.define(vec![], y, |n, at| sum(n, at) * sum(n, at));
    between(&mut nest, w);
    nest.define(vec![], z, |n, at| sum(n, at) + number(1.0, F32));
    contract(&mut nest, &|_| false);
    verify(&nest).unwrap();
    nest
}

#[test]
fn a_sum_with_several_readers_is_computed_once() {
    assert_eq!(
        readers(|_, _| ()).stage_texts()[1..],
        [
            "for i<16, j<32: y.sum[i, j] = add[k<64; 0.0](term(x[i, k], w[k, j]))",
            "for i<16, j<32: y[i, j] = (y.sum[i, j] * y.sum[i, j])",
            "for i<16, j<32: z[i, j] = (y.sum[i, j] + 1.0)",
        ]
    );
}

#[test]
fn a_sum_of_what_is_written_again_is_computed_again() {
    let nest = readers(|n, w| n.define(vec![], w, |_, _| number(2.0, F32)));
    assert_eq!(
        nest.stage_texts()[3..],
        [
            "for i<64, j<32: w[i, j] = 2.0",
            "for i<16, j<32: z.sum[i, j] = add[k<64; 0.0](term(x[i, k], w[k, j]))",
            "for i<16, j<32: z[i, j] = (z.sum[i, j] + 1.0)",
        ]
    );
}

/// Keys and values that are copied for all heads of a group are read where they are: the heads' queries are rows of one
/// product for each group.
#[test]
fn heads_of_a_group_are_rows_of_one_product() {
    let text = "\
input k: f32[2, 40, 16]
input v: f32[2, 40, 16]
input q: f32[6, 5, 16]
temporary ks: f32[6, 40, 16]
temporary vs: f32[6, 40, 16]
temporary scores: f32[6, 5, 40]
output y: f32[5, 96]
for i<6, j<40, l<16: ks[i, j, l] = k[(i / 3), j, l]
for i<6, j<40, l<16: vs[i, j, l] = v[(i / 3), j, l]
for h<6, i<5, j<40: scores[h, i, j] = add[l<16; 0.0](term(q[h, i, l], ks[h, j, l]))
for i<5, j<96: y[i, j] = add[l<40; 0.0](term(scores[(j / 16), i, l], vs[(j / 16), l, (j % 16)]))
";
    let mut nest = crate::parse(text).unwrap();
    let found = contracted(&mut nest);
    assert_eq!(
        found,
        [
            "for i<2, j<3, k<5, l<40: scores[((i * 3) + j), k, l] = \
             add[m<16; 0.0](term(q[((i * 3) + j), k, m], k[i, l, m]))",
            "for i<5, j<2, k<3, l<16: y[i, (((j * 48) + (k * 16)) + l)] = \
             add[m<40; 0.0](term(scores[((j * 3) + k), i, m], v[j, m, l]))",
        ]
    );
}

/// A picture that is enlarged before a convolution is stored: its points are columns, which the weights do not have. So is
/// what is read beside the products.
#[test]
fn other_copies_are_stored() {
    let enlarged = "\
input x: f32[16, 20, 20]
input w: f32[32, 16]
temporary large: f32[16, 40, 40]
output y: f32[32, 40, 40]
for c<16, i<40, j<40: large[c, i, j] = x[c, (i / 2), (j / 2)]
for o<32, i<40, j<40: y[o, i, j] = add[c<16; 0.0](term(w[o, c], large[c, i, j]))
";
    let twice = "\
input k: f32[2, 40, 16]
input q: f32[6, 5, 16]
temporary ks: f32[6, 40, 16]
output s: f32[6, 5, 40]
output y: f32[6, 40]
for i<6, j<40, l<16: ks[i, j, l] = k[(i / 3), j, l]
for h<6, i<5, j<40: s[h, i, j] = add[l<16; 0.0](term(q[h, i, l], ks[h, j, l]))
for h<6, j<40: y[h, j] = max[l<16; 0.0](exp(ks[h, j, l]))
";
    for text in [enlarged, twice] {
        let mut nest = crate::parse(text).unwrap();
        assert_eq!(fuse(&mut nest).len(), 1, "{text}");
    }
}

/// Values are stored before the scores: nothing stands between these and the product of what is made of them.
#[test]
fn operands_are_stored_before_a_chain() {
    let mut nest = Nest::new();
    let q = nest.buffer("q", F32, &[32, 16], Role::Input);
    let scale = nest.buffer("scale", F32, &[1], Role::Input);
    let k = nest.buffer("k", F16, &[64, 16], Role::Input);
    let v = nest.buffer("v", F16, &[64, 8], Role::Input);
    let s = nest.buffer("s", F32, &[32, 64], Role::Temporary);
    let p = nest.buffer("p", F32, &[32, 64], Role::Temporary);
    let y = nest.buffer("y", F32, &[32, 8], Role::Output);
    nest.define(vec![], s, |n, at| {
        product(n, &[16], |n, e| {
            let q = n.load(q, vec![at[0].clone(), e[0].clone()]);
            term(q, n.load(k, vec![at[1].clone(), e[0].clone()]).cast(F32))
        })
    });
    nest.define(vec![], p, |n, at| {
        (n.load(s, at.to_vec()) * n.load(scale, vec![index(0)])).exp()
    });
    nest.define(vec![], y, |n, at| {
        product(n, &[64], |n, j| {
            let p = n.load(p, vec![at[0].clone(), j[0].clone()]);
            term(p, n.load(v, vec![j[0].clone(), at[1].clone()]).cast(F32))
        })
    });
    assert_eq!(
        contracted(&mut nest),
        [
            "for i<16, j<64: p.right[i, j] = f32(k[j, i])",
            "for i<64, j<8: y.right[i, j] = f32(v[i, j])",
            "for i<32, j<64: p.sum[i, j] = add[k<16; 0.0](term(q[i, k], p.right[k, j]))",
            "for i<32, j<64: p[i, j] = exp((p.sum[i, j] * scale[0]))",
            "for i<32, j<8: y[i, j] = add[k<64; 0.0](term(p[i, k], y.right[k, j]))",
        ]
    );
}
