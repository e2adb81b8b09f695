//! Tensors and the pictures of the crate `image`.

use crate::{Element, ElementType, Tensor, TensorError};
use image::{DynamicImage, ImageBuffer, Pixel};
use std::ops::Deref;

/// The values of the channels, in the order of the picture's pixels: `[1, height, width, channels]` (NHWC).
impl<P, C> TryFrom<&ImageBuffer<P, C>> for Tensor
where
    P: Pixel,
    P::Subpixel: Element,
    C: Deref<Target = [P::Subpixel]>,
{
    type Error = TensorError;

    fn try_from(picture: &ImageBuffer<P, C>) -> Result<Tensor, TensorError> {
        let (width, height) = picture.dimensions();
        let channels = usize::from(P::CHANNEL_COUNT);
        let shape = [1, height as usize, width as usize, channels];
        // The buffer may be longer than the picture.
        let count = shape.iter().product();
        Tensor::from_slice(&shape, picture.as_raw().get(..count).unwrap_or_default())
    }
}

/// The values of the channels as they are, `u8`, `u16` or `f32`: `[1, height, width, channels]` (NHWC), with 1 to 4
/// channels.
impl TryFrom<&DynamicImage> for Tensor {
    type Error = TensorError;

    fn try_from(picture: &DynamicImage) -> Result<Tensor, TensorError> {
        match picture {
            DynamicImage::ImageLuma8(p) => Tensor::try_from(p),
            DynamicImage::ImageLumaA8(p) => Tensor::try_from(p),
            DynamicImage::ImageRgb8(p) => Tensor::try_from(p),
            DynamicImage::ImageRgba8(p) => Tensor::try_from(p),
            DynamicImage::ImageLuma16(p) => Tensor::try_from(p),
            DynamicImage::ImageLumaA16(p) => Tensor::try_from(p),
            DynamicImage::ImageRgb16(p) => Tensor::try_from(p),
            DynamicImage::ImageRgba16(p) => Tensor::try_from(p),
            DynamicImage::ImageRgb32F(p) => Tensor::try_from(p),
            DynamicImage::ImageRgba32F(p) => Tensor::try_from(p),
            // Kinds that are not known yet are as colours of eight bits.
            other => Tensor::try_from(&other.to_rgba8()),
        }
    }
}

/// As of a reference to the picture.
impl TryFrom<DynamicImage> for Tensor {
    type Error = TensorError;

    fn try_from(picture: DynamicImage) -> Result<Tensor, TensorError> {
        Tensor::try_from(&picture)
    }
}

/// The picture in a tensor `[1, height, width, channels]`, `[height, width, channels]` or `[height, width]`: of `u8` or
/// `u16` with 1 (grey), 2 (and opacity), 3 (red, green, blue) or 4 channels (and opacity), or of `f32` with 3 or 4.
///
/// # Errors
/// If type and shape are none of these.
impl TryFrom<&Tensor> for DynamicImage {
    type Error = TensorError;

    fn try_from(tensor: &Tensor) -> Result<DynamicImage, TensorError> {
        let is_none = || TensorError::Conversion {
            element_type: tensor.element_type(),
            shape: tensor.shape().to_vec(),
            to: "a picture: [1, height, width, channels] of u8, u16 or f32",
        };
        let (height, width, channels) = match *tensor.shape() {
            [height, width] => (height, width, 1),
            [height, width, channels] | [1, height, width, channels] => (height, width, channels),
            _ => return Err(is_none()),
        };
        let sides = (u32::try_from(width).ok(), u32::try_from(height).ok());
        let (Some(width), Some(height)) = sides else {
            return Err(is_none());
        };
        let picture = match (tensor.element_type(), channels) {
            (ElementType::U8, 1) => buffer(tensor, width, height)?.map(DynamicImage::ImageLuma8),
            (ElementType::U8, 2) => buffer(tensor, width, height)?.map(DynamicImage::ImageLumaA8),
            (ElementType::U8, 3) => buffer(tensor, width, height)?.map(DynamicImage::ImageRgb8),
            (ElementType::U8, 4) => buffer(tensor, width, height)?.map(DynamicImage::ImageRgba8),
            (ElementType::U16, 1) => buffer(tensor, width, height)?.map(DynamicImage::ImageLuma16),
            (ElementType::U16, 2) => buffer(tensor, width, height)?.map(DynamicImage::ImageLumaA16),
            (ElementType::U16, 3) => buffer(tensor, width, height)?.map(DynamicImage::ImageRgb16),
            (ElementType::U16, 4) => buffer(tensor, width, height)?.map(DynamicImage::ImageRgba16),
            (ElementType::F32, 3) => buffer(tensor, width, height)?.map(DynamicImage::ImageRgb32F),
            (ElementType::F32, 4) => buffer(tensor, width, height)?.map(DynamicImage::ImageRgba32F),
            _ => None,
        };
        picture.ok_or_else(is_none)
    }
}

/// As of a reference to the tensor.
impl TryFrom<Tensor> for DynamicImage {
    type Error = TensorError;

    fn try_from(tensor: Tensor) -> Result<DynamicImage, TensorError> {
        DynamicImage::try_from(&tensor)
    }
}

/// A picture that has its elements itself.
type Owned<P> = ImageBuffer<P, Vec<<P as Pixel>::Subpixel>>;

fn buffer<P>(tensor: &Tensor, width: u32, height: u32) -> Result<Option<Owned<P>>, TensorError>
where
    P: Pixel,
    P::Subpixel: Element,
{
    let elements = tensor.as_slice::<P::Subpixel>()?.into_owned();
    Ok(ImageBuffer::from_raw(width, height, elements))
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{GrayImage, Rgb32FImage, RgbImage};

    #[test]
    fn pictures_become_tensors_and_back() {
        let values: Vec<u8> = (0..18).collect();
        let picture = RgbImage::from_raw(3, 2, values.clone()).unwrap();
        let tensor = Tensor::try_from(&picture).unwrap();
        assert_eq!(tensor.shape(), [1, 2, 3, 3]);
        assert_eq!(*tensor.as_slice::<u8>().unwrap(), values);
        let whole = DynamicImage::from(picture);
        assert_eq!(Tensor::try_from(&whole).unwrap(), tensor);
        assert_eq!(DynamicImage::try_from(&tensor).unwrap(), whole);
        let grey = GrayImage::from_raw(3, 2, (0..6).collect()).unwrap();
        let plain = Tensor::from_slice(&[2, 3], grey.as_raw()).unwrap();
        assert_eq!(DynamicImage::try_from(plain).unwrap(), grey.into());
        let floats = Rgb32FImage::from_raw(1, 1, vec![0.0, 0.5, 1.0]).unwrap();
        let floats = DynamicImage::from(floats);
        let tensor = Tensor::try_from(&floats).unwrap();
        assert_eq!(tensor.element_type(), ElementType::F32);
        assert_eq!(DynamicImage::try_from(tensor).unwrap(), floats);
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        let refused = |ty, shape: &[usize]| {
            let tensor = Tensor::zeros(ty, shape).unwrap();
            DynamicImage::try_from(tensor).unwrap_err().to_string()
        };
        assert_eq!(
            refused(ElementType::U8, &[2, 2, 2, 3]),
            "u8[2, 2, 2, 3] is not a picture: [1, height, width, channels] of u8, u16 or f32"
        );
        refused(ElementType::F32, &[2, 2]);
        refused(ElementType::I32, &[2, 2, 3]);
        refused(ElementType::U8, &[2, 2, 5]);
    }
}
