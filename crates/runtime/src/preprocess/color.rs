//! Colours: how they lie in tensors.

use vinelift_tensor::Dim;

/// How the colours of pictures lie in tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Color {
    /// Brightness for each pixel, then two colours for each four, in turn, in one tensor of one and a half times the height.
    Nv12,
    /// As `Nv12`, in two tensors.
    Nv12Planes,
    /// Brightness for each pixel, then one colour for each four, then the other, in one tensor of one and a half times the height.
    I420,
    /// As `I420`, in three tensors.
    I420Planes,
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// Brightness alone.
    Gray,
    /// Red, green, blue, and a fourth that does not count.
    Rgbx,
    /// Blue, green, red, and a fourth that does not count.
    Bgrx,
}

impl Color {
    /// All of them, in the order of OpenVINO's numbers, from 1 on.
    pub const ALL: [Color; 9] = [
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

    /// Whether brightness and colour are apart, in tensors that are always `[N,H,W,C]`.
    pub(super) fn is_yuv(self) -> bool {
        matches!(
            self,
            Color::Nv12 | Color::Nv12Planes | Color::I420 | Color::I420Planes
        )
    }

    /// The last extents, from height on, of each tensor in this format for images of `height` and
    /// `width`, in the layout of images; only for those that are apart.
    pub(super) fn planes(self, height: Dim, width: Dim) -> Vec<[Dim; 3]> {
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

    /// The extent of the dimension of channels in a tensor of this format; `None` if it is the model's, as OpenVINO has it for grey.
    pub(super) fn channels(self) -> Option<Dim> {
        match self {
            Color::Gray => None,
            Color::Rgbx | Color::Bgrx => Some(Dim::fixed(4)),
            _ => Some(Dim::fixed(3)),
        }
    }
}
