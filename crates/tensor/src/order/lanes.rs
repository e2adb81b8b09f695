//! Keys, which are compared in place of elements, and rows of keys of several slices side by side.

use std::fmt::Debug;

use zerocopy::Unalign;

use super::narrow::single_key;
use super::{Direction, NarrowKeys};
use crate::{ElementType, Tensor};

/// The columns of a row.
pub(super) const LANES: usize = 16;

/// Of neighbouring slices, one in each lane.
pub(super) type Row<K> = [K; LANES];

/// Stands for an element: the lesser comes first. One that is not ordered at all comes last.
pub(super) trait Key: Copy + Debug + PartialOrd {
    /// The greatest of the keys that are ordered.
    const WORST: Self;

    /// In the same order, with an order for those that have none.
    fn narrow(self) -> i32;
}

impl Key for i32 {
    const WORST: i32 = i32::MAX;

    #[inline]
    fn narrow(self) -> i32 {
        self
    }
}

/// Comparing them takes fewer steps than to make them keys.
impl Key for f32 {
    const WORST: f32 = f32::INFINITY;

    #[inline]
    fn narrow(self) -> i32 {
        single_key(self, 0)
    }
}

/// The elements of a tensor in the form in which they are compared.
pub(super) trait Source {
    type Key: Key;

    /// Puts the elements from `start` on into `keys`: `width` of them, then as many `stride` elements further, and so on.
    fn read(&self, start: usize, stride: usize, width: usize, keys: &mut [Self::Key]);

    /// The least key of the `count` elements from `start` on that is ordered, or [`Key::WORST`]. There is room for them.
    fn least_of_line(&self, start: usize, count: usize, room: &mut [Self::Key]) -> Self::Key {
        let keys = &mut room[..count];
        self.read(start, count, count, keys);
        let (rows, rest) = keys.as_chunks();
        least_key(rows.iter().copied(), rest.iter().copied())
    }

    /// Of `room.len()` rows, the first from `start` on and each of the others `stride` elements further. What is in
    /// `room` afterwards is not said.
    fn least(&self, start: usize, stride: usize, room: &mut [Row<Self::Key>]) -> Least<Self::Key> {
        self.read(start, stride, LANES, room.as_flattened_mut());
        Least::of(room.iter().copied())
    }
}

/// The least key of each lane, and the first row that has it. Where no key is less than [`Key::WORST`], it is that one
/// in the first row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least<K> {
    pub(super) keys: Row<K>,
    pub(super) rows: [u32; LANES],
}

impl<K: Key> Least<K> {
    /// Of no rows.
    pub(super) const NONE: Least<K> = Least {
        keys: [K::WORST; LANES],
        rows: [0; LANES],
    };

    /// Of these rows.
    #[inline(always)]
    pub(super) fn of(rows: impl Iterator<Item = Row<K>>) -> Least<K> {
        let mut least = Least::NONE;
        for (r, row) in rows.enumerate() {
            for (lane, key) in least.keys.iter_mut().enumerate() {
                let better = row[lane] < *key;
                *key = if better { row[lane] } else { *key };
                let found = &mut least.rows[lane];
                *found = if better { r as u32 } else { *found };
            }
        }
        least
    }
}

/// The least key of all rows and the rest of a last one.
#[inline(always)]
fn least_key<K: Key>(rows: impl Iterator<Item = Row<K>>, rest: impl Iterator<Item = K>) -> K {
    let mut least = [K::WORST; LANES];
    for row in rows {
        least = lesser(&least, &row);
    }
    let eight: [K; 8] = lesser_half(&least);
    let four: [K; 4] = lesser_half(&eight);
    let two: [K; 2] = lesser_half(&four);
    let [mut least] = lesser_half(&two);
    for key in rest {
        least = if key < least { key } else { least };
    }
    least
}

/// The lesser key of each lane, that of `a` if they are not ordered.
#[inline]
pub(super) fn lesser<K: Key>(a: &Row<K>, b: &Row<K>) -> Row<K> {
    let mut lesser = *a;
    for (lane, key) in lesser.iter_mut().enumerate() {
        *key = if b[lane] < *key { b[lane] } else { *key };
    }
    lesser
}

/// Of each key of one half and the one at the same place of the other the lesser one.
#[inline]
fn lesser_half<K: Key, const N: usize, const HALF: usize>(keys: &[K; N]) -> [K; HALF] {
    let mut lesser = [K::WORST; HALF];
    for (lane, least) in lesser.iter_mut().enumerate() {
        let (a, b) = (keys[lane], keys[lane + N - HALF]);
        *least = if b < a { b } else { a };
    }
    lesser
}

/// The elements of a tensor of `f32`, with the opposite sign if the largest come first.
#[derive(Clone, Copy)]
pub(super) struct Singles<'a> {
    elements: &'a [Unalign<f32>],
    flip: u32,
}

impl Singles<'_> {
    /// `None` of other types.
    pub(super) fn of(tensor: &Tensor, direction: Direction) -> Option<Singles<'_>> {
        let flip = u32::from(direction == Direction::Descending) << 31;
        let elements = tensor.elements();
        (tensor.element_type() == ElementType::F32).then_some(Singles { elements, flip })
    }

    #[inline]
    fn key(&self, x: &Unalign<f32>) -> f32 {
        f32::from_bits(x.get().to_bits() ^ self.flip)
    }

    #[inline]
    fn row(&self, row: &[Unalign<f32>; LANES]) -> Row<f32> {
        let mut keys = [0.0; LANES];
        for (lane, key) in keys.iter_mut().enumerate() {
            *key = self.key(&row[lane]);
        }
        keys
    }
}

impl Source for Singles<'_> {
    type Key = f32;

    fn read(&self, start: usize, stride: usize, width: usize, keys: &mut [f32]) {
        for (r, row) in keys.chunks_mut(width.max(1)).enumerate() {
            let from = self.elements.get(start + r * stride..).unwrap_or_default();
            if let (Ok(row), Some(from)) =
                (<&mut Row<f32>>::try_from(&mut *row), from.first_chunk())
            {
                *row = self.row(from);
                continue;
            }
            for (to, x) in row.iter_mut().zip(from) {
                *to = self.key(x);
            }
        }
    }

    fn least_of_line(&self, start: usize, count: usize, _: &mut [f32]) -> f32 {
        let from = self.elements.get(start..).unwrap_or_default();
        let (rows, rest) = from[..count.min(from.len())].as_chunks();
        least_key(
            rows.iter().map(|row| self.row(row)),
            rest.iter().map(|x| self.key(x)),
        )
    }

    fn least(&self, start: usize, stride: usize, room: &mut [Row<f32>]) -> Least<f32> {
        let from = self.elements.get(start..).unwrap_or_default();
        let rows = from.chunks(stride.max(1)).take(room.len());
        let rows = rows.filter_map(|row| row.first_chunk::<LANES>());
        Least::of(rows.map(|row| self.row(row)))
    }
}

impl Source for NarrowKeys<'_> {
    type Key = i32;

    fn read(&self, start: usize, stride: usize, width: usize, keys: &mut [i32]) {
        NarrowKeys::read(self, start, stride, width, keys);
    }
}
