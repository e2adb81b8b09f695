//! Comparisons of lanes of one width that choose among lanes of another, or meet a condition that is the same for all lanes.

use crate::common::{random, reference, run, same, text_for_256_bits, vector_loops};
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
