//! Declarations of a program about an input.

use super::color::Color;
use super::layout::Layout;
use vinelift_tensor::{ElementType, Shape};

/// Properties of the program's tensor for an input, the layout of the model's, and the steps from the one to the other, which
/// are done in the order in which they are added. After them the element type and the layout become those of the model.
#[derive(Clone, Debug, Default)]
pub struct InputSteps {
    pub(super) element_type: Option<ElementType>,
    pub(super) layout: Option<Layout>,
    pub(super) model_layout: Option<Layout>,
    pub(super) shape: Option<Shape>,
    /// Height and width.
    pub(super) spatial: Option<(usize, usize)>,
    pub(super) color: Option<Color>,
    /// The endings of the names of planes.
    pub(super) sub_names: Vec<String>,
    pub(super) steps: Vec<Step>,
}

/// One thing that is done to an input.
#[derive(Clone, Debug)]
pub(super) enum Step {
    ElementType(ElementType),
    Layout(Layout),
    Mean(Vec<f32>),
    Scale(Vec<f32>),
    Resize(Resize),
    Crop {
        begin: Vec<i64>,
        end: Vec<i64>,
    },
    Pad {
        begin: Vec<i64>,
        end: Vec<i64>,
        value: f32,
        mode: Padding,
    },
    ReverseChannels,
    Color(Color),
}

/// How pictures are made larger or smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resize {
    /// Between the two nearest pixels in each direction.
    Linear,
    /// Between the four nearest pixels in each direction.
    Cubic,
    /// The nearest pixel.
    Nearest,
}

impl Resize {
    /// As `Interpolate` calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Resize::Linear => "linear",
            Resize::Cubic => "cubic",
            Resize::Nearest => "nearest",
        }
    }
}

/// The elements put around a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Padding {
    /// One value.
    Constant,
    /// The elements at the edge.
    Edge,
    /// The elements mirrored at the edge, without the edge itself.
    Reflect,
    /// The elements mirrored at the edge, with the edge itself.
    Symmetric,
}

impl Padding {
    /// As `Pad` calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Padding::Constant => "constant",
            Padding::Edge => "edge",
            Padding::Reflect => "reflect",
            Padding::Symmetric => "symmetric",
        }
    }
}

/// Properties of the program's tensor; those that are not given are the model's.
impl InputSteps {
    /// It has elements of this type.
    pub fn element_type(&mut self, element_type: ElementType) -> &mut InputSteps {
        self.element_type = Some(element_type);
        self
    }

    /// It has this layout.
    pub fn layout(&mut self, layout: Layout) -> &mut InputSteps {
        self.layout = Some(layout);
        self
    }

    /// It has this shape.
    pub fn shape(&mut self, shape: impl Into<Shape>) -> &mut InputSteps {
        self.shape = Some(shape.into());
        self
    }

    /// It has pictures of this height and width, in pixels.
    pub fn spatial(&mut self, height: usize, width: usize) -> &mut InputSteps {
        self.spatial = Some((height, width));
        self
    }

    /// It has such colours; if they lie in planes, these are inputs of their own, whose names end in `/` and one of
    /// `plane_names`, or a number.
    pub fn color(
        &mut self,
        color: impl Into<Option<Color>>,
        plane_names: impl IntoIterator<Item = String>,
    ) -> &mut InputSteps {
        self.color = color.into();
        self.sub_names = plane_names.into_iter().collect();
        self
    }

    /// The model's tensor has this layout.
    pub fn model_layout(&mut self, layout: Layout) -> &mut InputSteps {
        self.model_layout = Some(layout);
        self
    }
}

/// The steps.
impl InputSteps {
    fn step(&mut self, step: Step) -> &mut InputSteps {
        self.steps.push(step);
        self
    }

    /// To this element type.
    pub fn convert_element_type(&mut self, element_type: ElementType) -> &mut InputSteps {
        self.step(Step::ElementType(element_type))
    }

    /// To this layout.
    pub fn convert_layout(&mut self, layout: Layout) -> &mut InputSteps {
        self.step(Step::Layout(layout))
    }

    /// To such colours.
    pub fn convert_color(&mut self, color: Color) -> &mut InputSteps {
        self.step(Step::Color(color))
    }

    /// Less a number, or less one for each channel.
    pub fn mean(&mut self, values: impl Into<Vec<f32>>) -> &mut InputSteps {
        self.step(Step::Mean(values.into()))
    }

    /// Divided by a number, or by one for each channel.
    pub fn scale(&mut self, values: impl Into<Vec<f32>>) -> &mut InputSteps {
        self.step(Step::Scale(values.into()))
    }

    /// To the height and width that the model takes.
    pub fn resize(&mut self, how: Resize) -> &mut InputSteps {
        self.step(Step::Resize(how))
    }

    /// Keeps the elements from `begin` up to `end`, in each dimension; negative positions count from the end.
    pub fn crop(
        &mut self,
        begin: impl Into<Vec<i64>>,
        end: impl Into<Vec<i64>>,
    ) -> &mut InputSteps {
        let (begin, end) = (begin.into(), end.into());
        self.step(Step::Crop { begin, end })
    }

    /// Puts `begin` elements before the tensor and `end` after it, in each dimension. `value` is that of [`Padding::Constant`].
    pub fn pad(
        &mut self,
        begin: impl Into<Vec<i64>>,
        end: impl Into<Vec<i64>>,
        value: f32,
        mode: Padding,
    ) -> &mut InputSteps {
        let (begin, end) = (begin.into(), end.into());
        self.step(Step::Pad {
            begin,
            end,
            value,
            mode,
        })
    }

    /// With the channels in reverse order.
    pub fn reverse_channels(&mut self) -> &mut InputSteps {
        self.step(Step::ReverseChannels)
    }

    pub(super) fn lacks_color(&self) -> bool {
        let mut steps = self.steps.iter();
        self.color.is_none() && steps.any(|step| matches!(step, Step::Color(_)))
    }
}
