//! The results of a model at a level, and whether they are those of another level.

use vinelift::{Config, Core, Level, Model, Tensor};

/// The outputs of a model for these inputs, or the message with which it ends.
pub fn outputs(
    core: &Core,
    model: &Model,
    level: Level,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, String> {
    outputs_with(core, model, Config::new().level(level), inputs)
}

/// As [`outputs`], of a model that is compiled in any way.
pub fn outputs_with(
    core: &Core,
    model: &Model,
    config: Config,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, String> {
    let text = |e: vinelift::Error| e.to_string();
    let compiled = core.compile_model_with(model, config).map_err(text)?;
    let mut request = compiled.create_request();
    for (k, tensor) in inputs.iter().enumerate() {
        request.set_input_at(k, tensor.clone()).map_err(text)?;
    }
    request.infer().map_err(text)?;
    match compiled.statistics().unproven {
        0 => Ok(request.outputs().to_vec()),
        count => Err(format!("{count} nests are not proven after the passes")),
    }
}

/// The same types, shapes and bits; all NaNs are one.
pub fn same(a: &Tensor, b: &Tensor) -> bool {
    different_bits(a, b).is_none()
}

/// Where two tensors are first not the [`same`], and how.
pub fn different_bits(a: &Tensor, b: &Tensor) -> Option<String> {
    let [ty, other] = [a, b].map(Tensor::element_type);
    if ty != other || a.shape() != b.shape() {
        let [one, two] = [a.shape(), b.shape()];
        return Some(format!("{ty}{one:?} and {other}{two:?}"));
    }
    // Most are, and large ones too.
    if a.bytes() == b.bytes() && a.strings() == b.strings() {
        return None;
    }
    let numbers = |t: &Tensor| t.to_f64_vec().unwrap_or_default();
    let [one, two] = [a, b].map(numbers);
    let differ = |(x, y): (&f64, &f64)| x.to_bits() != y.to_bits() && !(x.is_nan() && y.is_nan());
    let places: Vec<usize> = (0..one.len())
        .filter(|&k| differ((&one[k], &two[k])))
        .collect();
    let Some(&at) = places.first() else {
        let are_nan = ty.is_float();
        return (!are_nan).then(|| "bytes that are no numbers of f64".to_owned());
    };
    let mut index = Vec::new();
    a.shape().iter().rev().fold(at, |rest, extent| {
        index.insert(0, rest % extent);
        rest / extent
    });
    let (count, all) = (places.len(), one.len());
    let (x, y) = (one[at], two[at]);
    Some(format!(
        "{count} of {all} elements of {ty}{:?}, the first at {index:?}: {x:?} and {y:?}",
        a.shape()
    ))
}
