use super::*;
use crate::IndexPolicy;
use crate::testing::{error, f32s, i32s, i64s, infer, run, run_all};

fn attributes(mode: &'static str, sort: &'static str) -> [(&'static str, &'static str); 3] {
    [("axis", "-1"), ("mode", mode), ("sort", sort)]
}

fn both(mode: &'static str, sort: &'static str, data: Tensor, k: i64) -> (Tensor, Tensor) {
    let inputs = [data, i64s(&[], &[k])];
    let outputs = run_all(&V11, &attributes(mode, sort), &inputs, IndexPolicy::Spec);
    let mut outputs = outputs.unwrap().into_iter();
    (outputs.next().unwrap(), outputs.next().unwrap())
}

/// The first is the example of the specification; the others NumPy's stable `argsort`.
#[test]
fn equal_elements_keep_their_order() {
    let data = i32s(&[6], &[5, 3, 1, 2, 5, 5]);
    let (values, indices) = both("min", "index", data.clone(), 4);
    assert_eq!(values, i32s(&[4], &[5, 3, 1, 2]));
    assert_eq!(indices, i32s(&[4], &[0, 1, 2, 3]));
    let (values, indices) = both("min", "value", data.clone(), 5);
    assert_eq!(values, i32s(&[5], &[1, 2, 3, 5, 5]));
    assert_eq!(indices, i32s(&[5], &[2, 3, 1, 0, 4]));
    for sort in ["value", "none"] {
        let (values, indices) = both("max", sort, data.clone(), 4);
        assert_eq!(values, i32s(&[4], &[5, 5, 5, 3]));
        assert_eq!(indices, i32s(&[4], &[0, 4, 5, 1]));
    }
}

#[test]
fn along_an_inner_axis() {
    let data = i32s(&[2, 3, 2], &[0, 9, 4, 1, 2, 5, 7, 3, 6, 8, 7, 0]);
    let attributes = [
        ("axis", "1"),
        ("mode", "max"),
        ("sort", "value"),
        ("stable", "true"),
        ("index_element_type", "i64"),
    ];
    let inputs = [data, i32s(&[1], &[2])];
    let outputs = run_all(&V11, &attributes, &inputs, IndexPolicy::Spec).unwrap();
    assert_eq!(outputs[0], i32s(&[2, 2, 2], &[4, 9, 2, 5, 7, 8, 7, 3]));
    assert_eq!(outputs[1], i64s(&[2, 2, 2], &[1, 0, 2, 2, 0, 1, 2, 0]));
}

#[test]
fn types_are_exact() {
    let big = [i64::MAX - 1, i64::MIN, i64::MAX];
    let (values, _) = both("max", "value", i64s(&[3], &big), 2);
    assert_eq!(values, i64s(&[2], &[i64::MAX, i64::MAX - 1]));
    let data = Tensor::from_slice(&[3], &[u64::MAX - 1, u64::MAX, 7]).unwrap();
    let (_, indices) = both("min", "value", data, 3);
    assert_eq!(indices, i32s(&[3], &[2, 0, 1]));
    let data = Tensor::from_slice(&[2], &[1.0, 1.0 + f64::EPSILON]).unwrap();
    assert_eq!(both("max", "value", data, 1).1, i32s(&[1], &[1]));
    let data = Tensor::from_bytes(ElementType::I4, &[3], [0xf7, 0x02]).unwrap();
    let (values, indices) = both("min", "value", data, 2);
    assert_eq!(values.to_i64_vec().unwrap(), [-1, 2]);
    assert_eq!(indices, i32s(&[2], &[1, 2]));
}

#[test]
fn nan_is_last_and_zeros_are_equal() {
    let data = f32s(&[5], &[f32::NAN, -0.0, 0.0, f32::NAN, -1.0]);
    assert_eq!(
        both("max", "value", data.clone(), 4).1,
        i32s(&[4], &[1, 2, 4, 0])
    );
    assert_eq!(
        both("min", "value", data, 5).1,
        i32s(&[5], &[4, 1, 2, 0, 3])
    );
}

/// As NumPy's stable `argsort` has them: of what is equal the first, which may be a zero of either sign, and NaN only
/// where there is nothing else.
#[test]
fn the_best_one() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows = [
        [0.0, -0.0, -1.0],
        [-0.0, 0.0, nan],
        [nan, -inf, -inf],
        [nan, nan, nan],
        [nan, inf, inf],
        [-1e-45, 1e-45, -0.0],
        [-f32::MAX, f32::MAX, f32::MAX],
    ];
    let wanted = [
        ("max", [0, 0, 1, 0, 1, 1, 1]),
        ("min", [2, 0, 1, 0, 1, 0, 0]),
    ];
    let data = f32s(&[7, 3], rows.as_flattened());
    let columns = Vec::from_iter((0..21).map(|i| rows[i % 7][i / 7]));
    for (mode, at) in wanted {
        let indices = at.map(|j| j as i32);
        let best: Vec<f32> = rows.iter().zip(at).map(|(row, j)| row[j]).collect();
        let found = both(mode, "value", data.clone(), 1);
        assert_eq!(found, (f32s(&[7, 1], &best), i32s(&[7, 1], &indices)));
        let inputs = [f32s(&[3, 7], &columns), i64s(&[], &[1])];
        let first = [("axis", "0"), ("mode", mode), ("sort", "none")];
        let found = run_all(&V3, &first, &inputs, IndexPolicy::Spec).unwrap();
        assert_eq!(found, [f32s(&[1, 7], &best), i32s(&[1, 7], &indices)]);
    }
}

#[test]
fn the_best_one_of_every_type() {
    for ty in ElementType::ALL
        .into_iter()
        .filter(|ty| ty.is_integer() || ty.is_float())
    {
        // Bits of all kinds, so that there are both signs, and what is no number.
        let bytes: Vec<u8> = (0..15 * 8u32).map(|k| (k * 151 % 257) as u8).collect();
        let used = ty.byte_len(15).unwrap();
        let data = Tensor::from_bytes(ty, &[3, 5], &bytes[..used]).unwrap();
        let sorted = data.to_f64_vec().unwrap();
        for mode in ["max", "min"] {
            let (_, indices) = both(mode, "value", data.clone(), 1);
            let best = |row: &[f64]| {
                let fold = row
                    .iter()
                    .copied()
                    .fold(f64::NAN, if mode == "max" { f64::max } else { f64::min });
                row.iter().position(|x| *x == fold).unwrap_or(0) as i32
            };
            let want: Vec<i32> = sorted.chunks(5).map(best).collect();
            assert_eq!(indices, i32s(&[3, 1], &want), "{ty} {mode}");
        }
    }
}

#[test]
fn nothing_to_choose_from() {
    assert_eq!(
        both("max", "value", f32s(&[0, 3], &[]), 2).0,
        f32s(&[0, 2], &[])
    );
    assert_eq!(
        both("max", "value", f32s(&[2, 0], &[]), 0).1,
        i32s(&[2, 0], &[])
    );
    assert_eq!(
        both("max", "value", f32s(&[2], &[1.0; 2]), 0).1,
        i32s(&[0], &[])
    );
}

#[test]
fn says_what_is_wrong() {
    let data = f32s(&[3], &[0.0; 3]);
    let k = |k: i64| [data.clone(), i64s(&[], &[k])];
    let value = attributes("max", "value");
    assert_eq!(
        error(&V3, &value, &k(4)),
        "`k` must lie between 0 and 3, found 4"
    );
    assert_eq!(
        error(&V1, &value, &k(-1)),
        "`k` must lie between 0 and 3, found -1"
    );
    let far = [("axis", "1"), ("mode", "max"), ("sort", "value")];
    assert_eq!(error(&V1, &far, &k(1)), "axis 1 is out of range for rank 1");
    let stable = [&value[..], &[("stable", "true")]].concat();
    assert_eq!(error(&V3, &stable, &k(1)), "unknown attribute `stable`");
    let scalar = [f32s(&[], &[1.0]), i64s(&[], &[1])];
    assert_eq!(
        error(&V1, &value, &scalar),
        "axis -1 is out of range for rank 0"
    );
    assert_eq!(
        run(&V1, &value, &[data, i32s(&[1], &[1])]),
        f32s(&[1], &[0.0])
    );
}

#[test]
fn shapes_that_are_partly_known() {
    let data = |last| {
        let shape = PartialShape::ranked(vec![Dim::ANY, last]);
        (ElementType::F16, shape, None)
    };
    let value = attributes("max", "value");
    let k = |k| (ElementType::I64, PartialShape::ranked(vec![]), k);
    let two_to_five = Dim::between(2, Some(5));
    let found = infer(&V11, &value, &[data(two_to_five), k(None)]);
    assert_eq!(found.0, "f16[?, 0..5] i32[?, 0..5]");
    let found = infer(&V11, &value, &[data(Dim::ANY), k(Some(i64s(&[], &[7])))]);
    assert_eq!(found.0, "f16[?, 7] i32[?, 7]");
    let any = (ElementType::F16, PartialShape::DYNAMIC, None);
    let found = infer(&V11, &value, &[any, k(None)]);
    assert_eq!(found.0, "f16[...] i32[...]");
}
