//! String tensors as the IR format keeps them among the weights.
//!
//! Little-endian `i32`s: how many strings, where the first starts, where each ends; then the text
//! of all of them, to which those positions refer.

use crate::{ElementType, Tensor, TensorError, element_count, memory};

impl Tensor {
    /// The `string` tensor that `bytes` hold. Bytes after the last string are ignored, and a tensor
    /// without elements needs none at all.
    pub fn decode_strings(shape: &[usize], bytes: &[u8]) -> Result<Tensor, TensorError> {
        let count = element_count(shape).ok_or_else(|| TensorError::TooLarge {
            element_type: ElementType::String,
            shape: shape.to_vec(),
        })?;
        if count == 0 {
            return Tensor::from_strings(shape, Vec::new());
        }
        let found = position(bytes, 0)?;
        if found != count {
            return Err(TensorError::ElementCount {
                shape: shape.to_vec(),
                expected: count,
                found,
            });
        }
        // Checked before the allocation: the count may not be more than the bytes can hold.
        let text_start = count.saturating_add(2).saturating_mul(4);
        let text = bytes.get(text_start..).ok_or_else(|| {
            broken(format!(
                "{count} strings need {text_start} bytes of positions, found {}",
                bytes.len()
            ))
        })?;
        let mut strings = memory::room_for(count)?;
        let mut start = position(bytes, 1)?;
        for k in 0..count {
            let end = position(bytes, k + 2)?;
            let one = text.get(start..end).ok_or_else(|| {
                broken(format!(
                    "string {k} spans bytes {start}..{end} of {}",
                    text.len()
                ))
            })?;
            let one = std::str::from_utf8(one).map_err(|e| broken(format!("string {k}: {e}")))?;
            strings.push(memory::text(one)?);
            start = end;
        }
        Tensor::from_strings(shape, strings)
    }

    /// The bytes from which [`decode_strings`](Tensor::decode_strings) makes this `string` tensor.
    pub fn encode_strings(&self) -> Result<Vec<u8>, TensorError> {
        let strings = self.strings().ok_or(TensorError::ElementType {
            expected: ElementType::String.name(),
            found: self.element_type(),
        })?;
        let i32_bytes = |n: usize| {
            let n = i32::try_from(n)
                .map_err(|_| broken(format!("position {n} does not fit an i32")))?;
            Ok(n.to_le_bytes())
        };
        let text = strings
            .iter()
            .map(String::len)
            .fold(0, usize::saturating_add);
        let positions = strings.len().saturating_add(2).saturating_mul(4);
        let mut bytes = memory::room_for(positions.saturating_add(text))?;
        bytes.extend(i32_bytes(strings.len())?);
        bytes.extend([0; 4]);
        let mut end = 0;
        for one in strings {
            end += one.len();
            bytes.extend(i32_bytes(end)?);
        }
        strings.iter().for_each(|one| bytes.extend(one.as_bytes()));
        Ok(bytes)
    }
}

/// The `index`-th of the leading `i32`s.
fn position(bytes: &[u8], index: usize) -> Result<usize, TensorError> {
    let field = bytes
        .get(index * 4..)
        .and_then(|rest| rest.first_chunk::<4>());
    let field = field.ok_or_else(|| broken(format!("ends after {} bytes", bytes.len())))?;
    let value = i32::from_le_bytes(*field);
    usize::try_from(value)
        .map_err(|_| broken(format!("negative number {value} at byte {}", index * 4)))
}

fn broken(reason: String) -> TensorError {
    TensorError::EncodedStrings(reason)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn measured() -> Vec<u8> {
        let mut bytes: Vec<u8> = [4i32, 0, 2, 2, 7, 11]
            .into_iter()
            .flat_map(i32::to_le_bytes)
            .collect();
        bytes.extend("abhéé🙂".as_bytes());
        bytes
    }

    /// The bytes are what OpenVINO 2026.4.1 writes for these strings.
    #[test]
    fn measured_bytes() {
        let strings = ["ab", "", "héé", "🙂"].map(str::to_owned).to_vec();
        let tensor = Tensor::from_strings(&[4], strings).unwrap();
        assert_eq!(tensor.encode_strings().unwrap(), measured());
        assert_eq!(Tensor::decode_strings(&[4], &measured()).unwrap(), tensor);
    }

    #[test]
    fn broken_bytes_are_refused() {
        let error = |shape: &[usize], bytes: &[u8]| {
            Tensor::decode_strings(shape, bytes)
                .unwrap_err()
                .to_string()
        };
        let with = |at: usize, value: i32| {
            let mut bytes = measured();
            bytes[at * 4..at * 4 + 4].copy_from_slice(&value.to_le_bytes());
            bytes
        };
        assert_eq!(
            error(&[3], &measured()),
            "shape [3] needs 3 elements, found 4"
        );
        assert_eq!(error(&[4], &[1]), "encoded strings: ends after 1 bytes");
        assert_eq!(
            error(&[4], &with(0, -1)),
            "encoded strings: negative number -1 at byte 0"
        );
        assert_eq!(
            error(&[1 << 30], &with(0, 1 << 30)),
            "encoded strings: 1073741824 strings need 4294967304 bytes of positions, found 35"
        );
        assert_eq!(
            error(&[4], &with(3, 1)),
            "encoded strings: string 1 spans bytes 2..1 of 11"
        );
        assert_eq!(
            error(&[4], &with(5, 99)),
            "encoded strings: string 3 spans bytes 7..99 of 11"
        );
        assert_eq!(
            error(&[4], &with(4, 4)),
            "encoded strings: string 2: incomplete utf-8 byte sequence from index 1"
        );
        assert_eq!(
            Tensor::decode_strings(&[0], &[0]).unwrap().element_count(),
            0
        );
        for end in 0..measured().len() {
            assert!(Tensor::decode_strings(&[4], &measured()[..end]).is_err());
        }
        assert_eq!(
            Tensor::zeros(ElementType::U8, &[])
                .unwrap()
                .encode_strings()
                .unwrap_err()
                .to_string(),
            "expected elements of type string, found u8"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>, count in 0usize..5) {
            let _ = Tensor::decode_strings(&[count], &bytes);
            let mut bytes = bytes;
            bytes.splice(0..0, (count as i32).to_le_bytes());
            let _ = Tensor::decode_strings(&[count], &bytes);
        }
    }
}
