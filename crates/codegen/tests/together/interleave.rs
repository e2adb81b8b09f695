//! Bytes that come from several planes in turn.

use crate::common::{output, text_for_256_bits};
use vinelift_nest::{Mode, Nest, Role, Scalar, Stage, build::*};
use vinelift_tensor::ElementType::U8;

/// `y[i, l, place(k)] = x[i, k, l]` for `k < count` and `l < points`, with either of the loops over `k` and `l` inside. Where
/// there is an even number of planes, the second half of the places is that of the odd ones.
fn interleaved(count: usize, points: usize, is_plane_inside: bool) -> Nest {
    let mut nest = Nest::new();
    let x = nest.buffer("x", U8, &[2, count, points], Role::Input);
    let y = nest.buffer("y", U8, &[2, points, count], Role::Output);
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
fn every_byte_comes_from_its_plane() {
    for (count, points) in [
        (2, 16),
        (3, 15),
        (3, 16),
        (3, 17),
        (3, 100),
        (4, 33),
        (6, 40),
        (8, 31),
        (9, 20),
    ] {
        for is_plane_inside in [false, true] {
            let nest = interleaved(count, points, is_plane_inside);
            let x: Vec<u8> = (0..2 * count * points).map(|n| (n % 251) as u8).collect();
            let found = output(&nest, std::slice::from_ref(&x));
            for (n, byte) in x.iter().enumerate() {
                let (i, k, l) = (n / (count * points), n / points % count, n % points);
                let place = match count % 2 {
                    0 => k % 2 * (count / 2) + k / 2,
                    _ => k,
                };
                let at = (i * points + l) * count + place;
                assert_eq!(found[at], *byte, "{count} planes of {points}: {n}");
            }
        }
    }
}

#[test]
fn registers_hold_many_bytes_of_a_plane() {
    let is_interleaved = |count: usize, points: usize, is_plane_inside: bool| {
        let text = text_for_256_bits(&interleaved(count, points, is_plane_inside)).clif;
        text.contains(&format!("16 points of {count} planes at once"))
    };
    assert!(is_interleaved(3, 100, true) && is_interleaved(6, 40, false));
    // Too few points, and too many planes.
    assert!(!is_interleaved(3, 15, true) && !is_interleaved(9, 20, false));
}
