//! Exit status, and the form of messages.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const GATHER: &str = vinelift::doc::GATHER;

fn vinelift(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vinelift"));
    command.args(arguments);
    command
}

/// Status, stdout, stderr.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = vinelift(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

/// A directory with `model.xml`, and its path as text.
fn model(xml: &str) -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.xml");
    fs::write(&path, xml).unwrap();
    let path = path.display().to_string();
    (dir, path)
}

/// An `.npy` file of little-endian values.
fn npy(path: &Path, descr: &str, shape: &str, values: &[[u8; 4]]) {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let header = format!("{header:117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(values.as_flattened());
    fs::write(path, bytes).unwrap();
}

fn floats(path: &Path, shape: &str, values: &[f32]) {
    npy(
        path,
        "<f4",
        shape,
        &values.iter().map(|x| x.to_le_bytes()).collect::<Vec<_>>(),
    );
}

fn ints(path: &Path, shape: &str, values: &[i32]) {
    npy(
        path,
        "<i4",
        shape,
        &values.iter().map(|x| x.to_le_bytes()).collect::<Vec<_>>(),
    );
}

/// A case directory: gathers `indices` from 1, 2, 3, 4 and expects `out`.
fn case(dir: &Path, expect: &str, indices: [i32; 2], out: [f32; 2]) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("model.xml"), GATHER).unwrap();
    floats(&dir.join("in_0.npy"), "2, 2", &[1.0, 2.0, 3.0, 4.0]);
    ints(&dir.join("in_1.npy"), "1, 2", &indices);
    floats(&dir.join("out_0.npy"), "1, 2", &out);
    let meta = format!(
        r#"{{"name": "case", "expect": "{expect}", "rtol": 0.001, "atol": 0, "inputs": [
            {{"name": "data", "element_type": "f32", "shape": [2, 2], "storage": "native", "file": "in_0.npy"}},
            {{"name": "indices", "element_type": "i32", "shape": [1, 2], "storage": "native", "file": "in_1.npy"}}],
        "outputs": [
            {{"name": "out", "element_type": "f32", "shape": [1, 2], "storage": "native", "file": "out_0.npy"}}]}}"#
    );
    fs::write(dir.join("meta.json"), meta).unwrap();
}

#[test]
fn run_prints_and_writes_the_outputs() {
    let (dir, path) = model(GATHER);
    floats(&dir.path().join("a.npy"), "2, 2", &[1.0, 2.0, 3.0, 4.0]);
    ints(&dir.path().join("b.npy"), "1, 2", &[1, 0]);
    let at = |name: &str| dir.path().join(name).display().to_string();
    let named = format!("indices={}", at("b.npy"));
    for level in ["interpreted", "fused", "compiled", "scheduled"] {
        let out = at(level);
        let arguments = [
            "run",
            &path,
            "--input",
            &named,
            "--input",
            &at("a.npy"),
            "--output-dir",
            &out,
            "--level",
            level,
        ];
        assert_eq!(
            run(&arguments),
            (0, "gathered f32[1, 2]\n  3.0  2.0\n".into(), String::new())
        );
        let written = fs::read(Path::new(&out).join("out_0.npy")).unwrap();
        assert!(written.ends_with(&[0, 0, 64, 64, 0, 0, 0, 64]));
    }
    let (status, _, error) = run(&["run", &path, "--input", &at("b.npy")]);
    assert_eq!(status, 1);
    let expected = "expected elements of type f32, which is stored as";
    assert!(
        error.starts_with("error: input 'data': ") && error.contains(expected),
        "{error}"
    );
}

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
fn random_indices_are_made_to_fit() {
    let (_dir, path) = model(GATHER);
    let (status, out, error) = run(&[
        "run",
        &path,
        "--random",
        "7",
        "--shape",
        "indices=5,2",
        "--threads",
        "2",
    ]);
    assert_eq!((status, error.as_str()), (0, ""));
    assert!(
        out.starts_with("gathered f32[5, 2]\n") && out.ends_with("  …\n"),
        "{out}"
    );
    let bench = [
        "bench",
        &path,
        "-n",
        "3",
        "--shape",
        "indices=5,2",
        "--json",
        "--profile",
    ];
    let (status, out, error) = run(&bench);
    assert_eq!((status, error.as_str()), (0, ""));
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["iterations"], 3);
    let times = [
        "read_ms",
        "compile_ms",
        "first_infer_ms",
        "median_ms",
        "min_ms",
        "p90_ms",
        "threads",
    ];
    assert!(
        times
            .iter()
            .all(|key| report[key].as_f64().is_some_and(|x| x > 0.0)),
        "{report}"
    );
    assert_eq!(report["kernels"][0]["layers"][0], "gathered");
    assert_eq!(report["kinds"][0]["name"], "code");
    assert_eq!(report["kinds"][0]["kernels"], 1);
    let (status, out, _) = run(&["bench", &path, "-t", "0", "--shape", "indices=5,2"]);
    assert!(status == 0 && out.contains("median"));
}

#[test]
fn bad_files_are_errors() {
    let (dir, path) = model("<net");
    let missing = dir.path().join("missing.xml").display().to_string();
    for arguments in [
        ["info", &path],
        ["info", &missing],
        ["run", &path],
        ["bench", &missing],
    ] {
        let (status, out, error) = run(&arguments);
        assert_eq!((status, out.as_str()), (1, ""));
        let named = error.starts_with("error: ") && error.contains(arguments[1]);
        assert!(named && !error.contains("error: error"), "{error}");
    }
}

#[test]
fn usage_is_status_2() {
    for arguments in [
        &["run"][..],
        &["frobnicate"],
        &[],
        &["run", "x.xml", "--level", "fast"],
        &["run", "x.xml", "--index-policy", "one"],
        &["run", "x.xml", "--threads", "0"],
        &["dump", "x.xml", "--layer", "a", "--kernel", "0"],
        &["bench", "x.xml", "-n", "1", "-t", "1"],
        &["bench", "x.xml", "--shape", "data=a"],
        &["test"],
        &["save", "x.xml", "x.bin"],
    ] {
        let (status, out, error) = run(arguments);
        assert_eq!((status, out.as_str()), (2, ""), "{arguments:?}");
        assert!(
            arguments.is_empty() || error.starts_with("error: "),
            "{error}"
        );
    }
}

#[test]
fn every_subcommand_has_help_with_an_example() {
    for command in [
        "run",
        "bench",
        "test",
        "dump",
        "explore",
        "info",
        "save",
        "ops",
        "completions",
    ] {
        let (status, out, error) = run(&[command, "--help"]);
        assert_eq!((status, error.as_str()), (0, ""));
        assert!(
            out.contains(&format!("Example:\n  vinelift {command} ")),
            "{out}"
        );
    }
    assert_eq!(run(&["--version"]).0, 0);
    assert!(run(&["completions", "bash"]).1.contains("vinelift"));
}

#[test]
fn cases_pass_or_fail() {
    let dir = tempfile::tempdir().unwrap();
    case(&dir.path().join("a/good"), "ok", [1, 0], [3.0, 2.001]);
    case(&dir.path().join("a/refused"), "error", [9, 0], [0.0, 0.0]);
    let root = dir.path().display().to_string();
    assert_eq!(
        run(&["test", &root, "--level", "all"]),
        (0, "2 passed, 0 failed\n".into(), String::new())
    );

    case(&dir.path().join("wrong"), "ok", [1, 0], [3.0, f32::NAN]);
    case(&dir.path().join("runs"), "error", [1, 0], [0.0, 0.0]);
    let (status, out, error) = run(&["test", &root, "--jobs", "2", "--level", "fused"]);
    assert_eq!((status, error.as_str()), (1, "error: 2 cases failed\n"));
    let expected = format!(
        "FAILED {root}/runs (fused): ran, expected an error\n\
         FAILED {root}/wrong (fused): output 0: element [0, 1] is 2.0, expected NaN (1 of 2 differ)\n\
         2 passed, 2 failed\n"
    );
    assert_eq!(out, expected);
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let empty = empty.display().to_string();
    assert_eq!(
        run(&["test", &empty]).2,
        format!("error: `{empty}` contains no case directory\n")
    );
}

#[test]
fn stages_are_printed() {
    let (_dir, path) = model(GATHER);
    for stage in [
        "graph",
        "dot",
        "nest",
        "fused",
        "scheduled",
        "clif",
        "vcode",
        "asm",
    ] {
        let (status, out, error) =
            run(&["dump", &path, "--stage", stage, "--shape", "indices=5,2"]);
        assert_eq!((status, error.as_str()), (0, ""), "{stage}");
        assert!(out.contains("gathered"), "{stage}: {out}");
    }
    let (status, out, _) = run(&[
        "dump",
        &path,
        "--stage",
        "nest",
        "--trace",
        "--shape",
        "indices=5,2",
        "--layer",
        "gathered",
    ]);
    assert!(status == 0 && out.starts_with("== nest: 1"), "{out}");
    let (status, _, error) = run(&["dump", &path, "--stage", "nest", "--layer", "x"]);
    assert_eq!(
        (status, error.as_str()),
        (1, "error: the model has no layer 'x'\n")
    );
}

#[test]
fn dumps_begin_with_an_index_of_kernels() {
    let digits = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../ir-samples/models/digits/digits.xml"
    );
    let dump = |more: &[&str]| {
        let (status, out, error) = run(&[&["dump", digits], more].concat());
        assert_eq!((status, error.as_str()), (0, ""), "{more:?}");
        out
    };
    let out = dump(&[]);
    assert_eq!(out.lines().count(), 9, "a line for each stage: {out}");

    let shape = ["--shape", "pixels=1,64"];
    let asm = dump(&[&["--stage", "asm"], &shape[..]].concat());
    let mut lines = asm.lines().skip(1);
    assert_eq!(lines.next(), Some("; kernel    bytes   compiled  layers"));
    let first: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert!(
        first[1] == "0" && first[2].parse::<u32>().is_ok(),
        "{first:?}"
    );
    assert_eq!((first[4], first[5]), ("ms", "tokens"));

    let one = dump(&[&["--stage", "asm", "--kernel", "1"], &shape[..]].concat());
    assert!(one.contains("; kernel 1 Unsqueeze_19 = "), "{one}");
    assert_eq!(one.matches("; kernel ").count(), 1, "{one}");
    assert!(asm.lines().count() > one.lines().count());
    // Of a stage without kernels, the layers of the kernel.
    let nests = dump(&[&["--stage", "nest", "--kernel", "1"], &shape[..]].concat());
    let layers: Vec<&str> = nests
        .lines()
        .filter_map(|l| Some(l.split_once("  # ")?.1))
        .collect();
    assert_eq!(
        layers,
        ["vectors", "summed", "Add_15", "hidden", "Unsqueeze_19"]
    );
    let (status, _, error) = run(&[
        "dump",
        digits,
        "--stage",
        "nest",
        "--kernel",
        "99",
        "--shape",
        "pixels=1,64",
    ]);
    let want = "error: there is no kernel 99, there are 10\n";
    assert_eq!((status, error.as_str()), (1, want));
}

#[test]
fn constants_and_long_lines_are_shown_on_request() {
    let digits = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../ir-samples/models/digits/digits.xml"
    );
    let dump = |more: &[&str]| {
        let stage = ["dump", digits, "--shape", "pixels=1,64", "--stage"];
        run(&[&stage, more].concat()).1
    };
    let constant = "input table: f32[1088, 24]\n";
    assert!(!dump(&["scheduled"]).contains(constant));
    assert!(dump(&["scheduled", "--consts"]).contains(constant));
    assert!(!dump(&["graph"]).contains("= Const."));
    assert!(dump(&["graph", "--consts"]).contains("= Const."));
    let short = dump(&["fused"]);
    assert!(
        short.contains("\n  let $1 = add[l<64; 0.0](table["),
        "{short}"
    );
    assert!(!dump(&["fused", "--one-line"]).contains("let"));
}

/// How many elements are not zero is known after the run of what finds them.
#[test]
fn inputs_lead_past_values_that_only_a_run_gives() {
    let float = r#"precision="FP32"><dim>4</dim></port>"#;
    let found = r#"precision="I64"><dim>1</dim><dim>-1</dim></port>"#;
    let xml = format!(
        r#"<net name="m" version="11"><layers>
        <layer id="0" name="x" type="Parameter" version="opset1"><data shape="4" element_type="f32"/><output><port id="0" {float}</output></layer>
        <layer id="1" name="nz" type="NonZero" version="opset3"><data output_type="i64"/><input><port id="0" {float}</input><output><port id="1" {found}</output></layer>
        <layer id="2" name="twice" type="Add" version="opset1"><data auto_broadcast="numpy"/><input><port id="0" {found}<port id="1" {found}</input><output><port id="2" {found}</output></layer>
        <layer id="3" name="r" type="Result" version="opset1"><input><port id="0" {found}</input></layer></layers>
        <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="1"/>
        <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>"#
    );
    let (dir, path) = model(&xml);
    let dump = ["dump", &path, "--stage", "scheduled"];
    let (status, out, error) = run(&dump);
    assert_eq!((status, error.as_str()), (0, ""));
    assert!(!out.contains("# twice"), "{out}");
    let file = dir.path().join("x.npy");
    floats(&file, "4,", &[1.0, 0.0, 3.0, 4.0]);
    let file = file.display().to_string();
    let (status, out, error) = run(&[&dump[..], &["--input", &file]].concat());
    assert_eq!((status, error.as_str()), (0, ""));
    assert!(out.contains("# after ") && out.contains("j<3"), "{out}");
    assert!(out.contains("# twice"), "{out}");
}

#[test]
fn vectors_are_no_wider_than_asked_for() {
    let port = |id: u32| format!(r#"<port id="{id}" precision="FP32"><dim>64</dim></port>"#);
    let (one, two) = (port(0), port(1));
    let xml = format!(
        r#"<net name="m" version="11"><layers>
        <layer id="0" name="x" type="Parameter" version="opset1"><data shape="64" element_type="f32"/><output>{one}</output></layer>
        <layer id="1" name="relu" type="ReLU" version="opset1"><input>{one}</input><output>{two}</output></layer>
        <layer id="2" name="r" type="Result" version="opset1"><input>{one}</input></layer></layers>
        <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"#
    );
    let (_dir, path) = model(&xml);
    for (bits, wider) in [
        ("128", ["256 bits", "512 bits"]),
        ("256", ["512 bits", "?"]),
    ] {
        let (status, out, error) = run(&["dump", &path, "--stage", "asm", "--vectors", bits]);
        assert_eq!((status, error.as_str()), (0, ""));
        assert!(out.starts_with(&format!("; vectors: {bits}\n")), "{out}");
        assert!(!wider.iter().any(|w| out.contains(w)), "{out}");
    }
    let (status, out, _) = run(&["bench", &path, "--vectors", "64"]);
    assert_eq!((status, out.as_str()), (2, ""));
}

#[test]
fn info_works_for_what_is_unsupported() {
    let (_dir, path) = model(&GATHER.replace("\"GatherElements\"", "\"Quux\""));
    let (status, out, error) = run(&["info", &path, "--json"]);
    let want = format!("error: {path}: does not run: 1 problem, listed as unsupported\n");
    assert_eq!((status, error), (1, want));
    let info: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        info["unsupported"][0],
        "layer 'gathered' (Quux, opset6): unsupported operator"
    );
    assert_eq!(info["outputs"][0]["shape"], "[?, 2]");
    assert_eq!(info["dynamic_dims"][0]["input"], "indices");
    let (status, out, _) = run(&["info", &path]);
    assert!(
        status == 1 && out.contains("       1 Quux opset6\n"),
        "{out}"
    );
    let (status, _, error) = run(&["run", &path]);
    assert_eq!(status, 1);
    assert!(error.contains("unsupported"), "{error}");
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
fn operators_are_listed() {
    let (status, out, _) = run(&["ops", "--json"]);
    assert_eq!(status, 0);
    let table: serde_json::Value = serde_json::from_str(&out).unwrap();
    let rows = table["operators"].as_array().unwrap();
    assert_eq!(table["types"], rows.len());
    let versions: usize = rows
        .iter()
        .map(|row| row["versions"].as_array().unwrap().len())
        .sum();
    assert_eq!(table["pairs"], versions);
    assert!(
        rows.iter()
            .any(|row| row["type"] == "GatherElements" && row["family"] == "index")
    );
    let (_, out, _) = run(&["ops"]);
    assert_eq!(
        out.lines().last().unwrap(),
        format!("{} types, {versions} pairs of type and version", rows.len())
    );
}

#[test]
fn a_saved_model_is_read_again() {
    let (dir, path) = model(GATHER);
    let copy = dir.path().join("copy.xml").display().to_string();
    assert_eq!(
        run(&["save", &path, &copy]),
        (0, String::new(), String::new())
    );
    let graph = |path: &str| run(&["dump", path, "--stage", "graph"]);
    assert_eq!(graph(&copy), graph(&path));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = vinelift(&["ops"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    assert_eq!((status.code(), stderr.as_slice()), (Some(0), &b""[..]));
}

#[cfg(target_os = "linux")]
#[test]
fn profilers_are_told_the_names_of_kernels_on_request() {
    const MANY: &str = r#"<net name="exp" version="11"><layers>
        <layer id="0" name="x" type="Parameter" version="opset1"><data shape="1000" element_type="f32"/>
            <output><port id="0"/></output></layer>
        <layer id="1" name="bent" type="Sqrt" version="opset1"><input><port id="0"/></input>
            <output><port id="1"/></output></layer>
        <layer id="2" name="out" type="Result" version="opset1"><input><port id="0"/></input></layer>
        </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"#;
    let (_dir, path) = model(MANY);
    for is_asked in [false, true] {
        let mut command = vinelift(&["run", &path, "--random"]);
        command.env_remove("PERF_BUILDID_DIR");
        if is_asked {
            command.env("PERF_BUILDID_DIR", "1");
        }
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        // Where `perf` looks for it.
        let map = Path::new("/tmp").join(format!("perf-{}.map", child.id()));
        assert!(child.wait().unwrap().success());
        let names = fs::read_to_string(&map).ok();
        let _ = fs::remove_file(&map);
        assert_eq!(names.is_some(), is_asked);
        assert!(names.is_none_or(|names| names.contains("kernel0 bent")));
    }
}
