//! Models with branches and loops at changing extents: one plan for each of their parts serves all, and gives what a plan of its own
//! gives for each.

use vinelift::{
    CompiledModel, Config, Core, Dim, ElementType, PartialShape, Port, Specialization, Tensor,
};
use vinelift_tests::{Random, repository, same, tensor};

fn run(compiled: &CompiledModel, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut request = compiled.create_request();
    for (k, input) in inputs.iter().enumerate() {
        request.set_input_at(k, input.clone()).unwrap();
    }
    request.infer().unwrap();
    request.outputs().to_vec()
}

/// Samples, with the dims (input, dim) that change. A loop whose condition is false at first has no iteration.
const SAMPLES: &[(&str, &[(usize, usize)])] = &[
    ("tensor_iterator/any_number_of_slices", &[(0, 1)]),
    ("tensor_iterator/backward", &[(0, 1)]),
    ("tensor_iterator/parts_of_two", &[(0, 1)]),
    ("if/branches_of_one_shape", &[(1, 0), (2, 0)]),
    ("if/branches_of_two_shapes", &[(2, 0)]),
    ("loop/early_exit", &[(0, 1), (1, 1)]),
];

#[test]
fn extents_that_change_need_no_more_plans() {
    let core = Core::new().unwrap();
    let mut random = Random::new(3);
    for (name, changing) in SAMPLES {
        let path = repository().join("ir-samples").join(name);
        let model = core.read_model(path.with_extension("xml")).unwrap();
        let reshaped = |dim: Dim| {
            let ports = model.inputs().into_iter().enumerate();
            let shapes = ports.map(|(input, port)| {
                let dims = port.shape.dims().unwrap_or_default().iter().enumerate();
                let dims = dims.map(|(d, declared)| match changing.contains(&(input, d)) {
                    true => dim,
                    false => *declared,
                });
                (input, PartialShape::ranked(dims.collect()))
            });
            model.reshape(&shapes.collect::<Vec<_>>()).unwrap()
        };
        let generic = Config::default().specialization(Specialization::Generic);
        let class = core
            .compile_model_with(&reshaped(Dim::ANY), generic)
            .unwrap();
        let mut plans = 0;
        for extent in [6, 9, 8, 5, 7, 4, 11, 10] {
            let fixed = reshaped(Dim::fixed(extent));
            let alone = core.compile_model(&fixed).unwrap();
            for condition in [true, false] {
                let input = |port: &Port| match port.element_type {
                    ElementType::Boolean => Tensor::from_bools(&[], &[condition]).unwrap(),
                    ElementType::I64 => Tensor::from_slice(&[], &[3i64]).unwrap(),
                    _ => tensor(port, None, &mut random),
                };
                let inputs: Vec<Tensor> = fixed.inputs().iter().map(input).collect();
                let (found, want) = (run(&class, &inputs), run(&alone, &inputs));
                let is_same = found.iter().zip(&want).all(|(a, b)| same(a, b));
                assert!(is_same, "{name}, {extent}: {found:?}, want {want:?}");
            }
            if extent == 5 {
                plans = class.statistics().plans;
            }
        }
        assert_eq!(class.statistics().plans, plans, "{name}");
    }
}

/// Branches whose parameters declare no type, of a model that is wrong until it has another shape. Values: as of the sample itself,
/// OpenVINO 2026.4.1.
#[test]
fn types_of_branches_that_a_shape_tells() {
    let core = Core::new().unwrap();
    let path = repository().join("ir-samples/if/parameters_of_dynamic_type.xml");
    let text = std::fs::read_to_string(path).unwrap();
    let wrong = text.replacen(
        r#"shape="" element_type="boolean""#,
        r#"shape="2" element_type="boolean""#,
        1,
    );
    assert_ne!(wrong, text);
    let model = core
        .read_model_from_memory(wrong.as_bytes(), Vec::new())
        .unwrap();
    assert!(core.compile_model(&model).is_err());
    let model = model
        .reshape(&[(0, PartialShape::ranked(Vec::new()))])
        .unwrap();
    let compiled = core.compile_model(&model).unwrap();
    let inputs = [
        Tensor::from_bools(&[], &[false]).unwrap(),
        Tensor::from_slice(&[2, 2], &[-1i32, 2, 3, -4]).unwrap(),
    ];
    let want = Tensor::from_slice(&[2, 2], &[1i32, -2, -3, 4]).unwrap();
    assert_eq!(run(&compiled, &inputs), [want]);
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
                let out = run(&compiled, &[condition, x.clone()]).swap_remove(0);
                let expected: Vec<f32> = (0..extent).map(|k| sign * k as f32).collect();
                let expected = Tensor::from_slice(&[extent], &expected).unwrap();
                assert_eq!(out, expected, "{specialization:?}");
            }
        }
    }
}
