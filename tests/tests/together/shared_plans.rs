//! One plan serves all sizes of an input, and gives the same bits as a plan of its own for each of them.

use vinelift::{CompiledModel, Config, Core, Error, Model, PartialShape, Specialization, Tensor};
use vinelift_tests::{Random, repository, same, tensor};

/// A sample all dims of whose inputs are dynamic, how many plans it takes, and shapes of its inputs.
struct Case {
    sample: &'static str,
    plans: usize,
    shapes: &'static [&'static [&'static [usize]]],
}

const CASES: [Case; 1] = [
    // Folds of 24, 96 and 384 points on are divided into more parts each, which are plans of their own.
    Case {
        sample: "group_normalization/opset12",
        plans: 4,
        shapes: &[
            &[&[2, 4, 2, 3]],
            &[&[3, 4, 3, 2]],
            &[&[2, 4, 5, 6]],
            &[&[3, 4, 6, 7]],
            &[&[2, 4, 13, 12]],
            &[&[3, 4, 12, 15]],
            &[&[2, 4, 31, 17]],
            &[&[3, 4, 32, 48]],
            &[&[5, 4, 14, 65]],
        ],
    },
];

fn reshaped(model: &Model, shapes: Vec<PartialShape>) -> Result<Model, Error> {
    let shapes: Vec<(usize, PartialShape)> = shapes.into_iter().enumerate().collect();
    model.reshape(&shapes)
}

fn run(compiled: &CompiledModel, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut request = compiled.create_request();
    for (k, input) in inputs.iter().enumerate() {
        request.set_input_at(k, input.clone()).unwrap();
    }
    request.infer().unwrap();
    request.outputs().to_vec()
}

/// Says what is wrong, if anything is.
fn wrong(core: &Core, case: &Case) -> Option<String> {
    let mut random = Random::new(19);
    let path = repository().join("ir-samples").join(case.sample);
    let model = core.read_model(path.with_extension("xml")).unwrap();
    let any = |shape: &&[usize]| PartialShape::any_of_rank(shape.len());
    let open = reshaped(&model, case.shapes[0].iter().map(any).collect()).unwrap();
    let generic = Config::default().specialization(Specialization::Generic);
    let class = core.compile_model_with(&open, generic).unwrap();
    for shapes in case.shapes {
        let ports = model.inputs();
        let inputs = ports.iter().zip(*shapes);
        let inputs: Vec<Tensor> = inputs
            .map(|(port, shape)| tensor(port, Some(shape), &mut random))
            .collect();
        let fixed = shapes.iter().map(|shape| PartialShape::from(*shape));
        let alone = reshaped(&model, fixed.collect()).unwrap();
        let want = run(&core.compile_model(&alone).unwrap(), &inputs);
        let found = run(&class, &inputs);
        if !found.iter().zip(&want).all(|(a, b)| same(a, b)) {
            return Some(format!("{} at {shapes:?}", case.sample));
        }
    }
    let found = class.statistics();
    let (plans, unproven) = (found.plans, found.unproven);
    let text = || format!("{}: {plans} plans, {unproven} not proven", case.sample);
    ((plans, unproven) != (case.plans, 0)).then(text)
}

#[test]
fn one_plan_serves_all_sizes() {
    let core = Core::new().unwrap();
    let wrong: Vec<String> = CASES.iter().filter_map(|case| wrong(&core, case)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
