//! `vinelift generate`: what the sample models write, and what is refused.

use crate::common::{GATHER, model, run, vinelift};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

/// A sample's .xml file, and what OpenVINO 2026.4.1 has it write.
fn sample(name: &str) -> (String, String) {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../ir-samples/models/storyteller"
    );
    let file = |ending: &str| format!("{folder}/{name}.{ending}");
    let expected = fs::read_to_string(file("expected.txt")).unwrap();
    (file("xml"), expected)
}

const PROMPT: &str = "I was ";

#[test]
fn samples_write_what_openvino_has_them_write() {
    for name in ["storyteller_u4", "storyteller_u8"] {
        let (path, expected) = sample(name);
        // Interpreters take a tenth of a second for each.
        for (level, threads, tokens) in [
            ("scheduled", "1", 200),
            ("scheduled", "2", 200),
            ("compiled", "1", 200),
            ("fused", "1", 5),
            ("interpreted", "2", 5),
        ] {
            let count = &tokens.to_string();
            let arguments = ["generate", &path, "--prompt", PROMPT, "--tokens", count];
            let how = ["--level", level, "--threads", threads];
            let (status, out, error) = run(&[&arguments[..], &how].concat());
            let written: String = expected.chars().take(PROMPT.len() + tokens).collect();
            assert_eq!((status, out), (0, written + "\n"), "{name} {how:?}");
            let report = error.starts_with("prompt: 6 tokens, ");
            assert!(
                report && error.ends_with(" tokens/s after the first\n"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_seed_draws_the_same_text_again() {
    let (path, _) = sample("storyteller_u4");
    let write = |more: &[&str]| {
        let arguments = ["generate", &path, "--prompt", PROMPT, "--tokens", "60"];
        let (status, out, error) = run(&[&arguments[..], more].concat());
        assert_eq!(status, 0, "{error}");
        out
    };
    let seven = ["--temperature", "0.9", "--top-k", "20", "--seed", "7"];
    let (first, again) = (write(&seven), write(&seven));
    assert_eq!(first, again);
    assert_ne!(first, write(&["--temperature", "0.9", "--top-k", "20"]));
    // One token to draw from is the likeliest.
    let only = ["--temperature", "3", "--top-k", "1", "--seed", "7"];
    assert_eq!(write(&only), write(&[]));
}

/// A model without variables: the logits after each of three tokens, `[1, n, 3]`, are a row of a table.
fn table(rows: [[f32; 3]; 3]) -> (TempDir, String) {
    let port = |id: u32, precision: &str, dims: &[i64]| {
        let dims: String = dims.iter().map(|d| format!("<dim>{d}</dim>")).collect();
        format!("<port id=\"{id}\" precision=\"{precision}\">{dims}</port>")
    };
    let layers = [
        format!(
            r#"<layer id="0" name="input_ids" type="Parameter" version="opset1"><data shape="?,?" element_type="i64"/><output>{}</output></layer>"#,
            port(0, "I64", &[-1, -1])
        ),
        format!(
            r#"<layer id="1" name="table" type="Const" version="opset1"><data element_type="f32" shape="3,3" offset="0" size="36"/><output>{}</output></layer>"#,
            port(0, "FP32", &[3, 3])
        ),
        format!(
            r#"<layer id="2" name="axis" type="Const" version="opset1"><data element_type="i32" shape="" offset="36" size="4"/><output>{}</output></layer>"#,
            port(0, "I32", &[])
        ),
        format!(
            r#"<layer id="3" name="rows" type="Gather" version="opset8"><data batch_dims="0"/><input>{}{}{}</input><output>{}</output></layer>"#,
            port(0, "FP32", &[3, 3]),
            port(1, "I64", &[-1, -1]),
            port(2, "I32", &[]),
            port(3, "FP32", &[-1, -1, 3])
        ),
        format!(
            r#"<layer id="4" name="logits" type="Result" version="opset1"><input>{}</input></layer>"#,
            port(0, "FP32", &[-1, -1, 3])
        ),
    ];
    let edge = |from: u32, to: u32, port: u32, out: u32| {
        format!(r#"<edge from-layer="{from}" from-port="{out}" to-layer="{to}" to-port="{port}"/>"#)
    };
    let edges = [
        edge(1, 3, 0, 0),
        edge(0, 3, 1, 0),
        edge(2, 3, 2, 0),
        edge(3, 4, 0, 3),
    ];
    let (dir, path) = model(&format!(
        r#"<?xml version="1.0"?><net name="table" version="11"><layers>{}</layers><edges>{}</edges></net>"#,
        layers.concat(),
        edges.concat()
    ));
    let values = rows.as_flattened().iter().flat_map(|x| x.to_le_bytes());
    let values: Vec<u8> = values.chain([0; 4]).collect();
    fs::write(dir.path().join("model.bin"), values).unwrap();
    vocabulary(&dir, r#"["a", "b", "é"]"#);
    (dir, path)
}

/// `a` is followed by `b`, `b` by `é`, and `é` by `a`.
const ROUND: [[f32; 3]; 3] = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]];

fn vocabulary(dir: &TempDir, text: &str) {
    fs::write(dir.path().join("model.vocab.json"), text).unwrap();
}

fn generate(path: &str, prompt: &str, more: &[&str]) -> (i32, String, String) {
    run(&[&["generate", path, "--prompt", prompt], more].concat())
}

#[test]
fn a_model_without_variables_reads_the_whole_text_each_time() {
    let (_dir, path) = table(ROUND);
    let (status, out, error) = generate(&path, "aé", &["--tokens", "5"]);
    assert_eq!((status, out.as_str()), (0, "aéabéab\n"), "{error}");
    let (_, out, error) = generate(&path, "b", &["--tokens", "1"]);
    assert_eq!(out, "bé\n");
    assert!(error.ends_with("written: 1 tokens\n"), "{error}");
}

#[test]
fn text_is_there_as_it_is_written_until_nobody_reads() {
    let (_dir, path) = table(ROUND);
    let arguments = ["generate", &path, "--prompt", "a", "--tokens", "4000000000"];
    let mut child = vinelift(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 9];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    assert_eq!(start, "abéabéa".as_bytes());
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_cannot_be_is_one_error() {
    let (dir, path) = table(ROUND);
    let beside = |name: &str| dir.path().join(name).display().to_string();
    let is = |found: (i32, String, String), expected: String| {
        assert_eq!(found, (1, String::new(), format!("error: {expected}\n")));
    };
    let file = beside("model.vocab.json");
    is(
        generate(&path, "abc", &[]),
        format!("no token of the vocabulary `{file}` fits the prompt at 'c', its character 3"),
    );
    vocabulary(&dir, r#"["a", "b"]"#);
    is(
        generate(&path, "a", &[]),
        format!("the vocabulary `{file}` has 2 tokens, and the model gives logits for 3"),
    );
    vocabulary(&dir, "[]");
    let empty = format!("the vocabulary `{file}` is empty");
    is(generate(&path, "a", &[]), empty);
    vocabulary(&dir, r#"{"a": 1}"#);
    let (status, _, error) = generate(&path, "a", &[]);
    let expected = format!("error: the vocabulary `{file}` is no JSON list of strings: ");
    assert!(status == 1 && error.starts_with(&expected), "{error}");
    let missing = beside("missing.json");
    let (status, _, error) = generate(&path, "a", &["--vocabulary", &missing]);
    let expected = format!("error: the vocabulary `{missing}` cannot be read: ");
    let hint = "; `--vocabulary FILE.json` names another\n";
    let both = error.starts_with(&expected) && error.ends_with(hint);
    assert!(status == 1 && both, "{error}");
    // The default is beside the model.
    fs::remove_file(Path::new(&file)).unwrap();
    let (_, _, error) = generate(&path, "a", &[]);
    assert!(
        error.contains(&format!("`{file}` cannot be read")),
        "{error}"
    );
}

#[test]
fn models_that_write_no_text_are_refused() {
    let (_dir, path) = model(GATHER);
    let expected = "error: the model 'gather' does not go on with a text: its inputs are 'data', 'indices' and its outputs \
        'gathered'; expected are the input 'input_ids', with 'attention_mask', 'position_ids', 'beam_idx' or \
        without, and the output 'logits'\n";
    let found = generate(&path, "a", &[]);
    assert_eq!(found, (1, String::new(), expected.to_owned()));
    for bad in [f32::NAN, f32::INFINITY] {
        let (_dir, path) = table([ROUND[0], [0.0, bad, 0.0], ROUND[2]]);
        let expected = "error: the model's logits are not all numbers, or the greatest is infinite, after 1 of its \
            own tokens\n";
        let found = generate(&path, "a", &[]);
        assert_eq!(found, (1, "ab".to_owned(), expected.to_owned()));
    }
}

#[test]
fn wrong_arguments_are_usage() {
    for more in [
        &["--prompt", ""][..],
        &["--prompt", "a", "--tokens", "0"],
        &["--prompt", "a", "--temperature", "-1"],
        &["--prompt", "a", "--temperature", "NaN"],
        &["--prompt", "a", "--temperature", "inf"],
        &["--prompt", "a", "--temperature", "1", "--top-k", "0"],
        &["--prompt", "a", "--top-k", "5"],
        &["--prompt", "a", "--seed", "5"],
        &[],
    ] {
        let (status, out, error) = run(&[&["generate", "model.xml"], more].concat());
        assert_eq!((status, out.as_str()), (2, ""), "{more:?}");
        assert!(error.starts_with("error: "), "{error}");
    }
}
