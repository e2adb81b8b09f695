//! The shapes that a program's tensors have, as it declares them, for the shape that the model takes.

use super::Result;
use super::color::Color;
use super::input::{InputSteps, Step};
use super::layout::Layout;
use crate::Error;
use vinelift_tensor::{Dim, PartialShape};

impl InputSteps {
    /// The layout of the tensor: what is said of it, or that of pictures if it has colours, or that of the model.
    pub(super) fn tensor_layout(&self) -> Option<Layout> {
        let of_images = || self.color.map(|_| Layout::of_images());
        let of_model = || self.model_layout.clone();
        self.layout.clone().or_else(of_images).or_else(of_model)
    }

    /// The shapes of the tensor, or of its planes, for a model that takes `model_shape`.
    pub(super) fn shapes(&self, model_shape: &PartialShape) -> Result<Vec<PartialShape>> {
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
            Some(color) if layout.is_some() => {
                if let Some(channels) = color.channels() {
                    dims[index("C")?] = channels;
                }
            }
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
