//! Comparisons of lanes of one width that choose among lanes of another, or meet a condition that is the same for all lanes.

use crate::common::{output, random, reference, run, same, text_for_256_bits, vector_loops};
use vinelift_nest::{parse, verify};
use vinelift_tensor::ElementType::{self, *};

const TYPES: [ElementType; 8] = [I8, U8, I16, U32, F32, I64, U64, F64];

#[test]
fn of_lanes_of_any_width() {
    for compared in TYPES {
        for chosen in TYPES {
            let text = format!(
                "input a: {compared}[77]\ninput b: {compared}[77]\ninput c: {chosen}[77]\ninput d: {chosen}[77]\n\
                 input s: i64[1]\noutput y: {chosen}[77]\noutput m: boolean[77]\n\
                 for i<77: y[i] = select(((a[i] < b[i]) & ((c[i] >= d[i]) | (s[0] > 3))), c[i], d[i])\n\
                 for i<77: m[i] = ((a[i] >= b[i]) != (c[i] < d[i]))\n"
            );
            let nest = parse(&text).unwrap();
            verify(&nest).unwrap();
            let mut next = random(7);
            let mut bytes = |ty: ElementType| -> Vec<u8> {
                let each = ty.bits() / 8;
                // Many equal ones, of both signs.
                let element = |n: u64| (n % 5).wrapping_sub(2) << (8 * each as u64 - 3);
                let elements = (0..77).map(|_| element(next()).to_le_bytes());
                elements
                    .flat_map(|bytes| bytes.into_iter().take(each))
                    .collect()
            };
            let [a, b, c, d] = [compared, compared, chosen, chosen].map(&mut bytes);
            for condition in [3i64, 4] {
                let condition = condition.to_le_bytes().to_vec();
                let inputs = [a.clone(), b.clone(), c.clone(), d.clone(), condition];
                let (expected, _) = reference(&nest, &inputs);
                let (found, result) = run(&nest, &inputs);
                assert_eq!(result, Ok(()));
                assert!(same(chosen, &found[5], &expected[5]), "{nest}");
                assert_eq!(found[6], expected[6], "{nest}");
            }
        }
    }
}

/// The stage runs by vectors of 256 bits where there are such, without AVX-512's masks.
#[test]
fn masks_are_resized() {
    if !vector_loops()[0] {
        return;
    }
    let nest = parse(
        "input a: i64[1000]\ninput s: f32[1]\noutput y: f32[1000]\n\
         for i<1000: y[i] = select(((a[i] > 3) & (s[0] > 0.0)), 1.0, 0.0)\n",
    )
    .unwrap();
    let text = text_for_256_bits(&nest).clif;
    assert!(text.contains("on 256 bits"), "{text}");
}

/// Conditions that are the same for all lanes are negated and combined with each other, and with as many lanes as registers have
/// bytes.
#[test]
fn of_all_lanes() {
    type Choice = fn(bool, bool, bool) -> bool;
    let choices: [(&str, Choice); 5] = [
        ("select(s[0], a[i], t[0])", |s, t, a| if s { a } else { t }),
        ("select(s[0], t[0], a[i])", |s, t, a| if s { t } else { a }),
        ("select(a[i], s[0], t[0])", |s, t, a| if a { s } else { t }),
        ("((s[0] != t[0]) & a[i])", |s, t, a| (s != t) && a),
        ("((s[0] >= t[0]) != a[i])", |s, t, a| (s >= t) != a),
    ];
    for (text, choice) in choices {
        let nest = parse(&format!(
            "input a: boolean[77]\ninput s: boolean[1]\ninput t: boolean[1]\noutput y: boolean[77]\n\
             for i<77: y[i] = {text}\n"
        ))
        .unwrap();
        verify(&nest).unwrap();
        let mut next = random(5);
        let a: Vec<u8> = (0..77).map(|_| (next() % 2) as u8).collect();
        for (s, t) in [(false, false), (false, true), (true, false), (true, true)] {
            let expected: Vec<u8> = a.iter().map(|&a| choice(s, t, a == 1).into()).collect();
            let inputs = [a.clone(), vec![s.into()], vec![t.into()]];
            assert_eq!(output(&nest, &inputs), expected, "{nest}");
        }
    }
}
