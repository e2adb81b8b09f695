use super::*;
use crate::Core;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vinelift_tensor::ElementType;

fn request() -> InferRequest {
    let core = Core::new().unwrap();
    let model = core.read_model_from_memory(crate::doc::GATHER.as_bytes(), Vec::new());
    core.compile_model(&model.unwrap())
        .unwrap()
        .create_request()
}

fn set_inputs(request: &mut InferRequest, indices: &[i32]) {
    let data = Tensor::from_slice(&[2, 2], &[1f32, 2.0, 3.0, 4.0]).unwrap();
    request.set_input("data", data).unwrap();
    let indices = Tensor::from_slice(&[indices.len() / 2, 2], indices).unwrap();
    request.set_input("indices", indices).unwrap();
}

/// Memory whose owner can tell when it is let go of.
struct Lent(
    Vec<u8>,
    #[expect(dead_code, reason = "it is counted")] Arc<()>,
);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AsMut<[u8]> for Lent {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[test]
fn outputs_are_written_to_what_is_lent_for_one_run() {
    let mut request = request();
    let owner = Arc::new(());
    let lend = |shape: &[usize]| {
        let bytes = vec![0; shape.iter().product::<usize>() * 4];
        Tensor::from_memory(ElementType::F32, shape, Lent(bytes, owner.clone())).unwrap()
    };
    for (shape, is_used) in [(&[1, 2], true), (&[2, 1], false), (&[1, 2], true)] {
        set_inputs(&mut request, &[1, 0]);
        let memory = lend(shape);
        let start = memory.bytes().as_ptr();
        request.lend_output(0, memory).unwrap();
        request.infer().unwrap();
        let output = request.output(0).unwrap();
        assert_eq!(*output.as_slice::<f32>().unwrap(), [3.0, 2.0]);
        assert_eq!(output.bytes().as_ptr() == start, is_used);
        assert_eq!(Arc::strong_count(&owner) == 2, is_used);
        request.clear();
        assert_eq!(Arc::strong_count(&owner), 1, "it is let go of");
    }
    // A run that fails lets go of it, too.
    set_inputs(&mut request, &[1, 7]);
    request.lend_output(0, lend(&[1, 2])).unwrap();
    request.infer().unwrap_err();
    assert_eq!(Arc::strong_count(&owner), 1);
    let other = Tensor::zeros(ElementType::I32, &[1, 2]).unwrap();
    request.lend_output(0, other.clone()).unwrap();
    set_inputs(&mut request, &[0, 0]);
    request.infer().unwrap();
    assert_eq!(request.output(0).unwrap().element_type(), ElementType::F32);
    assert_eq!(
        request.lend_output(1, other).unwrap_err().to_string(),
        "model: the model has no output 1, it has 1"
    );
    request.clear();
    let missing = request.infer().unwrap_err().to_string();
    assert!(
        missing.starts_with("model: no tensor for input 'data'"),
        "{missing}"
    );
}

/// A run that ends in a panic lets go of what was lent, too: here the first of two parts of the run cannot
/// read its input, and the second would write the output.
#[test]
fn what_is_lent_is_given_back_after_a_panic() {
    struct Unreadable([u8; 16], Arc<AtomicBool>);
    impl AsRef<[u8]> for Unreadable {
        fn as_ref(&self) -> &[u8] {
            assert!(!self.1.load(Ordering::Relaxed), "told to");
            &self.0
        }
    }
    impl AsMut<[u8]> for Unreadable {
        fn as_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }
    let text = r#"<net name="found" version="11"><layers>
        <layer id="0" name="x" type="Parameter" version="opset1"><data shape="4" element_type="f32"/>
        <output><port id="0"/></output></layer>
        <layer id="1" name="found" type="NonZero" version="opset3"><data output_type="i64"/>
        <input><port id="0"/></input><output><port id="1"/></output></layer>
        <layer id="2" name="floats" type="Convert" version="opset1"><data destination_type="f32"/>
        <input><port id="0"/></input><output><port id="1"/></output></layer>
        <layer id="3" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>
        </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
        <edge from-layer="2" from-port="1" to-layer="3" to-port="0"/></edges></net>"#;
    let core = Core::new().unwrap();
    let model = core.read_model_from_memory(text.as_bytes(), Vec::new());
    let compiled = core.compile_model(&model.unwrap()).unwrap();
    let mut request = compiled.create_request();
    let is_broken = Arc::new(AtomicBool::new(false));
    let ones: Vec<u8> = [0f32, 1.0, 0.0, 1.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let input = Unreadable(ones.try_into().unwrap(), is_broken.clone());
    let input = Tensor::from_memory(ElementType::F32, &[4], input).unwrap();
    request.set_input("x", input).unwrap();
    let owner = Arc::new(());
    let memory = Lent(vec![0; 8], owner.clone());
    let memory = Tensor::from_memory(ElementType::F32, &[1, 2], memory).unwrap();
    request.lend_output(0, memory).unwrap();
    is_broken.store(true, Ordering::Relaxed);
    catch_unwind(AssertUnwindSafe(|| request.infer())).unwrap_err();
    assert_eq!(Arc::strong_count(&owner), 1, "it is let go of");
    is_broken.store(false, Ordering::Relaxed);
    request.infer().unwrap();
    // NumPy: np.array(np.nonzero([0, 1, 0, 1])).
    let found = request.output(0).unwrap();
    assert_eq!(*found.as_slice::<f32>().unwrap(), [1.0, 3.0]);
}

/// A variable to which each run adds its input.
#[test]
fn a_variable_goes_from_one_memory_to_another_and_back() {
    let core = Core::new().unwrap();
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ir-samples");
    let path = format!("{samples}/read_value/opset6_adds_up.xml");
    let model = core.read_model(path).unwrap();
    let mut request = core.compile_model(&model).unwrap().create_request();
    let run = |request: &mut InferRequest| {
        let x = Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
        request.set_input("x", x).unwrap();
        request.infer().unwrap();
        request.variable("counter").unwrap().clone()
    };
    let place = |t: Tensor| t.bytes().as_ptr();
    let first = place(run(&mut request));
    let second = place(run(&mut request));
    assert_ne!(first, second);
    assert_eq!(place(run(&mut request)), first);
    // The kept tensors do not change.
    let kept = run(&mut request);
    let numbers = |t: &Tensor| t.as_slice::<f32>().unwrap().to_vec();
    let before = numbers(&kept);
    for _ in 0..3 {
        assert_ne!(place(run(&mut request)), place(kept.clone()));
    }
    assert_eq!(numbers(&kept), before);
    let after = [before[0] + 4.0, before[1] + 8.0];
    assert_eq!(numbers(&run(&mut request)), after);
}

#[test]
fn a_run_that_is_stopped_is_an_error() {
    let mut request = request();
    set_inputs(&mut request, &[1, 0]);
    for (stop, ends) in [(true, true), (false, false), (true, true)] {
        let done = request.infer_with(RunOptions {
            stop: Some(&Arc::new(AtomicBool::new(stop))),
            times: None,
        });
        assert_eq!(matches!(done, Err(Error::Cancelled)), ends);
        assert_eq!(request.outputs().is_empty(), ends);
    }
}
