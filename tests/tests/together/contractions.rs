//! Products of matrices and convolutions give the same bits as plain loops: at every level, for any
//! number of threads, with constant weights and with others.

use proptest::prelude::*;
use std::num::NonZeroUsize;
use vinelift::{Config, Core, ElementType, Level, Model, Tensor};
use vinelift_tests::{outputs, same};

/// `relu(operator(data, weights) + bias)`
#[derive(Clone, Debug)]
struct Case {
    operator: &'static str,
    attributes: String,
    ty: ElementType,
    data: Vec<usize>,
    weights: Vec<usize>,
    bias: Vec<usize>,
    weights_are_constant: bool,
}

impl Case {
    fn model(&self, core: &Core) -> Model {
        let mut bytes = Vec::new();
        let mut layers = Vec::new();
        let mut constant = |name: &str, shape: &[usize], seed: usize| {
            let tensor = numbers(self.ty, shape, seed);
            let (offset, size) = (bytes.len(), tensor.bytes().len());
            bytes.extend_from_slice(tensor.bytes());
            let attributes = format!(" offset=\"{offset}\" size=\"{size}\"");
            (name.to_owned(), "Const", attributes, shape.to_vec())
        };
        let parameter = |name: &str, shape: &[usize]| {
            (name.to_owned(), "Parameter", String::new(), shape.to_vec())
        };
        let sources = [
            parameter("data", &self.data),
            match self.weights_are_constant {
                true => constant("weights", &self.weights, 1),
                false => parameter("weights", &self.weights),
            },
            constant("bias", &self.bias, 2),
        ];
        for (id, (name, ty, attributes, shape)) in sources.iter().enumerate() {
            let dims: Vec<String> = shape.iter().map(ToString::to_string).collect();
            layers.push(format!(
                "<layer id=\"{id}\" name=\"{name}\" type=\"{ty}\" version=\"opset1\"><data element_type=\"{}\" \
                 shape=\"{}\"{attributes}/><output><port id=\"0\"/></output></layer>",
                self.ty,
                dims.join(",")
            ));
        }
        let (operator, attributes) = (self.operator, &self.attributes);
        let ports =
            "<input><port id=\"0\"/><port id=\"1\"/></input><output><port id=\"2\"/></output>";
        let text = format!(
            "<net name=\"g\" version=\"11\"><layers>{}\
             <layer id=\"3\" name=\"sum\" type=\"{operator}\" version=\"opset1\"><data {attributes}/>{ports}</layer>\
             <layer id=\"4\" name=\"biased\" type=\"Add\" version=\"opset1\"><data auto_broadcast=\"numpy\"/>{ports}</layer>\
             <layer id=\"5\" name=\"relu\" type=\"Relu\" version=\"opset1\"><input><port id=\"0\"/></input>\
             <output><port id=\"1\"/></output></layer>\
             <layer id=\"6\" name=\"result\" type=\"Result\" version=\"opset1\"><input><port id=\"0\"/></input></layer>\
             </layers><edges>{}</edges></net>",
            layers.concat(),
            [(0, 0, 3, 0), (1, 0, 3, 1), (3, 2, 4, 0), (2, 0, 4, 1), (4, 2, 5, 0), (5, 1, 6, 0)]
                .map(|(from, port, to, input)| format!(
                    "<edge from-layer=\"{from}\" from-port=\"{port}\" to-layer=\"{to}\" to-port=\"{input}\"/>"
                ))
                .concat()
        );
        core.read_model_from_memory(text.as_bytes(), bytes).unwrap()
    }

    fn inputs(&self) -> Vec<Tensor> {
        let mut inputs = vec![numbers(self.ty, &self.data, 3)];
        if !self.weights_are_constant {
            inputs.push(numbers(self.ty, &self.weights, 1));
        }
        inputs
    }
}

/// Numbers of many magnitudes, so that an order of summation shows.
fn numbers(ty: ElementType, shape: &[usize], seed: usize) -> Tensor {
    let count: usize = shape.iter().product();
    let value = |i: usize| {
        let x = ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0;
        x * [1.0, 0.01, 30.0, 0.5][i % 4]
    };
    let values = (0..count).map(value);
    match ty {
        ElementType::F64 => {
            let values: Vec<f64> = values.map(|x| f64::from(x) / 3.0).collect();
            Tensor::from_slice(shape, &values).unwrap()
        }
        ElementType::F16 => {
            let values = values.map(half::f16::from_f32);
            let bytes: Vec<u8> = values.flat_map(half::f16::to_le_bytes).collect();
            Tensor::from_bytes(ty, shape, bytes).unwrap()
        }
        _ => Tensor::from_slice(shape, &values.collect::<Vec<f32>>()).unwrap(),
    }
}

fn list(values: &[usize]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(",")
}

fn element() -> impl Strategy<Value = ElementType> {
    prop_oneof![
        3 => Just(ElementType::F32),
        1 => Just(ElementType::F64),
        1 => Just(ElementType::F16),
    ]
}

prop_compose! {
    fn product()(
        ty in element(),
        batch in prop::collection::vec(1usize..4, 0..3),
        (m, n, k) in (1usize..40, 1usize..70, 1usize..60),
        (transpose_a, transpose_b) in any::<(bool, bool)>(),
        weights_are_constant in any::<bool>(),
        batched in any::<bool>(),
    ) -> Case {
        let swapped = |swap: bool, x: usize, y: usize| if swap { vec![y, x] } else { vec![x, y] };
        let weights = swapped(transpose_b, k, n);
        Case {
            operator: "MatMul",
            attributes: format!("transpose_a=\"{transpose_a}\" transpose_b=\"{transpose_b}\""),
            ty,
            data: [batch.clone(), swapped(transpose_a, m, k)].concat(),
            weights: if batched { [batch, weights].concat() } else { weights },
            bias: vec![n],
            weights_are_constant,
        }
    }
}

/// Of a spatial dim: elements more than needed, window, stride, dilation, padding before and after.
type Space = (usize, usize, usize, usize, usize, usize);

prop_compose! {
    fn convolution()(
        ty in element(),
        is_backprop in any::<bool>(),
        (n, groups, each, inputs) in (1usize..3, 1usize..5, 1usize..9, 1usize..9),
        space in prop::collection::vec((1usize..14, 1usize..4, 1usize..4, 1usize..3, 0usize..3, 0usize..3), 1..3),
        is_depthwise in any::<bool>(),
        weights_are_constant in any::<bool>(),
    ) -> Case {
        let (each, inputs) = if is_depthwise { (1, 1) } else { (each, inputs) };
        let is_grouped = groups > 1 || is_depthwise;
        let of = |f: fn(&Space) -> usize| -> Vec<usize> {
            space.iter().map(f).collect()
        };
        let kernel = of(|s| s.1);
        // Large enough for the window, and for what a deconvolution cuts off.
        let size = of(|s| s.0 + s.1 * s.3 + s.4 + s.5);
        let channels = if is_backprop { vec![inputs, each] } else { vec![each, inputs] };
        let group: &[usize] = if is_grouped { &[groups] } else { &[] };
        let groups = if is_grouped { groups } else { 1 };
        let mut attributes = format!(
            "strides=\"{}\" dilations=\"{}\" pads_begin=\"{}\" pads_end=\"{}\" auto_pad=\"explicit\"",
            list(&of(|s| s.2)), list(&of(|s| s.3)), list(&of(|s| s.4)), list(&of(|s| s.5))
        );
        if is_backprop {
            attributes += &format!(" output_padding=\"{}\"", list(&vec![0; space.len()]));
        }
        Case {
            operator: match (is_backprop, is_grouped) {
                (false, false) => "Convolution",
                (false, true) => "GroupConvolution",
                (true, false) => "ConvolutionBackpropData",
                (true, true) => "GroupConvolutionBackpropData",
            },
            attributes,
            ty,
            data: [&[n, groups * inputs][..], &size].concat(),
            weights: [group, &channels, &kernel].concat(),
            bias: [vec![1, groups * each], vec![1; space.len()]].concat(),
            weights_are_constant,
        }
    }
}

fn check(case: &Case) {
    let core = Core::new().unwrap();
    let model = case.model(&core);
    let inputs = case.inputs();
    let want = outputs(&core, &model, Level::Interpreted, &inputs).unwrap();
    for level in Level::ALL {
        let found = outputs(&core, &model, level, &inputs).unwrap();
        assert!(same(&found[0], &want[0]), "{level:?}: {case:?}");
    }
    for threads in [1, 3] {
        let config = Config {
            threads: NonZeroUsize::new(threads),
            ..Config::default()
        };
        let compiled = core.compile_model_with(&model, config).unwrap();
        let mut request = compiled.create_request();
        for (k, tensor) in inputs.iter().enumerate() {
            request.set_input_at(k, tensor.clone()).unwrap();
        }
        // Twice: what the first run leaves in scratch memory does not matter.
        for _ in 0..2 {
            request.infer().unwrap();
            assert!(
                same(&request.outputs()[0], &want[0]),
                "{threads} threads: {case:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn products_of_matrices(case in product()) {
        check(&case);
    }

    #[test]
    fn convolutions(case in convolution()) {
        check(&case);
    }
}

/// Large enough for several threads, and for blocks of every kind.
#[test]
fn large_ones() {
    let product = |data: &[usize], weights: &[usize]| Case {
        operator: "MatMul",
        attributes: "transpose_b=\"true\"".to_owned(),
        ty: ElementType::F32,
        data: data.to_vec(),
        weights: weights.to_vec(),
        bias: vec![weights[weights.len() - 2]],
        weights_are_constant: data.len() == 2,
    };
    check(&product(&[167, 259], &[231, 259]));
    check(&product(&[2, 3, 33, 40], &[2, 3, 65, 40]));
    check(&product(&[1, 500], &[300, 500]));
    check(&Case {
        operator: "Convolution",
        attributes: "strides=\"2,1\" dilations=\"1,1\" pads_begin=\"1,1\" pads_end=\"1,1\""
            .to_owned(),
        ty: ElementType::F32,
        data: vec![1, 16, 31, 33],
        weights: vec![24, 16, 3, 3],
        bias: vec![1, 24, 1, 1],
        weights_are_constant: true,
    });
}

/// Windows that slide along rows, channels apart: loops over rows instead of a contraction.
#[test]
fn windows_along_rows() {
    // Height, width, window, step, padding.
    for (height, width, window, step, pad) in [
        (16, 40, 3, 1, 1),
        (14, 14, 5, 1, 2),
        (13, 21, 3, 1, 1),
        (24, 33, 3, 2, 1),
        (9, 9, 7, 1, 3),
        (2, 50, 5, 1, 2),
    ] {
        check(&Case {
            operator: "GroupConvolution",
            attributes: format!(
                "strides=\"{step},{step}\" dilations=\"1,1\" pads_begin=\"{pad},{pad}\" pads_end=\"{pad},{pad}\" auto_pad=\"explicit\""
            ),
            ty: ElementType::F32,
            data: vec![1, 6, height, width],
            weights: vec![6, 1, 1, window, window],
            bias: vec![1, 6, 1, 1],
            weights_are_constant: true,
        });
    }
}

/// Results that no cache holds at once: what is added to them follows in parts, which the tasks of the
/// contraction need not divide evenly.
#[test]
fn what_follows_in_parts() {
    check(&Case {
        operator: "MatMul",
        attributes: "transpose_b=\"true\"".to_owned(),
        ty: ElementType::F32,
        data: vec![517, 40],
        weights: vec![303, 40],
        bias: vec![303],
        weights_are_constant: true,
    });
    for (channels, height) in [(12, 150), (5, 257)] {
        check(&Case {
            operator: "Convolution",
            attributes: "strides=\"1,1\" dilations=\"1,1\" pads_begin=\"1,1\" pads_end=\"1,1\""
                .to_owned(),
            ty: ElementType::F32,
            data: vec![1, 4, height, 150],
            weights: vec![channels, 4, 3, 3],
            bias: vec![1, channels, 1, 1],
            weights_are_constant: true,
        });
    }
}

/// A sequence of recurrent cells whose weights are constant, and inputs for it.
fn sequence(core: &Core, cell: &str, gates: usize, attributes: &str) -> (Model, Vec<Tensor>) {
    let (batch, steps, directions, input, hidden) = (3, 5, 2, 7, 24);
    let biases = gates + usize::from(attributes.contains("linear_before_reset=\"true\""));
    let states = [batch, directions, hidden];
    let mut inputs = vec![
        ("X", numbers(ElementType::F32, &[batch, steps, input], 1)),
        ("H", numbers(ElementType::F32, &states, 2)),
    ];
    if cell == "LSTM" {
        inputs.push(("C", numbers(ElementType::F32, &states, 3)));
    }
    inputs.push((
        "lengths",
        Tensor::from_slice(&[batch], &[5i32, 2, 0]).unwrap(),
    ));
    let count = inputs.len();
    let rows = gates * hidden;
    inputs.extend([
        (
            "W",
            numbers(ElementType::F32, &[directions, rows, input], 4),
        ),
        (
            "R",
            numbers(ElementType::F32, &[directions, rows, hidden], 5),
        ),
        (
            "B",
            numbers(ElementType::F32, &[directions, biases * hidden], 6),
        ),
    ]);
    let (mut layers, mut edges, mut bytes) = (String::new(), String::new(), Vec::new());
    let mut ports = String::new();
    for (id, (name, tensor)) in inputs.iter().enumerate() {
        let (ty, shape) = (tensor.element_type(), list(tensor.shape()));
        let (kind, place) = match id < count {
            true => ("Parameter", String::new()),
            false => {
                let place = format!(
                    " offset=\"{}\" size=\"{}\"",
                    bytes.len(),
                    tensor.bytes().len()
                );
                bytes.extend_from_slice(tensor.bytes());
                ("Const", place)
            }
        };
        layers += &format!(
            "<layer id=\"{id}\" name=\"{name}\" type=\"{kind}\" version=\"opset1\"><data element_type=\"{ty}\" \
             shape=\"{shape}\"{place}/><output><port id=\"0\"/></output></layer>"
        );
        ports += &format!("<port id=\"{id}\"/>");
        edges += &format!(
            "<edge from-layer=\"{id}\" from-port=\"0\" to-layer=\"20\" to-port=\"{id}\"/>"
        );
    }
    let text = format!(
        "<net name=\"g\" version=\"11\"><layers>{layers}<layer id=\"20\" name=\"sequence\" type=\"{cell}Sequence\" \
         version=\"opset5\"><data hidden_size=\"{hidden}\" direction=\"bidirectional\" {attributes}/><input>{ports}</input>\
         <output><port id=\"10\"/><port id=\"11\"/>{}</output></layer>\
         <layer id=\"21\" name=\"Y\" type=\"Result\" version=\"opset1\"><input><port id=\"0\"/></input></layer>\
         <layer id=\"22\" name=\"Ho\" type=\"Result\" version=\"opset1\"><input><port id=\"0\"/></input></layer>\
         </layers><edges>{edges}<edge from-layer=\"20\" from-port=\"10\" to-layer=\"21\" to-port=\"0\"/>\
         <edge from-layer=\"20\" from-port=\"11\" to-layer=\"22\" to-port=\"0\"/></edges></net>",
        if cell == "LSTM" {
            "<port id=\"12\"/>"
        } else {
            ""
        }
    );
    let model = core.read_model_from_memory(text.as_bytes(), bytes).unwrap();
    let tensors = inputs.into_iter().take(count).map(|(_, t)| t).collect();
    (model, tensors)
}

#[test]
fn recurrent_steps() {
    let core = Core::new().unwrap();
    let cells = [
        ("RNN", 1, ""),
        ("GRU", 3, "linear_before_reset=\"true\""),
        ("GRU", 3, "linear_before_reset=\"false\""),
        ("LSTM", 4, ""),
    ];
    for (cell, gates, attributes) in cells {
        let (model, inputs) = sequence(&core, cell, gates, attributes);
        let want = outputs(&core, &model, Level::Interpreted, &inputs).unwrap();
        for level in Level::ALL {
            let found = outputs(&core, &model, level, &inputs).unwrap();
            let pairs = found.iter().zip(&want);
            assert!(
                pairs.clone().all(|(a, b)| same(a, b)),
                "{level:?}: {cell} {attributes}"
            );
        }
    }
}
