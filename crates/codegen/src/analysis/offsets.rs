//! How offsets move with axes.

use super::coefficient::Coefficient;
use super::linear::Linear;
use super::state::Analysis;
use super::walk::any_under;
use vinelift_nest::{AxisId, Binary, BufferId, Kind, Scalar, Scan, Stage};

/// The most steps of taking one index apart; what is left is computed as it is.
const MOST_STEPS: usize = 256;

impl<'n> Analysis<'n> {
    /// The flat offset of `buffer[at]`, or that in the panel that it is packed in.
    pub(crate) fn linear(&self, buffer: BufferId, at: &'n [Scalar]) -> Linear<'n> {
        let panel = self.panels.iter().position(|panel| panel.holds(at));
        let mut linear = Linear::zero();
        if let Some(number) = panel {
            let terms = self.panels[number].terms;
            linear.terms = terms.map(|(leaf, k)| (leaf, k.into())).to_vec();
            linear.panel = panel;
            return linear;
        }
        for (index, stride) in at.iter().zip(&self.strides[buffer.0 as usize]) {
            take_apart(&mut linear, index, *stride);
        }
        while let Some((whole, factor)) = linear.take_quotient_and_rest() {
            take_apart(&mut linear, whole, factor);
        }
        linear
    }

    /// The elements by which an offset steps with the axis; `None` if not always by as many.
    pub(crate) fn steps_with(&self, axis: AxisId, linear: &Linear<'n>) -> Option<i64> {
        self.moves_with(axis, linear)?.number()
    }

    /// The same where that may be a number times extents that have symbols.
    pub(crate) fn moves_with(&self, axis: AxisId, linear: &Linear<'n>) -> Option<Coefficient> {
        let depends = |leaf: &Scalar| !leaf.is_axis(axis) && self.facts.free(leaf).contains(&axis);
        match linear.leaves().any(depends) {
            true => None,
            false => linear.of_axis(axis),
        }
    }

    /// Whether a load from `at` in the target of `stage` reads nothing that the innermost loop writes: at every point it lies too far
    /// from the element that is written there.
    pub(crate) fn stays_apart(&self, stage: &Stage, at: &[Scalar]) -> bool {
        let Some(axis) = stage.domain.iter().rfind(|axis| axis.extent > 1) else {
            return false;
        };
        let (read, written) = (
            self.linear(stage.target, at),
            self.linear(stage.target, &stage.at),
        );
        let (Some(mut moves), Some(stores)) = (read.numbers(), written.numbers()) else {
            return false;
        };
        for (leaf, coefficient) in stores {
            match moves.iter_mut().find(|(other, _)| *other == leaf) {
                Some((_, sum)) => *sum = sum.wrapping_sub(coefficient),
                None => return false,
            }
        }
        let distance = read.constant().wrapping_sub(written.constant());
        let is_far = distance.unsigned_abs() >= axis.extent.most() as u64
            && read.symbolic() == written.symbolic();
        is_far && moves.iter().all(|(_, sum)| *sum == 0)
    }

    /// How a stage goes on from what it has written. What that says of extents holds at the example alone, so it is
    /// asked only where none of the stage's has symbols.
    pub(crate) fn scan_of(&self, stage: &Stage) -> Option<Scan> {
        let target = self.nest.buf(stage.target).shape.iter();
        let axes = stage.domain.iter().map(|axis| &axis.extent);
        let is_known = target.chain(axes).all(|extent| !extent.is_symbolic());
        is_known.then(|| Scan::of(self.nest, stage))?
    }

    /// Whether no two points write the same element.
    pub(crate) fn is_injective(&self, stage: &'n Stage) -> bool {
        let linear: Linear = self.linear(stage.target, &stage.at);
        let digit = |(leaf, k): (&Scalar, Coefficient)| match leaf.kind() {
            Kind::Axis(id) => {
                let axis = stage.domain.iter().find(|axis| axis.id == *id)?;
                let beyond = k.magnitude().checked_by(axis.extent)?;
                Some((k.magnitude(), beyond, axis.id))
            }
            _ => None,
        };
        let Some(mut digits) = linear.terms().map(digit).collect::<Option<Vec<_>>>() else {
            return false;
        };
        // The order at the example is right for all values of the symbols, or there is none.
        digits.sort_by_key(|(k, beyond, id)| {
            let [k, beyond] = [k, beyond].map(|x| x.at(&self.nest.symbols));
            (k, beyond, *id)
        });
        let mut beyond = Coefficient::from(1);
        let apart = digits.iter().all(|(k, more, _)| {
            let fits = beyond.is_at_most(*k);
            beyond = *more;
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

/// `factor · x`, if that is a constant.
fn times_scalar(factor: Coefficient, x: &Scalar) -> Option<Coefficient> {
    match x.kind() {
        Kind::Extent(extent) => factor.by(*extent),
        _ => x.as_index().map(|k| factor.times(k)),
    }
}

/// Adds `index · factor`.
fn take_apart<'n>(linear: &mut Linear<'n>, index: &'n Scalar, factor: Coefficient) {
    let mut open = vec![(index, factor)];
    let mut steps = 0;
    while let Some((x, factor)) = open.pop() {
        steps += 1;
        match x.kind() {
            Kind::Const(bits) => linear.add_constant(factor.times(bits.0 as i64)),
            Kind::Extent(extent) => match factor.by(*extent) {
                Some(constant) => linear.add_constant(constant),
                None => linear.add(x, factor),
            },
            Kind::Binary(Binary::Add, a, b) if steps < MOST_STEPS => {
                open.extend([(b, factor), (a, factor)]);
            }
            Kind::Binary(Binary::Sub, a, b) if steps < MOST_STEPS => {
                open.extend([(b, factor.times(-1)), (a, factor)]);
            }
            Kind::Binary(Binary::Mul, a, b) => {
                match (times_scalar(factor, b), times_scalar(factor, a)) {
                    (Some(factor), _) => open.push((a, factor)),
                    (_, Some(factor)) => open.push((b, factor)),
                    _ => linear.add(x, factor),
                }
            }
            _ => linear.add(x, factor),
        }
    }
}
