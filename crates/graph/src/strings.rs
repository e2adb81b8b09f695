//! Strings as numbers: while a model runs, an element of a `string` tensor is the number of its text
//! in a table. Equal texts have equal numbers, and the empty string is 0, so that moving and comparing
//! strings is moving and comparing integers.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use vinelift_tensor::{Tensor, TensorError};

/// A table of texts.
#[derive(Clone, Debug)]
pub struct Strings {
    texts: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, u64>,
}

impl Default for Strings {
    fn default() -> Strings {
        let mut strings = Strings {
            texts: Vec::new(),
            numbers: FxHashMap::default(),
        };
        strings.number("");
        strings
    }
}

impl Strings {
    /// The number of a text, which is added if it is new.
    pub fn number(&mut self, text: &str) -> u64 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.texts.len() as u64;
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        number
    }

    /// The text behind a number; empty if there is none.
    pub fn text(&self, number: u64) -> &str {
        usize::try_from(number)
            .ok()
            .and_then(|n| self.texts.get(n))
            .map_or("", |t| t)
    }

    /// The bytes of a tensor as a nest sees them: those of a `string` tensor are numbers.
    pub fn encode(&mut self, tensor: &Tensor) -> Result<Tensor, TensorError> {
        let Some(strings) = tensor.strings() else {
            return Ok(tensor.clone());
        };
        let numbers: Vec<u64> = strings.iter().map(|s| self.number(s)).collect();
        Tensor::from_slice(tensor.shape(), &numbers)
    }

    /// The `string` tensor of `shape` whose numbers are `bytes`.
    pub fn decode(&self, shape: &[usize], bytes: &[u8]) -> Result<Tensor, TensorError> {
        let number = |b: &[u8; 8]| self.text(u64::from_le_bytes(*b)).to_owned();
        let texts = bytes.as_chunks::<8>().0.iter().map(number).collect();
        Tensor::from_strings(shape, texts)
    }
}
