//! What a model gives at a level, and whether that is the same as at another.

use vinelift::{Config, Core, Level, Model, Tensor};

/// The outputs of a model for these inputs, or the message with which it ends.
pub fn outputs(
    core: &Core,
    model: &Model,
    level: Level,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, String> {
    let text = |e: vinelift::Error| e.to_string();
    let config = Config {
        level,
        ..Config::default()
    };
    let compiled = core.compile_model_with(model, config).map_err(text)?;
    let mut request = compiled.create_request();
    for (k, tensor) in inputs.iter().enumerate() {
        request.set_input_at(k, tensor.clone()).map_err(text)?;
    }
    request.infer().map_err(text)?;
    Ok(request.outputs().to_vec())
}

/// The same types, shapes and bits; all NaNs are one.
pub fn same(a: &Tensor, b: &Tensor) -> bool {
    let floats = |t: &Tensor| t.to_f64_vec().unwrap_or_default();
    let alike = a.element_type() == b.element_type() && a.shape() == b.shape();
    if !alike || !a.element_type().is_float() {
        return alike && a == b;
    }
    let mut pairs = floats(a).into_iter().zip(floats(b));
    pairs.all(|(x, y)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan())
}
