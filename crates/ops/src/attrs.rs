//! From the text of a layer's `<data/>` attributes to an operator's struct, with serde.

use crate::error::shortened;
use serde::de::value::{MapAccessDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use std::fmt;
use vinelift_tensor::ElementType;

/// A layer's attributes as the file has them: name and text.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(pub &'a [(String, String)]);

impl Attributes<'_> {
    /// Reads them into `T`. Lists are separated by commas; booleans are `true`, `false`, `1`, `0`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, AttrError> {
        T::deserialize(MapAccessDeserializer::new(Unread {
            rest: self.0.iter(),
            last: Value { name: "", text: "" },
        }))
    }
}

/// The attributes that are still to be read. What serde has for any iterator of pairs does more, and is compiled anew for each
/// operator.
struct Unread<'a> {
    rest: std::slice::Iter<'a, (String, String)>,
    /// The one whose name has been read last.
    last: Value<'a>,
}

impl<'de> MapAccess<'de> for Unread<'_> {
    type Error = AttrError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, AttrError> {
        let Some((name, text)) = self.rest.next() else {
            return Ok(None);
        };
        self.last = Value { name, text };
        let name: StrDeserializer<'_, AttrError> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, AttrError> {
        seed.deserialize(self.last)
    }
}

/// An attribute that cannot be read; the message names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttrError(String);

impl AttrError {
    /// ``  `name` must be EXPECTED, found `FOUND` ``
    pub fn new(name: &str, expected: &str, found: &str) -> AttrError {
        AttrError(format!("`{name}` must be {expected}, found `{found}`"))
    }
}

impl fmt::Display for AttrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shortened(&self.0))
    }
}

impl std::error::Error for AttrError {}

impl de::Error for AttrError {
    fn custom<T: fmt::Display>(message: T) -> AttrError {
        AttrError(message.to_string())
    }
}

/// Of versions of an operator that have none.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoAttributes {}

/// For `#[serde(default = "crate::attrs::yes")]`, as the others here.
pub(crate) const fn yes() -> bool {
    true
}

pub(crate) fn one<T: From<u8>>() -> T {
    T::from(1)
}

pub(crate) fn minus_one<T: From<i8>>() -> T {
    T::from(-1)
}

pub(crate) const fn i32_type() -> ElementType {
    ElementType::I32
}

pub(crate) const fn i64_type() -> ElementType {
    ElementType::I64
}

/// Whether indices, lengths and counts may be of type `ty`.
pub(crate) const fn is_index_type(ty: ElementType) -> bool {
    matches!(ty, ElementType::I32 | ElementType::I64)
}

/// The value `ty` of the attribute `name`, which says of what type an output of indices or counts is.
///
/// # Errors
/// If that is not one of the [types for them](is_index_type).
pub(crate) fn index_type(name: &str, ty: ElementType) -> Result<ElementType, AttrError> {
    match is_index_type(ty) {
        true => Ok(ty),
        false => Err(AttrError::new(name, "i32 or i64", &ty.to_string())),
    }
}

/// For `#[serde(deserialize_with = "element_type")]`.
pub(crate) fn element_type<'de, D: Deserializer<'de>>(d: D) -> Result<ElementType, D::Error> {
    let name: String = de::Deserialize::deserialize(d)?;
    name.parse().map_err(de::Error::custom)
}

/// One attribute, or one item of a list in it.
#[derive(Clone, Copy)]
struct Value<'a> {
    name: &'a str,
    text: &'a str,
}

impl Value<'_> {
    fn error(&self, expected: &str) -> AttrError {
        AttrError::new(self.name, expected, self.text)
    }

    /// Which of `variants` it is, in whatever case.
    fn variant(&self, variants: &[&'static str]) -> Result<&'static str, AttrError> {
        let text = self.text.trim();
        let variant = variants.iter().find(|v| v.eq_ignore_ascii_case(text));
        variant
            .copied()
            .ok_or_else(|| self.error(&format!("one of {}", variants.join(", "))))
    }
}

impl<'de> IntoDeserializer<'de, AttrError> for Value<'_> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $expected:literal),* $(,)?) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, AttrError> {
            visitor.$visit(self.text.trim().parse().map_err(|_| self.error($expected))?)
        }
    )* };
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = AttrError;

    numbers! {
        deserialize_i8 visit_i8 "an integer", deserialize_i16 visit_i16 "an integer",
        deserialize_i32 visit_i32 "an integer", deserialize_i64 visit_i64 "an integer",
        deserialize_u8 visit_u8 "a natural number", deserialize_u16 visit_u16 "a natural number",
        deserialize_u32 visit_u32 "a natural number", deserialize_u64 visit_u64 "a natural number",
        deserialize_f32 visit_f32 "a number", deserialize_f64 visit_f64 "a number",
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, AttrError> {
        visitor.visit_str(self.text)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, AttrError> {
        match self.text.trim() {
            "true" | "True" | "1" => visitor.visit_bool(true),
            "false" | "False" | "0" => visitor.visit_bool(false),
            _ => Err(self.error("true or false")),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, AttrError> {
        let text = self.text.trim();
        let items = text.split(',').filter(|_| !text.is_empty());
        let items = items.map(|text| Value {
            name: self.name,
            text: text.trim(),
        });
        visitor.visit_seq(SeqDeserializer::new(items))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, AttrError> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, AttrError> {
        visitor.visit_enum(self.variant(variants)?.into_deserializer())
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct
        map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        axis: i64,
        #[serde(default)]
        mask: Vec<i64>,
        #[serde(default)]
        keep: bool,
        #[serde(default)]
        mode: Mode,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        #[default]
        Numpy,
        Bidirectional,
    }

    fn parse(pairs: &[(&str, &str)]) -> Result<Sample, String> {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        Attributes(&pairs).parse().map_err(|e| e.to_string())
    }

    #[test]
    fn reads_every_form() {
        let got = parse(&[
            ("axis", "-1"),
            ("mask", "1, 0"),
            ("keep", "true"),
            ("mode", "BIDIRECTIONAL"),
        ]);
        let want = Sample {
            axis: -1,
            mask: vec![1, 0],
            keep: true,
            mode: Mode::Bidirectional,
        };
        assert_eq!(got, Ok(want));
        assert!(
            parse(&[("axis", "0"), ("mask", "")])
                .unwrap()
                .mask
                .is_empty()
        );
    }

    #[test]
    fn says_what_is_wrong() {
        let error = |pairs: &[(&str, &str)]| parse(pairs).unwrap_err();
        assert_eq!(
            error(&[("axis", "x")]),
            "`axis` must be an integer, found `x`"
        );
        assert_eq!(error(&[]), "missing field `axis`");
        assert_eq!(
            error(&[("axis", "0"), ("mask", "1,,2")]),
            "`mask` must be an integer, found ``"
        );
        assert_eq!(
            error(&[("axis", "0"), ("mode", "x")]),
            "`mode` must be one of numpy, bidirectional, found `x`"
        );
        assert!(
            error(&[("axis", "0"), ("batch_dims", "1")]).starts_with("unknown field `batch_dims`")
        );
        assert_eq!(
            error(&[("axis", "0"), ("axis", "1")]),
            "duplicate field `axis`"
        );
    }
}
