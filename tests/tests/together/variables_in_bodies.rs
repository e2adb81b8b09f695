//! Variables that the body of a loop sets in each iteration, after runs that fail in one of them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vinelift::{Config, Core, Error, InferRequest, Level, RunOptions, Tensor};

/// In each of `trips` iterations `held = held + x` or, with `[?]` for its shape, `held = concat(held, x)`, which begins as `x`;
/// the iteration is the index of one of three elements.
fn text(update: &str, shape: &str, iteration: &str) -> String {
    let edges = |all: &[[u32; 4]]| -> String {
        let edge = |[from, out, to, input]: &[u32; 4]| {
            format!(
                r#"<edge from-layer="{from}" from-port="{out}" to-layer="{to}" to-port="{input}"/>"#
            )
        };
        all.iter().map(edge).collect()
    };
    let body = edges(&[
        [1, 0, 2, 0],
        [2, 1, 3, 0],
        [1, 0, 3, 1],
        [3, 2, 4, 0],
        [5, 0, 6, 0],
        [0, 0, 6, 1],
        [6, 2, 7, 0],
        [8, 0, 9, 0],
    ]);
    let outer = edges(&[[0, 0, 3, 0], [2, 0, 3, 1], [1, 0, 3, 2], [3, 3, 4, 0]]);
    let variable = format!(r#"variable_id="held" variable_type="f32" variable_shape="{shape}""#);
    format!(
        r#"<net name="m" version="11"><layers>
<layer id="0" name="trips" type="Parameter" version="opset1"><data shape="" element_type="i64"/><output><port id="0"/></output></layer>
<layer id="1" name="x" type="Parameter" version="opset1"><data shape="1" element_type="f32"/><output><port id="0"/></output></layer>
<layer id="2" name="go" type="Const" version="opset1"><data element_type="boolean" shape="" offset="0" size="1"/>
<output><port id="0"/></output></layer>
<layer id="3" name="loop" type="Loop" version="opset5"><port_map>
<input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/><input external_port_id="2" internal_layer_id="1"/>
<output external_port_id="3" internal_layer_id="7"/><output external_port_id="-1" internal_layer_id="9" purpose="execution_condition"/>
</port_map><input><port id="0"/><port id="1"/><port id="2"/></input><output><port id="3"/></output><body><layers>
<layer id="0" name="i" type="Parameter" version="opset1"><data {iteration}/><output><port id="0"/></output></layer>
<layer id="1" name="y" type="Parameter" version="opset1"><data shape="1" element_type="f32"/><output><port id="0"/></output></layer>
<layer id="2" name="read" type="ReadValue" version="opset6"><data {variable}/><input><port id="0"/></input>
<output><port id="1"/></output></layer>
<layer id="3" name="new" {update}<input><port id="0"/><port id="1"/></input><output><port id="2"/></output></layer>
<layer id="4" name="assign" type="Assign" version="opset6"><data {variable}/><input><port id="0"/></input>
<output><port id="1"/></output></layer>
<layer id="5" name="three" type="Const" version="opset1"><data element_type="f32" shape="3" offset="4" size="12"/>
<output><port id="0"/></output></layer>
<layer id="6" name="one" type="GatherElements" version="opset6"><data axis="0"/><input><port id="0"/><port id="1"/></input>
<output><port id="2"/></output></layer>
<layer id="7" name="result" type="Result" version="opset1"><input><port id="0"/></input></layer>
<layer id="8" name="more" type="Const" version="opset1"><data element_type="boolean" shape="" offset="0" size="1"/>
<output><port id="0"/></output></layer>
<layer id="9" name="condition" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>{body}</edges></body></layer>
<layer id="4" name="last" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>{outer}</edges></net>"#
    )
}

const ADD: &str = r#"type="Add" version="opset1"><data auto_broadcast="numpy"/>"#;
const ITERATION: &str = r#"shape="1" element_type="i64""#;

fn weights() -> Vec<u8> {
    [[1u8, 0, 0, 0]; 4].concat()
}

/// What the variable holds after a run of so many iterations, and how that ended.
fn run(
    request: &mut InferRequest,
    trips: i64,
    x: f32,
    is_cancelled: bool,
) -> (Option<Vec<f32>>, Result<(), Error>) {
    let trips = Tensor::from_slice(&[], &[trips]).unwrap();
    request.set_input("trips", trips).unwrap();
    let x = Tensor::from_slice(&[1], &[x]).unwrap();
    request.set_input("x", x).unwrap();
    let done = request.infer_with(RunOptions {
        stop: Some(&Arc::new(AtomicBool::new(is_cancelled))),
        ..RunOptions::default()
    });
    let held = request.variable("held");
    let held = held.map(|held| held.as_slice::<f32>().unwrap().to_vec());
    (held, done)
}

#[test]
fn a_run_that_fails_leaves_them_as_they_were() {
    let core = Core::new().unwrap();
    let weights = weights();
    let concat = r#"type="Concat" version="opset1"><data axis="0"/>"#;
    let cases: [(_, _, [&[f32]; 2]); 2] = [
        (ADD, "1", [&[3.0], &[13.0]]),
        (concat, "?", [&[1.0; 3], &[1.0, 1.0, 1.0, 10.0]]),
    ];
    for (update, shape, [first, second]) in cases {
        let model = text(update, shape, ITERATION);
        let model = core
            .read_model_from_memory(model.as_bytes(), weights.clone())
            .unwrap();
        for level in Level::ALL {
            let compiled = core
                .compile_model_with(&model, Config::new().level(level))
                .unwrap();
            let mut request = compiled.create_request();
            let fails = |request: &mut InferRequest, want: Option<&[f32]>| {
                let (held, done) = run(request, 5, 7.0, false);
                let message = done.unwrap_err().to_string();
                assert!(message.contains("is 3, expected -3..=2"), "{message}");
                assert_eq!(held.as_deref(), want);
                let (held, done) = run(request, 2, 7.0, true);
                assert!(matches!(done, Err(Error::Cancelled)));
                assert_eq!(held.as_deref(), want);
            };
            fails(&mut request, None);
            let (held, done) = run(&mut request, 2, 1.0, false);
            done.unwrap();
            assert_eq!(held.as_deref(), Some(first));
            fails(&mut request, Some(first));
            let (held, done) = run(&mut request, 1, 10.0, false);
            done.unwrap();
            assert_eq!(held.as_deref(), Some(second));
        }
    }
}

/// Another part of the model declares another shape for it.
#[test]
fn a_variable_that_holds_what_it_must_not_is_an_error() {
    let core = Core::new().unwrap();
    let another = r#"</edges></body></layer>
<layer id="5" name="two" type="Const" version="opset1"><data element_type="f32" shape="2" offset="4" size="8"/>
<output><port id="0"/></output></layer>
<layer id="6" name="other" type="ReadValue" version="opset6"><data variable_id="held" variable_type="f32" variable_shape="2"/>
<input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="7" name="second" type="Result" version="opset1"><input><port id="0"/></input></layer>"#;
    let edges = r#"<edge from-layer="5" from-port="0" to-layer="6" to-port="0"/>
<edge from-layer="6" from-port="1" to-layer="7" to-port="0"/></edges></net>"#;
    let model = text(ADD, "1", ITERATION);
    let model = model.replacen("</edges></body></layer>", another, 1);
    let model = model.replacen("</edges></net>", edges, 1);
    let model = core
        .read_model_from_memory(model.as_bytes(), weights())
        .unwrap();
    for level in Level::ALL {
        let compiled = core
            .compile_model_with(&model, Config::new().level(level))
            .unwrap();
        let mut request = compiled.create_request();
        let (held, done) = run(&mut request, 1, 1.0, false);
        done.unwrap();
        let (still, done) = run(&mut request, 1, 1.0, false);
        let message = done.unwrap_err().to_string();
        let want =
            "layer 'other' (ReadValue, opset6): variable 'held' must be f32[2], found f32[1]";
        assert!(message.ends_with(want), "{message}");
        assert_eq!(still, held);
    }
}

/// As in OpenVINO, the number of the iteration has the rank 0 or 1.
#[test]
fn the_iteration_is_one_number() {
    let core = Core::new().unwrap();
    let read = |iteration: &str| {
        let model = text(ADD, "1", iteration);
        let model = core.read_model_from_memory(model.as_bytes(), weights())?;
        core.compile_model(&model)
    };
    for fits in [
        ITERATION,
        r#"shape="?" element_type="i64""#,
        r#"shape="1" element_type="i32""#,
    ] {
        let compiled = read(fits).unwrap();
        run(&mut compiled.create_request(), 2, 1.0, false)
            .1
            .unwrap();
    }
    for (iteration, found) in [
        (r#"shape="1,1" element_type="i64""#, "i64[1, 1]"),
        (r#"shape="?,?" element_type="i64""#, "i64[?, ?]"),
        (r#"shape="3" element_type="i64""#, "i64[3]"),
        (r#"shape="1" element_type="f32""#, "f32[1]"),
    ] {
        let message = read(iteration).unwrap_err().to_string();
        let want = "layer 'loop' (Loop, opset5): the number of the iteration is i32 or i64, [] or [1], found a parameter";
        assert!(message.ends_with(&format!("{want} {found}")), "{message}");
    }
}
