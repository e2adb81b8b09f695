//! The vocabulary: the text of each token, and the tokens of a text.

use crate::failure::Failure;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The text of each token, by its number.
pub(super) struct Vocabulary {
    path: PathBuf,
    texts: Vec<String>,
    /// The number of each text, the first if several tokens have it.
    numbers: HashMap<String, usize>,
    /// How many bytes texts have, each number above 0 once, the largest first.
    lengths: Vec<usize>,
}

impl Vocabulary {
    /// Reads a JSON list of strings.
    pub(super) fn read(path: &Path) -> Result<Vocabulary, Failure> {
        let shown = path.display();
        let message = |text: String| Failure::Message(format!("the vocabulary `{shown}` {text}"));
        let text = fs::read_to_string(path).map_err(|e| {
            message(format!(
                "cannot be read: {e}; `--vocabulary FILE.json` names another"
            ))
        })?;
        let texts: Vec<String> = serde_json::from_str(&text)
            .map_err(|e| message(format!("is no JSON list of strings: {e}")))?;
        if texts.is_empty() {
            return Err(message("is empty".to_owned()));
        }
        Ok(Vocabulary::new(path, texts))
    }

    fn new(path: &Path, texts: Vec<String>) -> Vocabulary {
        let mut numbers = HashMap::new();
        for (number, text) in texts.iter().enumerate() {
            numbers.entry(text.clone()).or_insert(number);
        }
        let mut lengths: Vec<usize> = texts.iter().map(String::len).collect();
        lengths.retain(|length| *length > 0);
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths.dedup();
        Vocabulary {
            path: path.to_owned(),
            lengths,
            texts,
            numbers,
        }
    }

    /// Refuses a model that has logits for another number of tokens.
    pub(super) fn require(&self, logits: usize) -> Result<(), Failure> {
        if logits == self.texts.len() {
            return Ok(());
        }
        Err(Failure::Message(format!(
            "the vocabulary `{}` has {} tokens, and the model gives logits for {logits}",
            self.path.display(),
            self.texts.len()
        )))
    }

    /// The text of a token; nothing if there is no such token.
    pub(super) fn text(&self, token: usize) -> &str {
        self.texts.get(token).map_or("", String::as_str)
    }

    /// The tokens of a text: from left to right, each the longest that fits.
    ///
    /// # Errors
    /// Names the first character at which none fits.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<usize>, Failure> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let fits = |end: usize| Some((*self.numbers.get(rest.get(..end)?)?, end));
            let Some((token, end)) = self.lengths.iter().copied().find_map(fits) else {
                let place = text.chars().count() - rest.chars().count() + 1;
                return Err(Failure::Message(format!(
                    "no token of the vocabulary `{}` fits the prompt at {character:?}, its character {place}",
                    self.path.display()
                )));
            };
            tokens.push(token);
            rest = &rest[end..];
        }
        Ok(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_token_that_fits_is_taken() {
        let texts = ["a", "b", "ab", "é", "", "ab"].map(str::to_owned);
        let vocabulary = Vocabulary::new(Path::new("v.json"), texts.to_vec());
        assert_eq!(vocabulary.encode("aabéb").unwrap(), [0, 2, 3, 1]);
        assert!(vocabulary.encode("").unwrap().is_empty());
        let error = vocabulary.encode("aéù").unwrap_err().to_string();
        let expected =
            "no token of the vocabulary `v.json` fits the prompt at 'ù', its character 3";
        assert_eq!(error, expected);
        assert_eq!(
            [0, 3, 9].map(|token| vocabulary.text(token)),
            ["a", "é", ""]
        );
    }

    /// One long text in the file does not have all lengths tried up to its own, at each character of the prompt.
    #[test]
    fn only_lengths_that_tokens_have_are_tried() {
        let texts = ["a".to_owned(), "a".repeat(2_000_000) + "b"];
        let vocabulary = Vocabulary::new(Path::new("v.json"), texts.to_vec());
        let tokens = vocabulary.encode(&"a".repeat(100_000)).unwrap();
        assert!(tokens.len() == 100_000 && tokens.iter().all(|t| *t == 0));
    }
}
