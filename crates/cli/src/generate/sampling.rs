//! Which token is next.

use std::cmp::Ordering;

/// Chooses tokens by the logits that a model gives them.
pub(super) struct Sampler {
    /// The likeliest token is taken if this is 0.
    temperature: f64,
    /// How many of the likeliest may be drawn.
    most: usize,
    random: fastrand::Rng,
}

impl Sampler {
    pub(super) fn new(temperature: f64, most: Option<u32>, seed: u64) -> Sampler {
        Sampler {
            temperature,
            most: most.map_or(usize::MAX, |most| most as usize),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// A token; `None` if a logit is NaN, or the greatest is not finite.
    pub(super) fn choose(&mut self, logits: &[f64]) -> Option<usize> {
        if logits.iter().any(|x| x.is_nan()) {
            return None;
        }
        let mut order: Vec<usize> = (0..logits.len()).collect();
        let likelier = |a: &usize, b: &usize| by_likelihood(logits, *a, *b);
        let best = order.iter().copied().min_by(likelier)?;
        if !logits[best].is_finite() {
            return None;
        }
        if self.temperature == 0.0 {
            return Some(best);
        }
        if self.most < order.len() {
            order.select_nth_unstable_by(self.most, likelier);
            order.truncate(self.most);
            order.sort_unstable();
        }
        let weight = |token: &usize| ((logits[*token] - logits[best]) / self.temperature).exp();
        let sum: f64 = order.iter().map(weight).sum();
        let mut left = self.random.f64() * sum;
        for token in &order {
            left -= weight(token);
            if left < 0.0 {
                return Some(*token);
            }
        }
        // Rounding has left a little over.
        Some(best)
    }
}

/// The likelier token first, of equally likely ones that of the lower number.
fn by_likelihood(logits: &[f64], a: usize, b: usize) -> Ordering {
    logits[b].total_cmp(&logits[a]).then(a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_temperature_the_first_of_the_likeliest_is_taken() {
        let mut sampler = Sampler::new(0.0, None, 0);
        assert_eq!(sampler.choose(&[0.5, 2.0, -1.0, 2.0]), Some(1));
        assert_eq!(sampler.choose(&[f64::NEG_INFINITY, -3.0]), Some(1));
        assert_eq!(sampler.choose(&[0.0, f64::NAN]), None);
        assert_eq!(sampler.choose(&[0.0, f64::INFINITY]), None);
        assert_eq!(sampler.choose(&[f64::NEG_INFINITY; 2]), None);
        assert_eq!(sampler.choose(&[]), None);
    }

    /// Tokens of 1, 2 and 3 parts of 6 come about as often; those that are not among the likeliest never.
    #[test]
    fn tokens_are_drawn_as_often_as_they_are_likely() {
        let logits = [1.0f64, 3.0, 2.0].map(f64::ln);
        let counts = |most, temperature| {
            let mut sampler = Sampler::new(temperature, most, 7);
            let mut counts = [0; 3];
            for _ in 0..6000 {
                counts[sampler.choose(&logits).unwrap()] += 1;
            }
            counts
        };
        let near = |found: [i32; 3], expected: [i32; 3]| {
            let mut pairs = found.iter().zip(expected);
            assert!(pairs.all(|(a, b)| (a - b).abs() < 200), "{found:?}");
        };
        near(counts(None, 1.0), [1000, 3000, 2000]);
        near(counts(Some(2), 1.0), [0, 3600, 2400]);
        // Squares: 1, 9 and 4 parts of 14.
        near(counts(None, 0.5), [429, 3857, 1714]);
        assert_eq!(counts(Some(1), 5.0), [0, 6000, 0]);
        assert_eq!(counts(None, 1e-300), [0, 6000, 0]);
    }
}
