//! Every sample with all dims of its inputs dynamic, at several shapes in turn: results and errors are those of the
//! model that has these shapes.
//!
//! Where a model serves several shapes with what it made for the first, this is the test that it may.

use vinelift::{
    CompiledModel, Config, Core, Dim, ElementType, Error, Model, PartialShape, Specialization,
    Tensor,
};

use vinelift_tests::{Graph, Random, Value, files, repository, same, step, tensor};

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

/// Has every shape run by a class, the first one, too.
fn generic() -> Config {
    Config::default().specialization(Specialization::Generic)
}

#[test]
fn all_shapes_of_a_class_give_what_each_gives_alone() {
    let core = Core::new().unwrap();
    let mut random = Random::new(7);
    let (mut wrong, mut runs, mut shared) = (Vec::new(), 0, 0);
    let samples = files(&repository().join("ir-samples"), "xml");
    for path in samples.into_iter().step_by(step(3)) {
        let name = path.display().to_string();
        // Random operators give other values each time.
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
        let Ok(dynamic) = core.compile_model_with(&dynamic, generic()) else {
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
        shared > 500 / step(3),
        "{shared} of {runs} runs used what another shape had made"
    );
}

/// Samples of operators that keep the symbols of these dims of their inputs: a plan serves all of their extents.
const KEPT: [(&str, &[(usize, usize)]); 74] = [
    ("adaptive_avg_pool/opset8", &[(0, 0), (0, 1), (0, 2)]),
    ("adaptive_max_pool/opset8", &[(0, 0), (0, 1), (0, 2)]),
    ("avg_pool/opset1", &[(0, 0), (0, 1), (0, 2), (0, 3)]),
    ("avg_pool/opset14", &[(0, 0), (0, 2), (0, 3)]),
    ("avg_pool/opset16", &[(0, 0), (0, 2), (0, 3)]),
    ("batch_norm_inference/opset5", &[(0, 0), (0, 2), (0, 3)]),
    ("binary_convolution/pads_of_one", &[(0, 0), (0, 2), (0, 3)]),
    ("convolution/channels", &[(0, 0), (0, 2), (0, 3)]),
    ("convolution/less_zero_points", &[(0, 0), (0, 2), (0, 3)]),
    ("convolution/opset1", &[(0, 0), (0, 2), (0, 3)]),
    (
        "convolution_backprop_data/opset1",
        &[(0, 0), (0, 2), (0, 3)],
    ),
    (
        "deformable_convolution/opset1",
        &[(0, 0), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3)],
    ),
    (
        "deformable_convolution/opset8_mask",
        &[
            (0, 0),
            (0, 2),
            (0, 3),
            (1, 0),
            (1, 2),
            (1, 3),
            (2, 0),
            (2, 2),
            (2, 3),
        ],
    ),
    (
        "deformable_psroi_pooling/offsets",
        &[(0, 0), (0, 2), (0, 3), (1, 0), (2, 0)],
    ),
    ("depth_to_space/blocks_first", &[(0, 0), (0, 2), (0, 3)]),
    ("einsum/opset7", &[(0, 0), (0, 1), (0, 2), (1, 0)]),
    (
        "embedding_bag_offsets/specification_1",
        &[(0, 0), (0, 1), (1, 0), (3, 0)],
    ),
    (
        "embedding_bag_packed/specification_2",
        &[(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)],
    ),
    (
        "embedding_segments_sum/specification_1",
        &[(0, 0), (0, 1), (1, 0), (2, 0), (3, 0)],
    ),
    (
        "experimental_detectron_roi_feature_extractor/two_levels",
        &[(0, 0), (1, 2), (1, 3), (2, 2), (2, 3)],
    ),
    ("gather_nd/onnx_5", &[(0, 0), (0, 1), (0, 2), (1, 0)]),
    (
        "gather_nd/opset5_specification_6",
        &[(0, 0), (0, 2), (1, 0)],
    ),
    (
        "gather_tree/one_batch",
        &[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)],
    ),
    (
        "grid_sample/opset9_bicubic_border",
        &[(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)],
    ),
    (
        "grid_sample/opset9_bilinear_reflection_align_corners",
        &[(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)],
    ),
    (
        "grid_sample/opset9_nearest_zeros_align_corners",
        &[(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)],
    ),
    ("group_convolution/opset1", &[(0, 0), (0, 2), (0, 3)]),
    (
        "group_convolution_backprop_data/opset1",
        &[(0, 0), (0, 2), (0, 3)],
    ),
    ("group_normalization/opset12", &[(0, 0)]),
    ("gru_cell/defaults", &[(0, 0), (1, 0)]),
    (
        "gru_sequence/reverse_lengths",
        &[(0, 0), (0, 1), (1, 0), (2, 0)],
    ),
    ("interpolate/opset11_cubic_half_pixel", &[(0, 0), (0, 1)]),
    ("interpolate/opset11_linear_3d", &[(0, 0), (0, 1)]),
    ("interpolate/opset11_linear_half_pixel", &[(0, 0), (0, 1)]),
    (
        "interpolate/opset11_linear_onnx_asymmetric_pads",
        &[(0, 0), (0, 1)],
    ),
    (
        "interpolate/opset11_scales",
        &[(0, 0), (0, 1), (0, 2), (0, 3)],
    ),
    (
        "interpolate/opset4_scales",
        &[(0, 0), (0, 1), (0, 2), (0, 3)],
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
    ("pad/opset12_mixed_edge", &[(0, 0), (0, 1)]),
    ("pad/opset12_mixed_reflect", &[(0, 0), (0, 1)]),
    ("pad/opset12_mixed_symmetric", &[(0, 0), (0, 1)]),
    ("prelu/slope_for_each_channel", &[(0, 0), (0, 2)]),
    ("psroi_pooling/average", &[(0, 0), (0, 2), (0, 3), (1, 0)]),
    ("psroi_pooling/bilinear", &[(0, 0), (0, 2), (0, 3), (1, 0)]),
    ("region_yolo/opset1", &[(0, 0), (0, 1), (0, 2), (0, 3)]),
    (
        "region_yolo/opset1_softmax",
        &[(0, 0), (0, 1), (0, 2), (0, 3)],
    ),
    ("reverse/index", &[(0, 0), (0, 1)]),
    ("reverse_sequence/batch_first", &[(0, 0), (0, 1), (1, 0)]),
    ("rnn_sequence/forward", &[(0, 0), (0, 1), (1, 0), (2, 0)]),
    (
        "roi_align/opset3_avg",
        &[(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (2, 0)],
    ),
    (
        "roi_align/opset9_half_pixel_adaptive",
        &[(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (2, 0)],
    ),
    (
        "roi_align_rotated/clockwise_adaptive",
        &[(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (2, 0)],
    ),
    (
        "roi_align_rotated/counterclockwise",
        &[(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (2, 0)],
    ),
    (
        "roi_pooling/bilinear",
        &[(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)],
    ),
    ("roi_pooling/max", &[(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]),
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
    ("segment_max/lowest", &[(0, 0), (0, 1), (1, 0)]),
    ("space_to_depth/depth_first", &[(0, 0)]),
    (
        "strided_slice/ellipsis_with_others",
        &[(0, 0), (0, 1), (0, 2)],
    ),
    ("strided_slice/negative_end", &[(0, 0), (0, 1), (0, 2)]),
    ("strided_slice/new_axis", &[(0, 0), (0, 1)]),
];

/// The same where extents must be multiples of a number, for multiples of those of the samples.
const MULTIPLES: [(&str, &[(usize, usize)]); 7] = [
    ("i420_to_rgb/opset8", &[(0, 1), (0, 2)]),
    (
        "space_to_depth/blocks_first",
        &[(0, 0), (0, 1), (0, 2), (0, 3)],
    ),
    (
        "space_to_depth/depth_first",
        &[(0, 0), (0, 1), (0, 2), (0, 3)],
    ),
    ("reorg_yolo/opset2", &[(0, 0), (0, 1), (0, 2), (0, 3)]),
    ("shuffle_channels/two_groups", &[(0, 0), (0, 1), (0, 2)]),
    ("split/negative_axis", &[(0, 0), (0, 1)]),
    ("split/three_parts", &[(0, 0), (0, 1)]),
];

/// The shapes with the extents of `dims` taken `times`.
fn multiples(shapes: &[Vec<usize>], dims: &[(usize, usize)], times: usize) -> Vec<Vec<usize>> {
    let mut shapes = shapes.to_vec();
    for &(input, d) in dims {
        shapes[input][d] *= times;
    }
    shapes
}

/// The shapes with `more` added to the extents of `dims`.
fn larger(shapes: &[Vec<usize>], dims: &[(usize, usize)], more: usize) -> Vec<Vec<usize>> {
    let mut shapes = shapes.to_vec();
    for &(input, d) in dims {
        shapes[input][d] += more;
    }
    shapes
}

/// Says what is wrong if one plan does not serve both of `runs`, shapes of a sample that differ in `dims`.
fn not_shared(
    core: &Core,
    name: &str,
    dims: &[(usize, usize)],
    runs: impl Fn(&[Vec<usize>]) -> [Vec<Vec<usize>>; 2],
) -> Option<String> {
    let mut random = Random::new(11);
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
        .compile_model_with(&reshaped(&model, open).unwrap(), generic())
        .unwrap();
    for shapes in runs(&shapes) {
        let ports = model.inputs();
        let inputs = ports.iter().zip(&shapes);
        let inputs: Vec<Tensor> = inputs
            .map(|(port, shape)| tensor(port, Some(shape), &mut random))
            .collect();
        // An error in the values is an error at each of the shapes.
        let _ = run(&dynamic, &inputs);
    }
    let found = dynamic.statistics();
    let (plans, bound, unproven) = (found.plans, found.bound, found.unproven);
    let is_shared = (plans, bound, unproven) == (1, 1, 0);
    let text = || format!("{name}: {plans} plans, bound {bound} times, {unproven} not proven");
    (!is_shared).then(text)
}

#[test]
fn one_plan_serves_all_extents_of_dims_that_are_kept() {
    let core = Core::new().unwrap();
    let mut wrong = Vec::new();
    for (name, dims) in KEPT {
        let runs = |shapes: &[Vec<usize>]| [1, 4].map(|more| larger(shapes, dims, more));
        wrong.extend(not_shared(&core, name, dims, runs));
    }
    for (name, dims) in MULTIPLES {
        let runs = |shapes: &[Vec<usize>]| [2, 4].map(|times| multiples(shapes, dims, times));
        wrong.extend(not_shared(&core, name, dims, runs));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `x → Reshape → ReduceMean` over rows of 65, whatever the dims of `x` are, and `x → MaxPool → ReduceL2` over all,
/// where what is folded is a quotient; and the sums over `x` and the numbers of its columns, which are a constant where
/// there is a number of these; means over windows whose extents are quotients; and SoftMax over 48 elements that lie side by side,
/// whatever digits of their position the dims of `x` are.
fn folds_behind_symbols(core: &Core) -> [(Model, Vec<Vec<usize>>); 5] {
    let mut rows = Graph::default();
    let x = rows.parameter("x", ElementType::F32, &[12, 512, 65]);
    let target = rows.list(&[6144, 65]);
    let last = rows.list(&[1]);
    let node = |graph: &mut Graph, ty, version, attributes, inputs: &[&Value], outputs| {
        let added = graph.node(core, ty, version, attributes, inputs, outputs);
        added.unwrap().swap_remove(0)
    };
    let zeros = "special_zero=\"false\"";
    let flat = node(&mut rows, "Reshape", "opset1", zeros, &[&x, &target], 1);
    let keep = "keep_dims=\"true\"";
    let mean = node(&mut rows, "ReduceMean", "opset1", keep, &[&flat, &last], 1);
    let mut windows = Graph::default();
    let x = windows.parameter("x", ElementType::F32, &[1, 3, 15, 384]);
    let window = "kernel=\"3,5\" strides=\"1,2\" pads_begin=\"1,1\" pads_end=\"1,0\" dilations=\"1,1\" \
        auto_pad=\"explicit\" rounding_type=\"floor\" index_element_type=\"i64\" axis=\"0\"";
    let pooled = node(&mut windows, "MaxPool", "opset8", window, &[&x], 2);
    let all = windows.list(&[0, 1, 2, 3]);
    let norm = node(
        &mut windows,
        "ReduceL2",
        "opset4",
        keep,
        &[&pooled, &all],
        1,
    );
    let mut counted = Graph::default();
    let x = counted.parameter("x", ElementType::F32, &[3, 65]);
    let shape = node(&mut counted, "ShapeOf", "opset1", "", &[&x], 1);
    let [zero, one] = [0, 1].map(|number| counted.number(number));
    let columns = node(
        &mut counted,
        "Gather",
        "opset1",
        "",
        &[&shape, &one, &zero],
        1,
    );
    let range = [&zero, &columns, &one];
    let of_f32 = "output_type=\"f32\"";
    let numbers = node(&mut counted, "Range", "opset4", of_f32, &range, 1);
    let numpy = "auto_broadcast=\"numpy\"";
    let added = node(&mut counted, "Add", "opset1", numpy, &[&x, &numbers], 1);
    let last = counted.list(&[1]);
    let sums = node(
        &mut counted,
        "ReduceSum",
        "opset1",
        keep,
        &[&added, &last],
        1,
    );
    let mut tiles = Graph::default();
    let x = tiles.parameter("x", ElementType::F32, &[2, 8, 64, 64]);
    let grid = tiles.list(&[4, 2]);
    let means = node(&mut tiles, "AdaptiveAvgPool", "opset8", "", &[&x, &grid], 1);
    let mut digits = Graph::default();
    let x = digits.parameter("x", ElementType::F32, &[9, 3, 4, 8]);
    let target = digits.list(&[9, 2, 48, 1]);
    let order = digits.list(&[2, 3, 1, 0]);
    let parts = node(&mut digits, "Reshape", "opset1", zeros, &[&x, &target], 1);
    let turned = node(&mut digits, "Transpose", "opset1", "", &[&parts, &order], 1);
    let softmax = node(
        &mut digits,
        "SoftMax",
        "opset8",
        "axis=\"0\"",
        &[&turned],
        1,
    );
    let digits_shapes = vec![vec![9, 3, 4, 8], vec![3, 9, 8, 4], vec![27, 2, 4, 4]];
    let tiles_shapes = vec![vec![2, 8, 61, 67], vec![2, 8, 64, 64], vec![3, 9, 4, 130]];
    let counted_shapes = vec![vec![3, 65], vec![2, 40], vec![7, 500], vec![7, 385]];
    let rows_shapes = vec![vec![48, 128, 65], vec![13, 480, 64], vec![12, 512, 65]];
    let windows_shapes = vec![vec![1, 3, 15, 200], vec![1, 3, 15, 384], vec![2, 3, 9, 385]];
    [
        (rows.model(core, &[mean]).unwrap(), rows_shapes),
        (windows.model(core, &[norm]).unwrap(), windows_shapes),
        (counted.model(core, &[sums]).unwrap(), counted_shapes),
        (tiles.model(core, &[means]).unwrap(), tiles_shapes),
        (digits.model(core, &[softmax]).unwrap(), digits_shapes),
    ]
}

#[test]
fn folds_are_divided_in_classes_as_alone() {
    let core = Core::new().unwrap();
    let mut random = Random::new(3);
    for (model, shapes) in folds_behind_symbols(&core) {
        let open = reshaped(&model, vec![PartialShape::any_of_rank(shapes[0].len())]).unwrap();
        let class = core.compile_model_with(&open, generic()).unwrap();
        for shape in shapes {
            // Numbers whose sums are rounded.
            let numbers = random.fractions(shape.iter().product());
            let input = Tensor::from_slice(&shape, &numbers).unwrap();
            let alone = reshaped(&model, vec![PartialShape::from(shape.as_slice())]).unwrap();
            let alone = core.compile_model(&alone).unwrap();
            let want = run(&alone, std::slice::from_ref(&input)).unwrap();
            let found = run(&class, &[input]).unwrap();
            assert!(
                same(&found[0], &want[0]),
                "{shape:?}: {found:?}, want {want:?}"
            );
        }
        assert_eq!(class.statistics().unproven, 0);
    }
}

/// `L, L - 1, …, -L + 1` by a step that is no integer type, and `0.0, 1.0, …, L - 1`, where `L` is the length of the input.
#[test]
fn ranges_up_and_down_between_lengths_have_one_plan() {
    let core = Core::new().unwrap();
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[5]);
    let [zero, minus, one] = [0, -1, 1].map(|number| graph.number(number));
    let down = graph.constant(ElementType::F32, &[], &(-1f32).to_le_bytes());
    let mut node = |ty, version, attributes, inputs: &[&Value]| {
        graph.single(&core, ty, version, attributes, inputs)
    };
    let length = node("ShapeOf", "opset3", "output_type=\"i64\"", &[&x]);
    let numpy = "auto_broadcast=\"numpy\"";
    let end = node("Multiply", "opset1", numpy, &[&length, &minus]);
    let of_i64 = "output_type=\"i64\"";
    let downwards = node("Range", "opset4", of_i64, &[&length, &end, &down]);
    let of_f32 = "output_type=\"f32\"";
    let upwards = node("Range", "opset4", of_f32, &[&zero, &length, &one]);
    let model = graph.model(&core, &[downwards, upwards]).unwrap();
    let open = reshaped(&model, vec![PartialShape::any_of_rank(1)]).unwrap();
    let class = core.compile_model_with(&open, generic()).unwrap();
    for length in [5, 8, 300] {
        let x = Tensor::from_slice(&[length], &vec![0f32; length]).unwrap();
        let found = run(&class, &[x]).unwrap();
        let length = length as i64;
        let want: Vec<i64> = (1 - length..=length).rev().collect();
        assert_eq!(*found[0].as_slice::<i64>().unwrap(), want);
        let want: Vec<f32> = (0..length).map(|k| k as f32).collect();
        assert_eq!(*found[1].as_slice::<f32>().unwrap(), want);
    }
    let found = class.statistics();
    assert_eq!(found.plans, 1, "{found:?}");
}
