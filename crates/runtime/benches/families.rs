//! Gathers, scatters, sums and running sums, beside plain loops and `memcpy`.
//!
//! `cargo bench -p vinelift --bench families`, with a part of a name to choose. The loops check what ours check:
//! an index out of range ends them.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write;
use std::hint::black_box;
use std::num::NonZeroUsize;
use vinelift::{Config, Core, InferRequest, Tensor};

/// An input of a model: its type in the file, and its tensor.
struct Input(&'static str, Tensor);

fn floats(shape: &[usize]) -> Input {
    let count = shape.iter().product::<usize>();
    let values: Vec<f32> = (0..count).map(|k| (k % 1009) as f32 - 500.0).collect();
    Input("f32", Tensor::from_slice(shape, &values).unwrap())
}

/// Indices below `extent`, in no order.
fn indices(shape: &[usize], extent: usize) -> (Input, Vec<i64>) {
    let mut state = 1u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % extent as u64) as i64
    };
    let values: Vec<i64> = (0..shape.iter().product()).map(|_| next()).collect();
    let tensor = Tensor::from_slice(shape, &values).unwrap();
    (Input("i64", tensor), values)
}

/// A request for one layer over `inputs` and, after them, the constant scalar `axis`.
fn request(
    op: &str,
    version: &str,
    data: &str,
    inputs: Vec<Input>,
    axis: Option<i64>,
) -> InferRequest {
    let (mut layers, mut edges, mut ports) = (String::new(), String::new(), String::new());
    for (k, Input(ty, tensor)) in inputs.iter().enumerate() {
        let shape: Vec<String> = tensor.shape().iter().map(ToString::to_string).collect();
        let shape = shape.join(",");
        let _ = write!(
            layers,
            r#"<layer id="{k}" name="in{k}" type="Parameter" version="opset1"><data shape="{shape}" element_type="{ty}"/><output><port id="0"/></output></layer>"#
        );
        let _ = write!(
            edges,
            r#"<edge from-layer="{k}" from-port="0" to-layer="20" to-port="{k}"/>"#
        );
        let _ = write!(ports, r#"<port id="{k}"/>"#);
    }
    if axis.is_some() {
        let k = inputs.len();
        layers += r#"<layer id="10" name="axis" type="Const" version="opset1"><data element_type="i64" shape="" offset="0" size="8"/><output><port id="0"/></output></layer>"#;
        let _ = write!(
            edges,
            r#"<edge from-layer="10" from-port="0" to-layer="20" to-port="{k}"/>"#
        );
        let _ = write!(ports, r#"<port id="{k}"/>"#);
    }
    let xml = format!(
        r#"<net name="m" version="11"><layers>{layers}<layer id="20" name="op" type="{op}" version="{version}"><data {data}/><input>{ports}</input><output><port id="9"/></output></layer><layer id="30" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers><edges>{edges}<edge from-layer="20" from-port="9" to-layer="30" to-port="0"/></edges></net>"#
    );
    let core = Core::new().unwrap();
    let weights = axis.unwrap_or(0).to_le_bytes().to_vec();
    let model = core
        .read_model_from_memory(xml.as_bytes(), weights)
        .unwrap();
    let config = Config {
        threads: NonZeroUsize::new(1),
        ..Config::default()
    };
    let mut request = core
        .compile_model_with(&model, config)
        .unwrap()
        .create_request();
    for (k, Input(_, tensor)) in inputs.into_iter().enumerate() {
        request.set_input_at(k, tensor).unwrap();
    }
    request
}

/// One family: ours beside a loop, and beside a copy of as many bytes as come out, or as are read if those are
/// what takes time.
fn family(
    c: &mut Criterion,
    name: &str,
    case: &str,
    mut ours: InferRequest,
    mut plain: impl FnMut(&mut [f32]),
) {
    ours.infer().unwrap();
    let expected = ours.output(0).unwrap().as_slice::<f32>().unwrap().to_vec();
    let mut out = vec![0f32; expected.len()];
    plain(&mut out);
    assert!(out == expected, "{name} {case}");
    let from = match name {
        "sums" => ours.input(0).unwrap().as_slice::<f32>().unwrap().to_vec(),
        _ => expected,
    };
    let mut to = vec![0f32; from.len()];
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(from.len() as u64));
    group.bench_function(BenchmarkId::new("ours", case), |b| b.iter(|| ours.infer()));
    group.bench_function(BenchmarkId::new("loop", case), |b| {
        b.iter(|| plain(black_box(&mut out)));
    });
    group.bench_function(BenchmarkId::new("memcpy", case), |b| {
        b.iter(|| black_box(&mut to).copy_from_slice(black_box(&from)));
    });
    group.finish();
}

fn values(input: &Input) -> Vec<f32> {
    input.1.as_slice::<f32>().unwrap().to_vec()
}

fn gather_elements(c: &mut Criterion) {
    for (rows, columns, axis) in [(64, 4096, 1), (512, 512, 0)] {
        let shape = [rows, columns];
        let data = floats(&shape);
        let x = values(&data);
        let extent = shape[axis];
        let (input, index) = indices(&shape, extent);
        let attribute = format!(r#"axis="{axis}""#);
        let ours = request(
            "GatherElements",
            "opset6",
            &attribute,
            vec![data, input],
            None,
        );
        family(
            c,
            "gather_elements",
            &format!("{rows}x{columns} axis {axis}"),
            ours,
            |out| {
                for i in 0..rows {
                    for j in 0..columns {
                        let k = usize::try_from(index[i * columns + j]).unwrap();
                        assert!(k < extent);
                        out[i * columns + j] = match axis {
                            0 => x[k * columns + j],
                            _ => x[i * columns + k],
                        };
                    }
                }
            },
        );
    }
}

fn slices(c: &mut Criterion) {
    for (rows, width, count) in [(1 << 18, 1, 65_536), (4096, 16, 8192), (30_522, 384, 128)] {
        let data = floats(&[rows, width]);
        let x = values(&data);
        let (input, index) = indices(&[count, 1], rows);
        let ours = request(
            "GatherND",
            "opset8",
            r#"batch_dims="0""#,
            vec![data, input],
            None,
        );
        family(
            c,
            "gather_nd",
            &format!("{count} of {} bytes", width * 4),
            ours,
            |out| {
                for (to, k) in out.chunks_exact_mut(width).zip(&index) {
                    let k = usize::try_from(*k).unwrap();
                    to.copy_from_slice(&x[k * width..(k + 1) * width]);
                }
            },
        );
    }
}

fn scatters(c: &mut Criterion) {
    for reduction in ["none", "sum", "max"] {
        let (rows, columns, count) = (64, 4096, 1024);
        let (data, updates) = (floats(&[rows, columns]), floats(&[rows, count]));
        let (x, u) = (values(&data), values(&updates));
        let (input, index) = indices(&[rows, count], columns);
        let attribute = format!(r#"reduction="{reduction}" use_init_val="true""#);
        let inputs = vec![data, input, updates];
        let ours = request(
            "ScatterElementsUpdate",
            "opset12",
            &attribute,
            inputs,
            Some(1),
        );
        family(c, "scatter_elements", reduction, ours, |out| {
            out.copy_from_slice(&x);
            for i in 0..rows {
                for j in 0..count {
                    let k = usize::try_from(index[i * count + j]).unwrap();
                    assert!(k < columns);
                    let (to, from) = (&mut out[i * columns + k], u[i * count + j]);
                    *to = match reduction {
                        "sum" => *to + from,
                        "max" => to.max(from),
                        _ => from,
                    };
                }
            }
        });
    }
}

/// Of whole numbers, whose sums are exact in any order.
fn sums(c: &mut Criterion) {
    for (rows, columns) in [(64, 1000), (512, 384), (4096, 32)] {
        let case = format!("{rows}x{columns}");
        let data = floats(&[rows, columns]);
        let x = values(&data);
        let ours = request(
            "ReduceSum",
            "opset1",
            r#"keep_dims="false""#,
            vec![data],
            Some(1),
        );
        family(c, "sums", &case, ours, |out| {
            for (to, row) in out.iter_mut().zip(x.chunks_exact(columns)) {
                *to = row.iter().sum();
            }
        });
    }
}

/// As [`sums`].
fn running_sums(c: &mut Criterion) {
    let (rows, columns) = (64, 1000);
    for axis in [0, 1] {
        let data = floats(&[rows, columns]);
        let x = values(&data);
        let attributes = r#"exclusive="false" reverse="false""#;
        let ours = request("CumSum", "opset3", attributes, vec![data], Some(axis));
        let case = format!("{rows}x{columns} axis {axis}");
        let back = if axis == 0 { columns } else { 1 };
        family(c, "running_sums", &case, ours, |out| {
            for k in 0..x.len() {
                let is_first = if axis == 0 {
                    k < columns
                } else {
                    k % columns == 0
                };
                out[k] = if is_first { x[k] } else { out[k - back] + x[k] };
            }
        });
    }
}

criterion_group!(
    benches,
    gather_elements,
    slices,
    scatters,
    sums,
    running_sums
);
criterion_main!(benches);
