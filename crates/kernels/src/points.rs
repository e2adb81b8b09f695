//! Shifts and scales of coded elements, as they are kept: those of groups may be many, and files have them in few bits.

use crate::codes::Codes;
use vinelift_tensor::half::f16;

/// The shifts and scales of all groups and lanes, panel by panel as the codes lie: tiles go through both from end to end.
/// A vector more follows.
#[derive(Debug)]
pub(crate) enum Points {
    /// Shifts and scales as elements are made of them.
    Wide {
        shift: Box<[f32]>,
        scale: Box<[f32]>,
    },
    /// Zero points, and the bits of scales as `f16`, where elements are made in one operation: a shift is
    /// `-zero · scale`, which is exact.
    Narrow { zero: Box<[u8]>, scale: Box<[u16]> },
}

/// The most lanes of a vector of `f32`.
pub(crate) const MOST_LANES: usize = 16;

/// Numbers for the lanes of a vector, as loads are fastest.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Lanes(pub(crate) [f32; MOST_LANES]);

/// Where shifts and scales are.
#[derive(Clone, Copy)]
pub(crate) struct PointsAt {
    /// The numbers or bits, of a type that `is_narrow` tells.
    shift: *const u8,
    scale: *const u8,
    is_narrow: bool,
}

impl Points {
    /// The shifts and scales of elements that are made in one operation, of these scales, and of these zero points if there
    /// are any. They are narrow if codes are integers, and zero points and scales have so few bits that elements are the same.
    pub(crate) fn fused(is_integer: bool, zero: Option<Vec<f32>>, scale: Vec<f32>) -> Points {
        let bits = |scale: &f32| f16::from_f32(*scale);
        let is_byte = |zero: &f32| f32::from(*zero as u8) == *zero;
        let is_short = |s: &f32| s.is_finite() && *s >= 0.0 && bits(s).to_f32() == *s;
        let zeros = zero.as_deref().unwrap_or_default();
        if is_integer && zeros.iter().all(is_byte) && scale.iter().all(is_short) {
            let zeros = zeros.iter().map(|zero| *zero as u8);
            let none = std::iter::repeat_n(0, scale.len() - zeros.len());
            return Points::Narrow {
                zero: zeros.chain(none).collect(),
                scale: scale.iter().map(|scale| bits(scale).to_bits()).collect(),
            };
        }
        let shift = match &zero {
            Some(zero) => zero
                .iter()
                .zip(&scale)
                .map(|(zero, scale)| -zero * scale)
                .collect(),
            // To add -0 changes nothing.
            None => vec![-0.0; scale.len()].into(),
        };
        let scale = scale.into();
        Points::Wide { shift, scale }
    }

    /// Shifts and scales from a place on.
    pub(crate) fn at(&self, place: usize) -> PointsAt {
        match self {
            Points::Wide { shift, scale } => PointsAt {
                shift: shift[place..].as_ptr().cast(),
                scale: scale[place..].as_ptr().cast(),
                is_narrow: false,
            },
            Points::Narrow { zero, scale } => PointsAt {
                shift: zero[place..].as_ptr(),
                scale: scale[place..].as_ptr().cast(),
                is_narrow: true,
            },
        }
    }
}

impl PointsAt {
    /// None.
    pub(crate) const NONE: PointsAt = PointsAt {
        shift: std::ptr::null(),
        scale: std::ptr::null(),
        is_narrow: false,
    };

    /// The shift and the scale of each lane, from the place that is `further` on.
    ///
    /// # Safety
    /// There is a vector of them, and the machine has the instructions.
    #[inline(always)]
    pub(crate) unsafe fn load<S: Codes>(&self, further: usize) -> [S::V; 2] {
        // SAFETY: the caller's.
        unsafe {
            if !self.is_narrow {
                let (shift, scale) = (self.shift.cast::<f32>(), self.scale.cast::<f32>());
                return [S::load(shift.add(further)), S::load(scale.add(further))];
            }
            let scale = S::f16(self.scale.add(further * size_of::<u16>()));
            let zero = S::u8(self.shift.add(further));
            [S::sub(S::zero(), S::mul(zero, scale)), scale]
        }
    }
}
