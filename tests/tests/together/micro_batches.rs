//! A batch that is computed part by part gives the same bits as one that is computed at once.

use proptest::prelude::*;
use vinelift::{Config, Core, ElementType, Level, Model, Shape, Stage, Tensor};
use vinelift_tests::{Graph, Value, different_bits, outputs, outputs_with};

/// How many micro-batches there are of a model.
fn count(core: &Core, model: &Model, config: &Config) -> usize {
    let compiled = core.compile_model_with(model, config.clone()).unwrap();
    let shapes: Vec<Option<Shape>> = vec![None; compiled.inputs().len()];
    let text = compiled.dump(Stage::Scheduled, &shapes, None).unwrap();
    let count = text.split("once for each of ").nth(1);
    count.map_or(1, |text| text.split(' ').next().unwrap().parse().unwrap())
}

/// Has a model run in micro-batches of any size, on any number of threads: all outputs are those of the nest of every layer.
fn check(core: &Core, model: &Model, inputs: &[Tensor], sizes: &[usize]) {
    let want = outputs(core, model, Level::Compiled, inputs).unwrap();
    for threads in [1, 2] {
        for size in sizes {
            let config = Config::new().threads(threads).micro_batch(*size);
            let found = outputs_with(core, model, config, inputs).unwrap();
            for (found, want) in found.iter().zip(&want) {
                let difference = different_bits(found, want);
                assert_eq!(difference, None, "{size} images, {threads} threads");
            }
        }
    }
}

fn numbers(shape: &[usize], seed: usize) -> Tensor {
    let values = 0..shape.iter().product();
    let values: Vec<f32> = values
        .map(|k: usize| ((k * 37 + seed * 11) % 101) as f32 / 16.0 - 3.0)
        .collect();
    Tensor::from_slice(shape, &values).unwrap()
}

/// Pictures, a vector that is the same for all of them, and a scale for each: two convolutions, pooling, a product.
fn pictures(core: &Core, images: usize, size: usize) -> (Model, Vec<Tensor>) {
    let mut graph = Graph::default();
    let shapes = [vec![images, 3, size, size], vec![16], vec![images, 1]];
    let names = ["x", "bias", "scale"].iter().zip(&shapes);
    let [x, bias, scale] = names
        .map(|(name, shape)| graph.parameter(name, ElementType::F32, shape))
        .collect::<Vec<Value>>()
        .try_into()
        .unwrap();
    let mut weights = |shape: &[usize]| {
        let values = numbers(shape, shape[0]);
        graph.floats(shape, &values.as_slice::<f32>().unwrap())
    };
    let [first, second] = [[16, 3, 3, 3], [16, 16, 3, 3]].map(|shape| weights(&shape));
    let dense = weights(&[16, 10]);
    let convolution = "strides=\"1,1\" dilations=\"1,1\" pads_begin=\"1,1\" pads_end=\"1,1\" auto_pad=\"explicit\"";
    let mut node = |ty: &str, version: &str, attributes: &str, inputs: &[&Value]| {
        graph.single(core, ty, version, attributes, inputs)
    };
    let t = node("Convolution", "opset1", convolution, &[&x, &first]);
    let t = node("ReLU", "opset1", "", &[&t]);
    let t = node("Convolution", "opset1", convolution, &[&t, &second]);
    let t = node("ReLU", "opset1", "", &[&t]);
    let axes = graph.list(&[2, 3]);
    let mut node = |ty: &str, version: &str, attributes: &str, inputs: &[&Value]| {
        graph.single(core, ty, version, attributes, inputs)
    };
    let t = node("ReduceMean", "opset1", "keep_dims=\"false\"", &[&t, &axes]);
    let t = node("Add", "opset1", "", &[&t, &bias]);
    let t = node("Multiply", "opset1", "", &[&t, &scale]);
    let y = node(
        "MatMul",
        "opset1",
        "transpose_a=\"false\" transpose_b=\"false\"",
        &[&t, &dense],
    );
    let model = graph.model(core, &[t, y]).unwrap();
    let inputs = (1..).zip(&shapes).map(|(seed, shape)| numbers(shape, seed));
    (model, inputs.collect())
}

#[test]
fn pictures_are_split_where_the_caches_do_not_hold_them() {
    let core = Core::new().unwrap();
    // Two pictures of this size are all that the caches are taken to hold.
    const SIZE: usize = 256;
    let cases = [
        (4, 16, 1),
        (2, SIZE, 1),
        (2, SIZE + 1, 2),
        (4, SIZE, 2),
        (3, SIZE, 3),
    ];
    for (images, size, parts) in cases {
        let (model, inputs) = pictures(&core, images, size);
        assert_eq!(
            count(&core, &model, &Config::new()),
            parts,
            "{images} of {size}"
        );
        assert_eq!(count(&core, &model, &Config::new().micro_batch(images)), 1);
        assert_eq!(count(&core, &model, &Config::new().micro_batch(1)), images);
        check(&core, &model, &inputs, &[0, 1, 2, images]);
    }
}

/// Two pictures together have enough products for sums of bytes, and one alone does not. Sums of bytes are rounded otherwise.
#[test]
fn how_sums_are_rounded_depends_on_the_whole_batch() {
    let core = Core::new().unwrap();
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[2, 8, 7, 8]);
    let bounds: Vec<Value> = [-3.0, 3.0, -3.0, 3.0]
        .map(|bound| graph.floats(&[1], &[bound]))
        .into();
    let codes: Vec<u8> = (0..4 * 8 * 9).map(|k| (k * 37 % 251) as u8).collect();
    let codes = graph.constant(ElementType::I8, &[4, 8, 3, 3], &codes);
    let scales = graph.floats(&[4, 1, 1, 1], &[0.0061, 0.0194, 0.0021, 0.0023]);
    let convolution = "strides=\"1,1\" dilations=\"1,1\" pads_begin=\"1,1\" pads_end=\"1,1\" auto_pad=\"explicit\"";
    let mut node = |ty: &str, attributes: &str, inputs: &[&Value]| {
        graph.single(&core, ty, "opset1", attributes, inputs)
    };
    let inputs: Vec<&Value> = [&x].into_iter().chain(&bounds).collect();
    let t = node("FakeQuantize", "levels=\"255\"", &inputs);
    let w = node("Convert", "destination_type=\"f32\"", &[&codes]);
    let w = node("Multiply", "", &[&w, &scales]);
    let y = node("Convolution", convolution, &[&t, &w]);
    let model = graph.model(&core, &[y]).unwrap();
    assert_eq!(count(&core, &model, &Config::new().micro_batch(1)), 2);
    check(&core, &model, &[numbers(&[2, 8, 7, 8], 1)], &[1, 2]);
}

#[test]
fn kernels_are_timed_over_all_micro_batches() {
    let core = Core::new().unwrap();
    let (model, inputs) = pictures(&core, 4, 16);
    let kernels = |size: usize| {
        let config = Config::new().micro_batch(size);
        let mut request = core
            .compile_model_with(&model, config)
            .unwrap()
            .create_request();
        for (k, tensor) in inputs.iter().enumerate() {
            request.set_input_at(k, tensor.clone()).unwrap();
        }
        let kernels = request.infer_profiled().unwrap();
        kernels.iter().map(|kernel| kernel.flops).sum::<u64>()
    };
    assert_eq!(kernels(1), kernels(4));
}

/// Adds a node, if the model accepts it: most keep images apart, some do not.
fn grow(core: &Core, graph: &mut Graph, values: &[Value], choices: &[usize; 4]) -> Option<Value> {
    let [operator, of, with, detail] = *choices;
    let x = &values[of % values.len()];
    let y = &values[with % values.len()];
    let rank = x.shape.len();
    let axis = 1 + detail % (rank - 1);
    let along = format!("axis=\"{axis}\"");
    let alone: &[Value] = &[];
    let (ty, version, attributes, more) = match operator % 12 {
        0 => ("Tanh", "opset1", "", alone.to_vec()),
        1 => ("Add", "opset1", "", vec![y.clone()]),
        2 => ("Concat", "opset1", &*along, vec![y.clone()]),
        3 => ("SoftMax", "opset8", &*along, alone.to_vec()),
        4 => {
            let mut order: Vec<i64> = (0..rank as i64).collect();
            order.rotate_left(1 + detail % 2);
            ("Transpose", "opset1", "", vec![graph.list(&order)])
        }
        5 => {
            let shape = [[4, 3, -1], [8, 3, -1], [12, -1, 2], [-1, 6, 1]][detail % 4];
            (
                "Reshape",
                "opset1",
                "special_zero=\"false\"",
                vec![graph.list(&shape)],
            )
        }
        6 => {
            let axes = vec![graph.list(&[axis as i64])];
            ("ReduceSum", "opset1", "keep_dims=\"true\"", axes)
        }
        7 => {
            let shape = [5, *x.shape.last()?];
            let w = numbers(&shape, detail);
            let w = graph.floats(&shape, &w.as_slice::<f32>().ok()?);
            (
                "MatMul",
                "opset1",
                "transpose_a=\"false\" transpose_b=\"true\"",
                vec![w],
            )
        }
        8 => {
            let numbers = [0, -1, 1, (detail % rank) as i64];
            let lists = numbers.map(|number| graph.list(&[number]));
            ("Slice", "opset8", "", lists.to_vec())
        }
        9 => {
            let w = match detail % 2 {
                0 => graph.floats(&[4, 1], &[0.5; 4]),
                _ => graph.floats(&[4, 1], &[0.5, 1.0, 2.0, 4.0]),
            };
            ("Multiply", "opset1", "", vec![w])
        }
        10 => {
            let edges = [1, 2].map(|edge| {
                let at = |d: usize| if d == axis { edge } else { 0 };
                let edges: Vec<i64> = (0..rank).map(at).collect();
                graph.list(&edges)
            });
            ("Pad", "opset1", "pad_mode=\"edge\"", edges.to_vec())
        }
        _ => {
            let axis = graph.number((detail % rank) as i64);
            ("CumSum", "opset3", "", vec![axis])
        }
    };
    let inputs: Vec<&Value> = [x].into_iter().chain(&more).collect();
    graph.node(core, ty, version, attributes, &inputs, 1)?.pop()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn random_graphs_of_batches(choices in prop::collection::vec(prop::array::uniform4(0usize..1000), 1..9)) {
        let core = Core::new().unwrap();
        let mut graph = Graph::default();
        let shapes: [&[usize]; 2] = [&[4, 3, 6], &[4, 6]];
        let names = ["x", "y"].into_iter().zip(shapes);
        let mut values: Vec<Value> = names
            .map(|(name, shape)| graph.parameter(name, ElementType::F32, shape))
            .collect();
        for choice in &choices {
            let before = graph.mark();
            let added = grow(&core, &mut graph, &values, choice);
            match added.filter(|value| value.shape.len() > 1 && value.elements() < 5000) {
                Some(value) => values.push(value),
                None => graph.go_back(before),
            }
        }
        let results: Vec<Value> = values.iter().skip(2).rev().take(3).cloned().collect();
        prop_assume!(!results.is_empty());
        let model = graph.model(&core, &results).unwrap();
        let inputs = [numbers(shapes[0], 1), numbers(shapes[1], 2)];
        check(&core, &model, &inputs, &[1, 2]);
    }
}
