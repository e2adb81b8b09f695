//! The best element of a slice, where no more are wanted.

use super::lanes::{Key, LANES, Least, Row, Source};

/// The most elements of lines of which several are looked at side by side.
pub(super) const SHORT: usize = 128;
/// The rows that there is room for in such lines, or a part of a longer one.
pub(super) const ROWS: usize = SHORT;
/// How many elements of a longer line are looked at together.
const BLOCK: usize = 256;

/// The best element of each of `width` neighbouring columns, the first from `start` on, of rows that are `stride` elements
/// apart. There is room for all of them, and there is at least one.
pub(super) fn of_columns<S: Source>(
    source: &S,
    start: usize,
    stride: usize,
    width: usize,
    room: &mut [Row<S::Key>],
) -> [u32; LANES] {
    let worst = S::Key::WORST;
    let count = room.len() * width;
    let mut least = match width {
        LANES => source.least(start, stride, room),
        _ => {
            let keys = &mut room.as_flattened_mut()[..count];
            source.read(start, stride, width, keys);
            Least::of(keys.chunks(width).map(|keys| {
                let mut row = [worst; LANES];
                row[..width].copy_from_slice(keys);
                row
            }))
        }
    };
    if least.keys[..width].contains(&worst) {
        // Not ordered elements may come before the worst of the others.
        let keys = &mut room.as_flattened_mut()[..count];
        source.read(start, stride, width, keys);
        for lane in (0..width).filter(|lane| least.keys[*lane] == worst) {
            let mut lane_keys = keys.iter().skip(lane).step_by(width);
            least.rows[lane] = lane_keys.position(|key| *key == worst).unwrap_or(0) as u32;
        }
    }
    least.rows
}

/// The positions of the best elements of [`LANES`] lines, the first from `start` on, of `extent` elements each: at least
/// one, and at most [`SHORT`].
pub(super) fn of_short_lines<S: Source>(
    source: &S,
    start: usize,
    extent: usize,
    room: &mut [Row<S::Key>; ROWS],
) -> [u32; LANES] {
    let worst = S::Key::WORST;
    let keys = &mut room.as_flattened_mut()[..LANES * extent];
    source.read(start, keys.len(), keys.len(), keys);
    let lines = lines_of(keys, extent);
    let mut least = Least::of(rows_of(&lines, extent));
    for (lane, line) in lines.iter().enumerate() {
        if least.keys[lane] == worst {
            // Not ordered elements may come before the worst of the others.
            let first = line.iter().position(|key| *key == worst);
            least.rows[lane] = first.unwrap_or(0) as u32;
        }
    }
    least.rows
}

/// The lines of `extent` keys each.
fn lines_of<K>(keys: &[K], extent: usize) -> [&[K]; LANES] {
    let mut lines = [&keys[..0]; LANES];
    for (line, keys) in lines.iter_mut().zip(keys.chunks(extent)) {
        *line = keys;
    }
    lines
}

/// The keys of all lines at each position.
#[inline(always)]
fn rows_of<K: Key>(lines: &[&[K]; LANES], extent: usize) -> impl Iterator<Item = Row<K>> {
    (0..extent).map(|position| {
        let mut row = [K::WORST; LANES];
        for (lane, key) in row.iter_mut().enumerate() {
            *key = lines[lane][position];
        }
        row
    })
}

/// Reads [`LANES`] lines, the first of which begins at `start`: row `p` of `rows` gets element `p` of each line. `room` has a
/// place for each key.
pub(super) fn read_lines<S: Source>(
    source: &S,
    start: usize,
    rows: &mut [Row<S::Key>],
    room: &mut [S::Key],
) {
    let extent = rows.len();
    source.read(start, room.len(), room.len(), room);
    let lines = lines_of(room, extent);
    for (to, row) in rows.iter_mut().zip(rows_of(&lines, extent)) {
        *to = row;
    }
}

/// The position of the best element of a line, the `count` elements from `start` on: the least key is found first, with the
/// first block that has it, and then where in the block it is.
pub(super) fn of_line<S: Source>(
    source: &S,
    start: usize,
    count: usize,
    room: &mut [Row<S::Key>; ROWS],
) -> u32 {
    let room = room.as_flattened_mut();
    let (mut best, mut block) = (S::Key::WORST, 0);
    for at in (0..count).step_by(BLOCK) {
        let key = source.least_of_line(start + at, BLOCK.min(count - at), room);
        if key < best {
            (best, block) = (key, at);
        }
    }
    // Where none is better than the worst, not ordered elements may come first.
    for at in (block..count).step_by(BLOCK) {
        let keys = &mut room[..BLOCK.min(count - at)];
        source.read(start + at, keys.len(), keys.len(), keys);
        if let Some(first) = first_of(best, keys) {
            return (at + first) as u32;
        }
    }
    // None is ordered.
    0
}

/// The position of the first of these that is equal to `key`.
fn first_of<K: Key>(key: K, keys: &[K]) -> Option<usize> {
    for (chunk, at) in keys.chunks(LANES).zip((0..).step_by(LANES)) {
        let is_here = chunk.iter().fold(false, |any, other| any | (*other == key));
        if is_here {
            return chunk
                .iter()
                .position(|other| *other == key)
                .map(|first| at + first);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;
    use crate::order::{Direction, Wanted, best_along};
    use proptest::prelude::*;
    use proptest::sample::select;

    const INF: f32 = f32::INFINITY;

    /// The positions of all elements of each slice, the best first: NaN after all numbers, the lowest position first among
    /// equal ones.
    fn sorted(values: &[f64], [outer, extent, inner]: [usize; 3], down: bool) -> Vec<Vec<i64>> {
        let mut slices = Vec::new();
        for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
            let value = |j: usize| values[(o * extent + j) * inner + i];
            let mut order: Vec<usize> = (0..extent).collect();
            order.sort_by(|a, b| {
                let (a, b) = (value(*a), value(*b));
                let by_value = if down {
                    b.partial_cmp(&a)
                } else {
                    a.partial_cmp(&b)
                };
                by_value.unwrap_or(a.is_nan().cmp(&b.is_nan()))
            });
            slices.push(order.into_iter().map(|j| j as i64).collect());
        }
        slices
    }

    fn check(tensor: &Tensor, dims: [usize; 3], k: usize, down: bool) {
        let [outer, _, inner] = dims;
        let slices = sorted(&tensor.to_f64_vec().unwrap(), dims, down);
        let mut want = vec![0; outer * k * inner];
        for (s, slice) in slices.iter().enumerate() {
            let first = s / inner * k * inner + s % inner;
            let slice = slice.iter().take(k);
            want[first..]
                .iter_mut()
                .step_by(inner)
                .zip(slice)
                .for_each(|(to, j)| *to = *j);
        }
        let wanted = Wanted {
            direction: if down {
                Direction::Descending
            } else {
                Direction::Ascending
            },
            k,
            by_position: false,
        };
        let found = best_along(tensor, dims, wanted, &|| true);
        assert_eq!(found.unwrap().unwrap(), want, "{k} of {dims:?}, {down}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// For few elements of every kind, that make whole slices of the worst and of none that is ordered likely, and for
        /// extents on both sides of all that change the way.
        #[test]
        fn as_if_all_were_sorted(
            kinds in prop_oneof![
                Just(vec![f32::NAN]),
                Just(vec![f32::NAN, -f32::NAN, INF]),
                Just(vec![f32::NAN, -INF]),
                Just(vec![INF, -INF, 0.0, -0.0]),
                Just(vec![-0.0, 0.0, f32::NAN, 1e-45, -1e-45]),
                proptest::collection::vec(any::<f32>(), 1..50),
            ],
            outer in select(vec![0, 1, 2, LANES - 1, LANES, LANES + 1]),
            extent in select(vec![
                1, 2, 5, LANES - 1, LANES, LANES + 1, SHORT - 1, SHORT, SHORT + 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7,
            ]),
            inner in select(vec![0, 1, 1, 1, 2, LANES - 1, LANES, LANES + 1, 2 * LANES + 3]),
            k in 1usize..6,
            seed: u64,
        ) {
            // Large ones have fewer slices.
            let inner = if extent > SHORT { inner.min(LANES + 1) } else { inner };
            let outer = if extent * inner > 2000 { outer.min(2) } else { outer };
            let dims = [outer, extent, inner];
            let mut state = seed;
            let values: Vec<f32> = (0..outer * extent * inner).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                kinds[(state >> 33) as usize % kinds.len()]
            }).collect();
            let integers: Vec<i32> = values.iter().map(|x| *x as i32).collect();
            for k in [1, k.min(extent)] {
                for down in [false, true] {
                    if inner > 0 {
                        check(&Tensor::from_slice(&dims, &values).unwrap(), dims, k, down);
                        check(&Tensor::from_slice(&dims, &integers).unwrap(), dims, k, down);
                    } else {
                        let tensor = Tensor::from_slice(&dims, &values).unwrap();
                        let wanted = Wanted { direction: Direction::Descending, k, by_position: true };
                        let found = best_along(&tensor, dims, wanted, &|| true).unwrap();
                        prop_assert_eq!(found, Some(Vec::new()));
                    }
                }
            }
        }
    }

    /// The best of a line is in its first block, the same key again in a later one.
    #[test]
    fn the_first_of_equal_ones_in_different_blocks() {
        let mut line = vec![3i32; 4 * BLOCK];
        line[BLOCK + 5] = -1;
        line[3 * BLOCK] = -1;
        let tensor = Tensor::from_slice(&[1, line.len()], &line).unwrap();
        let wanted = Wanted {
            direction: Direction::Ascending,
            k: 1,
            by_position: false,
        };
        let found = best_along(&tensor, [1, line.len(), 1], wanted, &|| true);
        assert_eq!(found.unwrap().unwrap(), [BLOCK as i64 + 5]);
    }
}
