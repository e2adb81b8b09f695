//! Variables that grow with every run: what they hold, and after runs that fail.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use vinelift::{
    CompiledModel, Config, Core, Error, IndexPolicy, InferRequest, Level, RunOptions,
    Specialization, Tensor,
};
use vinelift_tests::growing_cache;

const WIDTH: usize = 3;

/// The value of the variable, by batch and point.
type Held = Vec<Vec<[f32; WIDTH]>>;

fn compiled(index_policy: IndexPolicy) -> CompiledModel {
    let core = Core::new().unwrap();
    let model = growing_cache(&core, WIDTH, ["", ""]);
    let config = Config {
        index_policy,
        ..Config::default()
    };
    core.compile_model_with(&model, config).unwrap()
}

fn tensor(held: &Held) -> Tensor {
    let values: Vec<f32> = held.iter().flatten().flatten().copied().collect();
    Tensor::from_slice(&[held.len(), held[0].len(), WIDTH], &values).unwrap()
}

/// Points that are all different.
fn points(batches: usize, count: usize, seed: usize) -> Held {
    let point =
        |b: usize, k: usize| std::array::from_fn(|i| (seed * 1000 + b * 100 + k * 10 + i) as f32);
    (0..batches)
        .map(|b| (0..count).map(|k| point(b, k)).collect())
        .collect()
}

fn set(request: &mut InferRequest, new: &Held, order: &[i32]) {
    request.set_input("new", tensor(new)).unwrap();
    let order = Tensor::from_slice(&[order.len()], order).unwrap();
    request.set_input("order", order).unwrap();
}

/// Reorders `held`, adds `new`, and checks that a run does the same.
fn step(request: &mut InferRequest, held: &mut Held, new: &Held, order: &[i32]) {
    set(request, new, order);
    request.infer().unwrap();
    let before = std::mem::take(held);
    held.extend(order.iter().map(|k| before[*k as usize].clone()));
    held.iter_mut()
        .zip(new)
        .for_each(|(held, new)| held.extend(new));
    let doubled = held.iter().flatten().flatten().map(|x| 2.0 * x);
    let doubled: Vec<f32> = doubled.collect();
    assert_eq!(
        *request.output(0).unwrap().as_slice::<f32>().unwrap(),
        doubled
    );
}

fn begun(compiled: &CompiledModel, batches: usize) -> (InferRequest, Held) {
    let mut request = compiled.create_request();
    let held = points(batches, 5, 0);
    request.set_input("start", tensor(&held)).unwrap();
    (request, held)
}

#[test]
fn what_is_added_stays() {
    let compiled = compiled(IndexPolicy::Spec);
    for batches in [1, 2, 3] {
        let (mut request, mut held) = begun(&compiled, batches);
        let same: Vec<i32> = (0..batches as i32).collect();
        let turned: Vec<i32> = (0..batches as i32).rev().collect();
        for k in 0..400 {
            let count = if k % 50 == 20 { 70 } else { 1 };
            let order = if k % 37 == 30 { &turned } else { &same };
            step(
                &mut request,
                &mut held,
                &points(batches, count, k + 1),
                order,
            );
            if k % 97 == 0 {
                assert_eq!(*request.variable("held").unwrap(), tensor(&held));
            }
        }
        // A value that a program sets is as one that a run has left.
        held = points(batches, 9, 77);
        request.set_variable("held", tensor(&held)).unwrap();
        for k in 0..5 {
            step(&mut request, &mut held, &points(batches, 1, k), &same);
        }
        let other: Vec<Held> = (0..2).map(|k| points(batches, 1, k)).collect();
        request.reset();
        held = points(batches, 5, 0);
        other
            .iter()
            .for_each(|new| step(&mut request, &mut held, new, &same));
    }
    let found = compiled.statistics();
    assert!(found.plans <= 20, "{found:?}");
}

#[test]
fn a_run_that_fails_adds_nothing() {
    let compiled = compiled(IndexPolicy::Error);
    for batches in [1, 2] {
        let (mut request, mut held) = begun(&compiled, batches);
        let same: Vec<i32> = (0..batches as i32).collect();
        let last = batches - 1;
        let wrong: Vec<i32> = (0..last as i32).chain([batches as i32]).collect();
        for k in 0..20 {
            step(&mut request, &mut held, &points(batches, 1, k), &same);
            set(&mut request, &points(batches, 1, 99), &wrong);
            let message = request.infer().unwrap_err().to_string();
            let expected = format!("[{last}] is {batches}, expected -{batches}..={last}");
            assert!(message.contains(&expected), "{message}");
            assert_eq!(*request.variable("held").unwrap(), tensor(&held));
        }
    }
}

#[test]
fn a_run_that_is_cancelled_adds_nothing() {
    let compiled = compiled(IndexPolicy::Spec);
    let (mut request, mut held) = begun(&compiled, 2);
    for k in 0..20 {
        step(&mut request, &mut held, &points(2, 1, k), &[0, 1]);
        set(&mut request, &points(2, 1, 99), &[0, 1]);
        let stop = Arc::new(AtomicBool::new(true));
        let options = RunOptions {
            stop: Some(&stop),
            ..RunOptions::default()
        };
        assert!(matches!(request.infer_with(options), Err(Error::Cancelled)));
        assert_eq!(*request.variable("held").unwrap(), tensor(&held));
    }
}

#[test]
fn a_run_that_ends_while_it_is_cancelled_says_what_it_has_done() {
    let config = Config::new().level(Level::Interpreted);
    let core = Core::new().unwrap();
    let model = growing_cache(&core, WIDTH, ["", ""]);
    let compiled = core.compile_model_with(&model, config).unwrap();
    let (mut request, held) = begun(&compiled, 1);
    for k in 0..2000 {
        let added = points(1, 1, k);
        set(&mut request, &added, &[0]);
        request.set_variable("held", tensor(&held)).unwrap();
        let pending = request.start_async();
        for _ in 0..k % 5 {
            std::thread::sleep(Duration::from_nanos(1));
        }
        pending.cancel();
        let done;
        (request, done) = pending.wait();
        let mut expected = held.clone();
        match done {
            Ok(()) => expected[0].extend(&added[0]),
            Err(error) => assert!(matches!(error, Error::Cancelled), "{error}"),
        }
        assert_eq!(*request.variable("held").unwrap(), tensor(&expected));
    }
}

/// `held = concat(held, new)` along the last dim of `[?, ?]`, which begins as `start`, and the sum of all elements of it.
const SUM: &str = r#"<net name="m" version="11"><layers>
<layer id="0" name="start" type="Parameter" version="opset1"><data shape="?,?" element_type="f32"/><output><port id="0"/></output></layer>
<layer id="1" name="new" type="Parameter" version="opset1"><data shape="?,?" element_type="f32"/><output><port id="0"/></output></layer>
<layer id="2" name="read" type="ReadValue" version="opset6"><data variable_id="held" variable_type="f32" variable_shape="?,?"/>
<input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="3" name="grown" type="Concat" version="opset1"><data axis="1"/><input><port id="0"/><port id="1"/></input>
<output><port id="2"/></output></layer>
<layer id="4" name="assign" type="Assign" version="opset6"><data variable_id="held" variable_type="f32" variable_shape="?,?"/>
<input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="5" name="axes" type="Const" version="opset1"><data element_type="i32" shape="2" offset="0" size="8"/>
<output><port id="0"/></output></layer>
<layer id="6" name="sum" type="ReduceSum" version="opset1"><data keep_dims="false"/><input><port id="0"/><port id="1"/></input>
<output><port id="2"/></output></layer>
<layer id="7" name="result" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="2" from-port="1" to-layer="3" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="3" to-port="1"/><edge from-layer="3" from-port="2" to-layer="4" to-port="0"/>
<edge from-layer="3" from-port="2" to-layer="6" to-port="0"/><edge from-layer="5" from-port="0" to-layer="6" to-port="1"/>
<edge from-layer="6" from-port="2" to-layer="7" to-port="0"/>
</edges></net>"#;

#[test]
fn sums_over_all_that_is_held_have_the_same_bits_in_any_memory() {
    const ROWS: usize = 3;
    let core = Core::new().unwrap();
    let axes = [0i32, 1].map(i32::to_le_bytes).concat();
    let model = core.read_model_from_memory(SUM.as_bytes(), axes).unwrap();
    let numbers = |columns: usize, seed: usize| {
        let numbers = (0..ROWS * columns).map(|k| ((k + seed) * 7919 % 1009) as f32 / 1009.0);
        Tensor::from_slice(&[ROWS, columns], &numbers.collect::<Vec<f32>>()).unwrap()
    };
    let configs = [
        Config::default(),
        Config::default().specialization(Specialization::Generic),
        Config::default().specialization(Specialization::Always),
        Config::default().level(Level::Interpreted),
    ];
    let sums = configs.map(|config| {
        let compiled = core.compile_model_with(&model, config).unwrap();
        let mut request = compiled.create_request();
        request.set_input("start", numbers(4, 0)).unwrap();
        std::array::from_fn::<u32, 40, _>(|k| {
            request.set_input("new", numbers(1, k + 1)).unwrap();
            request.infer().unwrap();
            request.output(0).unwrap().as_slice::<f32>().unwrap()[0].to_bits()
        })
    });
    for other in &sums[1..] {
        assert_eq!(sums[0], *other);
    }
}
