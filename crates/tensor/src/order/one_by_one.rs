//! Sorting as far as it is needed.

use super::sort;

/// How many are sorted at first. Later it is as many as there are sorted ones.
const FIRST: usize = 64;

/// The positions of pairs of a key and a position, in the order that [`sort`] gives these, for users who may not want
/// all of them.
#[derive(Debug)]
pub struct OneByOne {
    keyed: Vec<(u64, usize)>,
    sorted: usize,
    next: usize,
}

impl OneByOne {
    /// Of these pairs.
    pub fn of(keyed: Vec<(u64, usize)>) -> OneByOne {
        OneByOne {
            keyed,
            sorted: 0,
            next: 0,
        }
    }
}

impl Iterator for OneByOne {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.next == self.sorted {
            let rest = &mut self.keyed[self.sorted..];
            let more = self.sorted.max(FIRST).min(rest.len());
            if more < rest.len() {
                rest.select_nth_unstable(more);
            }
            sort(&mut rest[..more]);
            self.sorted += more;
        }
        let (_, position) = self.keyed.get(self.next)?;
        self.next += 1;
        Some(*position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_if_sorted_at_once() {
        for count in [
            0,
            1,
            FIRST - 1,
            FIRST,
            FIRST + 1,
            2 * FIRST,
            2 * FIRST + 1,
            1000,
        ] {
            let keyed = (0..count).map(|k| ((k * 7919 % 61) as u64, k));
            let keyed: Vec<(u64, usize)> = keyed.collect();
            let mut sorted = keyed.clone();
            sorted.sort();
            let want = sorted.into_iter().map(|(_, position)| position);
            assert!(OneByOne::of(keyed).eq(want), "{count}");
        }
    }
}
