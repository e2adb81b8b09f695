//! A run that is cancelled ends within a tenth of a second, whatever it is at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vinelift::{Config, Core, ElementType, Error, Level, Model, RunOptions, Tensor};
use vinelift_tests::{Graph, Value};

/// The time after which a run is cancelled; none of them ends by itself before.
const AFTER: Duration = Duration::from_millis(150);
/// Two and a half times what is promised: the machine may be busy.
const WITHIN: Duration = Duration::from_millis(250);
/// How often it is tried to be that quick: the machine may be very busy for a while.
const TRIES: usize = 3;

/// Runs a model at a level on zeros of these shapes, and cancels it.
fn cancel(name: &str, model: &Model, level: Level, shapes: &[&[usize]]) {
    let mut tries = (0..TRIES).map(|_| time_to_cancel(name, model, level, shapes));
    assert!(
        tries.any(|late| late < WITHIN),
        "{name}, {}: never within {WITHIN:?}",
        level.name()
    );
}

/// How long a run on zeros of these shapes goes on after it is cancelled.
fn time_to_cancel(name: &str, model: &Model, level: Level, shapes: &[&[usize]]) -> Duration {
    let config = Config {
        level,
        ..Config::default()
    };
    let core = Core::new().unwrap();
    let compiled = core.compile_model_with(model, config).unwrap();
    let mut request = compiled.create_request();
    for (k, shape) in shapes.iter().enumerate() {
        let tensor = Tensor::zeros(ElementType::F32, shape).unwrap();
        request.set_input_at(k, tensor).unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (done, late) = std::thread::scope(|scope| {
        let canceller = scope.spawn(|| {
            std::thread::sleep(AFTER);
            stop.store(true, Ordering::Relaxed);
            Instant::now()
        });
        let done = request.infer_with(RunOptions {
            stop: Some(&stop),
            ..RunOptions::default()
        });
        let end = Instant::now();
        (
            done,
            end.saturating_duration_since(canceller.join().unwrap()),
        )
    });
    let level = level.name();
    assert!(
        matches!(done, Err(Error::Cancelled)),
        "{name}, {level}: {done:?}"
    );
    // The request works as before.
    assert!(request.outputs().is_empty());
    late
}

/// The message with which a run of a model on zeros ends.
fn refused(model: &Model, level: Level, shape: &[usize]) -> String {
    let config = Config {
        level,
        ..Config::default()
    };
    let run = || {
        let compiled = Core::new()?.compile_model_with(model, config)?;
        let mut request = compiled.create_request();
        request.set_input_at(0, Tensor::zeros(ElementType::F32, shape)?)?;
        request.infer()
    };
    run().unwrap_err().to_string()
}

fn node(graph: &mut Graph, core: &Core, ty: &str, attributes: &str, inputs: &[&Value]) -> Value {
    let added = graph.node(core, ty, "opset1", attributes, inputs, 1);
    added.unwrap_or_else(|| panic!("{ty}")).remove(0)
}

/// `f(Broadcast(x, [rows, columns]))`, summed up along the columns.
fn sum_of_many(core: &Core, rows: i64, columns: i64, f: Option<&str>) -> Model {
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[rows as usize, 1]);
    let (shape, axis) = (graph.list(&[rows, columns]), graph.list(&[1]));
    let mode = "mode=\"numpy\"";
    let mut many = node(&mut graph, core, "Broadcast", mode, &[&x, &shape]);
    if let Some(f) = f {
        let index = node(&mut graph, core, "CumSum", "", &[&many, &axis]);
        many = node(&mut graph, core, f, "", &[&index]);
    }
    let sum = node(
        &mut graph,
        core,
        "ReduceSum",
        "keep_dims=\"true\"",
        &[&many, &axis],
    );
    graph.model(core, &[sum]).unwrap()
}

#[test]
fn sums_of_many_elements() {
    let core = Core::new().unwrap();
    for rows in [1, 7, 1000] {
        let model = sum_of_many(&core, rows, 1_000_000_000_000 / rows, None);
        for level in Level::ALL {
            match level {
                Level::Fused | Level::Scheduled => {
                    cancel("sum", &model, level, &[&[rows as usize, 1]]);
                }
                // Without fusion there is no memory for the elements.
                Level::Interpreted | Level::Compiled => {
                    let found = refused(&model, level, &[rows as usize, 1]);
                    assert!(found.contains("memory"), "{}: {found}", level.name());
                }
            }
        }
    }
}

#[test]
fn products_of_large_matrices() {
    let core = Core::new().unwrap();
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[1, 1]);
    let y = graph.parameter("y", ElementType::F32, &[1, 1]);
    let (left, right) = (graph.list(&[5000, 1 << 22]), graph.list(&[1 << 22, 5000]));
    let mode = "mode=\"numpy\"";
    let left = node(&mut graph, &core, "Broadcast", mode, &[&x, &left]);
    let right = node(&mut graph, &core, "Broadcast", mode, &[&y, &right]);
    let product = node(&mut graph, &core, "MatMul", "", &[&left, &right]);
    let model = graph.model(&core, &[product]).unwrap();
    cancel("product", &model, Level::Scheduled, &[&[1, 1], &[1, 1]]);
}

#[test]
fn code_that_is_being_made() {
    const LAYERS: usize = 1500;
    let core = Core::new().unwrap();
    let mut graph = Graph::default();
    // The shape is known only when it runs, so that it is compiled then.
    let x = graph.parameter("x", ElementType::F32, &[1 << 20]);
    let mut y = x.clone();
    for k in 0..LAYERS {
        // Each is another kernel.
        let axis = graph.list(&[0]);
        let keep = "keep_dims=\"true\"";
        let ty = ["ReduceMax", "ReduceSum", "ReduceMin"][k % 3];
        let layer = graph.layer(&format!("r{k}"), ty, "opset1", keep, &[&y, &axis], 1);
        let reduced = Value {
            layer,
            port: 2,
            ..y.clone()
        };
        let ty = ["Add", "Multiply", "Maximum"][k / 3 % 3];
        let layer = graph.layer(&format!("b{k}"), ty, "opset1", "", &[&x, &reduced], 1);
        y = Value {
            layer,
            port: 2,
            ..y.clone()
        };
    }
    let (text, weights) = graph.text(&[y]);
    let text = text.replacen("shape=\"1048576\"", "shape=\"?\"", 1);
    let model = core
        .read_model_from_memory(text.as_bytes(), weights)
        .unwrap();
    cancel("compile", &model, Level::Scheduled, &[&[100_000]]);
}
