//! Generators of random 32-bit numbers, which the seeds alone decide.

/// The seeds that a layer has; both 0 mean that no two sequences are to be the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeds {
    pub(super) global: u64,
    pub(super) op: u64,
}

impl Seeds {
    /// Whether the sequence is to be the same each time.
    pub(super) fn are_fixed(self) -> bool {
        (self.global, self.op) != (0, 0)
    }

    /// These, or others at random if they are both 0.
    fn or_any(self) -> Seeds {
        match self.are_fixed() {
            true => self,
            false => Seeds {
                global: fastrand::u64(..),
                op: fastrand::u64(..),
            },
        }
    }
}

/// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): the global seed
/// is the key, the other seed the upper half of the counter, whose lower half counts from 0. Each
/// value of the counter gives four numbers.
pub(super) struct Philox {
    key: [u32; 2],
    counter: u128,
    block: [u32; 4],
    used: usize,
}

impl Philox {
    pub(super) fn new(seeds: Seeds) -> Philox {
        let seeds = seeds.or_any();
        Philox {
            key: [seeds.global as u32, (seeds.global >> 32) as u32],
            counter: u128::from(seeds.op) << 64,
            block: [0; 4],
            used: 4,
        }
    }

    fn next_block(&mut self) -> [u32; 4] {
        let [mut k0, mut k1] = self.key;
        let mut x = [0, 32, 64, 96].map(|bit| (self.counter >> bit) as u32);
        self.counter = self.counter.wrapping_add(1);
        for _ in 0..10 {
            let product = |m: u32, x: u32| {
                let product = u64::from(m) * u64::from(x);
                ((product >> 32) as u32, product as u32)
            };
            let (high_0, low_0) = product(0xd251_1f53, x[0]);
            let (high_1, low_1) = product(0xcd9e_8d57, x[2]);
            x = [high_1 ^ x[1] ^ k0, low_1, high_0 ^ x[3] ^ k1, low_0];
            k0 = k0.wrapping_add(0x9e37_79b9);
            k1 = k1.wrapping_add(0xbb67_ae85);
        }
        x
    }

    /// A number in `0..1` of 52 bits.
    pub(super) fn next_f64(&mut self) -> f64 {
        let (high, low) = (self.next(), self.next());
        unit_f64(high, low)
    }
}

/// A number in `0..1` with 20 bits of `high` and those of `low` for its fraction.
pub(super) fn unit_f64(high: u32, low: u32) -> f64 {
    let fraction = u64::from(high & 0xf_ffff) << 32 | u64::from(low);
    f64::from_bits(1023 << 52 | fraction) - 1.0
}

/// MT19937 (Matsumoto and Nishimura 1998), started with the lower half of the global seed.
pub(super) struct Mersenne {
    state: Vec<u32>,
    used: usize,
}

impl Mersenne {
    const LENGTH: usize = 624;

    pub(super) fn new(seeds: Seeds) -> Mersenne {
        let mut state = vec![seeds.or_any().global as u32];
        for i in 1..Self::LENGTH {
            let last = state[i - 1];
            let mixed = (last ^ last >> 30).wrapping_mul(1_812_433_253);
            state.push(mixed.wrapping_add(i as u32));
        }
        Mersenne {
            state,
            used: Self::LENGTH,
        }
    }

    fn twist(&mut self) {
        let n = Self::LENGTH;
        for i in 0..n {
            let (this, next) = (self.state[i], self.state[(i + 1) % n]);
            let mixed = this & 0x8000_0000 | next & 0x7fff_ffff;
            let odd = if next & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + 397) % n] ^ mixed >> 1 ^ odd;
        }
    }
}

/// Numbers one after the other.
pub(super) trait Generator {
    /// The next 32 bits.
    fn next(&mut self) -> u32;
}

impl Generator for Philox {
    fn next(&mut self) -> u32 {
        if self.used == self.block.len() {
            self.block = self.next_block();
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }
}

impl Generator for Mersenne {
    fn next(&mut self) -> u32 {
        if self.used == Self::LENGTH {
            self.twist();
            self.used = 0;
        }
        let y = self.state[self.used];
        self.used += 1;
        let y = y ^ y >> 11;
        let y = y ^ y << 7 & 0x9d2c_5680;
        let y = y ^ y << 15 & 0xefc6_0000;
        y ^ y >> 18
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<const N: usize>(mut generator: impl Generator) -> [u32; N] {
        std::array::from_fn(|_| generator.next())
    }

    /// The known answers that come with the authors' library, Random123.
    #[test]
    fn philox_as_published() {
        let mut philox = Philox::new(Seeds { global: 1, op: 0 });
        philox.key = [0; 2];
        let want = [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
        assert_eq!(first(philox), want);
        let ones = u64::MAX;
        let mut philox = Philox::new(Seeds {
            global: ones,
            op: ones,
        });
        philox.counter = u128::MAX;
        let want = [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd];
        assert_eq!(first(philox), want);
    }

    /// The 10000th number of the C++ standard's `mt19937`, whose seed is 5489.
    #[test]
    fn mersenne_as_published() {
        let mut mersenne = Mersenne::new(Seeds {
            global: 5489,
            op: 0,
        });
        for _ in 1..10_000 {
            mersenne.next();
        }
        assert_eq!(mersenne.next(), 4_123_659_995);
    }

    #[test]
    fn without_seeds_no_two_are_the_same() {
        let none = Seeds { global: 0, op: 0 };
        assert_ne!(first::<4>(Philox::new(none)), first::<4>(Philox::new(none)));
    }
}
