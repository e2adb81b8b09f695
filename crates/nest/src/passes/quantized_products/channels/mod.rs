//! Values on grids that differ from channel to channel, as `FakeQuantize` with a range for each makes them.
//!
//! > `(round((min(high, max(low, x)) - low) / width · n) - zero) · scale`
//!
//! where `low`, `high` and `width`, and so the zero point and the scale, are constants of a channel: the values of a [`Grid`](super::grid::Grid),
//! by tables.

#[cfg(test)]
mod tests;

use super::grid::{Formula, points};
use crate::analysis::joined_digits;
use crate::build::{fma, number, zero};
use crate::ir::{Binary, BufferId, Kind, Nest, Scalar, Stage, Unary, as_binary, reciprocal};
use vinelift_tensor::ElementType::F32;

/// Ranges and scales of more channels may be known while compiling, or not, by what else there is to compute.
pub(super) const MOST_CHANNELS: usize = 1 << 10;

/// The value of `stage` by tables, if it is on grids that differ from channel to channel.
pub(super) fn by_channel<'a>(
    nest: &mut Nest,
    stage: &Stage,
    constant: &dyn Fn(BufferId) -> Option<&'a [u8]>,
) -> Option<Scalar> {
    let formula = Formula::of(&stage.value)?;
    let (low, high) = (formula.low, formula.high);
    let is_width =
        |x: &Scalar| as_binary(Binary::Sub, x).is_some_and(|(a, b)| a == high && b == low);
    let is_same = formula.top == high && formula.bottom == low;
    if !is_same || !is_width(formula.width) || !is_width(formula.range) {
        return None;
    }
    let ranges = ranges(low, constant)?.zip(ranges(high, constant)?);
    let channel = channel(nest, low)?;
    if channel != self::channel(nest, high)? {
        return None;
    }
    let mut tables = [const { Vec::new() }; 6];
    let mut begin_at_zero = true;
    let mut channels = 0;
    for (low, high) in ranges {
        let is_range = low < high && (high - low).is_finite();
        let (zero, scale) = points(low.into(), high.into(), formula.steps).filter(|_| is_range)?;
        let [near, rest] = reciprocal(high - low, formula.steps as f32)?;
        for (table, x) in tables
            .iter_mut()
            .zip([low, high, zero as f32, scale as f32, near, rest])
        {
            table.extend(x.to_le_bytes());
        }
        begin_at_zero &= low.to_bits() == 0;
        channels += 1;
    }
    let name = nest.buf(stage.target).name.clone();
    let mut load = |of: &str, bytes: &[u8]| {
        let table = nest.table(&format!("{name}.{of}"), F32, channels, bytes);
        nest.load(table, vec![channel.clone()])
    };
    let [lows, highs, zeros, scales, reciprocals, rests] = tables;
    let scale = load("scales", &scales);
    let (near, rest) = (load("reciprocals", &reciprocals), load("rests", &rests));
    let code = |moved: Scalar| {
        let quotient = fma(&moved, &near, &(&moved * &rest));
        Scalar::unary(Unary::Round, quotient * number(formula.steps, F32))
    };
    let high = load("highs", &highs);
    let clamped = |low: Scalar| high.clone().min(low.max(formula.x.clone()));
    let distance = match begin_at_zero {
        true => code(clamped(zero(F32))),
        false => {
            let low = load("lows", &lows);
            code(clamped(low.clone()) - low) - load("zeros", &zeros)
        }
    };
    Some(distance * scale)
}

/// The numbers of a constant, an end of the range of each channel.
fn ranges<'a>(
    x: &Scalar,
    constant: &dyn Fn(BufferId) -> Option<&'a [u8]>,
) -> Option<impl Iterator<Item = f32> + use<'a>> {
    let Kind::Load { buffer, .. } = x.kind() else {
        return None;
    };
    let (numbers, _) = constant(*buffer)?.as_chunks::<4>();
    let is_known = numbers.len() <= MOST_CHANNELS;
    is_known.then(|| numbers.iter().map(|x| f32::from_le_bytes(*x)))
}

/// The index of the channel in a load from a tensor that has but one dim of more than one element, or two for the digits of one.
pub(super) fn channel(nest: &Nest, x: &Scalar) -> Option<Scalar> {
    let Kind::Load { buffer, at } = x.kind() else {
        return None;
    };
    let dims = joined_digits(at, &nest.buf(*buffer).shape)?;
    let mut channels = dims.into_iter().filter(|(_, extent)| *extent != 1);
    let (channel, _) = channels.next()?;
    (channels.next().is_none() && !channel.reads_zero()).then_some(channel)
}
