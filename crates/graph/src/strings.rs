//! Strings as numbers: while a model runs, an element of a `string` tensor is the number of its text
//! in a table. Equal texts have equal numbers, and the empty string is 0, so that moving and comparing
//! strings is moving and comparing integers.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use vinelift_tensor::memory::{room_for, text};
use vinelift_tensor::{Tensor, TensorError};

/// The bytes that the table needs for a text besides its own.
const ENTRY: usize = 64;

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
        // The one text that every table has; it takes no memory to speak of.
        strings.texts.push("".into());
        strings.numbers.insert("".into(), 0);
        strings
    }
}

impl Strings {
    /// The number of a text, which is added if it is new.
    pub fn number(&mut self, text: &str) -> Result<u64, TensorError> {
        if let Some(&known) = self.numbers.get(text) {
            return Ok(known);
        }
        // `Arc::from` ends the process where there is no memory, so memory for the text is asked for first.
        let bytes = text.len().saturating_add(ENTRY);
        drop(room_for::<u8>(bytes)?);
        let room = self.numbers.try_reserve(1);
        room.map_err(|_| TensorError::OutOfMemory { bytes })?;
        let room = self.texts.try_reserve(1);
        room.map_err(|_| TensorError::OutOfMemory { bytes })?;
        let number = self.texts.len() as u64;
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        Ok(number)
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
        let mut numbers = room_for(strings.len())?;
        for text in strings {
            numbers.push(self.number(text)?);
        }
        Tensor::from_slice(tensor.shape(), &numbers)
    }

    /// The `string` tensor of `shape` whose numbers are `bytes`.
    pub fn decode(&self, shape: &[usize], bytes: &[u8]) -> Result<Tensor, TensorError> {
        let numbers = bytes.as_chunks::<8>().0;
        let mut texts = room_for(numbers.len())?;
        for number in numbers {
            texts.push(text(self.text(u64::from_le_bytes(*number)))?);
        }
        Tensor::from_strings(shape, texts)
    }
}
