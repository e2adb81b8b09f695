//! The layers that the steps become.

use super::Result;
use super::color::Color;
use super::input::{InputSteps, Step};
use super::layout::Layout;
use crate::Error;
use vinelift_graph::{Model, TensorId};
use vinelift_tensor::{Dim, ElementType, PartialShape, Shape, Tensor};

/// An input on its way to the model: the layers that were inserted until now, and its type after them.
pub(super) struct Layers<'a> {
    graph: &'a mut Model,
    /// Starts the names of layers.
    name: String,
    /// The number in the name of the last one.
    count: usize,
    /// The tensor, or its planes.
    pub(super) tensors: Vec<TensorId>,
    pub(super) element_type: ElementType,
    layout: Option<Layout>,
    pub(super) color: Option<Color>,
    rank: Option<usize>,
    /// The shape that the model takes.
    model_shape: PartialShape,
    model_layout: Option<Layout>,
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
    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::ElementType(ty) => self.convert(*ty),
            Step::Layout(layout) => self.convert_layout(layout.clone()),
            Step::Mean(values) => self.by_channel("Subtract", values),
            Step::Scale(values) => self.by_channel("Divide", values),
            Step::Resize(mode) => self.resize(mode.name()),
            Step::Crop { begin, end } => self.crop(begin, end),
            Step::Pad {
                begin,
                end,
                value,
                mode,
            } => self.pad(begin, end, *value, mode.name()),
            Step::ReverseChannels => self.reverse_channels(),
            Step::Color(to) => self.convert_color(*to),
        }
    }

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
    fn floats(&mut self, shape: &[usize], values: &[f32]) -> Result<TensorId> {
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

    pub(super) fn convert(&mut self, ty: ElementType) -> Result<()> {
        if self.element_type == ty {
            return Ok(());
        }
        let attributes = [("destination_type", ty.name())];
        for k in 0..self.tensors.len() {
            let tensor = self.tensors[k];
            self.tensors[k] = self.operator(("Convert", "opset1"), &attributes, &[tensor])?;
        }
        self.element_type = ty;
        Ok(())
    }

    fn convert_layout(&mut self, to: Layout) -> Result<()> {
        let Some(from) = self.layout.replace(to.clone()) else {
            return Ok(());
        };
        if from == to {
            return Ok(());
        }
        // Dimensions that the tensor does not have are added in front.
        let (from, added) = from.extended_to(&to);
        if added > 0 {
            let axes: Vec<i64> = (0..added as i64).collect();
            let axes = self.integers(&axes)?;
            self.then(("Unsqueeze", "opset1"), &[], &[axes])?;
            self.rank = Some(self.rank()? + added);
        }
        let order = from.order_to(&to, self.rank()?)?;
        if order.is_sorted() {
            return Ok(());
        }
        let order: Vec<i64> = order.into_iter().map(|k| k as i64).collect();
        let order = self.integers(&order)?;
        self.then(("Transpose", "opset1"), &[], &[order])
    }

    /// An operation with one value for all channels, or one for each.
    fn by_channel(&mut self, operator: &str, values: &[f32]) -> Result<()> {
        if !self.element_type.is_float() {
            let text = format!(
                "input '{}': mean and scale are of floats, found {}; convert the element type first",
                self.name, self.element_type
            );
            return Err(Error::Input(text));
        }
        let mut shape = Shape::new();
        if values.len() != 1 {
            shape = vec![1; self.rank()?];
            shape[self.axis("C")? as usize] = values.len();
        }
        let values = self.floats(&shape, values)?;
        self.then(
            (operator, "opset1"),
            &[("auto_broadcast", "numpy")],
            &[values],
        )
    }

    /// To the height and width that the model takes.
    fn resize(&mut self, mode: &str) -> Result<()> {
        let target = |name: &str| {
            let layout = self.model_layout.as_ref().or(self.layout.as_ref());
            let dims = self.model_shape.dims()?;
            dims.get(layout?.index(name, dims.len()).ok()?)?.get()
        };
        let (Some(height), Some(width)) = (target("H"), target("W")) else {
            let text = format!(
                "input '{}': the model's height and width are not known, from its layout and shape",
                self.name
            );
            return Err(Error::Input(text));
        };
        let axes = [self.axis("H")?, self.axis("W")?];
        let sizes = self.integers(&[height as i64, width as i64])?;
        let scales = self.constant(Tensor::from_slice(&[2], &[1f32, 1.0])?);
        let axes = self.integers(&axes)?;
        let attributes = [
            ("mode", mode),
            ("shape_calculation_mode", "sizes"),
            ("coordinate_transformation_mode", "half_pixel"),
            ("nearest_mode", "round_prefer_floor"),
            ("antialias", "false"),
            ("pads_begin", "0"),
            ("pads_end", "0"),
            ("cube_coeff", "-0.75"),
        ];
        self.then(
            ("Interpolate", "opset4"),
            &attributes,
            &[sizes, scales, axes],
        )
    }

    /// From `begin` up to `end`, for each dimension.
    fn crop(&mut self, begin: &[i64], end: &[i64]) -> Result<()> {
        self.check_list("crop", begin, end)?;
        let axes: Vec<i64> = (0..begin.len() as i64).collect();
        let (start, stop) = (self.integers(begin)?, self.integers(end)?);
        let step = self.integers(&vec![1; begin.len()])?;
        let axes = self.integers(&axes)?;
        self.then(("Slice", "opset8"), &[], &[start, stop, step, axes])
    }

    fn pad(&mut self, begin: &[i64], end: &[i64], value: f32, mode: &str) -> Result<()> {
        self.check_list("pad", begin, end)?;
        let (begin, end) = (self.integers(begin)?, self.integers(end)?);
        let value = self.floats(&[], &[value])?;
        self.then(
            ("Pad", "opset12"),
            &[("pad_mode", mode)],
            &[begin, end, value],
        )
    }

    fn check_list(&self, step: &str, begin: &[i64], end: &[i64]) -> Result<()> {
        let rank = self.rank()?;
        if begin.len() == rank && end.len() == rank {
            return Ok(());
        }
        let (begin, end, name) = (begin.len(), end.len(), &self.name);
        let text =
            format!("input '{name}': {step} with {begin} and {end} numbers, expected {rank} each");
        Err(Error::Input(text))
    }

    pub(super) fn reverse_channels(&mut self) -> Result<()> {
        let axis = self.axis("C")?;
        let axes = self.integers(&[axis])?;
        self.then(("Reverse", "opset1"), &[("mode", "index")], &[axes])
    }
}

impl InputSteps {
    /// The layout of the tensor: what is said of it, or that of pictures if it has colours, or that of the model.
    fn tensor_layout(&self) -> Option<Layout> {
        let of_images = || self.color.map(|_| Layout::of_images());
        let of_model = || self.model_layout.clone();
        self.layout.clone().or_else(of_images).or_else(of_model)
    }

    /// The shapes of the tensor, or of its planes, for a model that takes `model_shape`.
    fn shapes(&self, model_shape: &PartialShape) -> Result<Vec<PartialShape>> {
        if let (Some(color), Some(layout)) = (self.color, &self.layout)
            && color.is_yuv()
            && *layout != Layout::of_images()
        {
            let text = format!("colours in {color:?} lie as [N,H,W,C]");
            return Err(Error::Input(text));
        }
        if let Some(shape) = &self.shape {
            if matches!(self.color, Some(Color::Nv12Planes | Color::I420Planes)) {
                let text = "the shape of one tensor, for colours in planes";
                return Err(Error::Input(text.to_owned()));
            }
            return Ok(vec![shape.as_slice().into()]);
        }
        let layout = self.tensor_layout();
        let steps = self.steps.iter().rev();
        let mut converted = steps.filter_map(|step| match step {
            Step::Layout(layout) => Some(layout.clone()),
            _ => None,
        });
        let of_model = self.model_layout.clone().or_else(|| converted.next());
        let Some(dims) = model_shape.dims() else {
            return self.unranked(model_shape);
        };
        let mut dims = match (&layout, &of_model) {
            (Some(layout), Some(of_model)) => {
                let places = of_model.places_of(layout, dims.len())?;
                places.into_iter().map(|k| dims[k]).collect()
            }
            _ => dims.to_vec(),
        };
        let rank = dims.len();
        let index = |name: &str| match &layout {
            Some(layout) => layout.index(name, rank),
            None => Err(Error::Input(format!(
                "the layout of the tensor is not known, of which {name} is needed"
            ))),
        };
        if let Some((height, width)) = self.spatial {
            dims[index("H")?] = Dim::fixed(height);
            dims[index("W")?] = Dim::fixed(width);
        }
        match self.color {
            Some(color) if color.is_yuv() => {
                let (batch, height, width) =
                    (dims[index("N")?], dims[index("H")?], dims[index("W")?]);
                let plane = |plane: [Dim; 3]| {
                    PartialShape::ranked([batch].into_iter().chain(plane).collect())
                };
                let planes = color.planes(height, width).into_iter();
                return Ok(planes.map(plane).collect());
            }
            Some(color) if layout.is_some() => dims[index("C")?] = color.channel_dim(),
            _ => {}
        }
        Ok(vec![PartialShape::ranked(dims)])
    }

    fn unranked(&self, model_shape: &PartialShape) -> Result<Vec<PartialShape>> {
        if self.spatial.is_none() && self.color.is_none_or(|c| !c.is_yuv()) {
            return Ok(vec![model_shape.clone()]);
        }
        let text = "the rank of the model's input is not known";
        Err(Error::Input(text.to_owned()))
    }
}
