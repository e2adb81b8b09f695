//! Where the elements that are sampled lie in a channel, stored once for all channels.
//!
//! `places[n, i, j] = row · width + column`; [`OUTSIDE`] for one that counts as zero. Without them each channel would compute rows and
//! columns anew, which takes longer than to load the elements.

use super::{GridSample, Mode, Padding, Sampled, computable, within};
use crate::Lower;
use vinelift_nest::build::{index, integer, select};
use vinelift_nest::{BufferId, Scalar};
use vinelift_tensor::ElementType::{I64, U32};
use vinelift_tensor::Extent;

/// The place of an element in the padding of zeros.
const OUTSIDE: i64 = u32::MAX as i64;

/// The most elements of a channel: any place is an `i32`.
const MOST: i64 = i32::MAX as i64;

/// The places of the elements `[top + r, left + c]` of each point.
pub(super) struct Places {
    /// By `r`, then by `c`.
    buffers: Vec<BufferId>,
    /// How many there are of each.
    taps: usize,
    width: i64,
    /// The elements of a channel.
    elements: i64,
    has_outside: bool,
}

impl Places {
    /// `None` for data whose extents have symbols, and for bicubic sampling, which would take 16 buffers.
    pub(super) fn of(
        op: &GridSample,
        cx: &mut Lower<'_>,
        extents: [Extent; 2],
        sampled: [&Sampled; 2],
    ) -> Option<Places> {
        let taps = match op.mode {
            Mode::Nearest => 1,
            Mode::Bilinear => 2,
            Mode::Bicubic => return None,
        };
        let [height, width] = extents.map(|n| n.number().and_then(|n| i64::try_from(n).ok()));
        let (width, elements) = (width?, height?.checked_mul(width?)?);
        if elements > MOST {
            return None;
        }
        let points = &cx.extents("grid")[..3];
        let has_outside = op.padding_mode == Padding::Zeros;
        let buffers = (0..taps * taps).map(|tap| {
            let buffer = cx.temporary("place", U32, points);
            cx.define(buffer, |cx, at| {
                let offsets = [tap / taps, tap % taps];
                let places = [0, 1].map(|d| {
                    let from = computable(cx.load_from(sampled[d].position, at));
                    match offsets[d] as i64 {
                        0 => from,
                        by => integer(by, from.ty()) + from,
                    }
                });
                let [row, column] = [0, 1].map(|d| op.clamped(&places[d], extents[d]));
                let width = integer(width, row.ty());
                let place = (row * width + column).cast(U32);
                if !has_outside {
                    return place;
                }
                let [below, right] = [0, 1].map(|d| within(&places[d], extents[d]));
                select(below & right, place, integer(OUTSIDE, U32))
            });
            buffer
        });
        Some(Places {
            buffers: buffers.collect(),
            taps,
            width,
            elements,
            has_outside,
        })
    }

    /// `data[n, c]` at neighbour `[r, c]` of the point `[n, i, j]`.
    pub(super) fn load(
        &self,
        cx: &Lower<'_>,
        [n, channel]: [&Scalar; 2],
        point: &[Scalar],
        [r, c]: [i64; 2],
        outside: Scalar,
    ) -> Scalar {
        let place = cx.load_from(self.buffers[r as usize * self.taps + c as usize], point);
        let inside = place.clone().cast(I64).min(index(self.elements - 1));
        let from = [
            n.clone(),
            channel.clone(),
            &inside / self.width,
            inside.rem(index(self.width)),
        ];
        let value = cx.load("data", &from);
        match self.has_outside {
            true => select(place.eq(integer(OUTSIDE, U32)), outside, value),
            false => value,
        }
    }
}
