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

/// `x` is `f32[?]`: the numbers from 0 below its extent if `condition`, else less each of them.
fn count_in_branches() -> String {
    let layer = |id: usize, ty: &str, version: &str, data: &str, inputs: usize| {
        let ports: String = (0..inputs).map(|k| format!("<port id=\"{k}\"/>")).collect();
        let ports = if inputs > 0 {
            format!("<input>{ports}</input>")
        } else {
            ports
        };
        format!(
            "<layer id=\"{id}\" name=\"l{id}\" type=\"{ty}\" version=\"{version}\"><data {data}/>{ports}<output><port id=\"9\"/></output></layer>"
        )
    };
    let result = |id: usize| {
        format!(
            "<layer id=\"{id}\" name=\"l{id}\" type=\"Result\" version=\"opset1\"><input><port id=\"0\"/></input></layer>"
        )
    };
    let edge = |from: usize, to: usize, port: usize| {
        format!(
            "<edge from-layer=\"{from}\" from-port=\"9\" to-layer=\"{to}\" to-port=\"{port}\"/>"
        )
    };
    let parameter = |id, shape: &str, element: &str| {
        let data = format!("shape=\"{shape}\" element_type=\"{element}\"");
        layer(id, "Parameter", "opset1", &data, 0)
    };
    let constant = |id, offset: usize| {
        let data = format!("element_type=\"i64\" shape=\"\" offset=\"{offset}\" size=\"8\"");
        layer(id, "Const", "opset1", &data, 0)
    };
    let branch = |name: &str, last: &str| {
        let layers = [
            parameter(0, "?", "f32"),
            layer(1, "ShapeOf", "opset3", "output_type=\"i64\"", 1),
            layer(2, "Squeeze", "opset1", "", 1),
            constant(3, 0),
            constant(4, 8),
            layer(5, "Range", "opset4", "output_type=\"f32\"", 3),
            layer(6, last, "opset1", "", 1),
            result(7),
        ];
        let edges = [
            (0, 1, 0),
            (1, 2, 0),
            (3, 5, 0),
            (2, 5, 1),
            (4, 5, 2),
            (5, 6, 0),
            (6, 7, 0),
        ];
        let edges: String = edges.map(|(from, to, port)| edge(from, to, port)).concat();
        let ports = "<input external_port_id=\"1\" internal_layer_id=\"0\"/><output external_port_id=\"9\" internal_layer_id=\"7\"/>";
        format!(
            "<{name}_port_map>{ports}</{name}_port_map><{name}_body><layers>{}</layers><edges>{edges}</edges></{name}_body>",
            layers.concat()
        )
    };
    let branches = branch("then", "Abs") + &branch("else", "Negative");
    let choice = layer(2, "If", "opset8", "", 2).replace("</layer>", &(branches + "</layer>"));
    let layers = parameter(0, "", "boolean") + &parameter(1, "?", "f32") + &choice + &result(3);
    let edges = edge(0, 2, 0) + &edge(1, 2, 1) + &edge(2, 3, 0);
    format!("<net name=\"m\" version=\"11\"><layers>{layers}</layers><edges>{edges}</edges></net>")
}

#[test]
fn extents_that_a_branch_reads() {
    let core = Core::new().unwrap();
    let constants = [0i64, 1].map(i64::to_le_bytes).concat();
    let model = core.read_model_from_memory(count_in_branches().as_bytes(), constants);
    let model = model.unwrap();
    for specialization in [Specialization::Generic, Specialization::Hot] {
        let config = Config::default().specialization(specialization);
        let compiled = core.compile_model_with(&model, config).unwrap();
        for extent in [4, 2, 3, 7, 4] {
            let x = Tensor::from_slice(&[extent], &vec![0.5f32; extent]).unwrap();
            for (condition, sign) in [(true, 1.0), (false, -1.0)] {
                let condition = Tensor::from_bools(&[], &[condition]).unwrap();
                let out = run(&compiled, &[condition, x.clone()]);
                let expected: Vec<f32> = (0..extent).map(|k| sign * k as f32).collect();
                let expected = Tensor::from_slice(&[extent], &expected).unwrap();
                assert_eq!(out, expected, "{specialization:?}");
            }
        }
    }
}
