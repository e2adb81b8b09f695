//! IR version 10: the types at a model's border change when it is read.
//!
//! Inputs of `f16` become `f32`; outputs of `i32`, `i64`, `u32` and `u64` become `i32`, all others `f32`.

use crate::error::Error;
use crate::model::{Model, TensorId};
use crate::specialize::infer;
use petgraph::graph::NodeIndex;
use vinelift_ops::TensorType;
use vinelift_tensor::ElementType;
use vinelift_xml as xml;

/// Applies the rules of version 10 to a model that was read from it.
pub(crate) fn convert(model: &mut Model, pre_process: Option<&xml::Element>) -> Result<(), Error> {
    if let Some(input) = pre_process.and_then(|p| p.attribute("reference-layer-name")) {
        return Err(Error::Structure(format!(
            "unsupported: pre-process of input '{input}' in IR version 10"
        )));
    }
    for position in 0..model.parameters.len() {
        let node = model.parameter(position)?;
        let declared = model.declared_type(node);
        if declared.element == ElementType::F16 {
            let tensor = TensorId { node, output: 0 };
            let uses = model.uses(tensor);
            let ty = TensorType::new(ElementType::F32, declared.shape);
            model.set_parameter(position, ty)?;
            let converted = add_convert(model, node, tensor, ElementType::F16)?;
            model.redirect(&uses, converted);
        }
    }
    // Types that cannot be inferred are reported when the model is compiled.
    let Ok(types) = infer(model) else {
        return Ok(());
    };
    for result in model.results.clone() {
        let Some(source) = model.inputs(result).first().copied() else {
            continue;
        };
        let Some(found) = types.get(source).map(|t| t.element) else {
            continue;
        };
        let wanted = match found {
            ElementType::I32 | ElementType::I64 | ElementType::U32 | ElementType::U64 => {
                ElementType::I32
            }
            _ => ElementType::F32,
        };
        if found != wanted {
            let converted = add_convert(model, result, source, wanted)?;
            model.redirect(&[(result, 0)], converted);
        }
    }
    model.finish()
}

fn add_convert(
    model: &mut Model,
    near: NodeIndex,
    tensor: TensorId,
    ty: ElementType,
) -> Result<TensorId, Error> {
    let name = format!("{}/convert_{ty}", model.node(near).layer.name);
    let attributes = [("destination_type", ty.name())];
    model.add_operator(&name, ("Convert", "opset1"), &attributes, &[tensor])
}
