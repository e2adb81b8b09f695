//! Where a JPEG ends. Decoders take one that was cut off, and fill in what is missing.

/// The marker after the last of the data.
const END: u8 = 0xD9;

/// Whether a JPEG goes on to the marker of its end.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    let start = [0xFF, 0xD8];
    bytes.strip_prefix(&start).and_then(to_end).is_some()
}

/// The bytes after the marker that ends the picture; `None` if the file stops before it.
fn to_end(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let at = rest
            .windows(2)
            .position(|pair| is_marker([pair[0], pair[1]]))?;
        let marker = rest[at + 1];
        rest = &rest[at + 2..];
        if marker == END {
            return Some(rest);
        }
        // Its parameters, among which a smaller picture may have an end of its own. The data of a scan follow those.
        let length = u16::from_be_bytes([*rest.first()?, *rest.get(1)?]);
        rest = rest.get(usize::from(length)..)?;
    }
}

/// Whether two bytes are a marker that parameters follow, or the end: not a byte 255 of the data, a filler, or where
/// data start again.
fn is_marker([first, second]: [u8; 2]) -> bool {
    first == 0xFF && !matches!(second, 0x00 | 0x01 | 0xD0..=0xD7 | 0xFF)
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    /// ITU-T T.81, annex B: start, a comment, the head of a scan and its data with a restart, end.
    #[test]
    fn the_end_is_that_of_the_picture_itself() {
        let comment = [0xFF, 0xFE, 0, 4, 0xFF, 0xD9];
        let scan = [0xFF, 0xDA, 0, 3, 1, 5, 0xFF, 0, 0xFF, 0xD0, 7];
        let whole = [&[0xFF, 0xD8][..], &comment, &scan, &[0xFF, 0xD9]].concat();
        assert!(is_whole(&whole));
        assert!((0..whole.len()).all(|length| !is_whole(&whole[..length])));
        assert!(is_whole(&[&whole[..], &[1, 2]].concat()));
        // Parameters that are longer than the file, and another file.
        assert!(!is_whole(&[0xFF, 0xD8, 0xFF, 0xFE, 1, 0, 0xFF, 0xD9]));
        assert!(!is_whole(&[1, 2, 0xFF, 0xD9]));
    }
}
