//! The box of a domain in which a guard holds.

use crate::analysis::Linear;
use crate::ir::{Axis, Binary, Kind, Scalar};
use vinelift_tensor::Formula;

/// From where to where an axis runs: a number, and a formula.
pub(super) struct Inside {
    pub(super) low: i64,
    pub(super) high: Formula,
}

/// For each axis from where to where `condition` holds; `None` if it is not of bounds of single axes. Of a bound with symbols it
/// is not known whether it is more than the extent of the axis: it is given as it is.
pub(super) fn guard_box(condition: &Scalar, domain: &[Axis]) -> Option<Vec<Inside>> {
    let whole = |axis: &Axis| Inside {
        low: 0,
        high: *axis.extent.formula(),
    };
    let mut inside: Vec<Inside> = domain.iter().map(whole).collect();
    let mut is_bounded = vec![false; domain.len()];
    let mut open = vec![condition.clone()];
    while let Some(condition) = open.pop() {
        if condition.as_const() == Some(1) {
            // It is true everywhere.
            continue;
        }
        let Kind::Binary(op, a, b) = condition.kind() else {
            return None;
        };
        if *op == Binary::And {
            open.extend([a.clone(), b.clone()]);
            continue;
        }
        let form = Linear::of_comparison(*op, a, b)?;
        let (at, sign, rest) = bound(&form, domain)?;
        match sign {
            1 => inside[at].low = inside[at].low.max(rest.as_number()?.checked_neg()?),
            _ => {
                let high = rest.plus(&Formula::number(1))?;
                match high.minus(&inside[at].high)?.as_number() {
                    Some(more) if more >= 0 => {}
                    None if is_bounded[at] => return None,
                    _ => inside[at].high = high,
                }
                is_bounded[at] = true;
            }
        }
    }
    Some(inside)
}

/// The axis of `± axis + rest`, its sign, and the rest.
fn bound(form: &Linear, domain: &[Axis]) -> Option<(usize, i64, Formula)> {
    let mut found = None;
    let mut rest = Formula::number(form.constant);
    for (atom, k) in &form.terms {
        match atom.kind() {
            Kind::Axis(id) if found.is_none() && (*k == 1 || *k == -1) => {
                found = Some((domain.iter().position(|axis| axis.id == *id)?, *k));
            }
            Kind::Extent(extent) => {
                rest = rest.plus(&extent.formula().times(&Formula::number(*k))?)?;
            }
            _ => return None,
        }
    }
    let (at, sign) = found?;
    Some((at, sign, rest))
}
