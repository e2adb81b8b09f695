//! `StringTensorPack` and `StringTensorUnpack`: strings from slices of UTF-8 bytes,
//! `out[i..] = symbols[begins[i..] .. ends[i..]]`, and back.
//!
//! Specifications: StringTensorPack-15, StringTensorUnpack-15. The slices need not cover the symbols
//! and may overlap; one that does not lie within them, or is no UTF-8, is an error. Unpacked strings
//! follow each other without gaps.

use crate::error::ensure;
use crate::op::parse_native;
use crate::{Build, Evaluate, Family, Infer, Native, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::{room_for, text};
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) static PACK: OpDef = OpDef {
    name: "StringTensorPack",
    versions: &["opset15"],
    signature: Signature::new(&["begins", "ends", "symbols"]),
    family: Family::Native,
    build: Build::Native(parse_native::<Pack>),
};

pub(crate) static UNPACK: OpDef = OpDef {
    name: "StringTensorUnpack",
    versions: &["opset15"],
    signature: Signature::new(&["data"]),
    family: Family::Native,
    build: Build::Native(parse_native::<Unpack>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pack {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unpack {}

impl Native for Pack {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_index("begins")?;
        cx.expect_index("ends")?;
        cx.expect("symbols", "u8", |t| t == ElementType::U8)?;
        cx.expect_rank("symbols", 1)?;
        let (begins, ends) = (cx.shape("begins"), cx.shape("ends"));
        let Some(shape) = begins.intersect(ends) else {
            return Err(OpError::Shape(format!(
                "`begins` {begins} and `ends` {ends} must have the same shape"
            )));
        };
        Ok(vec![TensorType::new(ElementType::String, shape)])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let (begins, ends) = (cx.integers("begins")?, cx.integers("ends")?);
        let symbols = cx.input("symbols").bytes();
        let mut strings = room_for(begins.len())?;
        for (&begin, &end) in begins.iter().zip(&ends) {
            let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
            let slice = range.and_then(|(begin, end)| symbols.get(begin..end));
            let Some(slice) = slice else {
                return Err(OpError::Shape(format!(
                    "`begins` {begin} and `ends` {end} are no slice of the {} `symbols`",
                    symbols.len()
                )));
            };
            let string = std::str::from_utf8(slice).map_err(|e| {
                OpError::Shape(format!("`symbols` from {begin} to {end} are no UTF-8: {e}"))
            })?;
            strings.push(text(string)?);
        }
        Ok(vec![Tensor::from_strings(cx.shape("begins"), strings)?])
    }
}

impl Native for Unpack {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect("data", "string", |t| t == ElementType::String)?;
        let bounds = TensorType::new(ElementType::I32, cx.shape("data").clone());
        let symbols = PartialShape::ranked(vec![Dim::ANY]);
        let symbols = TensorType::new(ElementType::U8, symbols);
        Ok(vec![bounds.clone(), bounds, symbols])
    }

    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError> {
        let strings = cx.input("data").strings().unwrap_or_default();
        let length = strings
            .iter()
            .map(String::len)
            .fold(0, usize::saturating_add);
        ensure!(
            i32::try_from(length).is_ok(),
            "the strings of `data` have {length} bytes, more than i32 can count"
        );
        let mut symbols = room_for(length)?;
        let (mut begins, mut ends) = (room_for(strings.len())?, room_for(strings.len())?);
        for string in strings {
            begins.push(symbols.len() as i32);
            symbols.extend_from_slice(string.as_bytes());
            ends.push(symbols.len() as i32);
        }
        let shape = cx.shape("data");
        Ok(vec![
            Tensor::from_slice(shape, &begins)?,
            Tensor::from_slice(shape, &ends)?,
            Tensor::from_slice(&[length], &symbols)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, i32s, i64s, infer, run, run_all};

    fn bytes(text: &[u8]) -> Tensor {
        Tensor::from_slice(&[text.len()], text).unwrap()
    }

    fn strings(shape: &[usize], strings: &[&str]) -> Tensor {
        Tensor::from_strings(shape, strings.iter().map(|s| s.to_string()).collect()).unwrap()
    }

    /// The examples of the specification.
    #[test]
    fn there_and_back() {
        let of = |shape: &[usize], begins: &[i64], ends: &[i64], text: &str| {
            let bounds = [begins, ends].map(|v| i64s(shape, v));
            let [begins, ends] = bounds;
            run(&PACK, &[], &[begins, ends, bytes(text.as_bytes())])
        };
        let out = of(
            &[2, 2],
            &[0, 5, 13, 16],
            &[5, 13, 16, 21],
            "IntelOpenVINOOMZGenAI",
        );
        let want = strings(&[2, 2], &["Intel", "OpenVINO", "OMZ", "GenAI"]);
        assert_eq!(out, want);
        assert_eq!(
            of(&[2], &[0, 8], &[1, 9], "123456789"),
            strings(&[2], &["1", "9"])
        );
        assert_eq!(of(&[0], &[], &[], ""), strings(&[0], &[]));
        let found = run_all(&UNPACK, &[], &[want], IndexPolicy::Spec).unwrap();
        let bounds = [[0, 5, 13, 16], [5, 13, 16, 21]].map(|v| i32s(&[2, 2], &v));
        assert_eq!(
            found,
            [&bounds[..], &[bytes(b"IntelOpenVINOOMZGenAI")]].concat()
        );
        let of = |s: &[&str]| run_all(&UNPACK, &[], &[strings(&[s.len()], s)], IndexPolicy::Spec);
        let want = [
            i32s(&[2], &[0, 2]),
            i32s(&[2], &[2, 2]),
            bytes("é".as_bytes()),
        ];
        assert_eq!(of(&["é", ""]).unwrap(), want);
        assert_eq!(of(&[]).unwrap()[2], bytes(b""));
    }

    #[test]
    fn slices_must_lie_within() {
        let of = |begin: i64, end: i64| {
            let inputs = [
                i64s(&[], &[begin]),
                i64s(&[], &[end]),
                bytes("aé".as_bytes()),
            ];
            error(&PACK, &[], &inputs)
        };
        let message = "`begins` 0 and `ends` 4 are no slice of the 3 `symbols`";
        assert_eq!(of(0, 4), message);
        let message = "`begins` -1 and `ends` 2 are no slice of the 3 `symbols`";
        assert_eq!(of(-1, 2), message);
        let message = "`begins` 2 and `ends` 1 are no slice of the 3 `symbols`";
        assert_eq!(of(2, 1), message);
        let message =
            "`symbols` from 0 to 2 are no UTF-8: incomplete utf-8 byte sequence from index 1";
        assert_eq!(of(0, 2), message);
    }

    #[test]
    fn partial_shapes() {
        let bounds = |n| {
            (
                ElementType::I32,
                PartialShape::ranked(vec![Dim::ANY, n]),
                None,
            )
        };
        let symbols = (ElementType::U8, PartialShape::DYNAMIC, None);
        let inputs = [bounds(Dim::ANY), bounds(Dim::fixed(3)), symbols];
        assert_eq!(infer(&PACK, &[], &inputs).0, "string[?, 3]");
        let data = (ElementType::String, PartialShape::any_of_rank(1), None);
        assert_eq!(infer(&UNPACK, &[], &[data]).0, "i32[?] i32[?] u8[?]");
    }
}
