//! Shapes that take much of the time get code of their own, and nothing else changes by it.

use std::path::Path;
use std::time::{Duration, Instant};
use vinelift::{CompiledModel, Config, Core, InferRequest, Specialization, Tensor};

fn digits(specialization: Specialization) -> CompiledModel {
    let core = Core::new().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ir-samples/models/digits/digits.xml");
    let model = core.read_model(path).unwrap();
    let config = Config {
        specialization,
        ..Config::default()
    };
    core.compile_model_with(&model, config).unwrap()
}

/// The probabilities of `count` pictures.
fn probabilities(request: &mut InferRequest, count: usize) -> Vec<u8> {
    let pixels: Vec<i32> = (0..count as i32 * 64).map(|k| k * 7 % 17).collect();
    let pixels = Tensor::from_slice(&[count, 64], &pixels).unwrap();
    request.set_input("pixels", pixels).unwrap();
    request.infer().unwrap();
    let position = request.compiled_model().output_index("probabilities");
    let output = request.output(position.unwrap()).unwrap();
    output.bytes().to_vec()
}

#[test]
fn a_hot_shape_gets_code_of_its_own() {
    let compiled = digits(Specialization::Hot);
    let mut request = compiled.create_request();
    // The first shape has its own from the start.
    probabilities(&mut request, 4);
    let expected = probabilities(&mut request, 3);
    let others = probabilities(&mut request, 5);
    let start = Instant::now();
    while compiled.statistics().specialized < 2 {
        assert!(
            start.elapsed() < Duration::from_secs(100),
            "{:?}",
            compiled.statistics()
        );
        assert_eq!(probabilities(&mut request, 3), expected);
    }
    for _ in 0..3 {
        assert_eq!(probabilities(&mut request, 3), expected);
        assert_eq!(probabilities(&mut request, 5), others);
    }
}

#[test]
fn a_second_shape_makes_the_class() {
    let first = |specialization| {
        let compiled = digits(specialization);
        let mut request = compiled.create_request();
        let mut found = Vec::new();
        let results = [4, 4, 3, 5, 4].map(|count| {
            let result = probabilities(&mut request, count);
            let statistics = compiled.statistics();
            found.push((statistics.plans, statistics.specialized, statistics.bound));
            result
        });
        (results, found)
    };
    let (generic, of_generic) = first(Specialization::Generic);
    let (hot, of_hot) = first(Specialization::Hot);
    assert_eq!(generic, hot);
    let bound = [0, 0, 1, 2, 2];
    assert_eq!(of_generic, bound.map(|bound| (1, 0, bound)));
    let hot = [(1, 1, 0), (1, 1, 0), (2, 1, 0), (2, 1, 1), (2, 1, 1)];
    assert_eq!(of_hot, hot);
}

#[test]
fn all_shapes_or_none_may_have_code_of_their_own() {
    let counts = [2usize, 3, 4, 9];
    let run = |specialization| {
        let compiled = digits(specialization);
        let mut request = compiled.create_request();
        let run = |count: &usize| probabilities(&mut request, *count);
        let results: Vec<Vec<u8>> = counts.iter().map(run).collect();
        (results, compiled.statistics())
    };
    let (generic, of_generic) = run(Specialization::Generic);
    let (always, of_always) = run(Specialization::Always);
    assert_eq!(generic, always);
    assert!(
        of_generic.bound > 0 && of_generic.plans < counts.len(),
        "{of_generic:?}"
    );
    assert_eq!((of_always.bound, of_always.plans), (0, counts.len()));
}

#[test]
fn a_model_may_go_while_its_code_is_compiled() {
    // The longer the runs, the further the thread is that compiles.
    for millis in [20, 40, 60, 80, 100] {
        let compiled = digits(Specialization::Hot);
        let mut request = compiled.create_request();
        probabilities(&mut request, 4);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(millis) {
            probabilities(&mut request, 3);
        }
    }
}
