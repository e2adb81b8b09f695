//! Exit status, and the form of messages.

use crate::common::{GATHER, floats, ints, model, run, vinelift};
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

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
    assert_eq!(report["plans"], 1);
    let (status, out, _) = run(&["bench", &path, "-t", "0", "--shape", "indices=5,2"]);
    assert!(status == 0 && out.contains("median"));
}

#[test]
fn bench_takes_shapes_that_change() {
    let (_dir, path) = model(GATHER);
    // One plan serves all of the shapes but the first, which has its own.
    let changing = ["bench", &path, "-n", "40", "--shape", "indices=2..6,2"];
    let (status, out, error) = run(&[&changing[..], &["--json"]].concat());
    assert_eq!((status, error.as_str()), (0, ""));
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let keys = ["calls", "shapes", "plans", "specialized", "bound"];
    let counts = keys.map(|key| report[key].as_u64());
    assert_eq!(counts, [40, 5, 2, 1, 3].map(Some), "{report}");
    let (status, out, _) = run(&changing);
    assert!(status == 0 && out.contains("calls/s"), "{out}");
    let (status, _, error) = run(&["run", &path, "--random", "1", "--shape", "indices=2..6,2"]);
    assert!(
        status == 1 && error.contains("only `bench` takes ranges"),
        "{error}"
    );
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
        &["bench", "x.xml", "--shape", "data=5..4"],
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
        "generate",
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

/// A name with ESC and `[31m`, which a terminal would write red from there on (ECMA-48), is printed with the ESC escaped.
#[test]
fn names_do_not_control_the_terminal() {
    let xml = GATHER.replace("indices", "red&#x1b;[31m");
    let (_dir, path) = model(&xml);
    let name = r"red\u{1b}[31m";
    for arguments in [&["info"][..], &["dump", "--stage", "graph"], &["run"]] {
        let (_, out, error) = run(&[arguments, &[&path]].concat());
        let text = out + &error;
        assert!(text.contains(name) && !text.contains('\x1b'), "{text}");
    }
}
