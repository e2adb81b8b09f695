//! The output of `vinelift dump`.

use crate::common::{GATHER, floats, model, run};

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
    let start = "== class: data[2, 2], indices[s0, 2]\n== nest: 1";
    assert!(status == 0 && out.starts_with(start), "{out}");
    let (status, _, error) = run(&["dump", &path, "--stage", "nest", "--layer", "x"]);
    assert_eq!(
        (status, error.as_str()),
        (1, "error: the model has no layer 'x'\n")
    );
}

/// Six groups of channels that are shuffled, of one channel or of several.
const SHUFFLED: &str = r#"<net name="shuffled" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2,?" element_type="f32"/>
<output><port id="0"/></output></layer>
<layer id="1" name="shuffled" type="ShuffleChannels" version="opset1"><data axis="1" group="6"/>
<input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="2" name="result" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"#;

#[test]
fn a_trace_tells_why_each_shape_is_compiled_for() {
    let (_dir, path) = model(SHUFFLED);
    let (status, out, error) = run(&[
        "dump", &path, "--stage", "nest", "--trace", "--shape", "x=2,6",
    ]);
    let start = "== no class: each shape is compiled for\n   x[1] is no symbol of its own: \
        layer 'shuffled' (ShuffleChannels, opset1)\n== nest: 1";
    assert!(status == 0 && out.starts_with(start), "{out}{error}");
}

#[test]
fn a_trace_tells_which_extents_must_be_multiples() {
    let (_dir, path) = model(SHUFFLED);
    let options = ["--stage", "nest", "--trace", "--shape", "x=2,12"];
    let (status, out, error) = run(&[&["dump", &path], &options[..]].concat());
    let start = "== class: x[2, 6*s0]\n   x[1] is no symbol of its own: \
        layer 'shuffled' (ShuffleChannels, opset1)\n";
    assert!(status == 0 && out.starts_with(start), "{out}{error}");
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
