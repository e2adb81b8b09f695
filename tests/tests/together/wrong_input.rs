//! Files and tensors that are wrong end in one clear error, whose text is part of what users rely on.

use vinelift::{Config, Core, Error, Level, Model, Tensor};

const PARAMETER: &str = r#"<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2,3" element_type="f32"/><output><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>"#;
const RESULT: &str = r#"<layer id="9" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>"#;

fn net(layers: &str, edges: &str) -> String {
    format!(r#"<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"#)
}

fn edge(from: (u64, u64), to: (u64, u64)) -> String {
    let ((a, b), (c, d)) = (from, to);
    format!(r#"<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>"#)
}

/// A layer of id 1 with ports for `inputs` inputs and one output.
fn layer(op: &str, version: &str, data: &str, inputs: u64) -> String {
    let ports: String = (0..inputs)
        .map(|i| format!(r#"<port id="{i}"/>"#))
        .collect();
    format!(
        r#"<layer id="1" name="op" type="{op}" version="{version}"><data {data}/><input>{ports}</input><output><port id="{inputs}"/></output></layer>"#
    )
}

fn unary(op: &str, version: &str, data: &str) -> String {
    let edges = edge((0, 0), (1, 0)) + &edge((1, 1), (9, 0));
    net(
        &(PARAMETER.to_owned() + &layer(op, version, data, 1) + RESULT),
        &edges,
    )
}

fn read(text: &str, weights: &'static [u8]) -> Result<Model, Error> {
    Core::new()?.read_model_from_memory(text.as_bytes(), weights)
}

fn compile_error(text: &str, weights: &'static [u8]) -> String {
    let compiled = read(text, weights).and_then(|model| Core::new()?.compile_model(&model));
    compiled
        .err()
        .map_or_else(|| "no error".to_owned(), |e| e.to_string())
}

#[track_caller]
fn expect(text: &str, message: &str) {
    assert_eq!(compile_error(text, &[]), format!("model: {message}"));
}

#[test]
fn what_is_no_xml() {
    assert_eq!(
        compile_error("", &[]),
        "model:1:1: expected `<net>`, found the end of the text"
    );
    assert_eq!(
        compile_error("<net", &[]),
        "model:1:1: syntax error: tag not closed: `>` not found before end of input"
    );
    let bomb = r#"<!DOCTYPE net [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><net version="11"/>"#;
    assert!(
        compile_error(bomb, &[]).contains("DOCTYPE"),
        "{}",
        compile_error(bomb, &[])
    );
    let deep = "<a>".repeat(100_000);
    assert!(
        compile_error(&deep, &[]).contains("model:1:"),
        "{}",
        compile_error(&deep, &[])
    );
}

#[test]
fn what_is_no_ir() {
    expect(
        r#"<net name="m" version="7"><layers/><edges/></net>"#,
        "IR version 7 is unsupported, expected 10 or 11",
    );
    let twice = net(&(PARAMETER.to_owned() + PARAMETER), "");
    expect(
        &twice,
        "layer 'x' (Parameter, opset1): another layer has the id 0 too",
    );
}

#[test]
fn edges_that_lead_nowhere() {
    let layers = PARAMETER.to_owned() + &layer("Abs", "opset1", "", 1) + RESULT;
    let close = edge((1, 1), (9, 0));
    expect(
        &net(&layers, &(edge((5, 0), (1, 0)) + &close)),
        "edge from layer 5 port 0 to layer 1 port 0: there is no layer 5",
    );
    expect(
        &net(&layers, &(edge((0, 7), (1, 0)) + &close)),
        "edge from layer 0 port 7 to layer 1 port 0: layer 'x' (Parameter, opset1) has no output port 7",
    );
    expect(
        &net(&layers, &close),
        "layer 'op' (Abs, opset1): 0 edges to input port 0, expected 1",
    );
    let second = layer("Result", "opset1", "", 1);
    expect(
        &net(
            &(PARAMETER.to_owned() + &second + RESULT),
            &(edge((0, 0), (1, 0)) + &close),
        ),
        "edge from layer 1 port 1 to layer 9 port 0: layer 'op' (Result, opset1) has nothing for other layers",
    );
    let double = edge((0, 0), (1, 0)).repeat(2) + &close;
    expect(
        &net(&layers, &double),
        "layer 'op' (Abs, opset1): 2 edges to input port 0, expected 1",
    );
    let cycle = edge((1, 1), (1, 0)) + &close;
    expect(
        &net(&layers, &cycle),
        "the graph has a cycle through layer 'op' (Abs, opset1)",
    );
}

#[test]
fn operators_that_are_not_there_are_listed_together() {
    let other = layer("Frobnicate", "opset3", "", 1)
        .replace(r#"id="1" name="op""#, r#"id="2" name="frob""#);
    let layers = PARAMETER.to_owned() + &layer("Abs", "opset99", "", 1) + &other + RESULT;
    let edges = edge((0, 0), (1, 0)) + &edge((1, 1), (2, 0)) + &edge((2, 1), (9, 0));
    expect(
        &net(&layers, &edges),
        "2 layers are wrong:\n  layer 'op' (Abs, opset99): unsupported operator version, known are opset1\n  \
         layer 'frob' (Frobnicate, opset3): unsupported operator",
    );
}

#[test]
fn attributes_that_do_not_fit() {
    let start = "layer 'op' (Clamp, opset1): attribute ";
    expect(
        &unary("Clamp", "opset1", r#"min="0""#),
        &format!("{start}missing field `max`"),
    );
    expect(
        &unary("Clamp", "opset1", r#"min="zero" max="1""#),
        &format!("{start}`min` must be a number, found `zero`"),
    );
    let unknown = compile_error(
        &unary("Clamp", "opset1", r#"min="0" max="1" mode="x""#),
        &[],
    );
    assert!(unknown.contains("unknown field `mode`"), "{unknown}");
}

#[test]
fn constants_outside_the_weights() {
    let constant = |data: &str| {
        let layer = format!(
            r#"<layer id="0" name="c" type="Const" version="opset1"><data {data}/><output><port id="0" precision="F32"/></output></layer>"#
        );
        net(&(layer + RESULT), &edge((0, 0), (9, 0)))
    };
    let message = |data: &str, weights| compile_error(&constant(data), weights);
    assert_eq!(
        message(
            r#"element_type="f32" shape="2" offset="4" size="8""#,
            b"12345678"
        ),
        "model: layer 'c' (Const, opset1): constant at offset 4 of 8 bytes exceeds the weights of 8 bytes"
    );
    assert_eq!(
        message(
            r#"element_type="f32" shape="3" offset="0" size="8""#,
            b"12345678"
        ),
        "model: layer 'c' (Const, opset1): f32[3] needs 12 bytes, but its size is 8"
    );
    assert_eq!(
        message(
            r#"element_type="f32" shape="4611686018427387904, 8" offset="0" size="8""#,
            b"12345678"
        ),
        "model: layer 'c' (Const, opset1): f32[4611686018427387904, 8] is too large"
    );
    assert_eq!(
        message(
            r#"element_type="f33" shape="1" offset="0" size="8""#,
            b"12345678"
        ),
        "model: layer 'c' (Const, opset1): attribute unknown element type `f33`"
    );
    assert!(
        message(
            r#"element_type="f32" shape="1" offset="18446744073709551615" size="8""#,
            b""
        )
        .contains("exceeds the weights")
    );
}

#[test]
fn shapes_that_overflow() {
    let wide = PARAMETER.replace("2,3", "4294967296,4294967296");
    let edges = edge((0, 0), (1, 0)) + &edge((1, 1), (9, 0));
    let message = compile_error(
        &net(&(wide + &layer("Abs", "opset1", "", 1) + RESULT), &edges),
        &[],
    );
    assert!(message.contains("too large"), "{message}");
}

#[test]
fn inputs_that_do_not_fit() {
    let core = Core::new().unwrap();
    let model = core
        .read_model_from_memory(vinelift::doc::GATHER.as_bytes(), Vec::new())
        .unwrap();
    let mut request = core.compile_model(&model).unwrap().create_request();
    let error = |result: Result<(), Error>| result.unwrap_err().to_string();
    let floats = Tensor::from_slice(&[2, 2], &[0.0f32; 4]).unwrap();
    assert_eq!(
        error(request.infer()),
        "model: no tensor for input 'data' f32[2, 2], 'indices' i32[?, 2]"
    );
    assert_eq!(
        error(request.set_input("indices", floats.clone())),
        "model: input 'indices' must be i32[?, 2], found f32[2, 2]"
    );
    assert_eq!(
        error(request.set_input("data", floats.reshaped(&[4]).unwrap())),
        "model: input 'data' must be f32[2, 2], found f32[4]"
    );
    assert_eq!(
        error(request.set_input("date", floats.clone())),
        "model: the model has no input 'date', its inputs are 'data', 'indices'"
    );
    request.set_input("data", floats).unwrap();
    assert_eq!(
        error(request.infer()),
        "model: no tensor for input 'indices' i32[?, 2]"
    );
}

/// The same message at every level, and the request can be used again.
#[test]
fn indices_out_of_range() {
    let core = Core::new().unwrap();
    let model = core
        .read_model_from_memory(vinelift::doc::GATHER.as_bytes(), Vec::new())
        .unwrap();
    for level in Level::ALL {
        let config = Config {
            level,
            ..Config::default()
        };
        let mut request = core
            .compile_model_with(&model, config)
            .unwrap()
            .create_request();
        let data = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        request.set_input("data", data).unwrap();
        for (bad, position) in [(2, 0), (-3, 3), (i32::MAX, 5), (i32::MIN, 4)] {
            let mut indices = [0i32; 6];
            indices[position] = bad;
            request
                .set_input("indices", Tensor::from_slice(&[3, 2], &indices).unwrap())
                .unwrap();
            let want = format!(
                "model: layer 'gathered' (GatherElements, opset6): `indices`[{}, {}] is {bad}, expected -2..=1",
                position / 2,
                position % 2
            );
            assert_eq!(
                request.infer().unwrap_err().to_string(),
                want,
                "{}",
                level.name()
            );
            assert!(request.outputs().is_empty());
        }
        request
            .set_input("indices", Tensor::from_slice(&[1, 2], &[1i32, -2]).unwrap())
            .unwrap();
        request.infer().unwrap();
        assert_eq!(
            *request.output(0).unwrap().as_slice::<f32>().unwrap(),
            [3.0, 2.0]
        );
    }
}

/// Found by fuzzing: the levels named different indices where one access has several that are wrong.
#[test]
fn of_several_wrong_indices_the_first_is_named() {
    let core = Core::new().unwrap();
    let sample = vinelift_tests::repository().join("ir-samples/gather_nd/onnx_1.xml");
    let model = core.read_model(&sample).unwrap();
    let fault = "layer 'out' (GatherND, opset8): `indices`[1, 0] is 7, expected -2..=1";
    for level in Level::ALL {
        let config = Config {
            level,
            ..Config::default()
        };
        let compiled = core.compile_model_with(&model, config).unwrap();
        let mut request = compiled.create_request();
        let data = Tensor::from_slice(&[2, 2], &[0i32, 1, 2, 3]).unwrap();
        let indices = Tensor::from_slice(&[2, 2], &[0i64, 1, 7, -9]).unwrap();
        request.set_input("data", data).unwrap();
        request.set_input("indices", indices).unwrap();
        assert_eq!(
            request.infer().unwrap_err().to_string(),
            format!("{}: {fault}", sample.display()),
            "{}",
            level.name()
        );
    }
}

/// A loop over a body of `layers`, whose port map, back edges and own input are given.
fn repeated(op: &str, version: &str, ports: &str, inputs: &str, layers: &str) -> String {
    let body = format!("<body><layers>{layers}</layers><edges>{BODY_EDGE}</edges></body>");
    let layer = format!(
        r#"<layer id="1" name="op" type="{op}" version="{version}"><input>{inputs}</input><output><port id="9"/></output>{ports}{body}</layer>"#
    );
    let edges = edge((0, 0), (1, 0)) + &edge((1, 9), (9, 0));
    net(&(PARAMETER.to_owned() + &layer + RESULT), &edges)
}

const BODY_EDGE: &str = r#"<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>"#;
const BODY: &str = r#"<layer id="0" name="p" type="Parameter" version="opset1"><data shape="?,3" element_type="f32"/><output><port id="0"/></output></layer><layer id="1" name="q" type="Result" version="opset1"><input><port id="0"/></input></layer>"#;
const PORT: &str = r#"<port id="0"/>"#;

#[test]
fn sub_graphs_that_do_not_fit() {
    let iterator =
        |ports: &str, layers: &str| repeated("TensorIterator", "opset1", ports, PORT, layers);
    let map = |input: &str, output: &str| {
        format!("<port_map><input {input}/><output {output}/></port_map>")
    };
    let (input, output) = (
        r#"external_port_id="0" internal_layer_id="0""#,
        r#"external_port_id="9" internal_layer_id="1""#,
    );
    let message = |ports: &str, layers: &str, text: &str| {
        let problem = format!("layer 'op' (TensorIterator, opset1): {text}");
        expect(&iterator(ports, layers), &problem);
    };
    message("", BODY, "it has no input for layer 0 of its body");
    let other = r#"external_port_id="0" internal_layer_id="7""#;
    message(
        &map(other, output),
        BODY,
        "it has no Parameter 7 in its body",
    );
    let other = r#"external_port_id="5" internal_layer_id="0""#;
    message(&map(other, output), BODY, "it has no input port 5");
    let other = r#"external_port_id="4" internal_layer_id="1""#;
    message(&map(input, other), BODY, "it has no result for its port 9");
    let still = format!(r#"{input} axis="0" stride="0""#);
    let text = "slices of 1 with a stride of 0, expected more than 0";
    message(&map(&still, output), BODY, text);
    let beyond = format!(r#"{input} axis="2""#);
    let text = "axis 2 of [2, 3], which it does not have";
    message(&map(&beyond, output), BODY, text);
    let integers = BODY.replace("f32", "i32");
    let text = "in its body: layer 'p' (Parameter, opset1): it gets f32[2, 3], expected i32";
    message(&map(input, output), &integers, text);
    // The type of the parameter is found out before layers that cannot run are reported.
    let parameter = r#"<layer id="2" name="p" type="Parameter" version="opset1"><data shape="..." element_type="dynamic"/><output><port id="0"/></output></layer>"#;
    let foo = BODY.replace("Parameter", "Foo") + parameter;
    let text = "in its body: layer 'p' (Foo, opset1): unsupported operator";
    message(
        &map(&input.replace("layer_id=\"0", "layer_id=\"2"), output),
        &foo,
        text,
    );
    let unknown = BODY.replace("Result", "Resolt");
    message(
        &map(input, output),
        &unknown,
        "it has no Result 1 in its body",
    );
    let text = repeated("Loop", "opset5", &map(input, output), PORT, BODY);
    let message = "layer 'op' (Loop, opset5): 1 inputs, expected at least 2";
    expect(&text, message);
}

#[test]
fn bodies_nest_only_so_deep() {
    let mut layers = BODY.to_owned();
    for _ in 0..40 {
        layers = format!(
            r#"<layer id="0" name="p" type="Parameter" version="opset1"><data shape="2,3" element_type="f32"/><output><port id="0"/></output></layer><layer id="5" name="inner" type="TensorIterator" version="opset1"><input>{PORT}</input><output><port id="1"/></output><port_map><input external_port_id="0" internal_layer_id="0"/><output external_port_id="1" internal_layer_id="1"/></port_map><body><layers>{layers}</layers><edges>{BODY_EDGE}</edges></body></layer><layer id="1" name="q" type="Result" version="opset1"><input><port id="0"/></input></layer>"#
        );
    }
    let ports = r#"<port_map><input external_port_id="0" internal_layer_id="0"/><output external_port_id="9" internal_layer_id="1"/></port_map>"#;
    let text = repeated("TensorIterator", "opset1", ports, PORT, &layers);
    expect(&text, "sub-graphs nest deeper than 8");
}

/// A loop over the body, whose output is the last result, or with `slices` the results side by side. The first eight bytes of
/// the weights are its trip count; the ninth is the condition, of which there is a copy in the body.
fn endless(slices: &str) -> String {
    let constant = |id: u64, ty: &str, offset: u64, size: u64| {
        format!(
            r#"<layer id="{id}" name="c{id}" type="Const" version="opset1"><data element_type="{ty}" shape="" offset="{offset}" size="{size}"/><output><port id="0"/></output></layer>"#
        )
    };
    let body_layers = BODY.to_owned()
        + &constant(2, "boolean", 8, 1)
        + r#"<layer id="3" name="goes_on" type="Result" version="opset1"><input><port id="0"/></input></layer>"#;
    let body_edges = BODY_EDGE.to_owned() + &edge((2, 0), (3, 0));
    let ports = format!(
        r#"<port_map><input external_port_id="2" internal_layer_id="0"/><output external_port_id="9" internal_layer_id="1" {slices}/><output external_port_id="-1" internal_layer_id="3" purpose="execution_condition"/></port_map><back_edges><edge from-layer="1" to-layer="0"/></back_edges>"#
    );
    let layer = format!(
        r#"<layer id="1" name="op" type="Loop" version="opset5"><input><port id="0"/><port id="1"/><port id="2"/></input><output><port id="9"/></output>{ports}<body><layers>{body_layers}</layers><edges>{body_edges}</edges></body></layer>"#
    );
    let layers = PARAMETER.to_owned()
        + &constant(5, "i64", 0, 8)
        + &constant(6, "boolean", 8, 1)
        + &layer
        + RESULT;
    let edges = [
        edge((5, 0), (1, 0)),
        edge((6, 0), (1, 1)),
        edge((0, 0), (1, 2)),
    ]
    .concat()
        + &edge((1, 9), (9, 0));
    net(&layers, &edges)
}

#[test]
fn a_loop_that_cannot_end() {
    let text = endless("");
    let weights = &[255, 255, 255, 255, 255, 255, 255, 255, 1];
    assert_eq!(
        compile_error(&text, weights),
        "model: layer 'op' (Loop, opset5): it never ends"
    );
    let three = &[3, 0, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(compile_error(&text, three), "no error");
}

#[test]
fn a_loop_whose_output_fits_no_memory() {
    let text = endless(r#"axis="0" start="0" end="-1" stride="1" part_size="2""#);
    let many = &[0, 0, 0, 0, 0, 0, 4, 0, 1];
    let model = read(&text, many).unwrap();
    let compiled = Core::new().unwrap().compile_model(&model).unwrap();
    let mut request = compiled.create_request();
    let x = Tensor::from_slice(&[2, 3], &[0f32; 6]).unwrap();
    request.set_input("x", x).unwrap();
    assert_eq!(
        request.infer().unwrap_err().to_string(),
        "model: layer 'op' (Loop, opset5): out of memory: cannot allocate 27021597764222976 bytes"
    );
}
