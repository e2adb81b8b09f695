//! The layers that each step becomes.

use super::Result;
use super::input::Step;
use super::layers::Layers;
use super::layout::Layout;
use crate::Error;
use vinelift_tensor::{ElementType, Shape, Tensor};

impl Layers<'_> {
    /// Adds the layers of a step.
    pub(super) fn step(&mut self, step: &Step) -> Result<()> {
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

    /// To this element type.
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

    /// To this layout.
    pub(super) fn convert_layout(&mut self, to: Layout) -> Result<()> {
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
