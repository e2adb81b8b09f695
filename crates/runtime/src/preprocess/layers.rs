//! Layers between an input and the model: where they are put, and how they are added one after the other.

use super::Result;
use super::color::Color;
use super::input::InputSteps;
use super::layout::Layout;
use crate::Error;
use vinelift_graph::{Model, TensorId};
use vinelift_tensor::{ElementType, PartialShape, Tensor};

/// An input on its way to the model: the layers that were inserted until now, and its type after them.
pub(super) struct Layers<'a> {
    graph: &'a mut Model,
    /// Starts the names of layers.
    pub(super) name: String,
    /// The number in the name of the last one.
    count: usize,
    /// The tensor, or its planes.
    pub(super) tensors: Vec<TensorId>,
    pub(super) element_type: ElementType,
    pub(super) layout: Option<Layout>,
    pub(super) color: Option<Color>,
    pub(super) rank: Option<usize>,
    /// The shape that the model takes.
    pub(super) model_shape: PartialShape,
    pub(super) model_layout: Option<Layout>,
}

/// The shape that an input must have where the model begins; it is checked once the types of all layers are known.
pub(super) struct Expected {
    /// The last layer before those of the model.
    pub(super) layer: String,
    pub(super) shape: PartialShape,
}

/// Puts the steps of the input at `position` between it and the model.
pub(super) fn insert(graph: &mut Model, position: usize, input: &InputSteps) -> Result<Expected> {
    let parameter = graph.parameter(position).map_err(graph_error)?;
    let declared = graph.declared_type(parameter);
    let shapes = input.shapes(&declared.shape)?;
    let tensor = TensorId {
        node: parameter,
        output: 0,
    };
    let uses = graph.uses(tensor);
    let layer_name = graph.node(parameter).layer.name.clone();
    let element_type = input.element_type.unwrap_or(declared.element);
    let count = last_number(graph, &layer_name);
    let mut tensors = vec![tensor];
    tensors.extend(set_parameters(
        graph,
        position,
        input,
        element_type,
        &shapes,
    )?);
    let mut layers = Layers {
        rank: shapes[0].rank(),
        graph,
        name: layer_name.clone(),
        count,
        tensors,
        element_type,
        layout: input.tensor_layout(),
        color: input.color,
        model_shape: declared.shape.clone(),
        model_layout: input.model_layout.clone(),
    };
    for step in &input.steps {
        layers.step(step)?;
    }
    layers.convert(declared.element)?;
    if let Some(layout) = input.model_layout.clone() {
        layers.convert_layout(layout)?;
    }
    let [last] = layers.tensors[..] else {
        let text = format!(
            "input '{layer_name}': the planes of its colours must be converted to one tensor"
        );
        return Err(Error::Input(text));
    };
    graph.redirect(&uses, last);
    Ok(Expected {
        layer: graph.node(last.node).layer.name.clone(),
        shape: declared.shape,
    })
}

/// The largest number in the name of a layer that was inserted before, for the input of this name. Larger ones than a `u32` are in
/// names that a file made up: counting on from them could overflow.
fn last_number(graph: &Model, input: &str) -> usize {
    let number = |name: &str| {
        let rest = name.strip_prefix(input)?.strip_prefix("/preprocess_")?;
        rest.split('_').next()?.parse::<u32>().ok()
    };
    let names = graph.order.iter().map(|node| &graph.node(*node).layer.name);
    names.filter_map(|name| number(name)).max().unwrap_or(0) as usize
}

/// Gives the parameter at `position` this element type and the first shape. If there are more, these are of planes:
/// each gets a parameter of its own after it, whose tensor is returned.
fn set_parameters(
    graph: &mut Model,
    position: usize,
    input: &InputSteps,
    element_type: ElementType,
    shapes: &[PartialShape],
) -> Result<Vec<TensorId>> {
    let parameter = graph.parameter(position).map_err(graph_error)?;
    let names = graph.parameter_names(parameter);
    let layer_name = graph.node(parameter).layer.name.clone();
    let declared = graph.declared_type(parameter);
    let ty = |shape: &PartialShape| {
        let mut ty = declared.clone();
        ty.element = element_type;
        ty.shape = shape.clone();
        ty
    };
    graph
        .set_parameter(position, ty(&shapes[0]))
        .map_err(graph_error)?;
    if shapes.len() == 1 {
        return Ok(Vec::new());
    }
    let suffix = |k: usize| input.sub_names.get(k).cloned().unwrap_or(k.to_string());
    let tensor_names = &names[..names.len() - 1];
    let of_plane = |k: usize| {
        let names = tensor_names.iter().map(|n| format!("{n}/{}", suffix(k)));
        names.collect::<Vec<_>>()
    };
    graph
        .set_parameter_names(position, of_plane(0))
        .map_err(graph_error)?;
    let planes = shapes.iter().enumerate().skip(1);
    let tensors = planes.map(|(k, shape)| {
        let name = format!("{layer_name}/{}", suffix(k));
        graph.add_parameter(position + k, &name, of_plane(k), ty(shape))
    });
    Ok(tensors.collect())
}

/// Converts the output at `position` to `element_type`.
pub(super) fn convert_output(
    graph: &mut Model,
    position: usize,
    element_type: ElementType,
) -> Result<()> {
    let result = graph.results.get(position).copied();
    let source = result.and_then(|r| Some((r, *graph.inputs(r).first()?)));
    let Some((result, source)) = source else {
        let text = format!("the model has no output {position}");
        return Err(Error::Input(text));
    };
    let name = format!("{}/element_type", graph.node(result).layer.name);
    let attributes = [("destination_type", element_type.name())];
    let converted = graph.add_operator(&name, ("Convert", "opset1"), &attributes, &[source]);
    let converted = converted.map_err(graph_error)?;
    graph.redirect(&[(result, 0)], converted);
    graph.move_names(source, converted);
    Ok(())
}

fn graph_error(source: vinelift_graph::Error) -> Error {
    Error::Model {
        file: "pre-processing".to_owned(),
        source,
    }
}

impl Layers<'_> {
    fn next_name(&mut self, operator: &str) -> String {
        self.count += 1;
        format!("{}/preprocess_{}_{operator}", self.name, self.count)
    }

    /// A layer that reads `inputs`.
    pub(super) fn operator(
        &mut self,
        operator: (&str, &str),
        attributes: &[(&str, &str)],
        inputs: &[TensorId],
    ) -> Result<TensorId> {
        let name = self.next_name(operator.0);
        let added = self.graph.add_operator(&name, operator, attributes, inputs);
        added.map_err(graph_error)
    }

    /// Adds a layer that reads the tensor of the layer before it, and `more`.
    pub(super) fn then(
        &mut self,
        operator: (&str, &str),
        attributes: &[(&str, &str)],
        more: &[TensorId],
    ) -> Result<()> {
        let [tensor] = self.tensors[..] else {
            let text = format!(
                "{}: the planes of its colours must be converted to one tensor first",
                operator.0
            );
            return Err(Error::Input(text));
        };
        let inputs: Vec<TensorId> = [tensor].into_iter().chain(more.iter().copied()).collect();
        self.tensors = vec![self.operator(operator, attributes, &inputs)?];
        Ok(())
    }

    pub(super) fn constant(&mut self, value: Tensor) -> TensorId {
        let name = self.next_name("Const");
        self.graph.add_constant(&name, value)
    }

    pub(super) fn integers(&mut self, values: &[i64]) -> Result<TensorId> {
        let value = Tensor::from_slice(&[values.len()], values)?;
        Ok(self.constant(value))
    }

    /// Floats of the element type that there is now.
    pub(super) fn floats(&mut self, shape: &[usize], values: &[f32]) -> Result<TensorId> {
        let constant = self.constant(Tensor::from_slice(shape, values)?);
        if self.element_type == ElementType::F32 {
            return Ok(constant);
        }
        let attributes = [("destination_type", self.element_type.name())];
        self.operator(("Convert", "opset1"), &attributes, &[constant])
    }

    pub(super) fn rank(&self) -> Result<usize> {
        self.rank.ok_or_else(|| {
            let text = format!("input '{}': its rank is not known", self.name);
            Error::Input(text)
        })
    }

    /// The position of the dimension of this name.
    pub(super) fn axis(&self, name: &str) -> Result<i64> {
        let rank = self.rank()?;
        let Some(layout) = &self.layout else {
            let text = format!(
                "input '{}': its layout is not known, of which {name} is needed",
                self.name
            );
            return Err(Error::Input(text));
        };
        Ok(layout.index(name, rank)? as i64)
    }
}
