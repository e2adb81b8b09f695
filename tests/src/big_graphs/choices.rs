//! Where the choices of a graph come from: bytes, and a seeded generator when these are used up.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Choices, one after the other.
pub struct Choices {
    bytes: std::vec::IntoIter<u8>,
    more: fastrand::Rng,
}

impl Choices {
    /// Those that `bytes` make, such as a fuzzer's.
    pub fn new(bytes: &[u8]) -> Choices {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Choices {
            bytes: Vec::from(bytes).into_iter(),
            more: fastrand::Rng::with_seed(hasher.finish()),
        }
    }

    /// Those of a seed. The first is the seed itself, so that seeds in a row take all the ways of it in turn.
    pub fn of_seed(seed: u64) -> Choices {
        Choices {
            bytes: vec![seed.to_le_bytes()[0]].into_iter(),
            more: fastrand::Rng::with_seed(seed),
        }
    }

    /// A number below `n`; 0 if there is none.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        if n < 2 {
            return 0;
        }
        let count = (usize::BITS - (n - 1).leading_zeros()).div_ceil(8);
        let mut number = 0;
        for _ in 0..count {
            let Some(byte) = self.bytes.next() else {
                return self.more.usize(..n);
            };
            number = number << 8 | usize::from(byte);
        }
        number % n
    }

    /// One of `low..=high`
    pub(crate) fn within(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    pub(crate) fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// Whether something happens that does so in `percent` of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..n).collect();
        (0..n)
            .map(|_| left.swap_remove(self.below(left.len())))
            .collect()
    }

    /// A seed for numbers that nobody chooses one by one.
    pub(crate) fn seed(&mut self) -> u64 {
        self.more.u64(..)
    }
}

#[cfg(test)]
mod tests {
    use super::Choices;

    #[test]
    fn bytes_come_first_and_seeds_repeat() {
        let mut choices = Choices::new(&[7, 1, 2]);
        assert_eq!(choices.below(5), 2);
        assert_eq!(choices.below(1000), 258);
        let row =
            |mut choices: Choices| (0..50).map(|_| choices.below(1 << 20)).collect::<Vec<_>>();
        assert_eq!(row(Choices::of_seed(3)), row(Choices::of_seed(3)));
        assert_ne!(row(Choices::of_seed(3)), row(Choices::of_seed(259)));
    }
}
