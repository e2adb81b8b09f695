//! Attention, whose two products and softmax run task by task: the same bits as kernels one after the other, and less
//! memory.

use std::num::NonZeroUsize;
use vinelift::{CompiledModel, Config, Core, ElementType, Level, Model, Specialization, Tensor};
use vinelift_tests::{Graph, Value, same};

/// `ScaledDotProductAttention` of `[heads, length, width]` with a mask for all heads, and what a second one makes of that
/// and of its results scattered over it.
fn attention(core: &Core, [heads, length, width]: [usize; 3]) -> Model {
    let mut graph = Graph::default();
    let [query, key, value] = ["q", "k", "v"]
        .map(|name| graph.parameter(name, ElementType::F32, &[heads, length, width]));
    let mask = graph.parameter("mask", ElementType::F32, &[1, length, length]);
    let mut node = |ty, version, attributes, inputs: &[&Value]| {
        let added = graph.node(core, ty, version, attributes, inputs, 1);
        added.unwrap().swap_remove(0)
    };
    let (sdpa, plain) = ("ScaledDotProductAttention", "causal=\"false\"");
    let first = node(sdpa, "opset13", plain, &[&query, &key, &value, &mask]);
    let second = node(sdpa, "opset13", "causal=\"true\"", &[&first, &key, &first]);
    let relu = node("Relu", "opset1", "", &[&second]);
    let across = "transpose_a=\"false\" transpose_b=\"true\"";
    let scores = node("MatMul", "opset1", across, &[&second, &relu]);
    let straight = "transpose_a=\"false\" transpose_b=\"false\"";
    let last = node("MatMul", "opset1", straight, &[&scores, &first]);
    graph.model(core, &[first, last]).unwrap()
}

/// Tensors for the inputs, of numbers between -0.5 and 0.5 without a pattern.
fn inputs([heads, length, width]: [usize; 3]) -> Vec<Tensor> {
    let shapes = [[heads, length, width]; 3];
    let shapes = shapes.into_iter().chain([[1, length, length]]);
    let mut state = 11_u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    let mut tensor = |shape: [usize; 3]| {
        let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| number()).collect();
        Tensor::from_slice(&shape, &numbers).unwrap()
    };
    shapes.map(&mut tensor).collect()
}

/// The outputs, and how many contractions run with the tasks of another.
fn run(model: &CompiledModel, inputs: &[Tensor]) -> (Vec<Tensor>, usize) {
    let mut request = model.create_request();
    for (k, input) in inputs.iter().enumerate() {
        request.set_input_at(k, input.clone()).unwrap();
    }
    let times = request.infer_profiled().unwrap();
    let is_chained = |how: &str| how.starts_with("contraction") && how.contains("run with");
    let chained = times
        .iter()
        .filter(|kernel| is_chained(&kernel.how))
        .count();
    (request.outputs().to_vec(), chained)
}

#[test]
fn attention_is_the_same_in_chains() {
    let core = Core::new().unwrap();
    // With long texts the results are worth to be made in parts, with short ones not; between them the threads decide.
    let (always, never, either) = (Some(true), Some(false), None);
    for (shape, expected_chains) in [
        ([2, 300, 16], always),
        ([1, 129, 32], either),
        ([5, 40, 8], either),
        ([3, 7, 4], never),
        ([4, 1, 16], never),
    ] {
        let model = attention(&core, shape);
        let compile = |level, threads, specialization| {
            let config = Config {
                level,
                threads: NonZeroUsize::new(threads),
                specialization,
                ..Config::default()
            };
            core.compile_model_with(&model, config).unwrap()
        };
        let plain = compile(Level::Compiled, 1, Specialization::Always);
        let inputs = inputs(shape);
        let (expected, chained) = run(&plain, &inputs);
        assert_eq!(chained, 0);
        for threads in [1, 2, 5] {
            let scheduled = compile(Level::Scheduled, threads, Specialization::Always);
            let (found, chained) = run(&scheduled, &inputs);
            assert!(
                found.iter().zip(&expected).all(|(a, b)| same(a, b)),
                "{shape:?}, {threads} threads"
            );
            assert!(
                expected_chains.is_none_or(|is_chained| is_chained == (chained > 0)),
                "{shape:?}, {threads} threads: {chained} contractions are chained"
            );
        }
    }
}
