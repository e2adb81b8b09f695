//! The header of a `.npy` file: a magic number and a Python dictionary.
//!
//! The crate `npyz` is not used: its reader parses any Python literal, in time exponential in the
//! brackets' depth, allocates what the length field says, and multiplies extents unchecked; and it needs ten crates.

/// The header as NumPy's `write_array_header` writes it.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
}

/// NumPy's own limit (`numpy.lib.format._MAX_HEADER_SIZE`).
const MAX_LEN: usize = 10_000;

impl Header {
    /// The header, and the data after it.
    pub(super) fn read(file: &[u8]) -> Result<(Header, &[u8]), String> {
        let rest = file
            .strip_prefix(b"\x93NUMPY")
            .ok_or("npy: does not start with \\x93NUMPY")?;
        let (len, rest) = match rest {
            [1, 0, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
            [2 | 3, 0, a, b, c, d, rest @ ..] => {
                (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest)
            }
            [1..=3, 0, ..] | [] | [_] => return Err("npy: the header is cut off".to_owned()),
            [major, minor, ..] => {
                return Err(format!(
                    "npy: expected format version 1.0, 2.0 or 3.0, found {major}.{minor}"
                ));
            }
        };
        if len > MAX_LEN {
            return Err(format!(
                "npy: the header takes {len} bytes, more than {MAX_LEN}"
            ));
        }
        let (text, data) = rest
            .split_at_checked(len)
            .ok_or("npy: the header is cut off")?;
        let text = std::str::from_utf8(text).map_err(|e| format!("npy: header: {e}"))?;
        Ok((parse(text)?, data))
    }
}

/// NumPy's type string, such as `<f4`.
#[derive(Debug, PartialEq)]
pub(super) struct TypeString {
    pub(super) is_big_endian: bool,
    /// Such as `f` for floats.
    pub(super) kind: u8,
    /// Of an element, in bytes.
    pub(super) size: u32,
}

impl TypeString {
    pub(super) fn parse(text: &str) -> Option<TypeString> {
        let [order @ (b'<' | b'>' | b'|'), kind, ..] = *text.as_bytes() else {
            return None;
        };
        Some(TypeString {
            is_big_endian: order == b'>',
            kind,
            size: text.get(2..)?.parse().ok()?,
        })
    }
}

/// A whole header as NumPy writes it, up to the data, padded to a multiple of 64 bytes.
pub(super) fn write(descr: &str, shape: &[usize]) -> Vec<u8> {
    let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let extents = extents.join(", ");
    let text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}{comma}), }}");
    // Magic number, version and length take ten bytes, or twelve where the length needs more than two.
    let padded = |start: usize| (start + text.len() + 1).next_multiple_of(64) - start;
    let mut file = b"\x93NUMPY".to_vec();
    let len = match u16::try_from(padded(10)) {
        Ok(len) => {
            file.extend([1, 0]);
            file.extend(len.to_le_bytes());
            usize::from(len)
        }
        Err(_) => {
            file.extend([2, 0]);
            file.extend((padded(12) as u32).to_le_bytes());
            padded(12)
        }
    };
    file.extend(text.bytes());
    file.resize(file.len() + len - text.len() - 1, b' ');
    file.push(b'\n');
    file
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, the keys in any order.
fn parse(text: &str) -> Result<Header, String> {
    let mut at = Cursor { text, rest: text };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    at.expect("{")?;
    while !at.eat("}") {
        let key = at.string()?;
        at.expect(":")?;
        match key {
            "descr" => descr = Some(at.string()?.to_owned()),
            "fortran_order" => fortran_order = Some(at.boolean()?),
            "shape" => shape = Some(at.tuple()?),
            _ => return Err(format!("npy: header: unknown key '{key}'")),
        }
        if !at.eat(",") {
            at.expect("}")?;
            break;
        }
    }
    at.end()?;
    let missing = |key| format!("npy: header: '{key}' is missing");
    Ok(Header {
        descr: descr.ok_or_else(|| missing("descr"))?,
        fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
    })
}

struct Cursor<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_ascii_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{token}`")))
        }
    }

    /// A quoted string. No key or plain type needs an escape, so a backslash is not one.
    fn string(&mut self) -> Result<&'a str, String> {
        let quote = ['\'', '"']
            .into_iter()
            .find(|q| self.eat(q.encode_utf8(&mut [0; 4])));
        match quote.and_then(|quote| self.rest.split_once(quote)) {
            Some((string, rest)) => {
                self.rest = rest;
                Ok(string)
            }
            None => Err(self.expected("a string")),
        }
    }

    fn boolean(&mut self) -> Result<bool, String> {
        if self.eat("False") {
            return Ok(false);
        }
        if self.eat("True") {
            Ok(true)
        } else {
            Err(self.expected("`True` or `False`"))
        }
    }

    fn tuple(&mut self) -> Result<Vec<u64>, String> {
        self.expect("(")?;
        let mut extents = Vec::new();
        while !self.eat(")") {
            extents.push(self.number()?);
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(extents)
    }

    fn number(&mut self) -> Result<u64, String> {
        self.rest = self.rest.trim_ascii_start();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        let number = digits.parse().map_err(|_| self.expected("an extent"))?;
        self.rest = rest;
        Ok(number)
    }

    fn end(&mut self) -> Result<(), String> {
        if self.rest.trim_ascii().is_empty() {
            Ok(())
        } else {
            Err(self.expected("nothing more"))
        }
    }

    fn expected(&self, what: &str) -> String {
        let at = self.text.len() - self.rest.len();
        let found: String = self.rest.trim_ascii_end().chars().take(20).collect();
        format!("npy: header: expected {what} at byte {at}, found `{found}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_are_read() {
        let header =
            parse("{'shape': (2, 3), \"descr\":'<f4','fortran_order' : True}  \n").unwrap();
        assert_eq!(
            header,
            Header {
                descr: "<f4".to_owned(),
                fortran_order: true,
                shape: vec![2, 3]
            }
        );
    }

    #[test]
    fn errors_say_where() {
        for (text, message) in [
            ("", "npy: header: expected `{` at byte 0, found ``"),
            ("{1", "npy: header: expected a string at byte 1, found `1`"),
            (
                "{'descr': [[[",
                "npy: header: expected a string at byte 10, found `[[[`",
            ),
            (
                "{'shape': (-1,)",
                "npy: header: expected an extent at byte 11, found `-1,)`",
            ),
            (
                "{'shape': (1 2)",
                "npy: header: expected `)` at byte 13, found `2)`",
            ),
            ("{'x': 1}", "npy: header: unknown key 'x'"),
            (
                "{'fortran_order': false}",
                "npy: header: expected `True` or `False` at byte 18, found `false}`",
            ),
            (
                "{'descr': '<f4'} {",
                "npy: header: expected nothing more at byte 16, found ` {`",
            ),
            (
                "{'descr': '<f4'}",
                "npy: header: 'fortran_order' is missing",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), message, "{text}");
        }
        for (file, message) in [
            (&b"PK"[..], "npy: does not start with \\x93NUMPY"),
            (b"\x93NUMPY\x01", "npy: the header is cut off"),
            (b"\x93NUMPY\x01\x00\x09\x00{", "npy: the header is cut off"),
            (
                b"\x93NUMPY\x04\x00\x09\x00{",
                "npy: expected format version 1.0, 2.0 or 3.0, found 4.0",
            ),
            (
                b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
                "npy: the header takes 4294967295 bytes, more than 10000",
            ),
            (
                b"\x93NUMPY\x01\x00\x02\x00\xff\xff",
                "npy: header: invalid utf-8 sequence of 1 bytes from index 0",
            ),
        ] {
            assert_eq!(Header::read(file).unwrap_err(), message);
        }
    }
}
