//! String tensors as JSON: `{"shape": [2], "data": ["a", "b"]}`.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::{FileError, PartialShape, Tensor, TensorError};

/// Reads a `string` tensor of a shape that `expected` allows.
pub fn read_json(text: &[u8], expected: &PartialShape) -> Result<Tensor, FileError> {
    let format = |message: String| FileError::Format(format!("string tensor: {message}"));
    let value: Value = serde_json::from_slice(text).map_err(|e| format(e.to_string()))?;
    let Value::Object(mut object) = value else {
        return Err(format(
            "expected an object with `shape` and `data`".to_owned(),
        ));
    };
    let mut array = |key: &str| match object.remove(key) {
        Some(Value::Array(array)) => Ok(array),
        Some(_) => Err(format(format!("`{key}` is no array"))),
        None => Err(format(format!("`{key}` is missing"))),
    };
    let (shape, data) = (array("shape")?, array("data")?);
    if let Some(key) = object.keys().next() {
        return Err(format(format!("unknown key `{key}`")));
    }
    let extents: Option<Vec<u64>> = shape.iter().map(Value::as_u64).collect();
    let found =
        extents.ok_or_else(|| format("`shape` holds something other than extents".to_owned()))?;
    let shape: Option<Vec<usize>> = found.iter().map(|&d| usize::try_from(d).ok()).collect();
    let Some(shape) = shape.filter(|shape| expected.contains(shape)) else {
        return Err(FileError::Shape {
            expected: expected.clone(),
            found,
        });
    };
    let strings = data.into_iter().map(|value| match value {
        Value::String(string) => Ok(string),
        other => Err(format(format!("`data` holds {other}, which is no string"))),
    });
    Ok(Tensor::from_strings(
        &shape,
        strings.collect::<Result<_, _>>()?,
    )?)
}

/// Writes a `string` tensor; one of another type is an error of kind `InvalidInput`.
pub fn write_json(tensor: &Tensor, mut writer: impl Write) -> io::Result<()> {
    let strings = tensor.strings().ok_or_else(|| {
        let error = TensorError::ElementType {
            expected: "string",
            found: tensor.element_type(),
        };
        io::Error::new(io::ErrorKind::InvalidInput, error)
    })?;
    let value = json!({ "shape": tensor.shape(), "data": strings });
    serde_json::to_writer(&mut writer, &value)?;
    writer.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementType;

    fn read(text: &str) -> Result<Tensor, String> {
        read_json(text.as_bytes(), &PartialShape::any_of_rank(1)).map_err(|e| e.to_string())
    }

    #[test]
    fn the_documented_form() {
        let tensor = read(r#"{"shape": [2], "data": ["a", "b"]}"#).unwrap();
        assert_eq!(tensor.strings().unwrap(), ["a", "b"]);
        let mut text = Vec::new();
        write_json(&tensor, &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "{\"data\":[\"a\",\"b\"],\"shape\":[2]}\n"
        );
        let floats = Tensor::zeros(ElementType::F32, &[]).unwrap();
        let error = write_json(&floats, Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected elements of type string, found f32"
        );
    }

    #[test]
    fn errors() {
        for (text, message) in [
            (
                "{",
                "string tensor: EOF while parsing an object at line 1 column 1",
            ),
            (
                "[]",
                "string tensor: expected an object with `shape` and `data`",
            ),
            (r#"{"shape": [0]}"#, "string tensor: `data` is missing"),
            (
                r#"{"shape": 0, "data": []}"#,
                "string tensor: `shape` is no array",
            ),
            (
                r#"{"shape": [-1], "data": []}"#,
                "string tensor: `shape` holds something other than extents",
            ),
            (
                r#"{"shape": [1], "data": [2]}"#,
                "string tensor: `data` holds 2, which is no string",
            ),
            (
                r#"{"shape": [0], "data": [], "x": 1}"#,
                "string tensor: unknown key `x`",
            ),
            (
                r#"{"shape": [1, 1], "data": ["a"]}"#,
                "expected shape [?], found [1, 1]",
            ),
            (
                r#"{"shape": [3], "data": ["a"]}"#,
                "shape [3] needs 3 elements, found 1",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), message);
        }
        assert!(
            read(&"[".repeat(100_000)).is_err(),
            "deep nesting is refused, not recursed into"
        );
    }
}
