//! Every sample with all dims of its inputs dynamic, at several shapes in turn: results and errors are those of the
//! model that has these shapes.
//!
//! Where a model serves several shapes with what it made for the first, this is the test that it may.

use vinelift::{CompiledModel, Core, Dim, Error, Model, PartialShape, Tensor};
use vinelift_tests::{Random, files, repository, same, tensor};

/// The shapes of the inputs, if all are known.
fn shapes(model: &Model) -> Option<Vec<Vec<usize>>> {
    let inputs = model.inputs();
    inputs.iter().map(|port| port.shape.to_static()).collect()
}

/// The same shapes, and some in which one extent is another one wherever it occurs.
fn variants(shapes: &[Vec<usize>]) -> Vec<Vec<Vec<usize>>> {
    let mut extents: Vec<usize> = shapes.concat();
    extents.sort_unstable();
    extents.dedup();
    extents.retain(|n| (2..64).contains(n));
    let mut all = vec![shapes.to_vec()];
    for of in extents.into_iter().take(3) {
        for to in [of + 1, 2 * of, 1] {
            let extent = |n: &usize| if *n == of { to } else { *n };
            let shape = |shape: &Vec<usize>| shape.iter().map(extent).collect();
            all.push(shapes.iter().map(shape).collect());
        }
    }
    all
}

fn reshaped(model: &Model, shapes: Vec<PartialShape>) -> Result<Model, Error> {
    let shapes: Vec<(usize, PartialShape)> = shapes.into_iter().enumerate().collect();
    model.reshape(&shapes)
}

fn run(compiled: &CompiledModel, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let mut request = compiled.create_request();
    for (k, input) in inputs.iter().enumerate() {
        let set = request.set_input_at(k, input.clone());
        set.map_err(|e| e.to_string())?;
    }
    request.infer().map_err(|e| e.to_string())?;
    Ok(request.outputs().to_vec())
}

#[test]
fn all_shapes_of_a_class_give_what_each_gives_alone() {
    let core = Core::new().unwrap();
    let mut random = Random::new(7);
    let (mut wrong, mut runs, mut shared) = (Vec::new(), 0, 0);
    for path in files(&repository().join("ir-samples"), "xml") {
        let name = path.display().to_string();
        // What is random is so each time.
        if name.contains("random_uniform") || name.contains("multinomial") {
            continue;
        }
        let Ok(model) = core.read_model(&path) else {
            continue;
        };
        let Some(shapes) = shapes(&model) else {
            continue;
        };
        let open = shapes.iter().map(|s| PartialShape::any_of_rank(s.len()));
        let Ok(dynamic) = reshaped(&model, open.collect()) else {
            continue;
        };
        let Ok(dynamic) = core.compile_model(&dynamic) else {
            continue;
        };
        for shapes in variants(&shapes) {
            let ports = model.inputs();
            let inputs = ports.iter().zip(&shapes);
            let inputs: Vec<Tensor> = inputs
                .map(|(port, shape)| tensor(port, Some(shape), &mut random))
                .collect();
            let fixed = shapes.iter().map(|s| PartialShape::from(s.as_slice()));
            let alone = reshaped(&model, fixed.collect());
            let alone = alone.and_then(|model| core.compile_model(&model));
            let want = match alone {
                Ok(alone) => run(&alone, &inputs),
                Err(e) => Err(e.to_string()),
            };
            let found = run(&dynamic, &inputs);
            runs += 1;
            let agree = match (&found, &want) {
                (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
                (Err(e), Err(_)) => !e.contains("internal error"),
                _ => false,
            };
            if !agree {
                wrong.push(format!("{name} at {shapes:?}: {found:?}\n  want {want:?}"));
            }
        }
        shared += dynamic.statistics().bound;
    }
    assert!(
        wrong.is_empty(),
        "{} of {runs}: {}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        shared > 500,
        "{shared} of {runs} runs used what another shape had made"
    );
}

/// Samples of operators that keep the symbols of these dims of their inputs: a plan serves all of their extents.
const KEPT: [(&str, &[(usize, usize)]); 38] = [
    ("avg_pool/opset1", &[(0, 0), (0, 1), (0, 2), (0, 3)]),
    ("avg_pool/opset14", &[(0, 0), (0, 2), (0, 3)]),
    ("avg_pool/opset16", &[(0, 0), (0, 2), (0, 3)]),
    ("batch_norm_inference/opset5", &[(0, 0), (0, 2), (0, 3)]),
    ("binary_convolution/pads_of_one", &[(0, 0), (0, 2), (0, 3)]),
    ("convolution/channels", &[(0, 0), (0, 2), (0, 3)]),
    ("convolution/opset1", &[(0, 0), (0, 2), (0, 3)]),
    ("depth_to_space/blocks_first", &[(0, 0), (0, 2), (0, 3)]),
    ("einsum/opset7", &[(0, 0), (0, 1), (0, 2), (1, 0)]),
    ("gather_nd/onnx_5", &[(0, 0), (0, 1), (0, 2), (1, 0)]),
    (
        "gather_nd/opset5_specification_6",
        &[(0, 0), (0, 2), (1, 0)],
    ),
    (
        "gather_tree/one_batch",
        &[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)],
    ),
    ("group_convolution/opset1", &[(0, 0), (0, 2), (0, 3)]),
    ("gru_cell/defaults", &[(0, 0), (1, 0)]),
    (
        "gru_sequence/reverse_lengths",
        &[(0, 0), (0, 1), (1, 0), (2, 0)],
    ),
    ("interpolate/opset11_linear_half_pixel", &[(0, 0), (0, 1)]),
    ("interpolate/opset11_scales", &[(0, 0), (0, 1)]),
    (
        "interpolate/opset11_linear_onnx_asymmetric_pads",
        &[(0, 0), (0, 1)],
    ),
    ("lrn/opset1", &[(0, 0), (0, 1), (0, 2), (0, 3)]),
    ("lstm_cell/opset4", &[(0, 0), (1, 0), (2, 0)]),
    (
        "lstm_sequence/bidirectional",
        &[(0, 0), (0, 1), (1, 0), (2, 0), (3, 0)],
    ),
    (
        "lstm_sequence/forward",
        &[(0, 0), (0, 1), (1, 0), (2, 0), (3, 0)],
    ),
    ("max_pool/opset1", &[(0, 0), (0, 1), (0, 2), (0, 3)]),
    ("max_pool/opset8", &[(0, 0), (0, 1), (0, 2), (0, 3)]),
    (
        "max_pool/window_of_padding",
        &[(0, 0), (0, 1), (0, 2), (0, 3)],
    ),
    ("reverse/index", &[(0, 0), (0, 1)]),
    ("reverse_sequence/batch_first", &[(0, 0), (0, 1), (1, 0)]),
    ("rnn_sequence/forward", &[(0, 0), (0, 1), (1, 0), (2, 0)]),
    ("roll/specification_1", &[(0, 0), (0, 1)]),
    ("roll/specification_2", &[(0, 0), (0, 1)]),
    (
        "scatter_elements_update/onnx_2",
        &[(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)],
    ),
    (
        "scatter_elements_update/opset12_max",
        &[(0, 0), (1, 0), (2, 0)],
    ),
    (
        "scatter_elements_update/opset12_mean_of_updates",
        &[(0, 0), (1, 0), (2, 0)],
    ),
    (
        "scatter_elements_update/opset12_min_of_updates",
        &[(0, 0), (1, 0), (2, 0)],
    ),
    (
        "scatter_nd_update/opset15_slices",
        &[(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)],
    ),
    (
        "scatter_update/specification_2",
        &[(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)],
    ),
    ("shuffle_channels/two_groups", &[(0, 0), (0, 2)]),
    ("space_to_depth/depth_first", &[(0, 0)]),
];

/// The shapes with `more` added to the extents of `dims`.
fn larger(shapes: &[Vec<usize>], dims: &[(usize, usize)], more: usize) -> Vec<Vec<usize>> {
    let mut shapes = shapes.to_vec();
    for &(input, d) in dims {
        shapes[input][d] += more;
    }
    shapes
}

#[test]
fn one_plan_serves_all_extents_of_dims_that_are_kept() {
    let core = Core::new().unwrap();
    let mut random = Random::new(11);
    let mut wrong = Vec::new();
    for (name, dims) in KEPT {
        let path = repository().join("ir-samples").join(name);
        let model = core.read_model(path.with_extension("xml")).unwrap();
        let shapes = shapes(&model).unwrap();
        let dim = |input: usize, d: usize| match dims.contains(&(input, d)) {
            true => Dim::ANY,
            false => Dim::fixed(shapes[input][d]),
        };
        let shape = |input: usize| {
            let rank = shapes[input].len();
            PartialShape::ranked((0..rank).map(|d| dim(input, d)).collect())
        };
        let open = (0..shapes.len()).map(shape).collect();
        let dynamic = core
            .compile_model(&reshaped(&model, open).unwrap())
            .unwrap();
        for more in [1, 4] {
            let shapes = larger(&shapes, dims, more);
            let ports = model.inputs();
            let inputs = ports.iter().zip(&shapes);
            let inputs: Vec<Tensor> = inputs
                .map(|(port, shape)| tensor(port, Some(shape), &mut random))
                .collect();
            // What is wrong with the values is wrong for each of the shapes.
            let _ = run(&dynamic, &inputs);
        }
        let found = dynamic.statistics();
        if (found.plans, found.bound) != (1, 1) {
            wrong.push(format!(
                "{name}: {} plans, bound {} times",
                found.plans, found.bound
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
