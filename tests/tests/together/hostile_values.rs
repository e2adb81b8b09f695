//! Every sample with values that nobody expects: whatever they are, a run ends with outputs or with an
//! error that is not ours, and the outputs or the error are the same interpreted and as optimised code.
//! And every sample with inputs of each float type, interpreted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use vinelift::{Core, Level, Tensor};
use vinelift_tests::{Random, files, outputs, repository, same, tensor};

#[test]
fn no_values_do_harm() {
    let core = Core::new().unwrap();
    let mut random = Random::new(1);
    let mut wrong = Vec::new();
    for path in files(&repository().join("ir-samples"), "xml") {
        // Random operators give other values each time, and a long range takes gigabytes.
        let name = path.to_string_lossy().into_owned();
        if ["random_uniform", "samples/range"]
            .iter()
            .any(|skipped| name.contains(skipped))
        {
            continue;
        }
        let Ok(model) = core.read_model(&path) else {
            continue;
        };
        for _ in 0..3 {
            let inputs: Vec<Tensor> = model
                .inputs()
                .iter()
                .map(|port| tensor(port, None, &mut random))
                .collect();
            let mut at = |level| {
                let result =
                    catch_unwind(AssertUnwindSafe(|| outputs(&core, &model, level, &inputs)));
                let result = result.unwrap_or_else(|_| Err("internal error: panic".to_owned()));
                if let Err(e) = &result
                    && e.contains("internal error")
                {
                    wrong.push(format!(
                        "{} {}: {e}\n  {inputs:?}",
                        path.display(),
                        level.name()
                    ));
                }
                result
            };
            let (plain, optimised) = (at(Level::Interpreted), at(Level::Scheduled));
            let agree = match (&plain, &optimised) {
                (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
                (Err(a), Err(b)) => a == b,
                _ => false,
            };
            if !agree {
                let place = path.display();
                wrong.push(format!(
                    "{place}: {plain:?}\n  or {optimised:?}\n  of {inputs:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The text of a model whose parameters of `f32` are of the type `ty`.
fn retyped(text: &str, ty: &str) -> String {
    let mut parts = text.split("type=\"Parameter\"");
    let mut retyped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        retyped += "type=\"Parameter\"";
        retyped += &part.replacen("element_type=\"f32\"", &format!("element_type=\"{ty}\""), 1);
    }
    retyped
}

/// Operators refuse a type, or compute on it: what comes out is of the type that was inferred.
#[test]
fn float_types_are_computed_on_or_refused() {
    let core = Core::new().unwrap();
    let mut random = Random::new(2);
    let (mut wrong, mut computed, mut refused) = (Vec::new(), 0, 0);
    for path in files(&repository().join("ir-samples"), "xml") {
        let text = std::fs::read_to_string(&path).unwrap();
        if !text.contains("element_type=\"f32\"") || text.len() > 40_000 {
            continue;
        }
        let weights = std::fs::read(path.with_extension("bin")).unwrap_or_default();
        for ty in [
            "f64", "bf16", "f16", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "nf4",
        ] {
            let text = retyped(&text, ty);
            let Ok(model) = core.read_model_from_memory(text.as_bytes(), weights.clone()) else {
                continue;
            };
            let ports = model.inputs();
            let inputs: Vec<Tensor> = ports
                .iter()
                .map(|port| tensor(port, None, &mut random))
                .collect();
            match outputs(&core, &model, Level::Interpreted, &inputs) {
                Ok(_) => computed += 1,
                Err(e) if e.contains("internal error") => {
                    wrong.push(format!("{} of {ty}: {e}", path.display()));
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(computed > 200 && refused > 200, "{computed} {refused}");
}
