//! Conversions of colours, as layers.

use super::Result;
use super::color::Color;
use super::layers::Layers;
use crate::Error;
use vinelift_tensor::{ElementType, Tensor};

impl Layers<'_> {
    /// Converts the colours of `self` to the format `to`.
    pub(super) fn convert_color(&mut self, to: Color) -> Result<()> {
        let fail = |from: &dyn std::fmt::Debug| {
            Error::Unsupported(format!(
                "colours cannot be converted from {from:?} to {to:?}"
            ))
        };
        let Some(from) = self.color else {
            let text = "colours can be converted once the tensor's colour format is set";
            return Err(Error::Input(text.to_owned()));
        };
        if from == to {
            return Ok(());
        }
        match (from, to) {
            (Color::Nv12 | Color::Nv12Planes, Color::Rgb) => self.merge("NV12toRGB")?,
            (Color::Nv12 | Color::Nv12Planes, Color::Bgr) => self.merge("NV12toBGR")?,
            (Color::I420 | Color::I420Planes, Color::Rgb) => self.merge("I420toRGB")?,
            (Color::I420 | Color::I420Planes, Color::Bgr) => self.merge("I420toBGR")?,
            (Color::Rgb, Color::Bgr) | (Color::Bgr, Color::Rgb) => self.reverse_channels()?,
            (Color::Rgbx, Color::Rgb) | (Color::Bgrx, Color::Bgr) => self.drop_fourth()?,
            (Color::Rgbx, Color::Bgr) | (Color::Bgrx, Color::Rgb) => {
                self.drop_fourth()?;
                self.reverse_channels()?;
            }
            (Color::Nv12Planes | Color::I420Planes, Color::Gray) => self.tensors.truncate(1),
            (Color::Nv12 | Color::I420, Color::Gray) => self.brightness()?,
            (Color::Rgb, Color::Gray) => self.gray([0.299, 0.587, 0.114])?,
            (Color::Bgr, Color::Gray) => self.gray([0.114, 0.587, 0.299])?,
            _ => return Err(fail(&from)),
        }
        self.color = Some(to);
        Ok(())
    }

    /// Makes one tensor of planes.
    fn merge(&mut self, operator: &str) -> Result<()> {
        let inputs = self.tensors.clone();
        self.tensors = vec![self.operator((operator, "opset8"), &[], &inputs)?];
        Ok(())
    }

    /// The first two thirds of the lines, where brightness is.
    fn brightness(&mut self) -> Result<()> {
        let axis = self.axis("H")?;
        let inputs = self.tensors.clone();
        let shape = self.operator(("ShapeOf", "opset3"), &[("output_type", "i64")], &inputs)?;
        let (axes, of_shape) = (self.integers(&[axis])?, self.integers(&[0])?);
        let from_shape = [("batch_dims", "0")];
        let lines = self.operator(("Gather", "opset8"), &from_shape, &[shape, axes, of_shape])?;
        let numpy = [("auto_broadcast", "numpy")];
        let two = self.integers(&[2])?;
        let twice = self.operator(("Multiply", "opset1"), &numpy, &[lines, two])?;
        let three = self.integers(&[3])?;
        let stop = self.operator(("Divide", "opset1"), &numpy, &[twice, three])?;
        let (start, step) = (self.integers(&[0])?, self.integers(&[1])?);
        self.then(("Slice", "opset8"), &[], &[start, stop, step, axes])
    }

    fn drop_fourth(&mut self) -> Result<()> {
        let axis = self.axis("C")?;
        let start = self.integers(&[0])?;
        let stop = self.integers(&[3])?;
        let step = self.integers(&[1])?;
        let axes = self.integers(&[axis])?;
        self.then(("Slice", "opset8"), &[], &[start, stop, step, axes])
    }

    /// The weighted sum of the channels.
    fn gray(&mut self, weights: [f32; 3]) -> Result<()> {
        let element_type = self.element_type;
        let axis = self.axis("C")?;
        self.convert(ElementType::F32)?;
        let mut shape = vec![1; self.rank()?];
        shape[axis as usize] = weights.len();
        let weights = self.constant(Tensor::from_slice(&shape, &weights)?);
        self.then(
            ("Multiply", "opset1"),
            &[("auto_broadcast", "numpy")],
            &[weights],
        )?;
        let axes = self.integers(&[axis])?;
        self.then(("ReduceSum", "opset1"), &[("keep_dims", "true")], &[axes])?;
        if !element_type.is_float() {
            self.then(("Round", "opset5"), &[("mode", "half_to_even")], &[])?;
        }
        self.convert(element_type)
    }
}
