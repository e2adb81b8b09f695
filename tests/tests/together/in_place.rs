//! A layer that updates its operand in place waits for whoever still reads that.

use std::num::NonZeroUsize;
use vinelift::{Config, Core, ElementType, Level, Model, Tensor};
use vinelift_tests::{Graph, same};

const ROWS: usize = 512;
const COLUMNS: usize = 300;

/// `x = before(p)`, `t = A · x`, `z` an update of `x` by `t`: the results are `t` and `z`.
fn updated_by_product(core: &Core, before: &str, reduction: &str) -> Model {
    let mut graph = Graph::default();
    let p = graph.parameter("p", ElementType::F32, &[ROWS, COLUMNS]);
    let indices = graph.parameter("indices", ElementType::I32, &[ROWS, COLUMNS]);
    let weights = (0..ROWS * ROWS).map(|k| ((k * 7919 % 1013) as f32 - 506.0) * 1e-3);
    let bytes: Vec<u8> = weights.flat_map(f32::to_le_bytes).collect();
    let a = graph.constant(ElementType::F32, &[ROWS, ROWS], &bytes);
    let axis = graph.number(1);
    let mut node = |ty, version, attributes: &str, inputs: &[_]| {
        let added = graph.node(core, ty, version, attributes, inputs, 1);
        added.unwrap().remove(0)
    };
    let x = node(before, "opset1", "", &[&p]);
    let plain = "transpose_a=\"false\" transpose_b=\"false\"";
    let t = node("MatMul", "opset1", plain, &[&a, &x]);
    let attributes = format!("reduction=\"{reduction}\" use_init_val=\"true\"");
    let inputs = [&x, &indices, &t, &axis];
    let z = node("ScatterElementsUpdate", "opset12", &attributes, &inputs);
    graph.model(core, &[t, z]).unwrap()
}

fn run(core: &Core, model: &Model, config: Config, inputs: &[Tensor]) -> Vec<Tensor> {
    let compiled = core.compile_model_with(model, config).unwrap();
    let mut request = compiled.create_request();
    for (k, tensor) in inputs.iter().enumerate() {
        request.set_input_at(k, tensor.clone()).unwrap();
    }
    request.infer().unwrap();
    request.outputs().to_vec()
}

#[test]
fn what_a_product_still_reads_is_not_updated() {
    let core = Core::new().unwrap();
    let numbers = |by: usize| (0..ROWS * COLUMNS).map(move |k| k * by % 2003);
    let p: Vec<f32> = numbers(7919).map(|k| k as f32 * 1e-3 - 1.0).collect();
    let indices: Vec<i32> = numbers(104_729).map(|k| (k % COLUMNS) as i32).collect();
    let inputs = [
        Tensor::from_slice(&[ROWS, COLUMNS], &p).unwrap(),
        Tensor::from_slice(&[ROWS, COLUMNS], &indices).unwrap(),
    ];
    for (before, reduction) in [("ReLU", "sum"), ("Tanh", "max")] {
        let model = updated_by_product(&core, before, reduction);
        let on = |level, threads| Config {
            level,
            threads: NonZeroUsize::new(threads),
            ..Config::default()
        };
        let want = run(&core, &model, on(Level::Compiled, 1), &inputs);
        for threads in [1, 2, 5] {
            let found = run(&core, &model, on(Level::Scheduled, threads), &inputs);
            for (k, (found, want)) in found.iter().zip(&want).enumerate() {
                let text = format!("{before}, {reduction}, {threads} threads: output {k}");
                assert!(same(found, want), "{text}");
            }
        }
    }
}
