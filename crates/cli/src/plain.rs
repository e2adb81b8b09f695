//! Text for a terminal. Names and texts in files may hold any character; one that would have the terminal do
//! something must not get there.

use std::borrow::Cow;
use std::io::{self, Write};

/// `text` with its control characters escaped, but for those that lines and columns end with.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let controls = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(controls) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| match controls(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Writes what it is given as [`plain`] text. What it is given at a time are whole characters.
pub(crate) struct Plain<W>(pub(crate) W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(plain(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_and_columns_pass() {
        assert_eq!(plain("é 模\n\ta"), "é 模\n\ta");
        // ESC, which sequences of ECMA-48 begin with; CSI, which is both in one; DEL.
        assert_eq!(
            plain("\u{1b}[31m\u{9b}1m\r\u{7f}"),
            r"\u{1b}[31m\u{9b}1m\r\u{7f}"
        );
        let mut out = Plain(Vec::new());
        let name = "a\u{7}";
        write!(out, "'{name}'").unwrap();
        assert_eq!(out.0, br"'a\u{7}'");
    }
}
