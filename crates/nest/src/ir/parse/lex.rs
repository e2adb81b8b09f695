//! The words and signs of the text form.

use super::{Line, Parsed, fail};

/// The mark before the names of a stage's layers.
pub(super) const COMMENT: &str = "  # ";

impl<'a> Line<'a> {
    /// A word, or any text in quotes.
    pub(super) fn name(&mut self) -> Parsed<String> {
        let start = self.skip();
        if !self.eat("\"") {
            let word = self.word();
            return if word.is_empty() {
                fail(start, "expected a name")
            } else {
                Ok(word.to_owned())
            };
        }
        let end = quote_end(self.text, self.at)
            .ok_or_else(|| (start, "a name without an end".to_owned()))?;
        let name = unescape(&self.text[self.at..end]);
        self.at = end + 1;
        name.ok_or_else(|| (start, "an unknown escape".to_owned()))
    }

    /// Letters, digits, `_`, `.` and `/`, not starting with a digit; empty if there are none.
    pub(super) fn word(&mut self) -> &'a str {
        let start = self.skip();
        let starts_well = |c: char| c.is_ascii_alphabetic() || c == '_';
        if self.text[start..].starts_with(starts_well) {
            self.rest_of_word()
        } else {
            ""
        }
    }

    /// The characters from here on that a word may hold.
    pub(super) fn rest_of_word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    pub(super) fn number(&mut self) -> Parsed<usize> {
        let start = self.skip();
        let rest = &self.text[start..];
        let digits = &rest[..rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len())];
        self.at += digits.len();
        digits
            .parse()
            .map_err(|_| (start, format!("expected a number, found `{digits}`")))
    }

    /// `= 00ff…`
    pub(super) fn bytes(&mut self) -> Parsed<Vec<u8>> {
        self.expect("=")?;
        let start = self.skip();
        let (pairs, rest) = self.text.as_bytes()[start..].as_chunks::<2>();
        let digit = |d: u8| char::from(d).to_digit(16);
        let bytes = pairs
            .iter()
            .map(|[high, low]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok());
        self.at = self.text.len();
        let bytes = bytes
            .collect::<Option<Vec<u8>>>()
            .filter(|_| rest.is_empty());
        bytes.ok_or_else(|| (start, "expected pairs of hexadecimal digits".to_owned()))
    }

    /// Items with commas in between, up to `end`.
    pub(super) fn separated<T>(
        &mut self,
        end: &str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.eat(end) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(super) fn skip(&mut self) -> usize {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches(' ').len();
        self.at
    }

    pub(super) fn peek(&mut self, token: &str) -> bool {
        let start = self.skip();
        self.text[start..].starts_with(token)
    }

    pub(super) fn eat(&mut self, token: &str) -> bool {
        let found = self.peek(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    pub(super) fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.eat(token) {
            Ok(())
        } else {
            fail(self.at, format!("expected `{token}`"))
        }
    }

    pub(super) fn end(&mut self) -> Parsed<()> {
        if self.skip() == self.text.len() {
            Ok(())
        } else {
            fail(self.at, "expected the end of the line")
        }
    }
}

pub(super) fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/')
}

/// Where the comment of a line starts; not within quotes.
pub(super) fn comment(line: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &line[at..];
        let (comment, quote) = (rest.find(COMMENT), rest.find('"'));
        match quote {
            Some(quote) if comment.is_none_or(|comment| quote < comment) => {
                at = quote_end(line, at + quote + 1)? + 1
            }
            _ => return comment.map(|comment| at + comment),
        }
    }
}

/// Where the quotes end that were opened before `start`.
fn quote_end(text: &str, start: usize) -> Option<usize> {
    let mut escaped = false;
    let end = text[start..].bytes().position(|b| {
        let ends = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        ends
    });
    end.map(|end| start + end)
}

/// Text as `Debug` escapes it, as it was.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        plain += before;
        let mut next = escape.chars();
        let c = next.next()?;
        rest = next.as_str();
        plain.push(match c {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => '\0',
            '\\' | '"' | '\'' => c,
            'u' => {
                let (code, after) = rest.strip_prefix('{')?.split_once('}')?;
                rest = after;
                char::from_u32(u32::from_str_radix(code, 16).ok()?)?
            }
            _ => return None,
        });
    }
    Some(plain + rest)
}
