//! Variables that are updated where they are: what they hold, and after runs that fail.

use crate::{CompiledModel, Core, ElementType, InferRequest, Level, Tensor};
use std::fmt::Write;

const ROWS: usize = 100;
const COLUMNS: usize = 4;

/// A layer with ports of these types and shapes, as `f32[2,4]`.
fn layer(xml: &mut String, id: usize, ty: &str, data: &str, inputs: &[&str], outputs: &[&str]) {
    let version = match ty {
        "ScatterNDUpdate" => "opset15",
        "GatherND" => "opset8",
        "ReadValue" | "Assign" => "opset6",
        _ => "opset1",
    };
    let ports = |port: usize, all: &[&str]| -> String {
        let port = |(k, text): (usize, &&str)| {
            let (precision, shape) = text.split_once('[').unwrap();
            let dims = shape.trim_end_matches(']').split(',');
            let dims: String = dims.map(|d| format!("<dim>{d}</dim>")).collect();
            let id = port + k;
            format!(r#"<port id="{id}" precision="{precision}">{dims}</port>"#)
        };
        all.iter().enumerate().map(port).collect()
    };
    let (read, written) = (ports(0, inputs), ports(inputs.len(), outputs));
    write!(
        xml,
        r#"<layer id="{id}" name="{ty}_{id}" type="{ty}" version="{version}">"#
    )
    .unwrap();
    write!(
        xml,
        "{data}<input>{read}</input><output>{written}</output></layer>"
    )
    .unwrap();
}

/// `cache[indices] += updates`, and then `result = cache[late]`.
fn model(level: Level) -> CompiledModel {
    let (cache, row) = ("FP32[100,4]", "FP32[1,4]");
    let variable = r#"<data variable_id="cache" variable_type="f32" variable_shape="100,4"/>"#;
    let parameter =
        |ty: &str, shape: &str| format!(r#"<data element_type="{ty}" shape="{shape}"/>"#);
    let mut xml = String::from(r#"<net name="m" version="11"><layers>"#);
    let layers: [(&str, String, &[&str], &[&str]); 9] = [
        ("Parameter", parameter("i64", "2,1"), &[], &["I64[2,1]"]),
        ("Parameter", parameter("f32", "2,4"), &[], &["FP32[2,4]"]),
        ("Parameter", parameter("i64", "1,1"), &[], &["I64[1,1]"]),
        (
            "Const",
            r#"<data element_type="f32" shape="100,4" offset="0" size="1600"/>"#.to_owned(),
            &[],
            &[cache],
        ),
        ("ReadValue", variable.to_owned(), &[cache], &[cache]),
        (
            "ScatterNDUpdate",
            r#"<data reduction="sum"/>"#.to_owned(),
            &[cache, "I64[2,1]", "FP32[2,4]"],
            &[cache],
        ),
        (
            "Assign",
            r#"<data variable_id="cache"/>"#.to_owned(),
            &[cache],
            &[],
        ),
        (
            "GatherND",
            r#"<data batch_dims="0"/>"#.to_owned(),
            &[cache, "I64[1,1]"],
            &[row],
        ),
        ("Result", String::new(), &[row], &[]),
    ];
    for (id, (ty, data, inputs, outputs)) in layers.iter().enumerate() {
        layer(&mut xml, id, ty, data, inputs, outputs);
    }
    xml.push_str("</layers><edges>");
    for [from, port, to, input] in [
        [3, 0, 4, 0],
        [4, 1, 5, 0],
        [0, 0, 5, 1],
        [1, 0, 5, 2],
        [5, 3, 6, 0],
        [5, 3, 7, 0],
        [2, 0, 7, 1],
        [7, 2, 8, 0],
    ] {
        write!(
            xml,
            r#"<edge from-layer="{from}" from-port="{port}" to-layer="{to}" to-port="{input}"/>"#
        )
        .unwrap();
    }
    xml.push_str("</edges></net>");
    let core = Core::new().unwrap();
    let model = core.read_model_from_memory(xml.as_bytes(), vec![0; 1600]);
    let config = crate::Config {
        level,
        ..crate::Config::default()
    };
    core.compile_model_with(&model.unwrap(), config).unwrap()
}

fn run(
    request: &mut InferRequest,
    indices: [i64; 2],
    updates: [f32; 2],
    late: i64,
) -> Result<Vec<f32>, String> {
    let updates: Vec<f32> = updates.iter().flat_map(|u| [*u; COLUMNS]).collect();
    let inputs = [
        Tensor::from_slice(&[2, 1], &indices),
        Tensor::from_slice(&[2, COLUMNS], &updates),
        Tensor::from_slice(&[1, 1], &[late]),
    ];
    for (k, input) in inputs.into_iter().enumerate() {
        request.set_input_at(k, input.unwrap()).unwrap();
    }
    request.infer().map_err(|e| e.to_string())?;
    Ok(numbers(request.output(0).unwrap()))
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    assert_eq!(tensor.element_type(), ElementType::F32);
    tensor.as_slice::<f32>().unwrap().to_vec()
}

/// The first column of what the variable holds, whose columns are all the same.
fn held(request: &InferRequest) -> Vec<f32> {
    let all = numbers(request.variable("cache").unwrap());
    assert!(
        all.chunks(COLUMNS)
            .all(|row| row.iter().all(|x| *x == row[0]))
    );
    all.chunks(COLUMNS).map(|row| row[0]).collect()
}

fn place(request: &InferRequest) -> *const u8 {
    request.variable("cache").unwrap().bytes().as_ptr()
}

#[test]
fn a_few_elements_are_changed_where_they_are() {
    for level in [Level::Scheduled, Level::Compiled] {
        let mut request = model(level).create_request();
        let mut want = vec![0.0; ROWS];
        let mut places = Vec::new();
        for (k, indices) in [[3, -1], [5, 5], [-100, 99], [0, 3], [7, 8]]
            .into_iter()
            .enumerate()
        {
            let updates = [k as f32 + 1.0, 100.0];
            let row = run(&mut request, indices, updates, indices[0]).unwrap();
            for (index, update) in indices.iter().zip(updates) {
                want[index.rem_euclid(ROWS as i64) as usize] += update;
            }
            assert_eq!(held(&request), want);
            assert_eq!(
                row,
                [want[indices[0].rem_euclid(ROWS as i64) as usize]; COLUMNS]
            );
            places.push(place(&request));
        }
        // The first run has no variable yet.
        let stays = places[1..].iter().all(|p| *p == places[1]);
        assert_eq!(stays, level == Level::Scheduled);
    }
}

#[test]
fn what_others_hold_does_not_change() {
    let mut request = model(Level::Scheduled).create_request();
    run(&mut request, [1, 2], [1.0, 2.0], 0).unwrap();
    run(&mut request, [1, 2], [1.0, 2.0], 0).unwrap();
    let kept = request.variable("cache").unwrap().clone();
    let before = numbers(&kept);
    for _ in 0..3 {
        run(&mut request, [1, 2], [1.0, 2.0], 0).unwrap();
        assert_ne!(place(&request), kept.bytes().as_ptr());
    }
    assert_eq!(numbers(&kept), before);
    assert_eq!(held(&request)[..3], [0.0, 5.0, 10.0]);
    // Nor does what they have set it to.
    request.set_variable("cache", kept.clone()).unwrap();
    run(&mut request, [1, 2], [1.0, 2.0], 0).unwrap();
    assert_eq!(numbers(&kept), before);
    assert_eq!(held(&request)[..3], [0.0, 3.0, 6.0]);
}

#[test]
fn a_run_that_fails_takes_its_changes_back() {
    let mut request = model(Level::Scheduled).create_request();
    run(&mut request, [1, 2], [1.0, 2.0], 0).unwrap();
    run(&mut request, [3, 4], [3.0, 4.0], 0).unwrap();
    let before = held(&request);
    let memory = place(&request);
    // The update is done when the last node finds its index wrong; an update itself is checked before.
    for (indices, late) in [
        ([7, 1], 100),
        ([9, 9], i64::MIN),
        ([1, 100], 0),
        ([-101, 2], 0),
    ] {
        let error = run(&mut request, indices, [5.0, 6.0], late).unwrap_err();
        assert!(error.contains("GatherND_7") == (late != 0), "{error}");
        assert_eq!(held(&request), before);
        assert_eq!(place(&request), memory);
    }
    run(&mut request, [7, 1], [5.0, 6.0], 0).unwrap();
    assert_eq!(place(&request), memory);
    let mut want = before;
    want[7] += 5.0;
    want[1] += 6.0;
    assert_eq!(held(&request), want);
}
