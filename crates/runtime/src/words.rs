//! The shapes at which models that go on with a text usually run: a text first, then one word after the other.

use crate::Port;
use vinelift_tensor::{Dim, Shape};

/// How many words the text has.
const WORDS: usize = 32;

/// The shapes of a text, for a model that takes numbers of words; `None` if it takes anything else.
pub(crate) fn text(inputs: &[Port]) -> Option<Vec<Shape>> {
    inputs.iter().map(|port| shape(port, WORDS)).collect()
}

/// The shapes of the word that follows the text: the mask of `attention_mask` is for all words so far.
pub(crate) fn next_word(inputs: &[Port]) -> Option<Vec<Shape>> {
    let next = |port: &Port| match port.answers_to("attention_mask") {
        true => shape(port, WORDS + 1),
        false => shape(port, 1),
    };
    inputs.iter().map(next).collect()
}

/// The shape of an input for one text of `words` words: its first dim is the batch.
fn shape(port: &Port, words: usize) -> Option<Shape> {
    if let Some(shape) = port.shape.to_static() {
        return Some(shape);
    }
    let dims = port.shape.dims()?;
    let is_text = port.element_type.is_integer() && dims.len() <= 2;
    let usual = |(d, dim): (usize, &Dim)| {
        let extent = if d == 0 { 1 } else { words };
        extent.clamp(dim.min(), dim.max().unwrap_or(usize::MAX))
    };
    is_text.then(|| dims.iter().enumerate().map(usual).collect())
}
