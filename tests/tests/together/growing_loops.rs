//! Tensors that a loop carries and that grow with each iteration: where they are, by one plan, and right if a run fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vinelift::{CompiledModel, Config, Core, Error, Level, RunOptions, Tensor};

/// The dims around the axis along which the tensor grows.
#[derive(Clone, Copy)]
struct Around {
    before: &'static [usize],
    after: &'static [usize],
}

const ROWS: Around = Around {
    before: &[],
    after: &[4],
};
const INNER: Around = Around {
    before: &[2],
    after: &[3],
};

impl Around {
    fn axis(self) -> usize {
        self.before.len()
    }

    fn shape(self, extent: usize) -> Vec<usize> {
        [self.before, &[extent], self.after].concat()
    }

    fn declared(self, extent: &str) -> String {
        let numbers = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>();
        let dims = [
            numbers(self.before),
            vec![extent.to_owned()],
            numbers(self.after),
        ];
        dims.concat().join(",")
    }

    /// A tensor whose element at point `k` of the axis and at `j` of the rest is `1000·k + j + more`.
    fn counting(self, extent: usize, more: usize) -> Tensor {
        let [outer, inner] = [self.before, self.after].map(|d| d.iter().product::<usize>());
        let mut values = Vec::new();
        for i in 0..outer {
            for k in 0..extent {
                values.extend((0..inner).map(|j| (1000 * k + i * inner + j + more) as f32));
            }
        }
        Tensor::from_slice(&self.shape(extent), &values).unwrap()
    }
}

/// In each iteration `a` becomes `Concat(a, slice of x)`, or with the slice first if `is_before`; results are `a` in the
/// end, and side by side what `Gather` takes of each `a` at an index of `places`.
fn text(around: Around, is_before: bool) -> String {
    let (axis, any, one) = (around.axis(), around.declared("?"), around.declared("1"));
    let layer = |id: usize, name: &str, ty: &str, version: &str, data: &str, ports: &str| {
        format!(
            "<layer id=\"{id}\" name=\"{name}\" type=\"{ty}\" version=\"{version}\"><data {data}/>{ports}</layer>"
        )
    };
    let source = |id: usize, name: &str, ty: &str, shape: &str| {
        let data = format!("element_type=\"{ty}\" shape=\"{shape}\"");
        let ports = "<output><port id=\"0\"/></output>";
        layer(id, name, "Parameter", "opset1", &data, ports)
    };
    let constant = |id: usize, ty: &str, offset: usize, size: usize| {
        let data = format!("element_type=\"{ty}\" shape=\"\" offset=\"{offset}\" size=\"{size}\"");
        let ports = "<output><port id=\"0\"/></output>";
        layer(
            id,
            &format!("constant_{id}"),
            "Const",
            "opset1",
            &data,
            ports,
        )
    };
    let result = |id: usize| {
        let ports = "<input><port id=\"0\"/></input>";
        layer(id, &format!("result_{id}"), "Result", "opset1", "", ports)
    };
    let edge = |from: usize, port: usize, to: usize, input: usize| {
        format!(
            "<edge from-layer=\"{from}\" from-port=\"{port}\" to-layer=\"{to}\" to-port=\"{input}\"/>"
        )
    };
    let two = "<input><port id=\"0\"/><port id=\"1\"/></input><output><port id=\"2\"/></output>";
    let three = "<input><port id=\"0\"/><port id=\"1\"/><port id=\"2\"/></input><output><port id=\"3\"/></output>";
    let body = [
        source(0, "xi", "f32", &one),
        source(1, "ai", "f32", &any),
        source(2, "place", "i64", "1"),
        layer(
            3,
            "joined",
            "Concat",
            "opset1",
            &format!("axis=\"{axis}\""),
            two,
        ),
        constant(4, "i64", 0, 8),
        layer(5, "taken", "Gather", "opset8", "batch_dims=\"0\"", three),
        constant(6, "boolean", 8, 1),
        result(7),
        result(8),
        result(9),
    ];
    let (first, second) = if is_before { (0, 1) } else { (1, 0) };
    let inner = [
        edge(first, 0, 3, 0),
        edge(second, 0, 3, 1),
        edge(3, 2, 5, 0),
        edge(2, 0, 5, 1),
        edge(4, 0, 5, 2),
        edge(6, 0, 7, 0),
        edge(3, 2, 8, 0),
        edge(5, 3, 9, 0),
    ];
    let slice = |port: usize, to: usize, axis: usize| {
        format!(
            "<input axis=\"{axis}\" external_port_id=\"{port}\" internal_layer_id=\"{to}\" start=\"0\" end=\"-1\" \
             stride=\"1\" part_size=\"1\"/>"
        )
    };
    let map = [
        slice(2, 0, axis),
        "<input external_port_id=\"3\" internal_layer_id=\"1\"/>".to_owned(),
        slice(4, 2, 0),
        "<output external_port_id=\"5\" internal_layer_id=\"8\"/>".to_owned(),
        format!(
            "<output axis=\"{axis}\" external_port_id=\"6\" internal_layer_id=\"9\" start=\"0\" end=\"-1\" \
             stride=\"1\" part_size=\"1\"/>"
        ),
        "<output external_port_id=\"-1\" internal_layer_id=\"7\" purpose=\"execution_condition\"/>"
            .to_owned(),
    ];
    let inputs: String = (0..5).map(|k| format!("<port id=\"{k}\"/>")).collect();
    let the_loop = format!(
        "<layer id=\"5\" name=\"loop\" type=\"Loop\" version=\"opset5\"><port_map>{}</port_map>\
         <back_edges><edge from-layer=\"8\" to-layer=\"1\"/></back_edges>\
         <input>{inputs}</input><output><port id=\"5\"/><port id=\"6\"/></output>\
         <body><layers>{}</layers><edges>{}</edges></body></layer>",
        map.concat(),
        body.concat(),
        inner.concat()
    );
    let layers = [
        source(0, "count", "i64", ""),
        constant(1, "boolean", 8, 1),
        source(2, "x", "f32", &any),
        source(3, "a", "f32", &any),
        source(4, "places", "i64", "?"),
        the_loop,
        result(6),
        result(7),
    ];
    let mut outer: Vec<String> = (0..5).map(|k| edge(k, 0, 5, k)).collect();
    outer.extend([edge(5, 5, 6, 0), edge(5, 6, 7, 0)]);
    format!(
        "<net name=\"g\" version=\"11\"><layers>{}</layers><edges>{}</edges></net>",
        layers.concat(),
        outer.concat()
    )
}

fn compiled(around: Around, is_before: bool, level: Level) -> CompiledModel {
    let core = Core::new().unwrap();
    let weights = [&(around.axis() as i64).to_le_bytes()[..], &[1]].concat();
    let text = text(around, is_before);
    let model = core
        .read_model_from_memory(text.as_bytes(), weights)
        .unwrap();
    let config = Config {
        level,
        ..Config::default()
    };
    core.compile_model_with(&model, config).unwrap()
}

/// Inputs for `count` iterations, which begin with `begun` points; the last of the places is `last`.
fn inputs(around: Around, count: usize, begun: usize, last: i64) -> [Tensor; 4] {
    let mut places: Vec<i64> = (0..count as i64).map(|k| k / 2).collect();
    if let Some(place) = places.last_mut() {
        *place = last;
    }
    [
        Tensor::from_slice(&[], &[count as i64]).unwrap(),
        around.counting(count, 5),
        around.counting(begun, 0),
        Tensor::from_slice(&[count], &places).unwrap(),
    ]
}

fn run(compiled: &CompiledModel, inputs: [Tensor; 4]) -> Result<Vec<Tensor>, Error> {
    let mut request = compiled.create_request();
    for (k, input) in inputs.into_iter().enumerate() {
        request.set_input_at(k, input)?;
    }
    request.infer()?;
    Ok(request.outputs().to_vec())
}

#[test]
fn loops_give_what_they_give_when_interpreted() {
    for (around, is_before) in [(ROWS, false), (INNER, false), (ROWS, true), (INNER, true)] {
        let fast = compiled(around, is_before, Level::Scheduled);
        let slow = compiled(around, is_before, Level::Interpreted);
        for (count, begun) in [(70, 1), (5, 0), (1, 3), (9, 2), (0, 2), (40, 7)] {
            let inputs = || inputs(around, count, begun, 0);
            let (found, want) = (run(&fast, inputs()).unwrap(), run(&slow, inputs()).unwrap());
            assert_eq!(found, want, "{count} iterations from {begun} points");
            let shape = around.shape(begun + count);
            assert_eq!(found[0].shape(), shape);
        }
    }
}

/// The iterations copy fifty megabytes, and not the forty gigabytes that all lengths are together.
#[test]
fn iterations_take_few_plans_and_copy_only_what_is_new() {
    const WIDE: Around = Around {
        before: &[],
        after: &[8192],
    };
    let compiled = compiled(WIDE, false, Level::Scheduled);
    let inputs = inputs(WIDE, 1500, 1, 0);
    let start = Instant::now();
    let found = run(&compiled, inputs).unwrap();
    let time = start.elapsed();
    let parts = [WIDE.counting(1, 0), WIDE.counting(1500, 5)];
    let parts = parts.each_ref().map(Tensor::bytes);
    assert!(found[0].bytes() == parts.concat());
    let plans = compiled.statistics().plans;
    assert!(plans <= 12, "{plans} plans");
    assert!(time < Duration::from_secs(6), "{time:?}");
}

#[test]
fn runs_that_fail_leave_nothing_behind() {
    for around in [ROWS, INNER] {
        let compiled = compiled(around, false, Level::Scheduled);
        let mut request = compiled.create_request();
        let mut run = |inputs: [Tensor; 4]| {
            for (k, input) in inputs.into_iter().enumerate() {
                request.set_input_at(k, input).unwrap();
            }
            request.infer().map(|()| request.outputs().to_vec())
        };
        let want = run(inputs(around, 20, 2, 3)).unwrap();
        let stop = Error::Fault(String::new());
        for _ in 0..3 {
            // Gather-8 reads 0 out of range, so what does not fit are the slices.
            let mut bad = inputs(around, 20, 2, 3);
            bad[3] = Tensor::from_slice(&[10], &[0i64; 10]).unwrap();
            let error = run(bad).unwrap_err();
            assert!(
                std::mem::discriminant(&error) == std::mem::discriminant(&stop),
                "{error:?}"
            );
            assert_eq!(run(inputs(around, 20, 2, 3)).unwrap(), want);
        }
    }
}

#[test]
fn runs_that_are_cancelled_leave_nothing_behind() {
    let compiled = compiled(ROWS, false, Level::Scheduled);
    let mut request = compiled.create_request();
    let set = |request: &mut vinelift::InferRequest, inputs: [Tensor; 4]| {
        for (k, input) in inputs.into_iter().enumerate() {
            request.set_input_at(k, input).unwrap();
        }
    };
    set(&mut request, inputs(ROWS, 20, 2, 3));
    request.infer().unwrap();
    let want = request.outputs().to_vec();
    set(&mut request, inputs(ROWS, 2_000_000, 2, 3));
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
        });
        let start = Instant::now();
        let done = request.infer_with(RunOptions {
            stop: Some(&stop),
            ..RunOptions::default()
        });
        let time = start.elapsed();
        assert!(
            matches!(done, Err(Error::Cancelled)),
            "{done:?} in {time:?}"
        );
    });
    set(&mut request, inputs(ROWS, 20, 2, 3));
    request.infer().unwrap();
    assert_eq!(request.outputs(), want);
    assert_eq!(request.variables().count(), 0);
}
