//! Tensors from pictures.

use crate::jpeg;
use crate::options::named;
use clap::Args;
use image::imageops::FilterType;
use image::{DynamicImage, ImageError, ImageFormat};
use std::io::ErrorKind;
use std::path::Path;
use vinelift::{Dim, ElementType, PartialShape, Tensor};

#[derive(Args)]
pub(crate) struct ImageArgs {
    /// Which axes of an input are those of a picture [default: by the extents]
    #[arg(long, value_parser = named(Layout::ALL, Layout::name))]
    layout: Option<Layout>,
    /// Subtract a mean from each channel of a picture, whose values are from 0 to 255
    #[arg(
        long,
        value_name = "R,G,B",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    mean: Vec<f64>,
    /// Divide each channel of a picture by a scale, after the mean is subtracted
    #[arg(long, value_name = "R,G,B", value_delimiter = ',', value_parser = divisor)]
    scale: Vec<f64>,
    /// Put the channels of a picture in the order blue, green, red; means and scales keep theirs
    #[arg(long)]
    bgr: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Nchw,
    Nhwc,
    Chw,
    Hwc,
    Hw,
}

impl Layout {
    const ALL: [Layout; 5] = [
        Layout::Nchw,
        Layout::Nhwc,
        Layout::Chw,
        Layout::Hwc,
        Layout::Hw,
    ];

    const fn name(self) -> &'static str {
        match self {
            Layout::Nchw => "NCHW",
            Layout::Nhwc => "NHWC",
            Layout::Chw => "CHW",
            Layout::Hwc => "HWC",
            Layout::Hw => "HW",
        }
    }

    /// The axes of channels, rows and columns.
    fn axes(self) -> (Option<usize>, usize, usize) {
        let at = |axis| self.name().find(axis);
        (at('C'), at('H').unwrap_or(0), at('W').unwrap_or(1))
    }

    /// The layout that the extents of a shape leave: pictures have 1 or 3 channels, and more rows than that.
    fn of(dims: &[Dim]) -> Option<Layout> {
        let is_channels = |dim: &Dim| matches!(dim.get(), Some(1 | 3));
        match dims {
            [_, c, _, _] if is_channels(c) => Some(Layout::Nchw),
            [_, _, _, c] if is_channels(c) => Some(Layout::Nhwc),
            [c, _, _] if is_channels(c) => Some(Layout::Chw),
            [_, _, c] if is_channels(c) => Some(Layout::Hwc),
            [_, _] => Some(Layout::Hw),
            _ => None,
        }
    }
}

impl Layout {
    /// Channels, rows and columns of a picture in a shape, its own where the shape leaves them open.
    fn extents(self, shape: &PartialShape, picture: &DynamicImage) -> Result<[usize; 3], String> {
        let (channel_axis, row_axis, column_axis) = self.axes();
        let dims = shape.dims().unwrap_or_default();
        let extent = |axis: usize| dims.get(axis).and_then(|dim| dim.get());
        let channels = channel_axis.map_or(1, |axis| extent(axis).unwrap_or(3));
        if !matches!(channels, 1 | 3) {
            return Err(format!(
                "a picture has 1 or 3 channels, and shape {shape} has {channels}"
            ));
        }
        let rows = extent(row_axis).unwrap_or(picture.height() as usize);
        let columns = extent(column_axis).unwrap_or(picture.width() as usize);
        match rows.checked_mul(columns) {
            Some(1..=MOST_PIXELS) => Ok([channels, rows, columns]),
            _ => Err(format!(
                "a picture has up to {MOST_PIXELS} pixels, and shape {shape} has {rows} times {columns}"
            )),
        }
    }

    /// Whether channels come before rows.
    fn is_planar(self) -> bool {
        let (channels, rows, _) = self.axes();
        channels.is_some_and(|channels| channels < rows)
    }
}

/// Whether a file is a picture, by its name.
pub(crate) fn is_image(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| {
        ["png", "jpg", "jpeg"]
            .iter()
            .any(|i| e.eq_ignore_ascii_case(i))
    })
}

/// The picture in a file, all of it.
fn open(path: &Path) -> Result<DynamicImage, ImageError> {
    let bytes = std::fs::read(path)?;
    let format = ImageFormat::from_path(path)?;
    let picture = image::load_from_memory_with_format(&bytes, format)?;
    match format {
        ImageFormat::Jpeg if !jpeg::is_whole(&bytes) => {
            Err(std::io::Error::from(ErrorKind::UnexpectedEof).into())
        }
        _ => Ok(picture),
    }
}

impl ImageArgs {
    /// The picture in a file as a tensor of this type and shape, scaled to the rows and columns of the shape.
    pub(crate) fn read(
        &self,
        path: &Path,
        element_type: ElementType,
        shape: &PartialShape,
    ) -> Result<Tensor, String> {
        let fail = |e: &dyn std::fmt::Display| format!("`{}`: {e}", path.display());
        let picture = open(path).map_err(|e| fail(&e))?;
        let layout = self.layout_of(shape)?;
        let extents = layout.extents(shape, &picture)?;
        let [channels, height, width] = extents;
        let side = |extent: usize| u32::try_from(extent).map_err(|e| fail(&e));
        let (rows, columns) = (side(height)?, side(width)?);
        let is_of_size = (picture.width(), picture.height()) == (columns, rows);
        let picture = match is_of_size {
            true => picture,
            false => picture.resize_exact(columns, rows, FilterType::Triangle),
        };
        let bytes = match channels {
            1 => picture.into_luma8().into_raw(),
            _ => picture.into_rgb8().into_raw(),
        };
        let values = self.normalised(&bytes, channels)?;
        let ordered = match layout.is_planar() {
            false => values,
            true => {
                let plane = |c| values.iter().skip(c).step_by(channels).copied();
                (0..channels).flat_map(plane).collect()
            }
        };
        let full = layout.name().chars().map(|axis| match axis {
            'N' => 1,
            'C' => channels,
            'H' => height,
            _ => width,
        });
        let full: Vec<usize> = full.collect();
        let tensor = Tensor::from_slice(&full, &ordered).map_err(|e| fail(&e))?;
        tensor.cast(element_type).map_err(|e| fail(&e))
    }

    /// The layout that is asked for, or that the extents leave.
    fn layout_of(&self, shape: &PartialShape) -> Result<Layout, String> {
        let dims = shape.dims().unwrap_or_default();
        let layout = self.layout.or_else(|| Layout::of(dims));
        let unclear = || {
            format!("shape {shape} does not say which axes are those of a picture: `--layout` does")
        };
        let layout = layout.ok_or_else(unclear)?;
        let (name, rank) = (layout.name(), layout.name().len());
        match shape.rank() {
            Some(other) if other != rank => Err(format!(
                "layout {name} has {rank} axes, and shape {shape} has {other}"
            )),
            _ => Ok(layout),
        }
    }

    /// The values of the channels of each pixel, without the mean and scaled.
    fn normalised(&self, bytes: &[u8], channels: usize) -> Result<Vec<f64>, String> {
        let per_channel = |name: &str, given: &[f64], default: f64| match given {
            [] => Ok(vec![default; channels]),
            [one] => Ok(vec![*one; channels]),
            all if all.len() == channels => Ok(all.to_vec()),
            all => Err(format!(
                "`--{name}` has {} values for {channels} channels",
                all.len()
            )),
        };
        let mean = per_channel("mean", &self.mean, 0.0)?;
        let scale = per_channel("scale", &self.scale, 1.0)?;
        let mut values = Vec::with_capacity(bytes.len());
        for pixel in bytes.chunks_exact(channels) {
            let start = values.len();
            let of = pixel.iter().zip(mean.iter().zip(&scale));
            values.extend(of.map(|(x, (mean, scale))| (f64::from(*x) - mean) / scale));
            if self.bgr {
                values[start..].reverse();
            }
        }
        Ok(values)
    }
}

/// More are refused before memory is asked for.
const MOST_PIXELS: usize = 1 << 28;

fn divisor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && x != 0.0 => Ok(x),
        Ok(_) => Err("expected a number other than zero".to_owned()),
        Err(_) => Err("expected a number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(mean: &[f64], scale: &[f64], bgr: bool) -> ImageArgs {
        ImageArgs {
            layout: None,
            mean: mean.to_vec(),
            scale: scale.to_vec(),
            bgr,
        }
    }

    /// A row of a red and a blue pixel.
    fn picture() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.png");
        let pixels = image::RgbImage::from_raw(2, 1, vec![255, 0, 10, 0, 20, 255]).unwrap();
        pixels.save(&path).unwrap();
        (dir, path)
    }

    /// libjpeg: `premature end of JPEG file`.
    #[test]
    fn a_picture_that_was_cut_off_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for (name, missing) in [("a.jpg", 4), ("a.png", 20)] {
            let path = dir.path().join(name);
            let shades = (0..48u8).map(|k| k * 5).collect();
            let pixels = image::RgbImage::from_raw(4, 4, shades).unwrap();
            pixels.save(&path).unwrap();
            let read = || {
                let shape = PartialShape::from(&[1, 3, 4, 4][..]);
                arguments(&[], &[], false).read(&path, ElementType::U8, &shape)
            };
            read().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() - missing]).unwrap();
            let error = format!("`{}`: unexpected end of file", path.display());
            assert_eq!(read().unwrap_err(), error);
        }
    }

    #[test]
    fn channels_go_where_the_layout_has_them() {
        let (_dir, path) = picture();
        let read = |arguments: &ImageArgs, ty, shape: &[usize]| {
            let tensor = arguments.read(&path, ty, &PartialShape::from(shape))?;
            Ok::<_, String>(tensor.to_f64_vec().unwrap())
        };
        let plain = arguments(&[], &[], false);
        let planar = read(&plain, ElementType::U8, &[1, 3, 1, 2]).unwrap();
        assert_eq!(planar, [255.0, 0.0, 0.0, 20.0, 10.0, 255.0]);
        let nhwc = ImageArgs {
            layout: Some(Layout::Nhwc),
            ..arguments(&[5.0, 0.0, 10.0], &[2.0], true)
        };
        let pixels = read(&nhwc, ElementType::F32, &[1, 1, 2, 3]).unwrap();
        assert_eq!(pixels, [0.0, 0.0, 125.0, 122.5, 10.0, -2.5]);
        // The larger picture has the colours between.
        let larger = read(&plain, ElementType::U8, &[3, 1, 4]).unwrap();
        assert!(
            larger[0] == 255.0 && larger[1] < 255.0 && larger[3] == 0.0,
            "{larger:?}"
        );
        let error = read(&plain, ElementType::U8, &[1, 8, 2, 2]).unwrap_err();
        assert!(error.contains("`--layout`"), "{error}");
        let error = read(
            &arguments(&[1.0, 2.0], &[], false),
            ElementType::F32,
            &[3, 1, 2],
        );
        assert_eq!(error.unwrap_err(), "`--mean` has 2 values for 3 channels");
    }
}
