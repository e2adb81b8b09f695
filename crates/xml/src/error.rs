//! Errors in the files.

use std::io;
use std::path::PathBuf;

/// Why a file cannot be read. Except for [`Io`](Error::Io), it is the file's fault.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no XML, or no IR.
    #[error("{line}:{column}: {message}")]
    Document {
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
        /// The message.
        message: String,
    },
    /// The text is longer than [`MAX_TEXT`](crate::MAX_TEXT).
    #[error("the text takes {len} bytes, more than {max}")]
    TooLong {
        /// Its length in bytes.
        len: u64,
        /// The limit.
        max: u64,
    },
    /// A constant is not inside the weights.
    #[error("constant at offset {offset} of {size} bytes exceeds the weights of {len} bytes")]
    Weights {
        /// Where the constant starts.
        offset: u64,
        /// Its length in bytes.
        size: u64,
        /// The length of the weights in bytes.
        len: u64,
    },
    /// The operating system cannot read the file.
    #[error("cannot read `{path}`: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An error in a file, with the file's name.
    #[error("{}:{}{source}", .path.display(), .source.gap())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: Box<Error>,
    },
}

impl Error {
    /// The text between the name of a file and the error: empty before a line number.
    fn gap(&self) -> &'static str {
        match self {
            Error::Document { .. } => "",
            _ => " ",
        }
    }
}

/// An error at a byte of the text, before that is turned into line and column.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(offset: usize, message: impl Into<String>) -> Fault {
        Fault {
            offset,
            message: message.into(),
        }
    }

    /// The error, in `text`, of which the fault's offset counts the bytes.
    pub(crate) fn into_error(self, text: &[u8]) -> Error {
        let before = text.get(..self.offset).unwrap_or(text);
        let last_line = before.rsplit(|&b| b == b'\n').next().unwrap_or(before);
        // Every character has one byte that does not continue another.
        let characters = last_line.iter().filter(|&&b| b & 0xc0 != 0x80).count();
        Error::Document {
            line: 1 + before.iter().filter(|&&b| b == b'\n').count(),
            column: 1 + characters,
            message: self.message,
        }
    }
}

/// Text from a file for a message: without control characters, and cut if it is long.
pub(crate) fn excerpt(text: &str) -> String {
    excerpt_of(text, 40)
}

/// As [`excerpt`], of a message that has text from a file in it.
pub(crate) fn excerpt_of(text: &str, max: usize) -> String {
    let mut chars = text.chars();
    let mut cut: String = chars.by_ref().take(max).flat_map(show).collect();
    if chars.next().is_some() {
        cut.push('…');
    }
    cut
}

fn show(c: char) -> impl Iterator<Item = char> {
    let (escaped, plain) = if c.is_control() {
        (Some(c.escape_default()), None)
    } else {
        (None, Some(c))
    };
    escaped.into_iter().flatten().chain(plain)
}
