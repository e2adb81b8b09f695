//! Sizes that are worked out from the extents of a run: grids of prior boxes, and pads that give as many windows as there are steps.
//! A plan that serves many extents gives the bits of one of its own for each.

use vinelift::{
    CompiledModel, Config, Core, ElementType, Model, PartialShape, Specialization, Tensor,
};
use vinelift_tests::{Graph, Random, Value, same, tensor};

/// The rows and columns of `x`, which is `[N, C, H, W]`.
fn sides(core: &Core, graph: &mut Graph, x: &Value) -> Value {
    let shape = graph.single(core, "ShapeOf", "opset1", "", &[x]);
    let (axes, zero) = (graph.list(&[2, 3]), graph.number(0));
    graph.single(core, "Gather", "opset1", "", &[&shape, &axes, &zero])
}

/// The boxes for the cells of a feature map over an image.
fn boxes(core: &Core, ty: &str, version: &str, attributes: &str) -> Model {
    let mut graph = Graph::default();
    let map = graph.parameter("map", ElementType::F32, &[1, 2, 4, 5]);
    let image = graph.parameter("image", ElementType::F32, &[1, 3, 64, 80]);
    let grid = sides(core, &mut graph, &map);
    let size = sides(core, &mut graph, &image);
    let inputs = [&grid, &size];
    let out = graph.single(core, ty, version, attributes, &inputs);
    graph.model(core, &[out]).unwrap()
}

/// Windows in steps of two with pads as `auto_pad` has them.
fn windows(core: &Core, auto_pad: &str, is_convolution: bool) -> Model {
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[1, 4, 24, 32]);
    let pads = "pads_begin=\"0,0\" pads_end=\"0,0\"";
    let out = match is_convolution {
        true => {
            let weights: Vec<u8> = (0..8 * 4 * 9)
                .flat_map(|k| ((k % 7) as f32 - 3.0).to_le_bytes())
                .collect();
            let weights = graph.constant(ElementType::F32, &[8, 4, 3, 3], &weights);
            let attributes =
                format!("strides=\"2,2\" dilations=\"1,1\" {pads} auto_pad=\"{auto_pad}\"");
            let inputs = [&x, &weights];
            graph.single(core, "Convolution", "opset1", &attributes, &inputs)
        }
        false => {
            let attributes = format!(
                "kernel=\"3,2\" strides=\"2,2\" {pads} auto_pad=\"{auto_pad}\" rounding_type=\"floor\""
            );
            graph.single(core, "MaxPool", "opset1", &attributes, &[&x])
        }
    };
    graph.model(core, &[out]).unwrap()
}

/// Pictures that are padded to whole windows of 7×7, and cut into these, as transformers of pictures do.
fn whole_windows(core: &Core) -> Model {
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[1, 4, 24, 32]);
    let plain = "auto_broadcast=\"numpy\"";
    let size = sides(core, &mut graph, &x);
    let seven = graph.number(7);
    let mut binary = |ty, a: &Value, b: &Value| graph.single(core, ty, "opset1", plain, &[a, b]);
    let rest = binary("FloorMod", &size, &seven);
    let missing = binary("Subtract", &seven, &rest);
    let missing = binary("FloorMod", &missing, &seven);
    let padded = binary("Add", &size, &missing);
    let counts = binary("Divide", &padded, &seven);
    let [none, zeros, first, channels, second] =
        [&[0, 0][..], &[0; 4], &[0], &[0, 0], &[1]].map(|list| graph.list(list));
    let seven = graph.list(&[7]);
    let ends = graph.single(core, "Concat", "opset1", "axis=\"0\"", &[&none, &missing]);
    let mode = "pad_mode=\"constant\"";
    let padded = graph.single(core, "Pad", "opset1", mode, &[&x, &zeros, &ends]);
    let zero = graph.number(0);
    let mut count = |of: &Value| graph.single(core, "Gather", "opset1", "", &[&counts, of, &zero]);
    let (rows, columns) = (count(&first), count(&second));
    let target = [&channels, &rows, &seven, &columns, &seven];
    let target = graph.single(core, "Concat", "opset1", "axis=\"0\"", &target);
    let apart = [&padded, &target];
    let special = "special_zero=\"true\"";
    let apart = graph.single(core, "Reshape", "opset1", special, &apart);
    let order = graph.list(&[0, 2, 4, 3, 5, 1]);
    let windows = graph.single(core, "Transpose", "opset1", "", &[&apart, &order]);
    let out = graph.single(core, "Relu", "opset1", "", &[&windows]);
    graph.model(core, &[out]).unwrap()
}

fn run(compiled: &CompiledModel, inputs: &[Tensor]) -> Tensor {
    let mut request = compiled.create_request();
    for (k, input) in inputs.iter().enumerate() {
        request.set_input_at(k, input.clone()).unwrap();
    }
    request.infer().unwrap();
    request.outputs()[0].clone()
}

/// Runs `model` at each of `shapes`, and gives how many plans a class took.
fn plans(core: &Core, model: &Model, shapes: &[Vec<Vec<usize>>]) -> usize {
    let mut random = Random::new(23);
    let reshaped = |shapes: Vec<PartialShape>| {
        let shapes: Vec<(usize, PartialShape)> = shapes.into_iter().enumerate().collect();
        model.reshape(&shapes).unwrap()
    };
    let any = shapes[0].iter().map(|_| PartialShape::any_of_rank(4));
    let generic = Config::default().specialization(Specialization::Generic);
    let open = reshaped(any.collect());
    let class = core.compile_model_with(&open, generic).unwrap();
    for shapes in shapes {
        let ports = model.inputs();
        let inputs = ports.iter().zip(shapes);
        let inputs: Vec<Tensor> = inputs
            .map(|(port, shape)| tensor(port, Some(shape), &mut random))
            .collect();
        let fixed = shapes.iter().map(|s| PartialShape::from(s.as_slice()));
        let alone = core.compile_model(&reshaped(fixed.collect())).unwrap();
        let (found, want) = (run(&class, &inputs), run(&alone, &inputs));
        assert!(same(&found, &want), "{shapes:?}: {found:?}, want {want:?}");
    }
    let found = class.statistics();
    assert_eq!(found.unproven, 0);
    found.plans
}

#[test]
fn grids_of_boxes_have_one_plan() {
    let core = Core::new().unwrap();
    let shape = |map: [usize; 2], image: [usize; 2]| {
        vec![vec![2, 3, map[0], map[1]], vec![2, 3, image[0], image[1]]]
    };
    let shapes = [
        shape([4, 5], [64, 80]),
        shape([7, 3], [113, 50]),
        shape([19, 38], [300, 600]),
    ];
    let box_1 = "min_size=\"16\" max_size=\"36\" aspect_ratio=\"2\" flip=\"true\" clip=\"true\" step=\"0\" \
        offset=\"0.5\" variance=\"0.1,0.1,0.2,0.2\"";
    let clustered =
        "width=\"8,20\" height=\"4,30\" clip=\"false\" step=\"0\" offset=\"0.5\" variance=\"0.1\"";
    for (ty, version, attributes) in [
        ("PriorBox", "opset1", box_1),
        ("PriorBox", "opset8", box_1),
        ("PriorBoxClustered", "opset1", clustered),
    ] {
        let model = boxes(&core, ty, version, attributes);
        assert_eq!(plans(&core, &model, &shapes), 1, "{ty} {version}");
    }
}

/// The numbers from -2 to that of the columns of `x`, or down to -2, in another type: detectors number the cells of their grids so.
fn numbered_columns(core: &Core, ty: ElementType, step: i64) -> Model {
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[1, 2, 4, 5]);
    let shape = graph.single(core, "ShapeOf", "opset1", "", &[&x]);
    let (axis, zero) = (graph.number(3), graph.number(0));
    let columns = graph.single(core, "Gather", "opset1", "", &[&shape, &axis, &zero]);
    let is_down = step < 0;
    let [start, step] = [-2, step].map(|number| graph.number(number));
    let to_type = format!("destination_type=\"{ty}\"");
    let [start, columns, step] = [&start, &columns, &step]
        .map(|number| graph.single(core, "Convert", "opset1", &to_type, &[number]));
    let ends = match is_down {
        true => [&columns, &start, &step],
        false => [&start, &columns, &step],
    };
    let attributes = format!("output_type=\"{ty}\"");
    let out = graph.single(core, "Range", "opset4", &attributes, &ends);
    graph.model(core, &[out]).unwrap()
}

/// Pictures of `floor(0.75 H)` by `floor(0.25 W)` points, worked out in floats.
fn scaled(core: &Core) -> Model {
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[2, 3, 24, 32]);
    let size = sides(core, &mut graph, &x);
    let [f32, i64] = ["f32", "i64"].map(|ty| format!("destination_type=\"{ty}\""));
    let size = graph.single(core, "Convert", "opset1", &f32, &[&size]);
    let times = graph.floats(&[2], &[0.75, 0.25]);
    let numpy = "auto_broadcast=\"numpy\"";
    let size = graph.single(core, "Multiply", "opset1", numpy, &[&size, &times]);
    let size = graph.single(core, "Floor", "opset1", "", &[&size]);
    let size = graph.single(core, "Convert", "opset1", &i64, &[&size]);
    let axes = graph.list(&[2, 3]);
    let attributes = "mode=\"linear\" shape_calculation_mode=\"sizes\" coordinate_transformation_mode=\"half_pixel\" \
        nearest_mode=\"floor\" antialias=\"false\" pads_begin=\"0\" pads_end=\"0\" cube_coeff=\"-0.75\"";
    let inputs = [&x, &size, &axes];
    let out = graph.single(core, "Interpolate", "opset11", attributes, &inputs);
    graph.model(core, &[out]).unwrap()
}

/// Pictures whose left and right halves have changed places; the right one has the middle column, if there is one.
fn halves(core: &Core, is_rest: bool) -> Model {
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[2, 3, 24, 32]);
    let shape = graph.single(core, "ShapeOf", "opset1", "", &[&x]);
    let (axis, zero, two) = (graph.list(&[3]), graph.number(0), graph.number(2));
    let columns = graph.single(core, "Gather", "opset1", "", &[&shape, &axis, &zero]);
    let numpy = "auto_broadcast=\"numpy\"";
    let half = graph.single(core, "Divide", "opset1", numpy, &[&columns, &two]);
    let rest = match is_rest {
        true => graph.list(&[-1]),
        false => graph.single(core, "Subtract", "opset1", numpy, &[&columns, &half]),
    };
    let lengths = graph.single(core, "Concat", "opset1", "axis=\"0\"", &[&half, &rest]);
    let axis = graph.number(3);
    let inputs = [&x, &axis, &lengths];
    let parts = graph.node(core, "VariadicSplit", "opset1", "", &inputs, 2);
    let parts = parts.unwrap();
    let parts = [&parts[1], &parts[0]];
    let out = graph.single(core, "Concat", "opset1", "axis=\"3\"", &parts);
    graph.model(core, &[out]).unwrap()
}

/// `sum = x + reshape(y, [N, -1, H, W])`, where N, H and W are those of `x`.
fn sum_of_reshaped(core: &Core) -> Model {
    let mut graph = Graph::default();
    let [x, y] = ["x", "y"].map(|name| graph.parameter(name, ElementType::F32, &[2, 8, 1, 30]));
    let shape = graph.single(core, "ShapeOf", "opset1", "", &[&x]);
    let ends = [[0], [2], [3]].map(|axes| {
        let (axes, zero) = (graph.list(&axes), graph.number(0));
        graph.single(core, "Gather", "opset1", "", &[&shape, &axes, &zero])
    });
    let [n, h, w] = &ends;
    let rest = graph.list(&[-1]);
    let target = graph.single(core, "Concat", "opset1", "axis=\"0\"", &[n, &rest, h, w]);
    let special = "special_zero=\"true\"";
    let reshaped = graph.single(core, "Reshape", "opset1", special, &[&y, &target]);
    let sum = graph.single(core, "Add", "opset1", "", &[&x, &reshaped]);
    graph.model(core, &[sum]).unwrap()
}

#[test]
fn numbered_columns_have_one_plan() {
    let core = Core::new().unwrap();
    let shapes = [[2, 2, 4, 5], [3, 3, 9, 38], [5, 8, 6, 700]].map(|shape| vec![shape.to_vec()]);
    for ty in [ElementType::F32, ElementType::F64, ElementType::I64] {
        for step in [1, -1, 3, -2] {
            let model = numbered_columns(&core, ty, step);
            assert_eq!(plans(&core, &model, &shapes), 1, "{ty}, step {step}");
        }
    }
}

#[test]
fn sizes_that_are_scaled_in_floats_have_one_plan() {
    let core = Core::new().unwrap();
    let sizes = [[24, 32], [25, 33], [27, 39], [102, 8], [7, 66]];
    let shapes = sizes.map(|[h, w]| vec![vec![2, 3, h, w]]);
    assert_eq!(plans(&core, &scaled(&core), &shapes), 1);
}

/// There is a plan for even numbers of columns, and one for odd ones.
#[test]
fn parts_of_computed_lengths_have_two_plans() {
    let core = Core::new().unwrap();
    let sizes = [[24, 32], [25, 33], [27, 39], [102, 8], [7, 66]];
    let shapes = sizes.map(|[h, w]| vec![vec![2, 3, h, w]]);
    for is_rest in [false, true] {
        assert_eq!(plans(&core, &halves(&core, is_rest), &shapes), 2);
    }
}

/// The dim of -1 is the number 8 only once `Add` has said that `x` and `y` have the same extents.
#[test]
fn the_rest_of_what_turns_out_to_be_the_same_has_one_plan() {
    let core = Core::new().unwrap();
    let shapes = [[2, 8, 3, 30], [3, 8, 4, 31], [5, 8, 6, 7]];
    let shapes = shapes.map(|shape| vec![shape.to_vec(), shape.to_vec()]);
    assert_eq!(plans(&core, &sum_of_reshaped(&core), &shapes), 1);
}

/// There is a plan for even numbers of rows and columns, and others where one is odd.
#[test]
fn pads_depend_on_remainders_alone() {
    let core = Core::new().unwrap();
    let shape = |rows: usize, columns: usize| vec![vec![2, 4, rows, columns]];
    let shapes = [
        shape(24, 32),
        shape(40, 18),
        shape(64, 66),
        shape(25, 32),
        shape(41, 18),
        shape(9, 66),
    ];
    for auto_pad in ["same_upper", "same_lower"] {
        for is_convolution in [false, true] {
            let model = windows(&core, auto_pad, is_convolution);
            let found = plans(&core, &model, &shapes);
            assert_eq!(found, 2, "{auto_pad}, convolution: {is_convolution}");
        }
    }
}

/// A size that is negative for the extents of a run is refused, by a plan for these alone and by one for a class.
#[test]
fn negative_sizes_are_refused() {
    let core = Core::new().unwrap();
    for (ty, version, attributes, message) in [
        (
            "Broadcast",
            "opset3",
            "mode=\"numpy\"",
            "`target_shape` [-2] must be at least 0",
        ),
        ("Tile", "opset1", "", "`repeats` [-2] must be at least 0"),
        (
            "OneHot",
            "opset1",
            "axis=\"-1\"",
            "`depth` must be positive, found -2",
        ),
    ] {
        let mut graph = Graph::default();
        let x = graph.parameter("x", ElementType::F32, &[5, 5]);
        let shape = graph.single(&core, "ShapeOf", "opset1", "", &[&x]);
        let (axis, less) = (graph.list(&[0]), graph.list(&[8]));
        let keep = "keep_dims=\"true\"";
        let sum = graph.single(&core, "ReduceSum", "opset1", keep, &[&shape, &axis]);
        let size = graph.single(&core, "Subtract", "opset1", "", &[&sum, &less]);
        let (data, on, off) = (graph.list(&[1]), graph.number(1), graph.number(0));
        let mut inputs = vec![&data, &size];
        if ty == "OneHot" {
            inputs.extend([&on, &off]);
        }
        let out = graph.single(&core, ty, version, attributes, &inputs);
        let model = graph.model(&core, &[out]).unwrap();
        let model = model.reshape(&[(0, PartialShape::any_of_rank(2))]).unwrap();
        for specialization in [Specialization::Generic, Specialization::Always] {
            let config = Config::default().specialization(specialization);
            let compiled = core.compile_model_with(&model, config).unwrap();
            let x = Tensor::from_slice(&[3, 3], &[0f32; 9]).unwrap();
            let error = compiled.run([("x", x)]).unwrap_err().to_string();
            assert!(error.ends_with(message), "{specialization:?}: {error}");
        }
    }
}

/// Bytes of extents have no formula. A plan for a class reads such a size when it runs, where one for extents that are known
/// goes on.
#[test]
fn sizes_that_wrap_are_read_when_they_are_there() {
    let core = Core::new().unwrap();
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[5, 6]);
    let shape = graph.single(&core, "ShapeOf", "opset1", "", &[&x]);
    let to = |ty: &str| format!("destination_type=\"{ty}\"");
    let byte = graph.single(&core, "Convert", "opset1", &to("i8"), &[&shape]);
    let size = graph.single(&core, "Convert", "opset1", &to("i64"), &[&byte]);
    let clamp = "min=\"0\" max=\"40\"";
    let size = graph.single(&core, "Clamp", "opset1", clamp, &[&size]);
    let data = graph.list(&[7]);
    let numpy = "mode=\"numpy\"";
    let out = graph.single(&core, "Broadcast", "opset3", numpy, &[&data, &size]);
    let model = graph.model(&core, &[out, byte]).unwrap();
    let model = model.reshape(&[(0, PartialShape::any_of_rank(2))]).unwrap();
    let config = Config::default().specialization(Specialization::Generic);
    let compiled = core.compile_model_with(&model, config).unwrap();
    for (extents, want) in [
        ([44, 127], [40, 40]),
        ([128, 44], [0, 40]),
        ([4, 300], [4, 40]),
        ([257, 256], [1, 0]),
        ([4, 258], [4, 2]),
    ] {
        let count = extents[0] * extents[1];
        let x = Tensor::from_slice(&extents, &vec![0f32; count]).unwrap();
        let outputs = compiled.run([("x", x)]).unwrap();
        assert_eq!(outputs[0].shape(), want, "{extents:?}");
    }
}

/// Whether there is a border is a question of its own for either side, and so is a border of one line or column.
#[test]
fn pictures_in_whole_windows_have_few_plans() {
    let core = Core::new().unwrap();
    let model = whole_windows(&core);
    let plans_of = |sizes: &[[usize; 2]]| {
        let shapes = sizes.iter().map(|[h, w]| vec![vec![1, 4, *h, *w]]);
        plans(&core, &model, &shapes.collect::<Vec<_>>())
    };
    assert_eq!(plans_of(&[[24, 32], [17, 38], [31, 46], [80, 19]]), 1);
    assert_eq!(plans_of(&[[28, 35], [21, 42], [14, 70]]), 1);
    assert!(plans_of(&[[24, 28], [27, 32], [29, 41], [35, 20], [14, 14], [22, 25]]) <= 6);
}
