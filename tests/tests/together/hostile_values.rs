//! Every sample with values that nobody expects: whatever they are, a run ends with outputs or with an
//! error that is not ours, and the outputs or the error are the same interpreted and as optimised code.

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
