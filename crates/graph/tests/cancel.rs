//! Work that nobody wants any more ends soon, with an error that says so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vinelift_graph::{
    Error, Given, Known, Model, NodeKind, Stop, Strings, infer_until, specialize,
};
use vinelift_ops::IndexPolicy;
use vinelift_tensor::Tensor;
use vinelift_xml as xml;

const RANDOM: &str = r#"<net name="m" version="11"><layers>
<layer id="0" name="shape" type="Parameter" version="opset1"><data shape="1" element_type="i64"/><output><port id="0"/></output></layer>
<layer id="1" name="low" type="Parameter" version="opset1"><data shape="" element_type="f32"/><output><port id="0"/></output></layer>
<layer id="2" name="high" type="Parameter" version="opset1"><data shape="" element_type="f32"/><output><port id="0"/></output></layer>
<layer id="3" name="random" type="RandomUniform" version="opset8"><data output_type="f32" global_seed="1" op_seed="2"/><input><port id="0"/><port id="1"/><port id="2"/></input><output><port id="3"/></output></layer>
<layer id="4" name="result" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>
<edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>
<edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
</edges></net>"#;

fn model() -> Model {
    let document = xml::read(RANDOM.as_bytes()).unwrap();
    Model::import(document, &xml::Weights::default()).unwrap()
}

#[test]
fn nothing_is_inferred_or_lowered_after_the_flag_is_set() {
    let model = model();
    let flag = AtomicBool::new(true);
    let stop = Stop::when(&flag);
    let inferred = infer_until(&model, stop);
    assert!(matches!(inferred, Err(Error::Cancelled)));
    let given = Given {
        shapes: &[vec![1.into()], vec![], vec![]],
        known: &Known::default(),
        inferred: None,
        policy: IndexPolicy::Spec,
        is_body: false,
        stop,
    };
    let lowered = specialize(&model, given, &mut Strings::default());
    assert!(matches!(lowered, Err(Error::Cancelled)));
    flag.store(false, Ordering::Relaxed);
    assert!(infer_until(&model, stop).is_ok());
    assert!(specialize(&model, given, &mut Strings::default()).is_ok());
}

/// 200 million numbers take longer than a tenth of a second, which is the time it has to give up.
#[test]
fn a_function_ends_while_it_runs() {
    let model = model();
    let is_random =
        |n: &vinelift_graph::NodeIndex| matches!(model.node(*n).kind, NodeKind::Operator { .. });
    let node = model.order.iter().copied().find(is_random).unwrap();
    let inputs = [
        Tensor::from_slice(&[1], &[200_000_000i64]).unwrap(),
        Tensor::from_slice(&[], &[0.0f32]).unwrap(),
        Tensor::from_slice(&[], &[1.0f32]).unwrap(),
    ];
    let waited = || {
        let flag = AtomicBool::new(false);
        thread::scope(|scope| {
            let run = scope.spawn(|| {
                let made = model.evaluate(node, &inputs, Stop::when(&flag));
                (made.err(), Instant::now())
            });
            thread::sleep(Duration::from_millis(50));
            let asked = Instant::now();
            flag.store(true, Ordering::Relaxed);
            let (error, ended) = run.join().unwrap();
            let error = error.unwrap();
            assert!(error.problem.is_cancelled(), "{error}");
            ended.saturating_duration_since(asked)
        })
    };
    // The machine may be busy for a while.
    let is_soon = (0..3).any(|_| waited() < Duration::from_millis(100));
    assert!(is_soon);
}
