//! Parts of the graph itself: they have attributes, and neither `infer` nor `lower`.

use crate::{AttrError, Attributes, Build, Family, OpDef, Signature, TensorType};
use serde::Deserialize;
use serde::de::Error;
use vinelift_nest::MAX_RANK;
use vinelift_tensor::{Dim, ElementType, PartialShape, Shape};

/// An input of the model.
pub(crate) static PARAMETER: OpDef = structure("Parameter", &["opset1"], &[]);
/// A tensor in the weights.
pub(crate) static CONST: OpDef = structure("Const", &["opset1"], &[]);
/// An output of the model.
pub(crate) static RESULT: OpDef = structure("Result", &["opset1"], &["x"]);
/// One of two sub-graphs.
pub(crate) static IF: OpDef = structure("If", &["opset8"], &["condition"]);
/// A sub-graph, run as often as a count and a condition say.
pub(crate) static LOOP: OpDef = structure("Loop", &["opset5"], &["trip_count", "condition"]);
/// A sub-graph, run for each slice of its inputs.
pub(crate) static TENSOR_ITERATOR: OpDef = structure("TensorIterator", &["opset1"], &[]);
/// The value of a variable when a run starts.
pub(crate) static READ_VALUE: OpDef = structure("ReadValue", &["opset3", "opset6"], &["init"]);
/// The value of a variable when a run has ended.
pub(crate) static ASSIGN: OpDef = structure("Assign", &["opset3", "opset6"], &["value"]);

const fn structure(
    name: &'static str,
    versions: &'static [&'static str],
    inputs: &'static [&'static str],
) -> OpDef {
    OpDef {
        name,
        versions,
        signature: Signature::new(inputs),
        family: Family::Structure,
        build: Build::Structure,
    }
}

/// The attributes of a `Parameter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterAttributes {
    /// The shapes that it takes.
    pub shape: PartialShape,
    /// Its element type; `None` in a sub-graph whose parameter has the type of what it gets.
    pub element_type: Option<ElementType>,
}

impl ParameterAttributes {
    /// Reads `shape="?,3,1..7,2.."` (`...` for any rank, empty for a scalar) and `element_type="f32"` or
    /// `dynamic`.
    pub fn parse(attributes: &Attributes<'_>) -> Result<ParameterAttributes, AttrError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Raw {
            shape: String,
            element_type: String,
        }
        let Raw {
            shape,
            element_type,
        } = attributes.parse()?;
        let element_type = match element_type.as_str() {
            "dynamic" => None,
            name => Some(name.parse().map_err(AttrError::custom)?),
        };
        let shape = partial_shape("shape", &shape)?;
        Ok(ParameterAttributes {
            shape,
            element_type,
        })
    }
}

/// The variable of a `ReadValue` or an `Assign`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableAttributes {
    /// Its name.
    pub id: String,
    /// The type of its values, where the layer declares it.
    pub declared: Option<TensorType>,
}

impl VariableAttributes {
    /// Reads `variable_id`, and `variable_type` and `variable_shape` where they are there.
    pub fn parse(attributes: &Attributes<'_>) -> Result<VariableAttributes, AttrError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Raw {
            variable_id: String,
            variable_type: Option<String>,
            variable_shape: Option<String>,
        }
        let raw: Raw = attributes.parse()?;
        let element = raw.variable_type.as_deref().filter(|t| *t != "dynamic");
        let element = element.map(|t| {
            let bad = |_| AttrError::new("variable_type", "an element type", t);
            t.parse::<ElementType>().map_err(bad)
        });
        let shape = raw.variable_shape.as_deref();
        let shape = shape.map(|text| partial_shape("variable_shape", text));
        let (element, shape) = (element.transpose()?, shape.transpose()?);
        Ok(VariableAttributes {
            id: raw.variable_id,
            declared: element
                .map(|element| TensorType::new(element, shape.unwrap_or(PartialShape::DYNAMIC))),
        })
    }
}

/// Where a `Const` is found, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstAttributes {
    /// Its element type.
    pub element_type: ElementType,
    /// Its shape.
    pub shape: Shape,
    /// Position of its first byte in the weights.
    pub offset: u64,
    /// Bytes there; may be more than the shape needs.
    pub size: u64,
}

impl ConstAttributes {
    /// Reads `element_type`, `shape="3, 4"`, `offset` and `size`.
    pub fn parse(attributes: &Attributes<'_>) -> Result<ConstAttributes, AttrError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Raw {
            #[serde(deserialize_with = "crate::attrs::element_type")]
            element_type: ElementType,
            shape: Vec<u64>,
            offset: u64,
            size: u64,
        }
        let Raw {
            element_type,
            shape,
            offset,
            size,
        } = attributes.parse()?;
        check_rank("shape", shape.len())?;
        let extent = |d: &u64| {
            usize::try_from(*d)
                .map_err(|_| AttrError::new("shape", "a list of extents", &d.to_string()))
        };
        let shape = shape.iter().map(extent).collect::<Result<_, _>>()?;
        Ok(ConstAttributes {
            element_type,
            shape,
            offset,
            size,
        })
    }
}

/// The text of a partial shape as `Parameter` writes it.
pub fn format_shape(shape: &PartialShape) -> String {
    let Some(dims) = shape.dims() else {
        return "...".to_owned();
    };
    dims.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

/// The shape that the attribute `name` gives as `text`.
fn partial_shape(name: &'static str, text: &str) -> Result<PartialShape, AttrError> {
    match text.trim() {
        "..." => Ok(PartialShape::DYNAMIC),
        "" => Ok(PartialShape::ranked(Vec::new())),
        list => {
            check_rank(name, list.split(',').count())?;
            let dims: Option<Vec<Dim>> = list.split(',').map(|d| dim(d.trim())).collect();
            let dims = dims.ok_or_else(|| AttrError::new(name, "a list of dims", text));
            Ok(PartialShape::ranked(dims?))
        }
    }
}

/// Shape inference takes time for each pair of dims, so the number of dims is limited.
fn check_rank(name: &'static str, rank: usize) -> Result<(), AttrError> {
    if rank <= MAX_RANK {
        return Ok(());
    }
    let expected = format!("a list of at most {MAX_RANK} dims");
    Err(AttrError::new(name, &expected, &format!("{rank} dims")))
}

fn dim(text: &str) -> Option<Dim> {
    if text == "?" || text == "-1" {
        return Some(Dim::ANY);
    }
    let Some((min, max)) = text.split_once("..") else {
        return text.parse().ok().map(Dim::fixed);
    };
    let min = if min.is_empty() { 0 } else { min.parse().ok()? };
    let max = if max.is_empty() {
        None
    } else {
        Some(max.parse().ok()?)
    };
    max.is_none_or(|max| min <= max)
        .then_some(Dim::between(min, max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(shape: &str) -> Result<ParameterAttributes, String> {
        let pairs = [
            ("shape".to_owned(), shape.to_owned()),
            ("element_type".to_owned(), "f32".to_owned()),
        ];
        ParameterAttributes::parse(&Attributes(&pairs)).map_err(|e| e.to_string())
    }

    #[test]
    fn shapes_are_read_and_written() {
        for text in ["?,3,1..7,2..", "...", "", "5"] {
            assert_eq!(format_shape(&parameter(text).unwrap().shape), text);
        }
        assert_eq!(parameter("..4").unwrap().shape.to_string(), "[0..4]");
        assert_eq!(parameter("-1, 2").unwrap().shape.to_string(), "[?, 2]");
        for text in ["x", "7..1", "1,,2", "-2"] {
            assert_eq!(
                parameter(text).unwrap_err(),
                format!("`shape` must be a list of dims, found `{text}`")
            );
        }
    }
}
