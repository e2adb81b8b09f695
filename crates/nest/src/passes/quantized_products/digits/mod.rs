//! Axes of which a value depends on one digit alone: of an output channel on its group, `c / n`, or of an output of a transposed
//! convolution on its phase, `y % n`.

#[cfg(test)]
mod tests;

use crate::analysis::divided;
use crate::build::index;
use crate::ir::{Axis, AxisId, Binary, Nest, Scalar, Seen, free_axes, rewrite};
use vinelift_tensor::Extent;

/// The digit of an axis that a value depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digit {
    /// `axis / n`.
    Quotient(usize),
    /// `axis % n`.
    Remainder(usize),
}

impl Digit {
    /// The digit of `axis` that `x` depends on; `None` if it does not depend on it, or on more than one digit.
    pub(super) fn of(x: &Scalar, axis: AxisId) -> Option<Digit> {
        let mut found = None;
        let (mut open, mut seen) = (vec![x], Seen::default());
        while let Some(x) = open.pop() {
            match Digit::read(x, axis) {
                Some(digit) if found.is_none_or(|found| found == digit) => found = Some(digit),
                Some(_) => return None,
                None if x.is_axis(axis) => return None,
                None if seen.insert(x.address()) => open.extend(x.children()),
                None => {}
            }
        }
        found
    }

    /// The digit that `x` is.
    fn read(x: &Scalar, axis: AxisId) -> Option<Digit> {
        let digit = |op, of: fn(usize) -> Digit| {
            let (whole, n) = divided(x, op)?;
            whole.is_axis(axis).then_some(of(n.number()?))
        };
        digit(Binary::Div, Digit::Quotient).or_else(|| digit(Binary::Rem, Digit::Remainder))
    }

    /// The digit of `axis`.
    fn index(self, axis: AxisId) -> Scalar {
        let whole = Scalar::axis(axis);
        match self {
            Digit::Quotient(n) => whole / index(n as i64),
            Digit::Remainder(n) => whole.rem(index(n as i64)),
        }
    }

    /// How many values it has along an axis of this extent, if that is a number or does not matter.
    fn count(self, extent: Extent) -> Option<usize> {
        match self {
            Digit::Quotient(n) => Some(extent.number()?.div_ceil(n)),
            Digit::Remainder(n) => Some(extent.number().map_or(n, |extent| extent.min(n))),
        }
    }
}

/// `x` over the axes among `axes` that it depends on, with a new axis for each of which it depends on one digit alone: `x` with the new
/// axes in it, all these axes, and for each of them the axis or the digit that it stands for.
pub(super) fn over_digits(
    nest: &mut Nest,
    x: Scalar,
    axes: &[Axis],
) -> (Scalar, Vec<Axis>, Vec<Scalar>) {
    let free = free_axes(&x);
    let (mut x, mut over, mut at) = (x, Vec::new(), Vec::new());
    for axis in axes.iter().filter(|axis| free.contains(&axis.id)) {
        let digit = Digit::of(&x, axis.id);
        let short = digit.and_then(|digit| Some((digit, digit.count(axis.extent)?)));
        let Some((digit, count)) = short else {
            over.push(*axis);
            at.push(Scalar::axis(axis.id));
            continue;
        };
        let new = nest.axis(count);
        x = rewrite(&x, &mut |x| match Digit::read(&x, axis.id) {
            Some(_) => Scalar::axis(new.id),
            None => x,
        });
        over.push(new);
        at.push(digit.index(axis.id));
    }
    (x, over, at)
}
