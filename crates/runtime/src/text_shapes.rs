//! The shapes at which language models usually run: a prefill of the whole prompt, then a decoding step for each token.

use crate::Port;
use vinelift_tensor::{Dim, Shape};

/// How many tokens the prompt has.
const PROMPT: usize = 32;

/// The shapes of a prefill, for a model that takes numbers of tokens; `None` if it takes anything else.
pub(crate) fn prefill(inputs: &[Port]) -> Option<Vec<Shape>> {
    inputs.iter().map(|port| shape(port, PROMPT)).collect()
}

/// The shapes of the decoding step after the prefill: `attention_mask` has an element for each token so far.
pub(crate) fn decoding_step(inputs: &[Port]) -> Option<Vec<Shape>> {
    let next = |port: &Port| match port.answers_to("attention_mask") {
        true => shape(port, PROMPT + 1),
        false => shape(port, 1),
    };
    inputs.iter().map(next).collect()
}

/// The shape of an input for one text of `tokens` tokens: its first dim is the batch.
fn shape(port: &Port, tokens: usize) -> Option<Shape> {
    if let Some(shape) = port.shape.to_static() {
        return Some(shape);
    }
    let dims = port.shape.dims()?;
    let is_text = port.element_type.is_integer() && dims.len() <= 2;
    let usual = |(d, dim): (usize, &Dim)| {
        let extent = if d == 0 { 1 } else { tokens };
        extent.clamp(dim.min(), dim.max().unwrap_or(usize::MAX))
    };
    is_text.then(|| dims.iter().enumerate().map(usual).collect())
}
