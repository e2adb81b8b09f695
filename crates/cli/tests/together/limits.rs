//! Models of a few hundred bytes that ask for more memory or time than there is: each run ends with one
//! error that names what is wrong, or with the right result, but never by a signal.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any of these runs takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Layers and edges of a model, and its weights.
#[derive(Default)]
struct Net {
    layers: String,
    edges: String,
    count: usize,
    weights: Vec<u8>,
}

impl Net {
    /// A layer of this type, version and attributes that reads the first outputs of `inputs`; its number.
    fn layer(
        &mut self,
        (op, version): (&str, &str),
        attributes: &str,
        inputs: &[usize],
        outputs: usize,
    ) -> usize {
        let id = self.count;
        self.count += 1;
        let ports = |range: std::ops::Range<usize>| -> String {
            range.map(|k| format!(r#"<port id="{k}"/>"#)).collect()
        };
        // Outputs have the ids from 100 on.
        let (ins, outs) = (ports(0..inputs.len()), ports(100..100 + outputs));
        self.layers += &format!(
            r#"<layer id="{id}" name="l{id}" type="{op}" version="{version}"><data {attributes}/><input>{ins}</input><output>{outs}</output></layer>"#
        );
        for (k, from) in inputs.iter().enumerate() {
            self.edges += &format!(
                r#"<edge from-layer="{from}" from-port="100" to-layer="{id}" to-port="{k}"/>"#
            );
        }
        id
    }

    fn constant(&mut self, ty: &str, shape: &str, bytes: &[u8]) -> usize {
        let (offset, size) = (self.weights.len(), bytes.len());
        self.weights.extend(bytes);
        let data =
            format!(r#"element_type="{ty}" shape="{shape}" offset="{offset}" size="{size}""#);
        self.layer(("Const", "opset1"), &data, &[], 1)
    }

    fn integers(&mut self, values: &[i64]) -> usize {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant("i64", &values.len().to_string(), &bytes)
    }

    fn scalar(&mut self, value: i64) -> usize {
        self.constant("i64", "", &value.to_le_bytes())
    }

    fn float(&mut self, value: f32) -> usize {
        self.constant("f32", "", &value.to_le_bytes())
    }

    fn parameter(&mut self, ty: &str, shape: &str) -> usize {
        let data = format!(r#"element_type="{ty}" shape="{shape}""#);
        self.layer(("Parameter", "opset1"), &data, &[], 1)
    }

    /// A tensor of this shape, all of whose elements are `value`.
    fn repeated(&mut self, value: usize, shape: &[i64]) -> usize {
        let shape = self.integers(shape);
        self.layer(
            ("Broadcast", "opset3"),
            r#"mode="numpy""#,
            &[value, shape],
            1,
        )
    }

    fn write(mut self, from: usize, dir: &Path) {
        let id = self.count;
        self.layer(("Result", "opset1"), "", &[from], 0);
        assert_eq!(self.count, id + 1);
        let text = format!(
            r#"<net name="m" version="11"><layers>{}</layers><edges>{}</edges></net>"#,
            self.layers, self.edges
        );
        fs::write(dir.join("model.xml"), text).unwrap();
        fs::write(dir.join("model.bin"), self.weights).unwrap();
    }
}

/// Runs the model in `dir` with random inputs in `kilobytes` of address space; status and stderr.
fn run(dir: &Path, kilobytes: usize) -> (Option<i32>, String) {
    let binary = env!("CARGO_BIN_EXE_vinelift");
    let script =
        format!("ulimit -v {kilobytes} && exec '{binary}' run model.xml --random --threads 1");
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{} still runs after {PATIENCE:?}", dir.display());
        }
        thread::sleep(Duration::from_millis(10));
    }
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

/// The message with which the model that `build` makes is refused.
fn error(build: impl FnOnce(&mut Net) -> usize) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut net = Net::default();
    let last = build(&mut net);
    net.write(last, dir.path());
    let (status, message) = run(dir.path(), 4_000_000);
    assert_eq!(status, Some(1), "{message}");
    message
}

#[test]
fn a_shape_of_more_elements_than_a_tensor_has_dims() {
    let sizes = [i64::from(i32::MAX), 1 << 40];
    for size in sizes {
        for (op, attributes, shape) in [
            (("Reshape", "opset1"), r#"special_zero="true""#, "shape"),
            (("Broadcast", "opset3"), r#"mode="numpy""#, "target_shape"),
            (("Tile", "opset1"), "", "repeats"),
            (("Unsqueeze", "opset1"), "", "axes"),
            (("Squeeze", "opset1"), "", "axes"),
            (("Transpose", "opset1"), "", "input_order"),
            (("ReduceSum", "opset1"), r#"keep_dims="true""#, "axes"),
            (("RDFT", "opset9"), "", "axes"),
        ] {
            let expected = format!(
                "({}, {}): `{shape}` must have at most 32 elements, found [{size}]",
                op.0, op.1
            );
            let of_parameter = error(|net| {
                let (data, long) = (
                    net.parameter("f32", "2,3"),
                    net.parameter("i64", &size.to_string()),
                );
                net.layer(op, attributes, &[data, long], 1)
            });
            assert!(of_parameter.contains(&expected), "{of_parameter}");
        }
        let repeated = |net: &mut Net| {
            let one = net.scalar(1);
            net.repeated(one, &[size])
        };
        let random = error(|net| {
            let (shape, low, high) = (repeated(net), net.float(0.0), net.float(1.0));
            let attributes = r#"output_type="f32" global_seed="1" op_seed="2""#;
            net.layer(
                ("RandomUniform", "opset8"),
                attributes,
                &[shape, low, high],
                1,
            )
        });
        assert!(random.contains("`shape` must have at most 32"), "{random}");
        let slice = error(|net| {
            let (data, bounds) = (net.parameter("f32", "2,3"), repeated(net));
            let inputs = [data, bounds, bounds, bounds];
            let attributes = r#"begin_mask="0" end_mask="0""#;
            net.layer(("StridedSlice", "opset1"), attributes, &inputs, 1)
        });
        assert!(slice.contains("`begin` must have at most 32"), "{slice}");
        let eye = error(|net| {
            let (side, diagonal, batch) = (net.scalar(2), net.scalar(0), repeated(net));
            let inputs = [side, side, diagonal, batch];
            net.layer(("Eye", "opset9"), r#"output_type="f32""#, &inputs, 1)
        });
        assert!(eye.contains("`batch_shape` must have at most 32"), "{eye}");
    }
}

#[test]
fn tensors_that_cannot_be() {
    let most = i64::MAX.to_string();
    let message = error(|net| {
        let x = net.parameter("i64", &most);
        net.layer(("Abs", "opset1"), "", &[x], 1)
    });
    let layer = "layer 'l0' (Parameter, opset1)";
    assert!(
        message.contains(&format!("{layer}: its output i64[{most}] is too large")),
        "{message}"
    );
    let many = vec!["1"; 60_000].join(",");
    let message = error(|net| net.parameter("f32", &many));
    let limit = "attribute `shape` must be a list of at most 32 dims, found `60000 dims`";
    assert!(message.contains(&format!("{layer}: {limit}")), "{message}");
    let message = error(|net| {
        let (x, axes) = (
            net.parameter("f32", &vec!["1"; 20].join(",")),
            net.integers(&(0..20).collect::<Vec<i64>>()),
        );
        net.layer(("Unsqueeze", "opset1"), "", &[x, axes], 1)
    });
    let layer = "layer 'l2' (Unsqueeze, opset1)";
    assert!(
        message.contains(&format!("{layer}: its output has rank 40, more than 32")),
        "{message}"
    );
}

const MANY: i64 = 20_000_000;

/// A function that adds the layers of a net and returns the number of the last one.
type Build = fn(&mut Net) -> usize;

fn floats(net: &mut Net, shape: &[i64]) -> usize {
    let one = net.float(1.0);
    net.repeated(one, shape)
}

/// Nets whose inputs, or what is made of them, take hundreds of megabytes.
fn large_nets() -> [(&'static str, Build); 8] {
    [
        ("RDFT", |net| {
            let (data, axes) = (floats(net, &[MANY]), net.integers(&[0]));
            net.layer(("RDFT", "opset9"), "", &[data, axes], 1)
        }),
        ("DFT", |net| {
            let (data, axes) = (floats(net, &[3, 2]), net.integers(&[0]));
            let size = net.integers(&[MANY]);
            net.layer(("DFT", "opset7"), "", &[data, axes, size], 1)
        }),
        ("strings", |net| {
            let mut bytes: Vec<u8> = [1, 0, 100]
                .iter()
                .flat_map(|n: &i32| n.to_le_bytes())
                .collect();
            bytes.extend([b'x'; 100]);
            let text = net.constant("string", "1", &bytes);
            net.repeated(text, &[MANY])
        }),
        ("NonZero", |net| {
            let data = floats(net, &[MANY]);
            net.layer(("NonZero", "opset3"), r#"output_type="i64""#, &[data], 1)
        }),
        ("Unique", |net| {
            let data = floats(net, &[MANY / 4]);
            net.layer(("Unique", "opset10"), "", &[data], 4)
        }),
        ("TopK", |net| {
            let (data, k) = (floats(net, &[MANY / 4]), net.scalar(MANY / 4));
            let attributes = r#"axis="0" mode="max" sort="value""#;
            net.layer(("TopK", "opset11"), attributes, &[data, k], 2)
        }),
        ("CTCGreedyDecoder", |net| {
            let (data, mask) = (
                floats(net, &[MANY / 20, 1, 20]),
                floats(net, &[MANY / 20, 1]),
            );
            net.layer(("CTCGreedyDecoder", "opset1"), "", &[data, mask], 1)
        }),
        ("Interpolate", |net| {
            let (data, sizes) = (net.parameter("f32", "1,1,4"), net.integers(&[1 << 22]));
            let axes = net.integers(&[2]);
            let attributes = r#"mode="cubic" shape_calculation_mode="sizes" antialias="false""#;
            net.layer(
                ("Interpolate", "opset11"),
                attributes,
                &[data, sizes, axes],
                1,
            )
        }),
    ]
}

/// Inputs of 20 million elements, in less memory than it takes to work on them: in some of it there is no room for
/// the input, in some none for what is made of it.
#[test]
fn memory_that_ends() {
    for (name, build) in large_nets() {
        let dir = tempfile::tempdir().unwrap();
        let mut net = Net::default();
        let last = build(&mut net);
        net.write(last, dir.path());
        for kilobytes in [200_000, 300_000, 450_000, 700_000] {
            let (status, message) = run(dir.path(), kilobytes);
            let refused = status == Some(1)
                && message.starts_with("error: ")
                && message.contains("out of memory");
            assert!(
                refused || status == Some(0),
                "{name} in {kilobytes} kB: {status:?}: {message}"
            );
            if kilobytes == 200_000 {
                assert!(refused, "{name}: {message}");
            }
        }
    }
}

/// Two billion random numbers take seconds: constant folding leaves them to the run, so compiling is fast.
#[test]
fn many_numbers_are_not_made_while_compiling() {
    let dir = tempfile::tempdir().unwrap();
    let mut net = Net::default();
    let (shape, low, high) = (net.integers(&[1 << 31]), net.float(0.0), net.float(1.0));
    let attributes = r#"output_type="f32" global_seed="1" op_seed="2""#;
    let random = net.layer(
        ("RandomUniform", "opset8"),
        attributes,
        &[shape, low, high],
        1,
    );
    net.write(random, dir.path());
    let start = Instant::now();
    let info = Command::new(env!("CARGO_BIN_EXE_vinelift"))
        .args(["dump", "model.xml", "--stage", "nest"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(info.status.success(), "{info:?}");
    assert!(start.elapsed() < Duration::from_secs(10));
}
