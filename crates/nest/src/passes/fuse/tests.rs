//! Fusion, stage by stage.

use super::*;
use crate::analysis::verify;
use crate::build::*;
use crate::ir::{Binary, Policy, Role, Scalar, Site};
use vinelift_tensor::ElementType::{F32, I64};

fn temporary(nest: &mut Nest, name: &str, shape: &[usize]) -> BufferId {
    nest.buffer(name, F32, shape, Role::Temporary)
}

#[test]
fn chains_layout_and_epilogues_become_one_stage() {
    let mut nest = Nest::new();
    let a = nest.buffer("a", F32, &[2, 3], Role::Input);
    let b = nest.buffer("b", F32, &[3, 4], Role::Input);
    let bias = nest.buffer("bias", F32, &[2], Role::Input);
    let (t0, t1, t2) = (
        temporary(&mut nest, "t0", &[2, 4]),
        temporary(&mut nest, "t1", &[4, 2]),
        temporary(&mut nest, "t2", &[4, 2]),
    );
    let out = nest.buffer("out", F32, &[4, 2], Role::Output);
    nest.define(vec![], t0, |n, at| {
        let axes = n.axes(&[3]);
        let k = Scalar::axis(axes[0].id);
        let body = n.load(a, vec![at[0].clone(), k.clone()]) * n.load(b, vec![k, at[1].clone()]);
        Scalar::reduce(Binary::Add, axes, number(0.0, F32), body)
    });
    nest.define(vec![], t1, |n, at| {
        n.load(t0, vec![at[1].clone(), at[0].clone()])
    });
    nest.define(vec![], t2, |n, at| {
        n.load(t1, at.to_vec()) + n.load(bias, vec![at[1].clone()])
    });
    nest.define(vec![], out, |n, at| {
        number(0.0, F32).max(n.load(t2, at.to_vec()))
    });
    assert_eq!(fuse(&mut nest), []);
    assert_eq!(
        nest.stage_texts(),
        ["for i<4, j<2: out[i, j] = max(0.0, (add[k<3; 0.0]((a[j, k] * b[k, i])) + bias[j]))"]
    );
    verify(&nest).unwrap();
}

/// A sum is put into what reads it once, whatever else read it before another pass took that reader's place.
#[test]
fn readers_that_nothing_reads_do_not_count() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[2, 3], Role::Input);
    let sum = temporary(&mut nest, "sum", &[2]);
    let unread = ["a", "b"].map(|name| temporary(&mut nest, name, &[2]));
    let out = nest.buffer("out", F32, &[2], Role::Output);
    nest.define(vec![], sum, |n, at| {
        let axes = n.axes(&[3]);
        let body = n.load(x, vec![at[0].clone(), Scalar::axis(axes[0].id)]);
        Scalar::reduce(Binary::Add, axes, number(0.0, F32), body)
    });
    let twice = |from| {
        move |n: &mut Nest, at: &[Scalar]| n.load(from, at.to_vec()) + n.load(from, at.to_vec())
    };
    nest.define(vec![], unread[0], twice(sum));
    nest.define(vec![], unread[1], twice(unread[0]));
    nest.define(vec![], out, |n, at| n.load(sum, at.to_vec()));
    assert_eq!(fuse(&mut nest), []);
    assert_eq!(
        nest.stage_texts(),
        ["for i<2: out[i] = add[j<3; 0.0](x[i, j])"]
    );
    verify(&nest).unwrap();
}

/// A sum that two stages read is put into them once they have become one: that is known only after it was looked at first.
#[test]
fn readers_that_become_one_count_once() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[2, 3], Role::Input);
    let sum = temporary(&mut nest, "sum", &[2]);
    let [raised, limited] = ["raised", "limited"].map(|name| temporary(&mut nest, name, &[2]));
    let out = nest.buffer("out", F32, &[2], Role::Output);
    nest.define(vec![], sum, |n, at| {
        let axes = n.axes(&[3]);
        let body = n.load(x, vec![at[0].clone(), Scalar::axis(axes[0].id)]);
        Scalar::reduce(Binary::Add, axes, number(0.0, F32), body)
    });
    nest.define(vec![], raised, |n, at| {
        n.load(sum, at.to_vec()) + number(3.0, F32)
    });
    nest.define(vec![], limited, |n, at| {
        number(0.0, F32).max(n.load(raised, at.to_vec()))
    });
    nest.define(vec![], out, |n, at| {
        n.load(sum, at.to_vec()) * n.load(limited, at.to_vec())
    });
    assert_eq!(fuse(&mut nest), []);
    let fold = "add[j<3; 0.0](x[i, j])";
    assert_eq!(
        nest.stage_texts(),
        [format!(
            "for i<2: out[i] = ({fold} * max(0.0, ({fold} + 3.0)))"
        )]
    );
    verify(&nest).unwrap();
}

/// So is a temporary that stages set part by part, unless one of them may fault.
#[test]
fn parts_that_nothing_reads_go() {
    let text = "input x: f32[4]\ninput i: i64[2]\ntemporary t: f32[4]\ntemporary u: f32[8]\ntemporary v: f32[8]\noutput y: f32[4]\n\
                for i<4: t[i] = exp(x[i])\n\
                for i<4: u[i] = t[i]\n\
                for i<4: u[(i + 4)] = t[i]\n\
                for i<2: v[i] = x[wrap(i[i], 4)]\n\
                for i<4: y[i] = (x[i] + 1.0)\n";
    let mut nest = crate::ir::parse(text).unwrap();
    fuse(&mut nest);
    assert_eq!(
        nest.stage_texts(),
        [
            "for i<2: v[i] = x[wrap(i[i], 4)]",
            "for i<4: y[i] = (x[i] + 1.0)"
        ]
    );
    verify(&nest).unwrap();
}

/// With axes by position instead of by identity, `k` would be captured here.
#[test]
fn a_fold_inlined_twice_has_axes_of_its_own() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[2, 3], Role::Input);
    let sum = temporary(&mut nest, "sum", &[2]);
    let (p, q) = (
        nest.buffer("p", F32, &[2], Role::Output),
        nest.buffer("q", F32, &[2], Role::Output),
    );
    nest.define(vec![], sum, |n, at| {
        let axes = n.axes(&[3]);
        let body = n.load(x, vec![at[0].clone(), Scalar::axis(axes[0].id)]);
        Scalar::reduce(Binary::Add, axes, number(0.0, F32), body)
    });
    nest.define(vec![], p, |n, at| n.load(sum, at.to_vec()));
    nest.define(vec![], q, |n, at| n.load(sum, at.to_vec()));
    assert_eq!(
        fuse(&mut nest),
        [Kept {
            buffer: "sum".into(),
            reason: Reason::ReduceInside
        }]
    );
    nest.stages.truncate(2);
    fuse(&mut nest);
    assert_eq!(
        nest.stage_texts(),
        ["for i<2: p[i] = add[j<3; 0.0](x[i, j])"]
    );
    verify(&nest).unwrap();
}

#[test]
fn what_costs_is_not_computed_twice() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[4], Role::Input);
    let e = temporary(&mut nest, "e", &[4]);
    let out = nest.buffer("out", F32, &[3, 4], Role::Output);
    nest.define(vec![], e, |n, at| n.load(x, at.to_vec()).exp());
    nest.define(vec![], out, |n, at| n.load(e, vec![at[1].clone()]));
    let reason = Reason::Recomputed {
        reads: 12,
        elements: 4,
        cost: 20,
    };
    assert_eq!(
        fuse(&mut nest),
        [Kept {
            buffer: "e".into(),
            reason
        }]
    );
}

fn gather(nest: &mut Nest, target: BufferId, data: BufferId, indices: BufferId) {
    let layer = nest.layer("g", "Gather, opset8");
    nest.define(vec![layer], target, |n, at| {
        let index = n.load(indices, at.to_vec());
        let site = crate::Site {
            layer,
            input: "indices".into(),
        };
        let i = n.wrap(index, 9, Policy::WRAP, site, at.to_vec());
        n.load(data, vec![i])
    });
}

#[test]
fn an_error_is_not_fused_away() {
    let mut nest = Nest::new();
    let data = nest.buffer("data", F32, &[9], Role::Input);
    let indices = nest.buffer("indices", I64, &[6], Role::Input);
    let (all, some) = (
        temporary(&mut nest, "all", &[6]),
        temporary(&mut nest, "some", &[6]),
    );
    let (p, q) = (
        nest.buffer("p", F32, &[2, 3], Role::Output),
        nest.buffer("q", F32, &[5], Role::Output),
    );
    gather(&mut nest, all, data, indices);
    gather(&mut nest, some, data, indices);
    nest.define(vec![], p, |n, at| {
        n.load(all, vec![&at[0] * 3 + &at[1]]).exp()
    });
    nest.define(vec![], q, |n, at| n.load(some, at.to_vec()));
    assert_eq!(
        fuse(&mut nest),
        [Kept {
            buffer: "some".into(),
            reason: Reason::WouldHideErrors
        }]
    );
    let text = nest.stage_texts();
    assert_eq!(
        text[1],
        "for i<2, j<3: p[i, j] = exp(data[wrap(indices[((i * 3) + j)], 9)])"
    );
}

#[test]
fn the_first_error_stays_the_first() {
    // Behind a transposition, and in a fold over what is outermost, other elements come first.
    let mut nest = Nest::new();
    let data = nest.buffer("data", F32, &[9], Role::Input);
    let indices = nest.buffer("indices", I64, &[6], Role::Input);
    let names = ["across", "folded", "along"];
    let [across, folded, along] = names.map(|name| temporary(&mut nest, name, &[6]));
    let p = nest.buffer("p", F32, &[3, 2], Role::Output);
    let (q, r) = (
        nest.buffer("q", F32, &[3], Role::Output),
        nest.buffer("r", F32, &[2], Role::Output),
    );
    for target in [across, folded, along] {
        gather(&mut nest, target, data, indices);
    }
    nest.define(vec![], p, |n, at| n.load(across, vec![&at[1] * 3 + &at[0]]));
    let sum = |n: &mut Nest, from, extent: usize, at: &dyn Fn(Scalar) -> Scalar| {
        let axis = n.axis(extent);
        let x = n.load(from, vec![at(Scalar::axis(axis.id))]);
        Scalar::reduce(Binary::Add, vec![axis], number(0.0, F32), x)
    };
    nest.define(vec![], q, |n, at| sum(n, folded, 2, &|k| k * 3 + &at[0]));
    nest.define(vec![], r, |n, at| sum(n, along, 3, &|k| &at[0] * 3 + k));
    let kept = ["across", "folded"].map(|name| Kept {
        buffer: name.into(),
        reason: Reason::WouldHideErrors,
    });
    assert_eq!(fuse(&mut nest), kept);
}

#[test]
fn what_is_overwritten_is_read_before() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[4], Role::Input);
    let (a, b) = (
        temporary(&mut nest, "a", &[4]),
        temporary(&mut nest, "b", &[4]),
    );
    let out = nest.buffer("out", F32, &[4], Role::Output);
    nest.define(vec![], a, |n, at| n.load(x, at.to_vec()));
    nest.define(vec![], b, |n, at| n.load(a, at.to_vec()));
    nest.define(vec![], a, |_, _| number(1.0, F32));
    nest.define(vec![], out, |n, at| {
        n.load(a, at.to_vec()) + n.load(b, at.to_vec())
    });
    assert_eq!(
        fuse(&mut nest),
        [Kept {
            buffer: "b".into(),
            reason: Reason::Overwritten
        }]
    );
    assert_eq!(nest.stages.len(), 4);
}

#[test]
fn an_index_that_reads_zero_reads_zero_of_what_is_computed() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[4, 4], Role::Input);
    let indices = nest.buffer("indices", I64, &[4], Role::Input);
    let (powers, moved) = (
        temporary(&mut nest, "powers", &[4, 4]),
        temporary(&mut nest, "moved", &[4, 4]),
    );
    let (p, q) = (
        nest.buffer("p", F32, &[4, 4], Role::Output),
        nest.buffer("q", F32, &[4, 4], Role::Output),
    );
    let layer = nest.layer("g", "Gather, opset8");
    let wrapped = |nest: &mut Nest, at: &[Scalar], extent| {
        let site = Site {
            layer,
            input: "indices".into(),
        };
        let i = nest.load(indices, at[..1].to_vec());
        nest.wrap(i, extent, Policy::WRAP_OR_ZERO, site, at[..1].to_vec())
    };
    nest.define(vec![], powers, |n, at| n.load(x, at.to_vec()).exp());
    nest.define(vec![], p, |n, at| {
        let i = wrapped(n, at, 4);
        n.load(powers, vec![i, at[1].clone()])
    });
    nest.define(vec![], moved, |n, at| {
        n.load(x, vec![at[1].clone(), at[0].clone()])
    });
    nest.define(vec![], q, |n, at| {
        let i = wrapped(n, at, 4);
        n.load(moved, vec![i, at[1].clone()])
    });
    fuse(&mut nest);
    verify(&nest).unwrap();
    let inside = "((select((indices[i] < 0), (indices[i] + 4), indices[i]) >= 0) & \
                  (select((indices[i] < 0), (indices[i] + 4), indices[i]) < 4))";
    assert_eq!(
        nest.stage_texts(),
        [
            format!(
                "for i<4, j<4: p[i, j] = select({inside}, \
                 exp(x[select((indices[i] < 0), (indices[i] + 4), indices[i]), j]), 0.0)"
            ),
            "for i<4, j<4: q[i, j] = x[j, wrap?(indices[i], 4)]".to_owned(),
        ]
    );
}

#[test]
fn a_check_stays_where_its_index_is_not_needed() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[3], Role::Input);
    let indices = nest.buffer("indices", I64, &[2], Role::Input);
    let wide = temporary(&mut nest, "wide", &[5, 3]);
    let y = nest.buffer("y", F32, &[2, 3], Role::Output);
    let layer = nest.layer("g", "GatherND, opset8");
    nest.define(vec![], wide, |n, at| n.load(x, at[1..].to_vec()));
    nest.define(vec![], y, |n, at| {
        let site = Site {
            layer,
            input: "indices".into(),
        };
        let i = n.load(indices, at[..1].to_vec());
        let i = n.wrap(i, 5, Policy::WRAP, site, at[..1].to_vec());
        n.load(wide, vec![i, at[1].clone()])
    });
    let kept = Kept {
        buffer: "wide".into(),
        reason: Reason::WouldHideErrors,
    };
    assert_eq!(fuse(&mut nest), [kept]);
}

/// A product whose rows are cut in a way other than that in which it is read is no product of matrices any more.
#[test]
fn a_product_in_parts_is_read_by_its_dims() {
    let text = "\
input a: f32[50, 48, 64]
input b: f32[64, 64]
temporary t: f32[50, 3072]
temporary r: f32[50, 32, 96]
output y: f32[50, 32, 96]
for i<50, j<3072: t[i, j] = add[k<64; 0.0](term(a[i, (j / 64), k], b[(j % 64), k]))
for i<50, j<32, k<96: y[i, j, k] = max(0.0, t[i, ((j * 96) + k)])
";
    let mut nest = crate::parse(text).unwrap();
    let kept = fuse(&mut nest);
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].reason.to_string(), Reason::Scattered.to_string());
}

/// Sums by groups are read along their rows, or in blocks of these, but not across them.
#[test]
fn sums_of_groups_are_read_by_rows() {
    let text = |read: &str| {
        format!(
            "\
input a: f32[24, 256]
input w: i8[256, 384]
input s: f32[2, 384]
temporary t: f32[24, 384]
output y: f32[12, 32, 24]
output z: f32[12, 24, 32]
for i<24, j<384: t[i, j] = add[g<2; 0.0](term(s[g, j], add[k<128; 0.0](term(a[i, ((g * 128) + k)], f32(w[((g * 128) + k), j])))))
{read}
"
        )
    };
    let across = text("for h<12, d<32, i<24: y[h, d, i] = (t[i, ((h * 32) + d)] * 0.5)");
    let kept = fuse(&mut crate::parse(&across).unwrap());
    let reason = Reason::Scattered;
    assert_eq!(
        kept,
        [Kept {
            buffer: "t".into(),
            reason
        }]
    );
    let along = text("for h<12, i<24, d<32: z[h, i, d] = (t[i, ((h * 32) + d)] * 0.5)");
    assert_eq!(fuse(&mut crate::parse(&along).unwrap()), []);
}

/// A stage that writes by an index runs element by element: a fold stays a stage before it, other values are inlined.
#[test]
fn a_fold_is_not_done_where_indices_say() {
    let text = "\
input a: f32[8, 16, 3]
input i: i64[8]
temporary t: f32[8, 16]
output y: f32[8, 16]
for j<8, k<16: t[j, k] = add[n<3; 0.0](a[j, k, n])
for j<8, k<16: y[j, k] = 0.0
for j<8, k<16: y[wrap?(i[j], 8), k] = t[j, k]
";
    let kept = fuse(&mut crate::parse(text).unwrap());
    let reason = Reason::ByIndex;
    assert_eq!(
        kept,
        [Kept {
            buffer: "t".into(),
            reason
        }]
    );
    let text = text.replace("add[n<3; 0.0](a[j, k, n])", "exp(a[j, k, 0])");
    assert_eq!(fuse(&mut crate::parse(&text).unwrap()), []);
}

#[test]
fn coordinates_that_become_indices_are_stages() {
    let text = "\
input g: f32[64]
input x: f32[100]
output y: f32[64]
temporary p: i64[64]
for j<64: p[j] = i64(min(99.0, max(0.0, floor((((g[j] + 1.0) * 50.0) / 2.0)))))
for j<64: y[j] = x[min(max((p[j] + 1), 0), 99)]
";
    let kept = |text: &str| fuse(&mut crate::parse(text).unwrap());
    let stays = Kept {
        buffer: "p".into(),
        reason: Reason::InIndex,
    };
    assert_eq!(kept(text), [stays]);
    // A few operations are worth no stage, and a value that is no index needs none.
    let few = text.replace("(((g[j] + 1.0) * 50.0) / 2.0)", "(g[j] * 50.0)");
    assert_eq!(kept(&few), []);
    let value = text.replace("x[min(max((p[j] + 1), 0), 99)]", "f32((p[j] + 1))");
    assert_eq!(kept(&value), []);
}

/// A sum along the lanes runs point by point, one along rows in vectors.
#[test]
fn what_a_scan_goes_through_is_a_stage() {
    let text = "input x: f32[8, 50]\ntemporary t: f32[8, 50]\noutput y: f32[8, 50]\n\
                for i<8, j<50: t[i, j] = log(x[i, j])\n\
                for i<8, j<1: y[i, j] = t[i, j]\n\
                for i<8, j<49: y[i, (j + 1)] = (y[i, j] + t[i, (j + 1)])\n";
    let kept = |text: &str| fuse(&mut crate::parse(text).unwrap());
    let stays = Kept {
        buffer: "t".to_owned(),
        reason: Reason::InScan,
    };
    assert_eq!(kept(text), [stays]);
    // Little arithmetic is done while the sum waits for the one before.
    assert_eq!(kept(&text.replace("log(x[i, j])", "(x[i, j] * 2.0)")), []);
    let along_rows = "input x: f32[8, 50]\ntemporary t: f32[8, 50]\noutput y: f32[8, 50]\n\
                      for i<8, j<50: t[i, j] = log(x[i, j])\n\
                      for i<1, j<50: y[i, j] = t[i, j]\n\
                      for i<7, j<50: y[(i + 1), j] = (y[i, j] + t[(i + 1), j])\n";
    assert_eq!(kept(along_rows), []);
}

/// The shift of relative positions: what is padded by a column is read in rows that are shorter by one.
#[test]
fn what_is_padded_and_read_in_other_rows_is_a_stage() {
    let text = "input x: f32[8, 10]\ntemporary t: f32[8, 11]\noutput y: f32[8, 10]\n\
                for i<8, j<11: t[i, j] = select(((j - 1) >= 0), x[i, (j - 1)], 0.0)\n\
                for k<8, l<10: y[k, l] = t[((((k * 10) + l) + 8) / 11), ((((k * 10) + l) + 8) % 11)]\n";
    let kept = |text: &str| fuse(&mut crate::parse(text).unwrap());
    let stays = Kept {
        buffer: "t".to_owned(),
        reason: Reason::Unaligned,
    };
    assert_eq!(kept(text), [stays]);
    // Rows that are whole, or divided, are read through the guard.
    let whole = text.replace(
        "t[((((k * 10) + l) + 8) / 11), ((((k * 10) + l) + 8) % 11)]",
        "t[k, (l + 1)]",
    );
    assert_eq!(kept(&whole), []);
    // A condition on data is no guard.
    let masked = text.replace("((j - 1) >= 0)", "(x[i, max((j - 1), 0)] >= 0.0)");
    let masked = masked.replace("x[i, (j - 1)]", "x[i, max((j - 1), 0)]");
    assert_eq!(kept(&masked), []);
}
