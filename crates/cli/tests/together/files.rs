//! Files for inputs, files that are no models, and what is printed of outputs.

use crate::common::{GATHER, ints, model, npy, run};
use std::fs;
use std::path::Path;

/// A file of 4-bit elements has their bytes; `--shape` says what shape they have.
#[test]
fn packed_elements_of_a_dynamic_shape() {
    let xml = r#"<net name="m" version="11"><layers><layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,3" element_type="u4"/><output><port id="0"/></output></layer><layer id="1" name="y" type="Convert" version="opset1"><data destination_type="i32"/><input><port id="0"/></input><output><port id="1"/></output></layer><layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"#;
    let (dir, path) = model(xml);
    let file = dir.path().join("x.npy");
    npy(&file, "|u1", "4,", &[[0x21, 0x43, 0x65, 0x07]]);
    let input = format!("x={}", file.display());
    let run = |more: &[&str]| run(&[&["run", &path, "--input", &input], more].concat());

    let (status, out, message) = run(&["--shape", "x=2,3"]);
    assert_eq!(status, 1, "{out}");
    assert!(
        message.ends_with("expected shape [3], found [4]\n"),
        "{message}"
    );
    npy(&file, "|u1", "4,", &[[0x21, 0x43, 0x65, 0x87]]);
    let (status, out, message) = run(&["--shape", "x=1,3"]);
    assert_eq!(
        (status, message.contains("expected shape [2]")),
        (1, true),
        "{out}{message}"
    );
    let (status, _, message) = run(&[]);
    let hint =
        "a file of packed u4 does not say its shape, and [?, 3] is not static: `--shape` gives it";
    assert_eq!(
        (status, message),
        (1, format!("error: input 'x': {hint}\n"))
    );
    // The 8th element is past the end of the shape, which has 7 in 4 bytes.
    fs::write(&path, xml.replace("?,3", "?")).unwrap();
    let (status, out, message) = run(&["--shape", "x=7"]);
    assert_eq!((status, message.as_str()), (0, ""));
    assert_eq!(out, "y i32[7]\n  1  2  3  4  5  6  7\n");
}

#[test]
fn what_is_wrong_with_inputs_is_said() {
    let (_dir, path) = model(GATHER);
    let error = |arguments: &[&str]| {
        let (status, out, error) = run(&[&["run", &path], arguments].concat());
        assert_eq!((status, out.as_str()), (1, ""), "{error}");
        error
    };
    assert_eq!(
        error(&[]),
        "error: no tensor for input 'data' f32[2, 2], 'indices' i32[?, 2]: `--input data=FILE` gives one, and `--random` fills all that have none\n"
    );
    assert_eq!(
        error(&["--random"]),
        "error: input 'indices' has the dynamic shape [?, 2], and none was given: `--shape indices=1,2` gives it one, for example\n"
    );
    // 2^51 numbers of 4 bytes, which no process can address.
    assert_eq!(
        error(&["--random", "--shape", "indices=1125899906842624,2"]),
        "error: input 'indices': out of memory: cannot allocate 9007199254740992 bytes\n"
    );
    assert_eq!(
        error(&["--input", "x=y"]),
        "error: the model has no input 'x', its inputs are 'data', 'indices'\n"
    );
    assert_eq!(
        error(&["--input", "indexes=y"]),
        "error: the model has no input 'indexes' (did you mean 'indices'?), its inputs are 'data', 'indices'\n"
    );
    let wrong = "error: input 'data' has shape [2, 2], and cannot have [3]\n";
    assert_eq!(error(&["--random", "--shape", "data=3"]), wrong);
}

#[test]
fn misspelt_operators_are_recognised() {
    let (_dir, path) = model(&GATHER.replace("\"GatherElements\"", "\"GatherElement\""));
    let (status, _, error) = run(&["run", &path, "--random"]);
    let want = "unsupported operator (did you mean GatherElements?)";
    assert!(status == 1 && error.contains(want), "{error}");
}

#[test]
fn other_files_are_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let error = |name: &str| {
        let (status, out, error) = run(&["info", &at(name)]);
        assert_eq!((status, out.as_str()), (1, ""));
        error
    };
    fs::write(at("net.onnx"), b"\x08\x07\x12\x07pytorch").unwrap();
    let found = error("net.onnx");
    assert!(
        found.contains("this is a model of ONNX, not OpenVINO IR"),
        "{found}"
    );
    let command = format!("ovc {} --output_model net.xml\n", at("net.onnx"));
    assert!(found.ends_with(&command), "{found}");
    fs::write(
        at("old.xml"),
        GATHER.replace("version=\"11\"", "version=\"9\""),
    )
    .unwrap();
    let found = error("old.xml");
    assert!(
        found.contains("IR version 9 is unsupported, expected 10 or 11. "),
        "{found}"
    );
    // Constants in a file that there is not.
    let digits = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../ir-samples/models/digits/digits.xml"
    );
    fs::copy(digits, at("alone.xml")).unwrap();
    let found = error("alone.xml");
    let want = format!(
        "error: {}: there is no such file, which has the constants of `{}`; `--weights FILE.bin` names another\n",
        at("alone.bin"),
        at("alone.xml")
    );
    assert_eq!(found, want);
}

#[test]
fn outputs_are_printed_as_asked_for() {
    let (dir, path) = model(GATHER);
    let at = |name: &str| dir.path().join(name).display().to_string();
    let doubles: Vec<[u8; 4]> = [1.0f64, f64::NAN, 3.0, 0.1]
        .iter()
        .flat_map(|x| {
            let [a, b, c, d, e, f, g, h] = x.to_le_bytes();
            [[a, b, c, d], [e, f, g, h]]
        })
        .collect();
    npy(Path::new(&at("a.npy")), "<f8", "2, 2", &doubles);
    ints(Path::new(&at("b.npy")), "2, 2", &[1, 0, 0, 1]);
    let arguments = [
        "run",
        &path,
        "--input",
        &at("a.npy"),
        "--input",
        &at("b.npy"),
    ];
    let (status, _, error) = run(&arguments);
    assert!(
        status == 1 && error.ends_with(": `--cast` casts them\n"),
        "{error}"
    );
    let run = |more: &[&str]| {
        let (status, out, error) = run(&[&arguments[..], &["--cast"], more].concat());
        assert_eq!((status, error.as_str()), (0, ""), "{more:?}");
        out
    };
    let json: serde_json::Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let output = &json["outputs"][0];
    assert_eq!(output["name"], "gathered");
    assert_eq!(output["element_type"], "f32");
    assert_eq!(output["shape"], serde_json::json!([2, 2]));
    assert_eq!(output["data"], serde_json::json!([3.0, "NaN", 1.0, 0.1]));
    fs::write(at("labels.txt"), "cat\ndog\n").unwrap();
    let labels = at("labels.txt");
    let out = run(&["--top", "1", "--labels", &labels]);
    let want = "gathered f32[2, 2]\n  row 0\n      3.000000       0  cat\n  row 1\n      1.000000       0  cat\n";
    assert_eq!(out, want);
}

#[test]
fn shapes_that_are_missing_are_named_all_at_once() {
    let input = |id: usize, name: &str, shape: &str| {
        format!(
            r#"<layer id="{id}" name="{name}" type="Parameter" version="opset1"><data shape="{shape}" element_type="f32"/><output><port id="0"/></output></layer><layer id="1{id}" name="of_{name}" type="Result" version="opset1"><input><port id="0"/></input></layer>"#
        )
    };
    let of = |shapes: &[(&str, &str)]| {
        let layers: String = (0..)
            .zip(shapes)
            .map(|(id, (name, shape))| input(id, name, shape))
            .collect();
        let edges: String = (0..shapes.len())
            .map(|id| {
                format!(r#"<edge from-layer="{id}" from-port="0" to-layer="1{id}" to-port="0"/>"#)
            })
            .collect();
        let (_dir, path) = model(&format!(
            r#"<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"#
        ));
        let (status, _, error) = run(&["run", &path, "--random"]);
        assert_eq!(status, 1);
        error
    };
    assert_eq!(
        of(&[("x", "?,3,?,?")]),
        "error: input 'x' has the dynamic shape [?, 3, ?, ?], and none was given: `--shape x=1,3,224,224` gives it one, for example\n"
    );
    assert_eq!(
        of(&[("ids", "?,?"), ("scale", "2"), ("mask", "?,4..")]),
        "error: inputs have dynamic shapes, and none were given: 'ids' [?, ?], 'mask' [?, 4..]: `--shape ids=1,1 --shape mask=1,4` gives them some, for example\n"
    );
}
