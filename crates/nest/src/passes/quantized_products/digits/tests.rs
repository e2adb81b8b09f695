use super::*;
use crate::analysis::verify;
use crate::build::{index, zero};
use crate::ir::Role;
use crate::passes::quantized_products::quantized_products;
use crate::passes::quantized_products::tests::quantized;
use vinelift_tensor::ElementType::{F32, I8};

#[test]
fn the_digit_that_a_value_depends_on() {
    let mut nest = Nest::new();
    let axes = nest.axes(&[24, 7]);
    let [i, j] = [&axes[0], &axes[1]].map(|axis| Scalar::axis(axis.id));
    let digit = |x: &Scalar| Digit::of(x, axes[0].id);
    assert_eq!(digit(&(&i / index(12))), Some(Digit::Quotient(12)));
    let twice = (&i / index(12)) * 8 + &j * (&i / index(12));
    assert_eq!(digit(&twice), Some(Digit::Quotient(12)));
    let phase = (i.rem(index(2)) + index(1)).rem(index(2));
    assert_eq!(digit(&phase), Some(Digit::Remainder(2)));
    // Two digits, or all of it; none.
    assert_eq!(digit(&((&i / index(12)) + i.rem(index(12)))), None);
    assert_eq!(digit(&((&i / index(12)) + (&i / index(6)))), None);
    assert_eq!(digit(&((&i / index(12)) + i.clone())), None);
    assert_eq!(digit(&j), None);

    let (x, over, at) = over_digits(&mut nest, &twice + phase, &axes);
    assert_eq!((over.len(), &at), (2, &vec![i.clone(), j.clone()]), "{x:?}");
    let (x, over, at) = over_digits(&mut nest, twice, &axes);
    assert_eq!((over[0].extent, over[1]), (2.into(), axes[1]));
    assert_eq!(at, [&i / index(12), j.clone()]);
    let group = Scalar::axis(over[0].id);
    assert_eq!(x, &group * 8 + j * &group);
}

/// The extents of an operand, and where in it the product of a point with the number `k` is.
type Operand = (&'static [usize], fn(&[Scalar], Scalar) -> Vec<Scalar>);

/// A sum of 8 products over `domain`, of values on a grid and weights,
/// with both zero points other than zero; after the pass.
fn products(domain: &[usize], operand: Operand, weights: Operand) -> Vec<String> {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, operand.0, Role::Input);
    let q = nest.buffer("q", F32, operand.0, Role::Temporary);
    let w = nest.buffer("w", I8, weights.0, Role::Input);
    let f = nest.buffer("f", F32, weights.0, Role::Temporary);
    let y = nest.buffer("y", F32, domain, Role::Output);
    nest.define(vec![], q, |n, at| {
        quantized(n.load(x, at.to_vec()), -0.5, 2.05)
    });
    nest.define(vec![], f, |n, at| n.load(w, at.to_vec()).cast(F32));
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[8]);
        let k = Scalar::axis(axes[0].id);
        let left = n.load(q, operand.1(at, k.clone()));
        let right = n.load(f, weights.1(at, k));
        let term = Scalar::binary(Binary::Term, left, right);
        Scalar::reduce(Binary::Add, axes, zero(F32), term)
    });
    quantized_products(&mut nest, &|_| None);
    verify(&nest).unwrap();
    let mut texts = nest.stage_texts();
    texts.retain(|text| text.starts_with("for") && text.contains(": y"));
    texts
}

#[test]
fn channels_of_a_group_share_what_is_known_of_its_picture() {
    let texts = products(
        &[24, 100],
        (&[16, 100], |at, k| {
            vec![(&at[0] / index(12)) * 8 + k, at[1].clone()]
        }),
        (&[2, 12, 8], |at, k| {
            vec![&at[0] / index(12), at[0].rem(index(12)), k]
        }),
    );
    assert_eq!(
        texts,
        [
            "for i<24: y.right.total[i] = (add[j<8; 0i32](i32(w[(i / 12), (i % 12), j])) * 50i32)",
            "for i<2, j<100: y.left.nan[i, j] = add[k<8; 0.0](select((x[((i * 8) + k), j] != \
             x[((i * 8) + k), j]), nan(0x7fc00000), 0.0))",
            "for i<24, j<100: y[i, j] = (y.left.nan[(i / 12), j] + term(f32((add[k<8; 0i32](term(i32(q.u8[(((i / 12) * 8) + k), \
             j]), i32(w[(i / 12), (i % 12), k]))) - y.right.total[i])), 0.01))",
        ]
    );
    // Fewer than four of a group.
    let texts = products(
        &[24, 100],
        (&[64, 100], |at, k| {
            vec![(&at[0] / index(3)) * 8 + k, at[1].clone()]
        }),
        (&[8, 3, 8], |at, k| {
            vec![&at[0] / index(3), at[0].rem(index(3)), k]
        }),
    );
    assert_eq!(texts.len(), 1, "{texts:#?}");
}

#[test]
fn outputs_of_a_phase_share_the_total_of_its_weights() {
    let texts = products(
        &[24, 100],
        (&[8, 50], |at, k| vec![k, &at[1] / index(2)]),
        (&[24, 8, 2], |at, k| {
            vec![at[0].clone(), k, at[1].rem(index(2))]
        }),
    );
    assert_eq!(
        texts[0],
        "for i<24, j<2: y.right.total[i, j] = (add[k<8; 0i32](i32(w[i, k, j])) * 50i32)"
    );
    assert!(
        texts.last().unwrap().contains("y.right.total[i, (j % 2)]"),
        "{texts:#?}"
    );
}

#[test]
fn one_row_is_of_bytes_if_there_are_many_columns_and_products() {
    let of = |columns: usize| {
        let texts = products(
            &[1, columns],
            (&[1, 8], |at, k| vec![at[0].clone(), k]),
            (&[1 << 14, 8], |at, k| vec![at[1].clone(), k]),
        );
        texts.last().unwrap().contains("q.u8")
    };
    assert!(of(1 << 13) && !of((1 << 13) - 1));
}
