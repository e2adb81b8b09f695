//! Elements that come from several planes in turn.

use crate::common::{output, text_for_256_bits};
use vinelift_nest::{Mode, Nest, Role, Scalar, Stage, build::*};
use vinelift_tensor::ElementType::{self, F32, F64, U8, U16};

/// `y[i, l, place(k)] = x[i, k, l]` for `k < count` and `l < points`, with either of the loops over `k` and `l` inside. Where
/// there is an even number of planes, the second half of the places is that of the odd ones.
fn interleaved(ty: ElementType, count: usize, points: usize, is_plane_inside: bool) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", ty, &[2, count, points], Role::Input);
    let y = nest.buffer("y", ty, &[2, points, count], Role::Output);
    let layer = nest.layer("y", "Transpose, opset1");
    let domain = match is_plane_inside {
        true => nest.axes(&[2, points, count]),
        false => nest.axes(&[2, count, points]),
    };
    let [i, a, b] = [0, 1, 2].map(|d| Scalar::axis(domain[d].id));
    let (k, l) = if is_plane_inside { (b, a) } else { (a, b) };
    let place = match count.is_multiple_of(2) {
        true => k.rem(index(2)) * (count as i64 / 2) + &k / 2,
        false => k.clone(),
    };
    let value = nest.load(x, vec![i.clone(), k, l.clone()]);
    nest.stages.push(Stage {
        domain,
        target: y,
        at: vec![i, l, place],
        mode: Mode::Set,
        value,
        layers: vec![layer],
        group: None,
    });
    nest
}

#[test]
fn every_element_comes_from_its_plane() {
    let sizes = [
        (2, 16),
        (3, 2),
        (3, 5),
        (3, 15),
        (3, 16),
        (3, 17),
        (3, 100),
        (4, 33),
        (6, 40),
        (8, 31),
        (9, 20),
    ];
    for (count, points) in sizes {
        for (ty, is_plane_inside) in [U8, U16, F32, F64]
            .into_iter()
            .flat_map(|ty| [(ty, false), (ty, true)])
        {
            let nest = interleaved(ty, count, points, is_plane_inside);
            let width = ty.bits() / 8;
            let x: Vec<u8> = (0..2 * count * points * width)
                .map(|n| (n % 251) as u8)
                .collect();
            let found = output(&nest, std::slice::from_ref(&x));
            for (n, element) in x.chunks(width).enumerate() {
                let (i, k, l) = (n / (count * points), n / points % count, n % points);
                let place = match count % 2 {
                    0 => k % 2 * (count / 2) + k / 2,
                    _ => k,
                };
                let at = width * ((i * points + l) * count + place);
                let found = &found[at..at + width];
                assert_eq!(found, element, "{count} planes of {points} {ty}: {n}");
            }
        }
    }
}

#[test]
fn registers_hold_many_elements_of_a_plane() {
    let points_at_once = |ty, count: usize, points: usize, is_plane_inside: bool| {
        let text = text_for_256_bits(&interleaved(ty, count, points, is_plane_inside)).clif;
        let note = |n: &usize| text.contains(&format!("{n} points of {count} planes at once"));
        [4, 8, 16].into_iter().find(note)
    };
    assert_eq!(points_at_once(U8, 3, 100, true), Some(16));
    assert_eq!(points_at_once(U8, 6, 40, false), Some(16));
    assert_eq!(points_at_once(U16, 3, 8, true), Some(8));
    assert_eq!(points_at_once(F32, 3, 100, false), Some(4));
    // Too few points, too many planes, and large elements.
    assert_eq!(points_at_once(U8, 3, 15, true), None);
    assert_eq!(points_at_once(U8, 9, 20, false), None);
    assert_eq!(points_at_once(F64, 3, 100, true), None);
}
