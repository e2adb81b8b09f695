//! Attributes of an element as a struct, through serde: the fields' types say what must be there
//! and what must be a number, and each fault has the place of its attribute.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::{Fault, excerpt};
use crate::tree::{Attribute, Item};

/// The attributes of `item` that are fields of `T`; the others are ignored.
pub(crate) fn read<T: DeserializeOwned>(item: Item) -> Result<T, Fault> {
    T::deserialize(Attributes {
        rest: item.attributes().iter(),
        value: None,
    })
    .map_err(|e| match e {
        Problem::At(fault) => fault,
        Problem::Message(message) => item.fault(format!("`<{}>`: {message}", excerpt(item.name()))),
    })
}

/// A whole number, -1 and below if `T` has them.
pub(crate) fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    // `parse` would take a plus sign too.
    let number = digits
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten();
    number.ok_or_else(|| {
        let signed = "-1".parse::<T>().is_ok();
        let kind = if signed {
            "a 64-bit whole number"
        } else {
            "a 64-bit whole number of no sign"
        };
        format!("expected {kind}, found `{}`", excerpt(text))
    })
}

struct Attributes<'t, 'a> {
    rest: std::slice::Iter<'t, Attribute<'a>>,
    value: Option<&'t Attribute<'a>>,
}

impl<'de> Deserializer<'de> for Attributes<'_, '_> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

impl<'de> de::MapAccess<'de> for Attributes<'_, '_> {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Problem> {
        self.value = self.rest.next();
        let Some(attribute) = self.value else {
            return Ok(None);
        };
        let name: StrDeserializer<Problem> = attribute.name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        let attribute = self
            .value
            .ok_or_else(|| de::Error::custom("a value without a name"))?;
        seed.deserialize(Value(&attribute.value))
            .map_err(|problem| match problem {
                Problem::Message(message) => {
                    let name = excerpt(attribute.name);
                    Problem::At(attribute.fault(format!("attribute `{name}`: {message}")))
                }
                at => at,
            })
    }
}

/// The value of an attribute: a number if the field is one.
struct Value<'t>(&'t str);

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_i64(number(self.0).map_err(Problem::Message)?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_u64(number(self.0).map_err(Problem::Message)?)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A fault whose place may not be known yet.
#[derive(Debug)]
enum Problem {
    Message(String),
    At(Fault),
}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Problem {
        Problem::Message(message.to_string())
    }

    fn missing_field(field: &'static str) -> Problem {
        Problem::Message(format!("attribute `{field}` is missing"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Message(message) => f.write_str(message),
            Problem::At(fault) => f.write_str(&fault.message),
        }
    }
}

impl std::error::Error for Problem {}
