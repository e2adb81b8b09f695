//! One plan serves all sizes of an input, and gives the same bits as a plan of its own for each of them.

use vinelift::{
    CompiledModel, Config, Core, ElementType, Error, Model, PartialShape, Specialization, Tensor,
};
use vinelift_tests::{Graph, Random, repository, same, tensor};

/// A sample all dims of whose inputs are dynamic, how many plans it takes, and shapes of its inputs.
struct Case {
    sample: &'static str,
    plans: usize,
    shapes: &'static [&'static [&'static [usize]]],
}

const CASES: [Case; 20] = [
    // Folds of 24 and of 384 points on are divided into more parts, which are plans of their own.
    Case {
        sample: "group_normalization/opset12",
        plans: 3,
        shapes: &[
            &[&[2, 4, 2, 3]],
            &[&[3, 4, 3, 2]],
            &[&[2, 4, 5, 6]],
            &[&[3, 4, 6, 7]],
            &[&[2, 4, 13, 12]],
            &[&[3, 4, 12, 15]],
            &[&[2, 4, 31, 17]],
            &[&[3, 4, 32, 48]],
            &[&[5, 4, 14, 65]],
        ],
    },
    Case {
        sample: "nv12_to_bgr/ties_in_one_plane",
        plans: 1,
        shapes: PLANES_IN_ONE,
    },
    Case {
        sample: "nv12_to_rgb/opset8_f32",
        plans: 1,
        shapes: PLANES_IN_ONE,
    },
    Case {
        sample: "i420_to_rgb/opset8",
        plans: 1,
        shapes: PLANES_IN_ONE,
    },
    Case {
        sample: "nv12_to_rgb/opset8_planes",
        plans: 1,
        shapes: &[
            &[&[2, 4, 6, 1], &[2, 2, 3, 2]],
            &[&[3, 8, 4, 1], &[3, 4, 2, 2]],
            &[&[5, 66, 130, 1], &[5, 33, 65, 2]],
        ],
    },
    Case {
        sample: "bgr_to_nv12/opset17",
        plans: 1,
        shapes: &[&[&[2, 4, 6, 3]], &[&[3, 8, 4, 3]], &[&[2, 66, 130, 3]]],
    },
    Case {
        sample: "rgb_to_nv12/opset17_planes",
        plans: 1,
        shapes: &[&[&[2, 4, 6, 3]], &[&[3, 8, 4, 3]], &[&[2, 66, 130, 3]]],
    },
    Case {
        sample: "batch_to_space/two_dims",
        plans: 1,
        shapes: &[&[&[6, 2]], &[&[12, 4]], &[&[24, 33]]],
    },
    Case {
        sample: "batch_to_space/tensorflow_4",
        plans: 1,
        shapes: &[&[&[8, 2, 3, 1]], &[&[12, 3, 5, 1]], &[&[16, 7, 30, 1]]],
    },
    Case {
        sample: "reorg_yolo/opset2",
        plans: 1,
        shapes: &[
            &[&[2, 4, 4, 8]],
            &[&[3, 4, 6, 4]],
            &[&[2, 4, 26, 38]],
            &[&[5, 4, 52, 52]],
        ],
    },
    Case {
        sample: "extract_image_patches/opset3_valid",
        plans: 1,
        shapes: &[&[&[2, 2, 5, 5]], &[&[3, 3, 9, 8]], &[&[2, 4, 40, 52]]],
    },
    // Rows in steps of 2 and columns in steps of 3: the padding depends on the remainders.
    Case {
        sample: "extract_image_patches/opset3_same_lower",
        plans: 3,
        shapes: &[
            &[&[2, 2, 5, 5]],
            &[&[3, 3, 9, 8]],
            &[&[2, 4, 40, 52]],
            &[&[3, 5, 8, 7]],
            &[&[3, 5, 7, 6]],
        ],
    },
    Case {
        sample: "strided_slice/strides",
        plans: 1,
        shapes: &[&[&[4, 5, 8]], &[&[5, 6, 9]], &[&[40, 60, 7]]],
    },
    // From the bounds on.
    Case {
        sample: "slice/specification_8",
        plans: 1,
        shapes: &[&[&[20]], &[&[30]], &[&[21]], &[&[44]]],
    },
    Case {
        sample: "add/pdpd_axis",
        plans: 1,
        shapes: &[&[&[2, 3, 4], &[3]], &[&[5, 7, 6], &[7]]],
    },
    Case {
        sample: "col2im/opset15_strides_pads",
        plans: 1,
        shapes: &[&[&[8, 8]], &[&[12, 8]], &[&[36, 8]]],
    },
    Case {
        sample: "experimental_detectron_prior_grid_generator/double",
        plans: 1,
        shapes: &[
            &[&[2, 4], &[1, 1, 2, 3], &[1, 1, 5, 10]],
            &[&[3, 4], &[1, 1, 5, 7], &[1, 1, 50, 100]],
            &[&[5, 4], &[1, 1, 9, 6], &[1, 1, 51, 77]],
        ],
    },
    // The largest ratio comes first: windows have room for it.
    Case {
        sample: "interpolate/opset11_bicubic_pillow_half_pixel_cube_coeff",
        plans: 1,
        shapes: &[
            &[&[2, 3, 14, 10]],
            &[&[2, 4, 13, 9]],
            &[&[3, 2, 9, 7]],
            &[&[3, 2, 8, 10]],
        ],
    },
    // A test more for twice as many elements.
    Case {
        sample: "search_sorted/left",
        plans: 2,
        shapes: &[
            &[&[5], &[8]],
            &[&[8], &[9]],
            &[&[6], &[20]],
            &[&[9], &[8]],
            &[&[16], &[3]],
        ],
    },
    Case {
        sample: "embedding_bag_offsets/specification_3",
        plans: 1,
        shapes: &[
            &[&[5, 2], &[4], &[3]],
            &[&[6, 3], &[5], &[4]],
            &[&[6, 3], &[5], &[6]],
            &[&[6, 4], &[9], &[8]],
        ],
    },
];

/// The rows of `y`, and half as many of `u` and `v` below them.
const PLANES_IN_ONE: &[&[&[usize]]] = &[
    &[&[2, 6, 8, 1]],
    &[&[3, 12, 10, 1]],
    &[&[2, 9, 64, 1]],
    &[&[5, 27, 4, 1]],
    &[&[4, 72, 66, 1]],
];

fn reshaped(model: &Model, shapes: Vec<PartialShape>) -> Result<Model, Error> {
    let shapes: Vec<(usize, PartialShape)> = shapes.into_iter().enumerate().collect();
    model.reshape(&shapes)
}

/// The outputs, or what is wrong with values.
fn run(compiled: &CompiledModel, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let mut request = compiled.create_request();
    for (k, input) in inputs.iter().enumerate() {
        request.set_input_at(k, input.clone()).unwrap();
    }
    request.infer().map_err(|e| e.to_string())?;
    Ok(request.outputs().to_vec())
}

fn agree(a: &Result<Vec<Tensor>, String>, b: &Result<Vec<Tensor>, String>) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Err(a), Err(b)) => a == b,
        _ => false,
    }
}

/// Says what is wrong, if anything is.
fn wrong(core: &Core, case: &Case) -> Option<String> {
    let mut random = Random::new(19);
    let path = repository().join("ir-samples").join(case.sample);
    let model = core.read_model(path.with_extension("xml")).unwrap();
    let any = |shape: &&[usize]| PartialShape::any_of_rank(shape.len());
    let open = reshaped(&model, case.shapes[0].iter().map(any).collect()).unwrap();
    let generic = Config::default().specialization(Specialization::Generic);
    let class = core.compile_model_with(&open, generic).unwrap();
    for shapes in case.shapes {
        let ports = model.inputs();
        let inputs = ports.iter().zip(*shapes);
        let inputs: Vec<Tensor> = inputs
            .map(|(port, shape)| tensor(port, Some(shape), &mut random))
            .collect();
        let fixed = shapes.iter().map(|shape| PartialShape::from(*shape));
        let alone = reshaped(&model, fixed.collect()).unwrap();
        let want = run(&core.compile_model(&alone).unwrap(), &inputs);
        let found = run(&class, &inputs);
        if !agree(&found, &want) {
            let sample = case.sample;
            return Some(format!("{sample} at {shapes:?}: {found:?}, want {want:?}"));
        }
    }
    let found = class.statistics();
    let (plans, unproven) = (found.plans, found.unproven);
    let text = || format!("{}: {plans} plans, {unproven} not proven", case.sample);
    ((plans, unproven) != (case.plans, 0)).then(text)
}

#[test]
fn one_plan_serves_all_sizes() {
    let core = Core::new().unwrap();
    let wrong: Vec<String> = CASES.iter().filter_map(|case| wrong(&core, case)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Layers of one form, `tanh(x · w)` of 48 columns, each with weights of its own: two of `f32`, and two of `i8` with a scale for
/// each row.
fn equal_layers(core: &Core) -> Model {
    const N: usize = 48;
    let mut graph = Graph::default();
    let mut x = graph.parameter("x", ElementType::F32, &[5, N]);
    let numpy = "auto_broadcast=\"numpy\"";
    for layer in 0..4 {
        let codes: Vec<i8> = (0..N * N)
            .map(|i| (i * (89 + 2 * layer) % 256) as u8 as i8)
            .collect();
        let floats = |numbers: &mut dyn Iterator<Item = f32>| -> Vec<u8> {
            numbers.flat_map(f32::to_le_bytes).collect()
        };
        let node = |graph: &mut Graph, ty, version, attributes, inputs: &[&_]| {
            graph.single(core, ty, version, attributes, inputs)
        };
        let weights = match layer % 2 {
            0 => {
                let numbers = floats(&mut codes.iter().map(|code| f32::from(*code) / 256.0));
                graph.constant(ElementType::F32, &[N, N], &numbers)
            }
            _ => {
                let bytes: Vec<u8> = codes.iter().map(|code| *code as u8).collect();
                let codes = graph.constant(ElementType::I8, &[N, N], &bytes);
                let scale = |n| (layer * N + n) as f32 / 65536.0;
                let scales = floats(&mut (0..N).map(scale));
                let scales = graph.constant(ElementType::F32, &[N, 1], &scales);
                let to_f32 = "destination_type=\"f32\"";
                let wide = node(&mut graph, "Convert", "opset1", to_f32, &[&codes]);
                node(&mut graph, "Multiply", "opset1", numpy, &[&wide, &scales])
            }
        };
        let by_rows = "transpose_a=\"false\" transpose_b=\"true\"";
        let product = node(&mut graph, "MatMul", "opset1", by_rows, &[&x, &weights]);
        x = node(&mut graph, "Tanh", "opset1", "", &[&product]);
    }
    graph.model(core, &[x]).unwrap()
}

/// A model of one input, which has rows, for any number of them.
fn of_any_rows(core: &Core, model: &Model) -> CompiledModel {
    let open = reshaped(model, vec![PartialShape::any_of_rank(2)]).unwrap();
    let generic = Config::default().specialization(Specialization::Generic);
    core.compile_model_with(&open, generic).unwrap()
}

/// Checks that `class` and a plan for this number of rows alone, each of 48 columns, give the same bits.
fn check_rows(
    core: &Core,
    (model, class): (&Model, &CompiledModel),
    rows: usize,
    random: &mut Random,
) {
    let input = tensor(&model.inputs()[0], Some(&[rows, 48]), random);
    let alone = reshaped(model, vec![PartialShape::from([rows, 48].as_slice())]).unwrap();
    let alone = core.compile_model(&alone).unwrap();
    let want = run(&alone, std::slice::from_ref(&input));
    let found = run(class, &[input]);
    assert!(
        agree(&found, &want),
        "{rows} rows: {found:?}, want {want:?}"
    );
}

#[test]
fn layers_of_one_form_keep_their_own_weights() {
    let core = Core::new().unwrap();
    let mut random = Random::new(23);
    let model = equal_layers(&core);
    let class = of_any_rows(&core, &model);
    for rows in [5, 9, 40, 130, 9, 41] {
        check_rows(&core, (&model, &class), rows, &mut random);
    }
}

/// `x · (a + b) · (codes · (c + d))`, where all but `x` are constants, and `codes` are of `i8`.
fn products_of_sums(core: &Core) -> Model {
    const N: usize = 48;
    let mut graph = Graph::default();
    let mut random = Random::new(29);
    let x = graph.parameter("x", ElementType::F32, &[5, N]);
    let numpy = "auto_broadcast=\"numpy\"";
    let by_columns = "transpose_a=\"false\" transpose_b=\"false\"";
    let mut sum = |graph: &mut Graph, shape: [usize; 2]| {
        let [a, b] = [(); 2].map(|()| {
            let numbers = random.fractions(shape[0] * shape[1]);
            graph.floats(&shape, &numbers)
        });
        graph.single(core, "Add", "opset1", numpy, &[&a, &b])
    };
    let weights = sum(&mut graph, [N, N]);
    let y = graph.single(core, "MatMul", "opset1", by_columns, &[&x, &weights]);
    let codes: Vec<u8> = (0..N * N).map(|i| (i * 89 % 256) as u8).collect();
    let codes = graph.constant(ElementType::I8, &[N, N], &codes);
    let to_f32 = "destination_type=\"f32\"";
    let codes = graph.single(core, "Convert", "opset1", to_f32, &[&codes]);
    let scales = sum(&mut graph, [1, N]);
    let weights = graph.single(core, "Multiply", "opset1", numpy, &[&codes, &scales]);
    let z = graph.single(core, "MatMul", "opset1", by_columns, &[&y, &weights]);
    graph.model(core, &[z]).unwrap()
}

/// Weights that are computed from constants are packed once for all sizes, too.
#[test]
fn computed_weights_are_packed_once() {
    let core = Core::new().unwrap();
    let mut random = Random::new(31);
    let model = products_of_sums(&core);
    let class = of_any_rows(&core, &model);
    let mut packed = Vec::new();
    for rows in [40, 41, 57, 130] {
        check_rows(&core, (&model, &class), rows, &mut random);
        packed.push(class.statistics().packed_bytes);
    }
    assert!(
        packed[0] > 0 && packed.iter().all(|bytes| *bytes == packed[0]),
        "{packed:?}"
    );
}
