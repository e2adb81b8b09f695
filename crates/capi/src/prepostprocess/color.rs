//! Colours: how they lie in tensors.

use crate::status::{Failure, Result};
use vinelift::Dim;

/// `ov_color_format_e`, but for the one that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    Nv12,
    Nv12Planes,
    I420,
    I420Planes,
    Rgb,
    Bgr,
    Gray,
    Rgbx,
    Bgrx,
}

impl Color {
    const ALL: [Color; 9] = [
        Color::Nv12,
        Color::Nv12Planes,
        Color::I420,
        Color::I420Planes,
        Color::Rgb,
        Color::Bgr,
        Color::Gray,
        Color::Rgbx,
        Color::Bgrx,
    ];

    /// The format with this number; `None` is none.
    pub(crate) fn of_number(number: u32) -> Result<Option<Color>> {
        let Some(position) = (number as usize).checked_sub(1) else {
            return Ok(None);
        };
        let found = Color::ALL.get(position).copied();
        let fail = || Failure::argument(format!("there is no colour format {number}"));
        found.map(Some).ok_or_else(fail)
    }

    /// Whether brightness and colour are apart, in tensors that are always `[N,H,W,C]`.
    pub(crate) fn is_yuv(self) -> bool {
        matches!(
            self,
            Color::Nv12 | Color::Nv12Planes | Color::I420 | Color::I420Planes
        )
    }

    fn channels(self) -> usize {
        match self {
            Color::Gray => 1,
            Color::Rgbx | Color::Bgrx => 4,
            _ => 3,
        }
    }

    /// The last extents, from height on, of each tensor in this format for images of `height` and
    /// `width`, in the layout of images; only for those that are apart.
    pub(crate) fn planes(self, height: Dim, width: Dim) -> Vec<[Dim; 3]> {
        let scaled = |dim: Dim, by: usize, over: usize| match dim.get() {
            Some(n) => Dim::fixed(n.saturating_mul(by) / over),
            None => Dim::ANY,
        };
        let whole = [scaled(height, 3, 2), width, Dim::fixed(1)];
        let bright = [height, width, Dim::fixed(1)];
        let half = |channels| {
            [
                scaled(height, 1, 2),
                scaled(width, 1, 2),
                Dim::fixed(channels),
            ]
        };
        match self {
            Color::Nv12 | Color::I420 => vec![whole],
            Color::Nv12Planes => vec![bright, half(2)],
            Color::I420Planes => vec![bright, half(1), half(1)],
            _ => Vec::new(),
        }
    }

    /// The extent of the dimension of channels in a tensor of this format.
    pub(crate) fn channel_dim(self) -> Dim {
        Dim::fixed(self.channels())
    }
}
