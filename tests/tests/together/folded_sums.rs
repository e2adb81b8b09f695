//! Sums of constants: the bits that the same layers give of inputs.

use vinelift::{Core, ElementType, Tensor};
use vinelift_tests::{Graph, Value, same};

/// Numbers without a pattern, so that sums in another order are others.
fn numbers(count: usize) -> Vec<f32> {
    let mut x = 1u32;
    let mut number = || {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (x >> 8) as f32 / (1 << 24) as f32 + 0.5
    };
    (0..count).map(|_| number()).collect()
}

/// The result of an operator for rows of `len` numbers, which are constant or an input.
fn result(core: &Core, (ty, version): (&str, &str), len: usize, is_constant: bool) -> Tensor {
    let shape = [3, 2, len];
    let values = numbers(shape.iter().product());
    let mut graph = Graph::default();
    let x: Value = if is_constant {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        graph.constant(ElementType::F32, &shape, &bytes)
    } else {
        graph.parameter("x", ElementType::F32, &shape)
    };
    let (attributes, axes) = match ty {
        "SoftMax" | "LogSoftmax" => ("axis=\"2\"", None),
        "MVN" => (
            "normalize_variance=\"true\" eps=\"1e-6\" eps_mode=\"inside_sqrt\"",
            Some(graph.list(&[2])),
        ),
        _ => ("keep_dims=\"true\"", Some(graph.list(&[2]))),
    };
    let inputs: Vec<&Value> = [&x].into_iter().chain(&axes).collect();
    let y = graph.node(core, ty, version, attributes, &inputs, 1);
    let y = y.unwrap().swap_remove(0);
    let (text, weights) = graph.text(&[y]);
    let model = core.read_model_from_memory(text.as_bytes(), weights);
    let mut request = core
        .compile_model(&model.unwrap())
        .unwrap()
        .create_request();
    if !is_constant {
        let x = Tensor::from_slice(&shape, &values).unwrap();
        request.set_input("x", x).unwrap();
    }
    request.infer().unwrap();
    request.output(0).unwrap().clone()
}

/// Long sums run in lanes; 24 and 384 numbers are the least of few and of many lanes.
#[test]
fn constants_give_the_bits_of_inputs() {
    let core = Core::new().unwrap();
    for operator in [
        ("ReduceSum", "opset1"),
        ("ReduceProd", "opset1"),
        ("ReduceMean", "opset1"),
        ("ReduceL2", "opset4"),
        ("SoftMax", "opset8"),
        ("LogSoftmax", "opset5"),
        ("MVN", "opset6"),
    ] {
        for len in [7, 23, 24, 40, 383, 384, 401] {
            let [folded, computed] = [true, false].map(|c| result(&core, operator, len, c));
            assert!(same(&folded, &computed), "{operator:?} of {len}");
        }
    }
}
