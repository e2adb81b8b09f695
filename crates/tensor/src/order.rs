//! A total order on the elements of a tensor of any type.

mod along;
mod best;
mod columns;
mod first;
mod lanes;
mod narrow;
mod one_by_one;
mod passes;
mod together;

use crate::memory::{collected, filled};
use crate::{ElementType, Tensor, TensorError};
use narrow::NarrowKeys;

pub use along::{Wanted, best_along};
pub use one_by_one::OneByOne;

/// A direction to sort in. NaN comes last in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The smallest first.
    Ascending,
    /// The largest first.
    Descending,
}

/// A number for each element, in the order that their values have in `direction`: equal elements (also
/// -0 and 0, and NaNs) have equal numbers, smaller numbers come first.
pub fn keys(tensor: &Tensor, direction: Direction) -> Result<Vec<u64>, TensorError> {
    let ty = tensor.element_type();
    let ascending = match ty {
        ElementType::String => ranks(tensor)?,
        ElementType::U64 => collected(tensor.as_slice::<u64>()?.iter().copied())?,
        _ if ty.is_float() => {
            let of = |x: f64| float_key(x, direction);
            // In the memory of the list, as below: keys are as wide as what they are made of.
            return Ok(tensor.to_f64_vec()?.into_iter().map(of).collect());
        }
        _ => {
            let of = |i: i64| i as u64 ^ SIGN;
            tensor.to_i64_vec()?.into_iter().map(of).collect()
        }
    };
    Ok(match direction {
        Direction::Ascending => ascending,
        Direction::Descending => ascending.into_iter().map(|k| !k).collect(),
    })
}

const SIGN: u64 = 1 << 63;

/// As [`keys`], of one float.
pub fn float_key(x: f64, direction: Direction) -> u64 {
    if x.is_nan() {
        return u64::MAX;
    }
    // Adding 0 makes -0 positive.
    let bits = (x + 0.0).to_bits();
    let ascending = if bits & SIGN == 0 { bits | SIGN } else { !bits };
    match direction {
        Direction::Ascending => ascending,
        Direction::Descending => !ascending,
    }
}

/// Leaves the `most` smallest of these pairs of a key and a position, in any order.
///
/// Selecting and sorting are large code, with a copy for each type and each way to compare: whoever looks for the best
/// of many does so by keys, here and in [`sort`].
pub fn select(keyed: &mut Vec<(u64, usize)>, most: usize) {
    if most < keyed.len() {
        if let Some(last) = most.checked_sub(1) {
            keyed.select_nth_unstable(last);
        }
        keyed.truncate(most);
    }
}

/// Sorts pairs of a key and a position, the lowest position first among equal keys.
pub fn sort(keyed: &mut [(u64, usize)]) {
    keyed.sort_unstable();
}

/// Sorts by several keys, the first first; items whose keys are all equal stay in their order.
pub fn sort_by_keys<T: Copy>(
    items: &mut Vec<T>,
    keys: impl Fn(&T) -> [u64; 4],
) -> Result<(), TensorError> {
    let keyed = items.iter().enumerate().map(|(i, item)| (keys(item), i));
    let mut keyed = collected(keyed)?;
    sort_several(&mut keyed);
    *items = collected(keyed.into_iter().map(|(_, i)| items[i]))?;
    Ok(())
}

/// Apart, so that there is one copy for all types.
fn sort_several(keyed: &mut [([u64; 4], usize)]) {
    keyed.sort_unstable();
}

/// The position of each string among the distinct ones, in the order of their bytes.
fn ranks(tensor: &Tensor) -> Result<Vec<u64>, TensorError> {
    let strings = tensor.strings().unwrap_or_default();
    let mut order = collected(0..strings.len())?;
    order.sort_unstable_by_key(|i| (&strings[*i], *i));
    let mut ranks = filled(strings.len(), 0)?;
    for pair in order.windows(2) {
        let step = u64::from(strings[pair[0]] != strings[pair[1]]);
        ranks[pair[1]] = ranks[pair[0]] + step;
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_with_nan_last() {
        let inf = f64::INFINITY;
        let sorted = [-inf, -2.0, -1e-320, 0.0, 1e-320, 2.0, inf, f64::NAN];
        let of = |direction| sorted.map(|x| float_key(x, direction));
        assert!(of(Direction::Ascending).is_sorted_by(|a, b| a < b));
        let mut down = of(Direction::Descending);
        down[..7].reverse();
        assert!(down.is_sorted_by(|a, b| a < b));
        assert_eq!(
            float_key(-0.0, Direction::Ascending),
            float_key(0.0, Direction::Ascending)
        );
    }

    #[test]
    fn every_type_is_exact() {
        let sorted = |tensor: Tensor| {
            let keys = keys(&tensor, Direction::Ascending).unwrap();
            assert!(keys.is_sorted_by(|a, b| a < b), "{tensor}");
        };
        sorted(Tensor::from_slice(&[3], &[i64::MIN, -1, i64::MAX]).unwrap());
        sorted(Tensor::from_slice(&[3], &[0, u64::MAX - 1, u64::MAX]).unwrap());
        sorted(Tensor::from_slice(&[3], &[-128i8, 0, 127]).unwrap());
        sorted(Tensor::from_bools(&[2], &[false, true]).unwrap());
        sorted(Tensor::from_bytes(ElementType::I4, &[2], [0x7f]).unwrap());
        let strings = ["", "B", "a", "aa"].map(str::to_owned).to_vec();
        sorted(Tensor::from_strings(&[4], strings).unwrap());
        let equal = Tensor::from_strings(&[2], vec!["x".into(), "x".into()]).unwrap();
        assert_eq!(keys(&equal, Direction::Ascending).unwrap(), [0, 0]);
    }
}
