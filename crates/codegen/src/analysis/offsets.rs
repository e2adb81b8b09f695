//! How offsets move with axes.

use super::linear::Linear;
use super::state::Analysis;
use super::walk::any_under;
use vinelift_nest::{AxisId, Binary, BufferId, Kind, Scalar, Stage};

/// Steps taken to take one index apart; what is left then is computed as it stands.
const MOST_STEPS: usize = 256;

impl<'n> Analysis<'n> {
    /// The flat offset of `buffer[at]`, or that in the panel that it is packed in.
    pub(crate) fn linear(&self, buffer: BufferId, at: &'n [Scalar]) -> Linear<'n> {
        let panel = self.panels.iter().position(|panel| panel.holds(at));
        if let Some(number) = panel {
            return Linear {
                terms: self.panels[number].terms.to_vec(),
                constant: 0,
                panel,
            };
        }
        let mut linear = Linear {
            terms: Vec::new(),
            constant: 0,
            panel: None,
        };
        for (index, stride) in at.iter().zip(self.nest.buf(buffer).strides()) {
            let mut open = vec![(index, stride as i64)];
            let mut steps = 0;
            while let Some((x, factor)) = open.pop() {
                steps += 1;
                match x.kind() {
                    Kind::Const(bits) => {
                        let value = (bits.0 as i64).wrapping_mul(factor);
                        linear.constant = linear.constant.wrapping_add(value);
                    }
                    Kind::Binary(Binary::Add, a, b) if steps < MOST_STEPS => {
                        open.extend([(b, factor), (a, factor)]);
                    }
                    Kind::Binary(Binary::Sub, a, b) if steps < MOST_STEPS => {
                        open.extend([(b, factor.wrapping_neg()), (a, factor)]);
                    }
                    Kind::Binary(Binary::Mul, a, b) => match (a.as_index(), b.as_index()) {
                        (_, Some(k)) => open.push((a, factor.wrapping_mul(k))),
                        (Some(k), _) => open.push((b, factor.wrapping_mul(k))),
                        _ => linear.add(x, factor),
                    },
                    _ => linear.add(x, factor),
                }
            }
        }
        linear
    }

    /// The elements by which an offset steps with the axis; `None` if not always by as many.
    pub(crate) fn steps_with(&self, axis: AxisId, linear: &Linear<'n>) -> Option<i64> {
        let mut step = 0;
        for (leaf, coefficient) in linear.terms() {
            match leaf.kind() {
                Kind::Axis(id) if *id == axis => step = coefficient,
                _ if self.facts.free(leaf).contains(&axis) => return None,
                _ => {}
            }
        }
        Some(step)
    }

    /// Whether `at` in the target of `stage` is, at every point, so far from what is written there that
    /// the innermost loop does not read what it writes.
    pub(crate) fn stays_apart(&self, stage: &Stage, at: &[Scalar]) -> bool {
        let Some(axis) = stage.domain.iter().rfind(|axis| axis.extent > 1) else {
            return false;
        };
        let (read, written) = (
            self.linear(stage.target, at),
            self.linear(stage.target, &stage.at),
        );
        let mut moves: Vec<(&Scalar, i64)> = read.terms().collect();
        for (leaf, coefficient) in written.terms() {
            match moves.iter_mut().find(|(other, _)| *other == leaf) {
                Some((_, sum)) => *sum = sum.wrapping_sub(coefficient),
                None => return false,
            }
        }
        let distance = read.constant().wrapping_sub(written.constant());
        let is_far = distance.unsigned_abs() >= axis.extent.example() as u64;
        is_far && moves.iter().all(|(_, sum)| *sum == 0)
    }

    /// Whether no two points write the same element.
    pub(crate) fn is_injective(&self, stage: &'n Stage) -> bool {
        let linear: Linear = self.linear(stage.target, &stage.at);
        let digit = |(leaf, k): (&Scalar, i64)| match leaf.kind() {
            Kind::Axis(id) => {
                let axis = stage.domain.iter().find(|axis| axis.id == *id)?;
                Some((k.unsigned_abs(), axis.extent.example() as u64, axis.id))
            }
            _ => None,
        };
        let Some(mut digits) = linear.terms().map(digit).collect::<Option<Vec<_>>>() else {
            return false;
        };
        digits.sort_unstable();
        let mut beyond = 1u64;
        let apart = digits.iter().all(|(k, extent, _)| {
            let fits = *k >= beyond;
            beyond = k.saturating_mul(*extent);
            fits
        });
        let mut many = stage.domain.iter().filter(|axis| axis.extent > 1);
        apart && many.all(|axis| digits.iter().any(|(.., id)| *id == axis.id))
    }

    /// Whether anything under `x` is loaded from a buffer.
    pub(crate) fn reads(&self, x: &Scalar, from: BufferId) -> bool {
        any_under(
            x,
            |x| matches!(x.kind(), Kind::Load { buffer, .. } if *buffer == from),
        )
    }
}
