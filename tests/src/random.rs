//! Numbers that tests draw.

/// The same numbers on every machine.
pub struct Random(u64);

impl Random {
    /// Begins with `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 31 bits.
    fn bits(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.0 >> 33
    }

    /// One of `0..n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.bits() as usize % n
    }

    /// One of `values`.
    pub(crate) fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// Numbers from -0.5 to 0.5 that fill the fraction of an `f32`, so that sums of them in another order are others.
    pub fn fractions(&mut self, count: usize) -> Vec<f32> {
        let mut fraction = || (self.bits() >> 7) as f32 / (1 << 24) as f32 - 0.5;
        (0..count).map(|_| fraction()).collect()
    }
}
