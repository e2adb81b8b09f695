//! Runs a graph all dims of whose inputs are dynamic at several shapes: a plan that serves a class of them gives the
//! same bits as a plan of its own for each.

use super::case::{Case, Set};
use super::run::{Failure, Kind, Outcome, any_shapes, are_results_small, extents, guarded};
use crate::different_bits;
use std::num::NonZeroUsize;
use vinelift::{Config, Core, Specialization, Tensor};

/// The ways to run it, each of which is compared with the first.
const WAYS: [(&str, Specialization, usize); 4] = [
    ("own plans, 1 thread", Specialization::Always, 1),
    ("plans of classes, 1 thread", Specialization::Generic, 1),
    ("plans of classes, 2 threads", Specialization::Generic, 2),
    ("own plans, 2 threads", Specialization::Always, 2),
];

/// Runs `case` at three shapes in all ways, or in those called `only`, and says which way gives something else.
pub(super) fn compare(
    core: &Core,
    case: &Case,
    only: Option<&[&'static str]>,
) -> Result<(), Failure> {
    if only.is_some_and(|only| !only.contains(&WAYS[0].0)) {
        return Ok(());
    }
    let inputs = inputs(core, case);
    let mut want: Option<Vec<Outcome>> = None;
    for (name, specialization, threads) in WAYS {
        if want.is_some() && only.is_some_and(|only| !only.contains(&name)) {
            continue;
        }
        let fail = |kind, message| Failure {
            kind,
            ways: vec![WAYS[0].0, name],
            message: format!("{name}, unlike {}: {message}", WAYS[0].0),
        };
        let config = Config {
            specialization,
            threads: NonZeroUsize::new(threads),
            ..Config::default()
        };
        let found = guarded(|| run(core, case, config, &inputs));
        let found = found.map_err(|e| fail(Kind::Refused, e))?;
        match &want {
            None => want = Some(found),
            Some(want) => {
                if let Some(text) = different(&found, want) {
                    return Err(fail(Kind::Differs, text));
                }
            }
        }
    }
    Ok(())
}

/// Inputs of the graph's own shapes, and of two others around them: in each, one extent is another one wherever it
/// occurs.
fn inputs(core: &Core, case: &Case) -> Vec<Vec<Tensor>> {
    let own = case.inputs(&case.results, Set::First);
    let extents = extents(&own);
    let mut all = Vec::new();
    for k in 0..2 {
        let choice = case.seed as usize / 3 + k;
        let Some(from) = extents.get(choice % extents.len().max(1)) else {
            break;
        };
        let to = [from + 1, 2 * from, from - 1, from + 5][choice / 7 % 4];
        let extent = |n: &usize| if n == from { to } else { *n };
        let inputs = case.inputs_with(&case.results, |shape| shape.iter().map(extent).collect());
        all.extend(Some(inputs).filter(|inputs| are_results_small(core, case, inputs)));
    }
    all.insert(all.len().min(1), own);
    all
}

/// The outcomes of a request for these inputs, one after the other, twice; it forgets its variables before each.
fn run(
    core: &Core,
    case: &Case,
    config: Config,
    inputs: &[Vec<Tensor>],
) -> Result<Vec<Outcome>, String> {
    let (text, weights) = case.text(&case.results);
    let model = core.read_model_from_memory(text.as_bytes(), weights);
    let compiled = model
        .and_then(any_shapes)
        .and_then(|model| core.compile_model_with(&model, config));
    let compiled = compiled.map_err(|e| e.to_string())?;
    let mut request = compiled.create_request();
    let mut infer = |inputs: &Vec<Tensor>| {
        request.reset();
        guarded(|| {
            for (k, input) in inputs.iter().enumerate() {
                let set = request.set_input_at(k, input.clone());
                set.map_err(|e| e.to_string())?;
            }
            request.infer().map_err(|e| e.to_string())?;
            Ok(request.outputs().to_vec())
        })
    };
    Ok(inputs.iter().chain(inputs).map(&mut infer).collect())
}

/// How `found` differs from `want`. Where both fail, either may name another layer.
fn different(found: &[Outcome], want: &[Outcome]) -> Option<String> {
    let mut pairs = found.iter().zip(want).enumerate();
    pairs.find_map(|(k, pair)| match pair {
        (Ok(found), Ok(want)) => {
            let mut outputs = found.iter().zip(want).enumerate();
            outputs.find_map(|(n, (a, b))| {
                let text = different_bits(a, b)?;
                Some(format!("inference {k}, output {n}: {text}"))
            })
        }
        (Err(found), Err(_)) => {
            let is_ours = found.contains("internal error") || found.contains("panicked");
            is_ours.then(|| format!("inference {k}: {found}"))
        }
        (Ok(_), Err(want)) => Some(format!("inference {k} ends well, want {want}")),
        (Err(found), Ok(_)) => Some(format!("inference {k}: {found}")),
    })
}
