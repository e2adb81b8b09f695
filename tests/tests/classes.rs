//! Every sample with all dims of its inputs dynamic, at several shapes in turn: results and errors are those of the
//! model that has these shapes.
//!
//! Where a model serves several shapes with what it made for the first, this is the test that it may.

use vinelift::{CompiledModel, Core, Error, Model, PartialShape, Tensor};
use vinelift_tests::{Random, files, repository, same, tensor};

/// The shapes of the inputs, if all are known.
fn shapes(model: &Model) -> Option<Vec<Vec<usize>>> {
    let inputs = model.inputs();
    inputs.iter().map(|port| port.shape.to_static()).collect()
}

/// The same shapes, and some in which one extent is another one wherever it occurs.
fn variants(shapes: &[Vec<usize>]) -> Vec<Vec<Vec<usize>>> {
    let mut extents: Vec<usize> = shapes.concat();
    extents.sort_unstable();
    extents.dedup();
    extents.retain(|n| (2..64).contains(n));
    let mut all = vec![shapes.to_vec()];
    for of in extents.into_iter().take(3) {
        for to in [of + 1, 2 * of, 1] {
            let extent = |n: &usize| if *n == of { to } else { *n };
            let shape = |shape: &Vec<usize>| shape.iter().map(extent).collect();
            all.push(shapes.iter().map(shape).collect());
        }
    }
    all
}

fn reshaped(model: &Model, shapes: Vec<PartialShape>) -> Result<Model, Error> {
    let shapes: Vec<(usize, PartialShape)> = shapes.into_iter().enumerate().collect();
    model.reshape(&shapes)
}

fn run(compiled: &CompiledModel, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let mut request = compiled.create_request();
    for (k, input) in inputs.iter().enumerate() {
        let set = request.set_input_at(k, input.clone());
        set.map_err(|e| e.to_string())?;
    }
    request.infer().map_err(|e| e.to_string())?;
    Ok(request.outputs().to_vec())
}

#[test]
fn all_shapes_of_a_class_give_what_each_gives_alone() {
    let core = Core::new().unwrap();
    let mut random = Random::new(7);
    let (mut wrong, mut runs, mut shared) = (Vec::new(), 0, 0);
    for path in files(&repository().join("ir-samples"), "xml") {
        let name = path.display().to_string();
        // What is random is so each time.
        if name.contains("random_uniform") || name.contains("multinomial") {
            continue;
        }
        let Ok(model) = core.read_model(&path) else {
            continue;
        };
        let Some(shapes) = shapes(&model) else {
            continue;
        };
        let open = shapes.iter().map(|s| PartialShape::any_of_rank(s.len()));
        let Ok(dynamic) = reshaped(&model, open.collect()) else {
            continue;
        };
        let Ok(dynamic) = core.compile_model(&dynamic) else {
            continue;
        };
        for shapes in variants(&shapes) {
            let ports = model.inputs();
            let inputs = ports.iter().zip(&shapes);
            let inputs: Vec<Tensor> = inputs
                .map(|(port, shape)| tensor(port, Some(shape), &mut random))
                .collect();
            let fixed = shapes.iter().map(|s| PartialShape::from(s.as_slice()));
            let alone = reshaped(&model, fixed.collect());
            let alone = alone.and_then(|model| core.compile_model(&model));
            let want = match alone {
                Ok(alone) => run(&alone, &inputs),
                Err(e) => Err(e.to_string()),
            };
            let found = run(&dynamic, &inputs);
            runs += 1;
            let agree = match (&found, &want) {
                (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
                (Err(e), Err(_)) => !e.contains("internal error"),
                _ => false,
            };
            if !agree {
                wrong.push(format!("{name} at {shapes:?}: {found:?}\n  want {want:?}"));
            }
        }
        shared += dynamic.statistics().bound;
    }
    assert!(
        wrong.is_empty(),
        "{} of {runs}: {}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        shared > 500,
        "{shared} of {runs} runs used what another shape had made"
    );
}
