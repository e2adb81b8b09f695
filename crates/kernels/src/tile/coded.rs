//! Tiles whose columns are codes, of which they make elements on the way.

use super::sums::{finish, start};
use super::{EdgeFunctions, Tile};
use crate::coded::{Load, MakeElement};
use crate::codes::Codes;
use crate::points::{Lanes, MOST_LANES};
use std::marker::PhantomData;

/// The micro-kernel of `H` rows and `N` vectors whose columns are packed codes, of which it makes elements: in panels of
/// `WIDTH` vectors.
///
/// # Safety
/// as [`TileFn`](super::TileFn).
#[inline(always)]
pub(crate) unsafe fn coded_tile<
    S: Codes,
    L: Load<S>,
    E: MakeElement<S>,
    const H: usize,
    const N: usize,
    const WIDTH: usize,
>(
    tile: &Tile<f32>,
    parts: EdgeFunctions<S>,
) {
    // SAFETY: by the contract of `TileFn` all that is read here may be.
    unsafe {
        let mut sums = start::<S, H, N>(tile, &parts);
        let mut codes: *const u8 = tile.columns.cast();
        let (mut rows, mut group) = (tile.rows, 0);
        let (mut left, mut left_in_group) = (tile.k, 0);
        let mut points = [[Lanes([0.0; MOST_LANES]); 2]; N];
        let line_bytes = WIDTH * S::LANES * L::BYTES;
        let panels = N / WIDTH;
        let ahead = BYTES_AHEAD / panels;
        while left > 0 {
            if left_in_group == 0 {
                left_in_group = tile.group;
                for j in 0..N {
                    let panel = group + j / WIDTH * tile.points_panel_step;
                    let [shift, scale] = tile.points.load::<S>(panel + j % WIDTH * S::LANES);
                    S::store(points[j][0].0.as_mut_ptr(), shift);
                    S::store(points[j][1].0.as_mut_ptr(), scale);
                }
                group += tile.points_step;
            }
            let count = left.min(left_in_group).min(FETCHED_TOGETHER);
            // After the last lines come those of the panels that follow.
            let is_last = left / L::DEPTH * line_bytes <= ahead;
            let others = if is_last {
                (panels - 1) * tile.panel_step
            } else {
                0
            };
            let line = CodedLine::<S, L, E, H, N, WIDTH> {
                tile,
                points: points.as_ptr(),
                ahead: ahead + others,
                load: PhantomData,
            };
            for _ in 0..count / L::DEPTH {
                line.add(codes, rows, L::DEPTH, &mut sums);
                rows = rows.wrapping_add(L::DEPTH * tile.rows_step);
                codes = codes.wrapping_add(line_bytes);
            }
            if count % L::DEPTH > 0 {
                line.add(codes, rows, 1, &mut sums);
            }
            left -= count;
            left_in_group -= count;
        }
        finish::<S, H, N>(tile, &parts, sums);
    }
}

/// How many bytes ahead of those that a tile takes codes are fetched, of all its panels together: as far as memory is slow.
const BYTES_AHEAD: usize = 8 << 10;

/// The most `k` between two looks at what is fetched; even.
const FETCHED_TOGETHER: usize = 64;

/// The state that all lines of a group of `k` share.
struct CodedLine<'a, S, L, E, const H: usize, const N: usize, const WIDTH: usize> {
    tile: &'a Tile<f32>,
    /// The shifts and the scales of each of `N` vectors.
    points: *const [Lanes; 2],
    /// How far ahead codes are fetched.
    ahead: usize,
    load: PhantomData<(S, L, E)>,
}

impl<S: Codes, L: Load<S>, E: MakeElement<S>, const H: usize, const N: usize, const WIDTH: usize>
    CodedLine<'_, S, L, E, H, N, WIDTH>
{
    /// Adds the products of the first `depth` `k` of a line, whose rows are at `rows`.
    ///
    /// # Safety
    /// as [`TileFn`](super::TileFn).
    #[inline(always)]
    unsafe fn add(
        &self,
        codes: *const u8,
        rows: *const f32,
        depth: usize,
        sums: &mut [[S::V; N]; H],
    ) {
        for j in 0..N {
            // SAFETY: the caller's.
            unsafe {
                let panel = codes.wrapping_add(j / WIDTH * self.tile.panel_step);
                if j % WIDTH == 0 {
                    S::fetch_codes(panel.wrapping_add(self.ahead));
                }
                let loaded = L::load(panel.wrapping_add(j % WIDTH * S::LANES * L::BYTES));
                let of_vector = self.points.add(j).cast::<f32>();
                let (shift, scale) = (of_vector, of_vector.add(MOST_LANES));
                // Sixteen registers hold sums, rows and codes first.
                let scale = match H == 1 || L::DEPTH == 1 {
                    true => S::load(scale),
                    false => S::load_anew(scale),
                };
                for d in 0..depth {
                    let element = match H == 1 && L::DEPTH == 1 {
                        true => E::element::<true>(loaded[d], shift, scale),
                        false => E::element::<false>(loaded[d], shift, scale),
                    };
                    for i in 0..H {
                        let row = S::splat(rows.add(d * self.tile.rows_step + i));
                        sums[i][j] = S::fma(row, element, sums[i][j]);
                    }
                }
            }
        }
    }
}
